// Successive shortest paths, as the textbook has them: the plain reference that incremental_ssp.hpp
// is to be compared with.
//
// Definitions and signs are network.hpp's: rc = cost - p[tail] + p[head]; excess = supply + inflow
// - outflow. A residual arc is a half-edge with residual > 0 (arc_graph.hpp).
//
// Invariant. 0 <= x <= capacity and rc >= 0 on every residual arc. So when no excess is left the
// flow is optimal, and p proves it.
//
// Method. At the start every residual arc of negative reduced cost is saturated, which settles
// negative costs, negative cycles and starts whose flow does not suit their prices alike: the flow
// is then within capacities, and what it does not balance is excess or deficit. Then, one node with
// excess after another, Dijkstra's search over reduced costs from it, ended at the nearest deficit,
// at distance D; prices of nodes nearer than D rise by D - distance, which makes the path's reduced
// costs zero and keeps the others >= 0; and as much flow as fits is sent along the path, with it
// the excess of nodes on the path: one by one, the excesses of a long path would take the square of
// its length. Of equally short paths one with few arcs is taken.
//
// Termination. An augmentation lessens the total excess by an integer >= 1 and no step enlarges it.
// A search that settles no deficit has found a set of nodes with more supply than capacity leads
// out of it: INFEASIBLE.
//
// Range. A price moves only to D - distance above what it was: afterwards it differs by the costs
// of two paths, at most 2 * kMaxPathCost, from that of a node with a deficit, whose price never
// moved. Start prices beyond 2 * kMaxPathCost of the largest sink's are not used. So |p| <= 2^61,
// and distances, being the cost of a path and a difference of prices, fit.
//
// Complexity. O(B (m + n) log n) with B the total excess after the start: pseudo-polynomial, O(n m
// log n) for unit supplies. One search may settle most of the network: where machines are short,
// tasks compete for whole racks and it does.
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), section 9.7. Gog et al., Firmament,
// OSDI 2016, section 4 and table 1. Departures from the paper: none from what it says; "to the
// sink" is to the nearest deficit when there are several.
#pragma once

#include "method.hpp"

namespace flowsolver {

Solution solve_successive_shortest_path(const Network& network, const Start& start,
                                        const Control& control);

}  // namespace flowsolver
