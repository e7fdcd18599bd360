// The master cell, and its columns as narrow as what they hold.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ascending_ids.hpp"
#include "huge_pages.hpp"
#include "partition_lookup.hpp"
#include "row_bits.hpp"

namespace agora {

// Columns of the cell that are as narrow as what they hold: what transactions touch, and syncs
// scan, then stays in the cache.

// What is taken of R resources on M machines: int64[M, R]; of one resource with small limits a byte
// per machine, until an amount does not fit or somebody reads the whole column.
class TakenAmounts {
 public:
  static constexpr int64_t kHighestNarrow = 126;  // see free_amounts.hpp

  TakenAmounts(size_t size, bool narrow)
      : is_narrow_(narrow), narrow_(narrow ? size : 0), wide_(narrow ? 0 : size) {}

  size_t size() const { return is_narrow_ ? narrow_.size() : wide_.size(); }
  bool is_narrow() const { return is_narrow_; }
  [[gnu::noinline]] void widen() {  // so that add() is inlined
    if (!is_narrow_) return;
    wide_.assign(narrow_.begin(), narrow_.end());
    narrow_ = {};
    is_narrow_ = false;
  }

  // at: machine * R + resource.
  int64_t operator[](size_t at) const { return is_narrow_ ? narrow_[at] : wide_[at]; }
  void add(size_t at, int64_t amount) {
    if (is_narrow_) {
      const int64_t sum = narrow_[at] + amount;
      if (sum >= 0 && sum <= kHighestNarrow) {
        narrow_[at] = static_cast<int8_t>(sum);
        return;
      }
      widen();
    }
    wide_[at] += amount;
  }
  void prefetch(size_t at) const {
    __builtin_prefetch(is_narrow_ ? static_cast<const void*>(&narrow_[at]) : &wide_[at], 1);
  }

  // Of every stride-th amount from the first on. A narrow column has but one resource.
  int64_t sum(size_t stride) const {
    int64_t sum = 0;
    for (const int8_t amount : narrow_) sum += amount;
    for (size_t at = 0; at < wide_.size(); at += stride) sum += wide_[at];
    return sum;
  }

  const int8_t* narrow() const { return narrow_.data(); }
  const HugePageVector<int64_t>& wide() const { return wide_; }
  std::vector<int64_t> all() const {
    return is_narrow_ ? std::vector<int64_t>(narrow_.begin(), narrow_.end())
                      : std::vector<int64_t>(wide_.begin(), wide_.end());
  }
  // Requires: as many amounts as there are. Columns once wide stay so, where they lie.
  void assign(const std::vector<int64_t>& amounts) {
    const bool fit = std::all_of(amounts.begin(), amounts.end(),
                                 [](int64_t a) { return a >= 0 && a <= kHighestNarrow; });
    if (!fit) widen();
    if (is_narrow_) {
      std::transform(amounts.begin(), amounts.end(), narrow_.begin(),
                     [](int64_t a) { return static_cast<int8_t>(a); });
    } else {
      std::copy(amounts.begin(), amounts.end(), wide_.begin());
    }
  }

 private:
  bool is_narrow_;
  HugePageVector<int8_t> narrow_;
  HugePageVector<int64_t> wide_;
};

// The version of its partition at each row's last change: in four bytes until one needs more.
class RowVersions {
 public:
  explicit RowVersions(size_t rows) : rows_(rows), short_(rows + kSpare) {}

  size_t size() const { return rows_; }
  int64_t operator[](size_t row) const { return are_short_ ? short_[row] : long_[row]; }
  void set(size_t row, int64_t version) {
    if (are_short_ && version <= kHighestShort) {
      short_[row] = static_cast<int32_t>(version);
      return;
    }
    lengthen();
    long_[row] = version;
  }
  void prefetch(size_t row) const {
    __builtin_prefetch(are_short_ ? static_cast<const void*>(&short_[row]) : &long_[row], 1);
  }

  // Of the 64 rows from `first` on, those that changed after a version, as bits (row_bits.hpp).
  // There may be fewer: the bits of others say nothing.
  uint64_t changed_after(int64_t version, size_t first) const {
    if (!are_short_) return plain_rows_above(long_.data() + first, version);
    return version < kHighestShort
               ? rows_above(short_.data() + first, static_cast<int32_t>(version))
               : 0;
  }

