// Incremental cost scaling: phases of cost scaling whose work depends on the changes only.
//
// Definitions as in scaled_prices.hpp and push_relabel.hpp. Settled: all prices are whole, rc >= 0
// on all residual half-edges, and no node has an excess or deficit. Then the flow is optimal.
//
// Invariant. Between runs every residual half-edge has rc >= -eps, except for those at arcs and
// nodes listed as changed; nodes with an excess or deficit are listed by the graph. Prices of nodes
// that have not moved are whole, and half-edges between two such nodes have rc >= 0. So the other
// nodes need not be known when prices are made whole.
//
// Method. A run
// - gives new nodes the price of their cheapest path, and saturates the listed half-edges with rc <
//   0, so that rc >= -eps holds everywhere, for any eps;
// - cancels deficits along tight forward half-edges with flow, against a node with excess or a
//   sink, whose deficit the next new source will fill (efficient task removal,
//   deficit_cancelling.hpp);
// - runs phases as push_relabel.hpp does, for eps = K / 8, then an eighth of it, and so on. A phase
//   saturates half-edges with rc < 0, at moved nodes only, since there are none elsewhere. It
//   discharges deficits (reverse_discharge.hpp) until only sinks have any, then active nodes; both
//   visit only such nodes and what they reach. If deficits are far from excesses, as in an
//   oversubscribed cell, there is one global update (global_update.hpp) before active nodes are
//   discharged;
// - after each phase makes prices whole (ScaledPrices::round_to_whole). If that succeeds, the run
//   is complete.
//
// Termination. With eps = 1 prices can always be made whole. Before that, phases that have scanned
// as many half-edges as a pass over the graph takes are given up: the start is far from an optimum,
// or eps is small compared with how far prices must rise. A solve over the whole graph handles that
// (cost_scaling.hpp).
//
// Stopped runs. A run that is stopped leaves the pseudoflow, prices and eps that it reached. The
// next run continues with them, unless there were changes, when eps starts again. Making prices
// whole ignores budgets; a global update that is stopped is repeated.
//
// Infeasibility is proven as in push_relabel.hpp.
//
// References. Goldberg and Tarjan (1990); Gog et al., Firmament, OSDI 2016, sections 5.2, 5.3.2,
// 6.2. Departures: the paper starts from eps as large as the largest cost change and touches all
// nodes in each phase.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cost_scaling/active_queue.hpp"
#include "cost_scaling/discharge.hpp"
#include "cost_scaling/global_update.hpp"
#include "cost_scaling/scaled_prices.hpp"
#include "cost_scaling/reverse_discharge.hpp"

namespace flowsolver {

template <class V>
class LocalScaling {
 public:
  using Graph = DynamicGraph<V>;

  struct Outcome {
    Status status = Status::kOptimal;  // or kInfeasible, kCancelled, kBudget
    bool given_up = false;             // then `status` has no meaning
  };

  LocalScaling(Graph& graph, const Network& network)
      : graph_(graph), network_(network), prices_(graph) {}

  ScaledPrices<V>& prices() { return prices_; }
  const ScaledPrices<V>& prices() const { return prices_; }

  // What has changed.
  void note_change() { changed_ = true; }  // with one of those below, unless only excesses changed
  void note_arc(ArcId arc) { changed_arcs_.push_back(arc); }
  void note_node(NodeId v) { changed_nodes_.push_back(v); }  // flow or prices around it
  void note_new_node(NodeId v) { new_nodes_.push_back(v); }
  void note_all() { all_changed_ = true; }
  void note_block(NodeId v) {  // half-edges of v were moved
    if (is_phase_unfinished_) {
      prices_.rewind_current(v);
    } else {
      prices_.forget_current(v);
    }
  }
  void note_all_blocks() {
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) note_block(v);
  }
  // Flow and prices were replaced by another answer: no phase is unfinished.
  void forget();

  std::size_t num_changes() const {
    return changed_arcs_.size() + changed_nodes_.size() + graph_.unbalanced().size();
  }

  // Precondition: prices().fits(largest_cost).
  Outcome run(std::int64_t largest_cost, const Control& control, Stats& stats);

