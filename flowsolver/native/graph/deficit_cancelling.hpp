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
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

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
