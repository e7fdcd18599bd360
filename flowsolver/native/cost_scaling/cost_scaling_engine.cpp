#include "cost_scaling/cost_scaling_engine.hpp"

#include <algorithm>
#include <vector>

#include "cost_scaling/cost_scaling.hpp"
#include "cost_scaling/local_scaling.hpp"
#include "graph/dynamic_graph.hpp"
#include "graph/price_estimate.hpp"
#include "graph/start_state.hpp"

namespace flowsolver {

namespace {

template <class V>
class CostScalingEngine final : public Engine {
 public:
  CostScalingEngine(const EngineStart& start, const Control& control)
      : network_(start.network),
        alive_(start.alive),
        root_(start.root),
        graph_(start.network, start.flow, start.alive, control),
        scaling_(graph_, start.network),
        has_answer_(!start.flow.empty() || !start.price.empty()),
        largest_cost_(costliest()) {
    std::vector<std::int64_t> price(start.price.begin(), start.price.end());
    price.resize(network_.num_nodes(), 0);
    scaling_.prices().assign(price, control);
    scaling_.note_all();
    begin_round();
  }

  void add_node(NodeId v, std::int64_t supply) override {
    graph_.add_node(v, supply);
    scaling_.prices().grow();
    scaling_.note_new_node(v);
    changed_since_answer_.push_back(v);
    scaling_.note_change();
  }
  void remove_node(NodeId v) override { graph_.remove_node(v); }
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    graph_.add_arc(arc, tail, head, capacity, cost);
    scaling_.note_block(tail);
    scaling_.note_block(head);
    note_cost(arc, tail, cost);
  }
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override {
    graph_.remove_arc(arc, tail);
    scaling_.note_block(tail);
    scaling_.note_block(head);
    changed_since_answer_.push_back(tail);
    scaling_.note_change();
  }
  void set_capacity(ArcId arc, NodeId tail, NodeId, std::int64_t capacity) override {
    graph_.set_capacity(arc, tail, capacity);
    note_arc(arc, tail);
  }
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    graph_.set_cost(arc, tail, cost);
    note_cost(arc, tail, cost);
  }
  void change_supply(NodeId v, std::int64_t delta) override {
    graph_.change_supply(v, delta);
    scaling_.note_change();
  }

  Status run(const Control& control, Stats& stats) override;
  std::vector<NodeId> unrouted_nodes() const override;

  std::int64_t flow(ArcId arc, NodeId tail) const override { return graph_.flow(arc, tail); }
  std::int64_t price(NodeId v) const override { return scaling_.prices().whole(v); }
  __int128 cost() const override { return graph_.cost(); }
  void adopt(const Engine& winner) override;
  std::uint64_t value_limit() const override {
    return static_cast<std::uint64_t>(sizeof(V) == 4 ? kNarrowLimit : std::int64_t{1} << 56);
  }
  // a solve over the whole graph starts from prices relative to the root's
  bool prices_drifted() const override { return false; }

  bool local() const override { return true; }
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override {
    for (NodeId v : nodes) graph_.incident_arcs(v, arcs);
  }
  const std::vector<FlowBefore>& touched_arcs() const override { return graph_.touched_arcs(); }
  const std::vector<NodeId>& repriced_nodes() const override {
    return scaling_.prices().repriced();
  }
  void begin_round() override {
    graph_.begin_round();
    scaling_.prices().begin_round();
    changed_since_answer_.clear();
    is_in_sync_ = false;
  }

 private:
  // a few, and 1 / kManyChanges of the nodes and arcs
  static constexpr std::size_t kFewChanges = 64, kManyChanges = 16;

  std::int64_t costliest() const {
    return static_cast<std::int64_t>(largest_magnitude(network_.cost));
  }
  void note_arc(ArcId arc, NodeId tail) {
    scaling_.note_arc(arc);
    changed_since_answer_.push_back(tail);
    scaling_.note_change();
  }
  void note_cost(ArcId arc, NodeId tail, std::int64_t cost) {
    largest_cost_ = std::max(largest_cost_, cost < 0 ? -cost : cost);
    note_arc(arc, tail);
  }
  bool is_local_work() const {
    return has_answer_ &&
           scaling_.num_changes() <=
               kFewChanges + (graph_.num_nodes() + network_.num_arcs()) / kManyChanges;
  }
  Status run_whole(const Control& control, Stats& stats);
  void adopt_flow(ArcId arc, const Engine& winner);

  const Network& network_;
  const std::vector<std::uint8_t>& alive_;
  const NodeId root_;
  DynamicGraph<V> graph_;
  LocalScaling<V> scaling_;
  bool has_answer_;  // flow and prices are an earlier answer with changes since
  // in step with a race (race_engine.hpp) since the last answer it gave
  bool is_in_sync_ = false;
  std::vector<NodeId>
      changed_since_answer_;   // since the last answer: new nodes, and tails of arcs that changed
  std::int64_t largest_cost_;  // an upper bound
};

