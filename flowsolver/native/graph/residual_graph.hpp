// The residual graph of a pseudoflow, laid out for searches.
//
// Each arc a is two half-edges, 2a at its tail (forward) and 2a+1 at its head (backward). A
// half-edge stores its own residual capacity and its partner's, so that neither search direction
// reads the partner. The half-edges of a node are one block of `edges`, those with residual
// capacity first: a machine with fifty preference arcs into it and twelve tasks on it is scanned in
// twelve steps. `position` finds a half-edge by its id; its place changes as flow is pushed.
//
// One node is the root: its price is always 0 and its imbalance is implied by all others'. The
// first arc from a node to the root is stored inside the node (64 bytes with 32-bit values: one
// cache line), because every search asks, for each node it labels, whether that arc has residual
// capacity. Other arcs at the root are ordinary half-edges.
//
// `Value` is the type of costs and capacities: 32 bits if they fit (20-byte half-edges), else 64.
#pragma once

#include <span>
#include <utility>

#include "control.hpp"
#include "graph/hub_lists.hpp"
#include "graph/large_array.hpp"
#include "network.hpp"

namespace flowsolver {

template <class Value>
struct HalfEdge {
  NodeId to;
  std::uint32_t id;
  Value cost;      // of a unit in this direction
  Value residual;  // units that can still be sent in this direction
  // units that can be sent in the other direction: the flow, on a forward half-edge
  Value reverse_residual;
};

template <class Value>
struct alignas(64) Node {
  std::int64_t price = 0;
  std::int64_t distance = 0;   // of the current search; valid if `stamp` is that of the search
  std::int64_t imbalance = 0;  // supply + inflow - outflow: > 0 excess, < 0 deficit
  std::uint32_t stamp = 0;
  std::uint32_t parent = kNone;  // half-edge over which the node was labelled
  std::uint32_t begin = 0;       // block of half-edges: [begin, begin + degree)
  std::uint32_t degree = 0;
  std::uint32_t residual_degree = 0;
  // half-edge by which the last path left this node (current arc of an aggregator)
  std::uint32_t current = 0;
  Value root_residual = 0;  // the arc to the root: residual capacity, flow, cost
  Value root_flow = 0;
  Value root_cost = 0;
  // estimated number of zero-rc half-edges to a target: backward, forward
  std::uint8_t hops[2] = {0, 0};
  bool settled = false;
  std::uint8_t flags = 0;
};

enum NodeFlag : std::uint8_t {
  kNewNode = 1,    // added since the last resolve; has no price yet
  kListed = 2,     // in the list of nodes with an imbalance
  kTouched = 4,    // its price moved in this round
  kDead = 8,       // reaches no target in this phase
  kInterior = 16,  // has arcs in and arcs out: an aggregator or a machine
};

// The arrays from which a graph is built, written once; half the size if 32 bits suffice.
template <class Value>
struct PackedNetwork {
  LargeArray<NodeId> tail, head;
  LargeArray<Value> capacity, cost;
  std::vector<std::int64_t> supply;

  std::size_t num_nodes() const { return supply.size(); }
  std::size_t num_arcs() const { return tail.size(); }
};

template <class V>
class ResidualGraph {
 public:
  using Value = V;
  using Edge = HalfEdge<Value>;
  // All nodes are nodes of the graph (compare initial_assignment.cpp).
  static constexpr bool kHasUnitSources = false;
  static constexpr bool kListsHubs = false;  // whether searches use the lists of hubs
  static bool is_source_arc(std::uint32_t) { return false; }

  // From arrays, in O(n + m): a Network, or a PackedNetwork<Value>. `flow`: empty for none.
  // `spare`: leave room in the blocks of nodes that have arcs in. Arcs with alive[a] == 0 are left
  // out (`alive` empty: all live). Sets neither prices nor imbalances. Throws Stopped when
  // cancelled.
  template <class Arrays>
  ResidualGraph(const Arrays& network, std::span<const std::int64_t> flow,
                std::span<const std::uint8_t> alive, NodeId root, bool spare,
                const Control& control);

  NodeId root() const { return root_; }
  NodeId num_nodes() const { return static_cast<NodeId>(nodes.size()); }

  NodeId owner(std::uint32_t edge_index) const {
    return edges[position[edges[edge_index].id ^ 1]].to;
  }
  bool is_forward(const Edge& edge) const { return (edge.id & 1) == 0; }
  bool is_root_arc(ArcId arc) const { return position[2 * arc] == kAtRoot; }
  bool is_removed(ArcId arc) const { return position[2 * arc] == kRemoved; }
  std::int64_t flow_at(ArcId arc, NodeId tail) const {
    return is_root_arc(arc) ? nodes[tail].root_flow : edges[position[2 * arc]].reverse_residual;
  }
  std::int64_t cost_at(ArcId arc, NodeId tail) const {
    return is_root_arc(arc) ? nodes[tail].root_cost : edges[position[2 * arc]].cost;
  }
  ArcId root_arc(NodeId v) const { return root_arc_[v]; }

  void grow_to_node(NodeId v);  // adds nodes up to v
  // v has no arcs left: resets its state and keeps its block for the next owner of the id
  void clear_node(NodeId v);
  void attach(ArcId arc, NodeId tail, NodeId head, Value capacity, Value cost);
  void detach(ArcId arc, NodeId tail);
  // Pushes `amount` units along the half-edge at `index`, owned by u. Moves half-edges within the
  // blocks of its two ends.
  void push(NodeId u, std::uint32_t index, Value amount);
  void set_capacity(ArcId arc, NodeId tail, Value capacity);  // capacity >= flow
  void set_cost(ArcId arc, NodeId tail, Value cost);

  std::vector<Node<Value>, LargeAllocator<Node<Value>>> nodes;
  LargeArray<Edge> edges;
  LargeArray<std::uint32_t> position;  // by half-edge id
  HubLists<Value> hubs;                // kept up to date here, except when prices move

 private:
  static constexpr std::uint32_t kAtRoot = kNone;
  static constexpr std::uint32_t kRemoved = kNone - 1;

  void swap_edges(std::uint32_t a, std::uint32_t b) {
    if (a == b) return;
    std::swap(edges[a], edges[b]);
    position[edges[a].id] = a;
    position[edges[b].id] = b;
  }
  void to_residual(NodeId u, std::uint32_t index);
  void from_residual(NodeId u, std::uint32_t index);
  void insert(NodeId u, const Edge& edge);
  void erase(NodeId u, std::uint32_t index);
  void make_room(NodeId u);
  void compact();
  void update_interior(NodeId u);
  void note_for_hubs(ArcId arc);

  NodeId root_;
  std::vector<std::uint32_t> room_;                    // size of the node's block
  std::vector<std::uint32_t> in_degree_, out_degree_;  // not counting the arc inside the node
  std::vector<ArcId> root_arc_;                        // the arc inside the node, or kNone
  std::size_t wasted_ = 0;                             // places outside of blocks
};

extern template class ResidualGraph<std::int32_t>;
extern template class ResidualGraph<std::int64_t>;

}  // namespace flowsolver
