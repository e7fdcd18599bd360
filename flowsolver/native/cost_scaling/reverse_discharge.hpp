// Discharging nodes with a deficit in a phase of cost scaling: push-relabel the other way round.
// `View`: scaled_graph.hpp.
//
// Definitions as in discharge.hpp. A deficit is discharged by moving units to it over admissible
// half-edges, rc < 0, from nodes that have a deficit then, until those are sinks, which are left
// alone, or had an excess.
//
// Why. What a departed task leaves on a full machine that others wait for is a deficit. Left to
// active nodes, one of them has to find it. Taken from its own end, the machine gets cheaper until
// the first who would rather be there comes, and so on to a machine with room or a task that
// waited: the work is that of the change.
//
// Invariant. eps-optimality: a node none of whose half-edges in is admissible is lowered by the
// least reduced cost of those and eps, so that rc >= -eps on all of them; half-edges out only get
// dearer. Of more than kWide half-edges, by eps as soon as one is found that this makes admissible.
// Current arcs of other nodes (discharge.hpp) may have missed what gets admissible so: a relabel
// finds that.
//
// Termination. As that of discharging active nodes, with sinks in the place of deficits; but it is
// only a beginning of what those do, and ends when so many half-edges have been looked at as it is
// given, or where no half-edge leads to a node.
//
// References. Bertsekas, Castanon, Tsaknakis, Reverse auction and the solution of inequality
// constrained assignment problems, SIAM J. Optimization 3 (1993).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cost_scaling/active_queue.hpp"
#include "cost_scaling/scaled_graph.hpp"

namespace flowsolver {

template <class View>
class ReverseDischarge {
 public:
  using Price = typename View::Price;

  ReverseDischarge(View& view, ActiveQueue& queue, Pace& pace, Stats& stats)
      : view_(view), graph_(view.graph()), queue_(queue), pace_(pace), stats_(stats) {}

  // The nodes to begin with are in the queue; none is in the end. `is_sink(v)`; `met(v)`: v has got
  // an excess or deficit, or has lost it. kCancelled or kBudget when stopped.
  template <class IsSink, class Met>
  Status run(std::int64_t most_scans, const IsSink& is_sink, const Met& met) {
    const std::int64_t last_scan = stats_.scanned + most_scans;
    Status status = Status::kOptimal;
    while (!queue_.empty() && status == Status::kOptimal && stats_.scanned < last_scan) {
      const NodeId w = queue_.pop();
      while (graph_.excess[w] < 0 && status == Status::kOptimal && stats_.scanned < last_scan) {
        const std::int64_t scanned = stats_.scanned;
        const std::uint32_t e = make_admissible(w);
        if (e == kNone) break;
        const auto& edge = graph_.edges[e];
        const NodeId u = edge.to;
        const std::int64_t most = graph_.edges[edge.partner].residual;
        view_.push(u, edge.partner, std::min(most, -graph_.excess[w]));
        ++stats_.pushes;
        met(u);
        if (graph_.excess[u] < 0 && !is_sink(u)) queue_.push(u);
        status = pace_.step(stats_, stats_.scanned - scanned);
      }
    }
    queue_.clear();
    return status;
  }

 private:
  static constexpr std::uint32_t kWide = 64;

  // The half-edge of w whose partner is, or is made, the most admissible; kNone: none is enterable,
  // or prices leave the range.
  std::uint32_t make_admissible(NodeId w) {
    const std::uint32_t first = graph_.begin(w), last = graph_.end(w);
    const Price price_w = view_.node(w).price, eps = view_.eps();
    const Price enough = last - first > kWide ? eps : 0;
    Price least = std::numeric_limits<Price>::max();
    std::uint32_t at = kNone;
    if (price_w < -2 * kMostScaledPrice<Price>) return kNone;
    std::uint32_t e = first;
    for (; e < last && least >= enough; ++e) {
      if (!view_.is_enterable(e)) continue;
      const auto& edge = graph_.edges[e];
      const Price rc =
          price_w - view_.node(edge.to).price - static_cast<Price>(edge.cost) * view_.scale();
      if (rc >= least) continue;
      least = rc;
      at = e;
    }
    stats_.scanned += e - first + 1;
    if (at == kNone || least < 0) return at;
    view_.touch(w);
    view_.node(w).price -= (least < enough ? 0 : least) + eps;
    ++stats_.relabels;
    return at;
  }

  View& view_;
  typename View::Graph& graph_;
  ActiveQueue& queue_;
  Pace& pace_;
  Stats& stats_;
};

}  // namespace flowsolver
