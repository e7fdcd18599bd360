// The common part of the engines of incremental successive shortest paths (incremental_ssp.hpp): a
// pseudoflow with prices on a residual graph, how changes reach it, what must be repaired at the
// next run and how, what this round has touched, and hints that guide searches to deficits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "solve.hpp"
#include "graph/residual_graph.hpp"
#include "graph/start_state.hpp"
#include "shortest_path/path_search.hpp"

namespace flowsolver {

// A pseudoflow on a residual graph, with everything that depends on it: imbalances, the cost, and
// which arcs a round has touched.
template <class Value>
class Pseudoflow {
 public:
  Pseudoflow(ResidualGraph<Value> graph, const Network& network)
      : graph_(std::move(graph)), marked_(network.num_arcs(), false) {}

  ResidualGraph<Value>& graph() { return graph_; }

  void shift_imbalance(NodeId v, std::int64_t delta) {
    Node<Value>& node = graph_.nodes[v];
    node.imbalance += delta;
    if ((node.flags & kListed) == 0 && v != graph_.root()) {
      node.flags |= kListed;
      unbalanced_.push_back(v);
    }
    if (v == graph_.root()) node.imbalance = 0;  // implied by the others
  }

  // Moves flow along the half-edge at `index`, owned by u. Does not change imbalances (a step of a
  // path).
  void move_flow(NodeId u, std::uint32_t index, Value amount) {
    const auto& edge = graph_.edges[index];
    touch(edge.id >> 1, graph_.is_forward(edge) ? edge.reverse_residual : edge.residual);
    cost_ += static_cast<__int128>(edge.cost) * amount;
    graph_.push(u, index, amount);
  }

  // Moves flow over the arc inside v; amount < 0 takes flow off. Does not change imbalances.
  void move_root_flow(NodeId v, std::int64_t amount) {
    Node<Value>& node = graph_.nodes[v];
    touch(graph_.root_arc(v), node.root_flow);
    cost_ += static_cast<__int128>(node.root_cost) * amount;
    node.root_residual -= static_cast<Value>(amount);
    node.root_flow += static_cast<Value>(amount);
  }

  // Adds flow to the arc (takes it off if amount < 0) and updates the imbalances of its ends.
  void add_flow(ArcId arc, NodeId tail, NodeId head, std::int64_t amount) {
    if (amount == 0) return;
    if (graph_.is_root_arc(arc)) {
      move_root_flow(tail, amount);
    } else if (amount > 0) {
      move_flow(tail, graph_.position[2 * arc], static_cast<Value>(amount));
    } else {
      move_flow(head, graph_.position[2 * arc + 1], static_cast<Value>(-amount));
    }
    shift_imbalance(tail, -amount);
    shift_imbalance(head, amount);
  }

 protected:
  void touch(ArcId arc, std::int64_t flow_before) {
    if (arc >= marked_.size()) marked_.resize(arc + 1 + arc / 4, false);
    if (marked_[arc]) return;
    marked_[arc] = true;
    touched_.push_back({arc, flow_before});
  }
  void forget_touched() {
    for (const FlowBefore& before : touched_) marked_[before.arc] = false;
    touched_.clear();
  }

  ResidualGraph<Value> graph_;
  __int128 cost_ = 0;
  std::vector<FlowBefore> touched_;
  std::vector<NodeId> unbalanced_;  // every node with an imbalance, and some without

 private:
  std::vector<bool> marked_;  // arcs in touched_
};

// Restores rc >= 0 on residual arcs after changes: gives new nodes a price and repairs the arcs
// whose cost or capacity changed or that were added.
//
// First a price is sought that satisfies all arcs of the node (for example, if the arc of a running
// task to its machine got more expensive and is still its best). If there is none, the violating
// arcs are saturated or emptied. That is always valid and leaves imbalances for the searches.
template <class Value>
class PriceRepair {
 public:
  PriceRepair(Pseudoflow<Value>& pseudoflow, const Network& network, std::vector<NodeId>& repriced,
              Stats& stats)
      : pseudoflow_(pseudoflow),
        graph_(pseudoflow.graph()),
        tail_(network.tail),
        repriced_(repriced),
        stats_(stats) {}

