#include "offer_allocator.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace agora {

namespace {

constexpr size_t kPrefetchRows = 8;
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// What a random stream of a run is for; the sequence number is kPurposes * run + purpose.
enum Purpose : uint64_t { kGuaranteeOrder, kFairShareOrder, kSorter, kPurposes };

bool is_zero(const int64_t* amount, size_t width) {
  return std::all_of(amount, amount + width, [](int64_t of) { return of == 0; });
}

void check_length(size_t length, size_t expected, const char* field) {
  if (length != expected)
    throw std::invalid_argument(std::string(field) + ": expected " + std::to_string(expected) +
                                " values, got " + std::to_string(length));
}

void check_not_negative(std::span<const int64_t> amount, const char* field) {
  if (std::ranges::any_of(amount, [](int64_t of) { return of < 0; }))
    throw std::invalid_argument(std::string(field) + ": expected 0 or more");
}

}  // namespace

// Filters of a framework.

void OfferFilters::add(std::span<const int32_t> machine, const int64_t* amount, int64_t until_us) {
  machine_.insert(machine_.end(), machine.begin(), machine.end());
  amount_.insert(amount_.end(), amount, amount + machine.size() * width_);
  until_us_.insert(until_us_.end(), machine.size(), until_us);
}

void OfferFilters::end_all() {
  clear_index();
  machine_.clear();
  amount_.clear();
  until_us_.clear();
  ended_ = 0;
}

void OfferFilters::end_of(int32_t machine) {
  if (machine_.empty()) return;
  index(std::numeric_limits<int64_t>::min());
  const auto row = static_cast<size_t>(machine);
  if (!has_some(row)) return;
  for (uint32_t one = first_[row]; one != kNone; one = next_[one]) end(one);
  set_has_some(row, false);
}

void OfferFilters::drop_ended() {
  clear_index();
  size_t kept = 0;
  for (size_t row = 0; row < machine_.size(); ++row) {
    if (machine_[row] < 0) continue;
    machine_[kept] = machine_[row];
    until_us_[kept] = until_us_[row];
    std::copy_n(amount_.data() + row * width_, width_, amount_.data() + kept++ * width_);
  }
  machine_.resize(kept);
  until_us_.resize(kept);
  amount_.resize(kept * width_);
  ended_ = 0;
}

// Enters those that were added since. None does whose time is over.
void OfferFilters::index(int64_t now_us) {
  if (2 * ended_ > machine_.size()) drop_ended();
  if (first_.empty()) {
    first_.resize(machines_);
    has_some_.resize((machines_ + 63) / 64);
  }
  next_.resize(machine_.size());
  for (; indexed_ < machine_.size(); ++indexed_) {
    if (machine_[indexed_] < 0) continue;
    if (until_us_[indexed_] < now_us) {
      end(indexed_);
      continue;
    }
    const auto machine = static_cast<size_t>(machine_[indexed_]);
    next_[indexed_] = has_some(machine) ? first_[machine] : kNone;
    first_[machine] = static_cast<uint32_t>(indexed_);
    set_has_some(machine, true);
  }
}

bool OfferFilters::any_hides(size_t machine, const int64_t* amount, int64_t now_us) {
  for (uint32_t* one = &first_[machine]; *one != kNone;) {
    const size_t row = *one;
    // the last instant counts, so that a filter outlives the run that falls on its end
    if (until_us_[row] < now_us) {
      *one = next_[row];
      end(row);
      continue;
    }
    if (std::equal(amount, amount + width_, amount_.data() + row * width_, std::less_equal<>()))
      return true;
    one = &next_[row];
  }
  if (first_[machine] == kNone) set_has_some(machine, false);
  return false;
}

