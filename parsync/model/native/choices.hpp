// The modelling choices of a slot simulation. The agent of the optimistic protocol makes the same
// ones; their Python twins are in parsync/protocols/optimistic/choices.py, and PartitionQuality in
// schedulers/interface.py.
#pragma once

#include <array>
#include <cstddef>

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

}  // namespace agora::slots
