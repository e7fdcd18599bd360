#include "reference/successive_shortest_path.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "graph/arc_graph.hpp"
#include "graph/start_state.hpp"

namespace flowsolver {

namespace {

template <class Value>
class SuccessiveShortestPath {
 public:
  SuccessiveShortestPath(ArcGraph<Value>& graph, std::vector<std::int64_t>& price,
                         const Control& control, Stats& stats)
      : graph_(graph), price_(price), stats_(stats), pace_(control), labels_(graph.num_nodes()) {}

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
    std::uint32_t search = 0;   // the one that set it
    std::uint32_t via = kNone;  // half-edge it was reached over
  };
  using Entry = std::pair<std::int64_t, NodeId>;  // distance, node: equal distances in order of ids

  std::int64_t reduced_cost(NodeId v, std::uint32_t edge) const {
    return graph_.edges[edge].cost - price_[v] + price_[graph_.edges[edge].to];
  }

  Status saturate() {
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      for (std::uint32_t e = graph_.first[v]; e < graph_.first[v + 1]; ++e) {
        ++stats_.scanned;
        if (const Status status = pace_.step(stats_); status != Status::kOptimal) return status;
        if (graph_.edges[e].residual == 0 || reduced_cost(v, e) >= 0) continue;
        graph_.push(v, e, graph_.edges[e].residual);
        ++stats_.pushes;
      }
    }
    return Status::kOptimal;
  }

  // Prices and labels are right afterwards for the path to `target`. kInfeasible: no deficit can be
  // reached.
  Status search(NodeId source, NodeId& target) {
    ++stats_.searches;
    if (++search_ == 0) {  // the count of searches has come round
      for (Label& label : labels_) label.search = 0;
      search_ = 1;
    }
    queue_.clear();
    settled_.clear();
    reach(source, 0, kNone);
    while (!queue_.empty()) {
      const auto [distance, v] = queue_.front();
      std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
      queue_.pop_back();
      if (distance != labels_[v].distance) continue;  // it was reached on a shorter way later
      ++stats_.settled;
      if (graph_.excess[v] < 0) {
        for (NodeId u : settled_) price_[u] += distance - labels_[u].distance;
        target = v;
        return Status::kOptimal;
      }
      settled_.push_back(v);
      for (std::uint32_t e = graph_.first[v]; e < graph_.first[v + 1]; ++e) {
        ++stats_.scanned;
        if (const Status status = pace_.step(stats_); status != Status::kOptimal) return status;
        if (graph_.edges[e].residual > 0)
          reach(graph_.edges[e].to, distance + reduced_cost(v, e), e);
      }
    }
    return Status::kInfeasible;
  }

  void reach(NodeId v, std::int64_t distance, std::uint32_t via) {
    Label& label = labels_[v];
    if (label.search == search_ && label.distance <= distance) return;
    label = {distance, search_, via};
    queue_.emplace_back(distance, v);
    std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
  }

  void augment(NodeId source, NodeId target) {
    std::int64_t amount = std::min(graph_.excess[source], -graph_.excess[target]);
    for_path(source, target, [&](NodeId, std::uint32_t e) {
      amount = std::min(amount, static_cast<std::int64_t>(graph_.edges[e].residual));
    });
    for_path(source, target, [&](NodeId from, std::uint32_t e) {
      graph_.push(from, e, amount);
      ++stats_.pushes;
    });
    ++stats_.augmentations;
  }

  // Backward from the target: the tail of each half-edge, and the half-edge.
  template <class Visit>
  void for_path(NodeId source, NodeId target, Visit visit) {
    for (NodeId v = target; v != source;) {
      const std::uint32_t e = labels_[v].via;
      v = graph_.edges[graph_.edges[e].partner].to;
      visit(v, e);
    }
  }

  ArcGraph<Value>& graph_;
  std::vector<std::int64_t>& price_;
  Stats& stats_;
  Pace pace_;
  std::vector<Label> labels_;
  std::uint32_t search_ = 0;
  std::vector<Entry> queue_;
  std::vector<NodeId> settled_;
};

template <class Value>
void solve_as(const Network& network, const Start& start, const Control& control,
              Solution& solution) {
  ArcGraph<Value> graph;
  solution.status = graph.build(network, start, control, solution.stats);
  if (solution.status != Status::kOptimal) return;
  solution.potential = start_prices(network, start);
  solution.status =
      SuccessiveShortestPath<Value>(graph, solution.potential, control, solution.stats).run();
  graph.give_flow(network, control, solution);
}

}  // namespace

Solution solve_successive_shortest_path(const Network& network, const Start& start,
                                        const Control& control) {
  return solve_by_width(network, start, control, [&]<class Value>(Solution& solution) {
    solve_as<Value>(network, start, control, solution);
  });
}

}  // namespace flowsolver