OfferAllocator::OfferAllocator(Settings settings)
    : settings_(std::move(settings)),
      width_(settings_.capacity.width()),
      tree_(width_, settings_.random),
      quotas_(1),
      up_(settings_.capacity.rows(), true),
      total_(width_),
      rivals_(width_),
      available_(width_),
      required_(width_),
      allowed_(width_),
      granted_(width_) {
  check_length(settings_.smallest.size(), width_, "smallest");
  check_not_negative(settings_.smallest, "smallest");
  has_smallest_ = !settings_.task_sized && !is_zero(settings_.smallest.data(), width_);
  if (settings_.machines_per_turn < 1)
    throw std::invalid_argument("machines_per_turn: expected 1 or more");
  for (size_t m = 0; m < up_.size(); ++m)
    for (size_t r = 0; r < width_; ++r) {
      const int64_t of = settings_.capacity.row(m)[r];
      if (of < 0) throw std::invalid_argument("capacity: expected 0 or more");
      if (__builtin_add_overflow(total_[r], of, &total_[r]))
        throw std::invalid_argument("capacity: the sum exceeds 64 bits");
    }
  for (const Role& role : settings_.roles) {
    const int32_t node = tree_.role(role.path);
    tree_.set_weight(node, role.weight_permille);
    check_length(role.guarantee.size(), width_, "guarantee");
    check_length(role.limit.size(), width_, "limit");
    check_not_negative(role.guarantee, "guarantee");
    Quota quota{node, role.guarantee, role.limit};
    for (size_t r = 0; r < width_; ++r) {
      if (quota.limit[r] < kNoLimit)
        throw std::invalid_argument("limit: expected 0 or more, or -1 for none");
      quota.is_guaranteed |= quota.guarantee[r] > 0;
      quota.is_limited |= quota.limit[r] != kNoLimit;
      if (quota.limit[r] == kNoLimit) quota.limit[r] = kUnlimited;
      if (quota.guarantee[r] > quota.limit[r])
        throw std::invalid_argument("guarantee: role " + role.path + ": exceeds its limit");
    }
    if (!quota.is_guaranteed && !quota.is_limited) continue;
    if (tree_.top(node) != node)
      throw std::invalid_argument("role " + role.path +
                                  ": only roles of the first level have a quota");
    for (const Quota& other : quotas_)
      if (other.role == node) throw std::invalid_argument("role " + role.path + ": has two quotas");
    any_guarantee_ |= quota.is_guaranteed;
    quotas_.push_back(std::move(quota));
  }
  if (settings_.rivals_role)
    rivals_leaf_ = tree_.add_leaf(tree_.role(*settings_.rivals_role), "", RoleTree::kNone);
}

// Frameworks.

const OfferAllocator::Framework& OfferAllocator::at(int32_t framework) const {
  const auto number = static_cast<size_t>(framework);
  if (framework < 0 || number >= row_of_.size() || row_of_[number] < 0)
    throw std::invalid_argument("framework " + std::to_string(framework) + ": there is none");
  return frameworks_[static_cast<size_t>(row_of_[number])];
}

OfferAllocator::Framework& OfferAllocator::at(int32_t framework) {
  return const_cast<Framework&>(std::as_const(*this).at(framework));
}

void OfferAllocator::add_framework(int32_t framework, const std::string& name,
                                   const std::string& role) {
  if (framework < 0) throw std::invalid_argument("framework: expected 0 or more");
  const auto number = static_cast<size_t>(framework);
  if (number < row_of_.size() && row_of_[number] >= 0)
    throw std::invalid_argument("framework " + std::to_string(framework) + ": added twice");
  if (name.empty()) throw std::invalid_argument("framework: expected a name");
  Framework made(framework, up_.size(), width_);
  made.leaf = tree_.add_leaf(tree_.role(role), name, static_cast<int32_t>(frameworks_.size()));
  const int32_t top = tree_.top(made.leaf);
  for (size_t q = 1; q < quotas_.size(); ++q)
    if (quotas_[q].role == top) made.quota = q;
  if (number >= row_of_.size()) row_of_.resize(number + 1, -1);
  row_of_[number] = static_cast<int32_t>(frameworks_.size());
  update_eligible(frameworks_.emplace_back(std::move(made)));
}

void OfferAllocator::update_eligible(Framework& framework) {
  const bool wants =
      !settings_.task_sized ||
      std::ranges::any_of(framework.wanted, [](const Wanted& of) { return of.tasks > 0; });
  tree_.set_eligible(framework.leaf, framework.active && !framework.suppressed && wants);
}

