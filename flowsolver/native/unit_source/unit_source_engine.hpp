// The engine of incremental successive shortest paths (incremental_ssp.hpp) for networks most of
// whose arcs belong to unit sources, that is, to tasks. These are not nodes of the graph
// (unit_sources.hpp). So a search visits machines and aggregators only, and at each of them only
// those tasks whose next best place is within its distance bound.
//
// A source that gets another supply, an arc in, or an arc without capacity becomes a core node for
// the rest of its life.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "control.hpp"
#include "solve.hpp"
#include "network.hpp"

namespace flowsolver {

std::unique_ptr<Engine> make_unit_source_engine(const EngineStart& start, const Control& control);

// Whether most arcs belong to unit sources.
bool mostly_unit_sources(const EngineStart& start, const Control& control);

// The first stage of a solve from scratch (initial_assignment.cpp).
struct InitialAssignment {
  // kOptimal: see `complete`. kInfeasible, kBudget: the state reached. kCancelled
  Status status = Status::kOptimal;
  bool complete = false;  // whether no imbalance is left
  bool local = true;      // false: given up, because searches went far
  __int128 cost = 0;      // of `flow`
  // per arc; empty, like the price, if nothing was done or the result is of no use
  std::vector<std::int64_t> flow;
  std::vector<std::int64_t> price;  // per node
};

// Precondition: numbers are in range and supplies balance. `narrow`: see Ranges (network.hpp).
InitialAssignment assign_unit_sources(const Network& network, NodeId root, bool narrow,
                                      const Control& control, Stats& stats);

}  // namespace flowsolver
