// The interface of an algorithm that solves from scratch or from a start: a function from a network
// and a start to a solution.
#pragma once

#include <cstdint>
#include <span>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

// What a solve may start from. A span is empty (zero flow, zero prices) or as long as the network's
// arrays. The flow satisfies 0 <= flow <= capacity; it need not balance, and the prices need not
// prove anything about it.
struct Start {
  std::span<const std::int64_t> flow;   // per arc
  std::span<const std::int64_t> price;  // per node

  std::int64_t flow_of(ArcId arc) const { return flow.empty() ? 0 : flow[arc]; }
  std::int64_t price_of(NodeId v) const { return price.empty() ? 0 : price[v]; }
};

// Solves the network from `start`.
//
// - kOptimal: flow (per arc), potential (per node) and cost certify each other (certificate.hpp).
// - kBudget: flow and potential are the best state reached. The flow is within capacities but need
//   not balance; cost is its cost, saturated at the ends of int64.
// - kInfeasible: the flow is within capacities and leaves an excess for which the method found no
//   path. solve_proven (proven_infeasibility.hpp) adds the cut.
// - kCancelled: only the status and the stats are meaningful.
// - kUnbalanced, kBadCostRange, kBadCapacityRange: as check_ranges reports, before any work.
//
// Deterministic, except for when a deadline or a cancellation takes effect. Throws nothing but
// std::bad_alloc.
using Method = Solution (*)(const Network& network, const Start& start, const Control& control);

}  // namespace flowsolver
