// Where a forward search wanders along ties, or a cell without a free slot must get dearer: from the targets towards it.
//
// Definitions. F: what a forward search (path_search.hpp) that gave up has labelled at distance 0. d(v): the least reduced cost
// from v to a target (a node with a deficit, or with room to the root). D: the least d of F, which is that of where the search
// began, because from there F is reached at no cost.
// Method. Dijkstra against the arcs from all targets, by levels: at level 0, 1, ... only arcs that lead to a node within it are
// looked at, so that of the tens of thousands of sources that could leave for a target only those are met for which that costs no
// more. It ends at the first node of F, at level D, or gives up after a few levels. Then all prices rise by min(d, D): those of
// the nodes that were met by what they are away, all others by D. Nothing that is tied within the cell is looked through.
// Result. The path's part beyond F is written over the forward labels, so that it is walked back from the target as any other.
//
// Invariant, before and after: rc >= 0 on every residual arc (d satisfies the triangle inequality, and so does min(d, D)).
// Complexity: O(n) and the lists of the nodes met, per level; a level looks at what the levels before it did once more.
// Reference. Ahuja, Magnanti, Orlin, Network Flows (1993), section 4.5: reverse and bidirectional Dijkstra. Departure: the
// forward half is at distance 0 throughout, so no distances need to be added up.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "carried_sources.hpp"
#include "control.hpp"
#include "path_search.hpp"

namespace flowsolver {

template <class Value>
class MeetingSearch {
 public:
  using Graph = CarriedSources<Value>;

  // The target reached from F, or none. `ordinary`: every node that is no source; `targets`: every node that may be a target.
  // Both may name a node twice. `in_reach(node)`: whether it is in F. Throws Stopped: no price has moved then.
  template <class InReach>
  Target run(Graph& graph, std::span<const NodeId> ordinary, std::span<const std::span<const NodeId>> targets,
             const InReach& in_reach, const Control& control, std::vector<NodeId>& repriced, Stats& stats) {
    restart(graph);
    label(graph.root(), 0, kNone);
    for (std::span<const NodeId> some : targets) {
      for (NodeId v : some) {
        const Node<Value>& node = graph.nodes[v];
        if (graph.is_source(v) || v == graph.root()) continue;
        if (node.imbalance < 0) {
          label(v, 0, kNone);
        } else if (node.root_residual > 0) {
          label(v, node.root_cost - node.price, kNone);
        }
      }
    }
    Pace pace(control);
    for (; level_ < kLevels; ++level_) {
      const NodeId met = settle_level(graph, in_reach, pace, stats);
      if (met == kNone) continue;
      const Target target = join(graph, met);
      if (level_ > 0) raise(graph, ordinary, repriced);
      return target;
    }
    return {};
  }

 private:
  static constexpr std::int64_t kLevels = 8;

  struct Label {
    std::int64_t distance;
    std::uint32_t stamp = 0;
    std::uint32_t parent;  // as in a backward search
  };
  struct Waiting {
    std::int64_t distance;
    NodeId node;
    bool operator<(const Waiting& other) const { return distance > other.distance; }  // a min-heap
  };

  void restart(const Graph& graph) {
    if (labels_.size() < graph.num_nodes()) labels_.resize(graph.num_nodes());
    if (++stamp_ == 0) {
      for (Label& each : labels_) each.stamp = 0;
      stamp_ = 1;
    }
    level_ = 0;
    heap_.clear();
    settled_.clear();
  }

  bool labelled(NodeId v) const { return labels_[v].stamp == stamp_; }
  void label(NodeId v, std::int64_t distance, std::uint32_t parent) {
    if (labelled(v) && labels_[v].distance <= distance) return;
    labels_[v] = {distance, stamp_, parent};
    if (distance <= level_) {
      settled_.push_back(v);  // and to be looked at in its turn
    } else {
      heap_.push_back({distance, v});
      std::push_heap(heap_.begin(), heap_.end());
    }
  }

