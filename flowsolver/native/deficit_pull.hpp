// How deficits are met after changes: by flow taken back on the way it used to go, or pulled from the root (balanced_graph.hpp)
// along the shortest way. Definitions and signs: relaxation.hpp.
//
// Tracing back. What a removed task leaves is a deficit where its flow went first, and the flow goes on from there to the
// root. It is taken off arc by arc, as long as arcs out with flow are balanced (Firmament, section 5.3.2): mostly to the
// root in two or three steps, else to where room came free, which is nearer to who wants it.
//
// Pulling, the mirror image of raising a set. Let d(v) be the distance from v to the deficit in reduced costs, along
// residual half-edges, and D that of the root. Lowering every v with d(v) < D by D - d(v) is to lower the sets {d <= t} for
// t = 0 .. D - 1 in turn: each holds a deficit and no excess, and no balanced half-edge leads into it, so that the dual objective
// rises with each. Reduced-cost optimality stays, and the way from the root is balanced: flow is sent along it. The search ends
// where the root is found at the distance it has come to; what lies beyond is not looked at. If the root is not found at
// all, nothing leads to the deficit any more, which proves that no flow is feasible.
//
// Precondition: there is a root, and no node has excess.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "balanced_graph.hpp"

namespace flowsolver {

template <class Arcs>
class DeficitPull {
 public:
  using Graph = BalancedGraph<Arcs>;
  using Edge = typename Graph::Edge;
  using Place = typename Graph::Place;

  // `loosens`: sources whose prices fell are loosened again.
  DeficitPull(Graph& graph, bool loosens, const Control& control, Stats& stats)
      : graph_(graph), loosens_(loosens), pace_(control), stats_(stats) {}

  // As far as it gets; v has a deficit. Where room came free is made known to the nodes above.
  void trace_back(NodeId v) {
    for (int steps = 0; steps < kMostSteps && v != graph_.root && graph_.excess(v) < 0; ++steps) {
      const Arcs& arcs = graph_.arcs();
      std::uint32_t i = arcs.begin(v);
      for (; i < arcs.middle(v); ++i) {
        const Edge& edge = arcs.edges[i];
        ++stats_.scanned;
        if (graph_.reduced_cost(v, edge) == 0 && arcs.edges[edge.partner].residual > 0) break;
      }
      if (i == arcs.middle(v)) return;
      const std::uint32_t back = arcs.edges[i].partner;
      const NodeId to = arcs.edges[i].to;
      graph_.push(to, back, std::min<std::int64_t>(-graph_.excess(v), arcs.edges[back].residual), stats_);
      if (to == graph_.root) advertise(v);
      if (graph_.excess(v) == 0) v = to;
    }
  }

  // Sends some flow to v, which has a deficit. kCancelled: nothing has changed. kInfeasible: proven. It does not stop at a
  // budget: the same budget again and again would never be enough.
  Status pull(NodeId v) {
    const Arcs& arcs = graph_.arcs();
    ++stats_.searches;
    nearest_ = kInfinity;
    lowest_price_ = 0;
    label(v, 0, kNone);
    Status status = Status::kOptimal;
    while (!heap_.empty() && status != Status::kCancelled) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const auto [distance, order, w] = heap_.back();
      heap_.pop_back();
      if (distance >= nearest_) break;
      if (graph_.nodes[w].place == Place::kInside) continue;
      graph_.nodes[w].place = Place::kInside;
      ++stats_.settled;
      std::uint32_t i = arcs.begin(w);
      for (; i < arcs.end(w) && distance < nearest_; ++i) {
        const Edge& edge = arcs.edges[i];
        const auto& tail = graph_.nodes[edge.to];
        const std::int64_t length = -graph_.reduced_cost(w, edge);  // of the half-edge that leads here
        if (length < 0 || length >= nearest_ - distance || tail.place == Place::kInside) continue;
        if (tail.place == Place::kLabelled && graph_.cut[edge.to] <= distance + length) continue;
        if (arcs.edges[edge.partner].residual == 0) continue;
        label(edge.to, distance + length, edge.partner);
        if (edge.to == graph_.root) nearest_ = distance + length;
      }
      const std::int64_t steps = i - arcs.begin(w);
      stats_.scanned += steps;
      status = pace_.step(stats_, steps + 1);
    }
    if (status != Status::kCancelled) {
      status = Status::kInfeasible;
      if (nearest_ != kInfinity) {
        augment(v);
        status = Status::kOptimal;
      }
    }
    for (NodeId w : labelled_) {
      const std::int64_t distance = graph_.cut[w];
      if (status == Status::kOptimal && distance < nearest_) graph_.lower(w, nearest_ - distance);
      lowest_price_ = std::min(lowest_price_, graph_.nodes[w].price);
      graph_.nodes[w].place = Place::kOutside;
      graph_.nodes[w].parent = kNone;
      graph_.cut[w] = 0;
    }
    if (loosens_ && status == Status::kOptimal) {
      for (NodeId w : labelled_) {
        if (graph_.nodes[w].source && w != graph_.root && graph_.excess(w) == 0) graph_.loosen(w, stats_);
      }
    }
    labelled_.clear();
    heap_.clear();
    return status;
  }

