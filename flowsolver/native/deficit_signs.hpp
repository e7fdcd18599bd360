// Lets aggregators point down at deficits, so that a forward search that follows current half-edges (path_search.hpp) ends there
// at once instead of looking through an aggregator's arcs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "path_search.hpp"
#include "residual_graph.hpp"

namespace flowsolver {

// `v` has a deficit. Up to two levels of nodes above it that send flow its way over zero-rc half-edges, and for which `fans_out`
// holds, get their current half-edge and hops from it. Ends at nodes of many half-edges, which are not looked through.
template <class Value, class FansOut>
void point_at_deficit(ResidualGraph<Value>& graph, NodeId v, const FansOut& fans_out) {
  constexpr int kLevelsUp = 2;
  constexpr std::uint32_t kDegreeLimit = 4096;
  graph.nodes[v].hops[true] = 0;
  for (int level = 0; level < kLevelsUp && graph.nodes[v].degree <= kDegreeLimit; ++level) {
    const Node<Value>& node = graph.nodes[v];
    const std::uint32_t end = node.begin + node.degree;
    std::uint32_t i = node.begin;
    for (; i < end; ++i) {
      const auto& edge = graph.edges[i];
      const Node<Value>& above = graph.nodes[edge.to];
      if (graph.is_forward(edge) || edge.reverse_residual == 0 || !fans_out(above)) continue;
      if (edge.cost - node.price + above.price == 0) break;
    }
    if (i == end) return;
    const auto& edge = graph.edges[i];
    Node<Value>& above = graph.nodes[edge.to];
    above.current = graph.position[edge.id ^ 1];
    above.hops[true] = static_cast<std::uint8_t>(std::min<unsigned>(node.hops[true] + 1U, HopStacks::kLevels - 1));
    v = edge.to;
  }
}

}  // namespace flowsolver
