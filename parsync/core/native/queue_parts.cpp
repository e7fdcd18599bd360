#include "queue_parts.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "schedulers/native/objective.hpp"

namespace agora {

namespace {

void add(int64_t amount, int64_t& sum) {
  if (__builtin_add_overflow(sum, amount, &sum))
    throw std::overflow_error("quota account: requests sum to 2^63 or more");
}

void subtract(int64_t amount, int64_t& sum) {
  if (__builtin_sub_overflow(sum, amount, &sum))
    throw std::overflow_error("quota account: amounts differ by 2^63 or more");
}

}  // namespace

QuotaAccount::QuotaAccount(std::span<const int32_t> of_task, size_t groups,
                           std::span<const int64_t> request, size_t resources,
                           std::span<const int64_t> gang)
    : held(groups * resources),
      waiting(groups * resources),
      granted(groups * resources),
      of_task_(of_task),
      groups_(groups),
      request_(request),
      resources_(resources),
      ended_(groups * resources),
      taken_(groups * resources),
      stopped_(groups) {
  if (request.size() != of_task.size() * resources || gang.size() != of_task.size())
    throw std::invalid_argument("quota account: expected a group, request and gang of each task");
  for (const int32_t group : of_task)
    if (group < 0 || static_cast<size_t>(group) >= groups)
      throw std::invalid_argument("quota group " + std::to_string(group) +
                                  ": expected a number below " + std::to_string(groups));
  if (std::ranges::any_of(gang, [](int64_t one) { return one != kNoGang; })) gang_ = gang;
}

void QuotaAccount::look() { std::ranges::fill(ended_, 0); }

std::span<const uint8_t> QuotaAccount::within(std::span<const int64_t> task) {
  fits_.assign(task.size(), 0);
  std::ranges::fill(taken_, 0);
  std::ranges::fill(stopped_, 0);
  torn_.clear();
  for (size_t i = 0; i < task.size(); ++i) {
    const size_t group = group_of(task[i]);
    const int64_t* request = request_of(task[i]);
    for (size_t r = 0; r < resources_ && !stopped_[group]; ++r) {
      int64_t& taken = taken_[group * resources_ + r];
      add(request[r], taken);
      stopped_[group] = request[r] != 0 && taken > room(group, r);
    }
    fits_[i] = !stopped_[group];
    if (stopped_[group] && gang_of(task[i]) != kNoGang) torn_.push_back(gang_of(task[i]));
  }
  if (!torn_.empty()) {
    std::ranges::sort(torn_);
    for (size_t i = 0; i < task.size(); ++i)
      fits_[i] = fits_[i] && !std::ranges::binary_search(torn_, gang_of(task[i]));
  }
  return fits_;
}

bool QuotaAccount::any_within(std::span<const int64_t> task) {
  return std::ranges::any_of(within(task), [](uint8_t fits) { return fits != 0; });
}

bool QuotaAccount::has_room(std::span<const int64_t> task, std::span<const int64_t> before) const {
  if (task.empty()) throw std::invalid_argument("has_room: expected a task");
  const size_t group = group_of(task[0]);
  const int64_t gang = gang_of(task[0]);
  for (size_t r = 0; r < resources_; ++r) {
    int64_t asked = 0, wanted = 0;
    for (size_t i = 0; i < task.size() && (i == 0 || gang != kNoGang); ++i)
      if (i == 0 || gang_of(task[i]) == gang) add(request_of(task[i])[r], asked);
    for (const int64_t other : before)
      if (group_of(other) == group) add(request_of(other)[r], wanted);
    add(asked, wanted);
    if (asked != 0 && wanted > room(group, r)) return false;
  }
  return true;
}

int64_t QuotaAccount::room(size_t group, size_t resource) const {
  const size_t at = group * resources_ + resource;
  int64_t room = granted[at];
  subtract(held[at], room);
  subtract(ended_[at], room);
  return room;
}

void QuotaAccount::move(std::span<const int64_t> task, std::vector<int64_t>* from,
                        std::vector<int64_t>* to) {
  for (const int64_t one : task) {
    const size_t group = group_of(one);
    const int64_t* request = request_of(one);
    for (size_t r = 0; r < resources_; ++r) {
      if (from) subtract(request[r], (*from)[group * resources_ + r]);
      if (to) add(request[r], (*to)[group * resources_ + r]);
    }
  }
}

bool UnitSize::is_within(const UnitSize& other) const {
  return tasks <= other.tasks && (constraint == kNoConstraint || constraint == other.constraint) &&
         std::ranges::equal(request, other.request, std::less_equal{});
}

UnitSizes::UnitSizes(std::span<const int64_t> request, size_t resources,
                     std::span<const int64_t> gang, std::span<const int32_t> preference,
                     std::span<const int64_t> elsewhere_cost)
    : request_(request), resources_(resources), gang_(gang), preference_(preference) {
  if (request.size() != gang.size() * resources || preference.size() != gang.size())
    throw std::invalid_argument("unit sizes: expected a request, gang and preference of each task");
  for (const int64_t cost : elsewhere_cost) constrains_.push_back(cost == kNowhereElse);
  for (const int32_t set : preference)
    if (set < 0 || static_cast<size_t>(set) >= constrains_.size())
      throw std::invalid_argument("preference " + std::to_string(set) + ": expected a set below " +
                                  std::to_string(constrains_.size()));
}

bool UnitSizes::are_alike() const {
  if (std::ranges::any_of(constrains_, [](uint8_t is_one) { return is_one != 0; })) return false;
  if (std::ranges::any_of(gang_, [](int64_t gang) { return gang != kNoGang; })) return false;
  for (size_t i = resources_; i < request_.size(); ++i)
    if (request_[i] != request_[i - resources_]) return false;
  return true;
}

void UnitSizes::add_largest(std::span<const int64_t> task, std::vector<UnitSize>& sizes) const {
  UnitSize size;
  const auto add = [&] {
    for (const UnitSize& known : sizes)
      if (known.is_within(size)) return;
    sizes.push_back(size);
  };
  std::vector<std::pair<int64_t, int64_t>> in_gangs;  // (gang, task)
  for (const int64_t one : task) {
    if (gang_of(one) != kNoGang) {
      in_gangs.emplace_back(gang_of(one), one);
      continue;
    }
    const auto request = request_of(one);
    size = {1, constraint_of(one), {request.begin(), request.end()}};
    add();
  }
  std::ranges::sort(in_gangs);
  for (size_t begin = 0, end = 0; begin < in_gangs.size(); begin = end) {
    size = {0, constraint_of(in_gangs[begin].second), std::vector<int64_t>(resources_)};
    bool have_one_constraint = true;
    for (; end < in_gangs.size() && in_gangs[end].first == in_gangs[begin].first; ++end) {
      const int64_t one = in_gangs[end].second;
      have_one_constraint = have_one_constraint && constraint_of(one) == size.constraint;
      const auto request = request_of(one);
      for (size_t r = 0; r < resources_; ++r)
        size.request[r] = std::max(size.request[r], request[r]);
      ++size.tasks;
    }
    if (have_one_constraint) add();
  }
}

UnitSize UnitSizes::smallest(std::span<const int64_t> task) const {
  if (task.empty()) throw std::invalid_argument("smallest unit: expected a task");
  UnitSize size{1, constraint_of(task[0]),
                std::vector<int64_t>(resources_, std::numeric_limits<int64_t>::max())};
  std::vector<int64_t> gangs;
  for (const int64_t one : task) {
    if (constraint_of(one) != size.constraint) size.constraint = UnitSize::kConstraintsDiffer;
    const auto request = request_of(one);
    for (size_t r = 0; r < resources_; ++r) size.request[r] = std::min(size.request[r], request[r]);
    if (gang_of(one) != kNoGang) gangs.push_back(gang_of(one));
  }
  if (gangs.size() < task.size()) return size;
  std::ranges::sort(gangs);
  size.tasks = std::numeric_limits<int64_t>::max();
  for (size_t begin = 0, end = 0; begin < gangs.size(); begin = end) {
    while (end < gangs.size() && gangs[end] == gangs[begin]) ++end;
    size.tasks = std::min(size.tasks, static_cast<int64_t>(end - begin));
  }
  return size;
}

int64_t UnitSizes::constraint_of(int64_t task) const {
  const int32_t set = preference_[row_of(task, preference_.size())];
  return constrains_[static_cast<size_t>(set)] ? set : UnitSize::kNoConstraint;
}

bool SkippedUnits::has_to_offer() const {
  return std::ranges::any_of(
      waiting_, [this](const Entry& entry) { return may_be_offered(entry.tasks.task); });
}

bool SkippedUnits::holds(int64_t now_us) const {
  return first_has_waited(now_us) && may_be_offered(waiting_[0].tasks.task);
}

std::span<const int64_t> SkippedUnits::holder(int64_t now_us) const {
  if (!holds(now_us)) return {};
  return waiting_[0].tasks.task;
}

void SkippedUnits::all_tasks(QueuedTasks& tasks) const {
  tasks.clear();
  for (const Entry& entry : waiting_) tasks.append(entry.tasks);
}

bool SkippedUnits::release(int64_t now_us, QueuedTasks& tasks) {
  if (!first_has_waited(now_us) || holds(now_us)) return false;
  Entry& first = waiting_[0];
  released_us_[first.tasks.task[0]] = first.since_us;
  std::swap(tasks, first.tasks);
  erase(0);
  if (next_ > 0) --next_;
  return true;
}

void SkippedUnits::on_view_changed() {
  if (!next_due(next_)) next_ = waiting_.size();  // the turn was over: none of the others fitted
  ++view_;
  without_room_.clear();
  turn_is_old_ = true;
}

std::optional<size_t> SkippedUnits::due(int64_t now_us, bool others) {
  if (holds(now_us)) {
    if (waiting_[0].view != view_) return 0;
    return std::nullopt;
  }
  const auto found = next_due(next_);
  if (!found && turn_is_old_ && (passed_on_ || !others)) return next_due(0);
  return found;
}

void SkippedUnits::take(size_t place, std::optional<int64_t> limit, QueuedTasks& offered) {
  Entry entry = std::move(waiting_.at(place));
  erase(place);
  if (place < next_) {  // a new turn, or the first that holds the queue
    turn_is_old_ = false;
    passed_on_ = false;
  }
  next_ = place;
  QueuedTasks rest;
  offered.clear();
  if (account_ == nullptr) {
    std::swap(offered, entry.tasks);
  } else {
    const auto fits = account_->within(entry.tasks.task);
    for (size_t i = 0; i < fits.size(); ++i) (fits[i] ? offered : rest).append_row(entry.tasks, i);
  }
  const size_t count = batch_within(offered.task, limit, gang_);
  rest.prepend(offered.view().tail(count));
  offered.truncate(count);
  if (!rest.empty()) insert(place, rest, entry.since_us, entry.view);
  offered_place_ = place;
  offered_since_us_ = entry.since_us;
}

void SkippedUnits::pass_on() {
  passed_on_ = true;
  next_ = waiting_.size();
  try_again(kNotYet);
}

void SkippedUnits::try_again(int64_t since_us) {
  offered_place_ = std::nullopt;
  offered_since_us_ = since_us;
}

void SkippedUnits::on_no_room(int64_t now_us, const QueuedTasksView& left) {
  if (left.empty()) throw std::invalid_argument("on_no_room: expected a task");
  int64_t since_us = offered_since_us_;
  if (since_us == kNotYet) {
    const auto released = released_us_.extract(left.task[0]);
    since_us = released ? released.mapped() : now_us;
  }
  sizes_.add_largest(left.task, without_room_);
  const size_t place =
      offered_place_
          ? *offered_place_
          : static_cast<size_t>(std::ranges::upper_bound(waiting_, since_us, {}, &Entry::since_us) -
                                waiting_.begin());
  insert(std::min(place, waiting_.size()), left, since_us, view_);
  if (place <= next_) ++next_;
}

void SkippedUnits::insert(size_t place, const QueuedTasksView& tasks, int64_t since_us,
                          int64_t view) {
  Entry entry{{}, since_us, sizes_.smallest(tasks.task), view};
  entry.tasks.assign(tasks);
  waiting_.insert(waiting_.begin() + static_cast<ptrdiff_t>(place), std::move(entry));
}

std::optional<size_t> SkippedUnits::next_due(size_t start) {
  for (size_t place = start; place < waiting_.size(); ++place) {
    Entry& entry = waiting_[place];
    if (entry.view == view_) continue;
    const bool fits_not = std::ranges::any_of(
        without_room_, [&](const UnitSize& size) { return size.is_within(entry.size); });
    if (fits_not)
      entry.view = view_;
    else if (may_be_offered(entry.tasks.task))
      return place;
  }
  return std::nullopt;
}

bool SkippedUnits::first_has_waited(int64_t now_us) const {
  return !waiting_.empty() && head_of_line_us_ &&
         now_us - waiting_[0].since_us >= *head_of_line_us_;
}

}  // namespace agora
