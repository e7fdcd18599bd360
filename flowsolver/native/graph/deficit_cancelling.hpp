// Efficient task removal: the deficit that a removed source leaves is moved along the flow it used
// to send, to where that flow ended.
//
// When a source of s units is removed, the sink's supply is raised by s. The node that its flow
// reached first now sends s units more than it receives, a deficit, and the sink receives s units
// too many, an excess. Cancelling takes s units of flow off the path from one to the other, so that
// all nodes balance again, in time proportional to the path.
//
// Invariant. 0 <= x <= capacity; no excess and no deficit grows. Only tight half-edges (rc = 0)
// lose flow. So a pseudoflow without residual half-edges of negative reduced cost keeps that
// property.
//
// Method. Depth-first search from each deficit over tight half-edges with flow, visiting each node
// once in all, until a node with excess is found. Deficits that reach none stay. O(n + m) in all,
// plus the paths.
//
// References. Gog et al., Firmament, OSDI 2016, section 5.3.2. Departure: the paper stores the
// removed task's path. Here any path of flow to an excess serves, so that several sinks, lowered
// capacities and removed arcs are handled as well.
#pragma once

#include <span>

#include "graph/arc_graph.hpp"
#include "graph/dynamic_graph.hpp"

namespace flowsolver {

// `price`: per node. kOptimal, or stopped early by `control`, leaving a valid pseudoflow.
template <class Graph>
Status cancel_deficits(Graph& graph, std::span<const std::int64_t> price, const Control& control,
                       Stats& stats);

extern template Status cancel_deficits(ArcGraph<std::int32_t>&, std::span<const std::int64_t>,
                                       const Control&, Stats&);
extern template Status cancel_deficits(ArcGraph<std::int64_t>&, std::span<const std::int64_t>,
                                       const Control&, Stats&);
extern template Status cancel_deficits(DynamicGraph<std::int32_t>&, std::span<const std::int64_t>,
                                       const Control&, Stats&);
extern template Status cancel_deficits(DynamicGraph<std::int64_t>&, std::span<const std::int64_t>,
                                       const Control&, Stats&);

}  // namespace flowsolver
