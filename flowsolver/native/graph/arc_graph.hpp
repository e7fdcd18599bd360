// The residual graph of the methods that work from arrays to arrays: built in O(n + m), then fixed
// but for the flow. One that changes with the network is in dynamic_graph.hpp; what both have
// (begin, end, edges, excess, push) is all that searches need.
//
// Every arc that is no loop and has capacity is two half-edges, forward at its tail and backward at
// its head, in one block per node, in order of arc ids. A half-edge knows its residual capacity and
// where its partner is. Loops are settled while building: full when their cost is negative, else
// empty; they cannot matter otherwise.
//
// `Value` is the type of costs and capacities: 32 bits where they fit (16-byte half-edges),
// else 64.
#pragma once

#include <vector>

#include "graph/large_array.hpp"
#include "method.hpp"
#include "network.hpp"

namespace flowsolver {

template <class V>
class ArcGraph {
 public:
  using Value = V;
  // within a node, as long as `position` is put right in the end
  static constexpr bool kMayReorder = true;
  struct HalfEdge {
    NodeId to;
    std::uint32_t partner;
    Value cost;      // of moving a unit this way
    Value residual;  // units that can still be moved this way
  };

  // Fills the graph; kOptimal, or kCancelled or kBudget when stopped on the way. Counts every arc
  // as one scanned.
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

  // The flow, loops included, and its cost, for a solution whose status is known. Where they are of
  // no use (cancelled) they are left alone; cancelled meanwhile, the solution is.
  void write_flow(const Network& network, const Control& control, Solution& solution) const;

  std::vector<std::uint32_t> first;  // half-edges of v: [first[v], first[v + 1])
  LargeArray<HalfEdge> edges;
  LargeArray<std::uint8_t> forward;                        // per half-edge
  LargeArray<std::uint32_t> position;                      // arc -> its forward half-edge, or kNone
  LargeArray<std::int64_t> excess;                         // per node: supply + inflow - outflow
  std::vector<std::pair<ArcId, std::int64_t>> full_loops;  // and their flow
};

extern template class ArcGraph<std::int32_t>;
extern template class ArcGraph<std::int64_t>;

}  // namespace flowsolver
