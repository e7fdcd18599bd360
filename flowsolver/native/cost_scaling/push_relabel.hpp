// One phase of cost scaling: from any pseudoflow and prices to an eps-optimal flow, by partial
// augment-relabel.
//
// Definitions. Costs are multiplied by `scale`; P are prices of scaled costs; rc = scale * cost -
// P[tail] + P[head]. A pseudoflow is eps-optimal if rc >= -eps on every residual half-edge. Active:
// a node with excess > 0. Admissible: a residual half-edge with rc < 0. eps is a power of two.
// Open: half-edges that the phase scans (arc_fixing.hpp); statements about half-edges mean open
// ones.
//
// Invariant. After `saturate` the pseudoflow is eps-optimal, and every step preserves that.
//
// Method.
// - saturate: fills every residual half-edge with rc < 0, so that no cycle is admissible, then or
//   later. Half-edges with |rc| beyond a given bound are fixed; all others are open.
// - discharge of active nodes (discharge.hpp).
// - global update (global_update.hpp): at the start if many nodes are active, and whenever the
//   half-edges scanned since the last update exceed eight times its own scans plus half of the open
//   half-edges.
//
// Stalls. A phase that starts from no feasible flow makes little or no progress when eps is small
// compared with how far prices must rise. It is ended when, after each node was relabelled once on
// average or each half-edge scanned eight times, the excess has fallen by less than a 24th of the
// initial one and by less than a third; or when an update after the first one still raises prices
// by a 16th of what the first did, and by more than 1024 eps.
//
// Infeasibility is proven, never guessed: by a discharge or an update.
//
// Termination, range. Let w be a deficit that active v reaches (if there is none, the update finds
// that). Adding up rc >= -eps over a path of at most n - 1 half-edges from v to w: P[v] <= P[w] +
// (n - 1)(scale * C + eps). So a node is relabelled O(n (scale C / eps + 1)) times while active;
// from a flow that was (eps * a)-optimal, O(n a) times (Goldberg and Tarjan). The tip of a path is
// at most kMaxPathArcs half-edges below an active node before it is raised. So each node is raised
// above that at most once more, by at most scale * C + eps above a neighbour: in all at most 2 n
// (scale * C + eps) above the deficits. Nodes that reach no deficit rise with every update. A phase
// that could leave the range, or does, reports so: 64 bits hold prices kMaxScaledPrice from zero
// and as much rise.
//
// Complexity. O(n^2 m) per phase in general.
//
// References. Goldberg, The partial augment-relabel algorithm for the maximum flow problem (ESA
// 2008); Kovacs, Minimum-cost flow algorithms: an experimental evaluation (2015), cost scaling with
// partial augmentation; Goldberg 1997 (price updates, arc fixing). Departure: updates are due by
// work, not by relabels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cost_scaling/active_queue.hpp"
#include "cost_scaling/discharge.hpp"
#include "cost_scaling/global_update.hpp"
#include "cost_scaling/scaled_graph.hpp"

namespace flowsolver {

template <class Graph, class Price>
class PushRelabel {
 public:
  // `price`: per node, of scaled costs.
  PushRelabel(Graph& graph, Price scale, Price largest_cost, const std::vector<Price>& price,
              const Control& control, Stats& stats)
      : graph_(graph),
        largest_cost_(largest_cost),
        control_(control),
        stats_(stats),
        checker_(control),
        nodes_(graph.num_nodes()),
        view_(graph, scale, price),
        discharge_(view_, queue_, checker_, stats),
        global_update_(view_, stats) {
    queue_.resize(nodes_);
  }

  // Runs a phase with eps = 2^shift. `may_stall`: end it when it stalls. Arcs with |rc| >
  // fix_beyond keep their flow; 0: none.
  Phase run(int shift, bool may_stall, Price fix_beyond) {
    view_.set_shift(shift);
    ++stats_.phases;
    may_stall_ = may_stall;
    first_distance_ = 0;
    Phase phase;
    phase.out_of_range = !apply_global_rise();
    if (phase.out_of_range) return phase;
    phase.status = saturate(fix_beyond);
    return phase.status == Status::kOptimal ? discharge_all() : phase;
  }

  std::vector<Price> price() const {
    CancellationChecker checker(control_);
    std::vector<Price> price(nodes_);
    for (NodeId v = 0; v < nodes_; ++v) {
      checker.step_until_cancelled(stats_);
      price[v] = view_.node(v).price + global_rise_;
    }
    return price;
  }

  // Must be called before the graph's own index of arcs is used again.
  void finish() { view_.fixing().finish(); }

