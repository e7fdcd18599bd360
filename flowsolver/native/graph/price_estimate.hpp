// A first guess of what room is worth where there is too little of it.
//
// Starting from zero prices, successive shortest paths on an oversubscribed network fills all room
// and then raises the price of everything, a little at a time, for every further source: hours of
// work on a large cell. If all room were alike, the clearing price could be read off: a source is
// worth (cost of its cheapest way around the room) - (cost of its cheapest way in), and with K
// units of room the price is the K-th largest of these. It only has to be near: any price is a
// valid start.
#pragma once

#include <vector>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

struct PriceEstimate {
  std::int64_t price = 0;  // 0: there is room for all, or nothing to tell by
  // that start with it: all that arcs lead to, but the root and ways around
  std::vector<NodeId> nodes;
};

// A way around is a node only sources lead to, whose arcs to the root can carry at least half of
// what may come. O(n + m). Throws Stopped when cancelled.
PriceEstimate estimate_price(const Network& network, NodeId root, const Control& control);

}  // namespace flowsolver
