// A feasible flow by Dinic's method, from any pseudoflow and without regard to costs.
//
// Method. What does not balance is sent from excesses to deficits: levels by breadth first search
// over residual arcs from all nodes with excess up to the first level that has a deficit, then a
// blocking flow over arcs from one level to the next; and so on.
//
// Infeasibility. When no deficit can be reached any more while excess is left, no residual arc
// leaves the nodes reached: their supply exceeds the capacity out of them by the excess that is
// left. They are the cut that proves it (certificate.hpp), and no other proves a larger gap.
//
// Complexity. O(n^2 m).
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), section 7.5.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph/arc_graph.hpp"

namespace flowsolver {

template <class Value>
class FeasibleFlow {
 public:
  FeasibleFlow(ArcGraph<Value>& graph, Stats& stats, Pace& pace)
      : graph_(graph), stats_(stats), pace_(pace) {}

  // kOptimal: feasible. kInfeasible: what excess is left can reach no deficit. Or stopped.
  Status run() {
    while (true) {
      bool found = false;
      if (const Status status = find_levels(found); status != Status::kOptimal) return status;
      if (sources_.empty()) return Status::kOptimal;
      if (!found) return Status::kInfeasible;
      current_.assign(graph_.first.begin(), graph_.first.end() - 1);
      for (NodeId source : sources_) {
        if (const Status status = block(source); status != Status::kOptimal) return status;
      }
    }
  }

  // After kInfeasible: the nodes that excess can reach, ascending.
  std::vector<NodeId> reached() const {
    std::vector<NodeId> nodes;
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      if (level_[v] != kNone) nodes.push_back(v);
    }
    return nodes;
  }

 private:
  Status count() {
    ++stats_.scanned;
    return pace_.step(stats_);
  }

  // Levels from the nodes with excess up to the first level that has a deficit.
  Status find_levels(bool& found) {
    ++stats_.phases;
    level_.assign(graph_.num_nodes(), kNone);
    sources_.clear();
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      if (graph_.excess[v] <= 0) continue;
      sources_.push_back(v);
      level_[v] = 0;
    }
    std::vector<NodeId> queue = sources_;
    NodeId deepest = kNone;
    for (std::size_t i = 0; i < queue.size() && level_[queue[i]] < deepest; ++i) {
      const NodeId v = queue[i];
      for (std::uint32_t e = graph_.first[v]; e < graph_.first[v + 1]; ++e) {
        if (const Status status = count(); status != Status::kOptimal) return status;
        const NodeId to = graph_.edges[e].to;
        if (graph_.edges[e].residual == 0 || level_[to] != kNone) continue;
        level_[to] = level_[v] + 1;
        queue.push_back(to);
        if (graph_.excess[to] < 0 && deepest == kNone) deepest = level_[to];
      }
    }
    found = deepest != kNone;
    return Status::kOptimal;
  }

  // Sends the source's excess up the levels as long as there is a way.
  Status block(NodeId source) {
    path_.clear();
    NodeId v = source;
    while (graph_.excess[source] > 0) {
      if (const Status status = count(); status != Status::kOptimal) return status;
      if (graph_.excess[v] < 0) {
        augment(source, v);
        v = source;
      } else if (current_[v] < graph_.first[v + 1]) {
        const auto& edge = graph_.edges[current_[v]];
        if (edge.residual > 0 && level_[edge.to] != kNone && level_[edge.to] == level_[v] + 1) {
          path_.push_back(current_[v]);
          v = edge.to;
        } else {
          ++current_[v];
        }
      } else if (v == source) {
        break;
      } else {
        v = graph_.edges[graph_.edges[path_.back()].partner].to;
        path_.pop_back();
        ++current_[v];
      }
    }
    return Status::kOptimal;
  }

  void augment(NodeId source, NodeId target) {
    std::int64_t amount = std::min(graph_.excess[source], -graph_.excess[target]);
    for (std::uint32_t e : path_)
      amount = std::min(amount, static_cast<std::int64_t>(graph_.edges[e].residual));
    NodeId from = source;
    for (std::uint32_t e : path_) {
      graph_.push(from, e, amount);
      from = graph_.edges[e].to;
    }
    ++stats_.augmentations;
    stats_.pushes += static_cast<std::int64_t>(path_.size());
    path_.clear();
  }

  ArcGraph<Value>& graph_;
  Stats& stats_;
  Pace& pace_;
  std::vector<NodeId> sources_, level_;
  std::vector<std::uint32_t> current_, path_;
};

}  // namespace flowsolver
