// Restores rc >= 0 on residual arcs after changes: gives new nodes a price and repairs the arcs
// whose cost or capacity changed or that were added.
//
// First a price is sought that satisfies all arcs of the node (for example, if the arc of a running
// task to its machine got more expensive and is still its best). If there is none, the violating
// arcs are saturated or emptied. That is always valid and leaves imbalances for the searches.
#pragma once

#include <algorithm>
#include <vector>

#include "shortest_path/pseudoflow.hpp"

namespace flowsolver {

template <class Value>
class PriceRepair {
 public:
  PriceRepair(Pseudoflow<Value>& pseudoflow, const Network& network, std::vector<NodeId>& repriced,
              Stats& stats)
      : pseudoflow_(pseudoflow),
        graph_(pseudoflow.graph()),
        tail_(network.tail),
        repriced_(repriced),
        stats_(stats) {}

  // Both lists are emptied. Some arcs in `dirty` may have been removed.
  void run(std::vector<NodeId>& fresh, std::vector<ArcId>& dirty) {
    // Sources last: their price follows from the heads of their arcs.
    for (bool sources : {false, true}) {
      for (NodeId v : fresh) {
        if ((graph_.nodes[v].flags & kNewNode) == 0 || is_source(v) != sources) continue;
        graph_.nodes[v].flags &= static_cast<std::uint8_t>(~kNewNode);
        if (v != graph_.root()) set_feasible_price(v);
      }
    }
    for (ArcId arc : dirty) {
      if (!graph_.is_removed(arc)) restore_optimality(arc, tail_[arc]);
    }
    fresh.clear();
    dirty.clear();
  }

 private:
  static constexpr std::uint32_t kLowDegree = 64;

  struct Interval {
    std::int64_t low = -kInfinity, high = kInfinity;
    bool empty() const { return low > high; }
  };

  bool is_source(NodeId v) const {
    const Node<Value>& node = graph_.nodes[v];
    return node.degree == 0 ||
           ((node.flags & kInterior) == 0 && graph_.is_forward(graph_.edges[node.begin]));
  }
  bool has_price(NodeId v, NodeId neighbour) const {
    return neighbour != v && (graph_.nodes[neighbour].flags & kNewNode) == 0;
  }

  // The interval of prices at which no arc between v and a priced neighbour is violated.
  Interval feasible_prices(NodeId v) const {
    const Node<Value>& node = graph_.nodes[v];
    Interval feasible_prices;
    if (node.root_residual > 0) feasible_prices.high = node.root_cost;
    if (node.root_flow > 0) feasible_prices.low = node.root_cost;
    for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
      const auto& edge = graph_.edges[i];
      if (!has_price(v, edge.to)) continue;
      const std::int64_t through = edge.cost + graph_.nodes[edge.to].price;
      if (edge.residual > 0) feasible_prices.high = std::min(feasible_prices.high, through);
      if (edge.reverse_residual > 0) feasible_prices.low = std::max(feasible_prices.low, through);
    }
    return feasible_prices;
  }

  void set_price(NodeId v, std::int64_t price) {
    Node<Value>& node = graph_.nodes[v];
    if (node.price == price) return;
    node.price = price;
    ++stats_.repaired;
    if ((node.flags & kTouched) == 0) {
      node.flags |= kTouched;
      repriced_.push_back(v);
    }
  }

  void set_feasible_price(NodeId v) {
    const Interval range = feasible_prices(v);
    if (range.empty()) {
      set_price_in_conflict(v, range);
    } else if (range.low == -kInfinity && range.high == kInfinity) {
      return;
    } else if (range.high != kInfinity && is_source(v)) {
      set_price(v, range.high);
    } else {
      set_price(v, std::clamp(graph_.nodes[v].price, range.low, range.high));
    }
  }