void OfferAllocator::activate(int32_t framework) {
  at(framework).active = true;
  update_eligible(at(framework));
}

void OfferAllocator::deactivate(int32_t framework) {
  Framework& of = at(framework);
  of.filters.end_all();
  of.active = of.suppressed = false;
  of.wanted.clear();
  update_eligible(of);
}

void OfferAllocator::suppress(int32_t framework) {
  at(framework).suppressed = true;
  update_eligible(at(framework));
}

void OfferAllocator::revive(int32_t framework) {
  Framework& of = at(framework);
  of.filters.end_all();
  of.suppressed = false;
  update_eligible(of);
}

void OfferAllocator::want(int32_t framework, std::span<const int64_t> amount,
                          std::span<const int64_t> tasks) {
  Framework& of = at(framework);
  check_length(amount.size(), tasks.size() * width_, "amount");
  check_not_negative(amount, "amount");
  check_not_negative(tasks, "tasks");
  std::vector<Wanted> wanted;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const int64_t* const size = amount.data() + i * width_;
    if (tasks[i] > 0 && is_zero(size, width_))
      throw std::invalid_argument("amount: expected more than 0 of a resource");
    if (tasks[i] > 0) wanted.push_back({{size, size + width_}, tasks[i], 0});
  }
  of.wanted = std::move(wanted);
  update_eligible(of);
}

// Filters.

void OfferAllocator::refuse(int32_t framework, std::span<const int32_t> machine,
                            const int64_t* amount, int64_t until_us) {
  Framework& of = at(framework);
  for (const int32_t one : machine) machine_row(one);
  of.filters.add(machine, amount, until_us);
}

size_t OfferAllocator::filters() const {
  size_t filters = 0;
  for (const Framework& of : frameworks_) filters += of.filters.size();
  return filters;
}

// Charges.

void OfferAllocator::charge(Framework& framework, std::vector<int64_t>& charged,
                            const int64_t* amount, int64_t sign, const char* what) {
  for (size_t r = 0; r < width_; ++r) {
    if (amount[r] < 0) throw std::invalid_argument(std::string(what) + ": expected 0 or more");
    if (sign < 0 && amount[r] > charged[r])
      throw std::invalid_argument(std::string(what) + ": framework " +
                                  std::to_string(framework.number) + " has less than that");
  }
  for (size_t r = 0; r < width_; ++r) charged[r] += sign * amount[r];
  tree_.charge(framework.leaf, amount, sign, 0);
}

// Rows of one framework that follow one another are charged together.
void OfferAllocator::charge_rows(std::span<const int32_t> framework, const int64_t* amount,
                                 std::vector<int64_t> Framework::* charged, int64_t sign,
                                 const char* what) {
  std::vector<int64_t> sum(width_);
  for (size_t i = 0; i < framework.size();) {
    Framework& of = at(framework[i]);
    std::ranges::fill(sum, 0);
    for (; i < framework.size() && framework[i] == of.number; ++i)
      for (size_t r = 0; r < width_; ++r) {
        const int64_t one = amount[i * width_ + r];
        if (one < 0) throw std::invalid_argument(std::string(what) + ": expected 0 or more");
        if (__builtin_add_overflow(sum[r], one, &sum[r]))
          throw std::invalid_argument(std::string(what) + ": the sum exceeds 64 bits");
      }
    charge(of, of.*charged, sum.data(), sign, what);
  }
}

void OfferAllocator::on_offers_ended(std::span<const int32_t> framework, const int64_t* amount) {
  charge_rows(framework, amount, &Framework::offered, -1, "ended offers");
}

void OfferAllocator::on_allocated(std::span<const int32_t> framework, const int64_t* amount) {
  charge_rows(framework, amount, &Framework::allocated, +1, "allocated amounts");
}

void OfferAllocator::on_freed(std::span<const int32_t> framework, const int64_t* amount) {
  charge_rows(framework, amount, &Framework::allocated, -1, "freed amounts");
}

