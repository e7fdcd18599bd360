#include "relaxation/relaxation_engine.hpp"

#include <algorithm>
#include <vector>

#include "relaxation/deficit_routing.hpp"
#include "relaxation/dual_ascent.hpp"

namespace flowsolver {

namespace {

template <class V>
class RelaxationEngine final : public Engine {
 public:
  RelaxationEngine(const EngineStart& start, std::span<const std::int64_t> price,
                   const Control& control, Stats& stats)
      : network_(start.network),
        root_(start.root),
        graph_(start.network, start.flow, start.alive, price, control),
        may_have_price_gaps_(!price.empty()) {
    CancellationChecker checker(control);
    stats.scanned += static_cast<std::int64_t>(network_.num_arcs());
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      graph_.saturate(v, stats);
      checker.step_until_cancelled(stats, graph_.arcs().end(v) - graph_.arcs().begin(v) + 1);
    }
  }

  void add_node(NodeId v, std::int64_t supply) override {
    graph_.add_node(v, supply);
    graph_.marks.set(v, NodeMark::kNewNode);
    note_changed(v);
  }
  void remove_node(NodeId v) override { graph_.remove_node(v); }
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    graph_.add_arc(arc, tail, head, capacity, cost);
    note_changed(arc, tail);
  }
  void remove_arc(ArcId arc, NodeId tail, NodeId) override { graph_.remove_arc(arc, tail); }
  void set_capacity(ArcId arc, NodeId tail, NodeId, std::int64_t capacity) override {
    graph_.set_capacity(arc, tail, capacity);
    note_changed(arc, tail);
  }
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    graph_.set_cost(arc, tail, cost);
    note_changed(arc, tail);
  }
  void change_supply(NodeId v, std::int64_t delta) override {
    graph_.change_supply(v, delta, network_.supply[v]);
  }

  Status run(const Control& control, Stats& stats) override;
  std::vector<NodeId> unrouted_nodes() const override;
  // each raises the dual objective or routes excess to a deficit
  bool keeps_progress() const override { return true; }

  std::int64_t flow(ArcId arc, NodeId tail) const override { return graph_.arcs().flow(arc, tail); }
  std::int64_t price(NodeId v) const override {
    return graph_.nodes[v].price - graph_.nodes[root_].price;
  }
  __int128 cost() const override { return graph_.arcs().cost(); }
  void adopt(const Engine&) override {}  // its own state is as good a start
  std::uint64_t value_limit() const override {
    return static_cast<std::uint64_t>(sizeof(V) == 4 ? kNarrowLimit : std::int64_t{1} << 61);
  }
  bool prices_drifted() const override { return false; }
  bool local() const override { return true; }
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override {
    for (NodeId v : nodes) graph_.arcs().incident_arcs(v, arcs);
  }
  const std::vector<FlowBefore>& touched_arcs() const override {
    return graph_.arcs().touched_arcs();
  }
  const std::vector<NodeId>& repriced_nodes() const override { return graph_.repriced(); }
  void begin_round() override { graph_.begin_round(); }

 private:
  using Graph = BalancedGraph<DynamicGraph<V>>;
  using Edge = typename Graph::Edge;
  // times the number of half-edges: scans for single deficits in a run
  static constexpr std::int64_t kMaxScansFactor = 4;

  void note_changed(NodeId v) {
    if (graph_.marks.set(v, NodeMark::kChanged)) changed_.push_back(v);
  }
  void note_changed(ArcId arc, NodeId tail) {
    changed_arcs_.push_back(arc);
    note_changed(tail);
  }
  bool is_source(NodeId v) const { return graph_.arcs().middle(v) == graph_.arcs().end(v); }
  Status restore_optimality(const Control& control, Stats& stats);
  // Between which prices no residual arc at a node has negative reduced cost.
  struct PriceLimits {
    std::int64_t highest = kInfinity;  // by residual arcs out
    std::int64_t lowest = -kInfinity;  // by residual arcs in
  };
  PriceLimits price_limits(NodeId v, Stats& stats) const;
  void price_new_node(NodeId v, Stats& stats);
  void price_source(NodeId v, Stats& stats);
  Status route_deficits(const Control& control, Stats& stats);
  Status solve_without_root(const Control& control, Stats& stats);

  const Network& network_;
  const NodeId root_;
  Graph graph_;
  IterationHistory history_;
  RootHops from_root_;
  bool may_have_price_gaps_;  // start prices were given, which may be far apart
  // nodes marked as changed: new ones, and those with changed arcs out
  std::vector<NodeId> changed_;
  std::vector<ArcId> changed_arcs_;  // some twice, some removed again
};

