// The residual graph of a pseudoflow under changes to the network: nodes and arcs are added and
// removed, costs and capacities change, each in O(1) amortised.
//
// Each arc that is not a loop is two half-edges that store their partner's position, as in
// arc_graph.hpp, in one block per node with room to grow. The forward ones come first in a block,
// so that an aggregator's few arcs out are found without scanning all arcs into it. Half-edges move
// within their block only when arcs are added or removed. A block without room moves to the end,
// and `compact` recovers the places it leaves.
//
// Loops are in no block: they are full if their cost is negative, else empty.
//
// Since `begin_round` the graph records the arcs whose flow was touched, with their flow before,
// and the nodes whose excess was changed by changes to the network.
//
// `Value` is the type of costs and capacities: 32 bits if they fit (16-byte half-edges), else 64.
// Memory: 44 bytes an arc (60 with 64 bits) and the blocks' spare room, 25 bytes a node.
#pragma once

#include <array>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "control.hpp"
#include "solve.hpp"
#include "graph/arc_graph.hpp"
#include "network.hpp"

namespace flowsolver {

template <class V>
class DynamicGraph {
 public:
  using Value = V;
  static constexpr bool kMayReorder = false;  // blocks have a fixed order
  using HalfEdge = typename ArcGraph<V>::HalfEdge;

  // From arrays, in O(n + m). `flow`: empty for none. `alive`: arcs with alive[a] == 0 are left
  // out; empty: all live. Throws Stopped when cancelled.
  DynamicGraph(const Network& network, std::span<const std::int64_t> flow,
               std::span<const std::uint8_t> alive, const Control& control);

  NodeId num_nodes() const { return static_cast<NodeId>(blocks_.size()); }
  // Half-edges of v: [begin(v), end(v)); the forward ones are before middle(v).
  std::uint32_t begin(NodeId v) const { return blocks_[v].begin; }
  std::uint32_t middle(NodeId v) const { return blocks_[v].middle; }
  std::uint32_t end(NodeId v) const { return blocks_[v].end; }
  bool is_forward(std::uint32_t edge) const { return (id_[edge] & kBackward) == 0; }
  ArcId arc(std::uint32_t edge) const { return (id_[edge] & ~(kTouched | kReverseResidual)) >> 1; }
  // Whether the partner has residual capacity, without reading the partner.
  bool has_reverse_residual(std::uint32_t edge) const {
    return (id_[edge] & kReverseResidual) != 0;
  }

  void push(NodeId from, std::uint32_t edge, std::int64_t amount) {
    if ((id_[edge] & kTouched) == 0) touch(edge);
    HalfEdge& there = edges[edge];
    there.residual -= static_cast<Value>(amount);
    edges[there.partner].residual += static_cast<Value>(amount);
    note_residual(edge);
    note_residual(there.partner);
    cost_ += static_cast<__int128>(there.cost) * amount;
    excess[from] -= amount;
    excess[there.to] += amount;
  }

  // The flow of a live arc; 0 for a removed one.
  std::int64_t flow(ArcId arc, NodeId tail) const {
    const std::uint32_t there = arc < position.size() ? position[arc] : kNone;
    if (there != kNone) return edges[edges[there].partner].residual;
    const auto loop = loops_.find({tail, arc});
    return loop == loops_.end() ? 0 : loop->second.flow();
  }
  __int128 cost() const { return cost_; }  // cost of the flow