void OfferAllocator::set_rivals_use(std::span<const int64_t> amount) {
  check_length(amount.size(), width_, "amount");
  check_not_negative(amount, "amount");
  std::vector<int64_t> change(width_);
  for (size_t r = 0; r < width_; ++r) change[r] = amount[r] - rivals_[r];
  rivals_.assign(amount.begin(), amount.end());
  if (rivals_leaf_ == RoleTree::kNone)
    total_changed_ = true;
  else
    tree_.charge(rivals_leaf_, change.data(), +1, 0);
}

void OfferAllocator::on_machines_changed(std::span<const int32_t> machine,
                                         std::span<const bool> up) {
  check_length(up.size(), machine.size(), "up");
  for (const int32_t one : machine) machine_row(one);
  for (size_t i = 0; i < machine.size(); ++i) {
    const size_t row = machine_row(machine[i]);
    if (up_[row] != up[i])
      for (size_t r = 0; r < width_; ++r)
        total_[r] += settings_.capacity.row(row)[r] * (up[i] ? 1 : -1);
    up_[row] = up[i];
    for (Framework& of : frameworks_) of.filters.end_of(machine[i]);
  }
  total_changed_ = true;
}

size_t OfferAllocator::machine_row(int64_t machine) const {
  if (machine < 0 || static_cast<size_t>(machine) >= up_.size())
    throw std::invalid_argument("machine " + std::to_string(machine) + ": there is none");
  return static_cast<size_t>(machine);
}

void OfferAllocator::find_total() {
  std::ranges::fill(total_, 0);
  for (size_t m = 0; m < up_.size(); ++m)
    if (up_[m])
      for (size_t r = 0; r < width_; ++r) total_[r] += settings_.capacity.row(m)[r];
  total_changed_ = true;
}

void OfferAllocator::settle() {
  if (!total_changed_) return tree_.settle();
  std::vector<int64_t> total = total_;
  if (rivals_leaf_ == RoleTree::kNone)
    for (size_t r = 0; r < width_; ++r) total[r] -= rivals_[r];
  tree_.set_total(total);
  total_changed_ = false;
}

// One run.

const OfferAllocator::Offers& OfferAllocator::allocate(int64_t now_us,
                                                       std::span<const int32_t> candidates,
                                                       const int64_t* free,
                                                       const int64_t* all_free) {
  settle();
  find_offerable(candidates, free);
  offers_.framework.clear();
  offers_.machine.clear();
  offers_.amount.clear();
  offers_.framework.reserve(machine_.size());
  offers_.machine.reserve(machine_.size());
  offers_.amount.reserve(left_.size());
  previous_.clear();
  latest_.assign(machine_.size(), kNone);
  if (any_guarantee_) find_headroom(all_free);
  Stream sorter = stream_of(kSorter);
  const bool any_unmet =
      any_guarantee_ && std::ranges::any_of(required_, [](int64_t of) { return of > 0; });
  if (any_unmet) run_stage(Stage::Guarantees, now_us, sorter);
  run_stage(Stage::FairShares, now_us, sorter);
  ++runs_;
  return offers_;
}

// Sets machine_ and left_.
void OfferAllocator::find_offerable(std::span<const int32_t> candidates, const int64_t* free) {
  machine_.resize(candidates.size());
  left_.resize(candidates.size() * width_);
  uint32_t rows = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const size_t machine = machine_row(candidates[i]);
    const int64_t* const of = free + i * width_;
    left(rows)[0] = std::max<int64_t>(of[0], 0);
    for (size_t r = 1; r < width_; ++r) left(rows)[r] = std::max<int64_t>(of[r], 0);
    machine_[rows] = candidates[i];
    rows += up_[machine] && is_offerable(left(rows));
  }
  machine_.resize(rows);
  left_.resize(rows * width_);
}

Stream OfferAllocator::stream_of(uint64_t purpose) const {
  return Stream(stream_key(settings_.seed, settings_.name,
                           static_cast<uint64_t>(runs_) * kPurposes + purpose));
}

// Anew from the order of machines, so that a stage does not depend on the order of the one before.
void OfferAllocator::shuffle(Stage stage) {
  order_.resize(machine_.size());
  std::iota(order_.begin(), order_.end(), 0);
  Stream stream = stream_of(stage == Stage::Guarantees ? kGuaranteeOrder : kFairShareOrder);
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[stream.below(i)]);
}

