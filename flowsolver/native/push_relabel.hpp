// One phase of cost scaling: from any pseudoflow and prices to a flow that is eps-optimal, by partial augment-relabel.
//
// Definitions. Costs are multiplied by `scale`; P are prices of scaled costs; rc = scale * cost - P[tail] + P[head]. A
// pseudoflow is eps-optimal when rc >= -eps on every residual half-edge. Active: a node with excess > 0. Admissible: a
// residual half-edge with rc < 0. eps is a power of two, so that distances are shifts. Open: half-edges that the phase
// looks at (arc_fixing.hpp); what is said of half-edges is said of open ones.
//
// Invariant. After `saturate` the pseudoflow is eps-optimal, and every step keeps it so: units move over admissible
// half-edges only (the partner then has rc > 0), and a relabel of a node without one raises its price at most to the least
// that makes some admissible. Deficits are never relabelled.
//
// Method.
// - saturate: fills every residual half-edge with rc < 0, so that no cycle is admissible, then or later. Half-edges with
//   |rc| beyond a bound given are fixed, all others are open.
// - discharge: active nodes in a queue, first in first out. From one, a path of at most kMostArcs admissible half-edges is
//   grown with current arcs; its tip is relabelled and dropped when stuck; units are then pushed along it. Looking further
//   than one arc keeps units from being pushed where they must come back from. A tip is raised as far as its residual
//   half-edges let it: the way back to where the path came from is not one of them, since no unit has come that way.
//   (Taking it for one, as is usual, raises aggregators by two eps at a time: contended cells took five times as many
//   relabels.)
// - relabel: of a node of more than kWide half-edges by eps as soon as one is found that this makes admissible.
// - global update, at the start when many are active, and whenever eight times as many half-edges have been looked at as
//   the last update took, and half of the open ones besides: a search backward from all deficits (distance_queue.hpp) with
//   lengths floor(rc / eps) + 1; prices rise by eps * distance, which makes a shortest path from every active node
//   admissible but for its last eps. It ends when it has all active nodes; nodes beyond rise as far as the last settled,
//   which keeps eps-optimality. So that its work is that of the nodes it has seen, what all have risen is one figure, and
//   the settled fall by what they should rise less.
//
// Stalls. A phase that starts from no feasible flow gets nowhere, or not soon enough, when eps is small beside how far
// prices must climb. It is left when, after each node has been relabelled once on average or each half-edge looked at eight
// times, the excess has not fallen by a 24th of what it was at first, nor by a third; or when an update after the first
// still raises prices by a 16th of what the first did, and by more than 1024 eps.
//
// Infeasibility is proven, never guessed: an active node without a residual half-edge, or a global update that has seen all
// nodes that reach a deficit, and some active node is not among them: those it reaches hold more supply than capacity leads
// out of them.
//
// Termination, range. Let w be a deficit that active v reaches (if none, the update finds that). Adding up rc >= -eps over
// a path of at most n - 1 half-edges from v to w: P[v] <= P[w] + (n - 1)(scale * C + eps), so that a node is relabelled O(n
// (scale C / eps + 1)) times while active; from a flow that was (eps * a)-optimal, O(n a) times (Goldberg and Tarjan). The
// tip of a path is at most kMostArcs half-edges below an active node before it is raised, so that each node is raised above
// that at most once more, at most scale * C + eps above a neighbour: in all at most 2 n (scale * C + eps) above the
// deficits. Nodes that reach no deficit rise with every update. A phase that could leave the range, or does, says so: 64
// bits hold prices kMostPrice from zero and as much rise.
//
// Complexity. O(n^2 m) a phase in general.
//
// References. Goldberg, The partial augment-relabel algorithm for the maximum flow problem (ESA 2008); Kovacs, Minimum-cost
// flow algorithms: an experimental evaluation (2015), cost scaling with partial augmentation; Goldberg 1997 (price updates,
// arc fixing). Departures: the way back is left out of relabels; updates are due by work, not by relabels, and local.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "arc_fixing.hpp"
#include "arc_graph.hpp"
#include "distance_queue.hpp"