  // Both lists are emptied. Some arcs in `dirty` may have been removed.
  void run(std::vector<NodeId>& fresh, std::vector<ArcId>& dirty) {
    // Sources last: their price follows from the heads of their arcs.
    for (bool sources : {false, true}) {
      for (NodeId v : fresh) {
        if ((graph_.nodes[v].flags & kNewNode) == 0 || is_source(v) != sources) continue;
        graph_.nodes[v].flags &= static_cast<std::uint8_t>(~kNewNode);
        if (v != graph_.root()) set_feasible_price(v);
      }
    }
    for (ArcId arc : dirty) {
      if (!graph_.is_removed(arc)) restore_optimality(arc, tail_[arc]);
    }
    fresh.clear();
    dirty.clear();
  }

  // The nodes whose prices were moved, with their prices before, in the order of the moves.
  const std::vector<std::pair<NodeId, std::int64_t>>& prices_before() const {
    return prices_before_;
  }

 private:
  static constexpr std::uint32_t kLowDegree = 64;

  struct Interval {
    std::int64_t low = -kInfinity, high = kInfinity;
    bool empty() const { return low > high; }
  };

  bool is_source(NodeId v) const {
    const Node<Value>& node = graph_.nodes[v];
    return node.degree == 0 ||
           ((node.flags & kInterior) == 0 && graph_.is_forward(graph_.edges[node.begin]));
  }
  bool has_price(NodeId v, NodeId neighbour) const {
    return neighbour != v && (graph_.nodes[neighbour].flags & kNewNode) == 0;
  }

  // The interval of prices at which no arc between v and a priced neighbour is violated.
  Interval feasible_prices(NodeId v) const {
    const Node<Value>& node = graph_.nodes[v];
    Interval feasible_prices;
    if (node.root_residual > 0) feasible_prices.high = node.root_cost;
    if (node.root_flow > 0) feasible_prices.low = node.root_cost;
    for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
      const auto& edge = graph_.edges[i];
      if (!has_price(v, edge.to)) continue;
      const std::int64_t through = edge.cost + graph_.nodes[edge.to].price;
      if (edge.residual > 0) feasible_prices.high = std::min(feasible_prices.high, through);
      if (edge.reverse_residual > 0) feasible_prices.low = std::max(feasible_prices.low, through);
    }
    return feasible_prices;
  }

  void set_price(NodeId v, std::int64_t price) {
    Node<Value>& node = graph_.nodes[v];
    if (node.price == price) return;
    prices_before_.emplace_back(v, node.price);
    move_price(node, v, price - node.price, repriced_);
    ++stats_.repaired;
  }

  void set_feasible_price(NodeId v) {
    const Interval range = feasible_prices(v);
    if (range.empty()) {
      set_price_in_conflict(v, range);
    } else if (range.low == -kInfinity && range.high == kInfinity) {
      return;
    } else if (range.high != kInfinity && is_source(v)) {
      set_price(v, range.high);
    } else {
      set_price(v, std::clamp(graph_.nodes[v].price, range.low, range.high));
    }
  }