// What the guarantee has above the charges of the role.
int64_t OfferAllocator::unmet(const Quota& quota, size_t resource) const {
  return std::max<int64_t>(0, quota.guarantee[resource] - tree_.charged(quota.role)[resource]);
}

// All machines count, not only candidates: guarantees may be met on any of them.
void OfferAllocator::find_headroom(const int64_t* free) {
  std::ranges::fill(available_, 0);
  std::ranges::fill(required_, 0);
  for (size_t m = 0; m < up_.size(); ++m)
    if (up_[m])
      for (size_t r = 0; r < width_; ++r)
        available_[r] += std::max<int64_t>(free[m * width_ + r], 0);
  for (const Quota& quota : quotas_)
    if (quota.is_guaranteed)
      for (size_t r = 0; r < width_; ++r) required_[r] += unmet(quota, r);
}

void OfferAllocator::run_stage(Stage stage, int64_t now_us, Stream& sorter) {
  shuffle(stage);
  if (settings_.task_sized) return grant_tasks(stage, now_us, sorter);
  const bool any_quota = quotas_.size() > 1;
  const size_t machines = settings_.machines_per_turn;
  const int32_t group =
      any_quota || machines > 1 || settings_.random ? RoleTree::kNone : tree_.only_group();
  if (group != RoleTree::kNone) return offer_in_group(now_us, group);
  const std::span<uint32_t> order = order_;
  for (size_t from = 0; from < order.size(); from += machines) {
    const std::span<uint32_t> turn = order.subspan(from, std::min(machines, order.size() - from));
    if (any_quota)
      serve_turn(stage, now_us, turn, sorter);
    else
      offer_turn(now_us, turn, sorter);
  }
}

// serve_turn() for all machines, where there are no quotas, turns are of one machine, and all
// frameworks that want offers are of one role: only these change places.
void OfferAllocator::offer_in_group(int64_t now_us, int32_t group) {
  std::ranges::fill(granted_, 0);
  for (size_t i = 0; i < order_.size(); ++i) {
    if (i + kPrefetchRows < order_.size()) prefetch(order_[i + kPrefetchRows]);
    const uint32_t row = order_[i];
    const std::span<const int32_t> leaves = tree_.leaves(group);
    for (size_t place = 0; place < leaves.size(); ++place) {
      Framework& framework = frameworks_[static_cast<size_t>(tree_.framework(leaves[place]))];
      if (framework.filters.hides(machine_[row], left(row), now_us)) continue;
      add_offer(framework, row);
      add_to(framework.offered, left(row));
      add_to(granted_, left(row));
      tree_.charge_leaf(group, place, left(row));
      break;
    }
  }
  tree_.charge(group, granted_.data(), +1, static_cast<int64_t>(offers_.framework.size()));
  tree_.settle();
}

// serve_turn() where there are no quotas: each machine goes to the first framework that it is not
// hidden from, with all its room. In `turn` stay those that nobody may have.
void OfferAllocator::offer_turn(int64_t now_us, std::span<uint32_t> turn, Stream& sorter) {
  tree_.visit(sorter, [&](int32_t number) {
    Framework& framework = frameworks_[static_cast<size_t>(number)];
    std::ranges::fill(granted_, 0);
    size_t hidden = 0;
    for (const uint32_t row : turn) {
      if (framework.filters.hides(machine_[row], left(row), now_us)) {
        turn[hidden++] = row;
        continue;
      }
      add_offer(framework, row);
      add_to(granted_, left(row));
    }
    const auto offers = static_cast<int64_t>(turn.size() - hidden);
    turn = turn.first(hidden);
    if (offers == 0) return true;
    for (size_t r = 0; r < width_; ++r) framework.offered[r] += granted_[r];
    tree_.charge(framework.leaf, granted_.data(), +1, offers);
    return hidden > 0;
  });
  tree_.settle();
}

