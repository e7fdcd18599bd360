// Unit sources under changes: sources are added, removed and changed, beside the residual graph of
// all other nodes.
//
// A unit source is a node with supply 1, no arcs in, and arcs out of capacity >= 1: a task. It is
// not a node of the graph; initial_assignment.cpp, where the sources are fixed, says why. While
// assigned, it belongs to the head of the arc that has its unit, and stands for residual arcs from
// there to its other heads. Its price is implied: cost(current arc) + p[head].
//
// Invariant, for an assigned source and each of its other arcs: cost(other) + p[its head] - price
// of the source >= 0.
//
// Keys. A search scans only those sources that may lead on within its distance bound. Each node has
// two lists (keyed_lists.hpp):
// - assigned: the sources assigned to it, by a lower bound on (best other arc: cost + p[head]) -
//   cost(current arc);
// - incoming: the arcs into it whose source is assigned elsewhere, by a lower bound on cost(arc) -
//   price of the source.
// Prices rise and fall between two scans of a key. A rise of p[v] lowers the true keys, in the
// incoming lists, of the sources assigned to v; a fall lowers those, in the assigned lists, of the
// sources with an arc to v. If few keys are concerned, they are updated. If all prices of a cell
// rise by one, an offset is raised instead: the stored value is the key plus the offset at that
// time, and the bound is the stored value minus the current offset. A key that is scanned is made
// exact again.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "control.hpp"
#include "graph/residual_graph.hpp"
#include "unit_source/keyed_lists.hpp"

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

  // Starts without sources. Reserves room for those of `network`, which also gives the tails of
  // arcs.
  UnitSources(ResidualGraph<V>& graph, const Network& network);

  // Which nodes are unit sources.
  bool is_source(NodeId v) const { return v < sources_.size() && sources_[v].member; }
  void add_source(NodeId v);     // without arcs
  void remove_source(NodeId v);  // with its arcs
  void extend(std::size_t nodes);

  // The arcs of a source, and the position of one of them. Finding all by id takes O(1) each if
  // they are looked up in the order in which they were added.
  std::pair<std::uint32_t, std::uint32_t> arcs_of(NodeId source) const {
    return {sources_[source].begin, sources_[source].begin + sources_[source].count};
  }
  std::uint32_t position_of(ArcId arc, NodeId source);
  bool is_assigned_over(NodeId source, ArcId arc) const {
    return sources_[source].current != kNone && source_arcs[sources_[source].current].id == arc;
  }
  void reserve_arcs(NodeId source, std::uint32_t arcs);  // before the first arc is added
  void add_arc(NodeId source, ArcId id, NodeId head, V cost);
  void remove_arc(NodeId source, std::uint32_t arc);  // not the current arc
  // call `refresh` before the next search
  void set_cost(std::uint32_t arc, V cost) { source_arcs[arc].cost = cost; }
  // kNone: not assigned
  std::uint32_t current_arc(NodeId source) const { return sources_[source].current; }
  NodeId source_of(std::uint32_t arc) const { return tail_[source_arcs[arc].id]; }
  // whether its arcs are in the lists of their heads
  bool listed(NodeId source) const { return sources_[source].listed; }

  std::int64_t cost_through(std::uint32_t arc) const {
    return source_arcs[arc].cost + nodes[source_arcs[arc].head].price;
  }
  std::int64_t best_cost(NodeId source) const;  // kInfinity without arcs
  std::int64_t price(NodeId source) const;
  bool is_on_best_arc(NodeId source) const {
    return best_cost(source) >= cost_through(sources_[source].current);
  }

  // Assignments of its unit. `assign` is for a source that is not assigned; `reassign` keeps its
  // price.
  void assign(NodeId source, std::uint32_t arc);
  void reassign(NodeId source, std::uint32_t arc);
  void unassign(NodeId source);
  void refresh(NodeId source);  // recomputes its keys

  // For many sources at once, in less time and memory: `preassign` puts the unit on an arc, and
  // `build_lists`, when all are preassigned, makes the lists, which must be empty. In between only
  // reading and adding sources is allowed. False: cancelled, and the lists are still empty.
  void preassign(NodeId source, std::uint32_t arc) { sources_[source].current = arc; }
  bool build_lists(const Control& control);

  // The lists of a node.
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

  // What searches need, as in UnitSourceGraph. The parent of a label is a half-edge, or an arc of a
  // source with the top bit set.
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
  // Must be called after the prices of these nodes rose (fell) by reach - distance, where that is >
  // 0.
  void prices_moved(std::span<const NodeId> moved, std::int64_t reach, bool up);
  // Must be called after any prices rose (fell), by at most `most`.
  void prices_moved(std::int64_t most, bool up);
  // Must be called after one node's price was changed by other means than a search, with the
  // invariant intact.
  void price_changed(NodeId v, bool up) { up ? lower_incoming_keys(v) : lower_assigned_keys(v); }

  decltype(ResidualGraph<V>::nodes)& nodes;
  decltype(ResidualGraph<V>::edges)& edges;
  LargeArray<SourceArc> source_arcs;

 private:
  static constexpr std::uint32_t kSourceBit = std::uint32_t{1} << 31;
  // Maximum number of keys updated after one search; beyond it, the offset is raised.
  static constexpr std::int64_t kMaxKeyUpdates = 32'768;
  // Maximum offset: shifted keys must fit their type.
  static constexpr std::int64_t kMaxOffset = std::int64_t{1} << (sizeof(V) == 4 ? 29 : 58);

  struct Source {
    std::uint32_t begin = 0, count = 0, current = kNone;
    std::uint32_t room = 0;  // for arcs
    bool member = false;
    bool listed = false;  // its arcs, except the current one, are in the incoming lists
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
  std::uint32_t last_position_ = 0;               // where `position_of` found the last arc
  std::vector<std::vector<std::uint32_t>> free_;  // free blocks of `source_arcs`, by size
  KeyedLists<V> assigned_, incoming_;
  std::int64_t assigned_offset_ = 0, incoming_offset_ = 0;
  std::vector<std::pair<std::int64_t, NodeId>> price_changes_;
};

extern template class UnitSources<std::int32_t>;
extern template class UnitSources<std::int64_t>;

}  // namespace flowsolver
