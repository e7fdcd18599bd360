#include "plan_check.hpp"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <string>

namespace agora {

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

}  // namespace agora
