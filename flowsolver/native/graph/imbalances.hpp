// Two ways to balance a pseudoflow: FeasibleFlow routes all excess to deficits, whatever it costs;
// cancel_deficits takes flow off paths between a deficit and an excess and keeps it optimal.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "control.hpp"
#include "graph/arc_graph.hpp"
#include "network.hpp"

namespace flowsolver {

// A feasible flow from any pseudoflow, whatever it costs: all excess is routed to deficits.
//
// Definitions. excess = supply + inflow - outflow; a deficit if negative. The level of a node is
// the number of residual half-edges on a shortest path from it to a deficit.
//
// Method. Waves. Each wave finds the levels by breadth-first search backward from all deficits.
// Then it takes the nodes in order of decreasing level. All excess at a node, its own and what
// arrived in this wave, is pushed over residual half-edges to nodes of the next lower level, as far
// as capacities allow. So the excess of many nodes moves together and over each half-edge once,
// however long the paths are. A deficit takes no more than it needs. Excess that finds no capacity
// stays where it is until the next wave.
//
// Termination. Levels never decrease: flow moves to lower levels only, and the reverse half-edges
// on which this makes room lead to higher levels. When a wave has left excess at a node, every
// residual half-edge from the node to a lower level leads to a deficit that was filled, so the
// node's level increases with the next wave. There are at most n^2 waves, and each routes at least
// one unit to a deficit.
//
// Infeasibility. When no node with excess has a level, no residual arc leaves the nodes that the
// excess reaches: their supply exceeds the capacity out of them by the remaining excess. They are
// the cut that proves infeasibility (certificate.hpp), and no other cut proves a larger gap.
//
// Complexity. O(n + m) per wave. Few waves are needed where deficits are near or wide paths lead to
// them.
//
// References. Karzanov, Determining the maximal flow in a network by the method of preflows (1974);
// Goldberg and Tarjan, A new approach to the maximum-flow problem (1988), with levels computed
// again instead of relabels.

// What waves need of a graph, for an ArcGraph.
template <class Value>
class ArcGraphView {
 public:
  explicit ArcGraphView(ArcGraph<Value>& graph) : graph_(graph) {}

  NodeId num_nodes() const { return graph_.num_nodes(); }
  std::int64_t excess(NodeId v) const { return graph_.excess[v]; }
  std::int64_t degree(NodeId v) const { return graph_.end(v) - graph_.begin(v); }

  // visit(u) for each u with a residual half-edge u -> v.
  template <class Visit>
  void for_each_predecessor(NodeId v, Visit visit) const {
    for (std::uint32_t e = graph_.begin(v); e < graph_.end(v); ++e) {
      if (graph_.edges[graph_.edges[e].partner].residual > 0) visit(graph_.edges[e].to);
    }
  }
  // visit(w) for each w with a residual half-edge v -> w.
  template <class Visit>
  void for_each_head(NodeId v, Visit visit) const {
    for (std::uint32_t e = graph_.begin(v); e < graph_.end(v); ++e) {
      if (graph_.edges[e].residual > 0) visit(graph_.edges[e].to);
    }
  }
  // Pushes send(w, residual) units from v to w, for each residual half-edge. `forward`: half-edges
  // that add flow; else those that take flow back.
  template <class Send>
  void for_each_push(NodeId v, bool forward, Send send) {
    for (std::uint32_t e = graph_.begin(v); e < graph_.end(v) && graph_.excess[v] > 0; ++e) {
      const auto& edge = graph_.edges[e];
      if (edge.residual == 0 || graph_.is_forward(e) != forward) continue;
      const std::int64_t amount = send(edge.to, edge.residual);
      if (amount > 0) graph_.push(v, e, amount);
    }
  }

 private:
  ArcGraph<Value>& graph_;
};

// Ways: as ArcGraphView.
template <class View>
class FeasibleFlow {
 public:
  FeasibleFlow(View view, CancellationChecker& checker, Stats& stats)
      : view_(view), checker_(checker), stats_(stats) {}

