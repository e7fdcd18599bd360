// Which partition a row is in, from a table small enough for the cache.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace agora {

// No partition is smaller than 2^stretch_bits_ rows, but for empty ones, so the rows of such a
// stretch are of one partition, or of two.
class PartitionLookup {
 public:
  PartitionLookup() = default;
  // offsets: P+1 ascending row numbers from 0 on.
  explicit PartitionLookup(const std::vector<int64_t>& offsets) {
    int64_t smallest = std::max<int64_t>(offsets.back(), 1);
    for (size_t p = 0; p + 1 < offsets.size(); ++p) {
      const int64_t size = offsets[p + 1] - offsets[p];
      if (size > 0) smallest = std::min(smallest, size);
    }
    stretch_bits_ = std::bit_width(static_cast<uint64_t>(smallest)) - 1;
    size_t p = 0;
    for (int64_t row = 0; row < offsets.back(); row += int64_t{1} << stretch_bits_) {
      while (row >= offsets[p + 1]) ++p;
      const int64_t bound = offsets[p + 1];
      size_t next = p + 1;  // that has rows
      while (next + 2 < offsets.size() && offsets[next + 1] == bound) ++next;
      stretches_.push_back({bound, {static_cast<uint32_t>(p), static_cast<uint32_t>(next)}});
    }
  }

  // Requires: there is such a row.
  size_t operator()(size_t row) const {
    const Stretch& of = stretches_[row >> stretch_bits_];
    return of.partition[static_cast<int64_t>(row) >= of.bound];  // no branch: rows are in any order
  }

 private:
  struct Stretch {
    int64_t bound;  // the first row after those of its first partition
    std::array<uint32_t, 2> partition;
  };

  int stretch_bits_ = 0;
  std::vector<Stretch> stretches_;
};

}  // namespace agora