// The machines of a turn go to the first framework in order; what it may not have goes to the next.
void OfferAllocator::serve_turn(Stage stage, int64_t now_us, std::span<const uint32_t> turn,
                                Stream& sorter) {
  const auto has_room = [&](uint32_t row) { return is_offerable(left(row)); };
  auto open = std::ranges::count_if(turn, has_room);
  if (open == 0) return;
  tree_.visit(sorter, [&](int32_t number) {
    Framework& framework = frameworks_[static_cast<size_t>(number)];
    for (const uint32_t row : turn) {
      if (!has_room(row)) continue;
      const int64_t* const allowed = allowed_of(stage, framework, row);
      if (allowed == nullptr || !is_offerable(allowed) ||
          framework.filters.hides(machine_[row], allowed, now_us))
        continue;
      grant(framework, row, allowed);
      if (!has_room(row)) --open;
    }
    return open > 0;
  });
  tree_.settle();
}

// Progressive filling: one task for the first framework in order that has a machine for one, until
// there is none. Room only shrinks during a stage, so no machine is tried again for a size.
void OfferAllocator::grant_tasks(Stage stage, int64_t now_us, Stream& sorter) {
  for (Framework& framework : frameworks_)
    for (Wanted& size : framework.wanted) size.tried = 0;
  for (bool granted = true; granted;) {
    granted = false;
    tree_.visit(sorter, [&](int32_t number) {
      Framework& framework = frameworks_[static_cast<size_t>(number)];
      for (Wanted& size : framework.wanted) {
        if (size.tasks == 0) continue;
        for (; size.tried < order_.size(); ++size.tried) {
          const uint32_t row = order_[size.tried];
          if (!may_have_task(stage, now_us, framework, size.amount, row)) continue;
          grant(framework, row, size.amount.data());
          if (--size.tasks == 0) update_eligible(framework);
          granted = true;
          return false;
        }
      }
      return true;
    });
    tree_.settle();
  }
}

// What the framework may have of what is left on the machine; null: nothing.
const int64_t* OfferAllocator::allowed_of(Stage stage, const Framework& framework, uint32_t row) {
  const Quota& quota = quotas_[framework.quota];
  if (!any_guarantee_ && !quota.is_limited) return left(row);
  bool meets_guarantee = false;
  for (size_t r = 0; r < width_; ++r) {
    int64_t most = left(row)[r];
    if (quota.is_limited)
      most = std::min(most, std::max<int64_t>(0, quota.limit[r] - tree_.charged(quota.role)[r]));
    const int64_t missing = stage == Stage::Guarantees && quota.is_guaranteed ? unmet(quota, r) : 0;
    if (missing > 0) {
      most = std::min(most, missing);
      meets_guarantee |= most > 0;
    } else if (any_guarantee_) {
      // of the other resources, too: processors without memory are of no use
      most = std::min(most, std::max<int64_t>(0, available_[r] - required_[r]));
    }
    allowed_[r] = most;
  }
  return stage == Stage::FairShares || meets_guarantee ? allowed_.data() : nullptr;
}

bool OfferAllocator::may_have_task(Stage stage, int64_t now_us, Framework& framework,
                                   const std::vector<int64_t>& task, uint32_t row) {
  if (!std::equal(task.begin(), task.end(), left(row), std::less_equal<>())) return false;
  const int64_t* const allowed = allowed_of(stage, framework, row);
  if (allowed == nullptr || !std::equal(task.begin(), task.end(), allowed, std::less_equal<>()))
    return false;
  if (stage == Stage::Guarantees) {
    const Quota& quota = quotas_[framework.quota];
    bool meets_guarantee = false;
    for (size_t r = 0; r < width_; ++r) meets_guarantee |= task[r] > 0 && unmet(quota, r) > 0;
    if (!meets_guarantee) return false;
  }
  return !framework.filters.hides(machine_[row], task.data(), now_us);
}

