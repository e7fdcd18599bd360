// Discharging nodes with a deficit in a phase of cost scaling: push-relabel in the reverse
// direction. `View`: scaled_graph.hpp.
//
// Definitions as in discharge.hpp. A deficit is discharged by pulling units to it over admissible
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
// (discharge.hpp), which rely on the same property.
//
// Termination. As when discharging active nodes, with sinks in the place of deficits. This is only
// a preparation for that, and ends after a given number of scans, or when no half-edge leads to a
// node.
//
// Reference. Bertsekas, Castanon, Tsaknakis, Reverse auction and the solution of inequality
// constrained assignment problems, SIAM J. Optimization 3 (1993).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "cost_scaling/active_queue.hpp"
#include "cost_scaling/scaled_graph.hpp"

namespace flowsolver {

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

}  // namespace flowsolver
