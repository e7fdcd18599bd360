// One phase of cost scaling: from any pseudoflow and prices to a flow that is eps-optimal, by partial augment-relabel.
//
// Definitions. Costs are multiplied by `scale`; P are prices of scaled costs; rc = scale * cost - P[tail] + P[head]. A
// pseudoflow is eps-optimal when rc >= -eps on every residual half-edge. Active: a node with excess > 0. Admissible: a
// residual half-edge with rc < 0. eps is a power of two, so that distances are shifts.
//
// Invariant. After `saturate` the pseudoflow is eps-optimal, and every step keeps it so: units move over admissible
// half-edges only (the partner then has rc > 0), and a relabel of a node without one raises its price to the least that
// makes some admissible. Deficits are never relabelled.
//
// Method.
// - saturate: fills every residual half-edge with rc < 0, so that no cycle is admissible, then or later.
// - discharge: active nodes in a queue, first in first out. From one, a path of at most kMostArcs admissible half-edges is
//   grown with current arcs; its tip is relabelled and dropped when stuck; units are then pushed along it. Looking further
//   than one arc keeps units from being pushed where they must come back from.
// - global update, at the start when many are active, and after n relabels: a search backward from all deficits, in buckets
//   (Dial), with lengths floor(rc / eps) + 1; prices rise by eps * distance, which makes a shortest path from every active
//   node admissible but for its last eps. It ends when it has all active nodes; nodes beyond rise as far as the last
//   settled, which keeps eps-optimality.
//
// Infeasibility is proven, never guessed: an active node without a residual half-edge, or a global update that has seen all
// nodes that reach a deficit, and some active node is not among them: those it reaches hold more supply than capacity leads
// out of them.
//
// Termination, range. Let w be a deficit that active v reaches (if none, the update finds that). Adding up rc >= -eps over a
// path of at most n - 1 half-edges from v to w: P[v] <= P[w] + (n - 1)(scale * C + eps), so that a node is relabelled O(n
// (scale C / eps + 1)) times; from a flow that was (eps * a)-optimal, O(n a) times (Goldberg and Tarjan), where prices rise
// by at most n (a + 1) eps. Between two updates n relabels of at most scale * C + eps above a neighbour add n (scale * C +
// eps). `Price` must hold sums of all that (cost_scaling.cpp chooses it).
//
// Complexity. O(n^2 m) a phase in general.
//
// References. Goldberg, The partial augment-relabel algorithm for the maximum flow problem (ESA 2008); Kovacs, Minimum-cost
// flow algorithms: an experimental evaluation (2015), cost scaling with partial augmentation; Goldberg 1997 (price updates).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "arc_graph.hpp"

namespace flowsolver {

template <class V, class Price>
class PushRelabel {
 public:
  PushRelabel(ArcGraph<V>& graph, Price scale, std::vector<Price> price, const Control& control, Stats& stats)
      : graph_(graph),
        scale_(scale),
        price_(std::move(price)),
        stats_(stats),
        pace_(control),
        nodes_(graph.num_nodes()),
        current_(nodes_),
        queue_(nodes_),
        queued_(nodes_),
        distance_(nodes_),
        before_(nodes_),
        after_(nodes_) {}

