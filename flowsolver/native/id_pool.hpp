// The ids of one kind (nodes or arcs) of a changing network: which id is handed out next, and when
// the ids of removed nodes or arcs are reused.
//
// An id that was live at the last kOptimal round stays reserved until the next kOptimal one, so
// that everything read about that optimum by id stays valid. Any other id is free after the round
// in which it was removed, whatever the round's status. So rounds that stay infeasible need no more
// ids than were live at the last optimum, live at any time since, and removed in one round. Within
// a round no id changes its meaning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace flowsolver {

class IdPool {
 public:
  using Id = std::uint32_t;

  // Ids 0 .. ids - 1 are live; there was no optimum yet.
  explicit IdPool(std::size_t ids) {
    states_.reserve(ids + ids / 4);
    states_.assign(ids, State::kSince);
  }

  // All ids handed out so far are below this.
  std::size_t size() const { return states_.size(); }
  // The next id to hand out; size() if none is free.
  Id next() const { return free_.empty() ? static_cast<Id>(size()) : free_.back().id; }
  // Hands out `next`: the last removed of the free ids, or a new one.
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
      const bool becomes_free = optimal || states_[each.id] == State::kSince;
      (becomes_free ? free_ : reserved_).push_back(each);
    }
    removed_.clear();
    if (optimal) end_optimal_round();
  }

 private:
  // Whether the id was handed out before the last optimum or since.
  enum class State : std::uint8_t { kOfOptimum, kSince };
  struct Removed {
    Id id;
    std::uint32_t number;  // number of removals before this one since the last optimum
  };

  // Orders the free ids by removal, so that how earlier rounds ended does not affect the order.
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
  std::vector<Id> since_optimum_;  // ids in state kSince, once there was an optimum
  bool had_optimum_ = false;
  std::vector<Removed> free_;        // the last one is handed out first
  std::size_t free_at_optimum_ = 0;  // number of free ids at the last optimum
  std::vector<Removed> removed_;     // in this round
  std::vector<Removed> reserved_;    // removed in earlier rounds, reserved until the next optimum
  std::uint32_t removals_ = 0;
};

}  // namespace flowsolver