// amount: may be that which is left.
void OfferAllocator::grant(Framework& framework, uint32_t row, const int64_t* amount) {
  const Quota& quota = quotas_[framework.quota];
  for (size_t r = 0; r < width_; ++r) {
    framework.offered[r] += amount[r];
    if (!any_guarantee_) continue;
    available_[r] -= amount[r];
    if (quota.is_guaranteed) required_[r] -= std::min(amount[r], unmet(quota, r));
  }
  tree_.charge(framework.leaf, amount, +1, 1);
  uint32_t offer = latest_[row];
  while (offer != kNone && offers_.framework[offer] != framework.number) offer = previous_[offer];
  if (offer == kNone) {
    offer = static_cast<uint32_t>(offers_.framework.size());
    offers_.framework.push_back(framework.number);
    offers_.machine.push_back(machine_[row]);
    offers_.amount.resize(offers_.amount.size() + width_);
    previous_.push_back(latest_[row]);
    latest_[row] = offer;
  }
  for (size_t r = 0; r < width_; ++r) offers_.amount[offer * width_ + r] += amount[r];
  for (size_t r = 0; r < width_; ++r) left(row)[r] -= amount[r];
}

// What others ask for.

std::vector<int32_t> OfferAllocator::framework_numbers() const {
  std::vector<int32_t> numbers;
  for (const Framework& of : frameworks_) numbers.push_back(of.number);
  return numbers;
}

std::vector<int64_t> OfferAllocator::shares_ppm() {
  settle();
  std::vector<int64_t> shares;
  for (const Framework& of : frameworks_) shares.push_back(tree_.share_ppm(of.leaf));
  return shares;
}

OfferAllocator::State OfferAllocator::state() const {
  State state;
  state.runs = runs_;
  state.rivals = rivals_;
  state.up.assign(up_.begin(), up_.end());
  const auto append = [](std::vector<int64_t>& column, const std::vector<int64_t>& values) {
    column.insert(column.end(), values.begin(), values.end());
  };
  for (size_t row = 0; row < frameworks_.size(); ++row) {
    const Framework& of = frameworks_[row];
    state.framework.push_back(of.number);
    state.active.push_back(of.active);
    state.suppressed.push_back(of.suppressed);
    state.offers.push_back(tree_.charges(of.leaf));
    append(state.offered, of.offered);
    append(state.allocated, of.allocated);
    for (const Wanted& size : of.wanted) {
      state.wanted_row.push_back(static_cast<int32_t>(row));
      append(state.wanted, size.amount);
      state.wanted_tasks.push_back(size.tasks);
    }
    of.filters.each([&](int32_t machine, const int64_t* amount, int64_t until_us) {
      state.filter_row.push_back(static_cast<int32_t>(row));
      state.filter_machine.push_back(machine);
      state.filter_amount.insert(state.filter_amount.end(), amount, amount + width_);
      state.filter_until_us.push_back(until_us);
    });
  }
  return state;
}

void OfferAllocator::restore(const State& state) {
  if (state.framework != framework_numbers())
    throw std::invalid_argument("restore: expected the frameworks that the state has");
  check_length(state.up.size(), up_.size(), "restore: machines");
  set_rivals_use(state.rivals);
  runs_ = state.runs;
  up_.assign(state.up.begin(), state.up.end());
  find_total();
  for (size_t row = 0; row < frameworks_.size(); ++row) {
    Framework& of = frameworks_[row];
    const auto amount = [&](const std::vector<int64_t>& column) {
      return column.data() + row * width_;
    };
    of.active = state.active[row];
    of.suppressed = state.suppressed[row];
    of.wanted.clear();
    for (size_t i = 0; i < state.wanted_row.size(); ++i)
      if (state.wanted_row[i] == static_cast<int32_t>(row)) {
        const int64_t* const size = state.wanted.data() + i * width_;
        of.wanted.push_back({{size, size + width_}, state.wanted_tasks[i], 0});
      }
    charge(of, of.offered, amount(state.offered), +1, "restored offers");
    charge(of, of.allocated, amount(state.allocated), +1, "restored amounts");
    tree_.charge(of.leaf, amount(state.offered), 0, state.offers[row]);
    update_eligible(of);
  }
  for (size_t i = 0; i < state.filter_row.size(); ++i) {
    const int32_t machine = state.filter_machine[i];
    machine_row(machine);
    frameworks_.at(static_cast<size_t>(state.filter_row[i]))
        .filters.add({&machine, 1}, state.filter_amount.data() + i * width_,
                     state.filter_until_us[i]);
  }
}

}  // namespace agora
