// What every algorithm looks like from outside: a function from a network and a start to a
// solution.
#pragma once

#include <cstdint>
#include <span>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

// What a solve may begin from. Spans are empty (nothing is known: zero flow, zero prices) or as
// long as the network's arrays. 0 <= flow <= capacity; it need not balance, nor suit the prices.
struct Start {
  std::span<const std::int64_t> flow;   // per arc
  std::span<const std::int64_t> price;  // per node

  std::int64_t flow_of(ArcId arc) const { return flow.empty() ? 0 : flow[arc]; }
  std::int64_t price_of(NodeId v) const { return price.empty() ? 0 : price[v]; }
};

// Solves the network from `start`.
//
// kOptimal: flow (per arc), potential (per node) and cost certify each other (certificate.hpp).
// kBudget: flow and potential are the best state reached: within capacities, not necessarily
// balanced; cost is the flow's, saturated at the ends of int64. kInfeasible: flow is within
// capacities, and leaves an excess that the method found no way for; solve_proven
// (proven_infeasibility.hpp) adds the cut. kCancelled: only the status and the stats mean
// something. kUnbalanced, kBadCostRange, kBadCapacityRange: as check_ranges says, found before any
// work. Deterministic but for where a deadline or a cancellation strikes. Throws nothing but
// std::bad_alloc.
using Method = Solution (*)(const Network& network, const Start& start, const Control& control);

}  // namespace flowsolver
