#include "cell.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace agora {

namespace {

bool fit_in_bytes(std::span<const int64_t> limit) {
  return std::all_of(limit.begin(), limit.end(),
                     [](int64_t l) { return l <= UsedAmounts::kHighestNarrow; });
}

bool all_alike(std::span<const int64_t> limit, size_t dimensions) {
  return limit.size() >= dimensions &&
         std::equal(limit.begin() + static_cast<std::ptrdiff_t>(dimensions), limit.end(),
                    limit.begin());
}

[[noreturn]] void refuse(const char* field, size_t row, const char* expected) {
  throw std::invalid_argument(std::string(field) + "[" + std::to_string(row) + "]: expected " +
                              expected);
}

}  // namespace

void AllocationSlab::reserve(size_t count) {
  if (free_.size() >= count) return;
  const size_t needed = records_.size() + (count - free_.size());
  if (needed >= kNoSlot) throw std::invalid_argument("more than 2^32 allocations");
  if (needed <= records_.capacity()) return;
  const size_t capacity = std::max(needed, records_.capacity() * 2);
  requests_.reserve(capacity * dimensions_);
  free_.reserve(capacity);
  records_.reserve(capacity);
}

bool AllocationSlab::settle() {
  if (records_.size() >= kNoSlot || requests_.size() != records_.size() * dimensions_) return false;
  free_.reserve(records_.size());
  std::vector<bool> spare(records_.size());
  for (const uint32_t slot : free_) {
    if (slot >= records_.size() || records_[slot].live || spare[slot]) return false;
    spare[slot] = true;
  }
  live_ = 0;
  for (const Allocation& record : records_) live_ += record.live != 0;
  return true;
}

Cell::Cell(size_t machines, size_t dimensions, std::span<const int64_t> limit,
           std::span<const int64_t> offsets, std::span<const int32_t> priority)
    : dimensions_(dimensions),
      limit_(limit.begin(), limit.end()),
      limit_stride_(all_alike(limit, dimensions) ? 0 : dimensions),
      offsets_(offsets.begin(), offsets.end()),
      priority_(priority.begin(), priority.end()),
      used_(limit.size(), dimensions == 1 && fit_in_bytes(limit)),
      changed_(machines),
      slab_(dimensions) {
  if (dimensions < 1 || dimensions > kMaxDimensions)
    throw std::invalid_argument("dimensions: expected 1 to 8");
  if (machines < 1 || machines > 0x7fffffff)
    throw std::invalid_argument("machines: expected 1 to 2^31-1");
  if (limit.size() != machines * dimensions)
    throw std::invalid_argument("limit: expected [machines, dimensions]");
  for (size_t i = 0; i < limit.size(); ++i) {
    if (limit[i] < 0 || limit[i] > kMaxAmount)
      refuse("limit", i / dimensions, "amounts in 0..2^50");
  }
  if (offsets.size() < 2 || offsets.front() != 0 ||
      offsets.back() != static_cast<int64_t>(machines)) {
    throw std::invalid_argument("offsets: expected bounds from 0 to the number of machines");
  }
  if (offsets.size() - 1 > kMaxPartitions)
    throw std::invalid_argument("offsets: expected at most 2^24 partitions");
  rows_.resize(machines);
  for (size_t p = 0; p + 1 < offsets.size(); ++p) {
    if (offsets[p] >= offsets[p + 1]) refuse("offsets", p + 1, "ascending bounds");
    for (int64_t row = offsets[p]; row < offsets[p + 1]; ++row)
      rows_[static_cast<size_t>(row)].partition_and_up = static_cast<uint32_t>(p) << 8 | 1;
  }
  versions_.assign(offsets.size() - 1, 0);
  touched_.assign(offsets.size() - 1, 0);
  snapshots_.resize(offsets.size() - 1);
  slab_.reserve(machines);  // address space only: pages come with use
}

void Cell::touch(size_t row) {
  const uint32_t partition = rows_[row].partition();
  if (touched_[partition] != stamp_) {
    touched_[partition] = stamp_;
    ++versions_[partition];
  }
  changed_.set(row, versions_[partition]);
}

void Cell::make_room_for_task(int64_t task) {
  const size_t words = static_cast<size_t>(task + 64) >> 6;
  if (words > placed_.size()) placed_.resize(std::max(words, placed_.size() * 2));
}

void Cell::end_slot(uint32_t slot) {
  const auto row = static_cast<size_t>(slab_[slot].machine);
  const int64_t* request = slab_.request(slot);
  for (size_t r = 0; r < dimensions_; ++r) used_.add(row * dimensions_ + r, -request[r]);
  touch(row);
  slab_.end(slot);
}

