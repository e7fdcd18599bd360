// Incremental successive shortest paths with persistent prices.
//
// Definitions and signs are network.hpp's: rc = cost - p[tail] + p[head]; imbalance = supply +
// inflow - outflow.
//
// Method. The state is a pseudoflow (0 <= x <= capacity, imbalances allowed) and prices with the
// invariant
//     rc >= 0 on every residual arc,
// so that whenever all imbalances are zero the flow is optimal. A change to the network (nodes,
// arcs, capacities, costs, supplies) keeps or repairs the invariant locally and leaves imbalances:
// a new task an excess, a removed one a deficit where its flow used to go. `resolve` then sends
// flow along shortest residual paths, first from each excess to the nearest deficit or the root,
// then from the root to the deficits left, moving prices as it goes (path_search.hpp). Prices stay
// from one resolve to the next, so a small change needs a small search. A solve from scratch is the
// same from x = 0, p = 0.
//
// Root. One node, the largest sink, has price 0 and an implicit imbalance: excesses may go there
// and deficits draw from there at any time. Since supplies sum to zero it balances when all others
// do, so this does not change what is solved; it spares deciding which excess meets which deficit,
// and makes changing the root's supply free. The root is chosen anew when it is removed, or stops
// being a sink while another node is one.
//
// Correctness and termination. Each augmentation lessens the sum of imbalances by an integer >= 1;
// a search that finds no target proves that the reached side has more supply than its outgoing
// capacity: INFEASIBLE. The state stays usable.
//
// Complexity. With B the sum of imbalances, O(B (m + n log n)): pseudo-polynomial in general, meant
// for networks whose sources have supply 1 and whose searches are local. When searches stop being
// local and many imbalances remain, the primal-dual variant takes over: one search from all of
// them, then all zero-length paths; the number of searches is then bounded by the number of
// distinct distances as well.
//
// Start. From scratch, and at the first resolve, sources of one unit are placed first by a method
// that needs no labels for them (initial_assignment.hpp); what it leaves undone is done here. An
// oversubscribed start from zero prices would raise the price of all room once per source too many;
// it starts from an estimate of the clearing price instead (price_estimate.hpp).
//
// Where shortest paths are the wrong method from scratch: general networks with thousands of
// sources, and network-aware cells, whose searches each visit thousands of nodes. That shows in
// what is counted: once searches have looked at every half-edge several times over, and are not
// done, cost scaling (cost_scaling.hpp) solves the network from nothing instead, and an engine
// begins with its flow and prices. The most that was spent in vain is a few hundredths of what cost
// scaling takes on general networks, a tenth on network-aware ones. Rounds of changes later, and
// solves from a start, stay with shortest paths. A first resolve stopped at a budget is gone on
// with in the same way (first_solve_engine.hpp).
//
// Engines. Where most arcs are unit sources', these are no nodes but carried by where they went
// (unit_source_engine.hpp; keys and their invariant: unit_sources.hpp; the dearer by one at once:
// uniform_price_increase.hpp); ssp_engine.hpp does any network.
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), sections 9.7 (successive shortest
// paths), 9.8 (primal-dual) and 9.11 (sensitivity analysis: the changes above). Gog et al.,
// Firmament, OSDI 2016, section 5.2: incremental solving. Departures: Firmament solves
// incrementally by cost scaling or relaxation; the textbook computes all distances in every search
// and restores optimality after every single change.
#pragma once

#include <memory>

#include "engine.hpp"
#include "method.hpp"

namespace flowsolver {

// From scratch, or from a start.
Solution solve_incremental_ssp(const Network& network, const Start& start, const Control& control);

// Without flow and prices the first resolve starts by placing sources. Null when cancelled
// meanwhile.
std::unique_ptr<Engine> make_incremental_ssp(const EngineStart& start, const Control& control,
                                             Stats& stats);

}  // namespace flowsolver