  std::vector<int64_t> all() const {
    std::vector<int64_t> versions(rows_);
    for (size_t row = 0; row < rows_; ++row) versions[row] = (*this)[row];
    return versions;
  }

 private:
  static constexpr int64_t kHighestShort = std::numeric_limits<int32_t>::max();
  static constexpr size_t kSpare = 63;  // so that 64 can be read from any row on

  [[gnu::noinline]] void lengthen() {  // so that set() is inlined
    if (!are_short_) return;
    long_.assign(short_.begin(), short_.end());
    short_ = {};
    are_short_ = false;
  }

  size_t rows_;
  bool are_short_ = true;
  HugePageVector<int32_t> short_;
  HugePageVector<int64_t> long_;
};

struct PartitionSnapshot;  // transaction.hpp

constexpr int64_t kMaxAmount = int64_t{1} << 50;  // of a limit or a request
constexpr int64_t kMaxTasks = int64_t{1} << 32;
constexpr size_t kMaxDimensions = 8;
constexpr size_t kMaxPartitions = size_t{1} << 24;

struct Allocation {
  int64_t task = -1;
  int32_t machine = -1;
  int32_t owner = -1;
  uint32_t generation = 0;
  uint32_t live = 0;
};

// Allocations: a slab of slots whose ids carry a generation, so that an id of an ended allocation
// never names a later one.
//
// id = generation << 32 | slot, non-negative. Ending an allocation leaves its record readable until
// the slot is used again. Requests are kept beside the records (R integers per slot). Freed slots
// are reused last in, first out; a slot whose generations are used up is retired.
class AllocationSlab {
 public:
  static constexpr uint32_t kNoSlot = 0xffffffffU;
  static constexpr uint32_t kLastGeneration = 0x7fffffffU;

  explicit AllocationSlab(size_t dimensions) : dimensions_(dimensions) {}

  static uint32_t slot_of(int64_t id) { return static_cast<uint32_t>(id & 0xffffffff); }
  int64_t id_of(uint32_t slot) const {
    return static_cast<int64_t>(records_[slot].generation) << 32 | slot;
  }

  uint32_t slots() const { return static_cast<uint32_t>(records_.size()); }
  size_t live() const { return live_; }
  const Allocation& operator[](uint32_t slot) const { return records_[slot]; }
  const int64_t* request(uint32_t slot) const { return requests_.data() + slot * dimensions_; }

  // The slot of a live allocation, or kNoSlot.
  uint32_t find_live(int64_t id) const {
    const uint32_t slot = find_recorded(id);
    return slot != kNoSlot && records_[slot].live ? slot : kNoSlot;
  }

  // The slot of an allocation that is live, or ended and not yet overwritten, or kNoSlot.
  uint32_t find_recorded(int64_t id) const {
    const uint32_t slot = slot_of(id);
    if (id < 0 || slot >= records_.size() ||
        records_[slot].generation != static_cast<uint32_t>(id >> 32))
      return kNoSlot;
    return records_[slot].machine >= 0 ? slot : kNoSlot;
  }

  // Makes room, so that the next `count` begin() cannot fail: what may throw does so before
  // anything changed.
  void reserve(size_t count);

  // Starts an allocation; returns its id. Requires room (reserve).
  int64_t begin(int64_t task, int32_t machine, int32_t owner, const int64_t* request) {
    uint32_t slot;
    if (free_.empty()) {
      slot = static_cast<uint32_t>(records_.size());
      records_.emplace_back();
      requests_.resize(requests_.size() + dimensions_);
    } else {
      slot = free_.back();
      free_.pop_back();
      ++records_[slot].generation;
    }
    Allocation& record = records_[slot];
    record.task = task;
    record.machine = machine;
    record.owner = owner;
    record.live = 1;
    int64_t* to = requests_.data() + slot * dimensions_;
    for (size_t r = 0; r < dimensions_; ++r) to[r] = request[r];
    ++live_;
    return id_of(slot);
  }

