// Hops: the estimated number of zero-rc half-edges from a node to a target of path_search.hpp.
//
// A search learns hops: each node that it settles gets one more than the least of the nodes it
// leads to at distance zero. Hops order nodes at equal distance, where any estimate is allowed.
// Here they are computed for many nodes at once, by breadth-first search backward from the targets,
// when the learned ones have become useless or must be exact.
#pragma once

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "graph/residual_graph.hpp"

namespace flowsolver {

// Nodes waiting at the distance being settled, in buckets by hops; last in first out within a
// bucket.
class HopBuckets {
 public:
  static constexpr unsigned kLevels = 64;
  void clear() {
    // bounded: by the bits of occupied_
    for (; occupied_ != 0; occupied_ &= occupied_ - 1)
      buckets_[std::countr_zero(occupied_)].clear();
  }
  void push(NodeId v, unsigned hops) {
    const unsigned level = std::min(hops, kLevels - 1);
    buckets_[level].push_back(v);
    occupied_ |= std::uint64_t{1} << level;
  }
  bool empty() const { return occupied_ == 0; }
  NodeId pop() {
    const int level = std::countr_zero(occupied_);
    const NodeId v = buckets_[level].back();
    buckets_[level].pop_back();
    if (buckets_[level].empty()) occupied_ &= ~(std::uint64_t{1} << level);
    return v;
  }

 private:
  std::vector<NodeId> buckets_[kLevels];
  std::uint64_t occupied_ = 0;
};

template <class Graph, bool kForward>
class HopLabels {
 public:
  using Value = typename Graph::Value;
  static constexpr unsigned kFar = HopBuckets::kLevels - 2;

  // Computes the hops of all nodes. O(n + m). check() is called regularly.
  template <class Check>
  void relabel(Graph& graph, Stats& stats, Check check);
  // The same for the nodes around some targets, until `most` of them are labelled; all other
  // `nodes` get kFar. `stamp`: of a search that has not labelled any node.
  void label_near_targets(Graph& graph, std::span<const NodeId> nodes,
                          std::span<const NodeId> targets, std::size_t most, std::uint32_t stamp,
                          Stats& stats);
  // After `relabel`: whether a target can be reached at distance 0.
  static bool reaches_target(const Node<Value>& node) {
    return has_target_arc(node) || node.hops[kForward] < kUnreached;
  }

  // Whether the node is a target, or its arc to the root is tight and leads to one.
  static bool has_target_arc(const Node<Value>& node) {
    if (kForward ? node.imbalance < 0 : node.imbalance > 0) return true;
    return (kForward ? node.root_residual > 0 : node.root_flow > 0) && node.root_cost == node.price;
  }

 private:
  static constexpr std::uint8_t kUnreached = 255;

  template <class Known, class Visit>
  void for_each_tight_predecessor(Graph& graph, NodeId v, Stats& stats, Known known, Visit visit);

  std::vector<NodeId> reached_;
};

// Calls visit(u) for the nodes u from which a search reaches v at distance zero. Nodes with
// `known(u)` may be skipped.
template <class Graph, bool kForward>
template <class Known, class Visit>
void HopLabels<Graph, kForward>::for_each_tight_predecessor(Graph& graph, NodeId v, Stats& stats,
                                                            Known known, Visit visit) {
  const Node<Value>& node = graph.nodes[v];
  const std::int64_t price = node.price;
  const std::uint32_t end = node.begin + (kForward ? node.degree : node.residual_degree);
  for (std::uint32_t i = node.begin; i < end; ++i) {
    const auto& edge = graph.edges[i];
    if (known(edge.to)) continue;
    if ((kForward ? edge.reverse_residual : edge.residual) == 0) continue;
    if (edge.cost - price + graph.nodes[edge.to].price != 0) continue;
    visit(edge.to);
  }
  stats.scanned += end - node.begin;
  if constexpr (Graph::kHasUnitSources) {
    if constexpr (kForward) {
      graph.visit_incoming(
          v, [price] { return 1 - price; },
          [&](std::uint32_t arc, std::int64_t bound, NodeId lead) {
            ++stats.scanned;
            if (lead != kNone && known(lead)) return bound;
            const std::uint32_t now = graph.current_arc(graph.source_of(arc));
            if (now == kNone) return bound;
            const auto& present = graph.source_arcs[now];
            const std::int64_t key = std::int64_t{graph.source_arcs[arc].cost} - present.cost -
                                     graph.nodes[present.head].price;
            if (key + price == 0 && !known(present.head)) visit(present.head);
            return key;
          });
    } else {
      graph.visit_assigned(
          v, [price] { return price + 1; },
          [&](std::uint32_t source, std::int64_t, NodeId) {
            const auto [first, last] = graph.arcs_of(source);
            const std::uint32_t now = graph.current_arc(source);
            std::int64_t nearest = kInfinity;
            for (std::uint32_t i = first; i < last; ++i) {
              if (i == now) continue;
              const auto& arc = graph.source_arcs[i];
              const std::int64_t key = std::int64_t{arc.cost} + graph.nodes[arc.head].price -
                                       graph.source_arcs[now].cost;
              nearest = std::min(nearest, key);
              if (key == price && !known(arc.head)) visit(arc.head);
            }
            stats.scanned += last - first;
            return nearest;
          });
    }
  }
}

template <class Graph, bool kForward>
template <class Check>
void HopLabels<Graph, kForward>::relabel(Graph& graph, Stats& stats, Check check) {
  reached_.clear();
  for (NodeId v = 0; v < graph.num_nodes(); ++v) {
    Node<Value>& node = graph.nodes[v];
    const bool target = v == graph.root() || has_target_arc(node);
    node.hops[kForward] = target ? 0 : kUnreached;
    if (target) reached_.push_back(v);
  }
  for (std::size_t next = 0; next < reached_.size(); ++next) {
    const auto hops = static_cast<std::uint8_t>(
        std::min<unsigned>(graph.nodes[reached_[next]].hops[kForward] + 1U, kUnreached - 1));
    for_each_tight_predecessor(
        graph, reached_[next], stats,
        [&](NodeId v) { return graph.nodes[v].hops[kForward] != kUnreached; },
        [&](NodeId v) {
          graph.nodes[v].hops[kForward] = hops;
          reached_.push_back(v);
        });
    check();
  }
}

template <class Graph, bool kForward>
void HopLabels<Graph, kForward>::label_near_targets(Graph& graph, std::span<const NodeId> nodes,
                                                    std::span<const NodeId> targets,
                                                    std::size_t most, std::uint32_t stamp,
                                                    Stats& stats) {
  for (NodeId v : nodes) graph.nodes[v].hops[kForward] = kFar;
  reached_.clear();
  const auto mark = [&](NodeId v, unsigned hops) {
    Node<Value>& node = graph.nodes[v];
    node.stamp = stamp;
    node.distance = 0;
    node.hops[kForward] = static_cast<std::uint8_t>(std::min(hops, kFar));
    reached_.push_back(v);
  };
  for (NodeId v : targets) mark(v, 0);
  most += reached_.size();
  for (std::size_t next = 0; next < reached_.size() && reached_.size() < most; ++next) {
    const unsigned hops = graph.nodes[reached_[next]].hops[kForward] + 1U;
    for_each_tight_predecessor(
        graph, reached_[next], stats, [&](NodeId v) { return graph.nodes[v].stamp == stamp; },
        [&](NodeId v) { mark(v, hops); });
  }
}

}  // namespace flowsolver
