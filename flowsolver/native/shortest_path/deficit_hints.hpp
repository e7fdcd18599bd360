// Guides searches to deficits. Either the current arcs of the aggregators above a deficit are made
// to lead to it, so that a forward search that follows them (path_search.hpp) ends there without
// scanning the aggregators' arcs; or the deficit is moved up to an aggregator, where all sources
// with an arc to it find it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "graph/residual_graph.hpp"
#include "shortest_path/pseudoflow.hpp"
#include "shortest_path/path_search.hpp"

namespace flowsolver {

inline constexpr int kHintLevels = 2;

// A half-edge of v whose other end could send flow to v at rc = 0 and satisfies `is_predecessor`;
// or kNone. Nodes with many half-edges are not scanned.
template <class Value, class IsPredecessor>
std::uint32_t tight_predecessor(const ResidualGraph<Value>& graph, NodeId v,
                                const IsPredecessor& is_predecessor) {
  constexpr std::uint32_t kDegreeLimit = 4096;
  const Node<Value>& node = graph.nodes[v];
  if (node.degree > kDegreeLimit) return kNone;
  for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
    const auto& edge = graph.edges[i];
    const Node<Value>& above = graph.nodes[edge.to];
    if (graph.is_forward(edge) || edge.reverse_residual == 0 || !is_predecessor(above)) continue;
    if (edge.cost - node.price + above.price == 0) return i;
  }
  return kNone;
}

// `v` has a deficit. Sets the current arcs and hops of up to kHintLevels nodes above it.
template <class Value, class IsPredecessor>
void hint_at_deficit(ResidualGraph<Value>& graph, NodeId v, const IsPredecessor& is_predecessor) {
  graph.nodes[v].hops[true] = 0;
  for (int level = 0; level < kHintLevels; ++level) {
    const std::uint32_t i = tight_predecessor(graph, v, is_predecessor);
    if (i == kNone) return;
    const Node<Value>& node = graph.nodes[v];
    const auto& edge = graph.edges[i];
    Node<Value>& above = graph.nodes[edge.to];
    above.current = graph.position[edge.id ^ 1];
    above.hops[true] = static_cast<std::uint8_t>(
        std::min<unsigned>(node.hops[true] + 1U, HopBuckets::kLevels - 1));
    v = edge.to;
  }
}

// `v` has a deficit. Moves as much of it as possible up to kHintLevels nodes up.
template <class Value>
void move_deficit_up(Pseudoflow<Value>& pseudoflow, NodeId v, Stats& stats) {
  const ResidualGraph<Value>& graph = pseudoflow.graph();
  for (int level = 0; level < kHintLevels && graph.nodes[v].imbalance < 0; ++level) {
    const std::uint32_t i = tight_predecessor(
        graph, v, [&](const Node<Value>& above) { return &above != &graph.nodes[graph.root()]; });
    if (i == kNone) return;
    const auto edge = graph.edges[i];
    ++stats.pushes;
    pseudoflow.add_flow(edge.id >> 1, edge.to, v,
                        std::min<std::int64_t>(-graph.nodes[v].imbalance, edge.reverse_residual));
    v = edge.to;
  }
}

// The path by which a unit that arrived at v can be sent back: over zero-rc half-edges, up to
// kHintLevels, to a deficit.
template <class Value>
class ReturnPath {
 public:
  ReturnPath(const ResidualGraph<Value>& graph, NodeId v) : from_(v) {
    while (steps_ < kHintLevels && !found_) {  // bounded: by kHintLevels
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
  void send_unit(Pseudoflow<Value>& pseudoflow) const {
    NodeId v = from_;
    for (int step = 0; step < steps_; ++step) {
      pseudoflow.add_flow(arcs_[step], nodes_[step], v, -1);
      v = nodes_[step];
    }
  }

 private:
  const NodeId from_;
  int steps_ = 0;
  bool found_ = false;
  std::array<ArcId, kHintLevels> arcs_;
  std::array<NodeId, kHintLevels> nodes_;
};

}  // namespace flowsolver
