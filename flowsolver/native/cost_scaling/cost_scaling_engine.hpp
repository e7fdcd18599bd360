// Incremental cost scaling that keeps its residual graph, flow and prices from one answer to the
// next.
//
// A round of few changes takes work proportional to those (local_scaling.hpp). The first round, a
// round with very many changes, and a round in which local work takes too long are solved over the
// whole graph, in place, from the current flow and prices (cost_scaling.hpp). Both ways end with
// whole prices that prove the flow optimal.
//
// Budgets. Local phases that are stopped are continued. A solve over the whole graph that is
// stopped continues from its flow and prices, but not from its eps, and need not make progress in
// resolves whose budgets are shorter than its phases (incremental_solver.hpp handles that).
//
// Range. Local phases use 64 bits. If costs are so large (n C K beyond about 2^58) that prices do
// not fit, every round is solved over the whole graph, in 128 bits if necessary.
//
// Memory: the graph's 44 bytes an arc and its spare room, 50 bytes a node; during a solve over the
// whole graph one byte more a half-edge and 60 a node.
//
// References. Gog et al., Firmament, OSDI 2016, sections 5.2 and 6.2. Departures are listed in
// local_scaling.hpp.
#pragma once

#include <memory>

#include "engine.hpp"

namespace flowsolver {

// Null: cancelled.
std::unique_ptr<Engine> make_cost_scaling_engine(const EngineStart& start, const Control& control,
                                                 Stats& stats);

}  // namespace flowsolver
