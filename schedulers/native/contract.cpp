#include "contract.hpp"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "shared_state/native/random.hpp"

namespace agora {

void check_lengths(const UnplaceableUnits& units) {
  for (const size_t length : {units.gang_us.size(), units.gang.size(), units.gang_size.size()})
    if (length != units.task_us.size())
      throw std::invalid_argument("unplaceable units: expected columns of one length");
}

bool UnplaceableUnits::among(std::span<const int64_t> task, int64_t now_us,
                             std::vector<uint8_t>& never) const {
  never.clear();
  bool alone = false, whole = false;
  for (const int64_t id : task) {
    const auto row = static_cast<size_t>(id);
    if (row >= task_us.size())
      throw std::invalid_argument("task " + std::to_string(id) + ": there is no such task");
    alone = alone || task_us[row] <= now_us;
    whole = whole || (gang_us[row] <= now_us && gang[row] >= 0);
  }
  if (!alone && !whole) return false;

  const auto row = [&](size_t i) { return static_cast<size_t>(task[i]); };
  never.resize(task.size());
  std::unordered_map<int64_t, int64_t> members;  // of each gang, those among these
  for (size_t i = 0; i < task.size(); ++i) {
    never[i] = task_us[row(i)] <= now_us;
    if (gang_us[row(i)] <= now_us && gang[row(i)] >= 0) ++members[gang[row(i)]];
  }
  std::unordered_set<int64_t> torn;
  for (size_t i = 0; i < task.size(); ++i) {
    const auto gathered = members.find(gang[row(i)]);
    if (gathered != members.end() && gang_us[row(i)] <= now_us &&
        gathered->second == gang_size[row(i)])
      never[i] = 1;
    if (never[i] && gang[row(i)] >= 0) torn.insert(gang[row(i)]);
  }
  for (size_t i = 0; i < task.size(); ++i)
    if (torn.contains(gang[row(i)])) never[i] = 1;
  if (std::find(never.begin(), never.end(), uint8_t{1}) != never.end()) return true;
  never.clear();
  return false;
}

PendingTasks::PendingTasks(size_t tasks, std::span<const int64_t> gang)
    : state_(tasks, State::kAbsent) {
  if (gang.empty()) return;
  if (gang.size() != tasks) throw std::invalid_argument("gang: expected one of each task");
  for (const int64_t each : gang)
    if (each >= 0) gangs_.push_back(each);
  std::sort(gangs_.begin(), gangs_.end());
  gangs_.erase(std::unique(gangs_.begin(), gangs_.end()), gangs_.end());
  in_gang_.resize(gangs_.size());
  gang_of_.reserve(tasks);
  for (const int64_t each : gang) gang_of_.push_back(place_of(each));
}

bool PendingTasks::take_round(std::span<const int64_t> offered, std::span<const int64_t> claimed,
                              std::span<const int64_t> pending) {
  for (const int64_t task : offered) set(task, State::kOffered);
  const bool each_once = name_each_once(offered, claimed, pending);
  for (const auto& named : {offered, claimed, pending})
    for (const int64_t task : named)
      if (state_of(task) != State::kAbsent) set(task, State::kWaiting);
  if (each_once)
    for (const int64_t task : claimed) set(task, State::kAbsent);
  return each_once;
}

bool PendingTasks::name_each_once(std::span<const int64_t> offered,
                                  std::span<const int64_t> claimed,
                                  std::span<const int64_t> pending) {
  size_t named = 0;  // of those offered
  for (const int64_t task : claimed) {
    State& state = state_of(task);
    if (state == State::kAbsent || state == State::kNamed) return false;
    if (state == State::kOffered) ++named;
    state = State::kNamed;
  }
  for (const int64_t task : pending) {
    State& state = state_of(task);
    if (state != State::kOffered) return false;
    ++named;
    state = State::kNamed;
  }
  return named == offered.size();
}

void PendingTasks::rejected(std::span<const int64_t> task) {
  for (const int64_t each : task)
    if (state_of(each) == State::kAbsent) set(each, State::kWaiting);
}

void PendingTasks::adopted(std::span<const int64_t> task) {
  for (const int64_t each : task) set(each, State::kAbsent);
}

std::vector<int64_t> PendingTasks::all() const {
  std::vector<int64_t> waiting;
  waiting.reserve(count_);
  for (size_t task = 0; task < state_.size(); ++task)
    if (state_[task] != State::kAbsent) waiting.push_back(static_cast<int64_t>(task));
  assert(waiting.size() == count_);
  return waiting;
}

std::vector<int64_t> PendingTasks::in_gang(std::span<const int64_t> gang) const {
  std::vector<int64_t> waiting;
  waiting.reserve(gang.size());
  for (const int64_t each : gang) {
    const int64_t place = place_of(each);
    waiting.push_back(place < 0 ? 0 : in_gang_[static_cast<size_t>(place)]);
  }
  return waiting;
}

PendingTasks::State& PendingTasks::state_of(int64_t task) {
  if (task < 0 || static_cast<size_t>(task) >= state_.size())
    throw std::invalid_argument("there is no task " + std::to_string(task));
  return state_[static_cast<size_t>(task)];
}

void PendingTasks::set(int64_t task, State to) {
  State& state = state_of(task);
  const bool waited = state != State::kAbsent, waits = to != State::kAbsent;
  state = to;
  if (waited == waits) return;
  waits ? ++count_ : --count_;
  const int64_t place = gang_of_.empty() ? -1 : gang_of_[static_cast<size_t>(task)];
  if (place >= 0) in_gang_[static_cast<size_t>(place)] += waits ? 1 : -1;
}

int64_t PendingTasks::place_of(int64_t gang) const {
  const auto found = std::lower_bound(gangs_.begin(), gangs_.end(), gang);
  return found == gangs_.end() || *found != gang ? -1 : found - gangs_.begin();
}

DifferingClaim first_differing_claim(std::span<const int64_t> task,
                                     std::span<const int64_t> request,
                                     std::span<const int64_t> gang,
                                     std::span<const int64_t> all_request,
                                     std::span<const int64_t> all_gang, size_t dimensions) {
  const auto row_of = [&](int64_t id) {
    if (id < 0 || static_cast<size_t>(id) >= all_gang.size())
      throw std::invalid_argument("there is no task " + std::to_string(id));
    return static_cast<size_t>(id);
  };
  for (size_t i = 0; i < task.size(); ++i) {
    const int64_t* const asked = all_request.data() + row_of(task[i]) * dimensions;
    if (!std::equal(asked, asked + dimensions, request.data() + i * dimensions))
      return {static_cast<int64_t>(i), true};
  }
  for (size_t i = 0; i < task.size(); ++i)
    if (gang[i] != all_gang[row_of(task[i])]) return {static_cast<int64_t>(i), false};
  return {};
}

namespace {

int64_t narrowed(Int128 value) {
  if (value < INT64_MIN || value > INT64_MAX)
    throw std::overflow_error("decision time: expected less than 2^63 us");
  return static_cast<int64_t>(value);
}

// The quotient by a positive divisor, rounded up.
Int128 divided_up(Int128 value, Int128 by) {
  const Int128 quotient = value / by;
  return value % by > 0 ? quotient + 1 : quotient;
}

// Of numbers that are not negative: below 2^126.
Int128 product(int64_t one, int64_t other) {
  if (one < 0 || other < 0)
    throw std::invalid_argument("decision time: expected counts of 0 or more");
  return Int128{one} * other;
}

Int128 to_us(Int128 ns) { return divided_up(ns, 1000); }

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

}  // namespace

int64_t ModelledTime::duration_us(int64_t tasks, int64_t partitions_scanned,
                                  int64_t priced_machines) const {
  Int128 ns = product(task_ns, tasks) + product(partition_ns, partitions_scanned);
  narrowed(to_us(ns));  // so that the sum of all three cannot overflow
  ns += product(price_machine_ns, priced_machines);
  return narrowed(job_us + to_us(ns));
}

std::optional<int64_t> ModelledTime::tasks_within(int64_t window_us,
                                                  int64_t partitions_per_task) const {
  const Int128 per_task_ns = task_ns + Int128{partition_ns} * partitions_per_task;
  if (per_task_ns <= 0) return std::nullopt;
  const Int128 window_ns = (Int128{window_us} - job_us) * 1000;
  return narrowed(std::max<Int128>(1, divided_up(window_ns, per_task_ns)));
}

int64_t ModelledTimeByClass::duration_us(int64_t batch_tasks, int64_t service_tasks,
                                         int64_t partitions_scanned,
                                         int64_t priced_machines) const {
  const Int128 tasks = Int128{batch_tasks} + service_tasks;
  const auto of_service =
      static_cast<int64_t>(Int128{partitions_scanned} * service_tasks / std::max<Int128>(1, tasks));
  Int128 total_us = 0;
  if (service_tasks > 0)
    total_us +=
        service.duration_us(service_tasks, of_service, batch_tasks > 0 ? 0 : priced_machines);
  if (batch_tasks > 0 || service_tasks == 0)
    total_us += batch.duration_us(batch_tasks, partitions_scanned - of_service, priced_machines);
  return narrowed(total_us);
}

int64_t CountedTime::duration_us(int64_t operations) const {
  return narrowed(to_us(Int128{ns_per_operation} * operations));
}

int64_t MeasuredTime::duration_us(int64_t elapsed_ns) { return narrowed(to_us(elapsed_ns)); }

int64_t duration_us(const DecisionClock& clock, const DecisionWork& work) {
  const Overloaded duration{
      [&](const ModelledTime& times) {
        return times.duration_us(work.tasks, work.partitions_scanned, work.priced_machines);
      },
      [&](const ModelledTimeByClass& times) {
        return times.duration_us(work.tasks - work.service_tasks, work.service_tasks,
                                 work.partitions_scanned, work.priced_machines);
      },
      [&](const CountedTime& times) { return times.duration_us(work.operations); },
      [&](const MeasuredTime&) { return MeasuredTime::duration_us(work.elapsed_ns); }};
  return std::visit(duration, clock);
}

std::optional<int64_t> tasks_within(const DecisionClock& clock, int64_t window_us,
                                    int64_t partitions_per_task) {
  const auto* modelled = std::get_if<ModelledTime>(&clock);
  return modelled ? modelled->tasks_within(window_us, partitions_per_task) : std::nullopt;
}

}  // namespace agora
