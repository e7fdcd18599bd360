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
// (imbalances.hpp). Then, while there is an excess e(s) > 0, the first of these steps that
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
//    raise its prices (MultinodeIteration).
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
// Settings (AlgorithmSettings). arc_prioritisation off: sets are grown over balanced arcs in the
// order in which these were found, deficits too wait for their turn, and step 2 is left out.
//
// Price wars. Nodes that pass an excess back and forth raise each other by small steps until an
// expensive arc gets balanced, or up to the largest price. So once half-edges have been scanned
// four times as often as there are any without a decrease of the total deficit, all nodes are
// raised by their distance to the nearest deficit in reduced costs, none by more than the farthest
// excess (raise_by_distance: all sets {distance > t} in turn, each with slope e > 0). Then each
// excess has a balanced path to a deficit; or one has no path at all, which proves infeasibility.
//
// Range. A raise goes to the reduced cost of some arc or path: at most the cost of a path plus the
// range of prices. Between iterations prices are kept within 2^60 of 0 (close_gaps brings them back
// below (n - 1) max|cost| < 2^59), and an iteration ends once it raised by 2^60; degenerate raises
// of a set's sources add at most (n - 1) max|cost|. So no price exceeds 2^60 + 2^60 + 2^61 + 2^60 <
// 2^63 in between, nor does a reduced cost.
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

#include <memory>

#include "solve.hpp"

namespace flowsolver {

Solution solve_relaxation(const Network& network, const Start& start, const Control& control,
                          const AlgorithmSettings& settings = {});

// Incremental relaxation: the graph with its prices, lists and hops (balanced_graph.hpp) persists
// from round to round, so that the work of a round depends on its changes.
//
// Invariant, between the runs of a solved network: reduced-cost optimality. So what a change
// violates is seen at the arcs and nodes that it names, and nowhere else.
//
// Root. The first solve is relaxation's own, with the sink as any other node. From its optimum on,
// the largest sink is a root: all excess may end there and all deficits may draw from there; its
// own imbalance is implied by the others' and needs no step. So a batch of arrivals and departures
// makes no set grow from the sink, to which the whole network is connected. The root's price stays,
// so that reported prices, which are relative to it, change only where the method changes them.
//
// Round.
// 1. Restoring optimality. A new node gets the highest price that its residual arcs out allow. A
//    source (a node without arcs in) whose arcs changed gets a price that satisfies all of them, if
//    there is one: if a waiting task's arc gets more expensive, nothing else changes. Otherwise the
//    changed arcs with rc < 0 are filled, those with rc > 0 emptied.
// 2. Deficits are cancelled along the flow that used to leave them (DeficitRouting).
// 3. Excesses are routed to deficits or to the root by the iterations of relaxation
//    (dual_ascent.hpp).
// 4. Remaining deficits are routed from the root, one by one (DeficitRouting). Once that has
//    scanned four times as many half-edges as there are, the rest is done as in a first solve: the
//    root is a node with excess. Then all prices relative to it may change.
//
// Termination. Steps 1 and 2 take a step per change, and per arc that flow is taken off. In step 3
// the root accepts everything: it is relaxation with one sufficiently large deficit. Each routing
// in step 4 decreases the deficits. kInfeasible: a set with excess that no residual arc leaves, or
// with a deficit that none enters, the root not in it. Later changes may repair that.
//
// Stopped runs. A cancelled run leaves what a run at its budget leaves: flow within capacities,
// known excesses, prices that satisfy the invariant except for changes not yet handled. A run stops
// at its budget only after completing an iteration, so that the same small budget, again and again,
// reaches the optimum. A set that is cancelled is finished first, O(its members).
//
// Range. Prices rise in step 3 and fall in step 4; close_gaps brings them back when one exceeds
// 2^60.
//
// Complexity. That of relaxation in the worst case. Below full load, a departure scans the
// machine's arcs and pushes once per arc of its path; an arrival scans its arcs and those of a
// handful of machines. At and above full load, a departure lets those tasks move that gain most;
// the search for them visits all tasks that gain less.
//
// References. Gog et al., Firmament, OSDI 2016, sections 5.2 and 5.3.2. Departure: the paper finds
// that incremental relaxation does not pay, because the state it starts from holds large components
// of zero reduced cost. Here sources are raised degenerately, sets persist through raises, and
// deficits of departures are routed from their own end.
//
// Null when cancelled meanwhile.
std::unique_ptr<Engine> make_relaxation_engine(const EngineStart& start, const Control& control,
                                               Stats& stats,
                                               const AlgorithmSettings& settings = {});

}  // namespace flowsolver
