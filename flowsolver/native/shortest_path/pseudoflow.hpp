// A pseudoflow on a residual graph, with everything that depends on it: imbalances, the cost, and
// which arcs a round has touched.
#pragma once

#include <utility>
#include <vector>

#include "engine.hpp"
#include "graph/residual_graph.hpp"

namespace flowsolver {

template <class Value>
class Pseudoflow {
 public:
  Pseudoflow(ResidualGraph<Value> graph, const Network& network)
      : graph_(std::move(graph)), marked_(network.num_arcs(), false) {}

  ResidualGraph<Value>& graph() { return graph_; }

  void shift_imbalance(NodeId v, std::int64_t delta) {
    Node<Value>& node = graph_.nodes[v];
    node.imbalance += delta;
    if ((node.flags & kListed) == 0 && v != graph_.root()) {
      node.flags |= kListed;
      unbalanced_.push_back(v);
    }
    if (v == graph_.root()) node.imbalance = 0;  // implied by the others
  }

  // Moves flow along the half-edge at `index`, owned by u. Does not change imbalances (a step of a
  // path).
  void move_flow(NodeId u, std::uint32_t index, Value amount) {
    const auto& edge = graph_.edges[index];
    touch(edge.id >> 1, graph_.is_forward(edge) ? edge.reverse_residual : edge.residual);
    cost_ += static_cast<__int128>(edge.cost) * amount;
    graph_.push(u, index, amount);
  }

  // Moves flow over the arc inside v; amount < 0 takes flow off. Does not change imbalances.
  void move_root_flow(NodeId v, std::int64_t amount) {
    Node<Value>& node = graph_.nodes[v];
    touch(graph_.root_arc(v), node.root_flow);
    cost_ += static_cast<__int128>(node.root_cost) * amount;
    node.root_residual -= static_cast<Value>(amount);
    node.root_flow += static_cast<Value>(amount);
  }

  // Adds flow to the arc (takes it off if amount < 0) and updates the imbalances of its ends.
  void add_flow(ArcId arc, NodeId tail, NodeId head, std::int64_t amount) {
    if (amount == 0) return;
    if (graph_.is_root_arc(arc)) {
      move_root_flow(tail, amount);
    } else if (amount > 0) {
      move_flow(tail, graph_.position[2 * arc], static_cast<Value>(amount));
    } else {
      move_flow(head, graph_.position[2 * arc + 1], static_cast<Value>(-amount));
    }
    shift_imbalance(tail, -amount);
    shift_imbalance(head, amount);
  }

 protected:
  void touch(ArcId arc, std::int64_t flow_before) {
    if (arc >= marked_.size()) marked_.resize(arc + 1 + arc / 4, false);
    if (marked_[arc]) return;
    marked_[arc] = true;
    touched_.push_back({arc, flow_before});
  }
  void forget_touched() {
    for (const FlowBefore& before : touched_) marked_[before.arc] = false;
    touched_.clear();
  }

  ResidualGraph<Value> graph_;
  __int128 cost_ = 0;
  std::vector<FlowBefore> touched_;
  std::vector<NodeId> unbalanced_;  // every node with an imbalance, and some without

 private:
  std::vector<bool> marked_;  // arcs in touched_
};

}  // namespace flowsolver