 private:
  using View = ScaledGraph<Graph, Price>;
  using HalfEdge = typename Graph::HalfEdge;
  // if fewer than 1 / kFewActive of the nodes are active, an update costs more than it saves
  static constexpr std::size_t kFewActive = 64;
  // the scans of an update are slower than others
  static constexpr std::int64_t kScansPerUpdate = 8;
  static constexpr std::int64_t kScansPerCheck = 8, kMinProgress = 24;
  static constexpr std::uint32_t kFewSteps = 1024, kMinApproach = 16;

  // Adds the common rise to all prices. False: they leave no room for what a phase adds.
  bool apply_global_rise() {
    Price furthest = 0;
    for (NodeId v = 0; v < nodes_; ++v) {
      Price& price = view_.node(v).price;
      price += global_rise_;
      furthest = std::max(furthest, price < 0 ? -price : price);
    }
    global_rise_ = 0;
    return phase_fits(furthest, nodes_, view_.scale(), largest_cost_, view_.eps());
  }

  Status saturate(Price fix_beyond) {
    num_open_ = 0;
    for (NodeId u = 0; u < nodes_; ++u) {
      const Price price_u = view_.node(u).price;
      const std::uint32_t first = graph_.begin(u), last = graph_.end(u);
      for (std::uint32_t e = first; e < last; ++e) {
        const HalfEdge& edge = graph_.edges[e];
        if (edge.residual == 0 || view_.reduced_cost(edge, price_u) >= 0) continue;
        view_.push(u, e, edge.residual);
        ++stats_.pushes;
      }
      Status status = checker_.step(stats_, last - first + 1);
      if constexpr (Graph::kMayReorder) {
        if (fix_beyond == 0) {
          view_.fixing().open_all(u);
        } else if (status == Status::kOptimal) {
          const auto far = [&](const HalfEdge& edge) {
            const Price rc = view_.reduced_cost(edge, price_u);
            return rc > fix_beyond || rc < -fix_beyond;
          };
          status = view_.fixing().partition(u, far, checker_, stats_);
        }
      }
      view_.node(u).current = view_.open(u);
      num_open_ += last - view_.open(u);
      stats_.scanned += last - first;
      if (status != Status::kOptimal) return status;
    }
    queue_.clear();
    deficits_.clear();
    active_ = 0;
    for (NodeId u = 0; u < nodes_; ++u) {
      if (graph_.excess[u] > 0) {
        queue_.push(u);
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
    check_at_scanned_ = stats_.scanned + kScansPerCheck * num_half_edges();
  }
  std::int64_t num_half_edges() const { return static_cast<std::int64_t>(graph_.edges.size()); }

  bool makes_progress() {
    if (stats_.relabels <= check_at_relabels_ && stats_.scanned <= check_at_scanned_) return true;
    const std::int64_t excess = total_excess(), fallen = last_excess_ - excess;
    if (fallen < first_excess_ / kMinProgress && fallen < last_excess_ / 3) return false;
    last_excess_ = excess;
    begin_check();
    return true;
  }

  Phase update(std::size_t active) {
    const std::int64_t scanned = stats_.scanned;
    std::uint32_t distance = 0;
    Phase phase;
    phase.status = global_update_.run(deficits_, active, checker_, distance);
    global_rise_ += static_cast<Price>(distance) << view_.shift();
    phase.out_of_range = global_rise_ > kMaxScaledPrice<Price>;
    if (first_distance_ == 0) {
      first_distance_ = distance;
    } else if (may_stall_ && distance > std::max(kFewSteps, first_distance_ / kMinApproach)) {
      phase.stalled = true;
    }
    discharge_.set_next_update(stats_.scanned + kScansPerUpdate * (stats_.scanned - scanned) +
                               num_open_ / 2);
    return phase;
  }

  Phase discharge_all() {
    first_excess_ = last_excess_ = total_excess();
    begin_check();
    discharge_.set_next_update(stats_.scanned + num_open_);
    if (active_ > nodes_ / kFewActive) {
      const Phase phase = update(active_);
      if (!phase.succeeded()) return phase;
    }
    return discharge_.run(active_, [this](std::size_t active) {
      if (!may_stall_ || makes_progress()) return update(active);
      Phase stalled;
      stalled.stalled = true;
      return stalled;
    });
  }

  Graph& graph_;
  const Price largest_cost_;
  const Control& control_;
  Stats& stats_;
  CancellationChecker checker_;
  const NodeId nodes_;
  View view_;
  Price global_rise_ = 0;  // the common rise of all prices by global updates
  std::int64_t num_open_ = 0;
  ActiveQueue queue_;
  std::size_t active_ = 0;
  std::vector<NodeId> deficits_;
  Discharge<View> discharge_;
  GlobalUpdate<View> global_update_;
  bool may_stall_ = false;
  std::int64_t first_excess_ = 0, last_excess_ = 0, check_at_relabels_ = 0, check_at_scanned_ = 0;
  std::uint32_t first_distance_ = 0;  // of the first update
};

}  // namespace flowsolver
