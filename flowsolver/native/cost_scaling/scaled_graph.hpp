// A residual graph with prices of scaled costs, as the phases of cost scaling over a whole graph
// use it.
//
// Definitions. Costs are multiplied by `scale`; P are prices of scaled costs; rc = scale * cost -
// P[tail] + P[head]. eps is a power of two, so that distances are shifts. Open: half-edges that the
// phase scans (arc_fixing.hpp). For each half-edge the graph records whether its partner has
// residual capacity, so that backward searches read half-edges in order and do not read their
// partners.
//
// scaled_prices.hpp has the same interface for phases whose work depends on the changes.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "cost_scaling/arc_fixing.hpp"
#include "graph/arc_graph.hpp"

namespace flowsolver {

template <class Price>
struct ScaledNode {
  static constexpr std::uint32_t kFar = kNone;
  Price price;
  std::uint32_t current;   // the current arc: no open half-edge before it is admissible
  std::uint32_t distance;  // in a global update; else kFar
};

// Prices of larger magnitude end the phase.
template <class Price>
inline constexpr Price kMaxScaledPrice = Price{1} << (8 * sizeof(Price) - 4);

// Whether a phase stays in range if it starts from prices of at most this magnitude
// (push_relabel.hpp, "Range").
template <class Price>
bool phase_fits(Price furthest, NodeId nodes, Price scale, Price largest_cost, Price eps) {
  if (furthest > kMaxScaledPrice<Price>) return false;
  return scale * largest_cost + eps <=
         (kMaxScaledPrice<Price> - furthest) / 2 / (static_cast<Price>(nodes) + 1);
}

template <class G, class P>
class ScaledGraph {
 public:
  using Graph = G;
  using Price = P;
  using HalfEdge = typename Graph::HalfEdge;
  using Node = ScaledNode<Price>;

  // `price`: per node, of scaled costs.
  ScaledGraph(Graph& graph, Price scale, const std::vector<Price>& price)
      : graph_(graph), scale_(scale), node_(graph.num_nodes()), fixing_(graph, reverse_residual_) {
    for (NodeId v = 0; v < graph.num_nodes(); ++v)
      node_[v] = {price[v], graph.begin(v), Node::kFar};
  }

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  ArcFixing<Graph>& fixing() { return fixing_; }
  Node& node(NodeId v) { return node_[v]; }
  const Node& node(NodeId v) const { return node_[v]; }
  std::uint32_t open(NodeId v) const { return fixing_.open(v); }

  void set_shift(int shift) {
    shift_ = shift;
    eps_ = Price{1} << shift;
  }
  int shift() const { return shift_; }
  Price eps() const { return eps_; }
  Price scale() const { return scale_; }
  Price reduced_cost(const HalfEdge& edge, Price price_here) const {
    return static_cast<Price>(edge.cost) * scale_ - price_here + node_[edge.to].price;
  }

  void push(NodeId u, std::uint32_t e, std::int64_t amount) {
    const std::uint32_t partner = graph_.edges[e].partner;
    graph_.push(u, e, amount);
    if (reverse_residual_.empty()) return;
    reverse_residual_[e] = 1;
    reverse_residual_[partner] = graph_.edges[e].residual > 0;
  }

  // Called before the price of v changes.
  void touch(NodeId) {}

  // Called before the first global update; a phase with little to do does not need it.
  bool knows_reverse_residual() const { return !reverse_residual_.empty(); }
  Status mark_reverse_residual(CancellationChecker& checker, Stats& stats) {
    reverse_residual_.resize(graph_.edges.size());
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      for (std::uint32_t e = graph_.begin(v); e < graph_.end(v); ++e) {
        reverse_residual_[e] = graph_.edges[graph_.edges[e].partner].residual > 0;
      }
      const std::int64_t scanned = graph_.end(v) - graph_.begin(v);
      stats.scanned += scanned;
      if (const Status status = checker.step(stats, scanned + 1); status != Status::kOptimal)
        return status;
    }
    return Status::kOptimal;
  }
  bool has_reverse_residual(std::uint32_t e) const { return reverse_residual_[e] != 0; }

 private:
  Graph& graph_;
  const Price scale_;
  int shift_ = 0;
  Price eps_ = 1;
  LargeArray<Node> node_;
  LargeArray<std::uint8_t> reverse_residual_;  // per half-edge, from the first global update on
  ArcFixing<Graph> fixing_;
};

}  // namespace flowsolver
