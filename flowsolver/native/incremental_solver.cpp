// IncrementalSolver, in order: changes, a round, with the engine or from scratch, and capacities
// too large for sums: the level to which they are lowered, and whether an answer would use more.
#include "incremental_solver.hpp"

#include <algorithm>
#include <limits>

#include "solve.hpp"
#include "graph/start_state.hpp"
#include "shortest_path/incremental_ssp.hpp"

namespace flowsolver {

IncrementalSolver::IncrementalSolver(const Network& network, const Algorithm& algorithm)
    : IncrementalSolver(
          network,
          [&algorithm](const EngineStart& start, const Control& control, Stats& stats) {
            return algorithm.make_engine(start, control, stats);
          },
          [&algorithm](const Network& live, const Control& control) {
            return algorithm.solve(live, {}, control);
          },
          algorithm.from_scratch) {}

IncrementalSolver::IncrementalSolver(const Network& network, MakeEngine make_engine,
                                     SolveCold solve_cold, bool always_cold)
    : network_(network),
      value_limit_(std::numeric_limits<std::uint64_t>::max()),
      make_engine_(std::move(make_engine)),
      solve_cold_(std::move(solve_cold)),
      always_cold_(always_cold) {
  flow_.reserve(network.num_arcs() + network.num_arcs() / 4);
  flow_.assign(network.num_arcs(), 0);
}

// Drops the engine if a value does not fit its width, or is so large that its arithmetic could
// overflow before the next range check. The next resolve makes one that fits.
void IncrementalSolver::keep_within_range(std::int64_t value) {
  if (magnitude(value) > value_limit_) drop_engine();
}

// Small rounds: each change is applied to the engine as it is made. Large rounds: changes are
// logged and applied when the engine is about to run, unless it is given up for a cold start.
// Without an engine nothing need be done: the next one is made from the network.
template <class Apply, class Log>
void IncrementalSolver::apply_change(Apply apply, Log log_change) {
  solved_ = false;
  if (round_.all() >= next_review_) review_round(0);
  if (change_policy_ != ChangePolicy::kApply) {
    log_change(log_);
  } else if (engine_ != nullptr) {
    warm_is_optimum_ = false;
    apply(*engine_);
  }
}

// Called when there are many changes, or when many are announced.
void IncrementalSolver::review_round(std::int64_t expected) {
  constexpr std::int64_t kInterval = 1024;
  constexpr std::size_t kLongLog = 4;  // times the network's size
  if (change_policy_ == ChangePolicy::kApply && round_.all() + expected > kFewChanges)
    change_policy_ = ChangePolicy::kLog;
  next_review_ = std::max(round_.all(), kFewChanges) + kInterval;
  if (change_policy_ != ChangePolicy::kLog) return;
  RoundChanges round = round_;
  round.values += expected;  // at least
  if (cold_operations_ < 0 &&
      cold_start_.is_cheaper(round, network_.live_size(), network_.num_sources())) {
    change_policy_ = ChangePolicy::kDiscard;
    log_.stop_recording();
  } else if (log_.size() > kLongLog * (net().num_nodes() + net().num_arcs())) {
    apply_log();
  }
}

void IncrementalSolver::switch_to(MakeEngine make_engine, SolveCold solve_cold, bool always_cold) {
  drop_engine();
  make_engine_ = std::move(make_engine);
  solve_cold_ = std::move(solve_cold);
  always_cold_ = always_cold;
  cold_start_ = {};  // what the other algorithm's took
  cold_operations_ = -1;
  budget_stops_ = 0;
  uses_fallback_ = false;
}

void IncrementalSolver::expect_changes(std::size_t changes) {
  review_round(static_cast<std::int64_t>(changes));
}

NodeId IncrementalSolver::add_node(std::int64_t supply) {
  keep_within_range(supply);
  const NodeId v = network_.add_node(supply);
  ++round_.structure;
  round_.displaced += supply != 0;
  proof_.change_node(v);
  proof_.change_supply(v, 0, supply);
  apply_change([=](Engine& engine) { engine.add_node(v, supply); },
               [=](ChangeLog& log) { log.add_node(v); });
  return v;
}

ArcId IncrementalSolver::add_arc(NodeId tail, NodeId head, std::int64_t capacity,
                                 std::int64_t cost) {
  keep_within_range(std::min(capacity, lowered_.level()));
  keep_within_range(cost);
  const ArcId a = network_.add_arc(tail, head, std::min(capacity, lowered_.level()), cost);
  capacity = lowered_.lower(a, capacity);
  if (a == flow_.size()) flow_.push_back(0);
  proof_.change_arc(a);
  ++round_.structure;
  apply_change([=](Engine& engine) { engine.add_arc(a, tail, head, capacity, cost); },
               [=](ChangeLog& log) { log.add_arc(a); });
  return a;
}

void IncrementalSolver::remove_arc(ArcId arc) {
  ++round_.structure;
  apply_change(
      [=, this](Engine& engine) { engine.remove_arc(arc, net().tail[arc], net().head[arc]); },
      [=](ChangeLog& log) { log.remove_arc(arc); });
  remove_arcs({&arc, 1});
}

// The engine has these changes, or will get them.
void IncrementalSolver::remove_arcs(std::span<const ArcId> arcs) {
  for (ArcId a : arcs) {
    network_.remove_arc(a);
    lowered_.forget(a);
    round_.displaced += flow_[a] != 0;
    if (flow_[a] != 0) proof_.change_flow(net().tail[a], net().head[a], -flow_[a]);
    flow_[a] = 0;
    if (a < warm_flow_.size()) warm_flow_[a] = 0;
  }
}

void IncrementalSolver::remove_nodes(std::span<const NodeId> nodes) {
  expect_changes(nodes.size());
  const bool removes_root = std::find(nodes.begin(), nodes.end(), root_) != nodes.end();
  if (removes_root) drop_engine();
  for (NodeId v : nodes) {
    proof_.change_supply(v, net().supply[v], 0);
    network_.remove_node(v);
    if (v < warm_price_.size()) warm_price_[v] = 0;
  }
  round_.structure += static_cast<std::int64_t>(nodes.size());
  const bool engine_is_local = engine_ != nullptr && engine_->local();
  std::vector<ArcId> arcs;
  bool applied = false;
  if (change_policy_ == ChangePolicy::kApply && engine_is_local)
    applied = engine_->remove_with_arcs(nodes, arcs);
  if (applied) {
    warm_is_optimum_ = false;
    if (!std::is_sorted(arcs.begin(), arcs.end())) std::sort(arcs.begin(), arcs.end());
  } else {
    const auto find = [this](std::span<const NodeId> removed, std::vector<ArcId>& found) {
      std::vector<NodeId> known(removed.begin(), removed.end());
      std::erase_if(known, [this](NodeId v) { return log_.is_new_node(v); });
      engine_->incident_arcs(known, found);
      for (ArcId a : log_.new_arcs()) {
        if (!network_.live_node(net().tail[a]) || !network_.live_node(net().head[a]))
          found.push_back(a);
      }
    };
    const bool finds = engine_is_local && change_policy_ != ChangePolicy::kDiscard;
    arcs = network_.arcs_at_removed(nodes, finds ? find : ChangingNetwork::FindArcs{},
                                    log_.new_arcs().size());
    expect_changes(arcs.size());
    apply_change(
        [&](Engine& engine) {
          for (ArcId a : arcs) engine.remove_arc(a, net().tail[a], net().head[a]);
          for (NodeId v : nodes) engine.remove_node(v);
        },
        [&](ChangeLog& log) { log.remove_nodes(nodes, arcs); });
  }
  solved_ = false;
  round_.structure += static_cast<std::int64_t>(arcs.size());
  remove_arcs(arcs);
}

void IncrementalSolver::set_capacity(ArcId arc, std::int64_t capacity) {
  change_capacity(arc, lowered_.lower(arc, capacity));
}

void IncrementalSolver::change_capacity(ArcId arc, std::int64_t capacity) {
  if (net().capacity[arc] == capacity) return;
  keep_within_range(capacity);
  if (flow_[arc] >= std::min(capacity, net().capacity[arc])) proof_.change_arc(arc);
  network_.set_capacity(arc, capacity);
  ++round_.values;
  round_.displaced += flow_[arc] > capacity;
  apply_change(
      [=, this](Engine& engine) {
        engine.set_capacity(arc, net().tail[arc], net().head[arc], capacity);
      },
      [=](ChangeLog& log) { log.set_capacity(arc); });
}

void IncrementalSolver::set_cost(ArcId arc, std::int64_t cost) {
  if (net().cost[arc] == cost) return;
  keep_within_range(cost);
  // Dearer without flow, or cheaper with as much as there can be, it is as it should be.
  const bool dearer = cost > net().cost[arc];
  std::int64_t rise = 0;
  if (flow_[arc] != (dearer ? 0 : net().capacity[arc])) {
    proof_.change_arc(arc);
  } else if (dearer && !__builtin_sub_overflow(cost, net().cost[arc], &rise)) {
    proof_.raise_arc(arc, rise);
  }
  network_.set_cost(arc, cost);
  ++round_.values;
  apply_change([=, this](Engine& engine) { engine.set_cost(arc, net().tail[arc], cost); },
               [=](ChangeLog& log) { log.set_cost(arc); });
}

void IncrementalSolver::set_supply(NodeId node, std::int64_t supply) {
  const std::int64_t before = net().supply[node];
  if (before == supply) return;
  keep_within_range(supply);
  network_.set_supply(node, supply);
  proof_.change_node(node);
  proof_.change_supply(node, before, supply);
  ++round_.values;
  ++round_.displaced;
  round_.sign_changes += (before > 0 && supply < 0) || (before < 0 && supply > 0);
  apply_change([=](Engine& engine) { engine.change_supply(node, supply - before); },
               [=](ChangeLog& log) { log.change_supply(node, supply - before); });
}

// For live ids: the state that the last resolve reached.
std::int64_t IncrementalSolver::flow_now(ArcId arc) const {
  if (engine_ != nullptr) return log_.is_new_arc(arc) ? 0 : engine_->flow(arc, net().tail[arc]);
  if (warm_is_optimum_) return flow_[arc];
  return arc < warm_flow_.size() ? warm_flow_[arc] : 0;
}

std::int64_t IncrementalSolver::price_now(NodeId v) const {
  if (engine_ != nullptr) return log_.is_new_node(v) ? 0 : engine_->price(v);
  return v < warm_price_.size() ? warm_price_[v] : 0;
}

std::vector<std::int64_t> IncrementalSolver::flow_reached() const {
  std::vector<std::int64_t> flow(net().num_arcs(), 0);
  for (ArcId a = 0; a < net().num_arcs(); ++a) {
    if (network_.arc_alive()[a] != 0) flow[a] = std::min(flow_now(a), net().capacity[a]);
  }
  return flow;
}

std::vector<std::int64_t> IncrementalSolver::potential() const {
  std::vector<std::int64_t> potential(net().num_nodes(), 0);
  for (NodeId v = 0; v < net().num_nodes(); ++v) {
    if (network_.node_alive()[v] != 0) potential[v] = price_now(v);
  }
  return potential;
}

CutCertificate IncrementalSolver::certify_cut() const {
  if (lowered_.any()) return flowsolver::certify_cut(given_network(), cut_, network_.node_alive());
  return flowsolver::certify_cut(net(), cut_, network_.node_alive());
}

Certificate IncrementalSolver::certify() const {
  if (lowered_.any())
    return flowsolver::certify(given_network(), flow_, potential(), cost_, network_.arc_alive());
  return flowsolver::certify(net(), flow_, potential(), cost_, network_.arc_alive());
}

Status IncrementalSolver::resolve() {
  // A cancellation that comes too late for this round must not affect the next one.
  struct ClearAtEndOfRound {
    Control& control;
    ~ClearAtEndOfRound() { control.clear(); }
  };
  const ClearAtEndOfRound cancellation{control_};
  stats_ = {};
  changed_ = {};
  cut_.clear();
  touched_.clear();
  repriced_.clear();
  solved_ = false;
  const Status status = control_.cancelled() ? Status::kCancelled : solve();
  solved_ = status == Status::kOptimal;
  end_round();
  return status;
}

Status IncrementalSolver::solve() {
  const Status ranges = check_numbers();
  if (ranges != Status::kOptimal) return ranges;
  const Status status = solve_within_range();
  if (status != Status::kUnbounded) return status;
  // As a solve from scratch would lower capacities, or without lowering any, fewer of them may
  // count as unbounded.
  const std::int64_t level = lowered_.level();
  if (!choose_level(0) || lowered_.level() == level) return status;
  return solve_within_range();
}

Status IncrementalSolver::solve_within_range() {
  if (network_.live_nodes() == 0) {
    cost_ = 0;
    round_ = {};
    return Status::kOptimal;
  }
  Status status = should_start_cold() ? solve_cold() : run_engine();
  if (status == Status::kBadCostRange && lowered_.any()) status = report_unbounded_cycle();
  if (status != Status::kCancelled) {
    budget_stops_ = status == Status::kBudget ? std::min(budget_stops_ + 1, kMaxBudgetStops) : 0;
    round_ = {};
  }
  return status;
}

// A cold start needs an earlier answer to compare with, and no budget that might end it without
// one.
bool IncrementalSolver::may_start_cold() const {
  return cold_operations_ < 0 && cold_start_.is_known() && !uses_fallback_ && budget_stops_ == 0 &&
         !control_.has_budget();
}

bool IncrementalSolver::should_start_cold() {
  if (always_cold_) return true;
  if (budget_stops_ >= kMaxBudgetStops) return false;
  if (!network_.ids_fit_costs()) return true;
  if (!may_start_cold()) return false;
  if (change_policy_ != ChangePolicy::kLog) return change_policy_ == ChangePolicy::kDiscard;
  // Prices are not asked for where no answer would change the decision.
  if (cold_start_.ignores_displaced(round_, round_.all(), network_.live_size(),
                                    network_.num_sources()))
    return false;
  log_.for_each_priced([this](ArcId a) {
    if (network_.arc_alive()[a] == 0) return;
    const std::int64_t rc = net().cost[a] - price_now(net().tail[a]) + price_now(net().head[a]);
    round_.displaced += rc < 0 ? flow_[a] < net().capacity[a] : rc > 0 && flow_[a] > 0;
  });
  return cold_start_.is_cheaper(round_, network_.live_size(), network_.num_sources());
}

void IncrementalSolver::drop_engine() {
  if (engine_ == nullptr) return;
  if (!warm_is_optimum_) warm_flow_ = flow_reached();
  warm_price_ = potential();
  engine_.reset();
  value_limit_ = std::numeric_limits<std::uint64_t>::max();
  compare_all_ = true;
}

bool IncrementalSolver::should_switch_engines() const {
  return uses_fallback_ ? budget_stops_ == 0
                        : budget_stops_ >= kMaxBudgetStops && !engine_->keeps_progress();
}

// Makes an engine if there is none, or if the root is no longer a sink but another node is.
void IncrementalSolver::ensure_engine() {
  const std::vector<std::uint8_t>& alive = network_.node_alive();
  if (change_policy_ == ChangePolicy::kDiscard) drop_engine();  // its changes are lost
  if (prices_drifted_ && engine_ != nullptr) {  // start from scratch, without flow and prices
    drop_engine();
    warm_is_optimum_ = false;
    warm_flow_.clear();
    warm_price_.clear();
    prices_drifted_ = false;
  }
  if (engine_ != nullptr && net().supply[root_] >= 0) {
    const NodeId root = largest_sink(net(), alive);
    if (net().supply[root] < 0) drop_engine();
  }
  if (engine_ != nullptr && should_switch_engines()) drop_engine();
  if (engine_ != nullptr) return;
  root_ = largest_sink(net(), alive);
  if (warm_is_optimum_) warm_flow_.assign(flow_.begin(), flow_.end());
  warm_is_optimum_ = false;
  warm_flow_.resize(warm_flow_.empty() ? 0 : net().num_arcs(), 0);
  warm_price_.resize(warm_price_.empty() ? 0 : net().num_nodes(), 0);
  for (std::size_t a = 0; a < warm_flow_.size(); ++a)
    warm_flow_[a] = std::min(warm_flow_[a], net().capacity[a]);
  uses_fallback_ = budget_stops_ >= kMaxBudgetStops;
  if (warm_flow_.empty() && warm_price_.empty()) cold_operations_ = 0;
  if (!warm_price_.empty())
    warm_price_ = relative_to_root(start_prices(net(), {{}, warm_price_}), root_);
  const EngineStart start{net(), network_.arc_alive(), root_, warm_flow_, warm_price_};
  engine_ = uses_fallback_ ? make_incremental_ssp(start, control_, stats_)
                           : make_engine_(start, control_, stats_);
  if (engine_ == nullptr) return;  // the next resolve starts from the same state
  warm_flow_ = {};
  warm_price_ = {};
  log_.clear();  // the engine was made from the network as it is now
  change_policy_ = ChangePolicy::kApply;
  ++stats_.rebuilds;
}

// An exception (out of memory) leaves the engine in an undefined state, so it is dropped.
Status IncrementalSolver::run_engine() {
  try {
    control_.guarantee_steps(0);
    // In small rounds the engine is worth keeping: its first round is the slowest.
    const bool is_large = change_policy_ != ChangePolicy::kApply && may_start_cold();
    ensure_engine();
    if (engine_ == nullptr) return Status::kCancelled;
    const bool compares = is_large && !engine_->solves_from_scratch();
    warm_is_optimum_ = false;
    log_.apply(*engine_, net(), network_.node_alive(), network_.arc_alive());
    change_policy_ = ChangePolicy::kApply;
    control_.guarantee_steps(budget_stops_ >= kMaxBudgetStops && engine_->keeps_progress() ? 1 : 0);
    Control compared(control_, {});
    if (compares) {
      cold_start_.limit_warm_start(compared, round_, network_.live_size(), network_.num_sources(),
                                   stats_);
    }
    ProvenRun run = run_proven(engine_, {net(), network_.arc_alive(), root_, {}, {}},
                               uses_fallback_ ? make_incremental_ssp : make_engine_,
                               compares ? compared : control_, stats_);
    compare_all_ |= run.rebuilt;
    cut_ = std::move(run.cut);
    const Status status = run.status;
    value_limit_ =
        engine_ == nullptr ? std::numeric_limits<std::uint64_t>::max() : engine_->value_limit();
    if (status == Status::kBudget && compared.gave_up()) return solve_cold();
    if (cold_operations_ >= 0) cold_operations_ += stats_.operations();
    if (status != Status::kOptimal) return status;
    if (lowered_.any_of([this](ArcId a) {
          return is_unbounded(a, engine_->flow(a, net().tail[a]), engine_->price(net().tail[a]),
                              engine_->price(net().head[a]));
        })) {
      compare_all_ = true;  // the answer of this round is not adopted
      return Status::kUnbounded;
    }
    std::int64_t cost = 0;
    if (!as_int64(engine_->cost(), cost)) {
      compare_all_ = true;  // what this round touched is not adopted
      return Status::kBadCostRange;
    }
    cost_ = cost;
    if (cold_operations_ >= 0) {
      Stats counted = stats_;
      counted.scanned += cold_operations_ - stats_.operations();
      note_cold_start(counted);
    }
    adopt_flow();
    return status;
  } catch (...) {
    engine_.reset();
    value_limit_ = std::numeric_limits<std::uint64_t>::max();
    compare_all_ = true;
    throw;
  }
}

// Solves the live part of the network from scratch. The next engine is made from the answer.
Status IncrementalSolver::solve_cold() {
  LiveNetwork live;
  try {
    if (network_.has_gaps())
      live = live_network(net(), network_.node_alive(), network_.arc_alive(), control_);
  } catch (const Stopped& stopped) {
    return stopped.status;
  }
  const LiveNetwork* const dense = network_.has_gaps() ? &live : nullptr;
  Solution solution =
      solve_cold_(dense == nullptr ? net() : dense->network, Control(control_, stats_));
  stats_.add(solution.stats);
  ++stats_.rebuilds;
  cut_ = std::move(solution.cut);
  if (dense != nullptr) {
    for (NodeId& v : cut_) v = dense->nodes[v];  // still ascending after renumbering
  }
  if (lowered_.any()) check_bounds(solution, dense);
  if (solution.status == Status::kOptimal) {
    cost_ = solution.cost;
    note_cold_start(solution.stats);
  } else if (solution.status != Status::kBudget) {
    // cheaper than applying so many changes
    if (change_policy_ != ChangePolicy::kApply) drop_engine();
    return solution.status;
  }
  const Status status = solution.status;
  adopt_cold(std::move(solution), dense);
  return status;
}

void IncrementalSolver::note_cold_start(const Stats& stats) {
  cold_start_.note_cold_start(stats, network_.live_size());
  cold_operations_ = -1;
}

void IncrementalSolver::adopt_flow(ArcId arc, std::int64_t now) {
  if (now == flow_[arc]) return;
  if (!touched_all_) proof_.change_flow(net().tail[arc], net().head[arc], now - flow_[arc]);
  flow_[arc] = now;
  changed_.arcs.push_back(arc);
}

void IncrementalSolver::adopt_flow() {
  const auto adopt = [this](ArcId a) {
    if (network_.arc_alive()[a] != 0) adopt_flow(a, engine_->flow(a, net().tail[a]));
  };
  touched_all_ = compare_all_ || !engine_->local();
  if (touched_all_) {
    changed_.arcs.reserve(net().num_nodes());
    for (ArcId a = 0; a < net().num_arcs(); ++a) adopt(a);
  } else {
    for (const FlowBefore& before : engine_->touched_arcs()) adopt(before.arc);
    std::sort(changed_.arcs.begin(), changed_.arcs.end());
    note_touched();
  }
  proof_.begin_answer(!touched_all_);
  changed_.flow.reserve(changed_.arcs.size());
  for (ArcId a : changed_.arcs) changed_.flow.push_back(flow_[a]);
  prices_drifted_ = engine_->prices_drifted();
  if (engine_->local()) engine_->begin_round();
  compare_all_ = false;
  warm_is_optimum_ = true;
}

void IncrementalSolver::note_touched() {
  repriced_ = engine_->repriced_nodes();
  for (const FlowBefore& before : engine_->touched_arcs()) {
    if (network_.arc_alive()[before.arc] == 0) continue;
    touched_.push_back(net().tail[before.arc]);
    touched_.push_back(net().head[before.arc]);
  }
}

// `live`: the network that the solution is for; null: the whole network.
void IncrementalSolver::adopt_cold(Solution solution, const LiveNetwork* live) {
  engine_.reset();
  uses_fallback_ = false;
  value_limit_ = std::numeric_limits<std::uint64_t>::max();
  log_.clear();
  compare_all_ = touched_all_ = true;
  cold_operations_ = -1;
  warm_is_optimum_ = solution.status == Status::kOptimal;
  if (warm_is_optimum_) proof_.begin_answer(false);
  if (live == nullptr) {
    warm_price_ = std::move(solution.potential);
  } else {
    warm_price_.assign(net().num_nodes(), 0);
    for (std::size_t k = 0; k < live->nodes.size(); ++k)
      warm_price_[live->nodes[k]] = solution.potential[k];
  }
  const auto each = [&](auto visit) {
    for (ArcId k = 0; k < solution.flow.size(); ++k)
      visit(live == nullptr ? k : live->arcs[k], solution.flow[k]);
  };
  if (!warm_is_optimum_) {
    warm_flow_.assign(net().num_arcs(), 0);
    each([this](ArcId a, std::int64_t flow) { warm_flow_[a] = flow; });
    return;
  }
  warm_flow_.clear();
  each([this](ArcId a, std::int64_t flow) { adopt_flow(a, flow); });
  changed_.flow.reserve(changed_.arcs.size());
  for (ArcId a : changed_.arcs) changed_.flow.push_back(flow_[a]);
}

void IncrementalSolver::apply_log() {
  if (engine_ == nullptr || change_policy_ != ChangePolicy::kLog) return log_.clear();
  warm_is_optimum_ = false;
  try {
    log_.apply(*engine_, net(), network_.node_alive(), network_.arc_alive());
  } catch (...) {
    engine_.reset();
    value_limit_ = std::numeric_limits<std::uint64_t>::max();
    compare_all_ = true;
    throw;
  }
}

// Called at the end of each round, however it ended, even if the engine did not run: ids are reused
// from here on.
void IncrementalSolver::end_round() {
  if (change_policy_ == ChangePolicy::kDiscard) drop_engine();
  apply_log();
  change_policy_ = ChangePolicy::kApply;
  next_review_ = kFewChanges + 1;
  network_.end_round(solved_);
}

Network IncrementalSolver::given_network() const {
  Network given = net();
  for (ArcId a = 0; a < given.num_arcs(); ++a) given.capacity[a] = given_capacity(a);
  return given;
}

// Checks the network's numbers, after lowering capacities that are too large. The status is that of
// the given network, whatever the level so far: a level that no longer does gives way to the one
// that a solve from scratch would choose, or to none.
Status IncrementalSolver::check_numbers() {
  if (!lowered_.any()) lowered_.begin(std::numeric_limits<std::int64_t>::max());
  const Status status = network_.check_numbers();
  if (status == Status::kBadCostRange) return status;  // reported before all others
  const bool fits = status != Status::kBadCapacityRange;
  if (fits && (!lowered_.any() || level_is_high_enough())) return status;
  const std::int64_t in_use = lowered_.any() ? lowered_.level() : 0;
  return choose_level(in_use) ? network_.check_numbers() : Status::kBadCapacityRange;
}

// Decided from sums; false when they do not suffice.
bool IncrementalSolver::level_is_high_enough() const {
  const __int128 below = network_.capacity_sum() - __int128{lowered_.level()} * lowered_.count();
  return lowered_.level() > network_.supply_magnitudes() + below;
}

// Chooses a level and lowers the capacities to it: the level in use where it still does (0: there
// is none), else none where the given capacities are in range, else as a solve from scratch does.
// O(n + m). False: there is no level.
bool IncrementalSolver::choose_level(std::int64_t in_use) {
  const Network given = given_network();
  std::optional<std::int64_t> level;
  if (in_use > 0 && is_right_level(given, in_use)) {
    level = in_use;
  } else if (check_live_ranges(given, network_.live_nodes()) != Status::kBadCapacityRange) {
    level = std::numeric_limits<std::int64_t>::max();
  } else {
    level = capacity_level(given);
  }
  if (!level) return false;
  lowered_.begin(*level);
  for (ArcId a = 0; a < given.num_arcs(); ++a) {
    if (network_.arc_alive()[a] != 0) change_capacity(a, lowered_.lower(a, given.capacity[a]));
  }
  return true;
}

// Whether the flow on an arc whose capacity was lowered would be unbounded without that
// (graph/start_state.hpp).
bool IncrementalSolver::is_unbounded(ArcId arc, std::int64_t flow, std::int64_t tail_price,
                                     std::int64_t head_price) const {
  return flow == lowered_.level() && given_capacity(arc) > flow &&
         net().cost[arc] - tail_price + head_price < 0;
}

// The status of an optimum whose cost is out of range, for which there is no flow to examine.
Status IncrementalSolver::report_unbounded_cycle() {
  const Status cycle = find_unbounded_cycle(given_network(), lowered_.level(), control_, stats_);
  return cycle == Status::kOptimal ? Status::kBadCostRange : cycle;
}

// Applies is_unbounded to an answer from scratch. `live`: as in adopt_cold.
void IncrementalSolver::check_bounds(Solution& solution, const LiveNetwork* live) {
  if (solution.status != Status::kOptimal) return;
  const Network& solved = live == nullptr ? net() : live->network;
  for (ArcId k = 0; k < solved.num_arcs(); ++k) {
    const ArcId a = live == nullptr ? k : live->arcs[k];
    if (is_unbounded(a, solution.flow[k], solution.potential[solved.tail[k]],
                     solution.potential[solved.head[k]])) {
      solution.status = Status::kUnbounded;
      return;
    }
  }
}

}  // namespace flowsolver
