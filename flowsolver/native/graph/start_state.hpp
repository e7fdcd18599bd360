// What methods do before and after: ranges checked, the start as a state to return when stopped
// early, its prices within range, and the width of the arithmetic chosen.
#pragma once

#include <vector>

#include "method.hpp"

namespace flowsolver {

struct StartState {
  // status by check_ranges; the start's flow and prices, else zeros, and that flow's cost,
  // saturated
  Solution solution;
  bool narrow;  // costs and capacities fit 32 bits
};
// Of a cancelled one only the status means something.
StartState start_state(const Network& network, const Start& start, const Control& control);

// A solve in the narrowest arithmetic that holds costs and capacities:
// solve.operator()<V>(solution) gets the start's state and makes it the answer. Networks out of
// range, or empty, are answered here.
template <class Solve>
Solution solve_by_width(const Network& network, const Start& start, const Control& control,
                        Solve solve) {
  auto [solution, narrow] = start_state(network, start, control);
  if (solution.status != Status::kOptimal || network.num_nodes() == 0) return std::move(solution);
  try {
    if (narrow) {
      solve.template operator()<std::int32_t>(solution);
    } else {
      solve.template operator()<std::int64_t>(solution);
    }
  } catch (const Stopped& stopped) {
    solution.status = stopped.status;
  }
  return std::move(solution);
}

// As many zeros, touched with looks: the first touch of so much memory takes milliseconds.
// kCancelled, then incomplete.
Status fill_zeros(std::vector<std::int64_t>& filled, std::size_t size, const Control& control);

// The start's prices relative to the largest sink's; all zero when some are further from it than 2
// * kMaxPathCost, so that sums of a few prices and costs of paths fit. Precondition: there are
// nodes.
std::vector<std::int64_t> start_prices(const Network& network, const Start& start);

// Prices relative to the root's.
std::vector<std::int64_t> relative_to_root(std::span<const std::int64_t> price, NodeId root);

}  // namespace flowsolver