namespace flowsolver {

struct Phase {
  Status status = Status::kOptimal;  // the flow balances and is eps-optimal, unless one of the following; or kInfeasible
                                     // among what is open, kCancelled, kBudget
  bool stalled = false;              // the pseudoflow is eps-optimal
  bool out_of_range = false;         // any pseudoflow and prices
};

template <class V, class Price>
class PushRelabel {
 public:
  // `price`: per node, of scaled costs.
  PushRelabel(ArcGraph<V>& graph, Price scale, Price largest_cost, const std::vector<Price>& price, const Control& control,
              Stats& stats)
      : graph_(graph),
        scale_(scale),
        largest_cost_(largest_cost),
        control_(control),
        stats_(stats),
        pace_(control),
        nodes_(graph.num_nodes()),
        node_(nodes_),
        fixing_(graph, enterable_),
        queue_(nodes_),
        queued_(nodes_) {
    for (NodeId v = 0; v < nodes_; ++v) node_[v] = {price[v], graph.first[v], kFar};
  }

  // For eps = 2^shift. Arcs with |rc| > fix_beyond keep their flow; 0: none.
  Phase run(int shift, bool may_stall, Price fix_beyond) {
    shift_ = shift;
    eps_ = Price{1} << shift;
    ++stats_.phases;
    phase_ = {};
    may_stall_ = may_stall;
    first_distance_ = 0;
    settle_rise();
    if (phase_.out_of_range) return phase_;
    phase_.status = saturate(fix_beyond);
    if (phase_.status == Status::kOptimal) phase_.status = discharge_all();
    return phase_;
  }

  std::vector<Price> price() const {
    Pace pace(control_);
    std::vector<Price> price(nodes_);
    for (NodeId v = 0; v < nodes_; ++v) {
      pace.build_step(stats_);
      price[v] = node_[v].price + risen_;
    }
    return price;
  }

  // Before the graph's own index of arcs is used again.
  void finish() { fixing_.finish(); }

 private:
  using HalfEdge = typename ArcGraph<V>::HalfEdge;
  struct Node {
    Price price;             // less what all have risen
    std::uint32_t current;   // open half-edges before it are not admissible
    std::uint32_t distance;  // in a global update, else kFar
  };
  static constexpr int kMostArcs = 4;
  static constexpr std::uint32_t kWide = 64;
  static constexpr std::size_t kFewActive = 64;       // below one node in so many, an update costs more than it spares
  static constexpr std::int64_t kScansPerUpdate = 8;  // an update's scans take longer than others
  static constexpr std::int64_t kScansPerCheck = 8, kLeastProgress = 24;
  static constexpr std::uint32_t kFewSteps = 1024, kLeastApproach = 16;
  static constexpr std::uint32_t kFar = kNone;
  static constexpr std::uint32_t kMostDistance = std::uint32_t{1} << 31;  // nodes further away rise as if at it
  static constexpr Price kUnreachable = std::numeric_limits<Price>::max();
  static constexpr Price kMostPrice = Price{1} << (8 * sizeof(Price) - 4);

  Price reduced_cost(const HalfEdge& edge, Price price_here) const {
    return static_cast<Price>(edge.cost) * scale_ - price_here + node_[edge.to].price;
  }

