// A feasible flow from any pseudoflow, whatever it costs: all excess is brought to deficits.
//
// Definitions. excess = supply + inflow - outflow, a deficit when negative. The level of a node is
// the number of residual half-edges on the shortest way from it to a deficit.
//
// Method. Waves. Each finds the levels by breadth-first search backward from all deficits, and then
// takes the nodes in order of falling levels: what excess a node has, its own and what has come to
// it, goes on over residual half-edges to nodes of the next lower level, as far as there is room.
// So the excess of many nodes travels together, over each half-edge once, however long the ways
// are. A deficit takes no more than it needs. What finds no room stays where it is until the next
// wave.
//
// Termination. Levels never fall: flow goes to lower levels only, and the half-edges back that it
// makes room on lead to higher ones. When a wave has passed a node whose excess is stuck, every
// residual half-edge from there to a lower level leads to a deficit that has been filled, so the
// node's level rises with the next wave. There are at most n^2 waves, and each brings at least one
// unit to a deficit.
//
// Infeasibility. When no excess that is left has a level, no residual arc leaves the nodes it
// reaches: their supply exceeds the capacity out of them by the excess that is left. They are the
// cut that proves it (certificate.hpp), and no other proves a larger gap.
//
// Complexity. O(n + m) a wave. There are few where deficits are near or wide ways lead to them.
//
// References. Karzanov, Determining the maximal flow in a network by the method of preflows (1974);
// Goldberg and Tarjan, A new approach to the maximum-flow problem (1988), with levels found anew
// instead of relabels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "control.hpp"
#include "graph/arc_graph.hpp"
#include "network.hpp"

namespace flowsolver {

// The residual half-edges of an ArcGraph, as waves look at them.
template <class Value>
class ArcGraphView {
 public:
  explicit ArcGraphView(ArcGraph<Value>& graph) : graph_(graph) {}

  NodeId num_nodes() const { return graph_.num_nodes(); }
  std::int64_t excess(NodeId v) const { return graph_.excess[v]; }
  std::int64_t degree(NodeId v) const { return graph_.end(v) - graph_.begin(v); }

  // visit(u) for the nodes from which a residual half-edge leads to v.
  template <class Visit>
  void for_each_predecessor(NodeId v, Visit visit) const {
    for (std::uint32_t e = graph_.begin(v); e < graph_.end(v); ++e) {
      if (graph_.edges[graph_.edges[e].partner].residual > 0) visit(graph_.edges[e].to);
    }
  }
  // visit(w) for the nodes to which a residual half-edge leads from v.
  template <class Visit>
  void for_each_head(NodeId v, Visit visit) const {
    for (std::uint32_t e = graph_.begin(v); e < graph_.end(v); ++e) {
      if (graph_.edges[e].residual > 0) visit(graph_.edges[e].to);
    }
  }
  // send(w, room): how much is to go from v to w. Where flow is taken back (`forward`: where more
  // is sent).
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

  // kOptimal: nothing is left unbalanced. kInfeasible: no excess that is left can reach a deficit.
  // Or stopped.
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

  // After kInfeasible: the nodes that excess can reach, ascending. kOptimal, or stopped.
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

  // No further than it takes to reach every excess. `unreached`: how many are not.
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
      // Flow is taken back before more is sent: units that meet would else pass each other.
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
  std::vector<NodeId> reached_;       // in order of levels
};

}  // namespace flowsolver