  // No price satisfies all arcs. Takes the end of the interval that fewer arcs object to. If the
  // arc to the root is the only one that objects to the low end, takes that one: the arc's capacity
  // becomes a deficit here. This is how new machines join a cell whose slots have a price.
  void set_price_in_conflict(NodeId v, const Interval& range) {
    const Node<Value>& node = graph_.nodes[v];
    std::int64_t against_low = 0, against_high = 0;
    for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
      const auto& edge = graph_.edges[i];
      if (!has_price(v, edge.to)) continue;
      const std::int64_t through = edge.cost + graph_.nodes[edge.to].price;
      against_low += edge.residual > 0 && through < range.low;
      against_high += edge.reverse_residual > 0 && through > range.high;
    }
    const bool low = against_low == 0 || against_low < against_high;
    set_price(v, low ? range.low : range.high);
    saturate_around(v);
  }

  void saturate_around(NodeId v) {
    const Node<Value>& node = graph_.nodes[v];
    const std::int64_t root_rc = node.root_cost - node.price;
    if (graph_.root_arc(v) != kNone) {
      const ArcId arc = graph_.root_arc(v);
      if (root_rc < 0) pseudoflow_.add_flow(arc, v, graph_.root(), node.root_residual);
      if (root_rc > 0)
        pseudoflow_.add_flow(arc, v, graph_.root(), -static_cast<std::int64_t>(node.root_flow));
    }
    ids_.clear();
    for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
      const auto& edge = graph_.edges[i];
      if (!has_price(v, edge.to)) continue;
      const std::int64_t rc = edge.cost - node.price + graph_.nodes[edge.to].price;
      if ((edge.residual > 0 && rc < 0) || (edge.reverse_residual > 0 && rc > 0))
        ids_.push_back(edge.id);
    }
    for (std::uint32_t id : ids_) {
      const NodeId other = graph_.edges[graph_.position[id]].to;
      if ((id & 1) == 0) {
        saturate(id >> 1, v, other);
      } else {
        saturate(id >> 1, other, v);
      }
    }
  }

  std::int64_t reduced_cost(ArcId arc, NodeId tail) const {
    if (graph_.is_root_arc(arc)) return graph_.nodes[tail].root_cost - graph_.nodes[tail].price;
    const auto& edge = graph_.edges[graph_.position[2 * arc]];
    return edge.cost - graph_.nodes[tail].price + graph_.nodes[edge.to].price;
  }
  std::int64_t room(ArcId arc, NodeId tail) const {
    return graph_.is_root_arc(arc) ? graph_.nodes[tail].root_residual
                                   : graph_.edges[graph_.position[2 * arc]].residual;
  }

  // Fills an arc with rc < 0; empties one with rc > 0.
  void saturate(ArcId arc, NodeId tail, NodeId head) {
    const std::int64_t rc = reduced_cost(arc, tail);
    if (rc < 0) pseudoflow_.add_flow(arc, tail, head, room(arc, tail));
    if (rc > 0) pseudoflow_.add_flow(arc, tail, head, -graph_.flow_at(arc, tail));
    ++stats_.repaired;
  }

  void restore_optimality(ArcId arc, NodeId tail) {
    const std::int64_t rc = reduced_cost(arc, tail);
    if (!((rc < 0 && room(arc, tail) > 0) || (rc > 0 && graph_.flow_at(arc, tail) > 0))) return;
    const NodeId head =
        graph_.is_root_arc(arc) ? graph_.root() : graph_.edges[graph_.position[2 * arc]].to;
    for (NodeId end : {tail, head}) {
      if (tail == head || end == graph_.root() || graph_.nodes[end].degree > kLowDegree) continue;
      const Interval range = feasible_prices(end);
      if (!range.empty()) {
        set_feasible_price(end);
        return;
      }
    }
    // For a source in conflict, all arcs at once, so that its best arc decides.
    if (tail != head && is_source(tail) && tail != graph_.root() &&
        graph_.nodes[tail].degree <= kLowDegree) {
      set_price_in_conflict(tail, feasible_prices(tail));
    } else {
      saturate(arc, tail, head);
    }
  }

  Pseudoflow<Value>& pseudoflow_;
  ResidualGraph<Value>& graph_;
  const std::vector<NodeId>& tail_;  // by arc id
  std::vector<NodeId>& repriced_;
  Stats& stats_;
  std::vector<std::uint32_t> ids_;
  std::vector<std::pair<NodeId, std::int64_t>> prices_before_;
};

// Guides searches to deficits. Either the current arcs of the aggregators above a deficit are made
// to lead to it, so that a forward search that follows them (path_search.hpp) ends there without
// scanning the aggregators' arcs; or the deficit is moved up to an aggregator, where all sources
// with an arc to it find it.
inline constexpr int kHintLevels = 2;

// A half-edge of v whose other end could send flow to v at rc = 0 and satisfies `is_predecessor`;
// or kNone. Nodes with many half-edges are not scanned.
template <class Value, class IsPredecessor>
std::uint32_t tight_predecessor(const ResidualGraph<Value>& graph, NodeId v,
                                const IsPredecessor& is_predecessor) {
  constexpr std::uint32_t kDegreeLimit = 4096;
  const Node<Value>& node = graph.nodes[v];
  if (node.degree > kDegreeLimit) return kNone;
  for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
    const auto& edge = graph.edges[i];
    const Node<Value>& above = graph.nodes[edge.to];
    if (graph.is_forward(edge) || edge.reverse_residual == 0 || !is_predecessor(above)) continue;
    if (edge.cost - node.price + above.price == 0) return i;
  }
  return kNone;
}

