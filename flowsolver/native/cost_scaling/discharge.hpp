// Discharging active nodes in a phase of cost scaling: partial augment-relabel. `View`:
// scaled_graph.hpp.
//
// Definitions. Active: a node with excess > 0. Admissible: a residual half-edge with rc < 0.
// Deficits are never relabelled.
//
// Invariant. eps-optimality: units move over admissible half-edges only (the partner then has rc >
// 0), and a relabel of a node without one raises its price at most so far that some become
// admissible. The current arc shows that there is none: no half-edge of a node before it is
// admissible. Whoever lowers a price, or moves half-edges, must maintain that.
//
// Method. Active nodes are in a queue, first in first out. From one, a path of up to kMaxPathArcs
// admissible half-edges is grown along current arcs. Its tip is relabelled and dropped when it is
// stuck. Units are then pushed along the path. Looking further than one arc avoids pushing units
// that must come back.
// - A tip is raised as far as its residual half-edges allow, not counting the one back to where the
//   path came from, since no unit has come that way. (Counting it, as is usual, raises aggregators
//   by two eps at a time: contended cells took five times as many relabels.)
// - A node with more than kWide half-edges is relabelled by eps as soon as a half-edge is found
//   that this makes admissible.
//
// Infeasibility: an active node without a residual half-edge.
//
// References. Goldberg, The partial augment-relabel algorithm for the maximum flow problem (ESA
// 2008); Kovacs, Minimum-cost flow algorithms: an experimental evaluation (2015). Departure: the
// half-edge back is left out of relabels.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "cost_scaling/active_queue.hpp"
#include "cost_scaling/scaled_graph.hpp"

namespace flowsolver {

// How a phase ended.
struct Phase {
  Status status =
      Status::kOptimal;  // the flow balances and is eps-optimal, unless one of the following; or
                         // kInfeasible among what is open, kCancelled, kBudget
  bool stalled = false;  // the pseudoflow is eps-optimal
  bool out_of_range = false;  // any pseudoflow and prices

  bool succeeded() const { return status == Status::kOptimal && !stalled && !out_of_range; }
};

template <class View>
class Discharge {
 public:
  using Price = typename View::Price;

  Discharge(View& view, ActiveQueue& queue, CancellationChecker& checker, Stats& stats)
      : view_(view), graph_(view.graph()), queue_(queue), checker_(checker), stats_(stats) {}

  // Precondition: the `active` nodes are in the queue. When stats.scanned exceeds the limit of
  // set_next_update, `update(active)` is called, which sets the next limit; a Phase that has not
  // succeeded ends this one. Nodes that are still active are then in the queue.
  template <class Update>
  Phase run(std::size_t active, const Update& update) {
    active_ = active;
    while (!queue_.empty()) {  // checks: in `update`
      const NodeId v = queue_.pop();
      const Phase phase = discharge(v, update);
      if (phase.succeeded()) continue;
      if (graph_.excess[v] > 0) queue_.push(v);
      return phase;
    }
    return {};
  }

  void set_next_update(std::int64_t scanned) { next_update_ = scanned; }

 private:
  using HalfEdge = typename View::HalfEdge;
  static constexpr int kMaxPathArcs = 4;
  static constexpr std::uint32_t kWide = 64;
  static constexpr Price kUnreachable = std::numeric_limits<Price>::max();

  // A path of admissible half-edges, as far as it was grown.
  struct Path {
    std::array<std::uint32_t, kMaxPathArcs> edge;
    std::array<NodeId, kMaxPathArcs + 1> node;
    int length = 0;
  };

  // The first admissible half-edge of v from its current arc on, or kNone.
  std::uint32_t find_admissible(NodeId v) {
    const std::uint32_t begin = view_.node(v).current, last = graph_.end(v);
    const Price price_v = view_.node(v).price;
    std::uint32_t e = begin;
    while (e < last &&
           (graph_.edges[e].residual == 0 || view_.reduced_cost(graph_.edges[e], price_v) >= 0))
      ++e;
    view_.node(v).current = e;
    stats_.scanned += e - begin + 1;
    return e < last ? e : kNone;
  }