  // Ends the live allocation in `slot`.
  void end(uint32_t slot) {
    records_[slot].live = 0;
    --live_;
    if (records_[slot].generation < kLastGeneration) free_.push_back(slot);
  }

  void prefetch_next(size_t ahead) const {
    if (free_.size() > ahead) {
      const uint32_t slot = free_[free_.size() - 1 - ahead];
      __builtin_prefetch(&records_[slot], 1);
      __builtin_prefetch(requests_.data() + slot * dimensions_, 1);
    }
  }

  template <class Archive>
  void archive(Archive& archive) {
    archive(records_);
    archive(requests_);
    archive(free_);
  }
  // Recounts what archive() does not hold; false if the parts do not belong together.
  bool settle();

 private:
  size_t dimensions_;
  size_t live_ = 0;
  std::vector<Allocation> records_;
  std::vector<int64_t> requests_;
  std::vector<uint32_t> free_;
};

// Room held on a machine, which nobody takes until the hold ends.
struct Hold {
  int64_t id = -1;
  int32_t holder = -1;  // the scheduler it is held for
  int32_t machine = -1;
  std::array<int64_t, kMaxDimensions> amount{};  // [R]
};

// Ended holds as columns of capacity n; amount is [n, R].
struct HoldColumns {
  int64_t* hold;
  int32_t* holder;
  int32_t* machine;
  int64_t* amount;
};

// The holds that have not ended. Their ids ascend, and none is given twice.
//
// Rows ascend by id. That of an ended hold stays until there are about twice as many rows as holds.
// Most holds end before anybody asks who holds what on a machine, so rows are only linked by
// machine when somebody does.
class HoldTable {
 public:
  HoldTable(size_t machines, size_t dimensions) : machines_(machines), dimensions_(dimensions) {}

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // How many have begun; the next has this id.
  int64_t begun() const { return begun_; }
  // By id.
  std::vector<Hold> all() const;
  // None if it has ended, or never was.
  std::optional<Hold> find(int64_t id) const {
    const size_t row = row_of(id);
    return row == AscendingIds::kNone ? std::nullopt : std::optional(hold_at(row));
  }
  // Of a machine, by id.
  std::vector<Hold> of_machine(int32_t machine) const;
  // For whom the latest hold on the machine is that is not the scheduler's: -1 if for nobody.
  int32_t rival_of(int32_t machine, int32_t scheduler) const;
  // What is held of a resource on a machine.
  int64_t held_on(int32_t machine, size_t resource) const;
  int64_t sum_of_first() const;

  // Makes room for so many more.
  void reserve(size_t count) {
    if (rows_.size() > 2 * size_ + kSpareRows) drop_ended();
    if (rows_.size() + count <= rows_.capacity()) return;
    const size_t capacity = std::max(rows_.size() + count, 2 * rows_.capacity());
    rows_.reserve(capacity);
    amount_.reserve(capacity * dimensions_);
  }
  int64_t begin(int32_t holder, int32_t machine, const int64_t* amount) {
    ids_.push_back(begun_);
    rows_.push_back({holder, machine, kNone});
    amount_.push_back(amount[0]);
    for (size_t r = 1; r < dimensions_; ++r) amount_.push_back(amount[r]);
    ++size_;
    return begun_++;
  }
  // Writes the hold to row `at` of `out`, and ends it. Returns false if it has ended, or never was.
  bool end(int64_t id, size_t at, const HoldColumns& out) {
    const size_t row = row_of(id);
    if (row == AscendingIds::kNone) return false;
    out.hold[at] = id;
    out.holder[at] = rows_[row].holder;
    out.machine[at] = rows_[row].machine;
    copy_amount(row, out.amount + at * dimensions_);
    if (row < linked_) unlink(static_cast<uint32_t>(row));
    rows_[row].holder = -1;
    --size_;
    return true;
  }

  // Nothing of a table in which none has begun.
  template <class Archive>
  void archive(Archive& archive);

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr size_t kSpareRows = 64;

  struct Row {
    int32_t holder;  // -1: it has ended
    int32_t machine;
    uint32_t earlier;  // if linked: the row of the hold before it on its machine, or kNone
  };

