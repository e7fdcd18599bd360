// Shortest residual paths by reduced cost: forward (from nodes with excess to the nearest deficit
// or the root) or backward (from nodes with a deficit, against the arcs, to the root).
//
// Invariant: rc >= 0 on every residual arc, before and after. A search finds the least distance D
// to a target and changes the price of every node nearer than D by D - distance, up (forward) or
// down (backward). The path then has rc = 0.
//
// What makes it fast on scheduling graphs, where most prices are equal and most distances are ties:
// - Targets are tested when a node is labelled, not when it is settled. They give an upper bound
//   that prunes all farther labels. The search ends when the bound equals the distance being
//   settled.
// - Labels are valid by a version stamp: nothing is reset between searches.
// - Nodes at equal distance wait in buckets by their estimated number of zero-rc hops to a target,
//   nearest first. Prices are nearly always exact already, and most of the cost of a search is
//   exploring ties.
// - An aggregator remembers the half-edge by which the last path left it, its current arc. When it
//   is labelled, the search first follows the chain of current arcs while they have rc = 0: forward
//   to residual capacity, backward (over flow) to where flow can be taken off. Backward searches do
//   not do so where nodes have unit sources assigned: there, lists by key find the nearest ones.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "control.hpp"
#include "graph/residual_graph.hpp"
#include "shortest_path/hop_labels.hpp"

namespace flowsolver {

struct Target {
  NodeId node = kNone;
  // the path continues over the arc inside the node (forward), or comes from it (backward)
  bool through_root_arc = false;
  std::int64_t distance = 0;
  bool found() const { return node != kNone; }
};

// A node from which a search starts, at a distance.
struct Seed {
  NodeId node;
  std::uint32_t parent;
  std::int64_t distance;
};

template <class Graph, bool kForward>
class PathSearch {
 public:
  using Value = typename Graph::Value;

  // Finds the target nearest to any of the sources, within `limit`. If there is one, updates
  // prices, and appends to `repriced` the nodes whose price moved for the first time in this round.
  // Leaves parents for following the path back from the target.
  Target run(Graph& graph, std::span<const NodeId> sources, std::int64_t limit,
             std::vector<NodeId>& repriced, Stats& stats);

  // The same from several nodes at their distances. The parent of a seed says where its path comes
  // from.
  Target run_from(Graph& graph, std::span<const Seed> seeds, std::int64_t limit,
                  std::vector<NodeId>& repriced, Stats& stats);

  // See hop_labels.hpp.
  void relabel(Graph& graph, Stats& stats) {
    labels_.relabel(graph, stats, [&] { check(stats); });
  }
  void label_near_targets(Graph& graph, std::span<const NodeId> nodes,
                          std::span<const NodeId> targets, std::size_t most, Stats& stats) {
    restart(graph);
    labels_.label_near_targets(graph, nodes, targets, most, stamp_, stats);
  }
  static bool reaches_target(const Node<Value>& node) {
    return HopLabels<Graph, kForward>::reaches_target(node);
  }
  static bool has_target_arc(const Node<Value>& node) {
    return HopLabels<Graph, kForward>::has_target_arc(node);
  }

  // From now on searches check the control, and throw Stopped before any price was changed. `stats`
  // start at zero.
  void set_control(const Control& control) {
    control_ = &control;
    checked_at_ = 0;
  }

  // Searches that have settled so many nodes at one distance, and are still there, give up: they
  // return no target, and prices have moved as if there was one at that distance.
  void set_settle_limit(std::size_t settled) { settle_limit_ = settled; }
  bool gave_up() const { return gave_up_; }
  std::int64_t gave_up_at() const { return current_; }
  // Whether the last search, which gave up, had labelled the node by then: at distance 0 with the
  // new prices.
  bool has_labelled(const Node<Value>& node) const {
    return node.stamp == stamp_ && node.distance <= current_;
  }

  // Marks the nodes that the last search settled without finding a target as dead, until
  // `clear_dead`.
  void mark_settled_dead(Graph& graph);
  void clear_dead(Graph& graph);

