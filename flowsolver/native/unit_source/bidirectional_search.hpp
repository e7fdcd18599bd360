// The second half of a bidirectional search: from the targets towards a search that gave up. For
// searches that settle very many nodes at equal distance, or that must raise or lower the prices of
// a whole full cell.
//
// Definitions, for a forward search (path_search.hpp) that gave up; for a backward search all
// directions are reversed. F: the nodes that it labelled up to the distance at which it gave up. It
// has updated prices, so they are at distance 0 now. d(v): the least reduced cost of a path from v
// to a target (a node with a deficit, or with residual capacity to the root). D: the least d of the
// nodes of F, which is d of the search's start, because F is reached from there at no cost.
//
// Method. Dijkstra's algorithm against the arcs, from all targets, in ranges of distance: up to 0,
// 1, 3, 7, ... only arcs that lead to a node within the range are scanned. So of tens of thousands
// of sources that could leave for a target, only those are found for which that costs little. The
// search ends at the first node of F, which is at distance D, or gives up when that is far. Then
// all prices rise (fall) by min(d, D): those of nodes nearer than D by their distance, all others
// by D. Ties within the cell are not searched. A source being assigned may have seeds farther away,
// at a distance delta > 0 and not in F. Labels below D are exact when the search ends. If delta + d
// < D for one of them, the path over F is not the shortest, and the search gives up before any
// price was changed.
//
// Result. The part of the path beyond F is written into the labels of the first search, so that the
// path can be followed back from the target as usual. All scanned nodes store their hops, so that
// the next search from near F finds its way without this one.
//
// Invariant, before and after: rc >= 0 on every residual arc (d satisfies the triangle inequality,
// and so does min(d, D)).
//
// Complexity: O(n) and the lists of the scanned nodes, per range; each range scans again what those
// before it did.
//
// Reference. Ahuja, Magnanti, Orlin, Network Flows (1993), section 4.5: reverse and bidirectional
// Dijkstra. Departure: the first half is at distance 0 throughout, so no distances need be added.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "control.hpp"
#include "shortest_path/path_search.hpp"
#include "unit_source/unit_sources.hpp"

namespace flowsolver {

// kForward: the direction of the search that gave up.
template <class Value, bool kForward>
class BidirectionalSearch {
 public:
  using Graph = UnitSources<Value>;
  using FirstSearch = PathSearch<Graph, kForward>;

  // `first`: the search that may give up.
  explicit BidirectionalSearch(const FirstSearch& first) : first_(first) {}

  // Returns the target reached from F, or none. `core_nodes`: every core node; `targets`: every
  // node that may be a target, the likely ones first; both may contain a node twice. `seeds`: the
  // seeds of the search that gave up, unless all of them are in F. Throws Stopped, before any price
  // was changed.
  Target run(Graph& graph, std::span<const NodeId> core_nodes,
             std::span<const std::span<const NodeId>> targets, std::span<const Seed> seeds,
             const Control& control, std::vector<NodeId>& repriced, Stats& stats) {
    restart(graph);
    label(graph, graph.root(), 0, kNone, 0);
    for (std::span<const NodeId> list : targets) {
      for (NodeId v : list) {
        const Node<Value>& node = graph.nodes[v];
        if (graph.is_source(v) || v == graph.root()) continue;
        if (kForward ? node.imbalance < 0 : node.imbalance > 0) {
          label(graph, v, 0, kNone, 0);
        } else if (kForward ? node.root_residual > 0 : node.root_flow > 0) {
          label(graph, v, kForward ? node.root_cost - node.price : node.price - node.root_cost,
                kNone, 0);
        }
      }
    }
    CancellationChecker checker(control);
    const std::int64_t enough =
        stats.scanned + static_cast<std::int64_t>(graph.source_arcs.size()) / kShare;
    for (; range_ < kMaxRange && stats.scanned < enough; range_ = 2 * range_ + 1) {
      settle_range(graph, checker, stats);
      if (meeting_node_ == kNone) continue;
      const auto nearer = [this](const Seed& seed) {
        const std::int64_t away = std::max<std::int64_t>(0, seed.distance - first_.gave_up_at());
        return labelled(seed.node) && labels_[seed.node].distance < current_ - away;
      };
      if (std::any_of(seeds.begin(), seeds.end(), nearer)) return {};
      const Target target = write_path(graph, meeting_node_);
      store_hops(graph);
      if (current_ > 0) move_prices(graph, core_nodes, repriced);
      return target;
    }
    return {};
  }

 private:
  static constexpr std::int64_t kMaxRange = std::int64_t{1} << 20;
  // gives up after scanning this share of the sources' arcs
  static constexpr std::int64_t kShare = 8;

