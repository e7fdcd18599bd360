// A residual graph with prices that are kept reduced-cost optimal, and what the iterations of
// relaxation need to know at any time: each node's residual half-edges (residual_lists.hpp), which
// nodes have excess, and about how far each node is from a deficit.
//
// Invariant: rc = cost - p[u] + p[w] >= 0 on every residual half-edge u -> w. One with rc = 0 is
// balanced: flow may be moved along it. (During a multinode iteration, multinode_iteration.hpp, the
// prices of the set are stored without its raise; the invariant holds with the raise added.)
//
// Degenerate raises. If the flow of a source is on full arcs only, its price may be anything
// between what those require and the price at which the first other arc gets balanced: the dual
// objective is the same. `raise_degenerate` sets it to the latter (a degenerate ascent step). Then
// the residual half-edges back to it have as reduced cost what it would cost the source to move
// elsewhere, instead of 0, and no set has to include thousands of tasks that use one aggregator and
// cannot move.
//
// Hops. hops[v] estimates the number of balanced arcs from v to the nearest deficit: exactly 0 at
// deficits, kFar if no path is known. Hops determine the order of searches only; no answer depends
// on them. A scan of all arcs of v sets hops[v] to 1 + the least of its balanced heads, so that
// dead ends are learned once.
//
// Range. Prices only rise; close_gaps in price_passes.hpp brings them back below 2^59.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "graph/arc_graph.hpp"
#include "graph/deficit_cancelling.hpp"
#include "graph/dynamic_graph.hpp"
#include "relaxation/node_marks.hpp"
#include "relaxation/node_queue.hpp"
#include "relaxation/residual_lists.hpp"

namespace flowsolver {

// Arcs: arc_graph.hpp, or dynamic_graph.hpp if they change.
template <class Arcs>
class BalancedGraph {
 public:
  using Edge = typename Arcs::HalfEdge;
  using Value = typename Arcs::Value;
  static constexpr bool kIsDynamic = kIsDynamicGraph<Arcs>;
  static constexpr std::uint32_t kFar = 64;
  static constexpr std::int64_t kMaxPrice = std::int64_t{1} << 60;

  // position relative to the current set
  enum class Place : std::uint8_t { kOutside, kLabelled, kInside };
  struct Node {  // two to a cache line: nearly all that a scan reads of a node
    std::int64_t price = 0;
    std::uint32_t hops = 1;
    // current arc: position in its list before which no arc was balanced and led to fewer hops
    std::uint32_t current = 0;
    std::uint32_t list = kNone;  // residual_lists.hpp
    // inside the set: the arc by which it was reached, kNone at the root
    std::uint32_t parent = kNone;
    Place place = Place::kOutside;
    bool source = false;  // has supply
    bool queued = false;  // is in `untried` or `postponed`
  };

  // Builds the graph with the start's flow; arcs that violate optimality at `price` (empty: all 0)
  // are filled or emptied.
  Status build(const Network& network, const Start& start, std::span<const std::int64_t> price,
               const Control& control, Stats& stats) {
    Status status = arcs_.build(network, start, control, stats);
    if (status != Status::kOptimal) return status;
    nodes.assign(network.num_nodes(), Node{});
    cut.assign(network.num_nodes(), 0);
    for (NodeId v = 0; v < price.size(); ++v) nodes[v].price = price[v];
    CancellationChecker checker(control);
    std::int64_t cheapest = 0;
    for (std::int64_t cost : network.cost) cheapest = std::min(cheapest, cost);
    if (cheapest < 0 || !start.flow.empty() || !price.empty()) {
      status = each_node(checker, stats, [&](NodeId v) { saturate(v, stats); });
      if (status != Status::kOptimal) return status;
    }
    if (!start.flow.empty()) status = cancel_deficits(arcs_, price, control, stats);
    if (status != Status::kOptimal) return status;
    for (NodeId v = 0; v < num_nodes(); ++v) {
      nodes[v].source = network.supply[v] > 0;
      note_excess(v);
      if (excess(v) > 0) nodes[v].hops = kFar - 1;
    }
    return Status::kOptimal;
  }

