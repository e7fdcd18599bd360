// Relaxation: dual ascent by single nodes and by sets of nodes (the method of Bertsekas and Tseng's
// RELAX codes).
//
// Definitions. Signs as in network.hpp. A pseudoflow respects capacities but need not balance; e(v)
// = supply + inflow - outflow is the excess of v, a deficit if negative. A residual half-edge is
// balanced if its reduced cost is 0. For prices p, the dual objective is q(p) = sum supply[v] p[v]
// + sum over arcs of capacity * min(0, rc); its maximum is the least cost of a flow.
//
// Invariant. Reduced-cost optimality: rc >= 0 on residual half-edges, so rc < 0 only on full arcs
// and rc > 0 only on empty ones. Together with balance that is optimality. All values are integers;
// nothing is scaled or rounded. A run that is stopped at a budget keeps the invariant too: what is
// missing is routing the remaining excesses (waiting tasks).
//
// Method. First the start's flow is made to satisfy the invariant with its prices: arcs with rc < 0
// are filled, those with rc > 0 emptied; deficits of removed tasks are cancelled
// (deficit_cancelling.hpp). Then, while there is an excess e(s) > 0, the first of these steps that
// makes progress:
// 1. Single-node iteration: while e(s) exceeds the balanced residual capacity out of s, saturate
//    that and raise p[s] until the next arc is balanced. Each such raise increases q. No arc left:
//    infeasible.
// 2. Following hops: follow balanced arcs to ever fewer hops (balanced_graph.hpp), updating hops on
//    the way back from dead ends, until a deficit is found; send flow there. Limited, and ended
//    where hops end.
// 3. Forwarding, once sets have been expensive: a source whose balanced arcs hold no more than its
//    excess fills them and is raised degenerately. So the excess of thousands of tasks gathers at
//    an aggregator, where steps 1 and 4 move it at once.
// 4. Multinode iteration: grow a set over balanced arcs; send flow to the deficits it reaches or
//    raise its prices (multinode_iteration.hpp).
//
// Excesses that need step 4 are postponed until all others are gone: they then find the cell as it
// will be, and can move together. A degenerate raise lifts the price of a source without excess as
// far as the dual objective stays the same (balanced_graph.hpp). It is first applied, to all
// sources, when sets have scanned an eighth as many half-edges as there are; before that it does
// not pay. Once they have scanned as many as there are, hops are computed again, because those
// learned from dead ends are outdated.
//
// Correctness, termination. Moves along balanced arcs and raises after saturation keep the
// invariant. Every raise of a set (or node) S has slope e(S) - balanced residual capacity out of S
// >= 1, so q increases by at least one; only a degenerate raise has slope 0. What is done between
// two raises either sends flow from an excess to a deficit or ends the iteration. If a feasible
// flow exists, residual arcs lead from every excess to a deficit, which was never raised; rc >= 0
// along them bounds the price of the excess, and so that of a source whose flow goes there. So
// there are finitely many raises, each by at least one. kInfeasible is reported only for a set S
// with e(S) > 0 and no residual arc out: its supply exceeds the capacity out.
//
// Price wars. Nodes that pass an excess back and forth raise each other by small steps until an
// expensive arc gets balanced, or up to the largest price. So once half-edges have been scanned
// four times as often as there are any without a decrease of the total deficit, all nodes are
// raised by their distance to the nearest deficit in reduced costs, none by more than the farthest
// excess (raise_by_distance in price_passes.hpp: all sets {distance > t} in turn, each with slope e
// > 0). Then each excess has a balanced path to a deficit; or one has no path at all, which proves
// infeasibility.
//
// Range. A raise goes to the reduced cost of some arc or path: at most the cost of a path plus the
// range of prices. Between iterations prices are kept within 2^60 of 0 (close_gaps in
// price_passes.hpp brings them back below (n - 1) max|cost| < 2^59), and an iteration ends once it
// raised by 2^60; degenerate raises of a set's sources add at most (n - 1) max|cost|. So no price
// exceeds 2^60 + 2^60 + 2^61 + 2^60 < 2^63 in between, nor does a reduced cost.
//
// Complexity. Single-node raises are pseudo-polynomial, O(n^3 max|cost| max capacity) in the worst
// case; with distances it is O(m log n) between two decreases of the total deficit, if each such
// raise causes one: then costs do not matter. On scheduling graphs nearly all tasks end at step 2,
// after scanning their own arcs and a handful of others.
//
// References. Bertsekas, Tseng: Relaxation methods for minimum cost ordinary and generalized
// network flow problems, Operations Research 36, 1988; Bertsekas, Network Optimization (1998),
// section 6.3; Firmament (OSDI '16), sections 4, 5.2 and 5.3.1.
//
// Departures. The set persists after a raise, and excesses join it in large numbers. Because of
// both, cells at and above full load take a fraction of a second here and minutes with RelaxIV.
// Candidates that would decrease a positive slope are deferred instead of ending the growth of the
// set. Arc prioritisation (5.3.1) puts arcs to nodes with demand first. Here the order is by hops,
// of which theirs are 0 and 1, for the set, and step 2 takes it further: depth first as long as a
// demand is estimated to be ahead. Half-edges scanned on Quincy cells with 12,500 machines,
// compared with sets grown breadth first and no step 2: the order by hops alone saves 72 % at 50 %
// used, 83 % at 90 % and 88 % at 97 %; with step 2, 79, 90 and 91 % (seed 1).
#pragma once

#include "method.hpp"

namespace flowsolver {

Solution solve_relaxation(const Network& network, const Start& start, const Control& control);

}  // namespace flowsolver
