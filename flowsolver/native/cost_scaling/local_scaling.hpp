// Incremental cost scaling: phases of cost scaling whose work depends on the changes only.
//
// Definitions as in ScaledPrices and PushRelabel. Settled: all prices are whole, rc >= 0 on all
// residual half-edges, and no node has an excess or deficit. Then the flow is optimal.
//
// Invariant. Between runs every residual half-edge has rc >= -eps, except for those at arcs and
// nodes listed as changed; nodes with an excess or deficit are listed by the graph. Prices of nodes
// that have not moved are whole, and half-edges between two such nodes have rc >= 0. So the other
// nodes need not be known when prices are made whole.
//
// Method. A run
// - saturates the listed half-edges with rc < 0, so that rc >= -eps holds everywhere, for any eps.
//   Before those at new nodes: raises nodes that nothing flows through to the price of their
//   cheapest arc out, and gives new nodes the price of their cheapest path;
// - cancels deficits along forward half-edges with flow and rc >= 0, against a node with excess or
//   a sink, whose deficit the next new source will fill (efficient task removal, imbalances.hpp);
// - sends excesses along tight half-edges as far as that goes;
// - runs phases as PushRelabel does, for eps = K / 8, then an eighth of it, and so on. A phase
//   saturates half-edges with rc < 0, at moved nodes only, since there are none elsewhere. It
//   discharges deficits (ReverseDischarge) until only sinks have any, then active nodes; both visit
//   only such nodes and what they reach. If deficits are far from excesses, as in an oversubscribed
//   cell, there is one global update (GlobalUpdate) before active nodes are discharged;
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
// Infeasibility is proven as in PushRelabel.
//
// References. Goldberg and Tarjan (1990); Gog et al., Firmament, OSDI 2016, sections 5.2, 5.3.2,
// 6.2. Departures: the paper starts from eps as large as the largest cost change and touches all
// nodes in each phase; idle nodes are priced, and sources follow tight arcs, before any phase.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "cost_scaling/scaled_prices.hpp"
#include "cost_scaling/scaling_steps.hpp"
#include "graph/dynamic_graph.hpp"
#include "solve.hpp"

namespace flowsolver {

// Discharges nodes with a deficit: push-relabel in the reverse direction.
//
// Definitions as in Discharge. A deficit is discharged by pulling units to it over admissible
// half-edges, rc < 0. The nodes they come from then have a deficit, unless they had an excess.
// Deficits of sinks are left alone.
//
// Why. A removed task leaves a deficit on a full machine that other tasks wait for. If only active
// nodes were discharged, one of them would have to find it. Discharged from its own end, the
// machine gets cheaper until the first task that gains by moving there does so, and so on, up to a
// machine with free slots or a waiting task. The work is that of the change.
//
// Invariant. eps-optimality: a node is lowered only when none of its half-edges in is admissible,
// by the least reduced cost of those plus eps, so that rc >= -eps on all of them; half-edges out
// only get more expensive. A node with more than kWide half-edges is lowered by eps as soon as a
// half-edge is found that this makes admissible; if another one were admissible already, it would
// end below -eps. So each node has a current half-edge before which none of its half-edges in is
// admissible; only lowering the node makes one so.
//
// In the end, half-edges that became admissible are entered into the current arcs of their tails
// (Discharge), which rely on the same property.
//
// Termination. As when discharging active nodes, with sinks in the place of deficits. This is only
// a preparation for that, and ends after a given number of scans, or when no half-edge leads to a
// node.
//
// Reference. Bertsekas, Castanon, Tsaknakis, Reverse auction and the solution of inequality
// constrained assignment problems, SIAM J. Optimization 3 (1993).
template <class View>
class ReverseDischarge {
 public:
  using Price = typename View::Price;

  ReverseDischarge(View& view, ActiveQueue& queue, CancellationChecker& checker, Stats& stats)
      : view_(view), graph_(view.graph()), queue_(queue), checker_(checker), stats_(stats) {}

