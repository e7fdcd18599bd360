// A greedy placer as an agent calls it: it looks up the tasks that a round is about, finds places
// for them (placer.hpp), checks that they fit, and takes their claims out of the view.
//
//   ids ── columns of the task table ── place() ── claims ── view.claim()
//                                          └───── left waiting: pending, with the reason
//
// A plan needs nothing of Python: no slot prices, no patience, no preemption.
// (schedulers.greedy.scheduler.GreedyScheduler gives prices besides, which it has learned in
// Python.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "catalog.hpp"
#include "placer.hpp"
#include "priced_rows.hpp"
#include "shared_state/native/view.hpp"

namespace agora {

// Picoseconds of counted work in an operation (schedulers.decision_time.PS_PER_OPERATION).
constexpr int64_t kPsPerOperation = 100'000;

// The columns of the task table that placing reads, by task id. Borrowed. A column of one value may
// repeat it with a stride of 0, so no column is expected to be contiguous; strides count entries.
struct PlacingColumns {
  size_t tasks;
  size_t dimensions;
  const int64_t* request;  // [tasks, dimensions]
  int64_t request_row_stride;
  int64_t request_stride;
  const int32_t* preference;
  int64_t preference_stride;
  const int64_t* gang;
  int64_t gang_stride;
};

// Those of some tasks, [n] each, one after the other; request is [n, R].
struct OfferedTasks {
  std::vector<int64_t> request;
  std::vector<int32_t> preference;
  std::vector<int64_t> gang;

  // Throws std::invalid_argument for a task that does not exist.
  void read(const PlacingColumns& table, std::span<const int64_t> task);
};

// What a plan depends on besides tasks and view (schedulers.interface.PlanContext).
struct PlanContext {
  uint64_t stream;
  PartitionRanking ranking;
  PartitionQuality quality;
  std::span<const int32_t> partition_order;  // the freshest first
};

// A plan about n tasks whose k claims have been taken out of the view.
struct ClaimedPlan {
  std::vector<int64_t> task;  // the claims, in the order of the tasks
  std::vector<int32_t> machine;
  std::vector<int64_t> request;  // [k, R]
  std::vector<int64_t> gang;
  std::vector<int64_t> synced_us;         // when the partition of each claim's machine was synced
  std::vector<int64_t> pending;           // [n - k], in their order, those too large at the end
  std::vector<int8_t> pending_reason;     // schedulers.interface.PendingReason
  int64_t ticket = -1;                    // of the claims in the view
  size_t too_large = 0;                   // tasks that were not offered, because nothing holds them
  std::array<int64_t, 4> counted_work{};  // plans (1), tasks, rows looked at, rows ranked
  int64_t operations = 0;
  int64_t partitions_scanned = 0;

  // Whether it claims all tasks that it is about, in their order.
  bool in_full() const { return pending.empty(); }
};

class GreedyPlanner {
 public:
  // weights_ps: of counted_work. preferred_first: whether every task that can have a preferred
  // machine gets one before the others are placed.
  GreedyPlanner(const Catalog& catalog, const PlacingColumns& table, PlacementKind kind,
                bool preferred_first, const std::array<int64_t, 4>& weights_ps)
      : catalog_(catalog),
        table_(table),
        kind_(kind),
        preferred_first_(preferred_first),
        weights_ps_(weights_ps) {}

  // task: n ids. never: which of them can never be placed (UnplaceableUnits), [n] or empty: none.
  // prices: none: no placement has a price.
  // Throws std::invalid_argument, with the view as it was, for input out of range.
  ClaimedPlan plan_and_claim(ClusterView& view, std::span<const int64_t> task,
                             const PlanContext& context, std::span<const uint8_t> never = {},
                             PricedRows* prices = nullptr);

 private:
  void place_offered(ClusterView& view, std::span<const int64_t> task, const PlanContext& context,
                     PricedRows* prices, ClaimedPlan& plan);

  const Catalog& catalog_;
  const PlacingColumns table_;
  const PlacementKind kind_;
  const bool preferred_first_;
  const std::array<int64_t, 4> weights_ps_;
  // of the round being planned
  OfferedTasks tasks_;
  std::vector<int64_t> offered_;
  std::vector<int32_t> found_;
};

}  // namespace agora
