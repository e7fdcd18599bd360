#include "graph/cut_search.hpp"

#include <algorithm>
#include <utility>

#include "graph/arc_graph.hpp"
#include "graph/feasible_flow.hpp"

namespace flowsolver {

namespace {

// Calls search(control); while steps are guaranteed, with a control that can only be cancelled.
template <class Search>
CutSearch with_guarantee(const Control& control, const Search& search) {
  if (!control.guarantees_steps()) return search(control);
  Control patient;
  patient.poll(
      [&control](const Stats& counted) { return control.check(counted) == Status::kCancelled; },
      {});
  return search(patient);
}

CutSearch search_whole(const Network& network, std::span<const std::int64_t> flow,
                       const Control& control, Stats& stats) {
  CutSearch result;
  ArcGraph<std::int64_t> graph;
  result.status = graph.build(network, {flow, {}}, control, stats);
  if (result.status != Status::kOptimal) return result;
  CancellationChecker checker(control);
  FeasibleFlow feasible(ArcGraphView<std::int64_t>(graph), checker, stats);
  result.status = feasible.run();
  if (result.status != Status::kInfeasible) return result;
  if (const Status stopped = feasible.find_cut(result.cut); stopped != Status::kOptimal)
    result.status = stopped;
  return result;
}

// The local search, with an engine that is local. kOptimal: no cut was found.
class NearbySearch {
 public:
  NearbySearch(const Network& network, const Engine& engine, const Control& control, Stats& stats)
      : network_(network),
        engine_(engine),
        checker_(control),
        stats_(stats),
        inside_(network.num_nodes(), 0) {}

  CutSearch run() {
    CutSearch result;
    for (NodeId v : engine_.unrouted_nodes()) reach(v);
    for (std::size_t begin = 0; begin < reached_.size();) {
      const std::size_t end = std::min(reached_.size(), begin + kMaxBatch);
      result.status = spread(std::span(reached_).subspan(begin, end - begin));
      if (result.status != Status::kOptimal) return result;
      begin = end;
    }
    if (supply_less_capacity_out() <= 0) return result;
    result.status = Status::kInfeasible;
    std::sort(reached_.begin(), reached_.end());
    result.cut = std::move(reached_);
    return result;
  }

 private:
  static constexpr std::size_t kMaxBatch = 4096;  // nodes

  void reach(NodeId v) {
    if (inside_[v] != 0) return;
    inside_[v] = 1;
    reached_.push_back(v);
  }

  // Follows the residual arcs at the nodes reached last.
  Status spread(std::span<const NodeId> nodes) {
    arcs_.clear();
    engine_.incident_arcs(nodes, arcs_);
    for (ArcId a : arcs_) {
      const NodeId tail = network_.tail[a], head = network_.head[a];
      if (inside_[tail] == inside_[head]) continue;
      const std::int64_t flow = engine_.flow(a, tail);
      if (inside_[head] != 0) {
        if (flow > 0) reach(tail);
      } else if (flow < network_.capacity[a]) {
        reach(head);
      } else {
        full_.push_back(a);
      }
    }
    const auto steps = static_cast<std::int64_t>(arcs_.size());
    stats_.scanned += steps;
    return checker_.step(stats_, steps + 1);
  }

  // For the set of reached nodes; only full arcs leave it.
  __int128 supply_less_capacity_out() {
    __int128 sum = 0;
    for (NodeId v : reached_) sum += network_.supply[v];
    std::sort(full_.begin(), full_.end());
    full_.erase(std::unique(full_.begin(), full_.end()), full_.end());
    for (ArcId a : full_) {
      if (inside_[network_.head[a]] == 0) sum -= network_.capacity[a];
    }
    return sum;
  }

  const Network& network_;
  const Engine& engine_;
  CancellationChecker checker_;
  Stats& stats_;
  std::vector<std::uint8_t> inside_;  // per node
  std::vector<NodeId> reached_;
  std::vector<ArcId> arcs_;
  std::vector<ArcId> full_;  // full arcs that left the set when they were found; may repeat
};

CutSearch search_engine(const Network& network, std::span<const std::uint8_t> alive,
                        const Engine& engine, const Control& control, Stats& stats) {
  if (engine.local()) {
    CutSearch nearby = NearbySearch(network, engine, control, stats).run();
    if (nearby.status != Status::kOptimal) return nearby;
  }
  std::vector<std::int64_t> flow(network.num_arcs(), 0);
  const Status read =
      for_each_block(flow.size(), control, stats, [&](std::size_t begin, std::size_t end) {
        for (std::size_t a = begin; a < end; ++a) {
          if (alive[a] != 0) flow[a] = engine.flow(static_cast<ArcId>(a), network.tail[a]);
        }
      });
  if (read != Status::kOptimal) return {read, {}};
  return search_whole(network, flow, control, stats);
}

}  // namespace

CutSearch find_cut(const Network& network, std::span<const std::int64_t> flow,
                   const Control& control, Stats& stats) {
  return with_guarantee(
      control, [&](const Control& patient) { return search_whole(network, flow, patient, stats); });
}

CutSearch find_cut(const Network& network, std::span<const std::uint8_t> alive,
                   const Engine& engine, const Control& control, Stats& stats) {
  return with_guarantee(control, [&](const Control& patient) {
    return search_engine(network, alive, engine, patient, stats);
  });
}

}  // namespace flowsolver
