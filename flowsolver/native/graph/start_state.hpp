// What methods do before and after solving: check ranges, take over the start as the state to
// return when stopped early, bring its prices into range, and choose the width of the arithmetic.
#pragma once

#include <vector>

#include "method.hpp"

namespace flowsolver {

struct StartState {
  // status by check_ranges; the start's flow and prices, or zeros; the cost of that flow, saturated
  Solution solution;
  bool narrow;  // whether costs and capacities fit 32 bits
};
// If cancelled, only the status is meaningful.
StartState start_state(const Network& network, const Start& start, const Control& control);

// Runs a solve in the narrowest arithmetic that holds costs and capacities:
// solve.operator()<V>(solution) gets the start's state and turns it into the answer. Networks that
// are out of range or empty are answered here.
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

// Makes an array of zeros, with checks in between: the first touch of so much memory takes
// milliseconds. kCancelled: the array is incomplete.
Status fill_zeros(std::vector<std::int64_t>& filled, std::size_t size, const Control& control);

// The start's prices relative to the largest sink's; all zero if some differ from it by more than 2
// * kMaxPathCost, so that sums of a few prices and path costs fit. Precondition: there are nodes.
std::vector<std::int64_t> start_prices(const Network& network, const Start& start);

// The prices minus the root's.
std::vector<std::int64_t> relative_to_root(std::span<const std::int64_t> price, NodeId root);

}  // namespace flowsolver
