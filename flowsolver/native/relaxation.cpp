#include "relaxation.hpp"

#include <algorithm>

#include "ascent_set.hpp"
#include "balanced_graph.hpp"
#include "start_state.hpp"

namespace flowsolver {

namespace {

template <class V>
class Relaxation {
 public:
  using Graph = BalancedGraph<ArcGraph<V>>;
  using Edge = typename Graph::Edge;

  Relaxation(const Control& control, Stats& stats)
      : control_(control), stats_(stats), pace_(control), set_(graph_, control, stats) {}

  // kOptimal: to be run. Else why not.
  Status begin(const Network& network, const Start& start) {
    std::vector<std::int64_t> price;
    if (!start.flow.empty() || !start.price.empty()) price = start_prices(network, start);
    const Status status = graph_.build(network, start, price, control_, stats_);
    if (status != Status::kOptimal) return status;
    missing_ = graph_.missing();
    patience_ends_ = patience_ = kPatience * static_cast<std::int64_t>(graph_.arcs().edges.size() + graph_.nodes.size());
    return !price.empty() && graph_.prices_too_far_apart() && !graph_.close_gaps() ? Status::kInfeasible : Status::kOptimal;
  }

  Status run() {
    Status status = Status::kOptimal;
    while (status == Status::kOptimal) {
      const std::int64_t scanned = stats_.scanned;
      NodeId v = graph_.take(graph_.fresh);
      const bool alone = v == kNone;
      if (alone) v = graph_.take(graph_.late);
      if (v == kNone) return Status::kOptimal;
      if (stats_.scanned > patience_ends_) {
        const __int128 missing = graph_.missing();
        if (missing >= missing_) status = graph_.raise_by_distance(control_, stats_);
        if (status != Status::kOptimal) return status;
        missing_ = std::min(missing, missing_);
        patience_ends_ = stats_.scanned + patience_;
      }
      if (!raise_node(v)) return Status::kInfeasible;
      std::int64_t price = graph_.nodes[v].price;
      if (graph_.excess(v) == 0 || descend(v)) {
        if (loosens_ && graph_.nodes[v].source) graph_.loosen(v, stats_);
      } else if (alone) {
        status = grow_set(v);
        price = set_.highest_price();
      } else if (!passes_on_ || !pass_on(v)) {
        graph_.postpone(v);
      }
      price = std::max(price, graph_.nodes[v].price);
      if (status == Status::kOptimal && price > Graph::kMostPrice && !graph_.close_gaps()) return Status::kInfeasible;
      if (status == Status::kOptimal) status = pace_.step(stats_, stats_.scanned - scanned + 1);
    }
    return status;
  }

  const Graph& graph() const { return graph_; }

 private:
  static constexpr std::int64_t kPatience = 4;         // times the half-edges: looks without a fall of what deficits lack
  static constexpr std::int64_t kDescentScans = 2048;  // more than a machine and its tasks and theirs
  static constexpr std::int64_t kDearSet = 4096;       // half-edges looked at for a set, mean of a window
  static constexpr std::int64_t kLooseningShare = 8;   // of the half-edges, looked at for sets before sources are loosened
  static constexpr std::int64_t kWindow = 64;          // sets

  // Step 1. False: v has more excess than residual capacity out.
  bool raise_node(NodeId v) {
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
      if (balanced >= excess) return true;
      if (balanced > 0) push_balanced(v);
      least = std::min(least, graph_.least_waiting(v, stats_));
      if (least == kInfinity) return false;
      graph_.raise(v, least);
      ++stats_.relabels;
    }
  }

  // Step 4. What it takes decides about loosening, hops and step 3.
  Status grow_set(NodeId v) {
    const std::int64_t before = stats_.scanned;
    Status status = set_.run(v);
    since_hops_ += stats_.scanned - before;
    of_window_ += stats_.scanned - before;
    const auto half_edges = static_cast<std::int64_t>(graph_.arcs().edges.size());
    if (!loosens_ && since_hops_ > half_edges / kLooseningShare && status == Status::kOptimal) {
      loosens_ = true;
      status = graph_.loosen_sources(control_, stats_);
    }
    bool measure = since_hops_ > half_edges;
    if (++window_ == kWindow) {
      if (of_window_ > kWindow * kDearSet && !passes_on_) {
        passes_on_ = measure = true;
        graph_.retry_late();
      }
      window_ = of_window_ = 0;
    }
    if (!measure || status != Status::kOptimal) return status;
    since_hops_ = 0;
    return graph_.measure_hops(control_, stats_);
  }

