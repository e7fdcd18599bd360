#include "reference/plain_methods.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "graph/arc_graph.hpp"
#include "graph/imbalances.hpp"
#include "graph/start_state.hpp"

namespace flowsolver {

namespace {

template <class Value>
class SuccessiveShortestPath {
 public:
  SuccessiveShortestPath(ArcGraph<Value>& graph, std::vector<std::int64_t>& price,
                         const Control& control, Stats& stats)
      : graph_(graph),
        price_(price),
        stats_(stats),
        checker_(control),
        labels_(graph.num_nodes()) {}

  Status run() {
    Status status = saturate();
    for (NodeId source = 0; source < graph_.num_nodes() && status == Status::kOptimal; ++source) {
      while (graph_.excess[source] > 0 && status == Status::kOptimal) {
        NodeId target = kNone;
        status = search(source, target);
        if (status == Status::kOptimal) augment(source, target);
      }
    }
    return status;
  }

 private:
  struct Label {
    std::int64_t distance = 0;
    std::uint32_t search = 0;      // the search that set it
    std::uint32_t parent = kNone;  // half-edge over which it was labelled
  };
  struct Step {
    std::uint32_t edge;
    std::int64_t room;  // on the rest of the path, and at the target
  };
  using Entry = std::pair<std::int64_t, NodeId>;  // distance, node: equal distances in order of ids

  std::int64_t reduced_cost(NodeId v, std::uint32_t edge) const {
    return graph_.edges[edge].cost - price_[v] + price_[graph_.edges[edge].to];
  }

  Status saturate() {
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      for (std::uint32_t e = graph_.first[v]; e < graph_.first[v + 1]; ++e) {
        ++stats_.scanned;
        if (const Status status = checker_.step(stats_); status != Status::kOptimal) return status;
        if (graph_.edges[e].residual == 0 || reduced_cost(v, e) >= 0) continue;
        graph_.push(v, e, graph_.edges[e].residual);
        ++stats_.pushes;
      }
    }
    return Status::kOptimal;
  }

  // Afterwards prices and labels are those for the path to `target`. kInfeasible: no deficit can be
  // reached.
  Status search(NodeId source, NodeId& target) {
    ++stats_.searches;
    if (++search_ == 0) {  // the counter of searches has wrapped around
      for (Label& label : labels_) label.search = 0;
      search_ = 1;
    }
    queue_.clear();
    settled_.clear();
    distance_ = 0;
    nearest_ = kInfinity;
    label_node(source, 0, kNone);
    for (std::size_t next = 0; distance_ < nearest_; ++next) {
      if (next == settled_.size() && !take_nearest()) break;
      const NodeId v = settled_[next];
      ++stats_.settled;
      const std::uint32_t first = graph_.first[v], last = graph_.first[v + 1];
      const std::int64_t base = distance_ - price_[v];
      for (std::uint32_t e = first; e < last; ++e) {
        const auto& edge = graph_.edges[e];
        if (edge.residual > 0) label_node(edge.to, base + edge.cost + price_[edge.to], e);
      }
      stats_.scanned += last - first;
      const Status status = checker_.step(stats_, last - first + 1);
      if (status != Status::kOptimal) return status;
    }
    if (nearest_ == kInfinity) return Status::kInfeasible;
    for (NodeId u : settled_) price_[u] += nearest_ - labels_[u].distance;
    target = target_;
    return Status::kOptimal;
  }

  // Nodes at the distance being settled bypass the queue, first in, first out: so of equally short
  // paths one of few arcs is found. Nodes that are no nearer than a deficit are ignored.
  void label_node(NodeId v, std::int64_t distance, std::uint32_t parent) {
    if (distance >= nearest_) return;
    Label& label = labels_[v];
    if (label.search == search_ && label.distance <= distance) return;
    label = {distance, search_, parent};
    if (graph_.excess[v] < 0) {
      nearest_ = distance;
      target_ = v;
    } else if (distance == distance_) {
      settled_.push_back(v);
    } else {
      queue_.emplace_back(distance, v);
      std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
    }
  }

  // False: no node is nearer than the nearest deficit.
  bool take_nearest() {
    while (!queue_.empty()) {  // bounded: takes one off the queue each time
      const auto [distance, v] = queue_.front();
      std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
      queue_.pop_back();
      if (distance >= nearest_) return false;
      if (distance != labels_[v].distance) continue;  // it was labelled by a shorter path later
      distance_ = distance;
      settled_.push_back(v);
      return true;
    }
    return false;
  }

  // Sends the excess of the source and, as far as capacities allow, of the nodes on the path.
  void augment(NodeId source, NodeId target) {
    path_.clear();
    std::int64_t room = -graph_.excess[target];
    for (NodeId v = target; v != source;) {  // bounded: each label leads nearer to the source
      const std::uint32_t e = labels_[v].parent;
      room = std::min<std::int64_t>(room, graph_.edges[e].residual);
      path_.push_back({e, room});
      v = graph_.edges[graph_.edges[e].partner].to;
    }
    NodeId v = source;
    for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
      graph_.push(v, step->edge, std::min(graph_.excess[v], step->room));
      v = graph_.edges[step->edge].to;
    }
    stats_.pushes += static_cast<std::int64_t>(path_.size());
    ++stats_.augmentations;
  }

  ArcGraph<Value>& graph_;
  std::vector<std::int64_t>& price_;
  Stats& stats_;
  CancellationChecker checker_;
  std::vector<Label> labels_;
  std::uint32_t search_ = 0;
  std::int64_t distance_ = 0;  // the distance being settled
  std::int64_t nearest_ = 0;   // distance of the nearest deficit labelled so far, target_
  NodeId target_ = kNone;
  std::vector<Entry> queue_;  // nodes at larger distances
  // in order of distance; the last ones are labelled at `distance_` but not scanned yet
  std::vector<NodeId> settled_;
  std::vector<Step> path_;  // from the target back
};

// Calls run(graph, prices, stats) on the graph of the start's flow; the prices are the start's.
template <class Run>
Solution solve_on_graph(const Network& network, const Start& start, const Control& control,
                        const Run& run) {
  return solve_by_width(network, start, control, [&]<class Value>(Solution& solution) {
    ArcGraph<Value> graph;
    solution.status = graph.build(network, start, control, solution.stats);
    if (solution.status != Status::kOptimal) return;
    solution.potential = start_prices(network, start);
    solution.status = run(graph, solution.potential, solution.stats);
    graph.write_flow(network, control, solution);
  });
}

}  // namespace

Solution solve_successive_shortest_path(const Network& network, const Start& start,
                                        const Control& control) {
  return solve_on_graph(
      network, start, control,
      [&]<class Value>(ArcGraph<Value>& graph, std::vector<std::int64_t>& price, Stats& stats) {
        return SuccessiveShortestPath<Value>(graph, price, control, stats).run();
      });
}

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

}  // namespace

Solution solve_cycle_cancelling(const Network& network, const Start& start,
                                const Control& control) {
  const auto negate = [](std::vector<std::int64_t>& values) {
    for (std::int64_t& value : values) value = -value;
  };
  return solve_on_graph(
      network, start, control,
      [&]<class Value>(ArcGraph<Value>& graph, std::vector<std::int64_t>& label, Stats& stats) {
        CancellationChecker checker(control);
        negate(label);
        Status status = FeasibleFlow(ArcGraphView<Value>(graph), checker, stats).run();
        if (status == Status::kOptimal)
          status = Cancelling<Value>(graph, label, stats, checker).run();
        negate(label);
        return status;
      });
}

}  // namespace flowsolver
