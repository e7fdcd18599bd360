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
// - A hub remembers all its half-edges that lead to a target at no cost (hub_lists.hpp). When it is
//   labelled, the search follows one of them.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <vector>

#include "control.hpp"
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
  // The least hops of a node that waits; kLevels if none does.
  unsigned lowest() const { return static_cast<unsigned>(std::countr_zero(occupied_)); }
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

// Hops: the estimated number of zero-rc half-edges from a node to a target of a search.
//
// A search learns hops: each node that it settles gets one more than the least of the nodes it
// leads to at distance zero. Hops order nodes at equal distance, where any estimate is allowed.
// Here they are computed for many nodes at once, by breadth-first search backward from the targets,
// when the learned ones have become useless or must be exact.
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
  const auto visit_if_tight = [&](std::uint32_t i) {
    const auto& edge = graph.edges[i];
    if (known(edge.to)) return;
    if ((kForward ? edge.reverse_residual : edge.residual) == 0) return;
    if (edge.cost - price + graph.nodes[edge.to].price != 0) return;
    visit(edge.to);
  };
  bool is_hub = false;
  if constexpr (Graph::kListsHubs) {
    is_hub = node.degree > Graph::kMinHubDegree;
    if (is_hub) {
      graph.hubs.template visit<!kForward>(graph.residual_graph(), v,
                                           kForward ? 1 - price : price + 1, stats, visit_if_tight);
    }
  }
  if (!is_hub) {
    const std::uint32_t end = node.begin + (kForward ? node.degree : node.residual_degree);
    for (std::uint32_t i = node.begin; i < end; ++i) visit_if_tight(i);
    stats.scanned += end - node.begin;
  }
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

struct Target {
  NodeId node = kNone;
  // the path continues over the arc inside the node (forward), or comes from it (backward)
  bool through_root_arc = false;
  std::int64_t distance = 0;
  bool found() const { return node != kNone; }
};

// A node of a min-heap by distance.
struct HeapEntry {
  std::int64_t distance;
  NodeId node;
  bool operator<(const HeapEntry& other) const { return distance > other.distance; }
};

// Moves a price, and appends the node to `repriced` if it is the first time in this round.
template <class Value>
void move_price(Node<Value>& node, NodeId v, std::int64_t change, std::vector<NodeId>& repriced) {
  node.price += change;
  if ((node.flags & kTouched) != 0) return;
  node.flags |= kTouched;
  repriced.push_back(v);
}