  // Step 3. A source that would fill all its balanced arcs does so, and is raised. False: it would not.
  bool pass_on(NodeId v) {
    const std::int64_t excess = graph_.excess(v);
    std::int64_t balanced = 0;
    if (!graph_.nodes[v].source) return false;
    graph_.scan(v, 0, stats_, [&](std::uint32_t, const Edge& edge) {
      if (graph_.reduced_cost(v, edge) == 0) balanced += edge.residual;
      return balanced <= excess;
    });
    if (balanced != excess) return false;
    push_balanced(v);
    graph_.loosen(v, stats_);
    return true;
  }

  void push_balanced(NodeId v) {
    graph_.scan(v, 0, stats_, [&](std::uint32_t i, const Edge& edge) {
      if (graph_.reduced_cost(v, edge) == 0) graph_.push(v, i, edge.residual, stats_);
      return true;
    });
  }

  // Step 2. True when no excess is left.
  bool descend(NodeId origin) {
    const std::int64_t until = stats_.scanned + kDescentScans;
    path_.clear();
    NodeId u = origin;
    while (stats_.scanned < until) {
      auto& node = graph_.nodes[u];
      std::uint32_t down = kNone;
      node.current = graph_.scan(u, node.current, stats_, [&](std::uint32_t i, const Edge& edge) {
        if (graph_.nodes[edge.to].hops >= node.hops || graph_.reduced_cost(u, edge) != 0) return true;
        down = i;
        return false;
      });
      if (down != kNone) {
        path_.push_back(down);
        u = graph_.edge(down).to;
        if (graph_.nodes[u].hops != 0) continue;
        augment(origin, u);
        if (graph_.excess(origin) == 0) return true;
        path_.clear();
        u = origin;
        continue;
      }
      std::uint32_t hops = Graph::kFar;
      graph_.scan(u, 0, stats_, [&](std::uint32_t, const Edge& edge) {
        if (graph_.reduced_cost(u, edge) == 0) hops = std::min(hops, graph_.nodes[edge.to].hops + 1);
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

  void augment(NodeId origin, NodeId target) {
    std::int64_t room = std::min(graph_.excess(origin), -graph_.excess(target));
    for (std::uint32_t i : path_) room = std::min<std::int64_t>(room, graph_.edge(i).residual);
    for (std::uint32_t i : path_) graph_.move(i, room);
    graph_.add_excess(origin, -room);
    graph_.add_excess(target, room);
    stats_.pushes += static_cast<std::int64_t>(path_.size());
    ++stats_.augmentations;
  }

  const Control& control_;
  Stats& stats_;
  Pace pace_;
  Graph graph_;
  AscentSet<ArcGraph<V>> set_;
  std::vector<std::uint32_t> path_;
  __int128 missing_ = 0;                           // to all deficits, the least at the end of any patience
  std::int64_t patience_ = 0, patience_ends_ = 0;  // half-edges looked at
  std::int64_t since_hops_ = 0;                    // half-edges looked at for sets since hops were measured
  std::int64_t window_ = 0, of_window_ = 0;        // sets in the window so far, half-edges looked at for them
  bool passes_on_ = false, loosens_ = false;
};

template <class V>
void solve(const Network& network, const Start& start, const Control& control, Solution& solution) {
  Relaxation<V> relaxation(control, solution.stats);
  solution.status = relaxation.begin(network, start);
  if (solution.status != Status::kOptimal) return;
  solution.status = relaxation.run();
  if (solution.status != Status::kOptimal && solution.status != Status::kBudget) return;
  const auto& graph = relaxation.graph();
  for (NodeId v = 0; v < network.num_nodes(); ++v) solution.potential[v] = graph.nodes[v].price;
  graph.arcs().give_flow(network, control, solution);
}

}  // namespace

Solution solve_relaxation(const Network& network, const Start& start, const Control& control) {
  return solve_by_width(network, start, control, [&]<class Value>(Solution& solution) {
    solve<Value>(network, start, control, solution);
  });
}

}  // namespace flowsolver