  BalancedGraph()
    requires(!kIsDynamic)
  = default;
  // The graph with this flow and these prices (empty: zeros), of arcs that are alive (empty: all).
  // Arcs may still violate optimality. Throws Stopped when cancelled.
  BalancedGraph(const Network& network, std::span<const std::int64_t> flow,
                std::span<const std::uint8_t> alive, std::span<const std::int64_t> price,
                const Control& control)
    requires kIsDynamic
      : arcs_(network, flow, alive, control) {
    const std::size_t n = network.num_nodes();
    nodes.reserve(n + n / 4);
    cut.reserve(n + n / 4);
    marks.reserve(n + n / 4);
    nodes.assign(n, Node{});
    cut.assign(n, 0);
    marks.assign(n);
    for_each_until_cancelled(n, control, [&](std::size_t at) {
      const NodeId v = static_cast<NodeId>(at);
      if (!price.empty()) nodes[v].price = price[v];
      nodes[v].source = network.supply[v] > 0;
      if (nodes[v].source) nodes[v].hops = kFar - 1;
    });
  }

  NodeId num_nodes() const { return static_cast<NodeId>(nodes.size()); }
  const Arcs& arcs() const { return arcs_; }
  const Edge& edge(std::uint32_t i) const { return arcs_.edges[i]; }
  NodeId tail(std::uint32_t i) const { return arcs_.edges[arcs_.edges[i].partner].to; }
  __int128 total_excess() const {  // sum of all excesses
    __int128 sum = 0;
    for (NodeId v = 0; v < num_nodes(); ++v) sum += is_excess(v) ? excess(v) : 0;
    return sum;
  }
  std::int64_t excess(NodeId v) const { return arcs_.excess[v]; }
  bool is_excess(NodeId v) const { return excess(v) > 0 && v != root; }
  bool has_deficit(NodeId v) const { return excess(v) < 0 || v == root; }
  std::int64_t deficit(NodeId v) const { return v == root ? kInfinity : -excess(v); }
  std::int64_t reduced_cost(NodeId v, const Edge& edge) const {
    return edge.cost - nodes[v].price + nodes[edge.to].price;
  }

  // Scans the residual half-edges of v (residual_lists.hpp). Without a level: those that may be
  // balanced.
  template <class Visit>
  std::uint32_t scan(NodeId v, std::uint32_t from, Stats& stats, Visit&& visit) {
    return lists_.scan(v, from, 0, stats, visit);
  }
  template <class Visit>
  std::uint32_t scan_up_to(std::int64_t level, NodeId v, std::uint32_t from, Stats& stats,
                           Visit&& visit) {
    return lists_.scan(v, from, level, stats, visit);
  }
  template <class Counts>
  std::int64_t min_in_heap(NodeId v, Stats& stats, Counts&& counts) {
    return lists_.min_in_heap(v, stats, counts);
  }
  std::int64_t min_in_heap(NodeId v, Stats& stats) {
    return min_in_heap(v, stats, [](const Edge&) { return true; });
  }
  bool uses_heap(NodeId v) const { return lists_.uses_heap(v); }
  bool visits_all(NodeId v) const { return lists_.visits_all(v); }
  std::uint32_t list_size(NodeId v) const { return lists_.list_size(v); }

  void raise(NodeId v, std::int64_t by) {
    nodes[v].price += by;
    nodes[v].current = 0;
    note_price(v);
  }
  // Half-edges into v get cheaper, so what is recorded of them is updated.
  void lower(NodeId v, std::int64_t by)
    requires kIsDynamic
  {
    nodes[v].price -= by;
    nodes[v].current = 0;
    note_price(v);
    for (std::uint32_t i = arcs_.begin(v); i < arcs_.end(v); ++i) {
      const Edge& edge = arcs_.edges[i];
      Node& tail = nodes[edge.to];
      tail.current = 0;
      if (lists_.uses_heap(edge.to)) lists_.refresh(edge.to, edge.partner);
    }
  }
  // Must be called after any prices were lowered.
  void forget_keys() { lists_.forget_keys(); }
  void note_price(NodeId v) {
    if constexpr (kIsDynamic) {
      if (marks.set(v, NodeMark::kRepriced)) repriced_.push_back(v);
    }
  }

