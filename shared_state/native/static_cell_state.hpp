// What never changes about a cell's machines: limits, scores, partitions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "huge_pages.hpp"
#include "weighted_index.hpp"

namespace agora {

// Shared by all views of a cell.
class StaticCellState {
 public:
  // limit: [M, R], what claims may fill; score: [M], the weight of a row (below 1 counts as 1);
  // offsets: [P+1].
  StaticCellState(size_t dimensions, std::vector<int64_t> limit, const std::vector<int64_t>& score,
                  std::vector<int64_t> offsets);

  size_t machines() const { return index.rows(); }
  size_t dimensions() const { return dimensions_; }
  size_t partitions() const { return index.partitions(); }
  // Do rows differ in score? If not, no partition is better than another.
  bool scored() const { return scored_; }
  // Do all rows have the same limits?
  bool same_limits() const { return same_limits_; }
  // The limits in a byte each, [M]; null if there are several dimensions, or a byte does not hold
  // some limit.
  const int8_t* limit_bytes() const { return limit_bytes_.empty() ? nullptr : limit_bytes_.data(); }
  // Would it fit some machine of the cell if that were empty?
  bool fits_some_machine(const int64_t* request) const;
  // The sum over dimensions of free as a share of the cell's largest machine, in units of 2^-56:
  // room to compare rows by. What is overdrawn has no room.
  int64_t normalised(const int64_t* free) const {
    int64_t sum = 0;
    for (size_t r = 0; r < dimensions_; ++r)
      sum +=
          static_cast<int64_t>(static_cast<Int128>(std::max<int64_t>(free[r], 0)) * scale_[r] >> 4);
    return sum;
  }
  // normalised() of a machine as large as the largest in every dimension, when it is empty.
  int64_t most_room() const { return most_room_; }

  const IndexLayout index;
  const std::vector<int64_t> limit;

 private:
  size_t dimensions_;
  bool scored_;
  bool same_limits_;
  HugePageVector<int8_t> limit_bytes_;
  int64_t most_room_ = 0;
  // [k, R]: the limits that no other machine's limits reach in every dimension
  std::vector<int64_t> largest_;
  std::vector<int64_t> scale_;  // [R]: 2^60 / the largest limit (0 where no machine has any)
};

}  // namespace agora
