// Unit sources that come, go and change, beside the residual graph of all other nodes.
//
// A unit source is a node with supply 1, no arcs in, and arcs out of capacity >= 1: a task. It is
// no node of the graph (see unit_source_graph.hpp, whose sources are fixed, for why): once placed, it
// is carried by the head of the arc its unit is on, and is a bundle of residual arcs from there to
// its other heads. Its price is implied: cost(present arc) + p[head].
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
class CarriedSources {
 public:
  using Value = V;
  using Edge = HalfEdge<V>;
  static constexpr bool kCarries = true;
  struct SourceArc {
    NodeId head;
    V cost;
    ArcId id;
  };

  // No sources yet. Room for growth is reserved for those of `network`, which tells the tails of
  // arcs.
  CarriedSources(ResidualGraph<V>& graph, const Network& network);

  // Membership.
  bool is_source(NodeId v) const { return v < sources_.size() && sources_[v].member; }
  void enroll(NodeId v);   // no arcs yet
  void dismiss(NodeId v);  // forgets it and its arcs
  void extend(std::size_t nodes);

  // Arcs of a source, and where one of them is. Going through them by id takes O(1) each, as long
  // as they were added in order.
  std::pair<std::uint32_t, std::uint32_t> arcs_of(NodeId source) const {
    return {sources_[source].begin, sources_[source].begin + sources_[source].count};
  }
  std::uint32_t place_of(ArcId arc, NodeId source);
  bool uses(NodeId source, ArcId arc) const {
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

  std::int64_t through(std::uint32_t arc) const {
    return source_arcs[arc].cost + nodes[source_arcs[arc].head].price;
  }
  std::int64_t best_way(NodeId source) const;  // kInfinity without arcs
  std::int64_t price(NodeId source) const;
  bool suits(NodeId source) const { return best_way(source) >= through(sources_[source].current); }

  // Moves of its unit. `put` is for one that is not placed, `move` keeps its price.
  void put(NodeId source, std::uint32_t arc);
  void move(NodeId source, std::uint32_t arc);
  void take_off(NodeId source);
  void refresh(NodeId source);  // sets its keys anew

  // Many at once, in less time and memory: `settle` puts the unit on an arc, and `list_settled`
  // makes the lists, which must be empty, when all are. Until then nothing but reading and
  // membership is allowed. False, and the lists still empty: cancelled.
  void settle(NodeId source, std::uint32_t arc) { sources_[source].current = arc; }
  bool list_settled(const Control& control);

  // Lists of a node.
  template <class Look>
  void for_each_carried(NodeId v, Look look) const {
    carried_.for_each(v, look);
  }
  template <class Look>
  void for_each_arrival(NodeId v, Look look) const {
    arrivals_.for_each(v, look);
  }
  std::uint32_t num_carried(NodeId v) const { return carried_.size(v); }
  std::uint32_t num_arrivals(NodeId v) const { return arrivals_.size(v); }

  // What searches need, as in CarrierGraph. Labels' parents are half-edges, or arcs of sources with
  // the top bit set.
  NodeId root() const { return graph_.root(); }
  NodeId num_nodes() const { return graph_.num_nodes(); }
  NodeId owner(std::uint32_t edge_index) const { return graph_.owner(edge_index); }
  std::uint32_t partner(std::uint32_t edge_index) const {
    return graph_.position[edges[edge_index].id ^ 1];
  }
  bool is_forward(const Edge& edge) const { return graph_.is_forward(edge); }
  static std::uint32_t over(NodeId, std::uint32_t arc) { return as_parent(arc); }
  static std::uint32_t as_parent(std::uint32_t arc) { return arc | kSourceBit; }
  static bool is_source_arc(std::uint32_t parent) { return (parent & kSourceBit) != 0; }
  static std::uint32_t from_parent(std::uint32_t parent) { return parent & ~kSourceBit; }
  template <class Limit, class Look>
  void visit_carried(NodeId v, Limit limit, Look look) {
    carried_.visit(
        v, [&] { return plus(limit(), carried_allowance_); },
        [&](NodeId source, std::int64_t key, NodeId lead) {
          return plus(look(source, plus(key, -carried_allowance_), lead), carried_allowance_);
        });
  }
  template <class Limit, class Look>
  void visit_arrivals(NodeId v, Limit limit, Look look) {
    arrivals_.visit(
        v, [&] { return plus(limit(), arrival_allowance_); },
        [&](std::uint32_t arc, std::int64_t key, NodeId lead) {
          return plus(look(arc, plus(key, -arrival_allowance_), lead), arrival_allowance_);
        });
  }
  // Nodes whose price rose (or fell) by reach - distance, where that is > 0.
  void prices_moved(std::span<const NodeId> moved, std::int64_t reach, bool up);
  // Any prices rose (or fell), by so much at most.
  void prices_moved(std::int64_t most, bool up);
  // One node's price moved, not by a search, and all placed sources suit it.
  void price_moved(NodeId v, bool up) { up ? lower_arrival_keys(v) : lower_carried_keys(v); }

  decltype(ResidualGraph<V>::nodes)& nodes;
  decltype(ResidualGraph<V>::edges)& edges;
  LargeArray<SourceArc> source_arcs;

 private:
  static constexpr std::uint32_t kSourceBit = std::uint32_t{1} << 31;
  // Keys set anew after one search, at most; beyond that the allowance is raised.
  static constexpr std::int64_t kExplicitKeys = 32'768;
  // As far as keys may be shifted: they shall still fit where they are kept.
  static constexpr std::int64_t kAllowanceLimit = std::int64_t{1} << (sizeof(V) == 4 ? 29 : 58);

  struct Source {
    std::uint32_t begin = 0, count = 0, current = kNone;
    std::uint32_t room = 0;  // for arcs
    bool member = false;
    bool listed = false;  // its arcs but the present one are in the lists of arrivals
  };
  static constexpr std::uint32_t kLeastRoom = 8;

  static std::int64_t plus(std::int64_t key, std::int64_t allowance) {
    return key == kInfinity || key == -kInfinity ? key : key + allowance;
  }
  void take_block(Source& source, std::uint32_t room);
  void release_block(const Source& source);
  void relocate(NodeId source, std::uint32_t room);
  std::int64_t best_other(NodeId source) const;
  std::int64_t carried_key(NodeId source) const;
  void set_arrival_keys(NodeId source);
  void lower_arrival_keys(NodeId v);
  void lower_carried_keys(NodeId v);
  void refresh_all();

  ResidualGraph<V>& graph_;
  const std::vector<NodeId>& tail_;               // by arc id
  std::vector<Source> sources_;                   // by node
  std::uint32_t sought_ = 0;                      // where `place_of` found the last one
  std::vector<std::vector<std::uint32_t>> free_;  // blocks of `source_arcs` by room
  KeyedLists<V> carried_, arrivals_;
  std::int64_t carried_allowance_ = 0, arrival_allowance_ = 0;
  std::vector<std::pair<std::int64_t, NodeId>> moves_;
};

extern template class CarriedSources<std::int32_t>;
extern template class CarriedSources<std::int64_t>;

}  // namespace flowsolver
