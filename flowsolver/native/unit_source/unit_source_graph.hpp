// The residual graph of a network whose unit sources are not nodes of the graph (for a solve from
// scratch).
//
// A unit source is a node with supply 1 and no arcs in: a task. All its flow is one unit on one
// arc. So it needs no price, no label and no half-edges: it is assigned to the head of that arc.
// Through it, the head has a residual arc to every other head w of the source, of cost cost(w) -
// cost(current arc). The nodes that remain, the core (machines and aggregators), are a tenth of a
// scheduling graph and stay in the cache. The sources' arcs are read in order of their tails.
//
// The price of a source follows: cost(current arc) + p[head] satisfies the optimality conditions of
// all its arcs if those residual arcs have rc >= 0.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "unit_source/keyed_lists.hpp"
#include "control.hpp"
#include "graph/residual_graph.hpp"

namespace flowsolver {

// The network split into the core and the unit sources. Arcs of unit sources without capacity are
// left out.
template <class V>
struct SplitNetwork {
  struct SourceArc {
    NodeId head;  // core node
    V cost;
  };

  // Throws Stopped when cancelled.
  SplitNetwork(const Network& network, NodeId root, const Control& control);

  PackedNetwork<V> core;          // the network without the unit sources
  std::vector<NodeId> core_node;  // node of the network, per core node
  LargeArray<ArcId> core_arc;
  std::vector<std::uint8_t> reached;  // per core node: whether arcs with capacity lead to it
  NodeId root = kNone;                // core node
  std::vector<NodeId> source_node;    // the unit sources, ascending
  std::vector<std::uint32_t> begin;   // arcs of source s: [begin[s], begin[s + 1])
  LargeArray<SourceArc> arcs;
  LargeArray<ArcId> arc_id;  // arc of the network, per entry of `arcs`
};

template <class V>
class UnitSourceGraph : public ResidualGraph<V> {
 public:
  static constexpr bool kHasUnitSources = true;
  using SourceArc = typename SplitNetwork<V>::SourceArc;

  // Moves the sources' arcs out of `split`.
  UnitSourceGraph(SplitNetwork<V>& split, std::span<const std::int64_t> flow,
                  const Control& control)
      : ResidualGraph<V>(split.core, flow, {}, split.root, false, control),
        assigned(split.core_node.size(), split.source_node.size()),
        source_arcs(std::move(split.arcs)),
        begin_(std::move(split.begin)),
        current_(split.source_node.size(), kNone) {
    for (NodeId v : split.core.tail) this->nodes[v].flags |= kInterior;
    assigned.reserve(0, 0, 2 * num_sources());  // blocks have spare room
  }

  std::size_t num_sources() const { return current_.size(); }
  std::pair<std::uint32_t, std::uint32_t> arcs_of(std::uint32_t source) const {
    return {begin_[source], begin_[source + 1]};
  }
  // kNone: not assigned yet
  std::uint32_t current_arc(std::uint32_t source) const { return current_[source]; }

  // Prefetches what assigning the source will read first.
  void prefetch_assignment(std::uint32_t source) const {
    if (begin_[source] == begin_[source + 1]) return;
    const NodeId head = source_arcs[begin_[source]].head;
    __builtin_prefetch(&this->nodes[head], 1);
    assigned.prefetch(head);
  }

  // The `parent` of a label is the half-edge over which a path came to the node, or a source: then
  // the top bit is set, and the rest is the source (forward search) or its arc (backward search).
  static std::uint32_t parent_of_move(std::uint32_t source, std::uint32_t) {
    return encode_parent(source);
  }
  static std::uint32_t encode_parent(std::uint32_t source_or_arc) {
    return source_or_arc | kSourceBit;
  }
  static bool is_source(std::uint32_t parent) { return (parent & kSourceBit) != 0; }
  static std::uint32_t decode_parent(std::uint32_t parent) { return parent & ~kSourceBit; }

  // Assigns the source to v, over its cheapest arc there. `key`: see `assigned`.
  void assign(std::uint32_t source, NodeId v);
  void assign(std::uint32_t source, std::uint32_t arc, std::int64_t key) {
    if (current_[source] != kNone) assigned.remove(source_arcs[current_[source]].head, source);
    current_[source] = arc;
    assigned.add(source_arcs[arc].head, source, key);
  }

  // Removes the source from its arc. Returns the node it was assigned to.
  NodeId unassign(std::uint32_t source) {
    const NodeId v = source_arcs[current_[source]].head;
    assigned.remove(v, source);
    current_[source] = kNone;
    return v;
  }

  // For backward searches: the arcs into v whose source is assigned elsewhere, keyed by a lower
  // bound on (cost of the arc - cost of the source's current arc - price of the current head).
  void prepare_backward(const Control& control);  // throws Stopped when cancelled
  KeyedLists<std::int64_t>& incoming_at(NodeId v);
  std::uint32_t source_of(std::uint32_t arc) const { return arc_source_[arc]; }