  // Raises the price of v, none of whose half-edges is admissible. `back`: reduced cost of the
  // half-edge back, used if no other is residual. kInfeasible: that is kUnreachable as well.
  Status relabel(NodeId v, Price back) {
    const std::uint32_t first = view_.open(v), last = graph_.end(v);
    const Price price_v = view_.node(v).price, eps = view_.eps();
    const Price enough = last - first > kWide ? eps : 0;
    // half-edges before `at` have rc >= least_before
    Price least = kUnreachable, least_before = kUnreachable;
    std::uint32_t at = first;
    ++stats_.relabels;
    for (std::uint32_t e = first; e < last; ++e) {
      const HalfEdge& edge = graph_.edges[e];
      if (edge.residual == 0) continue;
      const Price rc = view_.reduced_cost(edge, price_v);
      if (rc >= least) continue;
      if (rc < enough) {
        stats_.scanned += e - first + 1;
        if (rc >= 0) raise(v, eps);
        view_.node(v).current = e;
        return Status::kOptimal;
      }
      least_before = least;
      least = rc;
      at = e;
    }
    stats_.scanned += last - first;
    if (least == kUnreachable) least = back;
    if (least == kUnreachable) return Status::kInfeasible;
    raise(v, least + eps);  // least is at least -eps
    view_.node(v).current = least_before - least >= eps ? at : first;
    return Status::kOptimal;
  }

  void raise(NodeId v, Price by) {
    view_.touch(v);
    Price& price = view_.node(v).price;
    price += by;
    out_of_range_ = out_of_range_ || price > 2 * kMaxScaledPrice<Price>;
  }

  // Grows the path, relabelling stuck tips.
  Status grow(Path& path) {
    while (path.length < kMaxPathArcs && graph_.excess[path.node[path.length]] >= 0 &&
           stats_.scanned <= next_update_ && !out_of_range_) {
      const NodeId tip = path.node[path.length];
      const std::int64_t scanned = stats_.scanned;
      const std::uint32_t e = find_admissible(tip);
      if (e != kNone) {
        path.edge[path.length++] = e;
        path.node[path.length] = graph_.edges[e].to;
      } else {
        Price back = kUnreachable;
        if (path.length > 0) {
          const std::uint32_t return_path = graph_.edges[path.edge[path.length - 1]].partner;
          back = view_.reduced_cost(graph_.edges[return_path], view_.node(tip).price);
          --path.length;
        }
        if (const Status status = relabel(tip, back); status != Status::kOptimal) return status;
      }
      if (const Status status = checker_.step(stats_, stats_.scanned - scanned + 1);
          status != Status::kOptimal)
        return status;
    }
    return Status::kOptimal;
  }

  void push_along(const Path& path) {
    for (int i = 0; i < path.length && graph_.excess[path.node[i]] > 0; ++i) {
      const NodeId u = path.node[i], v = path.node[i + 1];
      const bool was_active = graph_.excess[v] > 0;
      view_.push(u, path.edge[i],
                 std::min<std::int64_t>(graph_.edges[path.edge[i]].residual, graph_.excess[u]));
      ++stats_.pushes;
      if (graph_.excess[u] == 0) --active_;
      if (!was_active && graph_.excess[v] > 0) ++active_;
      if (i > 0 && graph_.excess[u] > 0) queue_.push(u);
    }
    const NodeId end = path.node[path.length];
    if (path.length > 0 && graph_.excess[end] > 0) queue_.push(end);
    ++stats_.augmentations;
  }

  template <class Update>
  Phase discharge(NodeId v, const Update& update) {
    Path path;
    path.node[0] = v;
    while (graph_.excess[v] > 0) {
      path.length = 0;
      Phase phase;
      phase.status = grow(path);
      phase.out_of_range = out_of_range_;
      if (!phase.succeeded()) return phase;
      push_along(path);
      if (stats_.scanned > next_update_) {
        phase = update(active_);
        if (!phase.succeeded()) return phase;
      }
    }
    return {};
  }

  View& view_;
  typename View::Graph& graph_;
  ActiveQueue& queue_;
  CancellationChecker& checker_;
  Stats& stats_;
  std::size_t active_ = 0;  // active nodes, in the queue or not
  std::int64_t next_update_ = 0;
  bool out_of_range_ = false;
};

}  // namespace flowsolver