 private:
  static constexpr int kChainLimit = 8;
  // half-edges; their heads are scattered in memory
  static constexpr std::int64_t kCheckInterval = 1024;

  struct HeapEntry {
    std::int64_t distance;
    NodeId node;
    bool operator<(const HeapEntry& other) const {
      return distance > other.distance;
    }  // a min-heap
  };

  void check(const Stats& stats) {
    if (control_ == nullptr || stats.scanned - checked_at_ < kCheckInterval) return;
    checked_at_ = stats.scanned;
    if (const Status status = control_->check(stats); status != Status::kOptimal)
      throw Stopped{status};
  }
  void restart(Graph& graph);
  bool find_adjacent_target(Graph& graph, NodeId source, Stats& stats);
  bool label(Graph& graph, NodeId v, std::int64_t distance, std::uint32_t parent);
  bool test_target(const Graph& graph, const Node<Value>& node, NodeId v, std::int64_t distance);
  void follow_current_arcs(Graph& graph, NodeId v, std::int64_t distance);
  void enqueue(const Node<Value>& node, NodeId v);
  void scan(Graph& graph, NodeId u, Stats& stats);
  void scan_edge(Graph& graph, std::uint32_t index, std::int64_t base, unsigned& hops);
  void relabel_and_enqueue(Graph& graph, NodeId v, std::int64_t distance, std::uint32_t parent,
                           unsigned& hops);
  void scan_assigned(Graph& graph, NodeId u, std::int64_t base, unsigned& hops, Stats& stats);
  void enqueue_chain(const Graph& graph);
  void label_seed(Graph& graph, NodeId v, std::int64_t distance, std::uint32_t parent);
  void settle_until_target(Graph& graph, Stats& stats);
  Target update_prices(Graph& graph, std::vector<NodeId>& repriced);