  // Called once. The nodes to discharge are in the queue; it is empty in the end. `is_sink(v)`:
  // whether to leave the deficit of v alone. `on_excess_changed(v)`: v has got or lost an excess or
  // deficit. `resumed`: some half-edges may be admissible already. kCancelled or kBudget when
  // stopped.
  template <class IsSink, class OnExcessChanged>
  Status run(std::int64_t max_scans, bool resumed, const IsSink& is_sink,
             const OnExcessChanged& on_excess_changed) {
    const std::int64_t last_scan = stats_.scanned + max_scans;
    Status status = Status::kOptimal;
    while (!queue_.empty() && status == Status::kOptimal && stats_.scanned < last_scan) {
      const NodeId w = queue_.pop();
      const auto [place, first_time] =
          current_.try_emplace(w, resumed ? graph_.begin(w) : graph_.end(w));
      if (first_time) discharged_.push_back(w);
      std::uint32_t& current = place->second;
      while (graph_.excess[w] < 0 && status == Status::kOptimal && stats_.scanned < last_scan) {
        const std::int64_t scanned = stats_.scanned;
        find_admissible(w, current);
        if (current < graph_.end(w)) {
          search_from_root(w, current, is_sink, on_excess_changed);
        } else if (!lower(w, current)) {
          break;
        }
        status = checker_.step(stats_, stats_.scanned - scanned);
      }
    }
    queue_.clear();
    for (NodeId w : discharged_) {  // also if it was stopped
      renew_current_arcs(w);
      const Status checked = checker_.step(stats_, graph_.end(w) - graph_.begin(w));
      if (status == Status::kOptimal) status = checked;
    }
    return status;
  }

 private:
  static constexpr std::uint32_t kWide = 64;

  // The reduced cost of the partner of e, which leads to w.
  Price reduced_cost_in(NodeId w, std::uint32_t e) const {
    const auto& edge = graph_.edges[e];
    return view_.node(w).price - view_.node(edge.to).price -
           static_cast<Price>(edge.cost) * view_.scale();
  }

  // Advances `current` to the first admissible half-edge, or to end(w).
  void find_admissible(NodeId w, std::uint32_t& current) {
    const std::uint32_t begin = current, last = graph_.end(w);
    while (current < last &&
           (!view_.has_reverse_residual(current) || reduced_cost_in(w, current) >= 0)) {
      ++current;
    }
    stats_.scanned += current - begin + 1;
  }

  template <class IsSink, class OnExcessChanged>
  void search_from_root(NodeId w, std::uint32_t e, const IsSink& is_sink,
                        const OnExcessChanged& on_excess_changed) {
    const auto& edge = graph_.edges[e];
    const NodeId u = edge.to;
    const std::int64_t most = graph_.edges[edge.partner].residual;
    view_.push(u, edge.partner, std::min(most, -graph_.excess[w]));
    ++stats_.pushes;
    on_excess_changed(u);
    if (graph_.excess[u] < 0 && !is_sink(u)) queue_.push(u);
  }

  // Lowers w, none of whose half-edges in is admissible. False: none has residual capacity, or
  // prices leave the range.
  bool lower(NodeId w, std::uint32_t& current) {
    const std::uint32_t first = graph_.begin(w), last = graph_.end(w);
    const Price eps = view_.eps(), enough = last - first > kWide ? eps : 0;
    Price least = std::numeric_limits<Price>::max();
    if (view_.node(w).price < -2 * kMaxScaledPrice<Price>) return false;
    std::uint32_t e = first;
    for (; e < last && least >= enough; ++e) {
      if (view_.has_reverse_residual(e)) least = std::min(least, reduced_cost_in(w, e));
    }
    stats_.scanned += e - first;
    if (least == std::numeric_limits<Price>::max()) return false;
    const bool by_eps = least < enough;
    view_.touch(w);
    view_.node(w).price -= (by_eps ? 0 : least) + eps;
    ++stats_.relabels;
    current = by_eps ? e - 1 : first;
    return true;
  }

  void renew_current_arcs(NodeId w) {
    for (std::uint32_t e = graph_.begin(w); e < graph_.end(w); ++e) {
      if (!view_.has_reverse_residual(e) || reduced_cost_in(w, e) >= 0) continue;
      const auto& edge = graph_.edges[e];
      std::uint32_t& current = view_.node(edge.to).current;
      current = std::min(current, edge.partner);
    }
    stats_.scanned += graph_.end(w) - graph_.begin(w);
  }

