// An estimate of the price of capacity (machine slots) in an oversubscribed network, used as a
// start.
//
// From zero prices, successive shortest paths on an oversubscribed network fill all capacity and
// then raise all prices a little for every further source: hours of work on a large cell. If all
// capacity were alike, the clearing price could be computed directly. A source is worth (cost of
// its cheapest path around the capacity) - (cost of its cheapest path through it), and with K units
// of capacity the price is the K-th largest of these. The estimate need not be exact: any price is
// a valid start.
#pragma once

#include <vector>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

struct PriceEstimate {
  std::int64_t price = 0;  // 0: there is capacity for all, or no estimate
  // nodes that start with this price: all with arcs in, except the root and bypasses
  std::vector<NodeId> nodes;
};

// A bypass is a node that only sources lead to, whose arcs to the root can carry at least half of
// the flow that may arrive (an unscheduled aggregator). O(n + m). Throws Stopped when cancelled.
PriceEstimate estimate_price(const Network& network, NodeId root, const Control& control);

}  // namespace flowsolver
