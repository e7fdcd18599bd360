// Which partition quality-first picks the next slot from: that with the highest mean over its idle
// slots, as the view stands after the picks before it; ties go to the lowest number.
//
// A tournament tree over the means: O(P) to begin a round, O(log P) per pick. Means are single
// divisions of IEEE doubles, the same on any machine.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "idle_slots.hpp"

namespace agora::slots {

class BestPartition {
 public:
  explicit BestPartition(size_t partitions)
      : partitions_(partitions),
        leaves_(std::bit_ceil(partitions)),
        mean_(leaves_, kEmpty),
        best_(2 * leaves_) {}

  void begin(const IdleSlots& view) {
    for (size_t p = 0; p < partitions_; ++p) mean_[p] = mean(view, p);
    for (size_t p = 0; p < leaves_; ++p) best_[leaves_ + p] = static_cast<uint32_t>(p);
    for (size_t node = leaves_; node-- > 1;) play(node);
  }

  size_t best() const { return best_[1]; }
  // To be told of every change of the best partition.
  void best_has_changed(const IdleSlots& view) {
    const size_t p = best_[1];
    mean_[p] = mean(view, p);
    for (size_t node = (leaves_ + p) / 2; node >= 1; node /= 2) play(node);
  }

 private:
  static constexpr double kEmpty = -1e300;

  double mean(const IdleSlots& view, size_t p) const {
    const PartitionSum& sum = view.partition(p);
    if (sum.count == 0) return kEmpty;
    return static_cast<double>(sum.quality) / static_cast<double>(sum.count);
  }
  void play(size_t node) {
    const uint32_t left = best_[2 * node], right = best_[2 * node + 1];
    best_[node] = mean_[right] > mean_[left] ? right : left;
  }

  size_t partitions_, leaves_;
  std::vector<double> mean_;
  std::vector<uint32_t> best_;  // of the subtree; the root is 1
};

}  // namespace agora::slots