  View& view_;
  typename View::Graph& graph_;
  ActiveQueue& queue_;
  CancellationChecker& checker_;
  Stats& stats_;
  std::vector<NodeId> discharged_;
  std::unordered_map<NodeId, std::uint32_t> current_;  // of the discharged nodes
};

template <class V>
class LocalScaling {
 public:
  using Graph = DynamicGraph<V>;

  struct Outcome {
    Status status = Status::kOptimal;  // or kInfeasible, kCancelled, kBudget
    bool given_up = false;             // then `status` has no meaning
  };

  LocalScaling(Graph& graph, const Network& network, const AlgorithmSettings& settings)
      : graph_(graph), network_(network), settings_(settings), prices_(graph) {}

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
  void forget() {
    is_phase_unfinished_ = false;
    changed_arcs_.clear();
    changed_nodes_.clear();
    new_nodes_.clear();
    changed_ = all_changed_ = false;
  }

  std::size_t num_changes() const {
    return changed_arcs_.size() + changed_nodes_.size() + graph_.unbalanced().size();
  }

  // Precondition: prices().fits(largest_cost).
  Outcome run(std::int64_t largest_cost, const Control& control, Stats& stats) {
    const CancellationOnly cancellation_only(control);
    CancellationChecker cancellation_only_checker(cancellation_only);
    const NodeId n = graph_.num_nodes();
    queue_.resize(n);
    seen_.resize(n, 0);
    is_tried_.resize(n, 0);
    if (!is_phase_unfinished_ || changed_ || all_changed_) {
      eps_.begin_at(first_shift(largest_cost));
      prices_.set_shift(eps_.shift());
    }
    if (const Status status = restore_eps_optimality(cancellation_only_checker, stats);
        status != Status::kOptimal)
      return {status};
    give_up_at_ = scans_from(stats);
    changed_ = false;
    graph_.drop_balanced();
    if (settings_.task_removal) {
      cancel_deficits(stats);
      graph_.drop_balanced();
    }
    if (!is_phase_unfinished_) {
      follow_tight_arcs(stats);
      graph_.drop_balanced();
    }
    for (bool succeeded = is_phase_unfinished_;; succeeded = false) {
      is_phase_unfinished_ = true;
      if (!graph_.unbalanced().empty()) {
        const Phase phase = run_phase(succeeded, control, stats);
        if (phase.status != Status::kOptimal) return {phase.status};
        if (!phase.succeeded()) return {Status::kOptimal, true};
      }
      const bool is_exact = prices_.shift() == 0;
      if (is_exact || settings_.price_refine) {
        const RefineResult refined =
            prices_.round_to_whole(is_exact, cancellation_only_checker, stats);
        if (refined.status != Status::kOptimal) return {refined.status};
        if (refined.done) {
          is_phase_unfinished_ = false;
          return {};
        }
      }
      if (!prices_.fits(largest_cost) || stats.scanned > give_up_at_)
        return {Status::kOptimal, true};
      changed_ = true;  // in case the loop below is stopped
      eps_.divide();
      prices_.set_shift(eps_.shift());
      for (NodeId v : prices_.moved()) {
        saturate_around(v, stats);
        prices_.forget_current(v);
        cancellation_only_checker.step_until_cancelled(stats, graph_.end(v) - graph_.begin(v) + 1);
      }
      changed_ = false;
    }
  }

 private:
  using Price = std::int64_t;
  static constexpr std::int64_t kAlpha = 8;  // eps is divided by this
  // the first eps is at most an eighth of a unit of cost
  static constexpr int kFinerThanUnit = 3;
  static constexpr int kMaxFirstShiftBelow = 17;  // and at least the largest cost / 2^17
  static constexpr std::int64_t kFewScans = 4096;
  // share of the graph that discharging deficits may scan
  static constexpr std::int64_t kReversedShare = 16;
  static constexpr int kMaxLevels = 4;  // of aggregators before machines
  static constexpr std::int64_t kMaxDrained = 64, kMaxDrainedMore = 4096;