template <class V>
Status CostScalingEngine<V>::run(const Control& control, Stats& stats) {
  try {
    if (const Status status = control.check(stats); status != Status::kOptimal) return status;
    if (graph_.is_sparse()) {
      graph_.compact(control);
      scaling_.note_all_blocks();
    }
    if (is_local_work() && scaling_.prices().fits(largest_cost_)) {
      const auto outcome = scaling_.run(largest_cost_, control, stats);
      if (!outcome.given_up) return outcome.status;
    }
    return run_whole(control, stats);
  } catch (const Stopped& stopped) {
    return stopped.status;
  }
}

template <class V>
std::vector<NodeId> CostScalingEngine<V>::unrouted_nodes() const {
  std::vector<NodeId> nodes;
  for (NodeId v : graph_.unbalanced()) {
    if (graph_.excess[v] > 0) nodes.push_back(v);
  }
  return nodes;
}

template <class V>
Status CostScalingEngine<V>::run_whole(const Control& control, Stats& stats) {
  largest_cost_ = costliest();
  std::vector<std::int64_t> price(graph_.num_nodes());
  for (NodeId v = 0; v < graph_.num_nodes(); ++v) price[v] = scaling_.prices().whole(v);
  scaling_.forget();
  scaling_.note_all();  // in case it is stopped
  if (!has_answer_) {
    const PriceEstimate estimate = estimate_price(network_, root_, control);
    for (NodeId v : estimate.nodes) price[v] = estimate.price;
  }
  Status status;
  try {
    status = scale_costs(graph_, price, has_answer_, largest_cost_, control, stats);
  } catch (const Stopped& stopped) {
    status = stopped.status;
  }
  for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
    if (graph_.excess[v] != 0) graph_.note_unbalanced(v);
  }
  graph_.drop_balanced();
  scaling_.prices().assign(relative_to_root(price, root_), control);
  if (status == Status::kOptimal) scaling_.forget();
  has_answer_ = has_answer_ || status == Status::kOptimal || status == Status::kBudget;
  return status;
}

template <class V>
void CostScalingEngine<V>::adopt_flow(ArcId arc, const Engine& winner) {
  const std::uint32_t there = arc < graph_.position.size() ? graph_.position[arc] : kNone;
  if (there == kNone) return;  // the flow of a loop is the same already
  const std::uint32_t back = graph_.edges[there].partner;
  const NodeId tail = graph_.edges[back].to, head = graph_.edges[there].to;
  const std::int64_t more = winner.flow(arc, tail) - graph_.edges[back].residual;
  if (more > 0) graph_.push(tail, there, more);
  if (more < 0) graph_.push(head, back, -more);
}

template <class V>
void CostScalingEngine<V>::adopt(const Engine& winner) {
  ScaledPrices<V>& prices = scaling_.prices();
  scaling_.forget();
  bool local = is_in_sync_ && winner.local();
  if (local) {
    std::vector<ArcId> arcs;
    for (const FlowBefore& before : graph_.touched_arcs()) arcs.push_back(before.arc);
    for (const FlowBefore& before : winner.touched_arcs()) arcs.push_back(before.arc);
    for (ArcId arc : arcs) adopt_flow(arc, winner);
    std::vector<NodeId> nodes = prices.repriced();
    nodes.insert(nodes.end(), prices.moved().begin(), prices.moved().end());
    nodes.insert(nodes.end(), changed_since_answer_.begin(), changed_since_answer_.end());
    // The price of a source may be implied by its arcs, and move with its arcs alone.
    for (const FlowBefore& before : winner.touched_arcs()) {
      if (alive_[before.arc] != 0) nodes.push_back(network_.tail[before.arc]);
    }
    for (NodeId v : winner.repriced_nodes()) {
      nodes.push_back(v);
      winner.implicitly_priced_by(v, nodes);
    }
    local = prices.assign_some(nodes, [&winner](NodeId v) { return winner.price(v); });
    for (NodeId v : nodes) scaling_.note_node(v);
  } else {
    for (ArcId arc = 0; arc < network_.num_arcs(); ++arc) adopt_flow(arc, winner);
  }
  if (!local) {
    std::vector<std::int64_t> price(graph_.num_nodes());
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) price[v] = winner.price(v);
    prices.assign(price, Control());
    scaling_.note_all();
  }
  graph_.drop_balanced();
  begin_round();
  has_answer_ = is_in_sync_ = true;
}

}  // namespace

std::unique_ptr<Engine> make_cost_scaling_engine(const EngineStart& start, const Control& control,
                                                 Stats& stats) {
  ++stats.rebuilds;
  try {
    if (fits_narrow(start.network, control))
      return std::make_unique<CostScalingEngine<std::int32_t>>(start, control);
    return std::make_unique<CostScalingEngine<std::int64_t>>(start, control);
  } catch (const Stopped&) {
    return nullptr;
  }
}

}  // namespace flowsolver
