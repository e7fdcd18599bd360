// The engine of incremental successive shortest paths (incremental_ssp.hpp) for networks most of
// whose arcs belong to unit sources, that is, to tasks. These are not nodes of the graph
// (unit_sources.hpp). So a search visits machines and aggregators only, and at each of them only
// those tasks whose next best place is within its distance bound.
//
// A source that gets another supply, an arc in, or an arc without capacity becomes a core node for
// the rest of its life.
#pragma once

#include <memory>

#include "engine.hpp"

namespace flowsolver {

std::unique_ptr<Engine> make_unit_source_engine(const EngineStart& start, const Control& control);

// Whether most arcs belong to unit sources.
bool mostly_unit_sources(const EngineStart& start, const Control& control);

}  // namespace flowsolver