  // The value of stats.scanned after as many scans as a pass over the graph takes.
  std::int64_t scans_from(const Stats& stats) const {
    return stats.scanned + kFewScans + static_cast<std::int64_t>(graph_.edges.size());
  }
  int first_shift(std::int64_t largest_cost) const {
    const int unit_shift = prices_.unit_shift();
    const int max_shift =
        largest_cost == 0
            ? 0
            : unit_shift + std::bit_width(static_cast<std::uint64_t>(largest_cost)) - 1;
    return std::max({0, unit_shift - kFinerThanUnit, max_shift - kMaxFirstShiftBelow});
  }

  // The price of a node from which this half-edge is the cheapest way.
  Price edge_end(const typename Graph::HalfEdge& edge) const {
    return edge.cost * prices_.scale() + prices_.node(edge.to).price;
  }
  void price_new(NodeId v) {
    Price least = kInfinity;
    for (std::uint32_t e = graph_.begin(v); e < graph_.end(v); ++e) {
      const auto& edge = graph_.edges[e];
      if (edge.residual > 0) least = std::min(least, edge_end(edge));
    }
    prices_.touch(v);
    prices_.node(v).price = least == kInfinity ? 0 : least;
  }

  // Raises nodes through which nothing flows to what their cheapest arc out costs: tails of changed
  // arcs, then the aggregators to which arcs of new nodes lead. So if time makes all placements
  // dearer, the entrance of each machine and the aggregators before them follow at once, and no
  // discharge has to try and relabel them one by one.
  void raise_idle_nodes(Stats& stats) {
    for (NodeId v : new_nodes_) mark_seen(v);  // priced below
    for (ArcId arc : changed_arcs_) {
      const std::uint32_t there = graph_.position[arc];
      if (there == kNone || graph_.edges[there].residual == 0) continue;
      const NodeId tail = graph_.edges[graph_.edges[there].partner].to;
      if (seen_[tail] != 0 ||
          prices_.reduced_cost(graph_.edges[there], prices_.node(tail).price) <= 0)
        continue;
      mark_seen(tail);
      raise_if_idle(tail, stats);
    }
    if (seen_nodes_.size() > new_nodes_.size()) {
      for (NodeId v : new_nodes_) raise_beyond(v, kMaxLevels, stats);
      for (NodeId v : returned_) raise_beyond(v, kMaxLevels, stats);
    }
    forget_seen();
  }

  // The heads of v's arcs that have several arcs out themselves, after those beyond them.
  void raise_beyond(NodeId v, int levels, Stats& stats) {
    for (std::uint32_t e = graph_.begin(v); e < graph_.middle(v); ++e) {
      const NodeId head = graph_.edges[e].to;
      if (seen_[head] != 0 || graph_.middle(head) - graph_.begin(head) < 2) continue;
      mark_seen(head);
      if (levels > 1) raise_beyond(head, levels - 1, stats);
      raise_if_idle(head, stats);
    }
    stats.scanned += graph_.middle(v) - graph_.begin(v);
  }

  // As nothing flows into the node, its residual half-edges are among its forward ones.
  void raise_if_idle(NodeId v, Stats& stats) {
    std::int64_t out = 0;
    Price least = kInfinity;
    for (std::uint32_t e = graph_.begin(v); e < graph_.middle(v); ++e) {
      const auto& edge = graph_.edges[e];
      if (graph_.has_reverse_residual(e)) out += graph_.edges[edge.partner].residual;
      if (edge.residual > 0) least = std::min(least, edge_end(edge));
    }
    stats.scanned += graph_.middle(v) - graph_.begin(v);
    const std::int64_t in = graph_.excess[v] - network_.supply[v] + out;
    if (in != 0 || least == kInfinity || prices_.has_moved(v)) return;
    if (least > prices_.node(v).price) prices_.set_whole(v, least);
  }

  void saturate_if_admissible(NodeId u, std::uint32_t e, Stats& stats) {
    const auto& edge = graph_.edges[e];
    if (edge.residual == 0 || prices_.reduced_cost(edge, prices_.node(u).price) >= 0) return;
    graph_.push(u, e, edge.residual);
    graph_.note_unbalanced(u);
    graph_.note_unbalanced(edge.to);
    ++stats.repaired;
  }

