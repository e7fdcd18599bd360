// The ids of one kind (nodes, or arcs) of a network that changes from round to round: which are
// handed out next, and when those of what was removed come back.
//
// An id that was live at the last kOptimal round stays reserved until the next kOptimal one, so
// that what is read of that optimum by id means one thing. Any other id comes back after the round
// in which it was removed, whatever its status: rounds that stay infeasible need no more ids than
// were live at the last optimum, live at any time since, and removed in one round. Within a round
// no id changes its meaning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace flowsolver {

class IdPool {
 public:
  using Id = std::uint32_t;

  // Ids 0 .. ids - 1 are live; there has been no optimum.
  explicit IdPool(std::size_t ids) {
    states_.reserve(ids + ids / 4);
    states_.assign(ids, State::kSince);
  }

  // Ids handed out so far are below this.
  std::size_t size() const { return states_.size(); }
  // The next one to be handed out; size() when none has come back.
  Id next() const { return free_.empty() ? static_cast<Id>(size()) : free_.back().id; }
  // Hands out `next`: the last one removed of those that have come back, or a new one.
  void take() {
    if (free_.empty()) {
      states_.push_back(State::kSince);
      since_optimum_.push_back(static_cast<Id>(size() - 1));
      return;
    }
    const Id id = free_.back().id;
    free_.pop_back();
    free_at_optimum_ = std::min(free_at_optimum_, free_.size());
    if (states_[id] != State::kOfOptimum) return;
    states_[id] = State::kSince;
    since_optimum_.push_back(id);
  }
  void remove(Id id) { removed_.push_back({id, removals_++}); }

  void end_round(bool optimal) {
    for (const Removed& each : removed_) {
      const bool comes_back = optimal || states_[each.id] == State::kSince;
      (comes_back ? free_ : reserved_).push_back(each);
    }
    removed_.clear();
    if (optimal) end_optimal_round();
  }

 private:
  // Handed out before the last optimum, or since.
  enum class State : std::uint8_t { kOfOptimum, kSince };
  struct Removed {
    Id id;
    std::uint32_t number;  // of removals before it, since the last optimum
  };

  // How the rounds before have ended makes no difference to the order.
  void end_optimal_round() {
    free_.insert(free_.end(), reserved_.begin(), reserved_.end());
    reserved_.clear();
    const auto earlier = [](const Removed& a, const Removed& b) { return a.number < b.number; };
    const auto since = free_.begin() + static_cast<std::ptrdiff_t>(free_at_optimum_);
    if (!std::is_sorted(since, free_.end(), earlier)) std::sort(since, free_.end(), earlier);
    free_at_optimum_ = free_.size();
    if (had_optimum_) {
      for (Id id : since_optimum_) states_[id] = State::kOfOptimum;
    } else {
      std::fill(states_.begin(), states_.end(), State::kOfOptimum);
    }
    had_optimum_ = true;
    since_optimum_.clear();
    removals_ = 0;
  }

  std::vector<State> states_;
  std::vector<Id> since_optimum_;  // the ids of state kSince, once there was an optimum
  bool had_optimum_ = false;
  std::vector<Removed> free_;        // the last is handed out first
  std::size_t free_at_optimum_ = 0;  // of those, how many had come back by then
  std::vector<Removed> removed_;     // in this round
  std::vector<Removed> reserved_;    // in earlier ones, until the next optimum
  std::uint32_t removals_ = 0;
};

}  // namespace flowsolver
