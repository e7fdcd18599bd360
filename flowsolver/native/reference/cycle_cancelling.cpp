#include "reference/cycle_cancelling.hpp"

#include <algorithm>
#include <vector>

#include "graph/arc_graph.hpp"
#include "graph/feasible_flow.hpp"
#include "graph/start_state.hpp"

namespace flowsolver {

namespace {

// Cancels negative cycles of a feasible flow. In the end the labels prove optimality.
template <class Value>
class Cancelling {
 public:
  Cancelling(ArcGraph<Value>& graph, std::vector<std::int64_t>& label, Stats& stats,
             CancellationChecker& checker)
      : graph_(graph),
        label_(label),
        stats_(stats),
        checker_(checker),
        parent_(graph.num_nodes(), kNone),
        queued_(graph.num_nodes(), 1),
        visit_(graph.num_nodes(), kNone) {}

  Status run() {
    fill_queue();
    std::int64_t left = interval();
    while (!queue_.empty()) {
      const NodeId v = take();
      for (std::uint32_t e = graph_.first[v]; e < graph_.first[v + 1]; ++e) {
        ++stats_.scanned;
        if (const Status status = checker_.step(stats_); status != Status::kOptimal) return status;
        if (graph_.edges[e].residual > 0)
          lower(graph_.edges[e].to, label_[v] + graph_.edges[e].cost, e);
      }
      left -= 1 + graph_.first[v + 1] - graph_.first[v];
      if (left > 0) continue;
      if (const Status status = cancel_cycles(); status != Status::kOptimal) return status;
      left = interval();
    }
    return Status::kOptimal;
  }

 private:
  static constexpr std::int64_t kMinLabel = -4 * kMaxPathCost;

  std::int64_t interval() const { return graph_.num_nodes(); }
  NodeId tail(std::uint32_t edge) const { return graph_.edges[graph_.edges[edge].partner].to; }

  void fill_queue() {
    head_ = 0;
    queue_.resize(graph_.num_nodes());
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) queue_[v] = v;
    std::fill(queued_.begin(), queued_.end(), std::uint8_t{1});
  }

  // First in, first out. The memory of nodes that were taken is reused once it is as much as that
  // of those left.
  NodeId take() {
    const NodeId v = queue_[head_++];
    queued_[v] = 0;
    ++stats_.settled;
    if (2 * head_ >= queue_.size()) {
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    return v;
  }

  void lower(NodeId v, std::int64_t label, std::uint32_t via) {
    if (label >= label_[v]) return;
    label_[v] = label;
    lowest_ = std::min(lowest_, label);
    parent_[v] = via;
    ++stats_.relabels;
    if (queued_[v] != 0) return;
    queued_[v] = 1;
    queue_.push_back(v);
  }

  // Follows parent arcs from every node until a node is found that was visited before. If that was
  // in the same walk, it is on a cycle.
  Status cancel_cycles() {
    std::fill(visit_.begin(), visit_.end(), kNone);
    for (NodeId start = 0; start < graph_.num_nodes(); ++start) {
      NodeId v = start;
      for (; v != kNone && visit_[v] == kNone; v = parent_[v] == kNone ? kNone : tail(parent_[v])) {
        visit_[v] = start;
        ++stats_.scanned;
        if (const Status status = checker_.step(stats_); status != Status::kOptimal) return status;
      }
      if (v != kNone && visit_[v] == start) cancel(v);
    }
    if (lowest_ < kMinLabel) {
      std::fill(label_.begin(), label_.end(), 0);
      std::fill(parent_.begin(), parent_.end(), kNone);
      lowest_ = 0;
      fill_queue();
    }
    return Status::kOptimal;
  }

  void cancel(NodeId on_cycle) {
    std::int64_t amount = kInfinity;
    for_cycle(on_cycle, [&](std::uint32_t e) {
      amount = std::min(amount, static_cast<std::int64_t>(graph_.edges[e].residual));
    });
    for_cycle(on_cycle, [&](std::uint32_t e) {
      graph_.push(tail(e), e, amount);
      ++stats_.pushes;
      if (graph_.edges[e].residual == 0) parent_[graph_.edges[e].to] = kNone;
    });
    ++stats_.pivots;
  }

  template <class Visit>
  void for_cycle(NodeId on_cycle, Visit visit) {
    NodeId v = on_cycle;
    do {  // bounded: by the length of a cycle
      const std::uint32_t e = parent_[v];
      v = tail(e);
      visit(e);
    } while (v != on_cycle);
  }

  ArcGraph<Value>& graph_;
  std::vector<std::int64_t>& label_;
  Stats& stats_;
  CancellationChecker& checker_;
  std::int64_t lowest_ = 0;            // least label set
  std::vector<std::uint32_t> parent_;  // per node: the half-edge that lowered its label last
  std::vector<std::uint8_t> queued_;
  std::vector<NodeId> visit_;  // per node: the walk that visited it
  std::vector<NodeId> queue_;  // from head_ on
  std::size_t head_ = 0;
};

template <class Value>
void solve_as(const Network& network, const Start& start, const Control& control,
              Solution& solution) {
  ArcGraph<Value> graph;
  solution.status = graph.build(network, start, control, solution.stats);
  if (solution.status != Status::kOptimal) return;
  CancellationChecker checker(control);
  solution.potential = start_prices(network, start);
  for (std::int64_t& value : solution.potential) value = -value;  // labels for now
  solution.status = FeasibleFlow(ArcGraphView<Value>(graph), checker, solution.stats).run();
  if (solution.status == Status::kOptimal) {
    solution.status = Cancelling<Value>(graph, solution.potential, solution.stats, checker).run();
  }
  for (std::int64_t& value : solution.potential) value = -value;
  graph.write_flow(network, control, solution);
}

}  // namespace

Solution solve_cycle_cancelling(const Network& network, const Start& start,
                                const Control& control) {
  return solve_by_width(network, start, control, [&]<class Value>(Solution& solution) {
    solve_as<Value>(network, start, control, solution);
  });
}

}  // namespace flowsolver