  // kOptimal: all nodes balance. kInfeasible: no remaining excess can reach a deficit. Or stopped.
  Status run() {
    while (true) {
      const std::int64_t excesses = count_excesses();
      if (excesses == 0) return Status::kOptimal;
      std::int64_t unreached = excesses;
      Status status = find_levels(unreached);
      if (status == Status::kOptimal && unreached == excesses) status = Status::kInfeasible;
      if (status == Status::kOptimal) status = push_down_levels();
      if (status != Status::kOptimal) return status;
    }
  }

  // After kInfeasible: finds the nodes that excess can reach, ascending. kOptimal, or stopped.
  Status find_cut(std::vector<NodeId>& nodes) {
    std::vector<std::uint8_t> inside(view_.num_nodes(), 0);
    nodes.clear();
    const auto add = [&](NodeId v) {
      if (inside[v] != 0) return;
      inside[v] = 1;
      nodes.push_back(v);
    };
    for (NodeId v = 0; v < view_.num_nodes(); ++v) {
      if (view_.excess(v) > 0) add(v);
    }
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const NodeId v = nodes[k];
      view_.for_each_head(v, add);
      if (const Status status = check(v); status != Status::kOptimal) return status;
    }
    std::sort(nodes.begin(), nodes.end());
    return Status::kOptimal;
  }

 private:
  std::int64_t count_excesses() const {
    std::int64_t count = 0;
    for (NodeId v = 0; v < view_.num_nodes(); ++v) count += view_.excess(v) > 0;
    return count;
  }

  Status check(NodeId v) {
    stats_.scanned += view_.degree(v);
    return checker_.step(stats_, view_.degree(v) + 1);
  }

