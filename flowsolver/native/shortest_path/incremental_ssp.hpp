// Incremental successive shortest paths with persistent prices.
//
// Definitions and signs are network.hpp's: rc = cost - p[tail] + p[head]; imbalance = supply +
// inflow - outflow.
//
// Method. The state is a pseudoflow (0 <= x <= capacity, imbalances allowed) and prices with the
// invariant
//     rc >= 0 on every residual arc,
// so that the flow is optimal whenever all imbalances are zero. A change to the network (nodes,
// arcs, capacities, costs, supplies) keeps or repairs the invariant locally and leaves imbalances:
// a new task leaves an excess, a removed one a deficit where its flow went. `resolve` then sends
// flow along shortest residual paths, first from each excess to the nearest deficit or the root,
// then from the root to the remaining deficits, and updates prices meanwhile (path_search.hpp).
// Prices persist from one resolve to the next, so that a small change needs a small search. A solve
// from scratch is the same from x = 0, p = 0.
//
// Root. One node, the largest sink, has price 0 and an implicit imbalance: excesses may go there
// and deficits may draw from there at any time. Since supplies sum to zero, it balances when all
// others do, so the problem is the same. The root spares deciding which excess goes to which
// deficit, and makes changing its supply free. It is chosen again when it is removed, or stops
// being a sink while another node is one.
//
// Correctness and termination. Each augmentation decreases the sum of imbalances by an integer >=
// 1. A search that finds no target proves that the nodes it reaches have more supply than capacity
// out of them: INFEASIBLE. The state stays usable.
//
// Complexity. With B the sum of imbalances, O(B (m + n log n)): pseudo-polynomial in general, meant
// for networks whose sources have supply 1 and whose searches are local. When searches are not
// local and many imbalances remain, the primal-dual algorithm takes over: one search from all of
// them, then all paths of length zero. The number of searches is then also bounded by the number of
// distinct distances.
//
// Start. From scratch, and at the first resolve, sources of one unit are assigned first by a method
// that needs no labels for them (initial_assignment.cpp); the rest is done here. From zero prices,
// an oversubscribed network would raise the price of all capacity once per source too many, so it
// starts from an estimate of the clearing price (start_state.hpp).
//
// Fallback. Shortest paths are slow from scratch on general networks, and on network-aware cells,
// whose searches visit thousands of nodes each. Counted work shows it: once searches have scanned
// every half-edge several times and are not done, another algorithm solves the network from zero
// instead, and an engine begins with its flow and prices. Which one, and how soon, rests on counts
// of the network (fallback.hpp); if those leave no doubt, it begins at once. The work lost is up to
// a quarter of what network simplex takes on small general networks, a tenth of what cost scaling
// takes on network-aware ones. Later rounds, and solves
// from a start, stay with shortest paths. A first resolve that is stopped at a budget continues in
// the same way (FirstSolveEngine in the source file).
//
// Engines. If most arcs belong to unit sources, these are not nodes of the graph
// (unit_sources.hpp, also for keys and their invariant; uniform changes of prices:
// UniformPriceIncrease). SspEngine in the source file handles any network.
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), sections 9.7 (successive shortest
// paths), 9.8 (primal-dual) and 9.11 (sensitivity analysis: the changes above); Gog et al.,
// Firmament, OSDI 2016, section 5.2: incremental solving. Departures: Firmament solves
// incrementally by cost scaling or relaxation; the textbook computes all distances in every search
// and restores optimality after every single change.
#pragma once

#include <memory>

#include "solve.hpp"

namespace flowsolver {

// Solves from scratch or from a start.
Solution solve_incremental_ssp(const Network& network, const Start& start, const Control& control);

// Without flow and prices, the first resolve begins with the initial assignment. Null when
// cancelled meanwhile.
std::unique_ptr<Engine> make_incremental_ssp(const EngineStart& start, const Control& control,
                                             Stats& stats);

}  // namespace flowsolver