  // Changes. If flow is taken off an arc or a node is removed, what remains is an excess or a
  // deficit.
  void add_node(NodeId v, std::int64_t supply);
  void remove_node(NodeId v);  // its arcs were removed before
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost);
  void remove_arc(ArcId arc, NodeId tail);
  void set_capacity(ArcId arc, NodeId tail, std::int64_t capacity);
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost);
  void change_supply(NodeId v, std::int64_t delta);

  // Appends the arcs at v, loops included.
  void incident_arcs(NodeId v, std::vector<ArcId>& arcs) const;
  void begin_round();
  const std::vector<FlowBefore>& touched_arcs() const { return touched_; }
  // Contains every node with an excess or deficit that was caused by a change, or by `push` after
  // `drop_balanced`.
  const std::vector<NodeId>& unbalanced() const { return unbalanced_; }
  void note_unbalanced(NodeId v) {
    if (noted_[v] != 0) return;
    noted_[v] = 1;
    unbalanced_.push_back(v);
  }
  void drop_balanced();

  // Whether half the places are unused, so that `compact` pays. It moves all blocks, in O(n + m).
  // Throws Stopped when cancelled.
  bool is_sparse() const { return wasted_ > edges.size() / 2 + kMaxWasted; }
  void compact(const Control& control);

  LargeArray<HalfEdge> edges;  // half-edges outside of blocks are unused
  // arc -> its forward half-edge; kNone for a removed arc or a loop
  LargeArray<std::uint32_t> position;
  LargeArray<std::int64_t> excess;  // per node: supply + inflow - outflow

 private:
  static constexpr std::uint32_t kBackward = 1, kReverseResidual = std::uint32_t{1} << 30,
                                 kTouched = std::uint32_t{1} << 31;
  static_assert(kMaxArcs <= kReverseResidual / 2);
  static constexpr std::size_t kMaxWasted = 1024;
  struct Block {
    std::uint32_t begin = 0, middle = 0, end = 0, limit = 0;
  };
  struct Loop {
    std::int64_t capacity, cost;
    std::int64_t flow() const { return cost < 0 ? capacity : 0; }
  };

  void note_residual(std::uint32_t edge) {
    std::uint32_t& id = id_[edges[edge].partner];
    id = edges[edge].residual > 0 ? id | kReverseResidual : id & ~kReverseResidual;
  }
  void touch(std::uint32_t edge);
  template <class Change>
  void change_loop(ArcId arc, NodeId v, Change change);
  void relocate(std::uint32_t from, std::uint32_t to);
  void make_room(NodeId v);
  std::uint32_t insert(NodeId v, bool forward);
  void erase(NodeId v, std::uint32_t edge);

  std::vector<Block> blocks_;
  // per half-edge: 2 * arc, plus 1 if it is backward, and flags
  LargeArray<std::uint32_t> id_;
  std::map<std::pair<NodeId, ArcId>, Loop> loops_;
  __int128 cost_ = 0;
  std::vector<FlowBefore> touched_;
  std::vector<NodeId> unbalanced_;
  std::vector<std::uint8_t> noted_;  // per node: in unbalanced_
  std::size_t wasted_ = 0;           // unused places outside of blocks
};

extern template class DynamicGraph<std::int32_t>;
extern template class DynamicGraph<std::int64_t>;

// The arcs at each node of a changing network: doubly linked lists, O(1) to add or remove an arc.
// 16 bytes an arc, 8 a node.
class ArcLists {
 public:
  void extend(std::size_t nodes, std::size_t arcs) {
    if (first_.size() < nodes) first_.resize(nodes, {kNone, kNone});
    if (links_.size() < arcs) links_.resize(arcs);
  }
  void add(ArcId a, NodeId tail, NodeId head) {
    insert<kOut>(a, tail);
    insert<kIn>(a, head);
  }
  void remove(ArcId a, NodeId tail, NodeId head) {
    erase<kOut>(a, tail);
    erase<kIn>(a, head);
  }

  // visit(arc) for each, as long as should_continue().
  template <class Visit, class Continue>
  void for_each_out(NodeId v, Visit visit, Continue should_continue) const {
    for (ArcId a = first_[v][kOut]; a != kNone && should_continue(); a = links_[a].next[kOut])
      visit(a);
  }
  template <class Visit, class Continue>
  void for_each_in(NodeId v, Visit visit, Continue should_continue) const {
    for (ArcId a = first_[v][kIn]; a != kNone && should_continue(); a = links_[a].next[kIn])
      visit(a);
  }
  template <class Visit>
  void for_each_out(NodeId v, Visit visit) const {
    for_each_out(v, visit, [] { return true; });
  }
  template <class Visit>
  void for_each_in(NodeId v, Visit visit) const {
    for_each_in(v, visit, [] { return true; });
  }

 private:
  enum Side { kOut, kIn };
  struct Links {
    std::array<ArcId, 2> next{kNone, kNone}, before{kNone, kNone};
  };

  template <Side side>
  void insert(ArcId a, NodeId v) {
    const ArcId after = first_[v][side];
    links_[a].next[side] = after;
    links_[a].before[side] = kNone;
    if (after != kNone) links_[after].before[side] = a;
    first_[v][side] = a;
  }
  template <Side side>
  void erase(ArcId a, NodeId v) {
    const ArcId before = links_[a].before[side], after = links_[a].next[side];
    if (before == kNone) {
      first_[v][side] = after;
    } else {
      links_[before].next[side] = after;
    }
    if (after != kNone) links_[after].before[side] = before;
  }

  std::vector<std::array<ArcId, 2>> first_;  // by node
  std::vector<Links> links_;                 // by arc
};

}  // namespace flowsolver
