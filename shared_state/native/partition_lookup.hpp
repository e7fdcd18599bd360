// Which partition a row is in, from a table small enough for the cache.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace agora {

// No partition is smaller than 2^stretch_bits_ rows, but for empty ones, so the rows of such a
// stretch are of one partition, or of two.
class PartitionLookup {
 public:
  PartitionLookup() = default;
  // offsets: P+1 ascending row numbers from 0 on.
  explicit PartitionLookup(std::vector<int64_t> offsets) : offsets_(std::move(offsets)) {
    int64_t smallest = std::max<int64_t>(offsets_.back(), 1);
    for (size_t p = 0; p + 1 < offsets_.size(); ++p) {
      const int64_t size = offsets_[p + 1] - offsets_[p];
      if (size > 0) smallest = std::min(smallest, size);
    }
    stretch_bits_ = std::bit_width(static_cast<uint64_t>(smallest)) - 1;
    size_t p = 0;
    for (int64_t row = 0; row < offsets_.back(); row += int64_t{1} << stretch_bits_) {
      while (row >= offsets_[p + 1]) ++p;
      partition_at_.push_back(static_cast<uint32_t>(p));
    }
  }

  // Requires: there is such a row.
  size_t operator()(size_t row) const {
    size_t p = partition_at_[row >> stretch_bits_];
    while (static_cast<int64_t>(row) >= offsets_[p + 1]) ++p;
    return p;
  }

 private:
  std::vector<int64_t> offsets_;
  int stretch_bits_ = 0;
  std::vector<uint32_t> partition_at_;  // by stretch: that of its first row
};

}  // namespace agora