  void set_price(NodeId v, std::int64_t price)
    requires kIsDynamic
  {
    const std::int64_t before = nodes[v].price;
    if (price > before) raise(v, price - before);
    if (price < before) lower(v, before - price);
  }
  // Fills the half-edges of v with rc < 0, before there are lists. An arc with rc > 0 is emptied by
  // its other half-edge.
  void saturate(NodeId v, Stats& stats) {
    for (std::uint32_t i = arcs_.begin(v); i < arcs_.end(v); ++i) {
      const Edge& edge = arcs_.edges[i];
      if (edge.residual == 0 || reduced_cost(v, edge) >= 0) continue;
      arcs_.push(v, i, edge.residual);
      ++stats.repaired;
      if constexpr (kIsDynamic) {
        arcs_.note_unbalanced(v);
        arcs_.note_unbalanced(edge.to);
      }
    }
  }

  // For a source without excess. Does nothing if an arc out is balanced.
  void raise_degenerate(NodeId v, Stats& stats) {
    std::int64_t least = kInfinity;
    scan(v, 0, stats, [&](std::uint32_t, const Edge& edge) {
      least = std::min(least, reduced_cost(v, edge));
      return least > 0;
    });
    if (least > 0) least = std::min(least, min_in_heap(v, stats));
    if (least == 0 || least == kInfinity) return;
    raise(v, least);
    ++stats.relabels;
  }

  void note_excess(NodeId v) {
    Node& node = nodes[v];
    if (has_deficit(v)) {
      node.hops = 0;
      if constexpr (kIsDynamic) arcs_.note_unbalanced(v);
      return;
    }
    if (node.hops == 0) node.hops = 1;
    if (excess(v) > 0 && !node.queued) {
      node.queued = true;
      untried.push(v);
    }
  }
  // Moves flow along a half-edge; the caller updates the excess of its ends.
  void move(std::uint32_t i, std::int64_t amount) {
    if constexpr (kIsDynamic) {
      const NodeId from = tail(i), to = arcs_.edges[i].to;
      arcs_.push(from, i, amount);
      arcs_.excess[from] += amount;
      arcs_.excess[to] -= amount;
      lists_.add(to, arcs_.edges[i].partner);
      return;
    }
    Edge& there = arcs_.edges[i];
    Edge& back = arcs_.edges[there.partner];
    there.residual -= static_cast<Value>(amount);
    back.residual += static_cast<Value>(amount);
    lists_.add(there.to, there.partner);
  }
  void add_excess(NodeId v, std::int64_t amount) {
    arcs_.excess[v] += amount;
    note_excess(v);
  }
  void push(NodeId from, std::uint32_t i, std::int64_t amount, Stats& stats) {
    move(i, amount);
    add_excess(from, -amount);
    add_excess(arcs_.edges[i].to, amount);
    ++stats.pushes;
  }