 private:
  using Price = std::int64_t;
  static constexpr int kShiftPerPhase = 3;
  // the first eps is at most an eighth of a unit of cost
  static constexpr int kFinerThanUnit = 3;
  static constexpr int kMaxFirstShiftBelow = 17;  // and at least the largest cost / 2^17
  static constexpr std::int64_t kFewScans = 4096;
  // share of the graph that discharging deficits may scan
  static constexpr std::int64_t kReversedShare = 16;
  static constexpr std::int64_t kMaxDrained = 64, kMaxDrainedMore = 4096;

  // The value of stats.scanned after as many scans as a pass over the graph takes.
  std::int64_t scans_from(const Stats& stats) const {
    return stats.scanned + kFewScans + static_cast<std::int64_t>(graph_.edges.size());
  }
  int first_shift(std::int64_t largest_cost) const;
  void price_new(NodeId v);
  void saturate_if_admissible(NodeId u, std::uint32_t e, Stats& stats);
  void saturate_around(NodeId v, Stats& stats);
  Status restore_eps_optimality(CancellationChecker& checker, Stats& stats);
  bool is_sink(NodeId v) const { return network_.supply[v] < 0; }
  void cancel_deficits(Stats& stats);
  bool find_flow_path(NodeId v, std::int64_t& steps);
  Phase run_phase(bool succeeded, const Control& control, Stats& stats);

  Graph& graph_;
  const Network& network_;
  ScaledPrices<V> prices_;
  ActiveQueue queue_;
  // a phase with the current eps has begun, and prices are not whole yet
  bool is_phase_unfinished_ = false;
  bool changed_ = false, all_changed_ = false;
  std::vector<ArcId> changed_arcs_;
  std::vector<NodeId> changed_nodes_, new_nodes_;
  std::int64_t give_up_at_ = kInfinity;  // limit of stats.scanned
  // For cancel_deficits.
  std::vector<std::uint8_t> seen_;  // per node
  std::vector<NodeId> seen_nodes_;
  std::vector<std::uint32_t> path_;
};

template <class V>
void LocalScaling<V>::forget() {
  is_phase_unfinished_ = false;
  changed_arcs_.clear();
  changed_nodes_.clear();
  new_nodes_.clear();
  changed_ = all_changed_ = false;
}

template <class V>
int LocalScaling<V>::first_shift(std::int64_t largest_cost) const {
  const int unit_shift = prices_.unit_shift();
  const int max_shift =
      largest_cost == 0 ? 0
                        : unit_shift + std::bit_width(static_cast<std::uint64_t>(largest_cost)) - 1;
  return std::max({0, unit_shift - kFinerThanUnit, max_shift - kMaxFirstShiftBelow});
}

template <class V>
void LocalScaling<V>::price_new(NodeId v) {
  Price least = kInfinity;
  for (std::uint32_t e = graph_.begin(v); e < graph_.end(v); ++e) {
    const auto& edge = graph_.edges[e];
    if (edge.residual > 0)
      least = std::min(least, edge.cost * prices_.scale() + prices_.node(edge.to).price);
  }
  prices_.touch(v);
  prices_.node(v).price = least == kInfinity ? 0 : least;
}

template <class V>
void LocalScaling<V>::saturate_if_admissible(NodeId u, std::uint32_t e, Stats& stats) {
  const auto& edge = graph_.edges[e];
  if (edge.residual == 0 || prices_.reduced_cost(edge, prices_.node(u).price) >= 0) return;
  graph_.push(u, e, edge.residual);
  graph_.note_unbalanced(u);
  graph_.note_unbalanced(edge.to);
  ++stats.repaired;
}

template <class V>
void LocalScaling<V>::saturate_around(NodeId v, Stats& stats) {
  for (std::uint32_t e = graph_.begin(v); e < graph_.end(v); ++e) {
    saturate_if_admissible(v, e, stats);
    if (graph_.has_reverse_residual(e))
      saturate_if_admissible(graph_.edges[e].to, graph_.edges[e].partner, stats);
  }
  stats.scanned += graph_.end(v) - graph_.begin(v);
}