  // No price satisfies all arcs. Takes the end of the interval that fewer arcs object to. If the
  // arc to the root is the only one that objects to the low end, takes that one: the arc's capacity
  // becomes a deficit here. This is how new machines join a cell whose slots have a price.
  void set_price_in_conflict(NodeId v, const Interval& range) {
    const Node<Value>& node = graph_.nodes[v];
    std::int64_t against_low = 0, against_high = 0;
    for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
      const auto& edge = graph_.edges[i];
      if (!has_price(v, edge.to)) continue;
      const std::int64_t through = edge.cost + graph_.nodes[edge.to].price;
      against_low += edge.residual > 0 && through < range.low;
      against_high += edge.reverse_residual > 0 && through > range.high;
    }
    const bool low = against_low == 0 || against_low < against_high;
    set_price(v, low ? range.low : range.high);
    saturate_around(v);
  }

  void saturate_around(NodeId v) {
    const Node<Value>& node = graph_.nodes[v];
    const std::int64_t root_rc = node.root_cost - node.price;
    if (graph_.root_arc(v) != kNone) {
      const ArcId arc = graph_.root_arc(v);
      if (root_rc < 0) pseudoflow_.add_flow(arc, v, graph_.root(), node.root_residual);
      if (root_rc > 0)
        pseudoflow_.add_flow(arc, v, graph_.root(), -static_cast<std::int64_t>(node.root_flow));
    }
    ids_.clear();
    for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
      const auto& edge = graph_.edges[i];
      if (!has_price(v, edge.to)) continue;
      const std::int64_t rc = edge.cost - node.price + graph_.nodes[edge.to].price;
      if ((edge.residual > 0 && rc < 0) || (edge.reverse_residual > 0 && rc > 0))
        ids_.push_back(edge.id);
    }
    for (std::uint32_t id : ids_) {
      const NodeId other = graph_.edges[graph_.position[id]].to;
      if ((id & 1) == 0) {
        saturate(id >> 1, v, other);
      } else {
        saturate(id >> 1, other, v);
      }
    }
  }

  std::int64_t reduced_cost(ArcId arc, NodeId tail) const {
    if (graph_.is_root_arc(arc)) return graph_.nodes[tail].root_cost - graph_.nodes[tail].price;
    const auto& edge = graph_.edges[graph_.position[2 * arc]];
    return edge.cost - graph_.nodes[tail].price + graph_.nodes[edge.to].price;
  }
  std::int64_t room(ArcId arc, NodeId tail) const {
    return graph_.is_root_arc(arc) ? graph_.nodes[tail].root_residual
                                   : graph_.edges[graph_.position[2 * arc]].residual;
  }

  // Fills an arc with rc < 0; empties one with rc > 0.
  void saturate(ArcId arc, NodeId tail, NodeId head) {
    const std::int64_t rc = reduced_cost(arc, tail);
    if (rc < 0) pseudoflow_.add_flow(arc, tail, head, room(arc, tail));
    if (rc > 0) pseudoflow_.add_flow(arc, tail, head, -graph_.flow_at(arc, tail));
    ++stats_.repaired;
  }

  void restore_optimality(ArcId arc, NodeId tail) {
    const std::int64_t rc = reduced_cost(arc, tail);
    if (!((rc < 0 && room(arc, tail) > 0) || (rc > 0 && graph_.flow_at(arc, tail) > 0))) return;
    const NodeId head =
        graph_.is_root_arc(arc) ? graph_.root() : graph_.edges[graph_.position[2 * arc]].to;
    for (NodeId end : {tail, head}) {
      if (tail == head || end == graph_.root() || graph_.nodes[end].degree > kLowDegree) continue;
      const Interval range = feasible_prices(end);
      if (!range.empty()) {
        set_feasible_price(end);
        return;
      }
    }
    // For a source in conflict, all arcs at once, so that its best arc decides.
    if (tail != head && is_source(tail) && tail != graph_.root() &&
        graph_.nodes[tail].degree <= kLowDegree) {
      set_price_in_conflict(tail, feasible_prices(tail));
    } else {
      saturate(arc, tail, head);
    }
  }

  Pseudoflow<Value>& pseudoflow_;
  ResidualGraph<Value>& graph_;
  const std::vector<NodeId>& tail_;  // by arc id
  std::vector<NodeId>& repriced_;
  Stats& stats_;
  std::vector<std::uint32_t> ids_;
};

}  // namespace flowsolver
