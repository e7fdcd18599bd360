// The iterations of relaxation. Definitions, method, termination and complexity are in
// relaxation.hpp.
#pragma once

#include <algorithm>
#include <vector>

#include "relaxation/multinode_iteration.hpp"
#include "relaxation/balanced_graph.hpp"
#include "relaxation/augmenting_path.hpp"
#include "relaxation/price_passes.hpp"

namespace flowsolver {

// The work of multinode iterations so far. It decides when forwarding (step 3) and degenerate
// raises begin. Persists between runs if the graph does.
struct IterationHistory {
  std::int64_t since_hops = 0;  // half-edges scanned for sets since hops were computed
  // sets
  std::int64_t window = 0, of_window = 0;
  bool forwards_excess = false, uses_degenerate_raises = false;
};

template <class Arcs>
class DualAscent {
 public:
  using Graph = BalancedGraph<Arcs>;
  using Edge = typename Graph::Edge;

  DualAscent(Graph& graph, IterationHistory& history, const Control& control, Stats& stats)
      : control_(control),
        stats_(stats),
        checker_(control),
        graph_(graph),
        history_(history),
        set_(graph_, control, stats) {}

  // Iterates until no node has excess: kOptimal. Nodes with excess are in the graph's queues,
  // before and after.
  Status run() {
    if (!Graph::kIsDynamic) lowest_excess_ = graph_.total_excess();
    max_scans_ = kMaxScansFactor *
                 static_cast<std::int64_t>(graph_.arcs().edges.size() + graph_.nodes.size());
    max_scanned_ = stats_.scanned + max_scans_;
    Status status = Status::kOptimal;
    scanned_before_ = stats_.scanned;
    while (status == Status::kOptimal) {
      NodeId v = graph_.take(graph_.untried);
      const bool alone = v == kNone;
      if (alone) v = graph_.take(graph_.postponed);
      if (v == kNone) return Status::kOptimal;
      status = iterate(v, alone);
      if (status == Status::kOptimal) status = check();
      if (status != Status::kOptimal && graph_.is_excess(v)) graph_.postpone(v);
    }
    return status;
  }

 private:
  // times the number of half-edges: scans without a decrease of the total deficit
  static constexpr std::int64_t kMaxScansFactor = 4;
  // more than a machine, its tasks and their arcs
  static constexpr std::int64_t kFollowScans = 2048;
  // half-edges scanned per set, mean of a window
  static constexpr std::int64_t kCostlySet = 4096;
  // share of the half-edges that sets scan before degenerate raises begin
  static constexpr std::int64_t kDegenerateRaiseShare = 8;
  static constexpr std::int64_t kWindow = 64;  // sets

  // Called in every loop; counts the half-edges scanned since the last call as steps.
  Status check() {
    const std::int64_t steps = stats_.scanned - scanned_before_ + 1;
    scanned_before_ = stats_.scanned;
    return checker_.step(stats_, steps);
  }

  // One iteration, for the excess of v. `alone`: all others were postponed.
  Status iterate(NodeId v, bool alone) {
    if (stats_.scanned > max_scanned_) {
      const __int128 total_excess = graph_.total_excess();
      if (total_excess >= lowest_excess_) {
        if (const Status status = raise_by_distance(graph_, control_, stats_);
            status != Status::kOptimal)
          return status;
      }
      lowest_excess_ = std::min(total_excess, lowest_excess_);
      max_scanned_ = stats_.scanned + max_scans_;
    }
    Status status = raise_node(v);
    if (status != Status::kOptimal) return status;
    std::int64_t price = graph_.nodes[v].price;
    if (graph_.excess(v) == 0 || follow_hops(v)) {
      if (history_.uses_degenerate_raises && graph_.nodes[v].source)
        graph_.raise_degenerate(v, stats_);
    } else if (alone) {
      status = grow_set(v);
      price = set_.highest_price();
    } else if (!history_.forwards_excess || !forward_excess(v)) {
      graph_.postpone(v);
    }
    price = std::max(price, graph_.nodes[v].price);
    if (status == Status::kOptimal && price > Graph::kMaxPrice && !close_gaps(graph_))
      return Status::kInfeasible;
    return status;
  }

  // Step 1. kInfeasible: v has more excess than residual capacity out.
  Status raise_node(NodeId v) {
    while (true) {
      const std::int64_t excess = graph_.excess(v);
      std::int64_t balanced = 0, least = kInfinity;
      graph_.scan(v, 0, stats_, [&](std::uint32_t, const Edge& edge) {
        const std::int64_t rc = graph_.reduced_cost(v, edge);
        if (rc == 0) {
          balanced += edge.residual;
        } else {
          least = std::min(least, rc);
        }
        return balanced < excess;
      });
      if (balanced >= excess) return Status::kOptimal;
      if (balanced > 0) push_balanced(v);
      least = std::min(least, graph_.min_in_heap(v, stats_));
      if (least == kInfinity) return Status::kInfeasible;
      graph_.raise(v, least);
      ++stats_.relabels;
      if (const Status status = check(); status != Status::kOptimal) return status;
    }
  }

