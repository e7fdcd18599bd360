#include "incremental_solver.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "engines/proven_answers.hpp"
#include "graph/start_state.hpp"
#include "live_network.hpp"
#include "shortest_path/incremental_ssp.hpp"

namespace flowsolver {

namespace {

std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
}

}  // namespace

IncrementalSolver::IncrementalSolver(const Network& network, const Algorithm& algorithm)
    : IncrementalSolver(
          network,
          [&algorithm](const EngineStart& start, const Control& control, Stats& stats) {
            return algorithm.make_engine(start, control, stats);
          },
          [&algorithm](const Network& live, const Control& control) {
            return algorithm.solve(live, {}, control);
          }) {}

IncrementalSolver::IncrementalSolver(const Network& network, MakeEngine make_engine,
                                     SolveCold solve_cold)
    : node_ids_(network.num_nodes()),
      arc_ids_(network.num_arcs()),
      make_engine_(std::move(make_engine)),
      solve_cold_(std::move(solve_cold)) {
  // Copied into vectors with room (address space only): the first arcs added shall not copy
  // everything, and what is copied twice leaves holes.
  const auto fill = [](auto& values, const auto& from) {
    values.reserve(from.size() + from.size() / 4);
    values.assign(from.begin(), from.end());
  };
  const auto fill_with = [](auto& values, std::size_t size, auto value) {
    values.reserve(size + size / 4);
    values.assign(size, value);
  };
  fill(network_.tail, network.tail);
  fill(network_.head, network.head);
  fill(network_.capacity, network.capacity);
  fill(network_.cost, network.cost);
  fill(network_.supply, network.supply);
  live_nodes_ = network_.num_nodes();
  fill_with(node_alive_, live_nodes_, std::uint8_t{1});
  live_arcs_ = network_.num_arcs();
  fill_with(arc_alive_, live_arcs_, std::uint8_t{1});
  fill_with(flow_, network_.num_arcs(), std::int64_t{0});
  for (std::int64_t supply : network_.supply) {
    supply_sum_ += supply;
    supply_magnitudes_ += magnitude(supply);
  }
  for (std::int64_t capacity : network_.capacity) capacity_sum_ += capacity;
  cost_bound_ = largest_magnitude(network_.cost);
}

bool IncrementalSolver::live_node(std::int64_t node) const {
  return node >= 0 && static_cast<std::size_t>(node) < node_alive_.size() &&
         node_alive_[static_cast<std::size_t>(node)] != 0;
}

bool IncrementalSolver::live_arc(std::int64_t arc) const {
  return arc >= 0 && static_cast<std::size_t>(arc) < arc_alive_.size() &&
         arc_alive_[static_cast<std::size_t>(arc)] != 0;
}

// Values beyond the engine's width, or so large that its arithmetic could overflow before the next
// range check, are not given to it: it is dropped, and the next resolve builds another one that
// fits.
bool IncrementalSolver::engine_takes(std::int64_t value) const {
  return engine_ != nullptr && magnitude(value) <= engine_->value_limit();
}

void IncrementalSolver::drop_engine() {
  if (engine_ == nullptr) return;
  warm_flow_ = flow_reached();
  warm_price_ = potential();
  engine_.reset();
  compare_all_ = true;
}

NodeId IncrementalSolver::add_node(std::int64_t supply) {
  if (!engine_takes(supply)) drop_engine();
  const NodeId v = node_ids_.next();
  if (v >= kMaxNodes) throw std::length_error("flowsolver: too many nodes");
  node_ids_.take();
  if (v == network_.num_nodes()) {
    network_.supply.push_back(supply);
    node_alive_.push_back(1);
  } else {
    network_.supply[v] = supply;
    node_alive_[v] = 1;
  }
  ++live_nodes_;
  supply_sum_ += supply;
  supply_magnitudes_ += magnitude(supply);
  solved_ = false;
  if (engine_ != nullptr) engine_->add_node(v, supply);
  return v;
}

