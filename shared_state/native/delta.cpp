// Deltas: the rows of a partition that changed after a version. There is no change log: the rows'
// versions are scanned. Of a narrow cell a delta is a snapshot of the partition and the bits of the
// rows that changed.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <stdexcept>

#include "cell.hpp"
#include "transaction.hpp"

namespace agora {

namespace {

constexpr int64_t kNone = -1;

// Calls visit(row) for each row whose bit is set, ascending.
template <typename Visit>
void for_each_bit(const std::vector<uint64_t>& bits, Visit visit) {
  for (size_t word = 0; word < bits.size(); ++word)
    for (uint64_t rest = bits[word]; rest != 0; rest &= rest - 1)
      visit(word * 64 + static_cast<size_t>(std::countr_zero(rest)));
}

template <class Row>
AnyColumn rows_of(const std::vector<uint64_t>& bits, size_t count) {
  auto [column, row] = SharedColumn<Row>::make(count);
  for_each_bit(bits, [to = row](size_t changed) mutable { *to++ = static_cast<Row>(changed); });
  return column;
}

}  // namespace

void PartitionDelta::complete() const {
  if (snapshot == nullptr || up.size() > 0) return;
  const size_t rows = snapshot->used.size();
  row = rows <= 0x10000 ? rows_of<uint16_t>(changed, changed_rows)
                        : rows_of<uint32_t>(changed, changed_rows);
  auto [table, to_used] = SharedTable<int8_t>::make(changed_rows, 1);
  auto [column, to_up] = SharedColumn<bool>::make(changed_rows);
  const std::vector<uint64_t>& down = snapshot->down;
  for_each_bit(changed, [&, used_at = to_used, up_at = to_up](size_t at) mutable {
    *used_at++ = snapshot->used[at];
    *up_at++ = down.empty() || (down[at / 64] >> (at % 64) & 1) == 0;
  });
  used = table;
  up = column;
}

void Cell::check_version(size_t partition, int64_t from) const {
  if (partition >= partitions())
    throw std::invalid_argument("partition: expected one of the cell's");
  if (from < 0 || from > versions_[partition])
    throw std::invalid_argument("version: expected 0 to the partition's version");
}

std::vector<uint64_t> Cell::changed_rows(size_t partition, int64_t from) const {
  check_version(partition, from);
  const auto first = static_cast<size_t>(offsets_[partition]),
             rows = static_cast<size_t>(offsets_[partition + 1]) - first;
  std::vector<uint64_t> bits((rows + 63) / 64, ~uint64_t{0});
  for (size_t word = 0; from > 0 && word < bits.size(); ++word)
    bits[word] = from < versions_[partition] ? changed_.changed_after(from, first + word * 64) : 0;
  if (rows % 64 != 0) bits.back() &= (uint64_t{1} << (rows % 64)) - 1;
  return bits;
}

std::shared_ptr<const PartitionSnapshot> Cell::snapshot(size_t partition) {
  auto& [version, state] = snapshots_[partition];
  if (state != nullptr && version == versions_[partition]) return state;
  if (state.use_count() != 1) state = std::make_shared<PartitionSnapshot>();
  version = kNone;  // of no version, should what follows throw
  const auto first = static_cast<size_t>(offsets_[partition]),
             end = static_cast<size_t>(offsets_[partition + 1]);
  state->used.assign(used_.narrow() + first, used_.narrow() + end);
  state->down.clear();
  if (down_ > 0) state->down.resize((end - first + 63) / 64);
  for (size_t row = first; row < end && down_ > 0; ++row)
    state->down[(row - first) / 64] |= uint64_t{!rows_[row].up()} << ((row - first) % 64);
  version = versions_[partition];
  return state;
}

DeltaScan Cell::scan(size_t partition, int64_t from) {
  check_version(partition, from);
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
