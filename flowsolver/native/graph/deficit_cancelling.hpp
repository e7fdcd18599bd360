// Efficient task removal: deficits that a removed source left on the way its flow used to take go
// on to where the flow ended.
//
// A source of s units is removed, and the sink's supply is raised by s. The node its flow went to
// first now sends out s units more than it gets: a deficit; and the sink gets s units too many: an
// excess. Draining takes s units off the flow from the one to the other, so that every node
// balances again, in time proportional to the way.
//
// Invariant. 0 <= x <= capacity; no excess and no deficit grows. Only tight half-edges (rc = 0)
// lose flow, so a pseudoflow without residual half-edges of negative reduced cost stays so.
//
// Method. From each deficit, depth first over tight half-edges with flow, each node once in all,
// until one with excess is found. Deficits that reach none stay. O(n + m) in all plus the ways.
//
// References. Gog et al., Firmament, OSDI 2016, section 5.3.2. Departure: they remember the removed
// task's way; here any way of flow to an excess does, so that it serves several sinks, capacities
// lowered and arcs removed as well.
#pragma once

#include <span>

#include "graph/arc_graph.hpp"
#include "graph/dynamic_graph.hpp"

namespace flowsolver {

// `price`: per node. Stops early when `control` says so, leaving a valid pseudoflow; kOptimal
// otherwise.
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