ArcId IncrementalSolver::add_arc(NodeId tail, NodeId head, std::int64_t capacity,
                                 std::int64_t cost) {
  if (!engine_takes(capacity) || !engine_takes(cost)) drop_engine();
  solved_ = false;
  ++live_arcs_;
  capacity_sum_ += capacity;
  cost_bound_ = std::max(cost_bound_, magnitude(cost));
  const ArcId a = arc_ids_.next();
  if (a >= kMaxArcs) throw std::length_error("flowsolver: too many arcs");
  arc_ids_.take();
  if (a == network_.num_arcs()) {
    network_.tail.push_back(tail);
    network_.head.push_back(head);
    network_.capacity.push_back(capacity);
    network_.cost.push_back(cost);
    arc_alive_.push_back(1);
    flow_.push_back(0);
  } else {
    network_.tail[a] = tail;
    network_.head[a] = head;
    network_.capacity[a] = capacity;
    network_.cost[a] = cost;
    arc_alive_[a] = 1;
    flow_[a] = 0;
  }
  if (engine_ != nullptr) engine_->add_arc(a, tail, head, capacity, cost);
  return a;
}

void IncrementalSolver::forget_arc(ArcId arc) {
  arc_alive_[arc] = 0;
  --live_arcs_;
  capacity_sum_ -= network_.capacity[arc];
  network_.capacity[arc] = 0;
  network_.cost[arc] = 0;
  flow_[arc] = 0;
  if (arc < warm_flow_.size()) warm_flow_[arc] = 0;
  arc_ids_.remove(arc);
}

void IncrementalSolver::remove_arc(ArcId arc) {
  if (engine_ != nullptr) engine_->remove_arc(arc, network_.tail[arc], network_.head[arc]);
  solved_ = false;
  forget_arc(arc);
}

void IncrementalSolver::remove_nodes(std::span<const NodeId> nodes) {
  if (std::find(nodes.begin(), nodes.end(), root_) != nodes.end()) drop_engine();
  solved_ = false;
  for (NodeId v : nodes) {
    node_alive_[v] = 0;
    --live_nodes_;
    supply_sum_ -= network_.supply[v];
    supply_magnitudes_ -= magnitude(network_.supply[v]);
    network_.supply[v] = 0;
    if (v < warm_price_.size()) warm_price_[v] = 0;
    node_ids_.remove(v);
  }
  // Ascending, whatever the engine: the ids handed out later do not depend on the algorithm.
  std::vector<ArcId> arcs;
  bool told = false;
  if (engine_ != nullptr && engine_->local()) {
    told = engine_->remove_with_arcs(nodes, arcs);
    if (!told) engine_->incident_arcs(nodes, arcs);
    if (!std::is_sorted(arcs.begin(), arcs.end())) std::sort(arcs.begin(), arcs.end());
    arcs.erase(std::unique(arcs.begin(), arcs.end()), arcs.end());
  } else {
    for (ArcId a = 0; a < network_.num_arcs(); ++a) {
      if (arc_alive_[a] != 0 &&
          (node_alive_[network_.tail[a]] == 0 || node_alive_[network_.head[a]] == 0))
        arcs.push_back(a);
    }
  }
  for (ArcId a : arcs) {
    if (engine_ != nullptr && !told) engine_->remove_arc(a, network_.tail[a], network_.head[a]);
    forget_arc(a);
  }
  if (engine_ == nullptr || told) return;
  for (NodeId v : nodes) engine_->remove_node(v);
}

void IncrementalSolver::set_capacity(ArcId arc, std::int64_t capacity) {
  if (network_.capacity[arc] == capacity) return;
  if (!engine_takes(capacity)) drop_engine();
  solved_ = false;
  capacity_sum_ += static_cast<__int128>(capacity) - network_.capacity[arc];
  network_.capacity[arc] = capacity;
  if (engine_ != nullptr)
    engine_->set_capacity(arc, network_.tail[arc], network_.head[arc], capacity);
}