  const Control* control_ = nullptr;
  std::int64_t checked_at_ = 0;  // stats.scanned at the last check
  std::uint32_t stamp_ = 0;
  std::size_t settle_limit_ = std::numeric_limits<std::size_t>::max();
  bool gave_up_ = false;
  std::int64_t bound_ = 0;    // only shorter paths are of interest
  std::int64_t current_ = 0;  // the distance being settled
  std::size_t settled_at_shorter_ = 0;
  Target target_;
  HopBuckets ties_;
  HopLabels<Graph, kForward> labels_;
  std::vector<HeapEntry> heap_;
  std::vector<NodeId> settled_, chain_, dead_;
};

template <class Graph, bool kForward>
void PathSearch<Graph, kForward>::restart(Graph& graph) {
  // The two directions share the nodes' stamps: one uses odd stamps, the other even ones.
  if (stamp_ >= kNone - 4) {
    for (Node<Value>& node : graph.nodes) node.stamp = 0;
    stamp_ = 0;
  }
  stamp_ = stamp_ == 0 ? (kForward ? 1 : 2) : stamp_ + 2;
  ties_.clear();
  heap_.clear();
  settled_.clear();
  current_ = 0;
  settled_at_shorter_ = 0;
  target_ = Target{};
  gave_up_ = false;
}

// Updates prices and returns the target.
template <class Graph, bool kForward>
Target PathSearch<Graph, kForward>::update_prices(Graph& graph, std::vector<NodeId>& repriced) {
  const std::int64_t relabel_and_enqueue = gave_up_          ? current_
                                           : target_.found() ? target_.distance
                                                             : 0;
  if (relabel_and_enqueue == 0) return target_;
  for (NodeId v : settled_) {
    Node<Value>& node = graph.nodes[v];
    if (node.distance >= relabel_and_enqueue) continue;
    const std::int64_t change = relabel_and_enqueue - node.distance;
    node.price += kForward ? change : -change;
    if ((node.flags & kTouched) == 0) {
      node.flags |= kTouched;
      repriced.push_back(v);
    }
  }
  if constexpr (Graph::kHasUnitSources) graph.prices_moved(settled_, relabel_and_enqueue, kForward);
  return target_;
}

// Most sources are adjacent to a target: then no search is needed.
template <class Graph, bool kForward>
bool PathSearch<Graph, kForward>::find_adjacent_target(Graph& graph, NodeId source, Stats& stats) {
  Node<Value>& from = graph.nodes[source];
  from.parent = kNone;
  for (std::uint32_t index = from.begin; index < from.begin + from.residual_degree; ++index) {
    const auto& edge = graph.edges[index];
    Node<Value>& node = graph.nodes[edge.to];
    ++stats.scanned;
    if (edge.cost - from.price + node.price != 0 || edge.to == graph.root() ||
        !has_target_arc(node))
      continue;
    node.parent = index;
    target_ = {edge.to, node.imbalance >= 0, 0};
    return true;
  }
  return false;
}

template <class Graph, bool kForward>
Target PathSearch<Graph, kForward>::run(Graph& graph, std::span<const NodeId> sources,
                                        std::int64_t limit, std::vector<NodeId>& repriced,
                                        Stats& stats) {
  restart(graph);
  ++stats.searches;
  if constexpr (kForward) {
    if (sources.size() == 1 && (graph.nodes[sources[0]].flags & kInterior) == 0 &&
        find_adjacent_target(graph, sources[0], stats)) {
      return target_;
    }
  }
  bound_ = limit == kInfinity ? kInfinity : limit + 1;
  for (NodeId source : sources) {
    label_seed(graph, source, 0, kNone);
    if (bound_ == 0) break;
  }
  settle_until_target(graph, stats);
  return update_prices(graph, repriced);
}

template <class Graph, bool kForward>
Target PathSearch<Graph, kForward>::run_from(Graph& graph, std::span<const Seed> seeds,
                                             std::int64_t limit, std::vector<NodeId>& repriced,
                                             Stats& stats) {
  restart(graph);
  ++stats.searches;
  bound_ = limit == kInfinity ? kInfinity : limit + 1;
  for (const Seed& seed : seeds) {
    if (seed.distance < bound_) label_seed(graph, seed.node, seed.distance, seed.parent);
  }
  settle_until_target(graph, stats);
  return update_prices(graph, repriced);
}

template <class Graph, bool kForward>
void PathSearch<Graph, kForward>::label_seed(Graph& graph, NodeId v, std::int64_t distance,
                                             std::uint32_t parent) {
  if (label(graph, v, distance, parent)) enqueue(graph.nodes[v], v);
  enqueue_chain(graph);
}

template <class Graph, bool kForward>
void PathSearch<Graph, kForward>::settle_until_target(Graph& graph, Stats& stats) {
  while (bound_ > current_) {
    NodeId u;
    if (!ties_.empty()) {
      u = ties_.pop();
    } else {
      if (heap_.empty()) break;
      std::pop_heap(heap_.begin(), heap_.end());
      const HeapEntry next = heap_.back();
      heap_.pop_back();
      if (graph.nodes[next.node].settled || graph.nodes[next.node].distance != next.distance)
        continue;
      if (next.distance >= bound_) break;
      current_ = next.distance;
      settled_at_shorter_ = settled_.size();
      u = next.node;
    }
    Node<Value>& node = graph.nodes[u];
    if (node.settled || node.distance != current_) continue;
    if (settled_.size() - settled_at_shorter_ == settle_limit_) {
      gave_up_ = true;
      target_ = Target{};
      return;
    }
    node.settled = true;
    settled_.push_back(u);
    ++stats.settled;
    scan(graph, u, stats);
    check(stats);
  }
}

template <class Graph, bool kForward>
void PathSearch<Graph, kForward>::mark_settled_dead(Graph& graph) {
  for (NodeId v : settled_) {
    graph.nodes[v].flags |= kDead;
    dead_.push_back(v);
  }
}

template <class Graph, bool kForward>
void PathSearch<Graph, kForward>::clear_dead(Graph& graph) {
  for (NodeId v : dead_) graph.nodes[v].flags &= static_cast<std::uint8_t>(~kDead);
  dead_.clear();
}

}  // namespace flowsolver

#include "shortest_path/path_scan.hpp"