template <class V>
auto RelaxationEngine<V>::price_limits(NodeId v, Stats& stats) const -> PriceLimits {
  const DynamicGraph<V>& arcs = graph_.arcs();
  PriceLimits limits;
  for (std::uint32_t i = arcs.begin(v); i < arcs.end(v); ++i) {
    const Edge& edge = arcs.edges[i];
    const std::int64_t there = edge.cost + graph_.nodes[edge.to].price;
    if (edge.residual > 0) limits.highest = std::min(limits.highest, there);
    if (arcs.edges[edge.partner].residual > 0) limits.lowest = std::max(limits.lowest, there);
  }
  stats.scanned += arcs.end(v) - arcs.begin(v);
  return limits;
}

// Sets the highest price that residual arcs out allow; without any, the lowest that those in allow.
template <class V>
void RelaxationEngine<V>::price_new_node(NodeId v, Stats& stats) {
  const auto [highest, lowest] = price_limits(v, stats);
  graph_.set_price(v, highest != kInfinity ? highest : lowest != -kInfinity ? lowest : 0);
}

template <class V>
void RelaxationEngine<V>::price_source(NodeId v, Stats& stats) {
  auto [highest, lowest] = price_limits(v, stats);
  std::int64_t price = graph_.nodes[v].price;
  lowest = std::min(lowest, highest);  // more expensive arcs will be emptied
  price = std::min(std::max(price, lowest), highest);
  if (graph_.excess(v) > 0 && highest != kInfinity) price = highest;
  graph_.set_price(v, price);
  ++stats.repaired;
}

// If cancelled, all changes remain listed for the next run.
template <class V>
Status RelaxationEngine<V>::restore_optimality(const Control& control, Stats& stats) {
  const DynamicGraph<V>& arcs = graph_.arcs();
  CancellationChecker checker(control);
  const auto cancelled = [&](std::int64_t steps) {
    return checker.step(stats, steps) == Status::kCancelled;
  };
  for (NodeId v : changed_) {
    if (!graph_.marks.has(v, NodeMark::kNewNode)) continue;
    if (v != graph_.root && !is_source(v)) price_new_node(v, stats);
    if (cancelled(arcs.end(v) - arcs.begin(v) + 1)) return Status::kCancelled;
  }
  for (NodeId v : changed_) {
    if (v == graph_.root || !is_source(v)) continue;
    price_source(v, stats);
    if (cancelled(arcs.end(v) - arcs.begin(v) + 1)) return Status::kCancelled;
  }
  const auto saturate = [&](NodeId v, std::uint32_t i) {
    const Edge& edge = arcs.edges[i];
    if (edge.residual == 0 || graph_.reduced_cost(v, edge) >= 0) return;
    graph_.push(v, i, edge.residual, stats);
    ++stats.repaired;
  };
  const auto saturate_both = [&](std::uint32_t there) {
    const NodeId tail = graph_.tail(there), head = arcs.edges[there].to;
    saturate(tail, there);
    saturate(head, arcs.edges[there].partner);
  };
  for (ArcId arc : changed_arcs_) {
    if (arcs.position[arc] != kNone) saturate_both(arcs.position[arc]);
    if (cancelled(1)) return Status::kCancelled;
  }
  for (NodeId v : changed_) {
    graph_.marks.clear(v, NodeMark::kNewNode);
    graph_.marks.clear(v, NodeMark::kChanged);
    if (v == graph_.root || !is_source(v)) continue;
    for (std::uint32_t i = arcs.begin(v); i < arcs.end(v); ++i) saturate_both(i);
  }
  changed_.clear();
  changed_arcs_.clear();
  return Status::kOptimal;
}