void IncrementalSolver::set_cost(ArcId arc, std::int64_t cost) {
  if (network_.cost[arc] == cost) return;
  if (!engine_takes(cost)) drop_engine();
  solved_ = false;
  cost_bound_ = std::max(cost_bound_, magnitude(cost));
  network_.cost[arc] = cost;
  if (engine_ != nullptr) engine_->set_cost(arc, network_.tail[arc], cost);
}

void IncrementalSolver::set_supply(NodeId node, std::int64_t supply) {
  const std::int64_t before = network_.supply[node];
  if (before == supply) return;
  if (!engine_takes(supply)) drop_engine();
  solved_ = false;
  network_.supply[node] = supply;
  supply_magnitudes_ += static_cast<__int128>(magnitude(supply)) - magnitude(before);
  supply_sum_ += static_cast<__int128>(supply) - before;
  if (engine_ != nullptr) engine_->change_supply(node, supply - before);
}

// Of live ids: as far as the last resolve came.
std::int64_t IncrementalSolver::flow_now(ArcId arc) const {
  if (engine_ != nullptr) return engine_->flow(arc, network_.tail[arc]);
  return arc < warm_flow_.size() ? warm_flow_[arc] : 0;
}

std::int64_t IncrementalSolver::price_now(NodeId v) const {
  if (engine_ != nullptr) return engine_->price(v);
  return v < warm_price_.size() ? warm_price_[v] : 0;
}

// The sums kept along the way decide nearly always; only when they look bad are the numbers gone
// through.
Status IncrementalSolver::check_numbers() {
  const __int128 longest =
      static_cast<__int128>(cost_bound_) * static_cast<__int128>(live_nodes_ + 1);
  if (longest <= kMaxPathCost && 2 * capacity_sum_ + supply_magnitudes_ <= kMaxNodeSum) {
    return supply_sum_ == 0 ? Status::kOptimal : Status::kUnbalanced;
  }
  cost_bound_ = largest_magnitude(network_.cost);
  return check_live_ranges(network_, live_nodes_);
}

// Whether the largest cost fits paths over as many nodes as there are ids: engines and methods
// count those of removed nodes as well.
bool IncrementalSolver::ids_fit_costs() {
  const auto nodes = static_cast<__int128>(network_.num_nodes() + 1);
  if (static_cast<__int128>(cost_bound_) * nodes <= kMaxPathCost) return true;
  cost_bound_ = largest_magnitude(network_.cost);
  return static_cast<__int128>(cost_bound_) * nodes <= kMaxPathCost;
}

bool IncrementalSolver::should_change_engines() const {
  return stepping_ ? stops_ == 0 : stops_ >= kStopsInARow && !engine_->steps_last();
}

// A new engine is made when there is none, or when the root is no longer a sink but another node
// is.
void IncrementalSolver::ensure_engine() {
  if (prices_drifted_ && engine_ != nullptr) {  // from scratch: flow and prices are forgotten
    drop_engine();
    warm_flow_.clear();
    warm_price_.clear();
    prices_drifted_ = false;
  }
  if (engine_ != nullptr && network_.supply[root_] >= 0) {
    const NodeId root = largest_sink(network_, node_alive_);
    if (network_.supply[root] < 0) drop_engine();
  }
  if (engine_ != nullptr && should_change_engines()) drop_engine();
  if (engine_ != nullptr) return;
  root_ = largest_sink(network_, node_alive_);
  warm_flow_.resize(warm_flow_.empty() ? 0 : network_.num_arcs(), 0);
  warm_price_.resize(warm_price_.empty() ? 0 : network_.num_nodes(), 0);
  for (std::size_t a = 0; a < warm_flow_.size(); ++a)
    warm_flow_[a] = std::min(warm_flow_[a], network_.capacity[a]);
  stepping_ = stops_ >= kStopsInARow;
  if (!warm_price_.empty())
    warm_price_ = grounded(start_prices(network_, {{}, warm_price_}), root_);
  const EngineStart start{network_, arc_alive_, root_, warm_flow_, warm_price_};
  engine_ = stepping_ ? make_incremental_ssp(start, control_, stats_)
                      : make_engine_(start, control_, stats_);
  if (engine_ == nullptr) return;  // the next resolve starts from the same
  warm_flow_ = {};
  warm_price_ = {};
  ++stats_.rebuilds;
}