// `v` has a deficit. Sets the current arcs and hops of up to kHintLevels nodes above it.
template <class Value, class IsPredecessor>
void hint_at_deficit(ResidualGraph<Value>& graph, NodeId v, const IsPredecessor& is_predecessor) {
  graph.nodes[v].hops[true] = 0;
  for (int level = 0; level < kHintLevels; ++level) {
    const std::uint32_t i = tight_predecessor(graph, v, is_predecessor);
    if (i == kNone) return;
    const Node<Value>& node = graph.nodes[v];
    const auto& edge = graph.edges[i];
    Node<Value>& above = graph.nodes[edge.to];
    above.current = graph.position[edge.id ^ 1];
    above.hops[true] = static_cast<std::uint8_t>(
        std::min<unsigned>(node.hops[true] + 1U, HopBuckets::kLevels - 1));
    v = edge.to;
  }
}

// `v` has a deficit. Moves as much of it as possible up to kHintLevels nodes up.
template <class Value>
void move_deficit_up(Pseudoflow<Value>& pseudoflow, NodeId v, Stats& stats) {
  const ResidualGraph<Value>& graph = pseudoflow.graph();
  for (int level = 0; level < kHintLevels && graph.nodes[v].imbalance < 0; ++level) {
    const std::uint32_t i = tight_predecessor(
        graph, v, [&](const Node<Value>& above) { return &above != &graph.nodes[graph.root()]; });
    if (i == kNone) return;
    const auto edge = graph.edges[i];
    ++stats.pushes;
    pseudoflow.add_flow(edge.id >> 1, edge.to, v,
                        std::min<std::int64_t>(-graph.nodes[v].imbalance, edge.reverse_residual));
    v = edge.to;
  }
}

// The path by which a unit that arrived at v can be sent back: over zero-rc half-edges, up to
// kHintLevels, to a deficit.
template <class Value>
class ReturnPath {
 public:
  ReturnPath(const ResidualGraph<Value>& graph, NodeId v) : from_(v) {
    while (steps_ < kHintLevels && !found_) {  // bounded: by kHintLevels
      const Node<Value>& node = graph.nodes[v];
      const std::uint32_t end = node.begin + node.residual_degree;
      std::uint32_t i = node.begin;
      while (i < end &&
             (graph.is_forward(graph.edges[i]) ||
              graph.edges[i].cost - node.price + graph.nodes[graph.edges[i].to].price != 0)) {
        ++i;
      }
      if (i == end || graph.edges[i].to == graph.root()) return;
      arcs_[steps_] = graph.edges[i].id >> 1;
      nodes_[steps_++] = v = graph.edges[i].to;
      found_ = graph.nodes[v].imbalance < 0;
    }
  }

  bool found() const { return found_; }
  void send_unit(Pseudoflow<Value>& pseudoflow) const {
    NodeId v = from_;
    for (int step = 0; step < steps_; ++step) {
      pseudoflow.add_flow(arcs_[step], nodes_[step], v, -1);
      v = nodes_[step];
    }
  }

 private:
  const NodeId from_;
  int steps_ = 0;
  bool found_ = false;
  std::array<ArcId, kHintLevels> arcs_;
  std::array<NodeId, kHintLevels> nodes_;
};

