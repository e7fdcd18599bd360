// Relaxation: dual ascent by coordinates and by sets of them (Bertsekas and Tseng's method of the
// RELAX codes).
//
// Definitions. Signs as in network.hpp. A pseudoflow keeps capacities, not balance; e(v) = supply +
// inflow - outflow is the excess of v, a deficit when negative. A residual half-edge is balanced
// when its reduced cost is 0. For prices p, let the dual objective be  q(p) = sum supply[v] p[v] +
// sum over arcs of capacity * min(0, rc); its maximum is the least cost of a flow.
//
// Invariant. Reduced-cost optimality: rc >= 0 on residual half-edges, so rc < 0 only on full arcs,
// rc > 0 only on empty ones. Together with balance that is optimality; all integer, nothing is
// scaled or rounded. Stopped at a budget, the pseudoflow holds it too: what is missing is the
// excesses that are left (unplaced tasks).
//
// Method. A start's flow is made to suit its prices where it does not: arcs with rc < 0 are filled,
// those with rc > 0 emptied; what removed tasks left behind is drained (deficit_cancelling.hpp).
// Then, while there is an excess e(s) > 0, the first of these that gets on:
//   1. Single node: while e(s) is more than the balanced residual capacity out of s, saturate that
//   and raise p[s] to where
//      the next arc gets balanced. Each such step raises q. No arc left: infeasible.
//   2. Descent: follow balanced arcs to ever fewer hops (balanced_graph.hpp), learning on the way
//   back from dead ends, until
//      a deficit is met; send flow there. Bounded, and given up where labels end.
//   3. Passing on, once sets have been dear: a source whose balanced arcs hold no more than its
//   excess fills them and is
//      loosened. So the excess of thousands of tasks gathers at an aggregator, where steps 1 and 4
//      move it at once.
//   4. Set: grow a set over balanced arcs; send flow to the deficits it meets or raise its prices
//   (multinode_iteration.hpp).
// Excesses that only a set helps wait until all others are gone: they find the cell as it will be,
// and can move together. A source without excess is loosened: raised as far as the dual objective
// stays the same (balanced_graph.hpp). That begins, with all of them, when sets have looked at an
// eighth as many half-edges as there are: before, it does not pay. Once they have looked at as many
// as there are, hops are measured anew: what was learned of dead ends is stale by then.
//
// Correctness, termination. Moves along balanced arcs and saturated raises keep the invariant.
// Every raise of a set (or node) S has slope e(S) - balanced residual out of S >= 1, hence q rises
// by at least one; only where a source is loosened it is 0. What is done between two raises either
// sends flow from an excess to a deficit or ends the iteration. When a feasible flow exists,
// residual arcs lead from every excess to a deficit, which was never raised; rc >= 0 along them
// bounds the price of the excess, and so that of a source whose flow goes there. So there are
// finitely many raises, each by at least one. kInfeasible is only said of a set S with e(S) > 0 and
// no residual arc out: its supply exceeds the capacity out.
//
// Price wars. Nodes that pass an excess round among them raise each other by small steps until a
// dear arc gets balanced, or to the largest price there is. So once half-edges have been looked at
// four times as often as there are any, without a fall of what the deficits lack, all nodes are
// raised by their distance to the nearest deficit in reduced costs, none by more than the farthest
// excess (raise_by_distance in price_passes.hpp: all sets {distance > t} in turn, each with slope
// e > 0). Then each excess has a balanced way to a deficit; or one has no way at all, which proves
// infeasibility.
//
// Range. A raise goes to the reduced cost of some arc, or of a path: at most the cost of a path
// plus the spread of prices. Prices are kept within 2^60 of 0 between iterations (close_gaps in
// price_passes.hpp brings them back below (n - 1) max|cost| < 2^59), and an iteration ends once it
// raised by 2^60; loosening a set's sources adds at most (n - 1) max|cost|. So no price exceeds
// 2^60 + 2^60 + 2^61 + 2^60 < 2^63 in between, nor a reduced cost.
//
// Complexity. Single raises are pseudopolynomial, O(n^3 max|cost| max capacity) in the worst case;
// with distances it is O(m log n) between two falls of what the deficits lack, as long as each such
// raise brings one about: costs do not matter. On scheduling graphs nearly all tasks end at step 2
// with a look at their own arcs and a handful of others.
//
// References. Bertsekas, Tseng: Relaxation methods for minimum cost ordinary and generalized
// network flow problems, Operations Research 36, 1988; Bertsekas, Network Optimization (1998),
// section 6.3; Firmament (OSDI '16), sections 4, 5.2 and 5.3.1.
//
// Departures. The set stays after a raise, and excesses join it in numbers; both are why cells at
// and above full take a fraction of a second here and minutes with RelaxIV. Candidates that would
// lower a positive slope are left outside instead of ending the growth. Arc prioritisation (5.3.1)
// puts arcs to nodes with demand first; here that is hops, of which theirs are 0 and 1, for the
// set, and the descent of step 2 takes it to the end: depth first as long as demand is thought to
// be ahead. Half-edges looked at, of Quincy cells with 12,500 machines, against sets grown breadth
// first and no descent: the order by hops alone takes off 72 % at 50 % used, 83 % at 90 % and 88 %
// at 97 %, with the descent 79, 90 and 91 % (seed 1).
#pragma once

#include "method.hpp"

namespace flowsolver {

Solution solve_relaxation(const Network& network, const Start& start, const Control& control);

}  // namespace flowsolver