// An engine that an exception (no memory) left half-way is in no state to go on from.
Status IncrementalSolver::run_engine() {
  try {
    control_.grant_steps(0);
    ensure_engine();
    if (engine_ == nullptr) return Status::kCancelled;
    control_.grant_steps(stops_ >= kStopsInARow && engine_->steps_last() ? 1 : 0);
    ProvenRun run = run_proven(engine_, {network_, arc_alive_, root_, {}, {}},
                               stepping_ ? make_incremental_ssp : make_engine_, control_, stats_);
    compare_all_ |= run.made_anew;
    cut_ = std::move(run.cut);
    std::int64_t cost = 0;
    if (run.status == Status::kOptimal && !as_int64(engine_->cost(), cost)) {
      compare_all_ = true;  // what this round touched is not adopted
      return Status::kBadCostRange;
    }
    if (run.status == Status::kOptimal) cost_ = cost;
    return run.status;
  } catch (...) {
    engine_.reset();
    compare_all_ = true;
    throw;
  }
}

void IncrementalSolver::adopt_flow() {
  changed_ = {};
  const auto adopt = [this](ArcId a) {
    if (arc_alive_[a] == 0) return;
    const std::int64_t now = flow_now(a);
    if (now == flow_[a]) return;
    flow_[a] = now;
    changed_.arcs.push_back(a);
  };
  if (compare_all_ || engine_ == nullptr || !engine_->local()) {
    changed_.arcs.reserve(network_.num_nodes());
    for (ArcId a = 0; a < network_.num_arcs(); ++a) adopt(a);
  } else {
    for (const FlowBefore& before : engine_->touched_arcs()) adopt(before.arc);
    std::sort(changed_.arcs.begin(), changed_.arcs.end());
  }
  changed_.flow.reserve(changed_.arcs.size());
  for (ArcId a : changed_.arcs) changed_.flow.push_back(flow_[a]);
}

void IncrementalSolver::note_touched() {
  touched_all_ = compare_all_ || engine_ == nullptr || !engine_->local();
  if (touched_all_) return;
  repriced_ = engine_->repriced_nodes();
  for (const FlowBefore& before : engine_->touched_arcs()) {
    if (arc_alive_[before.arc] == 0) continue;
    touched_.push_back(network_.tail[before.arc]);
    touched_.push_back(network_.head[before.arc]);
  }
}

Status IncrementalSolver::resolve() {
  // A cancellation that comes too late for this round is none of the next one's.
  struct EndsWithRound {
    Control& control;
    ~EndsWithRound() { control.clear(); }
  };
  const EndsWithRound cancellation{control_};
  stats_ = {};
  changed_ = {};
  cut_.clear();
  touched_.clear();
  repriced_.clear();
  solved_ = false;
  const Status status = control_.cancelled() ? Status::kCancelled : solve();
  solved_ = status == Status::kOptimal;
  node_ids_.end_round(solved_);
  arc_ids_.end_round(solved_);
  return status;
}

Status IncrementalSolver::solve() {
  const Status ranges = check_numbers();
  if (ranges != Status::kOptimal) return ranges;
  if (live_nodes_ == 0) {
    cost_ = 0;
    return Status::kOptimal;
  }
  const bool by_engine = stops_ >= kStopsInARow || ids_fit_costs();
  const Status status = by_engine ? run_engine() : solve_cold();
  if (status != Status::kCancelled)
    stops_ = status == Status::kBudget ? std::min(stops_ + 1, kStopsInARow) : 0;
  if (status != Status::kOptimal) return status;
  adopt_flow();
  note_touched();
  compare_all_ = engine_ == nullptr;
  if (engine_ == nullptr) return status;
  prices_drifted_ = engine_->prices_drifted();
  if (engine_->local()) engine_->begin_round();
  return status;
}

