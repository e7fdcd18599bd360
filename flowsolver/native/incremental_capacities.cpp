// The part of IncrementalSolver (incremental_solver.hpp) that handles capacities too large for its
// sums: the level to which they are lowered, and whether an answer would use more.
#include <limits>

#include "graph/capacity_level.hpp"
#include "incremental_solver.hpp"

namespace flowsolver {

Network IncrementalSolver::given_network() const {
  Network given = net();
  for (ArcId a = 0; a < given.num_arcs(); ++a) given.capacity[a] = given_capacity(a);
  return given;
}

// Checks the network's numbers, after lowering capacities that are too large. The status is that of
// the given network, whatever the level so far: a level that no longer does gives way to the one
// that a solve from scratch would choose, or to none.
Status IncrementalSolver::check_numbers() {
  if (!lowered_.any()) lowered_.begin(std::numeric_limits<std::int64_t>::max());
  const Status status = network_.check_numbers();
  if (status == Status::kBadCostRange) return status;  // reported before all others
  const bool fits = status != Status::kBadCapacityRange;
  if (fits && (!lowered_.any() || level_is_high_enough())) return status;
  const std::int64_t in_use = lowered_.any() ? lowered_.level() : 0;
  return choose_level(in_use) ? network_.check_numbers() : Status::kBadCapacityRange;
}

// Decided from sums; false when they do not suffice.
bool IncrementalSolver::level_is_high_enough() const {
  const __int128 below = network_.capacity_sum() - __int128{lowered_.level()} * lowered_.count();
  return lowered_.level() > network_.supply_magnitudes() + below;
}

// Chooses a level and lowers the capacities to it: the level in use where it still does (0: there
// is none), else none where the given capacities are in range, else as a solve from scratch does.
// O(n + m). False: there is no level.
bool IncrementalSolver::choose_level(std::int64_t in_use) {
  const Network given = given_network();
  std::optional<std::int64_t> level;
  if (in_use > 0 && is_right_level(given, in_use)) {
    level = in_use;
  } else if (check_live_ranges(given, network_.live_nodes()) != Status::kBadCapacityRange) {
    level = std::numeric_limits<std::int64_t>::max();
  } else {
    level = capacity_level(given);
  }
  if (!level) return false;
  lowered_.begin(*level);
  for (ArcId a = 0; a < given.num_arcs(); ++a) {
    if (network_.arc_alive()[a] != 0) change_capacity(a, lowered_.lower(a, given.capacity[a]));
  }
  return true;
}

// Whether the flow on an arc whose capacity was lowered would be unbounded without that
// (graph/capacity_level.hpp).
bool IncrementalSolver::is_unbounded(ArcId arc, std::int64_t flow, std::int64_t tail_price,
                                     std::int64_t head_price) const {
  return flow == lowered_.level() && given_capacity(arc) > flow &&
         net().cost[arc] - tail_price + head_price < 0;
}

// The status of an optimum whose cost is out of range, for which there is no flow to examine.
Status IncrementalSolver::report_unbounded_cycle() {
  const Status cycle = find_unbounded_cycle(given_network(), lowered_.level(), control_, stats_);
  return cycle == Status::kOptimal ? Status::kBadCostRange : cycle;
}

// Applies is_unbounded to an answer from scratch. `live`: as in adopt_cold.
void IncrementalSolver::check_bounds(Solution& solution, const LiveNetwork* live) {
  if (solution.status != Status::kOptimal) return;
  const Network& solved = live == nullptr ? net() : live->network;
  for (ArcId k = 0; k < solved.num_arcs(); ++k) {
    const ArcId a = live == nullptr ? k : live->arcs[k];
    if (is_unbounded(a, solution.flow[k], solution.potential[solved.tail[k]],
                     solution.potential[solved.head[k]])) {
      solution.status = Status::kUnbounded;
      return;
    }
  }
}

}  // namespace flowsolver
