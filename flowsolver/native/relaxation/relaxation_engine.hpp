// Incremental relaxation: the graph with its prices, lists and hops (balanced_graph.hpp) is kept
// from round to round, so that a round's work is that of its changes. Definitions and the method
// from scratch: relaxation.hpp.
//
// Invariant, between the runs of a solved network: reduced-cost optimality. So what a change breaks
// is seen at the arcs and nodes it names, and nowhere else.
//
// Root. The first solve is relaxation's own, with the sink as any other node. From its optimum on
// the largest sink is a root: all excess may end there and all deficits draw from there, its own
// imbalance is what the others leave and needs no step. A batch of arrivals and departures then
// makes no set grow from the sink, which all of the network hangs on. Its price stays, so that
// prices relative to it, which are what is reported, move only where the method moves them.
//
// Round.
//   1. Mending. A new node gets the highest price that its residual arcs out suit. A source (a node
//   without arcs in) whose
//      arcs changed moves its price to where all of them suit, if there is such a place: a waiting
//      task's dearer arc moves nothing else. Else the changed arcs with rc < 0 are filled, those
//      with rc > 0 emptied.
//   2. Deficits are traced back along the flow that used to leave them (deficit_routing.hpp).
//   3. Excesses are brought to deficits or to the root by the iterations of relaxation
//   (dual_ascent.hpp).
//   4. Deficits that are left are met from the root, one by one (deficit_routing.hpp). Once that
//   has looked at four times as
//      many half-edges as there are, the rest is done as in a first solve: the root is a node with
//      excess. All prices relative to it may move then.
//
// Termination. Steps 1 and 2 take a step per change, and per arc that flow is taken off. In step 3
// the root wants whatever comes: it is relaxation with one deficit that is large enough. Each pull
// takes from the deficits. kInfeasible: a set with excess that no residual arc leaves, or with a
// deficit that none enters, the root not in it. Changes may put that right.
//
// Stopped. A cancelled run leaves what a run at its budget leaves: flow within capacities, known
// excesses, prices that suit but for what is yet to be mended. A run stops at its budget only once
// an iteration has come to an end, so that the same small budget, again and again, ends at the
// optimum. A set that is cancelled is settled first, O(its members).
//
// Range. Prices rise in step 3 and fall in step 4; close_gaps (price_passes.hpp) brings them back
// when one is beyond 2^60.
//
// Complexity. That of relaxation in the worst case. Below full, a departure takes a look at the
// machine's arcs and one push per arc of its way, an arrival a look at its arcs and those of a
// handful of machines. At and above full, a departure makes those move up who gain most; the search
// for them visits all whose gain is less.
//
// References. Gog et al., Firmament, OSDI 2016, sections 5.2 and 5.3.2. Departure: theirs does not
// run relaxation incrementally in the end, because the state it goes on from holds large components
// of zero reduced cost that it has to go through. Here sources are loosened, sets stay through
// raises, and what a departure leaves is met from there.
#pragma once

#include <memory>

#include "engine.hpp"

namespace flowsolver {

// Null when cancelled meanwhile.
std::unique_ptr<Engine> make_relaxation_engine(const EngineStart& start, const Control& control,
                                               Stats& stats);

}  // namespace flowsolver