  size_t row_of(int64_t id) const {
    const size_t row = ids_.find(id);
    return row == AscendingIds::kNone || rows_[row].holder < 0 ? AscendingIds::kNone : row;
  }
  Hold hold_at(size_t row) const;
  void copy_amount(size_t row, int64_t* to) const {
    const int64_t* const amount = amount_.data() + row * dimensions_;
    to[0] = amount[0];  // there is mostly one: no loop to set up
    for (size_t r = 1; r < dimensions_; ++r) to[r] = amount[r];
  }
  // The row of the machine's latest hold, or kNone.
  uint32_t latest_of(int32_t machine) const {
    if (size_ == 0) return kNone;
    link();
    return latest_[static_cast<size_t>(machine)];
  }
  void link() const;
  void unlink(uint32_t row);
  void drop_ended();

  size_t machines_, dimensions_;
  int64_t begun_ = 0;
  size_t size_ = 0;
  AscendingIds ids_;
  mutable std::vector<Row> rows_;
  std::vector<int64_t> amount_;           // [rows, R]
  mutable size_t linked_ = 0;             // the rows before this one are linked, or have ended
  mutable std::vector<uint32_t> latest_;  // by machine, of linked rows; empty if none ever was
};

enum class Reason : int8_t {
  Accepted = 0,
  Stale = 1,
  Full = 2,
  MachineDown = 3,
  Evicted = 4,
  Gang = 5,
  Duplicate = 6,
  Held = 7
};
// By value, as shared_state.transaction.Reason names them.
constexpr std::array kReasonNames{"ACCEPTED", "STALE", "FULL",      "MACHINE_DOWN",
                                  "EVICTED",  "GANG",  "DUPLICATE", "HELD"};
static_assert(kReasonNames.size() == static_cast<size_t>(Reason::Held) + 1);

// Whether the task of a claim runs: the claim was accepted, or one before it.
constexpr bool is_placed(int8_t reason) {
  return reason == static_cast<int8_t>(Reason::Accepted) ||
         reason == static_cast<int8_t>(Reason::Duplicate);
}

// Whether a claim was rejected because another scheduler was first (transaction.CONFLICTS).
constexpr bool is_conflict(int8_t reason) {
  return reason == static_cast<int8_t>(Reason::Stale) ||
         reason == static_cast<int8_t>(Reason::Full) ||
         reason == static_cast<int8_t>(Reason::Evicted) ||
         reason == static_cast<int8_t>(Reason::Held);
}

// What a claim looks at and moves together: 16 bytes of one cache line.
struct RowState {
  uint32_t seqnum = 0;
  int32_t claimant = -1;           // the scheduler that last claimed the row
  int32_t previous_claimant = -1;  // the last one before that is another
  uint32_t partition_and_up = 1;   // partition << 8 | up, so that the first byte is a bool