template <class V>
Status RelaxationEngine<V>::route_deficits(const Control& control, Stats& stats) {
  DeficitRouting<DynamicGraph<V>> routing(graph_, from_root_, history_.uses_degenerate_raises,
                                          control, stats);
  const std::int64_t max_scanned =
      stats.scanned + kMaxScansFactor * static_cast<std::int64_t>(graph_.arcs().edges.size());
  const std::vector<NodeId> deficits = graph_.arcs().unbalanced();
  for (NodeId v : deficits) {
    while (v != graph_.root && graph_.excess(v) < 0) {
      if (stats.scanned > max_scanned) return solve_without_root(control, stats);
      if (const Status status = routing.route_to(v); status != Status::kOptimal) return status;
      if (routing.lowest_price() < -Graph::kMaxPrice && !close_gaps(graph_))
        return Status::kInfeasible;
      if (const Status status = control.check(stats); status != Status::kOptimal) return status;
    }
  }
  return Status::kOptimal;
}

template <class V>
Status RelaxationEngine<V>::solve_without_root(const Control& control, Stats& stats) {
  if (graph_.root != kNone) {
    graph_.root = kNone;
    graph_.note_excess(root_);
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) graph_.note_price(v);
  }
  const Status status = DualAscent<DynamicGraph<V>>(graph_, history_, control, stats).run();
  if (status == Status::kOptimal) {
    graph_.root = root_;
    graph_.note_excess(root_);
  }
  return status;
}

template <class V>
Status RelaxationEngine<V>::run(const Control& control, Stats& stats) {
  if (const Status status = control.check(stats); status != Status::kOptimal) return status;
  try {
    graph_.keep_compact(control);
  } catch (const Stopped& stopped) {
    return stopped.status;
  }
  if (const Status status = restore_optimality(control, stats); status != Status::kOptimal)
    return status;
  graph_.note_excesses();
  if (may_have_price_gaps_) {
    if (prices_too_far_apart(graph_) && !close_gaps(graph_)) return Status::kInfeasible;
    may_have_price_gaps_ = false;
  }
  if (graph_.root == kNone) return solve_without_root(control, stats);
  DeficitRouting<DynamicGraph<V>> routing(graph_, from_root_, history_.uses_degenerate_raises,
                                          control, stats);
  const std::vector<NodeId> deficits = graph_.arcs().unbalanced();
  for (NodeId v : deficits) routing.cancel_along_flow(v);
  Status status = DualAscent<DynamicGraph<V>>(graph_, history_, control, stats).run();
  if (status == Status::kOptimal) status = route_deficits(control, stats);
  graph_.note_excesses();
  return status;
}

// With a root, the excess that cannot be routed is the root's.
template <class V>
std::vector<NodeId> RelaxationEngine<V>::unrouted_nodes() const {
  std::vector<NodeId> nodes;
  for (const NodeQueue* queue : {&graph_.untried, &graph_.postponed}) {
    for (std::size_t k = 0; k < queue->size(); ++k) {
      if (graph_.is_excess((*queue)[k])) nodes.push_back((*queue)[k]);
    }
  }
  if (nodes.empty() && graph_.root != kNone) nodes.push_back(graph_.root);
  return nodes;
}

template <class V>
std::unique_ptr<Engine> make(const EngineStart& start, const Control& control, Stats& stats) {
  const auto far = [](std::int64_t price) {
    return price > 2 * kMaxPathCost || price < -2 * kMaxPathCost;
  };
  const bool within = std::none_of(start.price.begin(), start.price.end(), far);
  const std::span<const std::int64_t> price =
      within ? start.price : std::span<const std::int64_t>{};
  return std::make_unique<RelaxationEngine<V>>(start, price, control, stats);
}

}  // namespace

std::unique_ptr<Engine> make_relaxation_engine(const EngineStart& start, const Control& control,
                                               Stats& stats) {
  try {
    if (fits_narrow(start.network, control)) return make<std::int32_t>(start, control, stats);
    return make<std::int64_t>(start, control, stats);
  } catch (const Stopped&) {
    return nullptr;
  }
}

}  // namespace flowsolver
