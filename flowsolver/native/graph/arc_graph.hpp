// The static residual graph of methods that solve from arrays to arrays. It is built in O(n + m);
// then only its flow changes. A graph that changes with the network is in dynamic_graph.hpp.
// Searches use only what both have in common: begin, end, edges, excess, push.
//
// Each arc with capacity that is not a loop is two half-edges, forward at its tail and backward at
// its head, in one block per node, in order of arc ids. A half-edge stores its residual capacity
// and the position of its partner. Loops are settled while building: full if their cost is
// negative, else empty. They have no further effect.
//
// `Value` is the type of costs and capacities: 32 bits if they fit (16-byte half-edges), else 64.
#pragma once

#include <vector>

#include "graph/large_array.hpp"
#include "solve.hpp"
#include "network.hpp"

namespace flowsolver {

template <class V>
class ArcGraph {
 public:
  using Value = V;
  // half-edges of a node may be reordered if `position` is corrected in the end
  static constexpr bool kMayReorder = true;
  struct HalfEdge {
    NodeId to;
    std::uint32_t partner;
    Value cost;      // of a unit in this direction
    Value residual;  // units that can still be sent in this direction
  };

  // Builds the graph. kCancelled or kBudget when stopped. Counts every arc as one scanned.
  Status build(const Network& network, const Start& start, const Control& control, Stats& stats);

  NodeId num_nodes() const { return static_cast<NodeId>(first.empty() ? 0 : first.size() - 1); }
  std::uint32_t begin(NodeId v) const { return first[v]; }
  std::uint32_t end(NodeId v) const { return first[v + 1]; }
  // Forward half-edges carry the arc's flow as their partner's residual.
  bool is_forward(std::uint32_t edge) const { return forward[edge] != 0; }

  void push(NodeId from, std::uint32_t edge, std::int64_t amount) {
    HalfEdge& there = edges[edge];
    there.residual -= static_cast<Value>(amount);
    edges[there.partner].residual += static_cast<Value>(amount);
    excess[from] -= amount;
    excess[there.to] += amount;
  }

  // Writes the flow, loops included, and its cost into a solution whose status is set. Does nothing
  // if the status makes them useless (cancelled). If cancelled meanwhile, so is the solution.
  void write_flow(const Network& network, const Control& control, Solution& solution) const;

  std::vector<std::uint32_t> first;  // half-edges of v: [first[v], first[v + 1])
  LargeArray<HalfEdge> edges;
  LargeArray<std::uint8_t> forward;                        // per half-edge
  LargeArray<std::uint32_t> position;                      // arc -> its forward half-edge, or kNone
  LargeArray<std::int64_t> excess;                         // per node: supply + inflow - outflow
  std::vector<std::pair<ArcId, std::int64_t>> full_loops;  // with their flow
};

extern template class ArcGraph<std::int32_t>;
extern template class ArcGraph<std::int64_t>;

}  // namespace flowsolver
