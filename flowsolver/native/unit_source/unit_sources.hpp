// Unit sources that come, go and change, beside the residual graph of all other nodes.
//
// A unit source is a node with supply 1, no arcs in, and arcs out of capacity >= 1: a task. It is
// no node of the graph (see unit_source_graph.hpp, whose sources are fixed, for why): once placed,
// it is carried by the head of the arc its unit is on, and is a bundle of residual arcs from there
// to its other heads. Its price is implied: cost(present arc) + p[head].
//
// Invariant, for a placed source and each of its other arcs: cost(other) + p[its head] - price of
// the source >= 0.
//
// Keys. A search looks only at sources that may lead on within its bound. Each node has two lists
// (keyed_lists.hpp):
//   carried: the sources it carries, by a lower bound on (best other arc: cost + p[head]) -
//   cost(present arc); arrivals: the arcs into it whose source is elsewhere, by a lower bound on
//   cost(arc) - price of the source.
// Prices move either way between two looks at a key. A rise of p[v] lowers the true keys of the
// arrivals of what v carries, a fall those of the sources with an arrival at v. Where few keys are
// concerned they are set anew. Where a whole cell gets dearer by one, the allowance is raised
// instead: what is stored is the key plus the allowance at that time, and the bound is what is
// stored less the allowance now. A key that is looked at is exact again.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "unit_source/keyed_lists.hpp"
#include "control.hpp"
#include "graph/residual_graph.hpp"

namespace flowsolver {

template <class V>
class UnitSources {
 public:
  using Value = V;
  using Edge = HalfEdge<V>;
  static constexpr bool kHasUnitSources = true;
  struct SourceArc {
    NodeId head;
    V cost;
    ArcId id;
  };

  // No sources yet. Room for growth is reserved for those of `network`, which tells the tails of
  // arcs.
  UnitSources(ResidualGraph<V>& graph, const Network& network);

  // Membership.
  bool is_source(NodeId v) const { return v < sources_.size() && sources_[v].member; }
  void add_source(NodeId v);     // no arcs yet
  void remove_source(NodeId v);  // forgets it and its arcs
  void extend(std::size_t nodes);

  // Arcs of a source, and where one of them is. Going through them by id takes O(1) each, as long
  // as they were added in order.
  std::pair<std::uint32_t, std::uint32_t> arcs_of(NodeId source) const {
    return {sources_[source].begin, sources_[source].begin + sources_[source].count};
  }
  std::uint32_t position_of(ArcId arc, NodeId source);
  bool is_assigned_over(NodeId source, ArcId arc) const {
    return sources_[source].current != kNone && source_arcs[sources_[source].current].id == arc;
  }
  void reserve_arcs(NodeId source, std::uint32_t arcs);  // before the first
  void add_arc(NodeId source, ArcId id, NodeId head, V cost);
  void remove_arc(NodeId source, std::uint32_t arc);  // not the present one
  // `refresh` before the next search
  void set_cost(std::uint32_t arc, V cost) { source_arcs[arc].cost = cost; }
  // kNone: not placed
  std::uint32_t current_arc(NodeId source) const { return sources_[source].current; }
  NodeId source_of(std::uint32_t arc) const { return tail_[source_arcs[arc].id]; }
  // its arcs are in the lists of their heads
  bool listed(NodeId source) const { return sources_[source].listed; }

  std::int64_t cost_through(std::uint32_t arc) const {
    return source_arcs[arc].cost + nodes[source_arcs[arc].head].price;
  }
  std::int64_t best_cost(NodeId source) const;  // kInfinity without arcs
  std::int64_t price(NodeId source) const;
  bool is_on_best_arc(NodeId source) const {
    return best_cost(source) >= cost_through(sources_[source].current);
  }

  // Moves of its unit. `assign` is for one that is not placed, `reassign` keeps its price.
  void assign(NodeId source, std::uint32_t arc);
  void reassign(NodeId source, std::uint32_t arc);
  void unassign(NodeId source);
  void refresh(NodeId source);  // sets its keys anew

  // Many at once, in less time and memory: `preassign` puts the unit on an arc, and `build_lists`
  // makes the lists, which must be empty, when all are. Until then nothing but reading and
  // membership is allowed. False, and the lists still empty: cancelled.
  void preassign(NodeId source, std::uint32_t arc) { sources_[source].current = arc; }
  bool build_lists(const Control& control);

