// Incremental relaxation: the graph with its prices, lists and hops (balanced_graph.hpp) persists
// from round to round, so that the work of a round depends on its changes. Definitions and the
// method from scratch: relaxation.hpp.
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
// 2. Deficits are cancelled along the flow that used to leave them (deficit_routing.hpp).
// 3. Excesses are routed to deficits or to the root by the iterations of relaxation
//    (dual_ascent.hpp).
// 4. Remaining deficits are routed from the root, one by one (deficit_routing.hpp). Once that has
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
// Range. Prices rise in step 3 and fall in step 4; close_gaps (price_passes.hpp) brings them back
// when one exceeds 2^60.
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
#pragma once

#include <memory>

#include "engine.hpp"

namespace flowsolver {

// Null when cancelled meanwhile.
std::unique_ptr<Engine> make_relaxation_engine(const EngineStart& start, const Control& control,
                                               Stats& stats);

}  // namespace flowsolver