  // Step 4. Its work decides about degenerate raises, hops and step 3.
  Status grow_set(NodeId v) {
    const std::int64_t before = stats_.scanned;
    Status status = set_.run(v);
    history_.since_hops += stats_.scanned - before;
    history_.of_window += stats_.scanned - before;
    const auto half_edges = static_cast<std::int64_t>(graph_.arcs().edges.size());
    if (!history_.uses_degenerate_raises &&
        history_.since_hops > half_edges / kDegenerateRaiseShare && status == Status::kOptimal) {
      history_.uses_degenerate_raises = true;
      status = raise_sources_degenerate(graph_, control_, stats_);
    }
    bool measure = history_.since_hops > half_edges;
    if (++history_.window == kWindow) {
      if (history_.of_window > kWindow * kCostlySet && !history_.forwards_excess) {
        history_.forwards_excess = measure = true;
        graph_.retry_postponed();
      }
      history_.window = history_.of_window = 0;
    }
    if (!measure || status != Status::kOptimal) return status;
    history_.since_hops = 0;
    return measure_hops(graph_, control_, stats_);
  }

  // Step 3. A source that can fill all its balanced arcs does so, and is raised. False: it cannot.
  bool forward_excess(NodeId v) {
    const std::int64_t excess = graph_.excess(v);
    std::int64_t balanced = 0;
    if (!graph_.nodes[v].source) return false;
    graph_.scan(v, 0, stats_, [&](std::uint32_t, const Edge& edge) {
      if (graph_.reduced_cost(v, edge) == 0) balanced += edge.residual;
      return balanced <= excess;
    });
    if (balanced != excess) return false;
    push_balanced(v);
    graph_.raise_degenerate(v, stats_);
    return true;
  }

  void push_balanced(NodeId v) {
    graph_.scan(v, 0, stats_, [&](std::uint32_t i, const Edge& edge) {
      if (graph_.reduced_cost(v, edge) == 0) graph_.push(v, i, edge.residual, stats_);
      return true;
    });
  }

  // Step 2. True when no excess is left at `origin`.
  bool follow_hops(NodeId origin) {
    const std::int64_t until = stats_.scanned + kFollowScans;
    path_.clear();
    NodeId u = origin;
    while (stats_.scanned < until) {  // bounded: by the half-edges scanned
      auto& node = graph_.nodes[u];
      std::uint32_t down = kNone;
      node.current = graph_.scan(u, node.current, stats_, [&](std::uint32_t i, const Edge& edge) {
        if (graph_.nodes[edge.to].hops >= node.hops || graph_.reduced_cost(u, edge) != 0)
          return true;
        down = i;
        return false;
      });
      if (down != kNone) {
        path_.push_back(down);
        u = graph_.edge(down).to;
        if (graph_.nodes[u].hops != 0) continue;
        augment(u);
        if (graph_.excess(origin) == 0) return true;
        path_.clear();
        u = origin;
        continue;
      }
      std::uint32_t hops = Graph::kFar;
      graph_.scan(u, 0, stats_, [&](std::uint32_t, const Edge& edge) {
        if (graph_.reduced_cost(u, edge) == 0)
          hops = std::min(hops, graph_.nodes[edge.to].hops + 1);
        return true;
      });
      node.hops = hops;
      node.current = 0;
      if (u != origin) {
        u = graph_.tail(path_.back());
        path_.pop_back();
      } else if (hops == Graph::kFar) {
        return false;
      }
    }
    return false;
  }

  void augment(NodeId target) {
    augmenting_path_.begin(target);
    for (std::size_t k = path_.size(); k-- > 0 && augmenting_path_.extend(path_[k]);) {
    }
    augmenting_path_.send(stats_, [](NodeId, std::uint32_t) {});
  }

  const Control& control_;
  Stats& stats_;
  CancellationChecker checker_;
  Graph& graph_;
  IterationHistory& history_;
  MultinodeIteration<Arcs> set_;
  std::vector<std::uint32_t> path_;
  AugmentingPath<Graph> augmenting_path_{graph_};
  __int128 lowest_excess_ = __int128{1} << 120;   // least total excess at any check for progress
  std::int64_t max_scans_ = 0, max_scanned_ = 0;  // in half-edges scanned
  std::int64_t scanned_before_ = 0;               // at the last check
};

}  // namespace flowsolver
