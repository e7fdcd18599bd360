// The capacities of a changing network that were lowered to a level (graph/capacity_level.hpp),
// with their original values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "network.hpp"

namespace flowsolver {

class LoweredCapacities {
 public:
  bool any() const { return count_ > 0; }
  std::int64_t level() const { return level_; }
  std::int64_t count() const { return count_; }

  // Starts a new level. No arc is lowered to it yet.
  void begin(std::int64_t level) {
    level_ = level;
    count_ = 0;
    given_.clear();
    arcs_.clear();
  }

  // The capacity to use for an arc whose given capacity is `capacity`.
  std::int64_t lower(ArcId arc, std::int64_t capacity) {
    if (capacity <= level_) {
      forget(arc);
      return capacity;
    }
    if (arc >= given_.size()) given_.resize(arc + std::size_t{1} + arc / 4, 0);
    if (given_[arc] == 0) {
      ++count_;
      arcs_.push_back(arc);
    }
    given_[arc] = capacity;
    return level_;
  }
  void forget(ArcId arc) {
    if (arc >= given_.size() || given_[arc] == 0) return;
    given_[arc] = 0;
    --count_;
    if (arcs_.size() > 2 * static_cast<std::size_t>(count_) + kFew) compact();
  }

  // The given capacity. `capacity`: the one in use.
  std::int64_t given(ArcId arc, std::int64_t capacity) const {
    return arc < given_.size() && given_[arc] > 0 ? given_[arc] : capacity;
  }
  template <class Holds>
  bool any_of(Holds holds) const {
    return std::any_of(arcs_.begin(), arcs_.end(),
                       [&](ArcId arc) { return given_[arc] > 0 && holds(arc); });
  }

 private:
  static constexpr std::size_t kFew = 64;

  void compact() {
    std::sort(arcs_.begin(), arcs_.end());
    arcs_.erase(std::unique(arcs_.begin(), arcs_.end()), arcs_.end());
    std::erase_if(arcs_, [this](ArcId arc) { return given_[arc] == 0; });
  }

  // the maximum: nothing is lowered
  std::int64_t level_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t count_ = 0;
  std::vector<std::int64_t> given_;  // per arc id; 0: not lowered
  std::vector<ArcId> arcs_;          // lowered arcs, and some that no longer are; may repeat
};

}  // namespace flowsolver
