// The rule that decides whether a round is solved from scratch (a cold start) or by the engine,
// which gets all changes and continues from the last answer (a warm start).
//
// Both are estimated in counted operations, never timed, so that the same history is solved in the
// same way in every run. The estimate of a cold start is what the last one counted, and reading the
// network, in proportion to the network's size. The estimate of a warm start is a lower bound from
// the changes: applying them, and rerouting the displaced flow. If that exceeds a cold start, or if
// most sources have become sinks, the engine does not even get the changes. Otherwise it runs. In a
// round of many changes it gives up once it has counted as much as a cold start, or expects to
// (Control::give_up_when_slower_than), so that a round takes at most twice as long. If much flow is
// displaced it gives up much earlier, because most engines do not know how far they are from the
// end.
#pragma once

#include <algorithm>
#include <cstdint>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

// The changes since the last answer.
struct RoundChanges {
  std::int64_t values = 0;        // capacities, costs and supplies
  std::int64_t structure = 0;     // nodes and arcs added or removed
  std::int64_t displaced = 0;     // nodes and arcs whose flow cannot stay as it is (estimate)
  std::int64_t sign_changes = 0;  // nodes that changed from source to sink or back

  std::int64_t all() const { return values + structure; }
};

class ColdStartRule {
 public:
  // Called after a solve from scratch of a network of `size` nodes and arcs.
  void note_cold_start(const Stats& stats, std::size_t size) {
    by_searches_ = stats.pushes + stats.relabels + stats.pivots == 0;
    const bool is_hybrid = !by_searches_ && stats.searches > 0;
    size_ = std::max<std::size_t>(size, 1);
    operations_ = stats.operations() / (is_hybrid ? kOperationsPerSearchStep : 1) +
                  kReadings * static_cast<std::int64_t>(size_);
  }

  bool is_known() const { return size_ > 0; }
  // The operations expected of a solve from scratch; kInfinity before the first one.
  std::int64_t expected(std::size_t size) const {
    if (!is_known()) return kInfinity;
    return static_cast<std::int64_t>(static_cast<double>(operations_) * static_cast<double>(size) /
                                     static_cast<double>(size_)) +
           1;
  }

  // Whether a cold start is cheaper than even applying the changes. `sources`: nodes with supply.
  bool is_cheaper(const RoundChanges& round, std::size_t size, std::size_t sources) const {
    return min_warm_operations(round) > expected(size) / kDropFactor ||
           round.sign_changes > static_cast<std::int64_t>(sources / kMostSourcesShare);
  }

  // Limits a warm start: see Control::give_up_when_slower_than.
  void limit_warm_start(Control& control, const RoundChanges& round, std::size_t size,
                        std::size_t sources, const Stats& now) const {
    const std::int64_t cold = std::max(kMinOperations, expected(size));
    const bool much = min_warm_operations(round) > cold / kManyDisplacedFactor ||
                      round.displaced > static_cast<std::int64_t>(sources / kManySourcesShare);
    control.give_up_when_slower_than(
        cold, much ? std::max(kMinOperations, cold / kEarlyGiveUpFactor) : cold, now);
  }

 private:
  // Counted operations per unit of search work, for the algorithms that shortest paths fall back on
  // (incremental_ssp.hpp): theirs take less time.
  static constexpr std::int64_t kOperationsPerSearchStep = 3;
  // A cold start reads the whole network twice, however little there is to solve: to solve it, and
  // to make the engine of the next round from the answer.
  static constexpr std::int64_t kReadings = 2;
  static constexpr std::int64_t kPerValue = 1, kPerStructure = 8, kPerDisplaced = 8;
  static constexpr std::int64_t kStepsPerSearchStep = 2;
  static constexpr std::int64_t kDropFactor = 1, kManyDisplacedFactor = 8, kEarlyGiveUpFactor = 20;
  static constexpr std::size_t kManySourcesShare = 4, kMostSourcesShare = 2;
  static constexpr std::int64_t kMinOperations = std::int64_t{1} << 14;

  std::int64_t min_warm_operations(const RoundChanges& round) const {
    return (by_searches_ ? 1 : kStepsPerSearchStep) *
           (kPerValue * round.values + kPerStructure * round.structure +
            kPerDisplaced * round.displaced);
  }

  std::int64_t operations_ = 0;
  std::size_t size_ = 0;  // 0: no cold start yet
  bool by_searches_ = true;
};

}  // namespace flowsolver