template <class V>
Status LocalScaling<V>::restore_eps_optimality(CancellationChecker& checker, Stats& stats) {
  // twice, because the cheapest path of a new node may lead over another one
  for (int round = 0; round < 2; ++round) {
    for (NodeId v : new_nodes_) price_new(v);
  }
  new_nodes_.clear();
  for (ArcId arc : changed_arcs_) {
    const std::uint32_t there = graph_.position[arc];
    if (there == kNone) continue;
    const NodeId head = graph_.edges[there].to;
    const std::uint32_t back = graph_.edges[there].partner;
    saturate_if_admissible(graph_.edges[back].to, there, stats);
    saturate_if_admissible(head, back, stats);
    ++stats.scanned;
  }
  changed_arcs_.clear();
  if (all_changed_) {
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) note_node(v);
    all_changed_ = false;
  }
  while (!changed_nodes_.empty()) {
    const NodeId v = changed_nodes_.back();
    saturate_around(v, stats);
    changed_nodes_.pop_back();
    const Status status = checker.step(stats, graph_.end(v) - graph_.begin(v) + 1);
    if (status != Status::kOptimal) return status;
  }
  return Status::kOptimal;
}

// Finds a path to a node with excess or a sink, in `path_`. A node from which the search turned
// back leads to none and stays marked.
template <class V>
bool LocalScaling<V>::find_flow_path(NodeId v, std::int64_t& steps) {
  const auto mark_seen = [this](NodeId u) {
    seen_[u] = 1;
    seen_nodes_.push_back(u);
  };
  path_.clear();
  mark_seen(v);
  NodeId tip = v;
  std::uint32_t e = graph_.begin(tip);
  for (; steps > 0; --steps) {
    if (e == graph_.middle(tip)) {
      if (path_.empty()) return false;
      e = path_.back() + 1;
      tip = graph_.edges[graph_.edges[path_.back()].partner].to;
      path_.pop_back();
      continue;
    }
    const auto& edge = graph_.edges[e];
    if (seen_[edge.to] != 0 || !graph_.has_reverse_residual(e) ||
        prices_.reduced_cost(edge, prices_.node(tip).price) != 0) {
      ++e;
      continue;
    }
    path_.push_back(e);
    tip = edge.to;
    if (graph_.excess[tip] > 0 || is_sink(tip)) return true;
    mark_seen(tip);
    e = graph_.begin(tip);
  }
  return false;
}

template <class V>
void LocalScaling<V>::cancel_deficits(Stats& stats) {
  const std::vector<NodeId> nodes = graph_.unbalanced();
  std::int64_t steps = kMaxDrainedMore + kMaxDrained * static_cast<std::int64_t>(nodes.size());
  const std::int64_t steps_before = steps;
  for (NodeId v : nodes) {
    // bounded: by the steps of all paths, which find_flow_path counts down
    while (graph_.excess[v] < 0 && !is_sink(v) && find_flow_path(v, steps)) {
      const NodeId end = graph_.edges[path_.back()].to;
      std::int64_t amount = -graph_.excess[v];
      if (!is_sink(end)) amount = std::min(amount, graph_.excess[end]);
      for (std::uint32_t e : path_)
        amount = std::min<std::int64_t>(amount, graph_.edges[graph_.edges[e].partner].residual);
      for (std::uint32_t e : path_) {
        graph_.push(graph_.edges[e].to, graph_.edges[e].partner, amount);
        seen_[graph_.edges[e].to] = 0;  // other paths may pass there
      }
      seen_[v] = 0;
      graph_.note_unbalanced(end);
      stats.pushes += static_cast<std::int64_t>(path_.size());
      ++stats.augmentations;
    }
  }
  for (NodeId v : seen_nodes_) seen_[v] = 0;
  seen_nodes_.clear();
  stats.scanned += steps_before - steps;
}