  // Searches only as far as needed to reach every excess. `unreached`: the number not yet reached.
  Status find_levels(std::int64_t& unreached) {
    ++stats_.phases;
    level_.assign(view_.num_nodes(), kNone);
    reached_.clear();
    const auto add = [this](NodeId v, std::uint32_t level) {
      level_[v] = level;
      reached_.push_back(v);
    };
    for (NodeId v = 0; v < view_.num_nodes(); ++v) {
      if (view_.excess(v) < 0) add(v, 0);
    }
    for (std::size_t k = 0; k < reached_.size() && unreached > 0; ++k) {
      const NodeId v = reached_[k];
      view_.for_each_predecessor(v, [&](NodeId u) {
        if (level_[u] != kNone) return;
        add(u, level_[v] + 1);
        unreached -= view_.excess(u) > 0;
      });
      if (const Status status = check(v); status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  Status push_down_levels() {
    for (std::size_t k = reached_.size(); k-- > 0;) {
      const NodeId v = reached_[k];
      if (view_.excess(v) <= 0) continue;
      // Flow is taken back first: otherwise units would pass each other in opposite directions.
      for (const bool forward : {false, true}) {
        view_.for_each_push(v, forward, [&](NodeId w, std::int64_t room) -> std::int64_t {
          if (level_[w] >= level_[v]) return 0;
          if (level_[w] == 0) room = std::min(room, -view_.excess(w));
          ++stats_.pushes;
          return std::min(room, view_.excess(v));
        });
      }
      if (const Status status = check(v); status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  View view_;
  CancellationChecker& checker_;
  Stats& stats_;
  std::vector<std::uint32_t> level_;  // per node
  std::vector<NodeId> reached_;       // in order of increasing level
};

// Efficient task removal: the deficit that a removed source leaves is moved along the flow it used
// to send, to where that flow ended.
//
// When a source of s units is removed, the sink's supply is raised by s. The node that its flow
// reached first now sends s units more than it receives, a deficit, and the sink receives s units
// too many, an excess. Cancelling takes s units of flow off the path from one to the other, so that
// all nodes balance again, in time proportional to the path.
//
// Invariant. 0 <= x <= capacity; no excess and no deficit grows. Only tight half-edges (rc = 0)
// lose flow. So a pseudoflow without residual half-edges of negative reduced cost keeps that
// property.
//
// Method. Depth-first search from each deficit over tight half-edges with flow, visiting each node
// once in all, until a node with excess is found. Deficits that reach none stay. O(n + m) in all,
// plus the paths.
//
// References. Gog et al., Firmament, OSDI 2016, section 5.3.2. Departure: the paper stores the
// removed task's path. Here any path of flow to an excess serves, so that several sinks, lowered
// capacities and removed arcs are handled as well.

template <class Graph>
class DeficitCancelling {
 public:
  DeficitCancelling(Graph& graph, std::span<const std::int64_t> price, const Control& control,
                    Stats& stats)
      : graph_(graph), price_(price), checker_(control), stats_(stats), next_(graph.num_nodes()) {
    for (NodeId v = 0; v < graph.num_nodes(); ++v) next_[v] = graph.begin(v);
    seen_.assign(graph.num_nodes(), 0);
  }

  Status run() {
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      while (graph_.excess[v] < 0) {
        bool found = false;
        const Status status = follow(v, found);
        if (found) augment(v);
        // later paths may pass there again
        for (std::uint32_t e : path_) seen_[graph_.edges[e].to] = 0;
        seen_[v] = 0;
        path_.clear();
        if (status != Status::kOptimal) return status;
        if (!found) break;
      }
    }
    return Status::kOptimal;
  }

 private:
  bool drains(std::uint32_t e, NodeId v) const {
    const auto& edge = graph_.edges[e];
    if (!graph_.is_forward(e) || graph_.edges[edge.partner].residual == 0) return false;
    return edge.cost - price_[v] + price_[edge.to] == 0;
  }

  // Finds a path of flow from v to an excess. A node from which the search turned back leads to
  // none and stays marked.
  Status follow(NodeId v, bool& found) {
    seen_[v] = 1;
    NodeId tip = v;
    for (;;) {
      const std::uint32_t last = graph_.end(tip);
      std::uint32_t& e = next_[tip];
      const std::uint32_t before = e;
      while (e < last && (seen_[graph_.edges[e].to] != 0 || !drains(e, tip))) ++e;
      stats_.scanned += e - before + 1;
      if (const Status status = checker_.step(stats_, e - before + 1); status != Status::kOptimal)
        return status;
      if (e < last) {
        path_.push_back(e);
        tip = graph_.edges[e].to;
        seen_[tip] = 1;
        if (graph_.excess[tip] <= 0) continue;
        found = true;
        return Status::kOptimal;
      }
      if (path_.empty()) return Status::kOptimal;
      tip = graph_.edges[graph_.edges[path_.back()].partner].to;
      path_.pop_back();
    }
  }

  void augment(NodeId v) {
    std::int64_t amount = std::min(-graph_.excess[v], graph_.excess[graph_.edges[path_.back()].to]);
    for (std::uint32_t e : path_)
      amount = std::min<std::int64_t>(amount, graph_.edges[graph_.edges[e].partner].residual);
    for (auto e = path_.rbegin(); e != path_.rend(); ++e) {
      graph_.push(graph_.edges[*e].to, graph_.edges[*e].partner, amount);
    }
    stats_.pushes += static_cast<std::int64_t>(path_.size());
    ++stats_.augmentations;
  }

  Graph& graph_;
  std::span<const std::int64_t> price_;
  CancellationChecker checker_;
  Stats& stats_;
  // half-edges of a node before this one lead nowhere, since flow only decreases
  std::vector<std::uint32_t> next_;
  std::vector<std::uint8_t> seen_;  // on the path, or turned back from
  std::vector<std::uint32_t> path_;
};

// `price`: per node. kOptimal, or stopped early by `control`, leaving a valid pseudoflow.
template <class Graph>
Status cancel_deficits(Graph& graph, std::span<const std::int64_t> price, const Control& control,
                       Stats& stats) {
  const auto deficit = [](std::int64_t excess) { return excess < 0; };
  const auto surplus = [](std::int64_t excess) { return excess > 0; };
  if (std::none_of(graph.excess.begin(), graph.excess.end(), deficit)) return Status::kOptimal;
  if (std::none_of(graph.excess.begin(), graph.excess.end(), surplus)) return Status::kOptimal;
  return DeficitCancelling<Graph>(graph, price, control, stats).run();
}

}  // namespace flowsolver
