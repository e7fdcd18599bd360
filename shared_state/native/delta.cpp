// Deltas: the rows of a partition that changed after a version. There is no change log: the rows'
// versions are scanned.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <stdexcept>

#include "cell.hpp"

namespace agora {

DeltaScan Cell::scan(size_t partition, int64_t from) {
  if (partition >= partitions())
    throw std::invalid_argument("partition: expected one of the cell's");
  if (from < 0 || from > versions_[partition])
    throw std::invalid_argument("version: expected 0 to the partition's version");
  const int64_t first = offsets_[partition];
  const auto rows = static_cast<uint32_t>(offsets_[partition + 1] - first);
  scanned_.resize(rows);
  size_t count = 0;
  if (from == 0) {
    for (uint32_t row = 0; row < rows; ++row) scanned_[row] = row;
    count = rows;
  } else if (from < versions_[partition]) {
    uint32_t* out = scanned_.data();
    for (uint32_t row = 0; row < rows; row += 64) {
      uint64_t changed = changed_.changed_after(from, static_cast<size_t>(first + row));
      if (rows - row < 64) changed &= (uint64_t{1} << (rows - row)) - 1;
      for (; changed != 0; changed &= changed - 1)
        out[count++] = row + static_cast<uint32_t>(std::countr_zero(changed));
    }
  }
  int64_t largest = INT8_MAX;
  if (!used_.is_narrow()) {
    for (size_t i = 0; i < count; ++i) {
      const int64_t* used =
          used_.wide().data() + static_cast<size_t>(first + scanned_[i]) * dimensions_;
      for (size_t r = 0; r < dimensions_; ++r) largest = std::max(largest, used[r]);
    }
  }
  return {first, rows, count, largest};
}

template <class Row>
void Cell::write_rows(const DeltaScan& scan, Row* row) const {
  for (size_t i = 0; i < scan.count; ++i) row[i] = static_cast<Row>(scanned_[i]);
}

template <class Used>
void Cell::write_used(const DeltaScan& scan, Used* used) const {
  if (used_.is_narrow()) {
    const int8_t* from = used_.narrow() + scan.first_row;
    for (size_t i = 0; i < scan.count; ++i) used[i] = from[scanned_[i]];
    return;
  }
  for (size_t i = 0; i < scan.count; ++i) {
    const int64_t* from =
        used_.wide().data() + static_cast<size_t>(scan.first_row + scanned_[i]) * dimensions_;
    for (size_t r = 0; r < dimensions_; ++r) *used++ = static_cast<Used>(from[r]);
  }
}

void Cell::write_state(const DeltaScan& scan, bool* up, uint32_t* seqnum) const {
  if (down_ == 0) std::fill_n(up, scan.count, true);
  for (size_t i = 0; down_ > 0 && i < scan.count; ++i)
    up[i] = rows_[static_cast<size_t>(scan.first_row + scanned_[i])].up();
  if (!seqnum) return;
  for (size_t i = 0; i < scan.count; ++i)
    seqnum[i] = rows_[static_cast<size_t>(scan.first_row + scanned_[i])].seqnum;
}

template void Cell::write_rows(const DeltaScan&, uint16_t*) const;
template void Cell::write_rows(const DeltaScan&, uint32_t*) const;
template void Cell::write_used(const DeltaScan&, int8_t*) const;
template void Cell::write_used(const DeltaScan&, int16_t*) const;
template void Cell::write_used(const DeltaScan&, int32_t*) const;
template void Cell::write_used(const DeltaScan&, int64_t*) const;

}  // namespace agora