  void saturate_around(NodeId v, Stats& stats) {
    for (std::uint32_t e = graph_.begin(v); e < graph_.end(v); ++e) {
      saturate_if_admissible(v, e, stats);
      if (graph_.has_reverse_residual(e))
        saturate_if_admissible(graph_.edges[e].to, graph_.edges[e].partner, stats);
    }
    stats.scanned += graph_.end(v) - graph_.begin(v);
  }

  // Takes excesses that dearer arcs left behind back to their sources, along tight arcs, so that
  // nothing flows through the nodes between any more. A source then goes its cheapest way.
  void return_excesses(Stats& stats) {
    const std::vector<NodeId> nodes = graph_.unbalanced();
    for (NodeId v : nodes) {
      NodeId tip = v;
      for (int steps = 0; steps < 2 * kMaxLevels && graph_.excess[tip] > 0; ++steps) {
        if (is_source(tip)) {
          if (tip != v) returned_.push_back(tip);
          break;
        }
        std::uint32_t e = graph_.middle(tip);
        while (e < graph_.end(tip) &&
               (graph_.edges[e].residual == 0 ||
                prices_.reduced_cost(graph_.edges[e], prices_.node(tip).price) != 0))
          ++e;
        stats.scanned += e - graph_.middle(tip) + 1;
        if (e == graph_.end(tip)) break;
        const auto& edge = graph_.edges[e];
        graph_.push(tip, e, std::min<std::int64_t>(graph_.excess[tip], edge.residual));
        ++stats.pushes;
        tip = edge.to;
        graph_.note_unbalanced(tip);
      }
    }
  }

  bool is_source(NodeId v) const {
    return network_.supply[v] > 0 && graph_.middle(v) == graph_.end(v);
  }

  // A source from which nothing flows may have any price at which its half-edges keep rc >= 0.
  void price_source(NodeId v, Stats& stats) {
    Price least = kInfinity;
    for (std::uint32_t e = graph_.begin(v); e < graph_.middle(v); ++e) {
      if (graph_.has_reverse_residual(e)) return;
      if (graph_.edges[e].residual > 0) least = std::min(least, edge_end(graph_.edges[e]));
    }
    stats.scanned += graph_.middle(v) - graph_.begin(v);
    if (least != kInfinity && !prices_.has_moved(v)) prices_.set_whole(v, least);
  }

  // Except for those at nodes that have been seen.
  void saturate_changed_arcs(Stats& stats) {
    for (ArcId arc : changed_arcs_) {
      const std::uint32_t there = graph_.position[arc];
      if (there == kNone) continue;
      const NodeId head = graph_.edges[there].to;
      const std::uint32_t back = graph_.edges[there].partner;
      const NodeId tail = graph_.edges[back].to;
      ++stats.scanned;
      if (seen_[tail] != 0 || seen_[head] != 0) continue;
      saturate_if_admissible(tail, there, stats);
      saturate_if_admissible(head, back, stats);
    }
  }

