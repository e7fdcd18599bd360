// The part of IncrementalSolver (incremental_solver.hpp) that runs a round, with the engine or from
// scratch, and adopts the answer.
#include <algorithm>
#include <limits>

#include "engines/proven_infeasibility.hpp"
#include "graph/start_state.hpp"
#include "incremental_solver.hpp"
#include "shortest_path/incremental_ssp.hpp"

namespace flowsolver {

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
  if (budget_stops_ >= kMaxBudgetStops) return false;
  if (!network_.ids_fit_costs()) return true;
  if (!may_start_cold()) return false;
  if (change_policy_ != ChangePolicy::kLog) return change_policy_ == ChangePolicy::kDiscard;
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
    const bool compares = change_policy_ != ChangePolicy::kApply && may_start_cold();
    ensure_engine();
    if (engine_ == nullptr) return Status::kCancelled;
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
  value_limit_ = std::numeric_limits<std::uint64_t>::max();
  log_.clear();
  compare_all_ = touched_all_ = true;
  cold_operations_ = -1;
  warm_is_optimum_ = solution.status == Status::kOptimal;
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

}  // namespace flowsolver
