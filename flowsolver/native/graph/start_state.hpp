// What methods do before and after solving: check ranges, take over the start as the state to
// return when stopped early, bring its prices into range, estimate prices where there is no start,
// and choose the width of the arithmetic.
#pragma once

#include <vector>

#include "control.hpp"
#include "method.hpp"
#include "network.hpp"

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

// An estimate of the price of capacity (machine slots) in an oversubscribed network, used as a
// start.
//
// From zero prices, successive shortest paths on an oversubscribed network fill all capacity and
// then raise all prices a little for every further source: hours of work on a large cell. If all
// capacity were alike, the clearing price could be computed directly. A source is worth (cost of
// its cheapest path around the capacity) - (cost of its cheapest path through it), and with K units
// of capacity the price is the K-th largest of these. The estimate need not be exact: any price is
// a valid start.
struct PriceEstimate {
  std::int64_t price = 0;  // 0: there is capacity for all, or no estimate
  // nodes that start with this price: all with arcs in, except the root and bypasses
  std::vector<NodeId> nodes;
};

// A bypass is a node that only sources lead to, whose arcs to the root can carry at least half of
// the flow that may arrive (an unscheduled aggregator). O(n + m). Throws Stopped when cancelled.
PriceEstimate estimate_price(const Network& network, NodeId root, const Control& control);

}  // namespace flowsolver
