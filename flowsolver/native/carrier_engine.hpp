// The working state of the incremental successive shortest path method (incremental_ssp.hpp) on networks most of whose arcs are
// unit sources': tasks. They are carried (carried_sources.hpp), so that a search meets machines and aggregators only, and at
// each of them only the tasks whose next best place is within its bound.
//
// A source that gets another supply, an arc in, or an arc without capacity becomes an ordinary node for the rest of its life.
#pragma once

#include <memory>

#include "engine.hpp"

namespace flowsolver {

std::unique_ptr<Engine> make_carrier_engine(const EngineStart& start);

// Whether most arcs are unit sources'.
bool mostly_unit_sources(const EngineStart& start);

}  // namespace flowsolver