  // Settles all nodes of the level, up to the first that is in reach, which is returned; or kNone.
  template <class InReach>
  NodeId settle_level(Graph& graph, const InReach& in_reach, Pace& pace, Stats& stats) {
    const std::size_t before = level_ == 0 ? 0 : settled_.size();
    for (std::size_t i = 0; i < before; ++i) scan_arrivals(graph, settled_[i], pace, stats);
    while (!heap_.empty() && heap_.front().distance <= level_) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Waiting next = heap_.back();
      heap_.pop_back();
      if (labels_[next.node].distance == next.distance) settled_.push_back(next.node);
    }
    for (std::size_t i = before; i < settled_.size(); ++i) {
      const NodeId v = settled_[i];
      if (in_reach(graph.nodes[v])) return v;
      ++stats.settled;
      scan_edges(graph, v, stats);
      scan_arrivals(graph, v, pace, stats);
    }
    return kNone;
  }

  void scan_edges(const Graph& graph, NodeId v, Stats& stats) {
    const Node<Value>& node = graph.nodes[v];
    const std::int64_t base = labels_[v].distance + node.price;
    for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
      const auto& edge = graph.edges[i];
      if (edge.reverse_residual > 0) label(edge.to, base - edge.cost - graph.nodes[edge.to].price, i);
    }
    stats.scanned += node.degree;
  }

  void scan_arrivals(Graph& graph, NodeId v, Pace& pace, Stats& stats) {
    constexpr std::uint32_t kKeysPerStep = 8;
    const std::int64_t base = labels_[v].distance + graph.nodes[v].price, scanned_before = stats.scanned;
    graph.visit_arrivals(v, [&] { return level_ + 1 - base; }, [&](std::uint32_t arc, std::int64_t bound, NodeId lead) {
      ++stats.scanned;
      if (lead != kNone && labelled(lead) && labels_[lead].distance <= base + bound) return bound;
      const std::uint32_t now = graph.current_arc(graph.source_of(arc));
      if (now == kNone) return bound;
      const auto& present = graph.source_arcs[now];
      const std::int64_t key = graph.source_arcs[arc].cost - present.cost - graph.nodes[present.head].price;
      label(present.head, base + key, Graph::as_parent(arc));
      return key;
    });
    const std::int64_t steps = 1 + graph.num_arrivals(v) / kKeysPerStep + stats.scanned - scanned_before;
    if (const Status status = pace.step(stats, steps); status != Status::kOptimal) throw Stopped{status};
  }

  // Makes the labels' parents those of a forward search, from `met` on.
  Target join(Graph& graph, NodeId met) const {
    NodeId v = met;
    while (labels_[v].parent != kNone) {
      const std::uint32_t parent = labels_[v].parent;
      if (Graph::is_source_arc(parent)) {
        v = graph.source_arcs[Graph::from_parent(parent)].head;
        graph.nodes[v].parent = parent;
      } else {
        v = graph.owner(parent);
        graph.nodes[v].parent = graph.partner(parent);
      }
    }
    return {v, v != graph.root() && graph.nodes[v].imbalance >= 0, level_};
  }

  void raise(Graph& graph, std::span<const NodeId> ordinary, std::vector<NodeId>& repriced) {
    constexpr std::int64_t kRaised = -1;
    for (NodeId v : ordinary) {
      if (v == graph.root() || graph.is_source(v)) continue;
      const std::int64_t away = labelled(v) ? std::min(labels_[v].distance, level_) : level_;
      if (away == kRaised) continue;
      labels_[v] = {kRaised, stamp_, kNone};
      if (away == 0) continue;
      Node<Value>& node = graph.nodes[v];
      node.price += away;
      if ((node.flags & kTouched) == 0) {
        node.flags |= kTouched;
        repriced.push_back(v);
      }
    }
    graph.prices_rose(level_);
  }

  std::vector<Label> labels_;  // by node
  std::uint32_t stamp_ = 0;
  std::int64_t level_ = 0;
  std::vector<Waiting> heap_;
  std::vector<NodeId> settled_;
};

}  // namespace flowsolver