  uint32_t partition() const { return partition_and_up >> 8; }
  bool up() const { return (partition_and_up & 1) != 0; }
  void set_up(bool up) {
    partition_and_up = (partition_and_up & ~uint32_t{1}) | static_cast<uint32_t>(up);
  }
  void claimed_by(int32_t scheduler) {
    previous_claimant = claimant != scheduler ? claimant : previous_claimant;
    claimant = scheduler;
  }
  // Who else claimed the row last: -1 if nobody else did.
  int32_t rival_of(int32_t scheduler) const {
    return claimant != scheduler ? claimant : previous_claimant;
  }
};
static_assert(sizeof(RowState) == 16);

// k claims of one scheduler; request is [k, R]. gang null: no gangs. seqnum null: resource fit
// alone is checked.
struct Claims {
  int32_t scheduler;
  bool all_or_nothing;
  int64_t now_us;
  size_t count;
  const int64_t* task;
  const int32_t* machine;
  const int64_t* request;
  const int64_t* synced_us;
  const int64_t* gang;
  const uint32_t* seqnum;
  std::span<const int64_t> evict;
  std::span<const int64_t> holds;
};

// Room for the answer: k entries each, `evicted` as many as claims.evict.
struct Answer {
  int8_t* reason;
  int64_t* allocation;
  int32_t* rival;
  int64_t* age_us;
  int64_t* version;
  int64_t* evicted;
};

// Allocations as columns of capacity n; request is [n, R]. version may be null.
struct AllocationColumns {
  int64_t* task;
  int32_t* machine;
  int64_t* allocation;
  int32_t* owner;
  int64_t* request;
  int64_t* version;
};

// What a delta holds before its dtypes are chosen: the rows (offsets within the partition), and
// what none of their `used` exceeds.
struct DeltaScan {
  int64_t first_row;
  int64_t rows;  // of the partition
  size_t count;
  int64_t largest;  // INT8_MAX, if not more than that
};

// The master cell: what is true. Columnar: machines are rows 0..M-1, resources are R integer
// dimensions, partitions are blocks of rows.
//
// Invariants, after every public call:
//   taken[m][r] = used[m][r] + held[m][r]: the sums of the requests of the live allocations on m
//   and of the amounts of its holds (0 where m is down);
//   a claim was accepted, and a hold begun, only if taken + request <= limit in every dimension of
//   which it requests some (fits_in() of free_amounts.hpp), so rows loaded above a limit take none
//   that does; a task has at most one live allocation, and none after it was released (it ran to
//   its end);
//   versions[p] moves by one in each call that changes a row of p, and changed[m] is the version of
//   m's partition at m's last change; seqnum[m] moves with each accepted (or loaded) claim on m and
//   never otherwise (as in Omega); a call that throws has changed nothing.
// Not thread-safe.
//
// Commit (Schwarzkopf et al., "Omega", EuroSys 2013), departing from the
// authors' simulator: all claims are judged, a rejected group leaves no trace, and sequence numbers
// are compared with the state before the transaction, so a transaction's claims on one machine do
// not make one another stale.
class Cell {
 public:
  // limit: [M, R] row-major, 0..kMaxAmount. offsets: P+1 ascending block bounds from 0 to M.
  // priority: of each task from 0 on; if there are any, claims may evict tasks of lower priority,
  // whoever owns them, else only their own scheduler's. Throws std::invalid_argument.
  Cell(size_t machines, size_t dimensions, std::span<const int64_t> limit,
       std::span<const int64_t> offsets, std::span<const int32_t> priority = {});

  size_t machines() const { return rows_.size(); }
  size_t dimensions() const { return dimensions_; }
  size_t partitions() const { return versions_.size(); }
  size_t live() const { return slab_.live(); }
  size_t machines_up() const { return machines() - down_; }
  bool is_live(int64_t allocation) const {
    return slab_.find_live(allocation) != AllocationSlab::kNoSlot;
  }

  // Decides the claims; returns how many allocations it evicted. Throws std::invalid_argument (a
  // row, task or request out of range).
  size_t commit(const Claims& claims, const Answer& answer);

  // Ends what is live and (owner not null) owned as said; the rest is skipped. Returns how many;
  // `out` has room for all ids.
  size_t release(std::span<const int64_t> ids, const int32_t* owner, const AllocationColumns& out);

  // Claims of an initial state: over the limit is allowed. Throws std::invalid_argument.
  void load(size_t count, const int64_t* task, const int32_t* machine, const int64_t* request,
            const int32_t* owner, int64_t* ids);

  // Takes machines down or up, in order; `out` (room for live()) gets what ran on those that went
  // down, by slot. Returns how many. The holds there end.
  size_t set_machines(size_t count, const int32_t* machine, const bool* up,
                      const AllocationColumns& out);

  // Holds amounts, [count, R], for schedulers, in order. ids: -1 where the amount does not fit what
  // is neither used nor held, or the machine is down. Throws std::invalid_argument.
  void hold(size_t count, const int32_t* holder, const int32_t* machine, const int64_t* amount,
            int64_t* ids);
  // Ends holds, in order; `out` (room for all ids) gets those that had not ended. Returns how many.
  size_t end_holds(std::span<const int64_t> ids, const HoldColumns& out);
  // Those that the last commit or change of machines ended, in the order in which they ended.
  const std::vector<Hold>& ended_holds() const { return ended_holds_; }
  const HoldTable& holds() const { return holds_; }

