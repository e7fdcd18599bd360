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
        far_apart_(!price.empty()) {
    Pace pace(control);
    stats.scanned += static_cast<std::int64_t>(network_.num_arcs());
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      graph_.saturate(v, stats);
      pace.build_step(stats, graph_.arcs().end(v) - graph_.arcs().begin(v) + 1);
    }
  }

  void add_node(NodeId v, std::int64_t supply) override {
    graph_.add_node(v, supply);
    graph_.mark(v, Graph::kFresh);
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
  std::vector<NodeId> unsent_nodes() const override;
  // each raises the dual objective or brings excess to a deficit
  bool steps_last() const override { return true; }

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
  using Graph = BalancedGraph<KeptGraph<V>>;
  using Edge = typename Graph::Edge;
  // times the half-edges: looks for single deficits in a run
  static constexpr std::int64_t kPatience = 4;

  void note_changed(NodeId v) {
    if (graph_.mark(v, Graph::kChanged)) changed_.push_back(v);
  }
  void note_changed(ArcId arc, NodeId tail) {
    changed_arcs_.push_back(arc);
    note_changed(tail);
  }
  bool is_source(NodeId v) const { return graph_.arcs().middle(v) == graph_.arcs().end(v); }
  Status mend(const Control& control, Stats& stats);
  void price_fresh(NodeId v, Stats& stats);
  void price_source(NodeId v, Stats& stats);
  Status meet_deficits(const Control& control, Stats& stats);
  Status solve_without_root(const Control& control, Stats& stats);

  const Network& network_;
  const NodeId root_;
  Graph graph_;
  AscentPast past_;
  RootHops from_root_;
  bool far_apart_;                   // prices were given that may be
  std::vector<NodeId> changed_;      // marked so: new, or arcs out of them changed
  std::vector<ArcId> changed_arcs_;  // some twice, some gone again
};

// The highest price that residual arcs out suit; without any, the lowest that those in do.
template <class V>
void RelaxationEngine<V>::price_fresh(NodeId v, Stats& stats) {
  const KeptGraph<V>& arcs = graph_.arcs();
  std::int64_t most = kInfinity, least = -kInfinity;
  for (std::uint32_t i = arcs.begin(v); i < arcs.end(v); ++i) {
    const Edge& edge = arcs.edges[i];
    const std::int64_t there = edge.cost + graph_.nodes[edge.to].price;
    if (edge.residual > 0) most = std::min(most, there);
    if (arcs.edges[edge.partner].residual > 0) least = std::max(least, there);
  }
  stats.scanned += arcs.end(v) - arcs.begin(v);
  const std::int64_t price = most != kInfinity ? most : least != -kInfinity ? least : 0;
  graph_.set_price(v, price);
}

template <class V>
void RelaxationEngine<V>::price_source(NodeId v, Stats& stats) {
  const KeptGraph<V>& arcs = graph_.arcs();
  std::int64_t most = kInfinity, least = -kInfinity;  // by residual arcs, and by arcs with flow
  for (std::uint32_t i = arcs.begin(v); i < arcs.end(v); ++i) {
    const Edge& edge = arcs.edges[i];
    const std::int64_t there = edge.cost + graph_.nodes[edge.to].price;
    if (edge.residual > 0) most = std::min(most, there);
    if (arcs.edges[edge.partner].residual > 0) least = std::max(least, there);
  }
  stats.scanned += arcs.end(v) - arcs.begin(v);
  std::int64_t price = graph_.nodes[v].price;
  if (least > most) least = most;  // dearer arcs will be emptied
  price = std::min(std::max(price, least), most);
  if (graph_.excess(v) > 0 && most != kInfinity) price = most;
  graph_.set_price(v, price);
  ++stats.repaired;
}

// Cancelled, it leaves all there is to mend for the next time.
template <class V>
Status RelaxationEngine<V>::mend(const Control& control, Stats& stats) {
  const KeptGraph<V>& arcs = graph_.arcs();
  Pace pace(control);
  const auto cancelled = [&](std::int64_t steps) {
    return pace.step(stats, steps) == Status::kCancelled;
  };
  for (NodeId v : changed_) {
    if (!graph_.marked(v, Graph::kFresh)) continue;
    if (v != graph_.root && !is_source(v)) price_fresh(v, stats);
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
  const auto suit = [&](std::uint32_t there) {
    const NodeId tail = graph_.tail(there), head = arcs.edges[there].to;
    saturate(tail, there);
    saturate(head, arcs.edges[there].partner);
  };
  for (ArcId arc : changed_arcs_) {
    if (arcs.position[arc] != kNone) suit(arcs.position[arc]);
    if (cancelled(1)) return Status::kCancelled;
  }
  for (NodeId v : changed_) {
    graph_.unmark(v, Graph::kFresh);
    graph_.unmark(v, Graph::kChanged);
    if (v == graph_.root || !is_source(v)) continue;
    for (std::uint32_t i = arcs.begin(v); i < arcs.end(v); ++i) suit(i);
  }
  changed_.clear();
  changed_arcs_.clear();
  return Status::kOptimal;
}

template <class V>
Status RelaxationEngine<V>::meet_deficits(const Control& control, Stats& stats) {
  DeficitPull<KeptGraph<V>> pull(graph_, from_root_, past_.loosens, control, stats);
  const std::int64_t most =
      stats.scanned + kPatience * static_cast<std::int64_t>(graph_.arcs().edges.size());
  const std::vector<NodeId> deficits = graph_.arcs().unbalanced();
  for (NodeId v : deficits) {
    while (v != graph_.root && graph_.excess(v) < 0) {
      if (stats.scanned > most) return solve_without_root(control, stats);
      if (const Status status = pull.meet(v); status != Status::kOptimal) return status;
      if (pull.lowest_price() < -Graph::kMostPrice && !close_gaps(graph_))
        return Status::kInfeasible;
      if (const Status status = control.look(stats); status != Status::kOptimal) return status;
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
  const Status status = DualAscent<KeptGraph<V>>(graph_, past_, control, stats).run();
  if (status == Status::kOptimal) {
    graph_.root = root_;
    graph_.note_excess(root_);
  }
  return status;
}

template <class V>
Status RelaxationEngine<V>::run(const Control& control, Stats& stats) {
  if (const Status status = control.look(stats); status != Status::kOptimal) return status;
  try {
    graph_.keep_compact(control);
  } catch (const Stopped& stopped) {
    return stopped.status;
  }
  if (const Status status = mend(control, stats); status != Status::kOptimal) return status;
  graph_.note_excesses();
  if (far_apart_) {
    if (prices_too_far_apart(graph_) && !close_gaps(graph_)) return Status::kInfeasible;
    far_apart_ = false;
  }
  if (graph_.root == kNone) return solve_without_root(control, stats);
  DeficitPull<KeptGraph<V>> back(graph_, from_root_, past_.loosens, control, stats);
  const std::vector<NodeId> deficits = graph_.arcs().unbalanced();
  for (NodeId v : deficits) back.trace_back(v);
  Status status = DualAscent<KeptGraph<V>>(graph_, past_, control, stats).run();
  if (status == Status::kOptimal) status = meet_deficits(control, stats);
  graph_.note_excesses();
  return status;
}

// With a root, what others lack is its to send.
template <class V>
std::vector<NodeId> RelaxationEngine<V>::unsent_nodes() const {
  std::vector<NodeId> nodes;
  for (const NodeQueue* queue : {&graph_.fresh, &graph_.late}) {
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
