// Hops: how many steps with rc = 0 a node is from a target of path_search.hpp, as far as is known.
//
// A search learns them: each node it settles gets one more than the least of those it leads to at
// no distance. They order nodes at equal distance, where any number may be wrong without harm. Here
// they are set for many nodes at once, by breadth-first search backward from the targets, when the
// learned ones have become worthless or have to be exact.
#pragma once

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "graph/residual_graph.hpp"

namespace flowsolver {

// Nodes waiting at the distance being settled, by learned hops; last in first out within a count.
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

  // Makes the hops of all nodes exact. O(n + m). look() is called now and then.
  template <class Check>
  void relabel(Graph& graph, Stats& stats, Check check);
  // The same for `nodes` around some targets, no farther than it takes to label `most` of them; the
  // others are said to be far. `stamp`: a search's that has not labelled any node.
  void label_near_targets(Graph& graph, std::span<const NodeId> nodes,
                          std::span<const NodeId> targets, std::size_t most, std::uint32_t stamp,
                          Stats& stats);
  // After `relabel`: whether a target can be reached at distance 0.
  static bool reaches_target(const Node<Value>& node) {
    return has_target_arc(node) || node.hops[kForward] < kUnreached;
  }

  // Whether a target is no zero-rc step away.
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

// Calls meet(u) for the nodes from which a search gets to v at no distance; `known(u)`: those need
// not be met.
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
