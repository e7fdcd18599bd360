#include "offer_allocator.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

namespace agora {

namespace {

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

OfferAllocator::OfferAllocator(Settings settings)
    : settings_(std::move(settings)),
      width_(settings_.capacity.width()),
      tree_(width_, settings_.random),
      quotas_(1),
      up_(settings_.capacity.rows(), true),
      rivals_(width_),
      available_(width_),
      required_(width_),
      allowed_(width_),
      latest_(up_.size(), kNone) {
  check_length(settings_.smallest.size(), width_, "smallest");
  check_not_negative(settings_.smallest, "smallest");
  if (settings_.machines_per_turn < 1)
    throw std::invalid_argument("machines_per_turn: expected 1 or more");
  std::vector<int64_t> total(width_);
  for (size_t m = 0; m < up_.size(); ++m)
    for (size_t r = 0; r < width_; ++r) {
      const int64_t of = settings_.capacity.row(m)[r];
      if (of < 0) throw std::invalid_argument("capacity: expected 0 or more");
      if (__builtin_add_overflow(total[r], of, &total[r]))
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
  Framework made;
  made.number = framework;
  made.leaf = tree_.add_leaf(tree_.role(role), name, static_cast<int32_t>(frameworks_.size()));
  const int32_t top = tree_.top(made.leaf);
  for (size_t q = 1; q < quotas_.size(); ++q)
    if (quotas_[q].role == top) made.quota = q;
  made.offered.resize(width_);
  made.allocated.resize(width_);
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
  end_filters(of);
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
  end_filters(of);
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
  for (size_t i = 0; i < machine.size(); ++i)
    add_filter(of, machine_row(machine[i]), amount + i * width_, until_us);
}

void OfferAllocator::add_filter(Framework& framework, size_t machine, const int64_t* amount,
                                int64_t until_us) {
  if (framework.filters.empty()) framework.filters.resize(up_.size(), kNone);
  uint32_t made;
  if (free_filters_.empty()) {
    made = static_cast<uint32_t>(filters_.size());
    filters_.emplace_back();
    refused_.resize(refused_.size() + width_);
  } else {
    made = free_filters_.back();
    free_filters_.pop_back();
  }
  filters_[made] = {until_us, framework.filters[machine]};
  std::copy_n(amount, width_, refused_.data() + made * width_);
  framework.filters[machine] = made;
}

void OfferAllocator::end_filters(Framework& framework, size_t machine) {
  if (framework.filters.empty()) return;
  uint32_t& first = framework.filters[machine];
  for (; first != kNone; first = filters_[first].next) free_filters_.push_back(first);
}

void OfferAllocator::end_filters(Framework& framework) {
  if (framework.filters.empty()) return;
  for (size_t m = 0; m < up_.size(); ++m) end_filters(framework, m);
}

// Removes the filters that have ended.
bool OfferAllocator::is_filtered(Framework& framework, size_t machine, const int64_t* amount,
                                 int64_t now_us) {
  if (framework.filters.empty()) return false;
  for (uint32_t* one = &framework.filters[machine]; *one != kNone;) {
    Filter& filter = filters_[*one];
    // the last instant counts, so that a filter outlives the run that falls on its end
    if (filter.until_us < now_us) {
      free_filters_.push_back(*one);
      *one = filter.next;
      continue;
    }
    const int64_t* const refused = refused_.data() + *one * width_;
    if (std::equal(amount, amount + width_, refused, std::less_equal<>())) return true;
    one = &filter.next;
  }
  return false;
}

size_t OfferAllocator::filters() const { return filters_.size() - free_filters_.size(); }

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

void OfferAllocator::charge_rows(std::span<const int32_t> framework, const int64_t* amount,
                                 std::vector<int64_t> Framework::* charged, int64_t sign,
                                 const char* what) {
  for (size_t i = 0; i < framework.size(); ++i) {
    Framework& of = at(framework[i]);
    charge(of, of.*charged, amount + i * width_, sign, what);
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
    up_[row] = up[i];
    for (Framework& of : frameworks_) end_filters(of, row);
  }
  total_changed_ = true;
}

size_t OfferAllocator::machine_row(int64_t machine) const {
  if (machine < 0 || static_cast<size_t>(machine) >= up_.size())
    throw std::invalid_argument("machine " + std::to_string(machine) + ": there is none");
  return static_cast<size_t>(machine);
}

void OfferAllocator::settle() {
  if (!total_changed_) return tree_.settle();
  std::vector<int64_t> total(width_);
  for (size_t m = 0; m < up_.size(); ++m)
    if (up_[m])
      for (size_t r = 0; r < width_; ++r) total[r] += settings_.capacity.row(m)[r];
  if (rivals_leaf_ == RoleTree::kNone)
    for (size_t r = 0; r < width_; ++r) total[r] -= rivals_[r];
  tree_.set_total(total);
  total_changed_ = false;
}

// One run.

const OfferAllocator::Offers& OfferAllocator::allocate(int64_t now_us,
                                                       std::span<const int32_t> candidates,
                                                       const int64_t* free) {
  for (const int32_t one : candidates) machine_row(one);
  settle();
  for (const int32_t machine : offers_.machine) latest_[static_cast<size_t>(machine)] = kNone;
  offers_ = {};
  previous_.clear();
  left_.assign(free, free + up_.size() * width_);
  for (int64_t& of : left_) of = std::max<int64_t>(of, 0);
  std::vector<int32_t> machines = with_room(candidates);
  if (any_guarantee_) find_headroom(left_.data());
  Stream sorter = stream_of(kSorter);
  const bool any_unmet =
      any_guarantee_ && std::ranges::any_of(required_, [](int64_t of) { return of > 0; });
  if (any_unmet) run_stage(Stage::Guarantees, now_us, machines, sorter);
  std::ranges::sort(machines);  // so that the second stage does not depend on the first one's order
  run_stage(Stage::FairShares, now_us, machines, sorter);
  ++runs_;
  return offers_;
}

// The candidates that are up and have something to offer, in order.
std::vector<int32_t> OfferAllocator::with_room(std::span<const int32_t> candidates) const {
  std::vector<bool> is_candidate(up_.size());
  for (const int32_t one : candidates) is_candidate[static_cast<size_t>(one)] = true;
  std::vector<int32_t> machines;
  for (size_t m = 0; m < up_.size(); ++m)
    if (is_candidate[m] && up_[m] && is_offerable(left_.data() + m * width_))
      machines.push_back(static_cast<int32_t>(m));
  return machines;
}

// Whether the amount is no smaller than the smallest offer. Task-sized grants have no such bound.
bool OfferAllocator::is_offerable(const int64_t* amount) const {
  if (is_zero(amount, width_)) return false;
  if (settings_.task_sized || is_zero(settings_.smallest.data(), width_)) return true;
  for (size_t r = 0; r < width_; ++r)
    if (settings_.smallest[r] > 0 && amount[r] >= settings_.smallest[r]) return true;
  return false;
}

Stream OfferAllocator::stream_of(uint64_t purpose) const {
  return Stream(stream_key(settings_.seed, settings_.name,
                           static_cast<uint64_t>(runs_) * kPurposes + purpose));
}

void OfferAllocator::shuffle(std::vector<int32_t>& machines, Stage stage) const {
  Stream stream = stream_of(stage == Stage::Guarantees ? kGuaranteeOrder : kFairShareOrder);
  for (size_t i = machines.size(); i > 1; --i)
    std::swap(machines[i - 1], machines[stream.below(i)]);
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
      for (size_t r = 0; r < width_; ++r) available_[r] += free[m * width_ + r];
  for (const Quota& quota : quotas_)
    if (quota.is_guaranteed)
      for (size_t r = 0; r < width_; ++r) required_[r] += unmet(quota, r);
}

void OfferAllocator::run_stage(Stage stage, int64_t now_us, std::vector<int32_t>& machines,
                               Stream& sorter) {
  shuffle(machines, stage);
  if (settings_.task_sized) return grant_tasks(stage, now_us, machines, sorter);
  for (size_t from = 0; from < machines.size(); from += settings_.machines_per_turn) {
    const size_t count = std::min(settings_.machines_per_turn, machines.size() - from);
    serve_turn(stage, now_us, std::span<const int32_t>(machines).subspan(from, count), sorter);
  }
}

// The machines of a turn go to the first framework in order; what it may not have goes to the next.
void OfferAllocator::serve_turn(Stage stage, int64_t now_us, std::span<const int32_t> turn,
                                Stream& sorter) {
  const auto room = [&](int32_t machine) {
    return is_offerable(left_.data() + static_cast<size_t>(machine) * width_);
  };
  auto open = std::ranges::count_if(turn, room);
  if (open == 0) return;
  tree_.visit(sorter, [&](int32_t row) {
    Framework& framework = frameworks_[static_cast<size_t>(row)];
    for (const int32_t machine : turn) {
      const auto m = static_cast<size_t>(machine);
      if (!room(machine) || !allow(stage, framework, m) || !is_offerable(allowed_.data()) ||
          is_filtered(framework, m, allowed_.data(), now_us))
        continue;
      grant(framework, m, allowed_.data());
      if (!room(machine)) --open;
    }
    return open > 0;
  });
  tree_.settle();
}

// Progressive filling: one task for the first framework in order that has a machine for one, until
// there is none. Room only shrinks during a stage, so no machine is tried again for a size.
void OfferAllocator::grant_tasks(Stage stage, int64_t now_us, std::span<const int32_t> machines,
                                 Stream& sorter) {
  for (Framework& framework : frameworks_)
    for (Wanted& size : framework.wanted) size.tried = 0;
  for (bool granted = true; granted;) {
    granted = false;
    tree_.visit(sorter, [&](int32_t row) {
      Framework& framework = frameworks_[static_cast<size_t>(row)];
      for (Wanted& size : framework.wanted) {
        if (size.tasks == 0) continue;
        for (; size.tried < machines.size(); ++size.tried) {
          const auto m = static_cast<size_t>(machines[size.tried]);
          if (!may_have_task(stage, now_us, framework, size.amount, m)) continue;
          grant(framework, m, size.amount.data());
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

// Whether the framework may have something of what is left on the machine. Sets allowed_ to that.
bool OfferAllocator::allow(Stage stage, const Framework& framework, size_t machine) {
  const Quota& quota = quotas_[framework.quota];
  const int64_t* const left = left_.data() + machine * width_;
  bool meets_guarantee = false;
  for (size_t r = 0; r < width_; ++r) {
    int64_t most = left[r];
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
  return stage == Stage::FairShares || meets_guarantee;
}

bool OfferAllocator::may_have_task(Stage stage, int64_t now_us, Framework& framework,
                                   const std::vector<int64_t>& task, size_t machine) {
  const int64_t* const left = left_.data() + machine * width_;
  if (!std::equal(task.begin(), task.end(), left, std::less_equal<>())) return false;
  if (!allow(stage, framework, machine)) return false;
  if (!std::ranges::equal(task, allowed_, std::less_equal<>())) return false;
  if (stage == Stage::Guarantees) {
    const Quota& quota = quotas_[framework.quota];
    bool meets_guarantee = false;
    for (size_t r = 0; r < width_; ++r) meets_guarantee |= task[r] > 0 && unmet(quota, r) > 0;
    if (!meets_guarantee) return false;
  }
  return !is_filtered(framework, machine, task.data(), now_us);
}

void OfferAllocator::grant(Framework& framework, size_t machine, const int64_t* amount) {
  const Quota& quota = quotas_[framework.quota];
  for (size_t r = 0; r < width_; ++r) {
    left_[machine * width_ + r] -= amount[r];
    framework.offered[r] += amount[r];
    if (!any_guarantee_) continue;
    available_[r] -= amount[r];
    if (quota.is_guaranteed) required_[r] -= std::min(amount[r], unmet(quota, r));
  }
  tree_.charge(framework.leaf, amount, +1, 1);
  uint32_t offer = latest_[machine];
  while (offer != kNone && offers_.framework[offer] != framework.number) offer = previous_[offer];
  if (offer == kNone) {
    offer = static_cast<uint32_t>(offers_.framework.size());
    offers_.framework.push_back(framework.number);
    offers_.machine.push_back(static_cast<int32_t>(machine));
    offers_.amount.resize(offers_.amount.size() + width_);
    previous_.push_back(latest_[machine]);
    latest_[machine] = offer;
  }
  for (size_t r = 0; r < width_; ++r) offers_.amount[offer * width_ + r] += amount[r];
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
    for (size_t m = 0; m < of.filters.size(); ++m)
      for (uint32_t one = of.filters[m]; one != kNone; one = filters_[one].next) {
        state.filter_row.push_back(static_cast<int32_t>(row));
        state.filter_machine.push_back(static_cast<int32_t>(m));
        const int64_t* const refused = refused_.data() + one * width_;
        state.filter_amount.insert(state.filter_amount.end(), refused, refused + width_);
        state.filter_until_us.push_back(filters_[one].until_us);
      }
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
  total_changed_ = true;
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
  // each filter is put before those of its machine, so the last one comes first
  for (size_t i = state.filter_row.size(); i-- > 0;)
    add_filter(frameworks_.at(static_cast<size_t>(state.filter_row[i])),
               machine_row(state.filter_machine[i]), state.filter_amount.data() + i * width_,
               state.filter_until_us[i]);
}

}  // namespace agora