  // Changes. The caller restores reduced-cost optimality, and calls `note_excesses`.
  void add_node(NodeId v, std::int64_t supply)
    requires kIsDynamic
  {
    arcs_.add_node(v, supply);
    if (v >= nodes.size()) {
      nodes.resize(v + 1);
      cut.resize(v + 1, 0);
      marks.resize(v + 1);
    }
    Node& node = nodes[v];
    node.price = 0;
    node.current = 0;
    node.source = supply > 0;
    node.hops = node.source ? kFar - 1 : 1;
    note_price(v);
  }
  void remove_node(NodeId v)
    requires kIsDynamic
  {
    arcs_.remove_node(v);
    lists_.clear(v);
    nodes[v].source = false;
  }
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost)
    requires kIsDynamic
  {
    if (tail == head) return arcs_.add_arc(arc, tail, head, capacity, cost);
    const std::uint32_t tail_middle = arcs_.middle(tail) - arcs_.begin(tail);
    const std::uint32_t tail_places = arcs_.end(tail) - arcs_.begin(tail),
                        head_places = arcs_.end(head) - arcs_.begin(head);
    arcs_.add_arc(arc, tail, head, capacity, cost);
    lists_.refresh(tail, arcs_.begin(tail) + tail_middle);
    lists_.refresh(tail, arcs_.begin(tail) + tail_places);
    lists_.refresh(head, arcs_.begin(head) + head_places);
    nodes[tail].current = nodes[head].current = 0;
  }
  void remove_arc(ArcId arc, NodeId tail)
    requires kIsDynamic
  {
    const std::uint32_t there = arcs_.position[arc];
    if (there == kNone) return arcs_.remove_arc(arc, tail);
    const NodeId head = arcs_.edges[there].to;
    const std::uint32_t back = arcs_.edges[there].partner, last_forward = arcs_.middle(tail) - 1;
    arcs_.remove_arc(arc, tail);
    lists_.refresh(tail, there);
    lists_.refresh(tail, last_forward);
    lists_.refresh(head, back);
  }
  void set_capacity(ArcId arc, NodeId tail, std::int64_t capacity)
    requires kIsDynamic
  {
    arcs_.set_capacity(arc, tail, capacity);
    if (arcs_.position[arc] != kNone) lists_.refresh(tail, arcs_.position[arc]);
  }
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost)
    requires kIsDynamic
  {
    arcs_.set_cost(arc, tail, cost);
    const std::uint32_t there = arcs_.position[arc];
    if (there == kNone) return;
    lists_.refresh(tail, there);
    lists_.refresh(arcs_.edges[there].to, arcs_.edges[there].partner);
    nodes[tail].current = nodes[arcs_.edges[there].to].current = 0;
  }
  void change_supply(NodeId v, std::int64_t delta, std::int64_t supply)
    requires kIsDynamic
  {
    arcs_.change_supply(v, delta);
    nodes[v].source = supply > 0;
  }
  // Compacts the half-edges if half of them are unused, in O(n + m). Throws Stopped when cancelled.
  void keep_compact(const Control& control)
    requires kIsDynamic
  {
    if (arcs_.is_sparse()) arcs_.compact(control);
  }
  const std::vector<NodeId>& repriced() const { return repriced_; }
  void begin_round()
    requires kIsDynamic
  {
    for (NodeId v : repriced_) marks.clear(v, NodeMark::kRepriced);
    repriced_.clear();
    arcs_.begin_round();
  }
  // Updates the queues for all nodes whose excess may have changed since the last call. Then only
  // nodes with an excess or deficit remain listed.
  void note_excesses()
    requires kIsDynamic
  {
    const std::vector<NodeId> changed = arcs_.unbalanced();
    for (NodeId v : changed) note_excess(v);
    arcs_.drop_balanced();
  }

  // Nodes with excess are in one of the queues, except the one that was taken last.
  NodeId take(NodeQueue& queue) {
    for (NodeId v = queue.pop(); v != kNone; v = queue.pop()) {  // bounded: takes one off
      nodes[v].queued = false;
      if (is_excess(v)) return v;
    }
    return kNone;
  }
  void postpone(NodeId v) {
    if (nodes[v].queued) return;
    nodes[v].queued = true;
    postponed.push(v);
  }
  void retry_postponed() {
    for (NodeId v = take(postponed); v != kNone; v = take(postponed)) {  // bounded: takes one off
      nodes[v].queued = true;
      untried.push(v);
    }
  }

  // A node at which all excess may end and from which all deficits may draw; its own imbalance is
  // implied by the others'. Its price stays. kNone: there is none.
  NodeId root = kNone;
  std::vector<Node, LargeAllocator<Node>> nodes;
  // per labelled node: residual capacity of the balanced arcs from the set to it
  std::vector<std::int64_t> cut;
  // untried: not tried since excess arrived. postponed: left for a multinode iteration.
  NodeQueue untried, postponed;
  NodeMarks marks;  // if the graph is dynamic; all but kRepriced are set by the caller

 private:
  template <class Visit>
  Status each_node(CancellationChecker& checker, const Stats& stats, Visit&& visit) {
    for (NodeId v = 0; v < num_nodes(); ++v) {
      visit(v);
      const Status status = checker.step(stats, 1 + arcs_.end(v) - arcs_.begin(v));
      if (status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }
  std::vector<NodeId> repriced_;
  Arcs arcs_;
  ResidualLists<Arcs, Node> lists_{arcs_, nodes};
};

}  // namespace flowsolver