  // Lists of a node.
  template <class Evaluate>
  void for_each_assigned(NodeId v, Evaluate evaluate) const {
    assigned_.for_each(v, evaluate);
  }
  template <class Evaluate>
  void for_each_incoming(NodeId v, Evaluate evaluate) const {
    incoming_.for_each(v, evaluate);
  }
  std::uint32_t num_assigned(NodeId v) const { return assigned_.size(v); }
  std::uint32_t num_incoming(NodeId v) const { return incoming_.size(v); }

  // What searches need, as in UnitSourceGraph. Labels' parents are half-edges, or arcs of sources
  // with the top bit set.
  NodeId root() const { return graph_.root(); }
  NodeId num_nodes() const { return graph_.num_nodes(); }
  NodeId owner(std::uint32_t edge_index) const { return graph_.owner(edge_index); }
  std::uint32_t partner(std::uint32_t edge_index) const {
    return graph_.position[edges[edge_index].id ^ 1];
  }
  bool is_forward(const Edge& edge) const { return graph_.is_forward(edge); }
  static std::uint32_t parent_of_move(NodeId, std::uint32_t arc) { return encode_parent(arc); }
  static std::uint32_t encode_parent(std::uint32_t arc) { return arc | kSourceBit; }
  static bool is_source_arc(std::uint32_t parent) { return (parent & kSourceBit) != 0; }
  static std::uint32_t decode_parent(std::uint32_t parent) { return parent & ~kSourceBit; }
  template <class Limit, class Evaluate>
  void visit_assigned(NodeId v, Limit limit, Evaluate evaluate) {
    assigned_.visit(
        v, [&] { return plus(limit(), assigned_offset_); },
        [&](NodeId source, std::int64_t key, NodeId lead) {
          return plus(evaluate(source, plus(key, -assigned_offset_), lead), assigned_offset_);
        });
  }
  template <class Limit, class Evaluate>
  void visit_incoming(NodeId v, Limit limit, Evaluate evaluate) {
    incoming_.visit(
        v, [&] { return plus(limit(), incoming_offset_); },
        [&](std::uint32_t arc, std::int64_t key, NodeId lead) {
          return plus(evaluate(arc, plus(key, -incoming_offset_), lead), incoming_offset_);
        });
  }
  // Nodes whose price rose (or fell) by reach - distance, where that is > 0.
  void prices_moved(std::span<const NodeId> moved, std::int64_t reach, bool up);
  // Any prices rose (or fell), by so much at most.
  void prices_moved(std::int64_t most, bool up);
  // One node's price moved, not by a search, and all placed sources suit it.
  void price_changed(NodeId v, bool up) { up ? lower_incoming_keys(v) : lower_assigned_keys(v); }

  decltype(ResidualGraph<V>::nodes)& nodes;
  decltype(ResidualGraph<V>::edges)& edges;
  LargeArray<SourceArc> source_arcs;

 private:
  static constexpr std::uint32_t kSourceBit = std::uint32_t{1} << 31;
  // Keys set anew after one search, at most; beyond that the allowance is raised.
  static constexpr std::int64_t kMaxKeyUpdates = 32'768;
  // As far as keys may be shifted: they shall still fit where they are kept.
  static constexpr std::int64_t kMaxOffset = std::int64_t{1} << (sizeof(V) == 4 ? 29 : 58);

  struct Source {
    std::uint32_t begin = 0, count = 0, current = kNone;
    std::uint32_t room = 0;  // for arcs
    bool member = false;
    bool listed = false;  // its arcs but the present one are in the lists of arrivals
  };
  static constexpr std::uint32_t kMinRoom = 8;

  static std::int64_t plus(std::int64_t key, std::int64_t offset) {
    return key == kInfinity || key == -kInfinity ? key : key + offset;
  }
  void take_block(Source& source, std::uint32_t room);
  void release_block(const Source& source);
  void relocate(NodeId source, std::uint32_t room);
  std::int64_t best_other_cost(NodeId source) const;
  std::int64_t assigned_key(NodeId source) const;
  void set_incoming_keys(NodeId source);
  void lower_incoming_keys(NodeId v);
  void lower_assigned_keys(NodeId v);
  void refresh_all();

  ResidualGraph<V>& graph_;
  const std::vector<NodeId>& tail_;               // by arc id
  std::vector<Source> sources_;                   // by node
  std::uint32_t last_position_ = 0;               // where `position_of` found the last one
  std::vector<std::vector<std::uint32_t>> free_;  // blocks of `source_arcs` by room
  KeyedLists<V> assigned_, incoming_;
  std::int64_t assigned_offset_ = 0, incoming_offset_ = 0;
  std::vector<std::pair<std::int64_t, NodeId>> price_changes_;
};

extern template class UnitSources<std::int32_t>;
extern template class UnitSources<std::int64_t>;

}  // namespace flowsolver