// A hub whose list has been scanned up to a place; the entry there is at least at this distance.
struct DeferredHub {
  std::int64_t distance;
  NodeId node;
  std::size_t at;
  bool operator<(const DeferredHub& other) const { return distance > other.distance; }
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
             std::vector<NodeId>& repriced, Stats& stats) {
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
    stats.scanned += looked_at_;
    return update_prices(graph, repriced);
  }

  // The same from several nodes at their distances. The parent of a seed says where its path comes
  // from.
  Target run_from(Graph& graph, std::span<const Seed> seeds, std::int64_t limit,
                  std::vector<NodeId>& repriced, Stats& stats) {
    restart(graph);
    ++stats.searches;
    bound_ = limit == kInfinity ? kInfinity : limit + 1;
    for (const Seed& seed : seeds) {
      if (seed.distance < bound_) label_seed(graph, seed.node, seed.distance, seed.parent);
    }
    settle_until_target(graph, stats);
    stats.scanned += looked_at_;
    return update_prices(graph, repriced);
  }

  // See HopLabels.
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
  void mark_settled_dead(Graph& graph) {
    for (NodeId v : settled_) {
      graph.nodes[v].flags |= kDead;
      dead_.push_back(v);
    }
  }

  void clear_dead(Graph& graph) {
    for (NodeId v : dead_) graph.nodes[v].flags &= static_cast<std::uint8_t>(~kDead);
    dead_.clear();
  }

 private:
  static constexpr int kChainLimit = 8;
  static constexpr std::size_t kHubStep = 16;  // entries of a hub's list
  // Nodes at equal distance with fewer hops are settled before more of a hub's list is scanned.
  static constexpr unsigned kNearHops = 8;
  // half-edges; their heads are scattered in memory
  static constexpr std::int64_t kCheckInterval = 1024;

  void check(const Stats& stats) {
    if (control_ == nullptr || stats.scanned - checked_at_ < kCheckInterval) return;
    checked_at_ = stats.scanned;
    if (const Status status = control_->check(stats); status != Status::kOptimal)
      throw Stopped{status};
  }
  void restart(Graph& graph) {
    // The two directions share the nodes' stamps: one uses odd stamps, the other even ones.
    if (stamp_ >= kNone - 4) {
      for (Node<Value>& node : graph.nodes) node.stamp = 0;
      stamp_ = 0;
    }
    stamp_ = stamp_ == 0 ? (kForward ? 1 : 2) : stamp_ + 2;
    ties_.clear();
    heap_.clear();
    deferred_.clear();
    settled_.clear();
    current_ = 0;
    settled_at_shorter_ = 0;
    looked_at_ = 0;
    target_ = Target{};
    gave_up_ = false;
  }

  // Most sources are adjacent to a target: then no search is needed.
  bool find_adjacent_target(Graph& graph, NodeId source, Stats& stats) {
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

  // Returns whether v must be settled later.
  bool label(Graph& graph, NodeId v, std::int64_t distance, std::uint32_t parent) {
    Node<Value>& node = graph.nodes[v];
    if ((node.stamp == stamp_ && node.distance <= distance) || (node.flags & kDead) != 0)
      return false;
    node.stamp = stamp_;
    node.distance = distance;
    node.parent = parent;
    node.settled = false;
    if (test_target(graph, node, v, distance)) return false;
    if (distance < bound_ && (node.flags & kInterior) != 0) follow_current_arcs(graph, v, distance);
    return distance < bound_;
  }

  // Whether v is a target itself. If its arc to the root leads to one, that is recorded too.
  bool test_target(const Graph& graph, const Node<Value>& node, NodeId v, std::int64_t distance) {
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

  void follow_current_arcs(Graph& graph, NodeId v, std::int64_t distance) {
    for (int step = 0; step < kChainLimit; ++step) {
      const Node<Value>& from = graph.nodes[v];
      const std::uint32_t index = chain_arc(graph, v);
      if (index < from.begin ||
          index >= from.begin + (kForward ? from.residual_degree : from.degree))
        return;
      const auto& edge = graph.edges[index];
      if (!kForward && edge.reverse_residual == 0) return;
      Node<Value>& node = graph.nodes[edge.to];
      if (edge.cost - from.price + node.price != 0) return;
      if ((node.stamp == stamp_ && node.distance <= distance) || (node.flags & kDead) != 0) return;
      node.stamp = stamp_;
      node.distance = distance;
      node.parent = index;
      node.settled = false;
      v = edge.to;
      if (test_target(graph, node, v, distance)) return;
      if (distance >= bound_) return;
      chain_.push_back(v);
    }
  }

  // The half-edge by which a chain leaves v; kNone if there is none. Of a hub, one that leads to a
  // target, if it is known.
  std::uint32_t chain_arc(Graph& graph, NodeId v) {
    const Node<Value>& node = graph.nodes[v];
    if constexpr (Graph::kListsHubs) {
      if (node.degree > Graph::kMinHubDegree) {
        const std::uint32_t way = graph.hubs.template way_to_target<kForward>(
            graph.residual_graph(), v, looked_at_, HopLabels<Graph, kForward>::has_target_arc);
        if (way != kNone) return way;
      }
    }
    return kForward || !Graph::kHasUnitSources ? node.current : kNone;
  }

  void enqueue(const Node<Value>& node, NodeId v) {
    if (node.distance == current_) {
      ties_.push(v, node.hops[kForward]);
    } else {
      heap_.push_back({node.distance, v});
      std::push_heap(heap_.begin(), heap_.end());
    }
  }

  void scan(Graph& graph, NodeId u, Stats& stats) {
    Node<Value>& node = graph.nodes[u];
    const std::uint32_t begin = node.begin;
    const std::uint32_t end = begin + (kForward ? node.residual_degree : node.degree);
    const std::int64_t base = kForward ? current_ - node.price : current_ + node.price;
    unsigned hops = HopLabels<Graph, kForward>::kFar;
    if constexpr (Graph::kListsHubs) {
      if (node.degree > Graph::kMinHubDegree) {
        auto& list = graph.hubs.template prepare<kForward>(graph.residual_graph(), u, stats);
        scan_hub(graph, u, list, 0, hops, stats);
        if (bound_ > current_) scan_assigned(graph, u, base, hops, stats);
        node.hops[kForward] = static_cast<std::uint8_t>(hops + 1);
        return;
      }
    }
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

  // Scans the listed half-edges of a hub from a place in its list on. What is farther away is
  // scanned when the search has come to that distance.
  template <class List>
  void scan_hub(Graph& graph, NodeId u, List& list, std::size_t at, unsigned& hops, Stats& stats) {
    const Node<Value>& node = graph.nodes[u];
    const std::int64_t base = kForward ? node.distance - node.price : node.distance + node.price;
    const std::size_t end_of_step = at + kHubStep;
    for (; bound_ > current_; ++at) {
      const std::int64_t bound = list.bound(at);
      if (bound == kInfinity) return;
      const std::int64_t distance =
          bound == -kInfinity ? current_ : std::max(base + bound, current_);
      if (distance >= bound_) return;
      if (at == list.size() ||
          (at >= end_of_step && (distance > current_ || ties_.lowest() < kNearHops))) {
        deferred_.push_back({distance, u, at});
        std::push_heap(deferred_.begin(), deferred_.end());
        return;
      }
      ++stats.scanned;
      const auto [key, id, to] = list[at];
      const Node<Value>& there = graph.nodes[to];
      if (there.stamp == stamp_ && there.distance <= distance && bound != -kInfinity) {
        if (there.distance == current_)
          hops = std::min<unsigned>(hops, has_target_arc(there) ? 0 : there.hops[kForward]);
        continue;
      }
      const std::uint32_t index = graph.residual_graph().position[id];
      if (!graph.hubs.owns(graph.residual_graph(), u, id) ||
          !graph.hubs.template is_open<kForward>(graph.edges[index])) {
        list.pass_over();
        continue;
      }
      const auto& edge = graph.edges[index];
      const std::int64_t step = edge.cost + graph.nodes[edge.to].price;
      if ((kForward ? step : -step) > bound && bound != -kInfinity) list.pass_over();
      relabel_and_enqueue(graph, edge.to, kForward ? base + step : base - step, index, hops);
    }
  }

  // Goes on with a hub at the distance being settled.
  void scan_more(Graph& graph, NodeId u, std::size_t at, Stats& stats) {
    if constexpr (Graph::kListsHubs) {
      auto& list = graph.hubs.template list<kForward>(u);
      if (at == list.size()) {
        graph.hubs.template extend<kForward>(graph.residual_graph(), u, stats);
        at = 0;
      }
      unsigned hops = graph.nodes[u].hops[kForward] - 1U;
      scan_hub(graph, u, list, at, hops, stats);
      graph.nodes[u].hops[kForward] = static_cast<std::uint8_t>(hops + 1);
    }
  }

  void scan_edge(Graph& graph, std::uint32_t index, std::int64_t base, unsigned& hops) {
    const auto& edge = graph.edges[index];
    if constexpr (!kForward) {
      if (edge.reverse_residual <= 0) return;
    }
    const std::int64_t step = edge.cost + graph.nodes[edge.to].price;
    relabel_and_enqueue(graph, edge.to, kForward ? base + step : base - step, index, hops);
  }

  // Labels v if this path of length `distance` is shorter, and enqueues it.
  void relabel_and_enqueue(Graph& graph, NodeId v, std::int64_t distance, std::uint32_t parent,
                           unsigned& hops) {
    const Node<Value>& node = graph.nodes[v];
    if (distance == current_)
      hops = std::min<unsigned>(hops, has_target_arc(node) ? 0 : node.hops[kForward]);
    if (distance >= bound_) return;
    if (label(graph, v, distance, parent)) enqueue(node, v);
    enqueue_chain(graph);
  }

  // Forward: the sources assigned to u can move to their other heads. Backward: the sources with an
  // arc to u can move to u.
  void scan_assigned(Graph& graph, NodeId u, std::int64_t base, unsigned& hops, Stats& stats) {
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

  void enqueue_chain(const Graph& graph) {
    for (NodeId v : chain_) {
      if (graph.nodes[v].distance < bound_) enqueue(graph.nodes[v], v);
    }
    chain_.clear();
  }

  void label_seed(Graph& graph, NodeId v, std::int64_t distance, std::uint32_t parent) {
    if (label(graph, v, distance, parent)) enqueue(graph.nodes[v], v);
    enqueue_chain(graph);
  }

  void settle_until_target(Graph& graph, Stats& stats) {
    while (bound_ > current_) {
      NodeId u;
      const bool goes_on_with_hub = !deferred_.empty() && deferred_.front().distance == current_ &&
                                    ties_.lowest() >= kNearHops;
      if (!ties_.empty() && !goes_on_with_hub) {
        u = ties_.pop();
      } else {
        if (!deferred_.empty() && (goes_on_with_hub || heap_.empty() ||
                                   deferred_.front().distance <= heap_.front().distance)) {
          if (deferred_.front().distance >= bound_) break;
          std::pop_heap(deferred_.begin(), deferred_.end());
          const DeferredHub next = deferred_.back();
          deferred_.pop_back();
          if (next.distance > current_) settled_at_shorter_ = settled_.size();
          current_ = next.distance;
          scan_more(graph, next.node, next.at, stats);
          check(stats);
          continue;
        }
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

  // Updates prices and returns the target.
  Target update_prices(Graph& graph, std::vector<NodeId>& repriced) {
    const std::int64_t reach = gave_up_ ? current_ : target_.found() ? target_.distance : 0;
    if (reach == 0) return target_;
    for (NodeId v : settled_) {
      Node<Value>& node = graph.nodes[v];
      if (node.distance >= reach) continue;
      const std::int64_t change = reach - node.distance;
      move_price(node, v, kForward ? change : -change, repriced);
    }
    if constexpr (Graph::kHasUnitSources) graph.prices_moved(settled_, reach, kForward);
    return target_;
  }

  const Control* control_ = nullptr;
  std::int64_t checked_at_ = 0;  // stats.scanned at the last check
  std::uint32_t stamp_ = 0;
  std::size_t settle_limit_ = std::numeric_limits<std::size_t>::max();
  bool gave_up_ = false;
  std::int64_t bound_ = 0;    // only shorter paths are of interest
  std::int64_t current_ = 0;  // the distance being settled
  std::size_t settled_at_shorter_ = 0;
  std::int64_t looked_at_ = 0;  // half-edges, in search of ways to targets
  Target target_;
  HopBuckets ties_;
  HopLabels<Graph, kForward> labels_;
  std::vector<HeapEntry> heap_;
  std::vector<DeferredHub> deferred_;
  std::vector<NodeId> settled_, chain_, dead_;
};

}  // namespace flowsolver