  // The rows of a partition changed after version `from` (all rows for 0), as bits. Throws
  // std::invalid_argument, as scan() does: there is no such partition or version.
  std::vector<uint64_t> changed_rows(size_t partition, int64_t from) const;
  // The partition as it stands, shared by all who ask while it does. Requires: is_narrow().
  std::shared_ptr<const PartitionSnapshot> snapshot(size_t partition);

  // The same rows as a list, which stays valid until the next scan.
  DeltaScan scan(size_t partition, int64_t from);
  // Writes the rows of the last scan. Row is uint16_t or uint32_t, Used an int type that holds
  // `largest`. seqnum may be null.
  template <class Row>
  void write_rows(const DeltaScan& scan, Row* row) const;
  template <class Used>
  void write_used(const DeltaScan& scan, Used* used) const;
  void write_state(const DeltaScan& scan, bool* up, uint32_t* seqnum) const;

  // Live allocations of `owner` (all if negative), by slot. Returns how many; `out` has room for
  // live().
  size_t allocations(int32_t owner, const AllocationColumns& out) const;
  // Records of allocations, live or just ended (their slots not reused yet). Throws
  // std::invalid_argument for others.
  void describe(std::span<const int64_t> ids, const AllocationColumns& out) const;

  // Canonical bytes of the whole state (not of limits and partitions).
  std::string checkpoint();
  // Takes the state over. Throws std::invalid_argument, with the cell unusable, if the bytes are
  // not of a cell of this shape.
  void restore(std::span<const char> bytes);

  // [M, R], where it lies from now on: it changes with the cell.
  const HugePageVector<int64_t>& taken() {
    taken_.widen();
    return taken_.wide();
  }
  int64_t taken_at(size_t row, size_t resource) const {
    return taken_[row * dimensions_ + resource];
  }
  int64_t held_at(size_t row, size_t resource) const {
    return holds_.held_on(static_cast<int32_t>(row), resource);
  }
  int64_t used_at(size_t row, size_t resource) const {
    return taken_at(row, resource) - held_at(row, resource);
  }
  bool is_narrow() const { return taken_.is_narrow(); }
  // Of the rows from 64 * word on, those that are up and have room in some resource.
  uint64_t rows_with_room(size_t word) const;
  // Of the first resource, on all machines.
  int64_t used_of_first() const { return taken_.sum(dimensions_) - holds_.sum_of_first(); }
  const std::vector<int64_t>& limit() const { return limit_; }
  const HugePageVector<RowState>& rows() const { return rows_; }
  const std::vector<int64_t>& versions() const { return versions_; }

 private:
  struct Victim {
    uint32_t slot;
    int32_t row;
    int64_t task;
    bool chosen;  // still to end
  };
  // The claims of a transaction in the orders in which may_preempt looks them up.
  struct ClaimOrder {
    std::vector<std::pair<int32_t, int32_t>> machine_priority;
    std::vector<int64_t> task;
  };
  struct Taken {
    uint32_t claim;
    int32_t claimant, previous_claimant;  // of the row, before
  };

  // R = 0 stands for any number of dimensions.
  template <size_t R>
  bool fits(size_t row, const int64_t* request) const;
  template <size_t R>
  void take(size_t row, const int64_t* request);
  template <size_t R>
  void give(size_t row, const int64_t* request);
  template <size_t R>
  size_t commit_sized(const Claims& claims, const Answer& answer);
  template <size_t R>
  void validate(const Claims& claims, const Answer& answer);
  template <size_t R>
  void commit_each(const Claims& claims, const Answer& answer);
  template <size_t R>
  size_t commit_grouped(const Claims& claims, const Answer& answer);
  template <size_t R>
  void decide_groups(const Claims& claims, const Answer& answer, std::vector<Taken>& taken);
  template <size_t R>
  void undo(const Claims& claims, std::vector<Taken>& taken, size_t keep);
  template <size_t R>
  Reason judge(size_t row, int64_t task, const int64_t* request, bool stale) const;
  Reason why_no_room(size_t row, const int64_t* request) const;
  bool fits_without_holds(size_t row, const int64_t* request) const;
  void find_named_holds(const Claims& claims);
  bool is_stale(const Claims& claims, size_t i) const;
  template <size_t R>
  void hold_sized(size_t count, const int32_t* holder, const int32_t* machine,
                  const int64_t* amount, int64_t* ids);
  template <size_t R>
  size_t end_holds_sized(std::span<const int64_t> ids, const HoldColumns& out);
  void end_hold(int64_t id, std::vector<Hold>& ended);
  void order_by_group(const Claims& claims);
  void find_victims(const Claims& claims);
  ClaimOrder order_for_preemption(const Claims& claims) const;
  bool may_preempt(const ClaimOrder& claims, const Allocation& victim) const;
  bool drop_unneeded_victims(const Claims& claims, const Answer& answer);
  int64_t record(const Claims& claims, size_t i);