// Of the live part of the network. The answer is what the next engine is built from.
Status IncrementalSolver::solve_cold() {
  drop_engine();
  LiveNetwork live;
  const bool gaps = live_nodes_ < network_.num_nodes() || live_arcs_ < network_.num_arcs();
  try {
    if (gaps) live = live_network(network_, node_alive_, arc_alive_, control_);
  } catch (const Stopped& stopped) {
    return stopped.status;
  }
  Solution solution = solve_cold_(gaps ? live.network : network_, Control(control_, stats_));
  stats_.add(solution.stats);
  ++stats_.rebuilds;
  cut_ = std::move(solution.cut);
  if (gaps) {
    for (NodeId& v : cut_) v = live.nodes[v];  // still ascending
  }
  if (solution.status != Status::kOptimal && solution.status != Status::kBudget)
    return solution.status;
  if (solution.status == Status::kOptimal) cost_ = solution.cost;
  if (!gaps) {
    warm_flow_ = std::move(solution.flow);
    warm_price_ = std::move(solution.potential);
    return solution.status;
  }
  warm_flow_.assign(network_.num_arcs(), 0);
  warm_price_.assign(network_.num_nodes(), 0);
  for (std::size_t k = 0; k < live.arcs.size(); ++k) warm_flow_[live.arcs[k]] = solution.flow[k];
  for (std::size_t k = 0; k < live.nodes.size(); ++k)
    warm_price_[live.nodes[k]] = solution.potential[k];
  return solution.status;
}

std::vector<std::int64_t> IncrementalSolver::flow_reached() const {
  std::vector<std::int64_t> flow(network_.num_arcs(), 0);
  for (ArcId a = 0; a < network_.num_arcs(); ++a) {
    if (arc_alive_[a] != 0) flow[a] = std::min(flow_now(a), network_.capacity[a]);
  }
  return flow;
}

std::vector<std::int64_t> IncrementalSolver::potential() const {
  std::vector<std::int64_t> potential(network_.num_nodes(), 0);
  for (NodeId v = 0; v < network_.num_nodes(); ++v) {
    if (node_alive_[v] != 0) potential[v] = price_now(v);
  }
  return potential;
}

CutCertificate IncrementalSolver::certify_cut() const {
  return flowsolver::certify_cut(network_, cut_, node_alive_);
}

Certificate IncrementalSolver::certify() const {
  return flowsolver::certify(network_, flow_, potential(), cost_, arc_alive_);
}

Certificate IncrementalSolver::certify_touched() const {
  if (touched_all_) return certify();
  Certificate certificate;
  certificate.costs_agree = true;
  if (engine_ == nullptr) return certificate;
  std::vector<NodeId> nodes = touched_;
  for (NodeId v : repriced_) {
    nodes.push_back(v);
    engine_->priced_by(v, nodes);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::vector<ArcId> arcs;
  for (NodeId v : nodes) {
    if (node_alive_[v] == 0 || v == root_) continue;  // the root balances when all others do
    arcs.clear();
    engine_->incident_arcs({&v, 1}, arcs);
    __int128 outflow = 0;
    for (ArcId a : arcs) {
      const NodeId tail = network_.tail[a], head = network_.head[a];
      check_arc(network_, a, flow_[a], engine_->price(tail), engine_->price(head), certificate);
      if (tail != head) outflow += tail == v ? flow_[a] : -flow_[a];
    }
    ++certificate.nodes_checked;
    certificate.balance_violations += outflow != network_.supply[v];
  }
  return certificate;
}

}  // namespace flowsolver
