// The cell's state as bytes: a header (shape), then each column as its length (u64) and its bytes.
// Little-endian.
#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "cell.hpp"

namespace agora {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");
static_assert(std::has_unique_object_representations_v<Allocation> &&
                  std::has_unique_object_representations_v<RowState>,
              "no padding in them");

namespace {

struct Writer {
  static constexpr bool kReads = false;
  std::string bytes;

  template <class T, class Allocator>
  void operator()(std::vector<T, Allocator>& column) {
    const uint64_t length = column.size();
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
    bytes.append(reinterpret_cast<const char*>(column.data()), length * sizeof(T));
  }
};

struct Reader {
  static constexpr bool kReads = true;
  std::span<const char> bytes;

  template <class T, class Allocator>
  void operator()(std::vector<T, Allocator>& column) {
    uint64_t length = 0;
    read(&length, sizeof length);
    if (length > bytes.size() / sizeof(T)) throw std::invalid_argument("checkpoint: truncated");
    column.resize(length);
    read(column.data(), length * sizeof(T));
  }

  void read(void* to, size_t size) {
    if (size > bytes.size()) throw std::invalid_argument("checkpoint: truncated");
    if (size) std::memcpy(to, bytes.data(), size);
    bytes = bytes.subspan(size);
  }
};

}  // namespace

void Cell::take_columns(const std::vector<int64_t>& used, const std::vector<int64_t>& changed) {
  if (used.size() != used_.size() || changed.size() != changed_.size())
    throw std::invalid_argument("checkpoint: columns do not fit together");
  used_.assign(used);
  for (size_t row = 0; row < changed.size(); ++row) changed_.set(row, changed[row]);
}

template <class Archive>
void Cell::archive(Archive& archive) {
  std::vector<int64_t> used, changed;  // in eight bytes each, however the cell keeps them
  if constexpr (!Archive::kReads) used = used_.all(), changed = changed_.all();
  archive(used);
  archive(rows_);
  archive(changed);
  if constexpr (Archive::kReads) take_columns(used, changed);
  archive(versions_);
  archive(placed_);
  archive(loaded_);
  slab_.archive(archive);
}

std::string Cell::checkpoint() {
  std::vector<uint64_t> shape{machines(), dimensions_, partitions()};
  // canonical: not how much room there was
  while (!placed_.empty() && placed_.back() == 0) placed_.pop_back();
  Writer writer;
  writer.bytes.reserve(machines() * (dimensions_ * 8 + 24) + placed_.size() * 8 +
                       slab_.slots() * (28 + dimensions_ * 8) + 256);
  writer(shape);
  archive(writer);
  return std::move(writer.bytes);
}

void Cell::restore(std::span<const char> bytes) {
  const std::vector<uint64_t> shape{machines(), dimensions_, partitions()};
  const HugePageVector<RowState> fresh = rows_;
  Reader reader{bytes};
  std::vector<uint64_t> found;
  reader(found);
  if (found != shape)
    throw std::invalid_argument(
        "checkpoint: of a cell with another number of machines, dimensions or partitions");
  archive(reader);
  for (KeptSnapshot& kept : snapshots_) kept = {};
  const bool sized =
      rows_.size() == fresh.size() && versions_.size() == touched_.size() && loaded_.size() == 1;
  // up or down
  const auto same_home = [](const RowState& a, const RowState& b) {
    return (a.partition_and_up | 1) == (b.partition_and_up | 1);
  };
  if (!sized || !std::equal(rows_.begin(), rows_.end(), fresh.begin(), same_home) ||
      !slab_.settle() || !reader.bytes.empty()) {
    throw std::invalid_argument("checkpoint: columns do not fit together");
  }
  down_ = static_cast<size_t>(
      std::count_if(rows_.begin(), rows_.end(), [](const RowState& row) { return !row.up(); }));
  const auto known = static_cast<int64_t>(placed_.size() * 64);
  for (uint32_t slot = 0; slot < slab_.slots(); ++slot) {
    const Allocation& record = slab_[slot];
    if (record.machine < 0 || static_cast<size_t>(record.machine) >= rows_.size() ||
        record.task < 0 || record.task >= kMaxTasks || (record.live && record.task >= known)) {
      throw std::invalid_argument("checkpoint: an allocation out of range");
    }
  }
}

}  // namespace agora
