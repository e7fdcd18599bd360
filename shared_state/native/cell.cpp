#include "cell.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "transaction.hpp"

namespace agora {

namespace {

bool fit_in_bytes(std::span<const int64_t> limit) {
  return std::all_of(limit.begin(), limit.end(),
                     [](int64_t l) { return l <= TakenAmounts::kHighestNarrow; });
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

Hold HoldTable::hold_at(size_t row) const {
  Hold hold{ids_[row], rows_[row].holder, rows_[row].machine, {}};
  std::copy_n(amount_.data() + row * dimensions_, dimensions_, hold.amount.begin());
  return hold;
}

std::vector<Hold> HoldTable::all() const {
  std::vector<Hold> all;
  all.reserve(size_);
  for (size_t row = 0; row < rows_.size(); ++row)
    if (rows_[row].holder >= 0) all.push_back(hold_at(row));
  return all;
}

std::vector<Hold> HoldTable::of_machine(int32_t machine) const {
  std::vector<Hold> found;
  for (uint32_t row = latest_of(machine); row != kNone; row = rows_[row].earlier)
    found.push_back(hold_at(row));
  std::reverse(found.begin(), found.end());
  return found;
}

int32_t HoldTable::rival_of(int32_t machine, int32_t scheduler) const {
  for (uint32_t row = latest_of(machine); row != kNone; row = rows_[row].earlier)
    if (rows_[row].holder != scheduler) return rows_[row].holder;
  return -1;
}

int64_t HoldTable::sum_of_first() const {
  int64_t sum = 0;
  for (size_t row = 0; row < rows_.size(); ++row)
    if (rows_[row].holder >= 0) sum += amount_[row * dimensions_];
  return sum;
}

int64_t HoldTable::held_on(int32_t machine, size_t resource) const {
  int64_t held = 0;
  for (uint32_t row = latest_of(machine); row != kNone; row = rows_[row].earlier)
    held += amount_[row * dimensions_ + resource];
  return held;
}

// Links the rows that began since. Each becomes the latest of its machine.
void HoldTable::link() const {
  if (latest_.empty()) latest_.assign(machines_, kNone);
  for (; linked_ < rows_.size(); ++linked_) {
    Row& row = rows_[linked_];
    if (row.holder < 0) continue;
    uint32_t& latest = latest_[static_cast<size_t>(row.machine)];
    row.earlier = std::exchange(latest, static_cast<uint32_t>(linked_));
  }
}

void HoldTable::unlink(uint32_t row) {
  uint32_t* later = &latest_[static_cast<size_t>(rows_[row].machine)];
  while (*later != row) later = &rows_[*later].earlier;
  *later = rows_[row].earlier;
}

void HoldTable::drop_ended() {
  for (size_t row = 0; row < linked_; ++row)
    if (rows_[row].holder >= 0) latest_[static_cast<size_t>(rows_[row].machine)] = kNone;
  linked_ = 0;
  uint32_t kept = 0;
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row].holder < 0) continue;
    ids_.move(row, kept);
    rows_[kept] = rows_[row];
    copy_amount(row, amount_.data() + kept++ * dimensions_);
  }
  ids_.shorten(kept);
  rows_.resize(kept);
  amount_.resize(kept * dimensions_);
}

Cell::Cell(size_t machines, size_t dimensions, std::span<const int64_t> limit,
           std::span<const int64_t> offsets, std::span<const int32_t> priority)
    : dimensions_(dimensions),
      limit_(limit.begin(), limit.end()),
      limit_stride_(all_alike(limit, dimensions) ? 0 : dimensions),
      offsets_(offsets.begin(), offsets.end()),
      priority_(priority.begin(), priority.end()),
      taken_(limit.size(), dimensions == 1 && fit_in_bytes(limit)),
      changed_(machines),
      slab_(dimensions),
      holds_(machines, dimensions) {
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
  partition_of_ = PartitionLookup(offsets_);
  versions_.assign(offsets.size() - 1, 0);
  touched_.assign(offsets.size() - 1, 0);
  snapshots_.resize(offsets.size() - 1);
  slab_.reserve(machines);  // address space only: pages come with use
}

uint64_t Cell::rows_with_room(size_t word) const {
  const size_t first = word * 64, count = std::min<size_t>(64, machines() - first);
  uint64_t rows = 0;
  if (count == 64 && limit_stride_ == 0 && taken_.is_narrow()) {
    rows = ~rows_above(taken_.narrow() + first, static_cast<int8_t>(limit_[0] - 1));
  } else {
    for (size_t i = 0; i < count; ++i) {
      const size_t row = first + i;
      bool has_room = false;
      for (size_t r = 0; r < dimensions_; ++r)
        has_room |= limit_[row * limit_stride_ + r] > taken_at(row, r);
      rows |= uint64_t{has_room} << i;
    }
  }
  for (uint64_t rest = down_ > 0 ? rows : 0; rest != 0; rest &= rest - 1) {
    const int bit = std::countr_zero(rest);
    if (!rows_[first + static_cast<size_t>(bit)].up()) rows &= ~(uint64_t{1} << bit);
  }
  return rows;
}