// `Graph`: what searches visit, the residual graph or one of the nodes that are no unit sources.
template <class Value, class Graph>
class LocalEngine : public Engine, protected Pseudoflow<Value> {
 public:
  // Changes of nodes and arcs of the graph.
  void add_node(NodeId v, std::int64_t supply) override {
    graph_.grow_to_node(v);
    graph_.nodes[v].flags |= kNewNode;
    new_nodes_.push_back(v);
    if (supply != 0) this->shift_imbalance(v, supply);
  }
  void remove_node(NodeId v) override { graph_.clear_node(v); }
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    graph_.attach(arc, tail, head, static_cast<Value>(capacity), static_cast<Value>(cost));
    mark_dirty(arc);
  }
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override {
    this->add_flow(arc, tail, head, -graph_.flow_at(arc, tail));
    graph_.detach(arc, tail);
  }
  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override {
    const std::int64_t flow = graph_.flow_at(arc, tail);
    if (flow > capacity) this->add_flow(arc, tail, head, capacity - flow);
    graph_.set_capacity(arc, tail, static_cast<Value>(capacity));
    mark_dirty(arc);
  }
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    const std::int64_t flow = graph_.flow_at(arc, tail);
    cost_ +=
        static_cast<__int128>(flow) * (static_cast<__int128>(cost) - graph_.cost_at(arc, tail));
    graph_.set_cost(arc, tail, static_cast<Value>(cost));
    mark_dirty(arc);
  }
  void change_supply(NodeId v, std::int64_t delta) override { this->shift_imbalance(v, delta); }

  std::int64_t flow(ArcId arc, NodeId tail) const override { return graph_.flow_at(arc, tail); }
  std::int64_t price(NodeId v) const override { return graph_.nodes[v].price; }
  __int128 cost() const override { return cost_; }
  void adopt(const Engine&) override {}  // its own state is as good a start
  bool keeps_progress() const override { return true; }
  std::uint64_t value_limit() const override { return width_limit<Value>(); }
  bool prices_drifted() const override {
    return std::any_of(repriced_.begin(), repriced_.end(),
                       [this](NodeId v) { return is_far(graph_.nodes[v].price); });
  }

  std::vector<NodeId> unrouted_nodes() const override {
    if (unrouted_ == kNone) return {};
    return {unrouted_};
  }
  bool local() const override { return true; }
  const std::vector<FlowBefore>& touched_arcs() const override { return touched_; }
  const std::vector<NodeId>& repriced_nodes() const override { return repriced_; }
  void begin_round() override {
    for (NodeId v : repriced_) graph_.nodes[v].flags &= static_cast<std::uint8_t>(~kTouched);
    repriced_.clear();
    this->forget_touched();
  }

 protected:
  using Pseudoflow<Value>::graph_;
  using Pseudoflow<Value>::cost_;
  using Pseudoflow<Value>::touched_;
  using Pseudoflow<Value>::unbalanced_;

  static constexpr std::int64_t kCancelCheckInterval = 64;  // searches
  // A search that scans more than 1 / kFarShare of all arcs is not local. When such searches have
  // scanned as many arcs as there are, and more than a few imbalances are left, one search from all
  // of them at once is cheaper.
  static constexpr std::int64_t kFarShare = 64;
  static constexpr std::size_t kFewLeft = 4;
  static constexpr std::size_t kReportInterval = 16;  // nodes

  LocalEngine(ResidualGraph<Value> graph, const Network& network)
      : Pseudoflow<Value>(std::move(graph), network), network_(network) {}

  // Prices at the start of a solve from scratch.
  void estimate_prices(const Control& control) {
    const PriceEstimate estimate = estimate_price(network_, graph_.root(), control);
    for (NodeId v : estimate.nodes) graph_.nodes[v].price = estimate.price;
  }
  void mark_dirty(ArcId arc) { dirty_.push_back(arc); }
  // Adds the arcs at v in the graph; a self-loop once.
  void append_arcs(NodeId v, std::vector<ArcId>& arcs) const {
    append_arcs_if(v, arcs, [](const auto&, bool) { return true; });
  }
  // Those for which holds(half-edge at v, whether the arc leads out of v).
  template <class Holds>
  void append_arcs_if(NodeId v, std::vector<ArcId>& arcs, const Holds& holds) const {
    const Node<Value>& node = graph_.nodes[v];
    if (graph_.root_arc(v) != kNone) arcs.push_back(graph_.root_arc(v));
    for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
      const auto& edge = graph_.edges[i];
      const bool forward = graph_.is_forward(edge);
      if ((edge.to != v || forward) && holds(edge, forward)) arcs.push_back(edge.id >> 1);
    }
  }
  // As Engine::arcs_bound_by, for a node of the graph.
  void append_arcs_bound_by(NodeId v, std::span<const std::uint8_t> risen,
                            std::vector<ArcId>& arcs) const {
    append_arcs_if(v, arcs, [&](const auto& edge, bool forward) {
      return (forward || edge.residual > 0) && (risen.empty() || risen[edge.to] == 0);
    });
  }
  // How much can flow to the target of a path, or from it (backward).
  template <bool kForward>
  std::int64_t room_at(const Target& target) const {
    const Node<Value>& node = graph_.nodes[target.node];
    if (target.through_root_arc) return kForward ? node.root_residual : node.root_flow;
    if (target.node == graph_.root()) return kInfinity;
    return kForward ? -node.imbalance : node.imbalance;
  }
  // Ends flow at the target of a forward path (amount > 0), or begins it at that of a backward
  // path.
  void end_flow_at(const Target& target, std::int64_t amount) {
    if (target.through_root_arc) {
      this->move_root_flow(target.node, amount);
    } else {
      this->shift_imbalance(target.node, amount);
    }
  }
  // Reports progress: `done` of `all` nodes were routed since the run had counted `before`.
  static Status report(const Control& control, const Stats& stats, std::int64_t before,
                       std::size_t done, std::size_t all) {
    if (done % kReportInterval != 0) return Status::kOptimal;
    return control.report_progress(stats, before, done, all - done);
  }
  // Whether flow must start at v (forward) or end there.
  bool needs_flow(NodeId v, bool forward) const {
    return v != graph_.root() &&
           (forward ? graph_.nodes[v].imbalance > 0 : graph_.nodes[v].imbalance < 0);
  }
  // No path was found from v, or to v; in the latter case the root has the excess that v lacks.
  Status report_no_path(NodeId v, bool forward) {
    unrouted_ = forward ? v : graph_.root();
    return Status::kInfeasible;
  }
  // Leads searches to the deficits.
  template <class IsPredecessor>
  void hint_at_deficits(const IsPredecessor& is_predecessor) {
    for (NodeId v : unbalanced_) {
      if (needs_flow(v, false)) hint_at_deficit(graph_, v, is_predecessor);
    }
  }
  template <bool kForward>
  PathSearch<Graph, kForward>& search() {
    if constexpr (kForward) {
      return forward_;
    } else {
      return backward_;
    }
  }
  // Calls route(), which searches and augments. Searches that are stopped leave the state
  // unchanged.
  template <class Route>
  Status run_searches(Graph& searched, const Control& control, const Route& route) {
    forward_.set_control(control);
    backward_.set_control(control);
    try {
      return route();
    } catch (const Stopped& stopped) {
      forward_.clear_dead(searched);
      backward_.clear_dead(searched);
      return stopped.status;
    }
  }
  // Sends flow along the path to the target. previous(parent): the node before it, kNone if the
  // parent is the source being assigned; move_source(parent, u): moves a source's unit from u.
  template <bool kForward, class Previous, class MoveSource>
  void augment_path(const Target& target, Stats& stats, const Previous& previous,
                    const MoveSource& move_source) {
    ++stats.augmentations;
    auto& nodes = graph_.nodes;
    std::int64_t amount = room_at<kForward>(target);
    NodeId first = target.node;
    while (first != kNone && nodes[first].parent != kNone) {  // bounded: by the length of a path
      const std::uint32_t parent = nodes[first].parent;
      std::int64_t room = 1;
      if (!Graph::is_source_arc(parent)) {
        room = kForward ? graph_.edges[parent].residual : graph_.edges[parent].reverse_residual;
      }
      amount = std::min(amount, room);
      first = previous(parent);
    }
    if (first != kNone)
      amount = std::min(amount, kForward ? nodes[first].imbalance : -nodes[first].imbalance);
    for (NodeId v = target.node; v != first;) {  // bounded: by the length of a path
      const std::uint32_t parent = nodes[v].parent;
      const NodeId u = previous(parent);
      if (Graph::is_source_arc(parent)) {
        move_source(parent, u);
      } else {
        if constexpr (kForward) {
          this->move_flow(u, parent, static_cast<Value>(amount));
        } else {
          this->move_flow(v, graph_.position[graph_.edges[parent].id ^ 1],
                          static_cast<Value>(amount));
        }
        if constexpr (kForward || !Graph::kHasUnitSources) {
          if ((nodes[u].flags & kInterior) != 0) nodes[u].current = parent;
        }
      }
      v = u;
    }
    const std::int64_t sent = kForward ? amount : -amount;
    if (first != kNone) this->shift_imbalance(first, -sent);
    end_flow_at(target, sent);
  }
  void drop_balanced() {
    std::erase_if(unbalanced_, [this](NodeId v) {
      Node<Value>& node = graph_.nodes[v];
      const bool balanced = node.imbalance == 0 || v == graph_.root();
      if (balanced) node.flags &= static_cast<std::uint8_t>(~kListed);
      return balanced;
    });
  }

  const Network& network_;
  std::vector<NodeId> new_nodes_;  // nodes without a price
  std::vector<ArcId> dirty_;  // arcs that may violate the invariant, and some that were removed
  std::vector<NodeId> repriced_;
  NodeId unrouted_ = kNone;  // after kInfeasible: a node whose excess cannot be routed
  PathSearch<Graph, true> forward_;
  PathSearch<Graph, false> backward_;
};

}  // namespace flowsolver