  struct Label {
    std::int64_t distance;
    std::uint32_t stamp = 0;
    std::uint32_t parent;  // as in a backward search
    std::uint32_t hops;    // to the target
  };

  void restart(const Graph& graph) {
    if (labels_.size() < graph.num_nodes()) labels_.resize(graph.num_nodes());
    if (++stamp_ == 0) {
      for (Label& each : labels_) each.stamp = 0;
      stamp_ = 1;
    }
    range_ = current_ = 0;
    meeting_node_ = kNone;
    heap_.clear();
    settled_.clear();
  }

  bool labelled(NodeId v) const { return labels_[v].stamp == stamp_; }
  void label(const Graph& graph, NodeId v, std::int64_t distance, std::uint32_t parent,
             std::uint32_t hops) {
    if (labelled(v) && labels_[v].distance <= distance) return;
    labels_[v] = {distance, stamp_, parent, hops};
    if (distance <= current_) {
      settle(graph, v);
    } else {
      heap_.push_back({distance, v});
      std::push_heap(heap_.begin(), heap_.end());
    }
  }

  // Its distance is known, and it is scanned in its turn. If it is in F, the search need not scan
  // the others at this distance.
  void settle(const Graph& graph, NodeId v) {
    settled_.push_back(v);
    if (meeting_node_ == kNone && first_.has_labelled(graph.nodes[v])) meeting_node_ = v;
  }

  // Settles the nodes of the range in order, until one is in F.
  void settle_range(Graph& graph, CancellationChecker& checker, Stats& stats) {
    std::size_t next = range_ == 0 ? 0 : settled_.size();
    for (std::size_t i = 0; i < next; ++i) scan_sources(graph, settled_[i], checker, stats);
    while (meeting_node_ == kNone) {
      for (; next < settled_.size() && meeting_node_ == kNone; ++next) {
        const NodeId v = settled_[next];
        ++stats.settled;
        scan_edges(graph, v, stats);
        scan_sources(graph, v, checker, stats);
      }
      if (meeting_node_ != kNone) return;
      if (heap_.empty() || heap_.front().distance > range_) break;
      current_ = heap_.front().distance;
      // bounded: takes one off the heap each time
      while (!heap_.empty() && heap_.front().distance == current_) {
        std::pop_heap(heap_.begin(), heap_.end());
        const NodeId v = heap_.back().node;
        heap_.pop_back();
        if (labels_[v].distance == current_) settle(graph, v);
      }
    }
    if (meeting_node_ == kNone) current_ = range_;
  }

  void scan_edges(const Graph& graph, NodeId v, Stats& stats) {
    const Node<Value>& node = graph.nodes[v];
    const std::int64_t distance = labels_[v].distance;
    const std::uint32_t hops = labels_[v].hops + 1;
    if (node.degree > Graph::kMinHubDegree) return;  // see scan_hub
    const std::uint32_t end = node.begin + (kForward ? node.degree : node.residual_degree);
    for (std::uint32_t i = node.begin; i < end; ++i) {
      const auto& edge = graph.edges[i];
      if (kForward && edge.reverse_residual == 0) continue;
      const std::int64_t step = edge.cost - node.price + graph.nodes[edge.to].price;
      label(graph, edge.to, kForward ? distance - step : distance + step, i, hops);
    }
    stats.scanned += end - node.begin;
  }

  // Scans the half-edges that lead to nodes within the range.
  void scan_hub(Graph& graph, NodeId v, Stats& stats) {
    const Node<Value>& node = graph.nodes[v];
    const std::uint32_t hops = labels_[v].hops + 1;
    const std::int64_t base =
        kForward ? labels_[v].distance + node.price : labels_[v].distance - node.price;
    graph.hubs.template visit<!kForward>(
        graph.residual_graph(), v, range_ + 1 - base, stats, [&](std::uint32_t index) {
          const auto& edge = graph.edges[index];
          const std::int64_t away = edge.cost + graph.nodes[edge.to].price;
          label(graph, edge.to, kForward ? base - away : base + away, index, hops);
        });
  }

  void scan_sources(Graph& graph, NodeId v, CancellationChecker& checker, Stats& stats) {
    constexpr std::uint32_t kKeysPerStep = 8;
    const std::int64_t scanned_before = stats.scanned;
    if (graph.nodes[v].degree > Graph::kMinHubDegree) scan_hub(graph, v, stats);
    if constexpr (kForward) {
      scan_incoming(graph, v, stats);
    } else {
      scan_assigned(graph, v, stats);
    }
    const std::uint32_t keys = kForward ? graph.num_incoming(v) : graph.num_assigned(v);
    const Status status =
        checker.step(stats, 1 + keys / kKeysPerStep + stats.scanned - scanned_before);
    if (status != Status::kOptimal) throw Stopped{status};
  }

