// Which algorithm solves a network from scratch whose shortest paths go far: the second half of the
// default algorithm (incremental_ssp.hpp, "Fallback").
//
// The choice rests on counts of the network alone, so that it is the same everywhere. The first
// that applies:
// - A scheduling graph: at least half of its sources are tasks (supply 1, no arcs in). Cost
//   scaling, once searches have scanned every half-edge 8 times.
// - Nearly a tree (network_shape.hpp): network simplex, from a flow.
// - A road network (at most 4 arcs per node, at least half of them with an arc back) with few
//   supplies (fewer than one node in 100 has one): relaxation, whose work is near the few sources.
// - A large network: 6 to 100 arcs per node, and 65,536 nodes, or 24,576 with few supplies. Cost
//   scaling: the pivots of network simplex grow with the nodes, and so does what each costs.
// - Any other network: network simplex, from a star (star_simplex.hpp).
//
// Nearly trees, roads with few supplies, and networks whose supplies may need no more than four
// paths are searched first, but only as long as searches keep pace (Fallback::keeps_pace): most are
// given up after a part of a pass over the arcs. All other networks but scheduling graphs are not
// searched at all.
//
// The measurements behind this: docs/solver.md, "General networks".
#pragma once

#include <cstdint>

#include "solve.hpp"

namespace flowsolver {

struct Fallback {
  Method method;            // from a start, or none
  std::int64_t max_scans;   // half-edges that searches may scan before it takes over; 0: it begins
  bool keeps_pace = false;  // searches end earlier if they scan more than their share of it
};

// Throws Stopped when cancelled.
Fallback choose_fallback(const Network& network, const Control& control);

}  // namespace flowsolver
