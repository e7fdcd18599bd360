// The residual graph of a network whose unit sources are not nodes of it.
//
// A unit source is a node with supply 1 and no arcs in: a task. All its flow is one unit on one
// arc, so it needs neither a price nor a label nor half-edges: it is carried by the node its arc
// leads to, and through it that node has a residual arc to every other head w of the source, of
// length cost(w) - cost(present arc). What is left as nodes (machines, aggregators) is a tenth of a
// scheduling graph and stays in the cache; the sources' arcs are read in order of their tails.
//
// Its price follows: cost(present arc) + p[head] is one that all its arcs suit, as long as those
// lengths have rc >= 0.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "unit_source/keyed_lists.hpp"
#include "control.hpp"
#include "graph/residual_graph.hpp"

namespace flowsolver {

// The network's nodes and arcs told apart. Arcs of unit sources without capacity are left out.
template <class V>
struct SplitNetwork {
  struct SourceArc {
    NodeId head;  // as a number in `core`
    V cost;
  };

  // Throws Stopped when cancelled.
  SplitNetwork(const Network& network, NodeId root, const Control& control);

  PackedNetwork<V> core;          // without the unit sources
  std::vector<NodeId> core_node;  // what its nodes are in the network
  LargeArray<ArcId> core_arc;
  std::vector<std::uint8_t> reached;  // whether arcs with capacity lead to its node
  NodeId root = kNone;                // in `core`
  std::vector<NodeId> source_node;    // the unit sources, ascending
  std::vector<std::uint32_t> begin;   // arcs of source s: [begin[s], begin[s + 1])
  LargeArray<SourceArc> arcs;
  LargeArray<ArcId> arc_id;  // of `arcs`
};

template <class V>
class UnitSourceGraph : public ResidualGraph<V> {
 public:
  static constexpr bool kHasUnitSources = true;
  using SourceArc = typename SplitNetwork<V>::SourceArc;

  // Takes the sources' arcs out of `split`.
  UnitSourceGraph(SplitNetwork<V>& split, std::span<const std::int64_t> flow,
                  const Control& control)
      : ResidualGraph<V>(split.core, flow, {}, split.root, false, control),
        assigned(split.core_node.size(), split.source_node.size()),
        source_arcs(std::move(split.arcs)),
        begin_(std::move(split.begin)),
        current_(split.source_node.size(), kNone) {
    for (NodeId v : split.core.tail) this->nodes[v].flags |= kInterior;
    assigned.reserve(0, 0, 2 * num_sources());  // blocks have room to spare
  }

  std::size_t num_sources() const { return current_.size(); }
  std::pair<std::uint32_t, std::uint32_t> arcs_of(std::uint32_t source) const {
    return {begin_[source], begin_[source + 1]};
  }
  // kNone: not placed yet
  std::uint32_t current_arc(std::uint32_t source) const { return current_[source]; }

  // Fetches what placing the source will read first.
  void prefetch_assignment(std::uint32_t source) const {
    if (begin_[source] == begin_[source + 1]) return;
    const NodeId head = source_arcs[begin_[source]].head;
    __builtin_prefetch(&this->nodes[head], 1);
    assigned.prefetch(head);
  }

  // A path comes to a node over a half-edge, or over a source: then the top bit of the label's
  // `parent` is set and the rest is the source (forward) or its arc (backward). forward, over that
  // arc
  static std::uint32_t parent_of_move(std::uint32_t source, std::uint32_t) {
    return encode_parent(source);
  }
  static std::uint32_t encode_parent(std::uint32_t source_or_arc) {
    return source_or_arc | kSourceBit;
  }
  static bool is_source(std::uint32_t parent) { return (parent & kSourceBit) != 0; }
  static std::uint32_t decode_parent(std::uint32_t parent) { return parent & ~kSourceBit; }

  // Lets the source's unit go to v, over its cheapest arc there. `key`: see `assigned`.
  void assign(std::uint32_t source, NodeId v);
  void assign(std::uint32_t source, std::uint32_t arc, std::int64_t key) {
    if (current_[source] != kNone) assigned.remove(source_arcs[current_[source]].head, source);
    current_[source] = arc;
    assigned.add(source_arcs[arc].head, source, key);
  }

  // Takes the source off its arc. Returns the node that carried it.
  NodeId unassign(std::uint32_t source) {
    const NodeId v = source_arcs[current_[source]].head;
    assigned.remove(v, source);
    current_[source] = kNone;
    return v;
  }

  // Backward. The arcs into v whose source is elsewhere, keyed by a lower bound on (cost of the arc
  // - cost of the source's present arc - price of where that leads).
  void prepare_backward(const Control& control);  // throws Stopped when cancelled
  KeyedLists<std::int64_t>& incoming_at(NodeId v);
  std::uint32_t source_of(std::uint32_t arc) const { return arc_source_[arc]; }

  // For searches: see KeyedLists::visit. Prices only rise before `prepare_backward` and only fall
  // after it: keys stay valid.
  template <class Limit, class Evaluate>
  void visit_assigned(NodeId v, Limit limit, Evaluate evaluate) {
    assigned.visit(v, limit, evaluate);
  }
  template <class Limit, class Evaluate>
  void visit_incoming(NodeId v, Limit limit, Evaluate evaluate) {
    incoming_at(v).visit(v, limit, evaluate);
  }
  void prices_moved(std::span<const NodeId>, std::int64_t, bool) {}
  void reassign_backward(std::uint32_t arc);  // the arc's source leaves its present arc for it

  // Forward. The sources carried by v, keyed by a lower bound on (cost of the best other arc +
  // price of where it leads - cost of the present arc). Valid while prices only rise.
  KeyedLists<V> assigned;
  LargeArray<SourceArc> source_arcs;

 private:
  static constexpr std::uint32_t kSourceBit = std::uint32_t{1} << 31;

  // The best way of the arc's source now, less the arc: how far a backward search gets over it.
  std::int64_t incoming_key(std::uint32_t arc) const {
    const SourceArc& present = source_arcs[current_[arc_source_[arc]]];
    return std::int64_t{source_arcs[arc].cost} - present.cost - this->nodes[present.head].price;
  }

  std::vector<std::uint32_t> begin_, current_;
  // By head, for searching backward.
  std::vector<std::uint32_t> in_begin_;
  LargeArray<std::uint32_t> in_arcs_, arc_source_;
  KeyedLists<std::int64_t> incoming_;
  std::vector<std::uint8_t> has_incoming_;  // nodes whose list is filled
};

template <class V>
void UnitSourceGraph<V>::assign(std::uint32_t source, NodeId v) {
  const auto [begin, end] = arcs_of(source);
  std::uint32_t chosen = kNone;
  std::int64_t other = kInfinity;  // the best of the others
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