  void scan_incoming(Graph& graph, NodeId v, Stats& stats) {
    const std::int64_t base = labels_[v].distance + graph.nodes[v].price;
    const std::uint32_t hops = labels_[v].hops + 1;
    graph.visit_incoming(
        v, [&] { return range_ + 1 - base; },
        [&](std::uint32_t arc, std::int64_t bound, NodeId lead) {
          ++stats.scanned;
          if (lead != kNone && labelled(lead) && labels_[lead].distance - base <= bound)
            return bound;
          const std::uint32_t now = graph.current_arc(graph.source_of(arc));
          if (now == kNone) return bound;
          const auto& present = graph.source_arcs[now];
          const std::int64_t key = std::int64_t{graph.source_arcs[arc].cost} - present.cost -
                                   graph.nodes[present.head].price;
          label(graph, present.head, base + key, Graph::encode_parent(arc), hops);
          return key;
        });
  }

  void scan_assigned(Graph& graph, NodeId v, Stats& stats) {
    const std::int64_t base = labels_[v].distance - graph.nodes[v].price;
    const std::uint32_t hops = labels_[v].hops + 1;
    graph.visit_assigned(
        v, [&] { return range_ + 1 - base; },
        [&](NodeId source, std::int64_t, NodeId) {
          const auto [begin, end] = graph.arcs_of(source);
          const std::uint32_t now = graph.current_arc(source);
          const std::int64_t present = graph.source_arcs[now].cost;
          std::int64_t nearest = kInfinity;
          for (std::uint32_t i = begin; i < end; ++i) {
            if (i == now) continue;
            const std::int64_t key = graph.cost_through(i) - present;
            nearest = std::min(nearest, key);
            label(graph, graph.source_arcs[i].head, base + key, Graph::encode_parent(i), hops);
          }
          stats.scanned += end - begin;
          return nearest;
        });
  }

  // The next node towards the target.
  NodeId next_on_path(const Graph& graph, std::uint32_t parent) const {
    if (!Graph::is_source_arc(parent)) return graph.owner(parent);
    const std::uint32_t arc = Graph::decode_parent(parent);
    return graph.source_arcs[kForward ? arc : graph.current_arc(graph.source_of(arc))].head;
  }

  // Writes the path from `met` to the target into the labels of the search that gave up. Returns
  // the target.
  Target write_path(Graph& graph, NodeId meeting_node) const {
    NodeId v = meeting_node;
    while (labels_[v].parent != kNone) {  // bounded: by the length of a path
      const std::uint32_t parent = labels_[v].parent;
      v = next_on_path(graph, parent);
      graph.nodes[v].parent = Graph::is_source_arc(parent) ? parent : graph.partner(parent);
    }
    const Node<Value>& last = graph.nodes[v];
    const bool itself = v == graph.root() || (kForward ? last.imbalance < 0 : last.imbalance > 0);
    return {v, !itself, current_};
  }

  // Stores the hops of the settled nodes for later searches.
  void store_hops(Graph& graph) const {
    for (NodeId v : settled_) {
      graph.nodes[v].hops[kForward] = static_cast<std::uint8_t>(
          std::min<std::uint32_t>(labels_[v].hops, HopBuckets::kLevels - 2));
    }
  }

  void move_prices(Graph& graph, std::span<const NodeId> core_nodes,
                   std::vector<NodeId>& repriced) {
    constexpr std::int64_t kMoved = -1;
    for (NodeId v : core_nodes) {
      if (v == graph.root() || graph.is_source(v)) continue;
      const std::int64_t away = labelled(v) ? std::min(labels_[v].distance, current_) : current_;
      if (away == kMoved) continue;
      labels_[v].distance = kMoved;
      labels_[v].stamp = stamp_;
      if (away == 0) continue;
      move_price(graph.nodes[v], v, kForward ? away : -away, repriced);
    }
    graph.prices_moved(current_, kForward);
  }

  const FirstSearch& first_;
  NodeId meeting_node_ = kNone;  // the first node of F that was settled
  std::vector<Label> labels_;    // by node
  std::uint32_t stamp_ = 0;
  std::int64_t range_ = 0;    // nodes up to this distance are settled in this range
  std::int64_t current_ = 0;  // the distance being settled
  std::vector<HeapEntry> heap_;
  std::vector<NodeId> settled_;
};

}  // namespace flowsolver
