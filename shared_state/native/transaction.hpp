// Transactions: what a scheduler asks of the cell, the cell's explained answer, the changes of a
// partition, allocations, and holds. Immutable once made. Their Python classes, with what each
// field means, are those of shared_state.transaction and shared_state.cell (bind_cell.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "fields.hpp"

namespace agora {

enum class CommitMode : int8_t { Incremental = 0, AllOrNothing = 1 };
enum class ConflictCheck : int8_t { ResourceFit = 0, SequenceNumber = 1 };

// k claims of one scheduler (Schwarzkopf et al., "Omega", EuroSys 2013, section 3.4).
struct Transaction {
  static constexpr const char* kName = "Transaction";
  static constexpr int kPart = 1;         // its number in messages
  static constexpr size_t kRequired = 6;  // fields without a default

  int64_t scheduler = 0;
  int64_t sequence = 0;
  SharedColumn<int64_t> task;       // [k]
  SharedColumn<int32_t> machine;    // [k]
  SharedTable<int64_t> request;     // [k, R]
  SharedColumn<int64_t> synced_us;  // [k]
  CommitMode commit_mode = CommitMode::Incremental;
  ConflictCheck conflict_check = ConflictCheck::ResourceFit;
  std::optional<SharedColumn<int64_t>> gang;     // [k]; none: all are NO_GANG
  std::optional<SharedColumn<uint32_t>> seqnum;  // [k]; none under ResourceFit
  std::optional<SharedColumn<int64_t>> evict;    // [e] allocations; none: no eviction
  std::optional<SharedColumn<int64_t>> holds;    // [h] ids; none: claims rest on no holds

  size_t size() const { return task.size(); }

  static constexpr auto fields() {
    return std::tuple{Field{"scheduler", &Transaction::scheduler},
                      Field{"sequence", &Transaction::sequence},
                      Field{"task", &Transaction::task},
                      Field{"machine", &Transaction::machine},
                      Field{"request", &Transaction::request},
                      Field{"synced_us", &Transaction::synced_us},
                      Field{"commit_mode", &Transaction::commit_mode},
                      Field{"conflict_check", &Transaction::conflict_check},
                      Field{"gang", &Transaction::gang},
                      Field{"seqnum", &Transaction::seqnum},
                      Field{"evict", &Transaction::evict},
                      Field{"holds", &Transaction::holds}};
  }
};

// The answer to a transaction of k claims.
struct CommitResult {
  static constexpr const char* kName = "CommitResult";
  static constexpr int kPart = 2;  // its number in messages

  int64_t sequence = 0;
  SharedColumn<int8_t> reason;       // [k], Reason
  SharedColumn<int64_t> allocation;  // [k]
  SharedColumn<int32_t> rival;       // [k]
  SharedColumn<int64_t> age_us;      // [k]
  SharedColumn<int64_t> version;     // [k]
  SharedColumn<int64_t> evicted;     // [j] allocations

  static constexpr auto fields() {
    return std::tuple{
        Field{"sequence", &CommitResult::sequence},     Field{"reason", &CommitResult::reason},
        Field{"allocation", &CommitResult::allocation}, Field{"rival", &CommitResult::rival},
        Field{"age_us", &CommitResult::age_us},         Field{"version", &CommitResult::version},
        Field{"evicted", &CommitResult::evicted}};
  }
};

// What is taken (used or held) of a single resource on the machines of a partition, all of them, at
// one time.
struct PartitionSnapshot {
  std::vector<int8_t> used;    // by row of the partition; 0 to 126
  std::vector<uint64_t> down;  // a bit per row, 64 to a word; empty: all are up
};

// The rows of a partition that changed in versions (from_version, to_version].
//
// If it has a snapshot, row, used and up are empty until complete() makes them from it. Views of
// the same process need only the snapshot, and copy that; whoever reads the three calls complete()
// first.
struct PartitionDelta {
  static constexpr const char* kName = "PartitionDelta";
  static constexpr int kPart = 3;  // its number in messages

  int64_t partition = 0;
  int64_t from_version = 0;
  int64_t to_version = 0;
  int64_t at_us = 0;
  mutable AnyColumn row;   // [k], uint16 or uint32
  mutable AnyColumn used;  // [k, R], also what is held; of the narrowest signed type that holds it
  mutable SharedColumn<bool> up;
  std::optional<SharedColumn<uint32_t>> seqnum;

  std::shared_ptr<const PartitionSnapshot> snapshot;  // of to_version; null: there is none
  // With a snapshot: the k > 0 rows that changed, a bit per row of the partition.
  std::vector<uint64_t> changed;
  size_t changed_rows = 0;

  // k, how many rows changed.
  size_t size() const { return snapshot ? changed_rows : up.size(); }
  void complete() const;

  static constexpr auto fields() {
    return std::tuple{Field{"partition", &PartitionDelta::partition},
                      Field{"from_version", &PartitionDelta::from_version},
                      Field{"to_version", &PartitionDelta::to_version},
                      Field{"at_us", &PartitionDelta::at_us},
                      Field{"row", &PartitionDelta::row},
                      Field{"used", &PartitionDelta::used},
                      Field{"up", &PartitionDelta::up},
                      Field{"seqnum", &PartitionDelta::seqnum}};
  }
};

// Allocations, n of them: ended ones, or as they stand.
struct Released {
  static constexpr const char* kName = "Released";

  SharedColumn<int64_t> task;        // [n]
  SharedColumn<int32_t> machine;     // [n]
  SharedColumn<int64_t> allocation;  // [n] ids
  SharedColumn<int32_t> owner;       // [n] the scheduler
  SharedTable<int64_t> request;      // [n, R]
  SharedColumn<int64_t> version;     // [n] of the machine's partition after the call

  size_t size() const { return task.size(); }

  static constexpr auto fields() {
    return std::tuple{Field{"task", &Released::task},
                      Field{"machine", &Released::machine},
                      Field{"allocation", &Released::allocation},
                      Field{"owner", &Released::owner},
                      Field{"request", &Released::request},
                      Field{"version", &Released::version}};
  }
};

// Holds, n of them: ended ones, or as they stand.
struct Holds {
  static constexpr const char* kName = "Holds";

  SharedColumn<int64_t> hold;     // [n] ids
  SharedColumn<int32_t> holder;   // [n] the scheduler
  SharedColumn<int32_t> machine;  // [n]
  SharedTable<int64_t> amount;    // [n, R]

  size_t size() const { return hold.size(); }

  static constexpr auto fields() {
    return std::tuple{Field{"hold", &Holds::hold}, Field{"holder", &Holds::holder},
                      Field{"machine", &Holds::machine}, Field{"amount", &Holds::amount}};
  }
};

using TransactionPtr = std::shared_ptr<const Transaction>;
using CommitResultPtr = std::shared_ptr<const CommitResult>;
using PartitionDeltaPtr = std::shared_ptr<const PartitionDelta>;

}  // namespace agora
