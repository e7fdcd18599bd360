// A scheduler's view of the cell: what never changes, what is synchronised, and trials on it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "free_amounts.hpp"
#include "huge_pages.hpp"
#include "weighted_index.hpp"

namespace agora {

// What never changes about a cell's machines: limits, scores, partitions. Shared by all views of a
// cell.
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

// Rows of a view that changed, for whoever keeps something in step with the view.
struct RowLog {
  std::vector<int32_t> rows;  // in order of their changes; some more than once
  bool all = true;            // any row may have changed, and `rows` is not kept

  void clear() {
    rows.clear();
    all = false;
  }
};

// Rows of one partition that changed in (from_version, to_version]. `used` is [k, R] of signed
// integers of used_bytes each.
struct Delta {
  int32_t partition;
  int64_t from_version;
  int64_t to_version;
  int64_t at_us;
  size_t count;
  // offsets within the partition, unsigned integers of row_bytes each, ascending
  const void* row;
  size_t row_bytes;
  const void* used;
  size_t used_bytes;
  const bool* up;
  const uint32_t* seqnum;  // null: not sent
};

struct PartitionDelta;

// What one scheduler believes about the cell: synced state with its own claims and releases laid
// over it, indexed for drawing.
//
//   free = limit - used as synced - what is laid over it,   and -1 in every dimension where the
//   machine is down or was never synced.
//
// Laid over it is what the scheduler knows and the synced state does not show yet:
//   claims in flight (claim), until settled or withdrawn;
//   settled claims, until their partition is synced to the version that holds the outcome (also of
//   claims that lost: whoever won is there),
//     but claims rejected as GANG or DUPLICATE lost to nobody and return at once;
//   slots of the scheduler's own that were freed (released), until their partition is synced to the
//   version that holds the release.
// A row is open, and in the index, if its machine is up and some dimension has room. A dimension
// may be overdrawn: tasks that ask for nothing of it fit all the same (fits_in()).
//
// A view that keeps sequence numbers knows that its own accepted claims move them, and keeps rows
// closed, 2^55 below what would be free, whose number it does not know: from a claim until it is
// settled, and where that was rejected as STALE until the partition is synced to the version that
// holds the outcome.
//
// Of one resource whose limits are small, a view without sequence numbers keeps a byte and a bit
// per machine (free_amounts.hpp, weighted_index.hpp), until all_free() or up() is called: it then
// keeps whole columns. A narrow view synchronises a partition by copying its bytes from the cell's
// snapshot, where it gets one, and laying its own claims and releases over them again.
//
// Calls that throw std::invalid_argument have changed nothing. Not thread-safe.
class ClusterView {
 public:
  static constexpr int64_t kNeverSynced = -1;
  static constexpr int64_t kClosed = int64_t{1} << 55;

  ClusterView(std::shared_ptr<const StaticCellState> static_state, bool with_seqnum);

  void apply(const Delta& delta);
  // The same. Throws std::invalid_argument as well for columns of other types or lengths.
  void apply(const PartitionDelta& delta);
  // machine: k rows, request: [k, R]. Returns a ticket.
  int64_t claim(std::span<const int32_t> machine, const int64_t* request);
  // reason, version: one per claim of the ticket; reasons are those of transaction.py.
  void settle(int64_t ticket, std::span<const int8_t> reason, std::span<const int64_t> version);
  void withdraw(int64_t ticket);
  void released(std::span<const int32_t> machine, const int64_t* request,
                std::span<const int64_t> version);
  // What its owner knows without a sync: amounts [k, R] come (sign +1) to machines that are up, or
  // go. Their partitions count as synced then, in the version that they have. Requires: there are
  // such machines.
  void shift(std::span<const int32_t> machine, const int64_t* amount, int64_t sign, int64_t at_us);
  // Believes nothing any more. Claims in flight stay in flight.
  void reset();

  // The first of k claims that does not fit what the view shows free beside those before it, or
  // that names no machine that is up; -1 if all fit. Amounts [e, R] at the rows `freed` (which
  // exist) are taken to be free as well. The view is left as it was.
  int64_t first_oversubscribed(std::span<const int32_t> machine, const int64_t* request,
                               std::span<const int32_t> freed, const int64_t* amount);
  size_t claims_in_flight() const { return tickets_.size(); }

  // A log of the rows that change from now on; it starts with all of them. The view writes it while
  // somebody else holds it; who has read it clears it.
  std::shared_ptr<RowLog> log_rows();
  bool writes(const std::shared_ptr<RowLog>& log) const;

