// Incremental cost scaling that keeps its residual graph, flow and prices from one answer to the
// next.
//
// A round whose changes are few is the work of those (local_scaling.hpp). The first, one with very
// many changes, and one in which that takes too long are solved over the whole graph, in place,
// from the flow and prices there are (cost_scaling.hpp). Either ends with whole prices that prove
// the flow optimal.
//
// Budgets. Local phases that are stopped are gone on with. A solve over the whole graph that is
// stopped goes on from its flow and prices, but not from its eps, and need not get on in resolves
// whose budgets are less than its phases take (incremental_solver.hpp knows what to do then).
//
// Range. Local phases are in 64 bits. Where costs are so large (n C K beyond 2^58 or so) that
// prices do not fit, every round is solved over the whole graph, in 128 bits if need be.
//
// Memory: the graph's 44 bytes an arc and its room, 50 bytes a node; more by one byte a half-edge
// and 60 a node during a solve over the whole graph.
//
// References. Gog et al., Firmament, OSDI 2016, sections 5.2 and 6.2. Departures are named in
// local_scaling.hpp.
#pragma once

#include <memory>

#include "engine.hpp"

namespace flowsolver {

// Null: cancelled.
std::unique_ptr<Engine> make_cost_scaling_engine(const EngineStart& start, const Control& control,
                                                 Stats& stats);

}  // namespace flowsolver