  std::int64_t lowest_price() const { return lowest_price_; }  // of those the last pull came to

 private:
  static constexpr int kMostSteps = 64;
  static constexpr std::uint32_t kMostLooked = 4096;  // half-edges of a node looked at for who leads there
  struct Reached {
    std::int64_t distance;
    std::uint32_t order;
    NodeId node;
    bool operator>(const Reached& other) const {
      return distance != other.distance ? distance > other.distance : order > other.order;
    }
  };

  // v has a balanced way to the root. So have up to two levels of nodes from which a balanced half-edge leads to it; sources
  // look at theirs anyway.
  void advertise(NodeId v) {
    const Arcs& arcs = graph_.arcs();
    graph_.nodes[v].hops = 1;
    for (int level = 0; level < 2 && arcs.end(v) - arcs.begin(v) <= kMostLooked; ++level) {
      const std::uint32_t hops = graph_.nodes[v].hops + 1;
      NodeId above = kNone;
      for (std::uint32_t i = arcs.middle(v); i < arcs.end(v); ++i) {
        const Edge& edge = arcs.edges[i];
        auto& tail = graph_.nodes[edge.to];
        if (tail.source || tail.hops <= hops || edge.to == graph_.root) continue;
        if (graph_.reduced_cost(v, edge) != 0 || arcs.edges[edge.partner].residual == 0) continue;
        tail.hops = hops;
        tail.current = 0;
        above = edge.to;
      }
      stats_.scanned += arcs.end(v) - arcs.middle(v);
      if (above == kNone) return;
      v = above;
    }
  }

  // `way`: the half-edge by which it goes on to the deficit.
  void label(NodeId v, std::int64_t distance, std::uint32_t way) {
    auto& node = graph_.nodes[v];
    if (node.place == Place::kOutside) {
      node.place = Place::kLabelled;
      labelled_.push_back(v);
    }
    node.parent = way;
    graph_.cut[v] = distance;
    heap_.push_back({distance, static_cast<std::uint32_t>(labelled_.size()), v});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  void augment(NodeId target) {
    std::int64_t room = -graph_.excess(target);
    for (NodeId v = graph_.root; v != target; v = graph_.edge(graph_.nodes[v].parent).to) {
      room = std::min<std::int64_t>(room, graph_.edge(graph_.nodes[v].parent).residual);
    }
    for (NodeId v = graph_.root; v != target; v = graph_.edge(graph_.nodes[v].parent).to) {
      graph_.move(graph_.nodes[v].parent, room);
      ++stats_.pushes;
    }
    ++stats_.augmentations;
    graph_.add_excess(graph_.root, -room);
    graph_.add_excess(target, room);
  }

  Graph& graph_;
  const bool loosens_;
  Pace pace_;
  Stats& stats_;
  std::int64_t nearest_ = kInfinity;  // distance of the root, as far as is known
  std::int64_t lowest_price_ = 0;
  std::vector<NodeId> labelled_;
  std::vector<Reached> heap_;
};

}  // namespace flowsolver