  // Half-edges whose partner has residual are marked: the update reads half-edges in order and their partners not at all.
  Status prepare() {
    enterable_.resize(graph_.edges.size());
    for (std::size_t e = 0; e < graph_.edges.size(); ++e) {
      enterable_[e] = graph_.edges[graph_.edges[e].partner].residual > 0;
      ++stats_.scanned;
      if (const Status status = pace_.step(stats_); status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  // kOptimal: the flow balances and is eps-optimal for eps = 2^shift, unless `stalled`. kInfeasible, kCancelled, kBudget.
  // Stalled: it took more than `most_relabels` relabels; the pseudoflow is eps-optimal.
  Status run(int shift, std::int64_t most_relabels, bool& stalled) {
    shift_ = shift;
    eps_ = Price{1} << shift;
    ++stats_.phases;
    stalled = false;
    last_relabel_ = most_relabels == kInfinity ? kInfinity : stats_.relabels + most_relabels;
    if (const Status status = saturate(); status != Status::kOptimal) return status;
    if (queue_size_ > nodes_ / kFewActive) {
      if (const Status status = update(); status != Status::kOptimal) return status;
    }
    while (queue_size_ > 0) {
      const NodeId v = dequeue();
      if (const Status status = discharge(v); status != Status::kOptimal) return status;
      if (stats_.relabels > last_relabel_ && (queue_size_ > 0 || graph_.excess[v] > 0)) {
        stalled = true;
        return Status::kOptimal;
      }
    }
    return Status::kOptimal;
  }

  const std::vector<Price>& price() const { return price_; }

 private:
  using HalfEdge = typename ArcGraph<V>::HalfEdge;
  static constexpr int kMostArcs = 4;
  static constexpr std::size_t kFewActive = 64;  // below one node in so many, an update costs more than it spares
  static constexpr std::uint32_t kFar = kNone;
  static constexpr std::uint32_t kMostDistance = std::uint32_t{1} << 20;  // nodes further away rise as if at it
  static constexpr Price kUnreachable = std::numeric_limits<Price>::max();

  Price reduced_cost(const HalfEdge& edge, Price price_here) const {
    return static_cast<Price>(edge.cost) * scale_ - price_here + price_[edge.to];
  }

  void push(NodeId u, std::uint32_t e, std::int64_t amount) {
    const std::uint32_t partner = graph_.edges[e].partner;
    graph_.push(u, e, amount);
    enterable_[e] = 1;
    enterable_[partner] = graph_.edges[e].residual > 0;
    ++stats_.pushes;
  }

  void enqueue(NodeId v) {
    if (queued_[v] != 0) return;
    queued_[v] = 1;
    std::size_t place = queue_head_ + queue_size_;
    if (place >= nodes_) place -= nodes_;
    queue_[place] = v;
    ++queue_size_;
  }

  NodeId dequeue() {
    const NodeId v = queue_[queue_head_];
    if (++queue_head_ == nodes_) queue_head_ = 0;
    --queue_size_;
    queued_[v] = 0;
    return v;
  }

  Status saturate() {
    for (NodeId u = 0; u < nodes_; ++u) {
      const Price price_u = price_[u];
      const std::uint32_t first = graph_.first[u], last = graph_.first[u + 1];
      for (std::uint32_t e = first; e < last; ++e) {
        const HalfEdge& edge = graph_.edges[e];
        if (edge.residual > 0 && reduced_cost(edge, price_u) < 0) push(u, e, edge.residual);
      }
      current_[u] = first;
      stats_.scanned += last - first;
      if (const Status status = pace_.step(stats_, last - first + 1); status != Status::kOptimal) return status;
    }
    std::fill(queued_.begin(), queued_.end(), std::uint8_t{0});
    queue_size_ = 0;
    for (NodeId u = 0; u < nodes_; ++u) {
      if (graph_.excess[u] > 0) enqueue(u);
    }
    return Status::kOptimal;
  }

  void insert(NodeId v, std::uint32_t distance) {
    if (distance >= bucket_.size()) bucket_.resize(distance + 1, kNone);
    distance_[v] = distance;
    before_[v] = kNone;
    after_[v] = bucket_[distance];
    if (after_[v] != kNone) before_[after_[v]] = v;
    bucket_[distance] = v;
    ++waiting_;
  }

  void remove(NodeId v) {
    if (before_[v] == kNone) {
      bucket_[distance_[v]] = after_[v];
    } else {
      after_[before_[v]] = after_[v];
    }
    if (after_[v] != kNone) before_[after_[v]] = before_[v];
    --waiting_;
  }

  // Settles v: what leads to it is at most its distance and the length of the half-edge away.
  void settle(NodeId v, std::uint32_t distance) {
    const Price price_v = price_[v];
    const std::uint32_t last = graph_.first[v + 1];
    for (std::uint32_t e = graph_.first[v]; e < last; ++e) {
      if (enterable_[e] == 0) continue;
      const HalfEdge& edge = graph_.edges[e];
      const NodeId u = edge.to;
      if (distance_[u] <= distance) continue;
      const Price length = ((-static_cast<Price>(edge.cost) * scale_ - price_[u] + price_v) >> shift_) + 1;
      if (length > static_cast<Price>(kMostDistance - distance)) {
        cut_off_ = true;
        continue;
      }
      const std::uint32_t reached = distance + static_cast<std::uint32_t>(length);
      if (reached >= distance_[u]) continue;
      if (distance_[u] != kFar) remove(u);
      insert(u, reached);
    }
    stats_.scanned += last - graph_.first[v];
    ++stats_.settled;
  }

  Status update() {
    ++stats_.searches;
    relabels_since_update_ = 0;
    std::fill(distance_.begin(), distance_.end(), kFar);
    bucket_.clear();
    waiting_ = 0;
    cut_off_ = false;
    NodeId active = 0;
    for (NodeId v = 0; v < nodes_; ++v) {
      active += graph_.excess[v] > 0;
      if (graph_.excess[v] < 0) insert(v, 0);
    }
    std::uint32_t distance = 0;
    while (active > 0 && waiting_ > 0) {
      const NodeId v = bucket_[distance];
      if (v == kNone) {
        ++distance;
        continue;
      }
      remove(v);
      settle(v, distance);
      active -= graph_.excess[v] > 0;
      const std::int64_t steps = graph_.first[v + 1] - graph_.first[v] + 1;
      if (const Status status = pace_.step(stats_, steps); status != Status::kOptimal) return status;
    }
    if (active > 0) {
      if (!cut_off_) return Status::kInfeasible;
      distance = kMostDistance;
    }
    if (distance == 0) return Status::kOptimal;
    for (NodeId v = 0; v < nodes_; ++v) {
      const std::uint32_t rise = std::min(distance_[v], distance);
      if (rise == 0) continue;
      price_[v] += static_cast<Price>(rise) << shift_;
      current_[v] = graph_.first[v];
    }
    return Status::kOptimal;
  }

  // The first admissible half-edge of v from its current one on, or kNone: `least` is then the least reduced cost.
  std::uint32_t find_admissible(NodeId v, Price& least) {
    const std::uint32_t first = graph_.first[v], last = graph_.first[v + 1];
    const Price price_v = price_[v];
    least = kUnreachable;
    for (std::uint32_t e = current_[v]; e < last; ++e) {
      const HalfEdge& edge = graph_.edges[e];
      if (edge.residual == 0) continue;
      const Price rc = reduced_cost(edge, price_v);
      if (rc < 0) {
        stats_.scanned += e - current_[v] + 1;
        current_[v] = e;
        return e;
      }
      least = std::min(least, rc);
    }
    for (std::uint32_t e = first; e < current_[v]; ++e) {
      const HalfEdge& edge = graph_.edges[e];
      if (edge.residual > 0) least = std::min(least, reduced_cost(edge, price_v));
    }
    stats_.scanned += last - first;
    return kNone;
  }

  // Ends with excess left only when the phase has had all its relabels.
  Status discharge(NodeId start) {
    std::array<std::uint32_t, kMostArcs> path;
    std::array<NodeId, kMostArcs + 1> node;
    node[0] = start;
    while (graph_.excess[start] > 0 && stats_.relabels <= last_relabel_) {
      int length = 0;
      while (length < kMostArcs && graph_.excess[node[length]] >= 0 && relabels_since_update_ <= nodes_) {
        const NodeId tip = node[length];
        Price least;
        const std::int64_t scanned = stats_.scanned;
        const std::uint32_t e = find_admissible(tip, least);
        if (const Status status = pace_.step(stats_, stats_.scanned - scanned + 1); status != Status::kOptimal) return status;
        if (e != kNone) {
          path[length++] = e;
          node[length] = graph_.edges[e].to;
          continue;
        }
        // The way back is residual once units have come this way.
        if (length > 0) {
          const std::uint32_t back = graph_.edges[path[length - 1]].partner;
          least = std::min(least, reduced_cost(graph_.edges[back], price_[tip]));
        }
        if (least == kUnreachable) return Status::kInfeasible;
        price_[tip] += least + eps_;
        current_[tip] = graph_.first[tip];
        ++stats_.relabels;
        ++relabels_since_update_;
        if (length > 0) --length;
      }
      for (int i = 0; i < length && graph_.excess[node[i]] > 0; ++i) {
        const std::int64_t amount = std::min<std::int64_t>(graph_.edges[path[i]].residual, graph_.excess[node[i]]);
        push(node[i], path[i], amount);
        if (i > 0 && graph_.excess[node[i]] > 0) enqueue(node[i]);
      }
      if (node[length] != start && graph_.excess[node[length]] > 0) enqueue(node[length]);
      ++stats_.augmentations;
      if (relabels_since_update_ > nodes_) {
        if (const Status status = update(); status != Status::kOptimal) return status;
      }
    }
    return Status::kOptimal;
  }

  ArcGraph<V>& graph_;
  const Price scale_;
  std::vector<Price> price_;
  Stats& stats_;
  Pace pace_;
  const NodeId nodes_;
  int shift_ = 0;
  Price eps_ = 1;
  LargeArray<std::uint8_t> enterable_;  // per half-edge
  std::vector<std::uint32_t> current_;  // half-edges of the node before it are not admissible
  std::vector<NodeId> queue_;           // a ring
  std::vector<std::uint8_t> queued_;
  std::size_t queue_head_ = 0, queue_size_ = 0;
  std::int64_t relabels_since_update_ = 0, last_relabel_ = kInfinity;
  // Global update: doubly linked lists of nodes, one for each distance.
  std::vector<std::uint32_t> distance_;
  std::vector<NodeId> before_, after_, bucket_;
  NodeId waiting_ = 0;
  bool cut_off_ = false;
};

}  // namespace flowsolver