  Status restore_eps_optimality(CancellationChecker& checker, Stats& stats) {
    if (!is_phase_unfinished_) {
      // First what left a node goes, so that nothing flows through most aggregators.
      for (NodeId v : new_nodes_) mark_seen(v);  // not priced yet
      saturate_changed_arcs(stats);
      forget_seen();
      if (settings_.task_removal) cancel_deficits(stats);
      return_excesses(stats);
      raise_idle_nodes(stats);
      for (NodeId v : returned_) price_source(v, stats);
      returned_.clear();
    }
    // twice, because the cheapest path of a new node may lead over another one
    for (int round = 0; round < 2; ++round) {
      for (NodeId v : new_nodes_) price_new(v);
    }
    new_nodes_.clear();
    saturate_changed_arcs(stats);
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

  bool is_sink(NodeId v) const { return network_.supply[v] < 0; }
  void cancel_deficits(Stats& stats) {
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
    forget_seen();
    stats.scanned += steps_before - steps;
  }

  void mark_seen(NodeId v) {
    seen_[v] = 1;
    seen_nodes_.push_back(v);
  }
  void forget_seen() {
    for (NodeId v : seen_nodes_) seen_[v] = 0;
    seen_nodes_.clear();
  }

  // Finds a path to a node with excess or a sink, in `path_`. A node from which the search turned
  // back leads to none and stays marked.
  bool find_flow_path(NodeId v, std::int64_t& steps) {
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
          prices_.reduced_cost(edge, prices_.node(tip).price) < 0) {
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

  // Sends excesses to deficits along tight forward half-edges, depth first, each half-edge being
  // tried once. That leaves rc >= 0 everywhere. Most new sources end here: their price is that of
  // their cheapest path, and a phase would relabel each node of all equally cheap paths.
  void follow_tight_arcs(Stats& stats) {
    const std::vector<NodeId> nodes = graph_.unbalanced();
    for (NodeId v : nodes) {
      while (graph_.excess[v] > 0 && find_tight_path(v, stats)) {  // bounded: by the excesses
        const NodeId end = graph_.edges[path_.back()].to;
        std::int64_t amount = std::min(graph_.excess[v], -graph_.excess[end]);
        for (std::uint32_t e : path_)
          amount = std::min<std::int64_t>(amount, graph_.edges[e].residual);
        for (std::uint32_t e : path_) {
          seen_[graph_.edges[graph_.edges[e].partner].to] = 0;  // other paths may pass there
          graph_.push(graph_.edges[graph_.edges[e].partner].to, e, amount);
        }
        stats.pushes += static_cast<std::int64_t>(path_.size());
        ++stats.augmentations;
      }
    }
    for (NodeId v : tried_) {
      prices_.forget_current(v);
      is_tried_[v] = 0;
    }
    tried_.clear();
    forget_seen();
  }

  // As find_flow_path, for half-edges with residual capacity. The current arcs of nodes are where
  // the searches of this pass have come to.
  bool find_tight_path(NodeId v, Stats& stats) {
    path_.clear();
    NodeId tip = v;
    visit(tip);
    while (true) {  // bounded: advances a current arc each time, or turns back from a node
      std::uint32_t& e = prices_.node(tip).current;
      const Price price = prices_.node(tip).price;
      const std::uint32_t before = e, last = graph_.middle(tip);
      const auto is_usable = [&](const auto& edge) {
        return edge.residual > 0 && prices_.reduced_cost(edge, price) == 0 && seen_[edge.to] == 0;
      };
      while (e < last && !is_usable(graph_.edges[e])) ++e;
      stats.scanned += e - before + 1;
      if (e == last) {
        if (path_.empty()) return false;
        tip = graph_.edges[graph_.edges[path_.back()].partner].to;
        path_.pop_back();
        continue;
      }
      path_.push_back(e);
      tip = graph_.edges[e].to;
      if (graph_.excess[tip] < 0) return true;
      visit(tip);
    }
  }

  void visit(NodeId v) {
    mark_seen(v);
    if (is_tried_[v] != 0) return;
    is_tried_[v] = 1;
    tried_.push_back(v);
    prices_.rewind_current(v);
  }

  Phase run_phase(bool succeeded, const Control& control, Stats& stats) {
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
        phase.out_of_range =
            static_cast<Price>(distance) << prices_.shift() > kMaxScaledPrice<Price>;
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

  Graph& graph_;
  const Network& network_;
  const AlgorithmSettings& settings_;
  ScaledPrices<V> prices_;
  EpsSequence eps_{0, settings_.alpha == 0 ? kAlpha : settings_.alpha};
  ActiveQueue queue_;
  // a phase with the current eps has begun, and prices are not whole yet
  bool is_phase_unfinished_ = false;
  bool changed_ = false, all_changed_ = false;
  std::vector<ArcId> changed_arcs_;
  std::vector<NodeId> changed_nodes_, new_nodes_;
  std::vector<NodeId> returned_;         // sources to which an excess came back
  std::int64_t give_up_at_ = kInfinity;  // limit of stats.scanned
  // of a pass: which nodes it has been at
  std::vector<std::uint8_t> seen_;
  std::vector<std::uint8_t> is_tried_;  // whether follow_tight_arcs has set its current arc
  std::vector<NodeId> tried_;
  std::vector<NodeId> seen_nodes_;
  std::vector<std::uint32_t> path_;
};

}  // namespace flowsolver