  const StaticCellState& static_state() const { return *static_state_; }
  const WeightedIndex& index() const { return index_; }
  // What the index keeps from now on (weighted_index.hpp).
  void keep_classes() { index_.keep_classes(); }
  void sum_weights() { index_.sum_weights(); }
  void sum_scores() { index_.sum_scores(); }
  FreeAmount free(int32_t row) const { return free_.of(row); }
  bool is_up(int32_t row) const { return free_.is_up(row); }
  bool fits(int32_t row, const int64_t* request) const { return free_.fits(row, request); }
  // Asks for the memory that taking and claiming the row reads.
  void prefetch(int32_t row) const { free_.prefetch(row); }
  // The columns of all machines, [M, R] and [M] bools. They change with the view.
  std::span<const int64_t> all_free() {
    free_.widen();
    return std::as_const(free_).wide();
  }
  std::span<const uint8_t> up() {
    free_.widen();
    return std::as_const(free_).up();
  }
  bool is_narrow() const { return free_.is_narrow(); }
  std::span<const uint32_t> seqnum() const { return seqnum_; }  // empty: made without
  std::span<const int64_t> synced_us() const { return synced_us_; }
  std::span<const int64_t> versions() const { return versions_; }

 private:
  friend class Trial;

  struct Ticket {
    std::vector<int32_t> machine;
    std::vector<int64_t> request;
    std::vector<size_t> partitions;  // of the machines, each once
  };
  // A claim of a ticket: it lies over the synced state until it is settled.
  struct InFlight {
    const Ticket* ticket;
    size_t claim;
  };
  // What lies over the synced state until the partition reaches a version: amount [k, R] is what
  // it takes (negative: gives). closed: until then the row is.
  struct Expiring {
    std::vector<int64_t> version;
    std::vector<int32_t> row;
    std::vector<int64_t> amount;
    std::vector<uint8_t> closed;
  };

  template <typename Row>
  void check_rows(const Delta& delta) const;
  template <typename Used>
  void check_used(const Delta& delta) const;
  void check_follows(int64_t partition, int64_t from_version, int64_t to_version, int64_t at_us,
                     size_t rows) const;
  template <typename Row, typename Used>
  void apply_rows(const Delta& delta);
  void apply_snapshot(size_t partition, const PartitionDelta& delta);
  void finish_apply(size_t partition, int64_t version, int64_t at_us);
  template <typename Visit>
  void for_each_overlay(size_t partition, const Visit& visit) const;
  void lay_over(size_t partition, int64_t sign);
  void check(std::span<const int32_t> machine, const int64_t* request) const;
  void expire(size_t partition, int64_t version);
  void drop_expiring();
  void forget_in_flight(const Ticket& ticket);
  void change(int32_t row, const int64_t* amount, int64_t sign);
  void keep_until(int32_t row, const int64_t* amount, int64_t sign, int64_t version, bool closed);
  void log(std::span<const int32_t> rows);
  void log(int32_t row) { log({&row, 1}); }
  void log_all();
  // As often as it was closed. reindex(row) follows.
  void close(int32_t row);
  void reopen(int32_t row);
  void reindex(int32_t row);
  std::map<int64_t, Ticket>::iterator find(int64_t ticket);
  int64_t sum(const int64_t* amount) const;
  size_t partition_of(int32_t row) const { return static_state_->index.partition_of(row); }
  bool shows(size_t partition, int64_t version) const {
    return synced_us_[partition] != kNeverSynced && version <= versions_[partition];
  }

  std::shared_ptr<const StaticCellState> static_state_;
  size_t dimensions_;
  FreeAmounts free_;                              // [M, R]
  HugePageVector<uint32_t> seqnum_;               // [M] or empty
  std::vector<uint32_t> closed_;                  // [M] or empty: for how many reasons
  const std::vector<int64_t> closing_;            // [R]: kClosed
  std::vector<int64_t> synced_us_;                // [P]
  std::vector<int64_t> versions_;                 // [P]
  std::vector<std::vector<InFlight>> in_flight_;  // [P]
  std::vector<Expiring> expiring_;                // [P]
  int64_t laid_over_ = 0;                         // the sum of all amounts in both, as if all took
  std::vector<int32_t> expired_;                  // rows of what expired in this apply
  std::vector<uint8_t> shifted_;                  // [P]: in this shift
  std::map<int64_t, Ticket> tickets_;
  int64_t next_ticket_ = 1;
  std::vector<std::shared_ptr<RowLog>> logs_;
  WeightedIndex index_;
};

// Planning on a view without changing it.
//
// Provisional changes to a view, undone in reverse order when the trial ends: the view is left as
// it was.
class Trial {
 public:
  explicit Trial(ClusterView& view) : view_(view) {}
  ~Trial() { rollback(0); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Takes the request out of an open row. `request` must outlive the trial. Returns whether the row
  // stays open.
  bool take(int32_t row, const int64_t* request);
  // Hides an open row from draws; shows it again.
  void exclude(int32_t row);
  void readmit(int32_t row);

  size_t mark() const { return steps_.size(); }
  void rollback(size_t mark);

 private:
  enum class Change : uint8_t { Took, TookLast, Excluded, Readmitted };
  struct Step {
    const int64_t* request;
    int32_t row;
    Change change;
  };

  ClusterView& view_;
  std::vector<Step> steps_;
};

}  // namespace agora
