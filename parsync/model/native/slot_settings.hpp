// What a slot simulation is given, and what it refuses. The modelling choices are those that the
// agent of the optimistic protocol has too; their Python twins are in
// parsync/model/slot_settings.py, the strategies' in parsync/protocols/optimistic/options.py,
// and PartitionQuality's in schedulers/interface.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace agora::slots {

// How likely a slot is to be picked, relative to others.
enum class SlotWeighting : int {
  Score = 0,    // proportional to its score (at variance 2 the weights hardly differ)
  ExpScore = 1  // proportional to e^score: what the scores of a platform cell mean
};
inline constexpr std::array kSlotWeightingNames{"SCORE", "EXP_SCORE"};

// What quality-first calls the best partition.
enum class PartitionQuality : int {
  MeanScore = 0,  // the highest mean score of idle slots (ParSync section 5.2)
  MeanWeight = 1  // their highest mean weight, by default that of the platform's placer
};
inline constexpr std::array kPartitionQualityNames{"MEAN_SCORE", "MEAN_WEIGHT"};

// Which partitions a scheduler refreshes, and when: the sync policies of the optimistic protocol.
enum class SyncMode : int {
  StateAligned = 0,    // all partitions every G, everybody at once
  StateStaggered = 1,  // all partitions every G, scheduler i at an offset of i G / N
  DiffBlock = 2,       // every G / N: scheduler i block (i + k) mod N of P / N partitions
  DiffSingle = 3,      // every G / P: scheduler i partition (i P / N + k) mod P
  SameBlock = 4        // every G / N: everybody block k mod N
};
inline constexpr std::array kSyncModeNames{"STATE_ALIGNED", "STATE_STAGGERED", "DIFF_BLOCK",
                                           "DIFF_SINGLE", "SAME_BLOCK"};

enum class Strategy : int { Optimistic = 0, QualityFirst = 1, LatencyFirst = 2, Adaptive = 3 };
inline constexpr std::array kStrategyNames{"OPTIMISTIC", "QUALITY_FIRST", "LATENCY_FIRST",
                                           "ADAPTIVE"};

// What becomes of tasks that lost their slot to another scheduler.
enum class LoserPolicy : int {
  Block = 0,   // decided again at once, before the next batch
  Requeue = 1  // back to the tail of the scheduler's queue after a pause
};
inline constexpr std::array kLoserPolicyNames{"BLOCK", "REQUEUE"};

// Schedulers that are alike.
struct GroupSettings {
  int64_t schedulers = 0;
  Strategy strategy = Strategy::Optimistic;
  int64_t batch_tasks = 0;
  int64_t decision_ns = 0;         // of one task
  int64_t tau_ns = 0;              // adaptive: latency-first from this average delay on
  int64_t average_permille = 100;  // adaptive: weight of one batch in the average delay
};

// A stretch of time with constant rates of arrival.
struct PhaseSettings {
  int64_t duration_ns = 0;
  std::vector<int64_t> rate_per_ks;  // per group: tasks per 1000 seconds
};

struct SlotSettings {
  // the cell
  int64_t slots = 0;  // with the extra ones
  int64_t partitions = 0;
  double score_variance = 0;  // V; the mean is kMeanScore
  SlotWeighting weighting = SlotWeighting::ExpScore;
  int64_t task_ns = 0;  // T, how long every task runs

  // the schedulers
  std::vector<GroupSettings> groups;
  std::vector<PhaseSettings> phases;
  SyncMode sync = SyncMode::StateAligned;
  int64_t gap_ns = 0;  // G
  PartitionQuality quality = PartitionQuality::MeanScore;
  bool cut_at_sync = true;
  bool freed_at_once = false;
  bool commit_pipelining = false;
  LoserPolicy losers = LoserPolicy::Block;
  int64_t requeue_ns = 0;
  int64_t scan_permille = 0;  // what a decision takes more where it looks at all partitions

  // the way to the master, and the master
  int64_t latency_ns = 0;  // one way
  int64_t service_ns = 0;  // per claim, at the master of the slot's partition

  // the run
  uint64_t seed = 0;
  int64_t horizon_ns = 0;  // the run ends here at the latest
  int64_t bin_ns = 0;      // of the measurements
  int64_t gap_slices = 2;  // into how many parts conflicts divide the time between two syncs
  // Stop once the backlog has grown over this many bins and, at the throughput of the best of
  // them, is not committed by finish_by_ns. 0: never.
  int64_t growing_bins = 0;
  int64_t finish_by_ns = 0;

  int64_t schedulers() const;
  int64_t submission_ns() const;  // the phases together
  // What deciding a task takes a scheduler of the group under this ranking.
  int64_t decision_ns(const GroupSettings& group, bool latency_first) const {
    return group.decision_ns + (latency_first ? 0 : group.decision_ns * scan_permille / 1000);
  }
};

constexpr double kMeanScore = 10.0;

// The field that is wrong, and how; an empty field: nothing is.
struct Refusal {
  std::string field;
  std::string reason;
  bool refused() const { return !field.empty(); }
};

Refusal check(const SlotSettings& settings);

}  // namespace agora::slots