template <class V>
Phase LocalScaling<V>::run_phase(bool succeeded, const Control& control, Stats& stats) {
  CancellationChecker checker(control);
  Phase phase;
  ++stats.phases;
  const auto is_open_deficit = [this](NodeId v) { return graph_.excess[v] < 0 && !is_sink(v); };
  for (NodeId v : graph_.unbalanced()) {
    if (is_open_deficit(v)) queue_.push(v);
  }
  const std::int64_t max_scans =
      kFewScans + static_cast<std::int64_t>(graph_.edges.size()) / kReversedShare;
  const auto on_excess_changed = [this](NodeId v) { graph_.note_unbalanced(v); };
  phase.status =
      ReverseDischarge<ScaledPrices<V>>(prices_, queue_, checker, stats)
          .run(max_scans, succeeded, [this](NodeId v) { return is_sink(v); }, on_excess_changed);
  if (phase.succeeded()) {
    std::size_t active = 0;
    std::vector<NodeId> deficits;
    for (NodeId v : graph_.unbalanced()) {
      if (graph_.excess[v] > 0) {
        queue_.push(v);
        ++active;
      } else if (graph_.excess[v] < 0) {
        deficits.push_back(v);
      }
    }
    // The remaining deficits are far from excesses: prices must change by much, which one global
    // update does.
    if (std::any_of(deficits.begin(), deficits.end(), is_open_deficit)) {
      GlobalUpdate<ScaledPrices<V>> global_update(prices_, stats);
      std::uint32_t distance = 0;
      phase.status = global_update.run(deficits, active, checker, distance);
      phase.out_of_range = static_cast<Price>(distance) << prices_.shift() > kMaxScaledPrice<Price>;
      give_up_at_ = scans_from(stats);
    }
    if (phase.succeeded()) {
      Discharge<ScaledPrices<V>> discharge(prices_, queue_, checker, stats);
      discharge.set_next_update(give_up_at_);
      phase =
          discharge.run(active, [](std::size_t) { return Phase{Status::kOptimal, true, false}; });
    }
    queue_.for_each([this](NodeId v) { graph_.note_unbalanced(v); });
    queue_.clear();
  }
  graph_.drop_balanced();
  prices_.note_range();
  return phase;
}

template <class V>
typename LocalScaling<V>::Outcome LocalScaling<V>::run(std::int64_t largest_cost,
                                                       const Control& control, Stats& stats) {
  Control cancellation_only;
  cancellation_only.poll(
      [&control](const Stats& counted) { return control.check(counted) == Status::kCancelled; },
      {});
  CancellationChecker cancellation_only_checker(cancellation_only);
  const NodeId n = graph_.num_nodes();
  queue_.resize(n);
  seen_.resize(n, 0);
  give_up_at_ = scans_from(stats);
  if (!is_phase_unfinished_ || changed_ || all_changed_)
    prices_.set_shift(first_shift(largest_cost));
  if (const Status status = restore_eps_optimality(cancellation_only_checker, stats);
      status != Status::kOptimal)
    return {status};
  changed_ = false;
  graph_.drop_balanced();
  cancel_deficits(stats);
  graph_.drop_balanced();
  for (bool succeeded = is_phase_unfinished_;; succeeded = false) {
    is_phase_unfinished_ = true;
    if (!graph_.unbalanced().empty()) {
      const Phase phase = run_phase(succeeded, control, stats);
      if (phase.status != Status::kOptimal) return {phase.status};
      if (!phase.succeeded()) return {Status::kOptimal, true};
    }
    const RefineResult refined =
        prices_.round_to_whole(prices_.shift() == 0, cancellation_only_checker, stats);
    if (refined.status != Status::kOptimal) return {refined.status};
    if (refined.done) {
      is_phase_unfinished_ = false;
      return {};
    }
    if (!prices_.fits(largest_cost) || stats.scanned > give_up_at_) return {Status::kOptimal, true};
    changed_ = true;  // in case the loop below is stopped
    prices_.set_shift(std::max(0, prices_.shift() - kShiftPerPhase));
    for (NodeId v : prices_.moved()) {
      saturate_around(v, stats);
      prices_.forget_current(v);
      cancellation_only_checker.step_until_cancelled(stats, graph_.end(v) - graph_.begin(v) + 1);
    }
    changed_ = false;
  }
}

}  // namespace flowsolver