void Cell::make_room_for_task(int64_t task) {
  const size_t words = static_cast<size_t>(task + 64) >> 6;
  if (words > placed_.size()) placed_.resize(std::max(words, placed_.size() * 2));
}

void Cell::end_slot(uint32_t slot) {
  const auto row = static_cast<size_t>(slab_[slot].machine);
  const int64_t* request = slab_.request(slot);
  for (size_t r = 0; r < dimensions_; ++r) taken_.add(row * dimensions_ + r, -request[r]);
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
      taken_.add(row * dimensions_ + r, request[i * dimensions_ + r]);
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
  ended_holds_.clear();
  bool any_downed = false;
  for (size_t i = 0; i < count; ++i) {
    const auto row = static_cast<size_t>(machine[i]);
    if (rows_[row].up() == up[i]) continue;
    rows_[row].set_up(up[i]);
    up[i] ? --down_ : ++down_;
    touch(row);
    if (up[i]) continue;
    any_downed = downed[row] = true;
    for (const Hold& hold : holds_.of_machine(machine[i])) end_hold(hold.id, ended_holds_);
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

// Deltas: the rows of a partition that changed after a version. There is no change log: the rows'
// versions are scanned. Of a narrow cell a delta is a snapshot of the partition and the bits of the
// rows that changed.

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
  state->used.assign(taken_.narrow() + first, taken_.narrow() + end);
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
  if (!taken_.is_narrow()) {
    for (size_t i = 0; i < count; ++i) {
      const int64_t* used =
          taken_.wide().data() + static_cast<size_t>(first + scanned_[i]) * dimensions_;
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
  if (taken_.is_narrow()) {
    const int8_t* from = taken_.narrow() + scan.first_row;
    for (size_t i = 0; i < scan.count; ++i) used[i] = from[scanned_[i]];
    return;
  }
  for (size_t i = 0; i < scan.count; ++i) {
    const int64_t* from =
        taken_.wide().data() + static_cast<size_t>(scan.first_row + scanned_[i]) * dimensions_;
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

// The cell's state as bytes: a header (shape), then each column as its length (u64) and its bytes.
// Little-endian.

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

template <class Archive>
void HoldTable::archive(Archive& archive) {
  if constexpr (Archive::kReads) {
    *this = HoldTable(machines_, dimensions_);
    if (archive.bytes.empty()) return;
  } else {
    if (begun_ == 0) return;
  }
  std::vector<int64_t> begun{begun_}, id, amount;
  std::vector<int32_t> holder, machine;
  for (const Hold& hold : all()) {
    id.push_back(hold.id);
    holder.push_back(hold.holder);
    machine.push_back(hold.machine);
    amount.insert(amount.end(), hold.amount.begin(), hold.amount.begin() + dimensions_);
  }
  archive(begun);
  archive(id);
  archive(holder);
  archive(machine);
  archive(amount);
  if constexpr (!Archive::kReads) return;
  const size_t count = id.size();
  if (begun.size() != 1 || holder.size() != count || machine.size() != count ||
      amount.size() != count * dimensions_)
    throw std::invalid_argument("checkpoint: columns do not fit together");
  for (size_t i = 0; i < count; ++i) {
    if (id[i] < begun_ || id[i] >= begun[0] || holder[i] < 0 || machine[i] < 0 ||
        static_cast<size_t>(machine[i]) >= machines_)
      throw std::invalid_argument("checkpoint: a hold out of range");
    begun_ = id[i];
    begin(holder[i], machine[i], amount.data() + i * dimensions_);
  }
  begun_ = begun[0];
}

void Cell::take_columns(const std::vector<int64_t>& taken, const std::vector<int64_t>& changed) {
  if (taken.size() != taken_.size() || changed.size() != changed_.size())
    throw std::invalid_argument("checkpoint: columns do not fit together");
  taken_.assign(taken);
  for (size_t row = 0; row < changed.size(); ++row) changed_.set(row, changed[row]);
}

template <class Archive>
void Cell::archive(Archive& archive) {
  std::vector<int64_t> taken, changed;  // in eight bytes each, however the cell keeps them
  if constexpr (!Archive::kReads) taken = taken_.all(), changed = changed_.all();
  archive(taken);
  archive(rows_);
  archive(changed);
  if constexpr (Archive::kReads) take_columns(taken, changed);
  archive(versions_);
  archive(placed_);
  archive(loaded_);
  slab_.archive(archive);
  holds_.archive(archive);
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

// Checks a restored table of holds: those of a machine are no more than what is taken there.
void Cell::take_holds() {
  ended_holds_.clear();
  std::vector<int64_t> held(holds_.empty() ? 0 : limit_.size());
  for (const Hold& hold : holds_.all()) {
    const auto row = static_cast<size_t>(hold.machine);
    if (!rows_[row].up()) throw std::invalid_argument("checkpoint: a hold out of range");
    for (size_t r = 0; r < dimensions_; ++r) {
      const int64_t amount = hold.amount[r];
      int64_t& sum = held[row * dimensions_ + r];
      if (amount < 0 || amount > taken_at(row, r) - sum)
        throw std::invalid_argument("checkpoint: a hold out of range");
      sum += amount;
    }
  }
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
  take_holds();
}

}  // namespace agora