  void check_version(size_t partition, int64_t from) const;
  void end_slot(uint32_t slot);
  void touch(size_t row) {
    const size_t partition = partition_of_(row);
    if (touched_[partition] != stamp_) {
      touched_[partition] = stamp_;
      ++versions_[partition];
    }
    changed_.set(row, versions_[partition]);
  }
  // Of a row that holds and their ends look at.
  void prefetch(size_t row) const {
    taken_.prefetch(row * dimensions_);
    changed_.prefetch(row);
  }
  void begin_change() { ++stamp_; }
  void write_record(uint32_t slot, size_t at, const AllocationColumns& out) const;

  bool placed(int64_t task) const {
    return placed_[static_cast<size_t>(task) >> 6] >> (task & 63) & 1;
  }
  void set_placed(int64_t task) {
    placed_[static_cast<size_t>(task) >> 6] |= uint64_t{1} << (task & 63);
  }
  void clear_placed(int64_t task) {
    placed_[static_cast<size_t>(task) >> 6] &= ~(uint64_t{1} << (task & 63));
  }
  int32_t priority_of(int64_t task) const {
    const auto at = static_cast<size_t>(task);
    return at < priority_.size() ? priority_[at] : 0;
  }
  void make_room_for_task(int64_t task);
  void take_columns(const std::vector<int64_t>& taken, const std::vector<int64_t>& changed);
  void take_holds();
  template <class Archive>
  void archive(Archive& archive);

  size_t dimensions_;
  std::vector<int64_t> limit_;  // [M, R]
  size_t limit_stride_;         // 0 if all machines have the limits of the first, else R
  std::vector<int64_t> offsets_;
  PartitionLookup partition_of_;
  std::vector<int32_t> priority_;  // by task; empty: schedulers evict their own tasks only

  TakenAmounts taken_;  // [M, R]
  HugePageVector<RowState> rows_;
  RowVersions changed_;
  std::vector<int64_t> versions_;
  std::vector<uint64_t> placed_;    // a bit per task: it runs, or ran to its end
  std::vector<int64_t> loaded_{0};  // one entry: the sum of all requests ever loaded
  AllocationSlab slab_;
  HoldTable holds_;
  std::vector<Hold> ended_holds_;

  size_t down_ = 0;  // machines

  struct KeptSnapshot {
    int64_t version = 0;
    std::shared_ptr<PartitionSnapshot> state;
  };
  std::vector<KeptSnapshot> snapshots_;  // [P]: the latest

  // Scratch. touched_[p] == stamp_: this call has moved versions_[p] already.
  uint64_t stamp_ = 0;
  std::vector<uint64_t> touched_;
  std::vector<uint32_t> scanned_;
  std::vector<uint32_t> order_;        // claims by group
  std::vector<uint32_t> group_start_;  // bounds of the groups in order_
  std::vector<Victim> victims_;
  // machines of named victims that are gone or may not end, ascending
  std::vector<int32_t> lost_rows_;
  std::vector<Taken> placed_now_;
  std::vector<int64_t> named_holds_;      // those of the transaction that have not ended
  std::vector<uint32_t> rows_of_holds_;   // the machines of these
  std::vector<uint64_t> has_named_hold_;  // a bit for each machine, if a hold was ever named
};

}  // namespace agora
