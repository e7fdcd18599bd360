// Which algorithm solves a network from scratch whose shortest paths go far: the second half of the
// default algorithm (incremental_ssp.hpp, "Fallback").
//
// The choice rests on counts of the network alone, so that it is the same everywhere:
// - A scheduling graph: at least half of its sources are tasks (supply 1, no arcs in). Cost
//   scaling, once searches have scanned every half-edge 8 times.
// - A road network: at most 4 arcs per node, and at least half of them have an arc back. Flow goes
//   far over few ways, on which cost scaling's prices creep. If an eighth of the nodes or more have
//   supplies, network simplex, whose pivots move flow along long paths at once; else relaxation,
//   whose work is near the few sources.
// - Any other network: cost scaling.
// Where the graph is not a scheduling graph, searches must also keep pace (Fallback::keeps_pace):
// most such networks are given up after one pass over the arcs.
//
// The measurements behind this: docs/solver.md, "General networks".
#pragma once

#include <cstdint>

#include "solve.hpp"

namespace flowsolver {

struct Fallback {
  Method method;            // from a start, or none
  std::int64_t max_scans;   // half-edges that searches may scan before it takes over
  bool keeps_pace = false;  // searches end earlier if they scan more than their share of it
};

// Throws Stopped when cancelled.
Fallback choose_fallback(const Network& network, const Control& control);

}  // namespace flowsolver
