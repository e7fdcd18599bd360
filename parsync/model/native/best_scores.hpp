// The best scores that so many slots of a cell can have: the sum of its highest ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "slot_table.hpp"

namespace agora::slots {

class BestScores {
 public:
  explicit BestScores(const SlotTable& table) : descending_(table.slots()) {
    std::vector<uint32_t> slots_of_score(size_t{1} << 16);
    for (const SlotValue& value : table.value) ++slots_of_score[value.score];
    auto next = descending_.begin();
    for (size_t score = slots_of_score.size(); score-- > 0;)
      for (uint32_t i = 0; i < slots_of_score[score]; ++i) *next++ = static_cast<uint16_t>(score);
  }

  // In steps (SlotTable). Requires: 0 <= slots <= S. Complexity: O(change since the last call).
  int64_t sum(int64_t slots) {
    sum_ += slots > slots_ ? between(slots_, slots) : -between(slots, slots_);
    slots_ = slots;
    return sum_;
  }

 private:
  int64_t between(int64_t first, int64_t end) const {
    return std::accumulate(descending_.begin() + first, descending_.begin() + end, int64_t{0});
  }

  std::vector<uint16_t> descending_;  // [S]
  int64_t slots_ = 0;
  int64_t sum_ = 0;  // of the first slots_
};

}  // namespace agora::slots
