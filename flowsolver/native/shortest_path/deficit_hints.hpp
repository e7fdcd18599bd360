// Deficits shown to those above them: aggregators point down at them, so that a forward search that
// follows current half-edges (path_search.hpp) ends there at once instead of looking through an
// aggregator's arcs; or they are moved up to the aggregators, where all the sources find them that
// have an arc there.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "graph/residual_graph.hpp"
#include "shortest_path/pseudoflow.hpp"
#include "shortest_path/path_search.hpp"

namespace flowsolver {

inline constexpr int kDeficitLevels = 2;

// A half-edge of v whose other end, for which `fans_out` holds, could send flow its way with rc =
// 0; or kNone. Nodes of many half-edges are not looked through.
template <class Value, class FansOut>
std::uint32_t way_up(const ResidualGraph<Value>& graph, NodeId v, const FansOut& fans_out) {
  constexpr std::uint32_t kDegreeLimit = 4096;
  const Node<Value>& node = graph.nodes[v];
  if (node.degree > kDegreeLimit) return kNone;
  for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
    const auto& edge = graph.edges[i];
    const Node<Value>& above = graph.nodes[edge.to];
    if (graph.is_forward(edge) || edge.reverse_residual == 0 || !fans_out(above)) continue;
    if (edge.cost - node.price + above.price == 0) return i;
  }
  return kNone;
}

// `v` has a deficit. Up to two levels of nodes above it get their current half-edge and hops from
// it.
template <class Value, class FansOut>
void point_at_deficit(ResidualGraph<Value>& graph, NodeId v, const FansOut& fans_out) {
  graph.nodes[v].hops[true] = 0;
  for (int level = 0; level < kDeficitLevels; ++level) {
    const std::uint32_t i = way_up(graph, v, fans_out);
    if (i == kNone) return;
    const Node<Value>& node = graph.nodes[v];
    const auto& edge = graph.edges[i];
    Node<Value>& above = graph.nodes[edge.to];
    above.current = graph.position[edge.id ^ 1];
    above.hops[true] =
        static_cast<std::uint8_t>(std::min<unsigned>(node.hops[true] + 1U, HopStacks::kLevels - 1));
    v = edge.to;
  }
}

// `v` has a deficit. What of it can be had from above, up to two levels of nodes, is had from
// there: the deficit is theirs.
template <class Value>
void raise_deficit(FlowMover<Value>& mover, NodeId v, Stats& stats) {
  const ResidualGraph<Value>& graph = mover.graph();
  for (int level = 0; level < kDeficitLevels && graph.nodes[v].imbalance < 0; ++level) {
    const std::uint32_t i = way_up(
        graph, v, [&](const Node<Value>& above) { return &above != &graph.nodes[graph.root()]; });
    if (i == kNone) return;
    const auto edge = graph.edges[i];
    ++stats.pushes;
    mover.add_flow(edge.id >> 1, edge.to, v,
                   std::min<std::int64_t>(-graph.nodes[v].imbalance, edge.reverse_residual));
    v = edge.to;
  }
}

// The way back of flow that came to v over aggregators: over zero-rc half-edges, up to two levels
// of nodes, to a deficit.
template <class Value>
class WayBack {
 public:
  WayBack(const ResidualGraph<Value>& graph, NodeId v) : from_(v) {
    while (steps_ < kDeficitLevels && !found_) {  // bounded: by kDeficitLevels
      const Node<Value>& node = graph.nodes[v];
      const std::uint32_t end = node.begin + node.residual_degree;
      std::uint32_t i = node.begin;
      while (i < end &&
             (graph.is_forward(graph.edges[i]) ||
              graph.edges[i].cost - node.price + graph.nodes[graph.edges[i].to].price != 0)) {
        ++i;
      }
      if (i == end || graph.edges[i].to == graph.root()) return;
      arcs_[steps_] = graph.edges[i].id >> 1;
      nodes_[steps_++] = v = graph.edges[i].to;
      found_ = graph.nodes[v].imbalance < 0;
    }
  }

  bool found() const { return found_; }
  void send_unit(FlowMover<Value>& mover) const {
    NodeId v = from_;
    for (int step = 0; step < steps_; ++step) {
      mover.add_flow(arcs_[step], nodes_[step], v, -1);
      v = nodes_[step];
    }
  }

 private:
  const NodeId from_;
  int steps_ = 0;
  bool found_ = false;
  std::array<ArcId, kDeficitLevels> arcs_;
  std::array<NodeId, kDeficitLevels> nodes_;
};

}  // namespace flowsolver