  void push(NodeId u, std::uint32_t e, std::int64_t amount) {
    const std::uint32_t partner = graph_.edges[e].partner;
    graph_.push(u, e, amount);
    ++stats_.pushes;
    if (enterable_.empty()) return;
    enterable_[e] = 1;
    enterable_[partner] = graph_.edges[e].residual > 0;
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

  // What all have risen goes into their prices; those must leave room for what a phase adds (see the header).
  void settle_rise() {
    Price furthest = 0;
    for (Node& node : node_) {
      node.price += risen_;
      furthest = std::max(furthest, node.price < 0 ? -node.price : node.price);
    }
    risen_ = 0;
    const Price most = (kMostPrice - furthest) / 2 / (static_cast<Price>(nodes_) + 1);
    phase_.out_of_range = furthest > kMostPrice || scale_ * largest_cost_ + eps_ > most;
  }

  Status saturate(Price fix_beyond) {
    num_open_ = 0;
    for (NodeId u = 0; u < nodes_; ++u) {
      const Price price_u = node_[u].price;
      const std::uint32_t first = graph_.first[u], last = graph_.first[u + 1];
      for (std::uint32_t e = first; e < last; ++e) {
        const HalfEdge& edge = graph_.edges[e];
        if (edge.residual > 0 && reduced_cost(edge, price_u) < 0) push(u, e, edge.residual);
      }
      Status status = pace_.step(stats_, last - first + 1);
      if (fix_beyond == 0) {
        fixing_.open_all(u);
      } else if (status == Status::kOptimal) {
        const auto far = [&](const HalfEdge& edge) {
          const Price rc = reduced_cost(edge, price_u);
          return rc > fix_beyond || rc < -fix_beyond;
        };
        status = fixing_.partition(u, far, pace_, stats_);
      }
      node_[u].current = fixing_.open(u);
      num_open_ += last - fixing_.open(u);
      stats_.scanned += last - first;
      if (status != Status::kOptimal) return status;
    }
    std::fill(queued_.begin(), queued_.end(), std::uint8_t{0});
    queue_size_ = 0;
    deficits_.clear();
    active_ = 0;
    for (NodeId u = 0; u < nodes_; ++u) {
      if (graph_.excess[u] > 0) {
        enqueue(u);
        ++active_;
      } else if (graph_.excess[u] < 0) {
        deficits_.push_back(u);
      }
    }
    return Status::kOptimal;
  }

  std::int64_t total_excess() const {
    std::int64_t total = 0;
    for (std::int64_t excess : graph_.excess) total += std::max<std::int64_t>(0, excess);
    return total;
  }

  void begin_check() {
    check_at_relabels_ = stats_.relabels + nodes_;
    check_at_scanned_ = stats_.scanned + kScansPerCheck * static_cast<std::int64_t>(graph_.edges.size());
  }

  bool makes_progress() {
    if (stats_.relabels <= check_at_relabels_ && stats_.scanned <= check_at_scanned_) return true;
    const std::int64_t excess = total_excess(), fallen = last_excess_ - excess;
    if (fallen < first_excess_ / kLeastProgress && fallen < last_excess_ / 3) return false;
    last_excess_ = excess;
    begin_check();
    return true;
  }

  // Before the first update: half-edges whose partner has residual are marked, so that updates read half-edges in order and
  // their partners not at all. A phase with little to do gets by without updates.
  Status mark_enterable() {
    enterable_.resize(graph_.edges.size());
    for (std::size_t e = 0; e < graph_.edges.size(); ++e) {
      enterable_[e] = graph_.edges[graph_.edges[e].partner].residual > 0;
      ++stats_.scanned;
      if (const Status status = pace_.step(stats_); status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  void reach(NodeId v, std::uint32_t distance) {
    if (node_[v].distance == kFar) touched_.push_back(v);
    node_[v].distance = distance;
    nearest_.insert(v, distance);
  }

  // Settles v: what leads to it is at most its distance and the length of the half-edge away.
  void settle(NodeId v, std::uint32_t distance) {
    const Price price_v = node_[v].price;
    const std::uint32_t open = fixing_.open(v), last = graph_.first[v + 1];
    for (std::uint32_t e = open; e < last; ++e) {
      if (enterable_[e] == 0) continue;
      const HalfEdge& edge = graph_.edges[e];
      const Node& u = node_[edge.to];
      if (u.distance <= distance) continue;
      const Price length = ((-static_cast<Price>(edge.cost) * scale_ - u.price + price_v) >> shift_) + 1;
      if (length > static_cast<Price>(kMostDistance - distance)) {
        cut_off_ = true;
        continue;
      }
      const std::uint32_t reached = distance + static_cast<std::uint32_t>(length);
      if (reached < u.distance) reach(edge.to, reached);
    }
    stats_.scanned += last - open;
    ++stats_.settled;
  }

  // Settles nodes until all active ones are; `distance` is then the furthest's.
  Status search(std::uint32_t& distance) {
    nearest_.clear();
    touched_.clear();
    cut_off_ = false;
    std::erase_if(deficits_, [this](NodeId v) { return graph_.excess[v] >= 0; });
    for (NodeId v : deficits_) reach(v, 0);
    for (std::size_t waiting = active_; waiting > 0;) {
      const NodeId v = nearest_.take([this](NodeId u) { return node_[u].distance; });
      if (v == kNone) {
        distance = kMostDistance;
        return cut_off_ ? Status::kOptimal : Status::kInfeasible;
      }
      distance = node_[v].distance;
      settle(v, distance);
      waiting -= graph_.excess[v] > 0;
      const std::int64_t steps = graph_.first[v + 1] - fixing_.open(v) + 1;
      if (const Status status = pace_.step(stats_, steps); status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  Status update() {
    if (enterable_.empty()) {
      if (const Status status = mark_enterable(); status != Status::kOptimal) return status;
    }
    ++stats_.searches;
    const std::int64_t scanned = stats_.scanned;
    std::uint32_t distance = 0;
    const Status status = search(distance);
    if (status != Status::kOptimal) distance = 0;
    for (NodeId v : touched_) {
      Node& node = node_[v];
      if (node.distance < distance) node.price -= static_cast<Price>(distance - node.distance) << shift_;
      node.current = fixing_.open(v);
      node.distance = kFar;
    }
    risen_ += static_cast<Price>(distance) << shift_;
    if (risen_ > kMostPrice) phase_.out_of_range = true;
    if (first_distance_ == 0) {
      first_distance_ = distance;
    } else if (may_stall_ && distance > std::max(kFewSteps, first_distance_ / kLeastApproach)) {
      phase_.stalled = true;
    }
    next_update_ = stats_.scanned + kScansPerUpdate * (stats_.scanned - scanned) + num_open_ / 2;
    return status;
  }

  // The first admissible half-edge of v from its current one on, or kNone.
  std::uint32_t find_admissible(NodeId v) {
    const std::uint32_t begin = node_[v].current, last = graph_.first[v + 1];
    const Price price_v = node_[v].price;
    std::uint32_t e = begin;
    while (e < last && (graph_.edges[e].residual == 0 || reduced_cost(graph_.edges[e], price_v) >= 0)) ++e;
    node_[v].current = e;
    stats_.scanned += e - begin + 1;
    return e < last ? e : kNone;
  }

  // Raises v, none of whose half-edges is admissible. `back`: reduced cost of the way back, for when nothing is residual;
  // false when that is kUnreachable as well.
  bool relabel(NodeId v, Price back) {
    const std::uint32_t first = fixing_.open(v), last = graph_.first[v + 1];
    const Price price_v = node_[v].price;
    const Price enough = last - first > kWide ? eps_ : 0;
    Price least = kUnreachable, least_before = kUnreachable;  // what is before `at` costs at least least_before
    std::uint32_t at = first;
    ++stats_.relabels;
    for (std::uint32_t e = first; e < last; ++e) {
      const HalfEdge& edge = graph_.edges[e];
      if (edge.residual == 0) continue;
      const Price rc = reduced_cost(edge, price_v);
      if (rc >= least) continue;
      if (rc < enough) {
        stats_.scanned += e - first + 1;
        node_[v].price += eps_;
        node_[v].current = e;
        return true;
      }
      least_before = least;
      least = rc;
      at = e;
    }
    stats_.scanned += last - first;
    if (least == kUnreachable) least = back;
    if (least == kUnreachable) return false;
    node_[v].price += least + eps_;
    node_[v].current = least_before - least >= eps_ ? at : first;
    return true;
  }

  // A path of admissible half-edges, as far as it got; relabels on the way.
  struct Path {
    std::array<std::uint32_t, kMostArcs> edge;
    std::array<NodeId, kMostArcs + 1> node;
    int length = 0;
  };
  Status grow(Path& path) {
    while (path.length < kMostArcs && graph_.excess[path.node[path.length]] >= 0 && stats_.scanned <= next_update_) {
      const NodeId tip = path.node[path.length];
      const std::int64_t scanned = stats_.scanned;
      const std::uint32_t e = find_admissible(tip);
      if (e != kNone) {
        path.edge[path.length++] = e;
        path.node[path.length] = graph_.edges[e].to;
      } else {
        Price back = kUnreachable;
        if (path.length > 0) {
          back = reduced_cost(graph_.edges[graph_.edges[path.edge[path.length - 1]].partner], node_[tip].price);
          --path.length;
        }
        if (!relabel(tip, back)) return Status::kInfeasible;
      }
      if (const Status status = pace_.step(stats_, stats_.scanned - scanned + 1); status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  void push_along(const Path& path) {
    for (int i = 0; i < path.length && graph_.excess[path.node[i]] > 0; ++i) {
      const NodeId u = path.node[i], v = path.node[i + 1];
      const bool was_active = graph_.excess[v] > 0;
      push(u, path.edge[i], std::min<std::int64_t>(graph_.edges[path.edge[i]].residual, graph_.excess[u]));
      if (graph_.excess[u] == 0) --active_;
      if (!was_active && graph_.excess[v] > 0) ++active_;
      if (i > 0 && graph_.excess[u] > 0) enqueue(u);
    }
    const NodeId end = path.node[path.length];
    if (path.length > 0 && graph_.excess[end] > 0) enqueue(end);
    ++stats_.augmentations;
  }

  // Ends with excess left only when the phase does.
  Status discharge(NodeId v) {
    Path path;
    path.node[0] = v;
    while (graph_.excess[v] > 0 && !phase_.stalled && !phase_.out_of_range) {
      path.length = 0;
      if (const Status status = grow(path); status != Status::kOptimal) return status;
      push_along(path);
      if (stats_.scanned <= next_update_) continue;
      if (may_stall_ && !makes_progress()) {
        phase_.stalled = true;
      } else if (const Status status = update(); status != Status::kOptimal) {
        return status;
      }
    }
    return Status::kOptimal;
  }

  Status discharge_all() {
    first_excess_ = last_excess_ = total_excess();
    begin_check();
    next_update_ = stats_.scanned + num_open_;
    if (active_ > nodes_ / kFewActive) {
      if (const Status status = update(); status != Status::kOptimal) return status;
    }
    while (queue_size_ > 0 && !phase_.stalled && !phase_.out_of_range) {
      const NodeId v = dequeue();
      if (const Status status = discharge(v); status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  ArcGraph<V>& graph_;
  const Price scale_, largest_cost_;
  const Control& control_;
  Stats& stats_;
  Pace pace_;
  const NodeId nodes_;
  int shift_ = 0;
  Price eps_ = 1;
  Phase phase_;
  LargeArray<Node> node_;
  Price risen_ = 0;
  LargeArray<std::uint8_t> enterable_;  // per half-edge, from the first update on
  ArcFixing<V> fixing_;
  std::int64_t num_open_ = 0;
  std::vector<NodeId> queue_;  // active nodes, a ring
  std::vector<std::uint8_t> queued_;
  std::size_t queue_head_ = 0, queue_size_ = 0;
  std::size_t active_ = 0;  // how many, in the queue or not
  bool may_stall_ = false;
  std::int64_t first_excess_ = 0, last_excess_ = 0, check_at_relabels_ = 0, check_at_scanned_ = 0;
  // Global update.
  std::int64_t next_update_ = 0;  // due when more are scanned
  std::uint32_t first_distance_ = 0;
  std::vector<NodeId> deficits_, touched_;
  DistanceQueue nearest_;
  bool cut_off_ = false;
};

}  // namespace flowsolver
