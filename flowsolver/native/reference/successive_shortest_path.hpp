// Successive shortest paths as in the textbook: the plain reference with which incremental_ssp.hpp
// is compared.
//
// Definitions and signs are network.hpp's: rc = cost - p[tail] + p[head]; excess = supply + inflow
// - outflow. A residual arc is a half-edge with residual > 0 (arc_graph.hpp).
//
// Invariant. 0 <= x <= capacity and rc >= 0 on every residual arc. So when no excess is left the
// flow is optimal, and p proves it.
//
// Method. At the start every residual arc of negative reduced cost is saturated. That handles
// negative costs, negative cycles, and starts whose flow and prices do not fit each other: the flow
// is then within capacities, and its imbalances are excesses and deficits. Then, for one node with
// excess after another, Dijkstra's algorithm searches over reduced costs from it, up to the nearest
// deficit, at distance D. Prices of nodes nearer than D rise by D - distance, which makes the
// path's reduced costs zero and keeps the others >= 0. As much flow as fits is sent along the path,
// together with the excess of nodes on the path: sent one by one, the excesses of a long path would
// take quadratic time. Of equally short paths one with few arcs is taken.
//
// Termination. An augmentation decreases the total excess by an integer >= 1 and no step increases
// it. A search that settles no deficit has found a set of nodes with more supply than capacity out
// of it: INFEASIBLE.
//
// Range. A price moves only to D - distance above what it was: afterwards it differs by the costs
// of two paths, at most 2 * kMaxPathCost, from that of a node with a deficit, whose price never
// moved. Start prices beyond 2 * kMaxPathCost of the largest sink's are not used. So |p| <= 2^61,
// and distances, being the cost of a path and a difference of prices, fit.
//
// Complexity. O(B (m + n) log n) with B the total excess after the start: pseudo-polynomial, O(n m
// log n) for unit supplies. One search may settle most of the network: it does where tasks compete
// for whole racks.
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), section 9.7; Gog et al., Firmament,
// OSDI 2016, section 4 and table 1. No departures from the paper; "to the sink" is to the nearest
// deficit when there are several.
#pragma once

#include "method.hpp"

namespace flowsolver {

Solution solve_successive_shortest_path(const Network& network, const Start& start,
                                        const Control& control);

}  // namespace flowsolver
