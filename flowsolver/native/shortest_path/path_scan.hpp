// What a path search (path_search.hpp, which includes this file at its end) does at a node: labels
// it, tests whether it is a target, follows current arcs from it, and scans its half-edges and unit
// sources.
#pragma once

namespace flowsolver {

// Whether v is a target itself. If its arc to the root leads to one, that is recorded too.
template <class Graph, bool kForward>
inline bool PathSearch<Graph, kForward>::test_target(const Graph& graph, const Node<Value>& node,
                                                     NodeId v, std::int64_t distance) {
  if (v == graph.root() || (kForward ? node.imbalance < 0 : node.imbalance > 0)) {
    bound_ = distance;
    target_ = {v, false, distance};
    return true;
  }
  if (kForward ? node.root_residual > 0 : node.root_flow > 0) {
    const std::int64_t there =
        distance + (kForward ? node.root_cost - node.price : node.price - node.root_cost);
    if (there < bound_) {
      bound_ = there;
      target_ = {v, true, there};
    }
  }
  return false;
}

// Returns whether v must be settled later.
template <class Graph, bool kForward>
inline bool PathSearch<Graph, kForward>::label(Graph& graph, NodeId v, std::int64_t distance,
                                               std::uint32_t parent) {
  Node<Value>& node = graph.nodes[v];
  if ((node.stamp == stamp_ && node.distance <= distance) || (node.flags & kDead) != 0)
    return false;
  node.stamp = stamp_;
  node.distance = distance;
  node.parent = parent;
  node.settled = false;
  if (test_target(graph, node, v, distance)) return false;
  if constexpr (kForward || !Graph::kHasUnitSources) {
    if (distance < bound_ && (node.flags & kInterior) != 0) follow_current_arcs(graph, v, distance);
  }
  return distance < bound_;
}

template <class Graph, bool kForward>
void PathSearch<Graph, kForward>::follow_current_arcs(Graph& graph, NodeId v,
                                                      std::int64_t distance) {
  for (int step = 0; step < kChainLimit; ++step) {
    const Node<Value>& from = graph.nodes[v];
    if (from.current < from.begin ||
        from.current >= from.begin + (kForward ? from.residual_degree : from.degree))
      return;
    const auto& edge = graph.edges[from.current];
    if (!kForward && edge.reverse_residual == 0) return;
    Node<Value>& node = graph.nodes[edge.to];
    if (edge.cost - from.price + node.price != 0) return;
    if ((node.stamp == stamp_ && node.distance <= distance) || (node.flags & kDead) != 0) return;
    node.stamp = stamp_;
    node.distance = distance;
    node.parent = from.current;
    node.settled = false;
    v = edge.to;
    if (test_target(graph, node, v, distance)) return;
    if (distance >= bound_) return;
    chain_.push_back(v);
  }
}

template <class Graph, bool kForward>
inline void PathSearch<Graph, kForward>::enqueue(const Node<Value>& node, NodeId v) {
  if (node.distance == current_) {
    ties_.push(v, node.hops[kForward]);
  } else {
    heap_.push_back({node.distance, v});
    std::push_heap(heap_.begin(), heap_.end());
  }
}

// Labels v if this path of length `distance` is shorter, and enqueues it.
template <class Graph, bool kForward>
inline void PathSearch<Graph, kForward>::relabel_and_enqueue(Graph& graph, NodeId v,
                                                             std::int64_t distance,
                                                             std::uint32_t parent, unsigned& hops) {
  const Node<Value>& node = graph.nodes[v];
  if (distance == current_)
    hops = std::min<unsigned>(hops, has_target_arc(node) ? 0 : node.hops[kForward]);
  if (distance >= bound_) return;
  if (label(graph, v, distance, parent)) enqueue(node, v);
  enqueue_chain(graph);
}

template <class Graph, bool kForward>
inline void PathSearch<Graph, kForward>::enqueue_chain(const Graph& graph) {
  for (NodeId v : chain_) {
    if (graph.nodes[v].distance < bound_) enqueue(graph.nodes[v], v);
  }
  chain_.clear();
}

template <class Graph, bool kForward>
inline void PathSearch<Graph, kForward>::scan_edge(Graph& graph, std::uint32_t index,
                                                   std::int64_t base, unsigned& hops) {
  const auto& edge = graph.edges[index];
  if constexpr (!kForward) {
    if (edge.reverse_residual <= 0) return;
  }
  const std::int64_t step = edge.cost + graph.nodes[edge.to].price;
  relabel_and_enqueue(graph, edge.to, kForward ? base + step : base - step, index, hops);
}

// Forward: the sources assigned to u can move to their other heads. Backward: the sources with an
// arc to u can move to u.
template <class Graph, bool kForward>
void PathSearch<Graph, kForward>::scan_assigned(Graph& graph, NodeId u, std::int64_t base,
                                                unsigned& hops, Stats& stats) {
  const auto limit = [this, base] {
    if (bound_ <= current_) return -kInfinity;
    return bound_ == kInfinity ? kInfinity : bound_ - base;
  };
  if constexpr (kForward) {
    graph.visit_assigned(u, limit, [&](std::uint32_t source, std::int64_t, NodeId) {
      const auto [begin, end] = graph.arcs_of(source);
      const std::uint32_t now = graph.current_arc(source);
      const std::int64_t before = base - graph.source_arcs[now].cost;
      std::int64_t nearest = kInfinity;
      for (std::uint32_t i = begin; i < end; ++i) {
        if (i == now) continue;
        const auto& arc = graph.source_arcs[i];
        const std::int64_t distance = before + arc.cost + graph.nodes[arc.head].price;
        nearest = std::min(nearest, distance);
        relabel_and_enqueue(graph, arc.head, distance, Graph::parent_of_move(source, i), hops);
      }
      stats.scanned += end - begin;
      check(stats);
      return nearest == kInfinity ? kInfinity : nearest - base;
    });
  } else {
    graph.visit_incoming(u, limit, [&](std::uint32_t arc, std::int64_t bound, NodeId lead) {
      ++stats.scanned;
      check(stats);
      // Most lead to nodes that the search has labelled: they need not be read. The bound may be
      // infinite.
      if (lead != kNone) {
        const Node<Value>& there = graph.nodes[lead];
        if (there.stamp == stamp_ && there.distance - base <= bound) {
          if (there.distance == current_) hops = std::min<unsigned>(hops, there.hops[kForward]);
          return bound;
        }
      }
      const auto& present = graph.source_arcs[graph.current_arc(graph.source_of(arc))];
      const std::int64_t key = std::int64_t{graph.source_arcs[arc].cost} - present.cost -
                               graph.nodes[present.head].price;
      relabel_and_enqueue(graph, present.head, base + key, Graph::encode_parent(arc), hops);
      return key;
    });
  }
}

template <class Graph, bool kForward>
void PathSearch<Graph, kForward>::scan(Graph& graph, NodeId u, Stats& stats) {
  Node<Value>& node = graph.nodes[u];
  const std::uint32_t begin = node.begin;
  const std::uint32_t end = begin + (kForward ? node.residual_degree : node.degree);
  const std::int64_t base = kForward ? current_ - node.price : current_ + node.price;
  unsigned hops = HopLabels<Graph, kForward>::kFar;
  // Starts at the current arc and wraps around to it.
  std::uint32_t start = begin;
  if constexpr (kForward) {
    if ((node.flags & kInterior) != 0 && node.current > begin && node.current < end)
      start = node.current;
  }
  std::uint32_t index = start;
  for (; index < end && bound_ > current_; ++index) scan_edge(graph, index, base, hops);
  stats.scanned += index - start;
  if (bound_ > current_) {
    for (index = begin; index < start && bound_ > current_; ++index)
      scan_edge(graph, index, base, hops);
    stats.scanned += index - begin;
  }
  if constexpr (Graph::kHasUnitSources) {
    if (bound_ > current_) scan_assigned(graph, u, base, hops, stats);
  }
  node.hops[kForward] = static_cast<std::uint8_t>(hops + 1);
}

}  // namespace flowsolver