  // For searches: see KeyedLists::visit. Keys stay valid, because prices only rise before
  // `prepare_backward` and only fall after it.
  template <class Limit, class Evaluate>
  void visit_assigned(NodeId v, Limit limit, Evaluate evaluate) {
    assigned.visit(v, limit, evaluate);
  }
  template <class Limit, class Evaluate>
  void visit_incoming(NodeId v, Limit limit, Evaluate evaluate) {
    incoming_at(v).visit(v, limit, evaluate);
  }
  void prices_moved(std::span<const NodeId>, std::int64_t, bool) {}
  // the arc's source leaves its current arc for this one
  void reassign_backward(std::uint32_t arc);

  // For forward searches: the sources assigned to v, keyed by a lower bound on (cost of the best
  // other arc + price of its head - cost of the current arc). Valid while prices only rise.
  KeyedLists<V> assigned;
  LargeArray<SourceArc> source_arcs;

 private:
  static constexpr std::uint32_t kSourceBit = std::uint32_t{1} << 31;

  // The key of the arc in `incoming_`.
  std::int64_t incoming_key(std::uint32_t arc) const {
    const SourceArc& present = source_arcs[current_[arc_source_[arc]]];
    return std::int64_t{source_arcs[arc].cost} - present.cost - this->nodes[present.head].price;
  }

  std::vector<std::uint32_t> begin_, current_;
  // Arcs by head, for backward searches.
  std::vector<std::uint32_t> in_begin_;
  LargeArray<std::uint32_t> in_arcs_, arc_source_;
  KeyedLists<std::int64_t> incoming_;
  std::vector<std::uint8_t> has_incoming_;  // nodes whose list was made
};

template <class V>
void UnitSourceGraph<V>::assign(std::uint32_t source, NodeId v) {
  const auto [begin, end] = arcs_of(source);
  std::uint32_t chosen = kNone;
  std::int64_t other = kInfinity;  // the best of the other arcs
  const auto cost_through = [this](std::uint32_t i) {
    return source_arcs[i].cost + this->nodes[source_arcs[i].head].price;
  };
  for (std::uint32_t i = begin; i < end; ++i) {
    if (source_arcs[i].head == v &&
        (chosen == kNone || source_arcs[i].cost < source_arcs[chosen].cost)) {
      if (chosen != kNone) other = std::min(other, cost_through(chosen));
      chosen = i;
    } else {
      other = std::min(other, cost_through(i));
    }
  }
  assign(source, chosen, other == kInfinity ? kInfinity : other - source_arcs[chosen].cost);
}

template <class V>
void UnitSourceGraph<V>::prepare_backward(const Control& control) {
  CancellationChecker checker(control);
  const std::size_t n = this->nodes.size(), m = source_arcs.size();
  in_begin_.assign(n + 1, 0);
  for (const SourceArc& arc : source_arcs) {
    checker.step_until_cancelled({});
    ++in_begin_[arc.head + 1];
  }
  for (std::size_t v = 0; v < n; ++v) in_begin_[v + 1] += in_begin_[v];
  std::vector<std::uint32_t> next(in_begin_.begin(), in_begin_.end() - 1);
  in_arcs_.resize(m);
  arc_source_.resize(m);
  for (std::uint32_t source = 0; source < num_sources(); ++source) {
    checker.step_until_cancelled({}, begin_[source + 1] - begin_[source] + 1);
    for (std::uint32_t i = begin_[source]; i < begin_[source + 1]; ++i) {
      in_arcs_[next[source_arcs[i].head]++] = i;
      arc_source_[i] = source;
    }
  }
  incoming_ = KeyedLists<std::int64_t>(n, m);
  has_incoming_.assign(n, 0);
}

template <class V>
KeyedLists<std::int64_t>& UnitSourceGraph<V>::incoming_at(NodeId v) {
  if (has_incoming_[v] == 0) {
    has_incoming_[v] = 1;
    incoming_.make_room(v, in_begin_[v + 1] - in_begin_[v]);
    for (std::uint32_t k = in_begin_[v]; k < in_begin_[v + 1]; ++k) {
      const std::uint32_t arc = in_arcs_[k];
      if (current_[arc_source_[arc]] != arc) incoming_.add(v, arc, incoming_key(arc));
    }
  }
  return incoming_;
}

template <class V>
void UnitSourceGraph<V>::reassign_backward(std::uint32_t arc) {
  const std::uint32_t source = arc_source_[arc], before = current_[source];
  const NodeId from = source_arcs[before].head, to = source_arcs[arc].head;
  if (has_incoming_[to] != 0) incoming_.remove(to, arc);
  current_[source] = arc;
  if (has_incoming_[from] != 0) incoming_.add(from, before, incoming_key(before));
}

extern template struct SplitNetwork<std::int32_t>;
extern template struct SplitNetwork<std::int64_t>;

}  // namespace flowsolver