void Cell::write_record(uint32_t slot, size_t at, const AllocationColumns& out) const {
  const Allocation& record = slab_[slot];
  out.task[at] = record.task;
  out.machine[at] = record.machine;
  out.allocation[at] = slab_.id_of(slot);
  out.owner[at] = record.owner;
  std::copy_n(slab_.request(slot), dimensions_, out.request + at * dimensions_);
  if (out.version)
    out.version[at] = versions_[rows_[static_cast<size_t>(record.machine)].partition()];
}

size_t Cell::release(std::span<const int64_t> ids, const int32_t* owner,
                     const AllocationColumns& out) {
  begin_change();
  size_t released = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint32_t slot = slab_.find_live(ids[i]);
    if (slot == AllocationSlab::kNoSlot || (owner && owner[i] != slab_[slot].owner)) continue;
    end_slot(slot);  // each partition moves once, so its version is final here
    write_record(slot, released++, out);
  }
  return released;
}

void Cell::load(size_t count, const int64_t* task, const int32_t* machine, const int64_t* request,
                const int32_t* owner, int64_t* ids) {
  std::vector<int64_t> tasks(task, task + count);
  std::sort(tasks.begin(), tasks.end());
  if (count) {
    if (tasks.front() < 0 || tasks.back() >= kMaxTasks)
      throw std::invalid_argument("task: expected ids in 0..2^32-1");
    make_room_for_task(tasks.back());
  }
  const auto twice = std::adjacent_find(tasks.begin(), tasks.end());
  if (twice != tasks.end())
    throw std::invalid_argument("task: " + std::to_string(*twice) + " is named twice");
  int64_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    if (machine[i] < 0 || static_cast<size_t>(machine[i]) >= machines())
      refuse("machine", i, "a machine of the cell");
    if (!rows_[static_cast<size_t>(machine[i])].up()) refuse("machine", i, "a machine that is up");
    if (owner[i] < 0) refuse("owner", i, "a number from 0");
    if (placed(task[i])) refuse("task", i, "a task that is not placed and has not run");
    for (size_t r = 0; r < dimensions_; ++r) {
      const int64_t amount = request[i * dimensions_ + r];
      if (amount < 0 || amount > kMaxAmount) refuse("request", i, "amounts in 0..2^50");
      if (__builtin_add_overflow(total, amount, &total)) refuse("request", i, "a sum below 2^63");
    }
  }
  // `used` of any row is bounded by the sum of all requests ever loaded plus the limits, so
  // bounding each keeps it from overflowing.
  if (total > (int64_t{1} << 61) - loaded_[0])
    throw std::invalid_argument("request: the sum of all loaded exceeds 2^61");
  slab_.reserve(count);
  loaded_[0] += total;
  begin_change();
  for (size_t i = 0; i < count; ++i) {
    const auto row = static_cast<size_t>(machine[i]);
    for (size_t r = 0; r < dimensions_; ++r)
      used_.add(row * dimensions_ + r, request[i * dimensions_ + r]);
    set_placed(task[i]);
    rows_[row].claimed_by(owner[i]);
    ++rows_[row].seqnum;
    touch(row);
    ids[i] = slab_.begin(task[i], machine[i], owner[i], request + i * dimensions_);
  }
}

size_t Cell::set_machines(size_t count, const int32_t* machine, const bool* up,
                          const AllocationColumns& out) {
  for (size_t i = 0; i < count; ++i) {
    if (machine[i] < 0 || static_cast<size_t>(machine[i]) >= machines())
      refuse("machine", i, "a machine of the cell");
  }
  std::vector<bool> downed(machines());
  begin_change();
  bool any_downed = false;
  for (size_t i = 0; i < count; ++i) {
    const auto row = static_cast<size_t>(machine[i]);
    if (rows_[row].up() == up[i]) continue;
    rows_[row].set_up(up[i]);
    up[i] ? --down_ : ++down_;
    touch(row);
    if (!up[i]) any_downed = downed[row] = true;
  }
  size_t lost = 0;
  for (uint32_t slot = 0; any_downed && slot < slab_.slots(); ++slot) {
    if (!slab_[slot].live || !downed[static_cast<size_t>(slab_[slot].machine)]) continue;
    end_slot(slot);
    clear_placed(slab_[slot].task);
    write_record(slot, lost++, out);
  }
  return lost;
}

size_t Cell::allocations(int32_t owner, const AllocationColumns& out) const {
  size_t found = 0;
  for (uint32_t slot = 0; slot < slab_.slots(); ++slot) {
    if (slab_[slot].live && (owner < 0 || slab_[slot].owner == owner))
      write_record(slot, found++, out);
  }
  return found;
}

void Cell::describe(std::span<const int64_t> ids, const AllocationColumns& out) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint32_t slot = slab_.find_recorded(ids[i]);
    if (slot == AllocationSlab::kNoSlot)
      refuse("allocation", i, "an allocation that is live or just ended");
    write_record(slot, i, out);
  }
}

}  // namespace agora
