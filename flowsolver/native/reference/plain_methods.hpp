// The plain references, with which the other algorithms are compared.
#pragma once

#include "solve.hpp"

namespace flowsolver {

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
Solution solve_successive_shortest_path(const Network& network, const Start& start,
                                        const Control& control);

// Cycle cancelling (Klein): a feasible flow first, then negative cycles until there is none. Slow
// on large networks; used as a reference, and to improve a feasible flow within a budget.
//
// Definitions and signs are network.hpp's: rc = cost - p[tail] + p[head]; excess = supply + inflow
// - outflow. A residual arc is a half-edge with residual > 0 (arc_graph.hpp). Labels are negated
// prices: d = -p.
//
// Feasible flow. Imbalances of the start are routed from excesses to deficits in waves
// (graph/imbalances.hpp), which also detect INFEASIBLE. A balanced start is kept as it is.
//
// Cycles. From then on the flow is feasible and its cost decreases. The Bellman-Ford-Moore
// algorithm (first in, first out) lowers labels along residual arcs of rc < 0; the arc that lowered
// v's label last is v's parent arc. Invariants:
// (1) A node that is not in the queue has no residual arc of rc < 0 out of it.
// (2) Parent arcs are residual and have rc <= 0.
// If parent arcs form a cycle, its cost is the sum of its reduced costs: below zero, since the arc
// that closed it had rc < 0 before it did. The graph of parent arcs is searched for cycles once per
// n steps (Cherkassky and Goldberg's amortised search). All cycles are disjoint, and are cancelled:
// filled to the least residual capacity; the arcs that are then full are no parent arcs any more.
// New residual arcs are reversed parent arcs, so (1) holds, and the method continues with its
// labels. When the queue is empty, (1) says rc >= 0 on all residual arcs: the labels prove
// optimality.
//
// Termination. Each cycle decreases the integer cost. Between two cycles labels, which are
// integers, only fall, and not without bound: a label is that of the node without parent arc at the
// start of its path of parent arcs, plus at least that path's cost. Labels beyond 4 * kMaxPathCost,
// which takes cycles, are all set to zero and every node is queued; so labels fit.
//
// Complexity. O(n^2 (n + m)) for the feasible flow; pseudo-polynomial for the cycles: at most 2 m C
// U of them, O(n m) for each.
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), sections 7.5, 9.6; Klein, Management
// Science 14 (1967); Cherkassky, Goldberg, Negative-cycle detection algorithms (1999); Gog et al.,
// Firmament, OSDI 2016, section 4. Departures: labels are kept from one cycle to the next, and all
// cycles of the parent graph are cancelled at once; Klein's method starts each search again.
Solution solve_cycle_cancelling(const Network& network, const Start& start, const Control& control);

}  // namespace flowsolver
