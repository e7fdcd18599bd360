// The proof of infeasibility, the engine of a warm start, and the registry of algorithms.
#include "solve.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "cost_scaling/cost_scaling.hpp"
#include "graph/arc_graph.hpp"
#include "graph/imbalances.hpp"
#include "graph/start_state.hpp"
#include "reference/plain_methods.hpp"
#include "relaxation/relaxation.hpp"
#include "shortest_path/incremental_ssp.hpp"
#include "simplex/network_simplex.hpp"

namespace flowsolver {

namespace {

// The search for a cut that proves a network infeasible (certificate.hpp), in the residual graph of
// the pseudoflow with which a method ended because it found no path for an excess.
//
// Local search. The nodes that can be reached over residual arcs from those whose excess could not
// be routed. No residual arc leaves this set, so its supply exceeds the capacity out of it by the
// sum of its excesses, deficits counted negative. If that is positive, the set is the cut. The work
// is that of the nodes reached, plus a byte per node. For engines that know the arcs at each node.
//
// Global search. If the local search finds no cut, the pseudoflow is made feasible as far as
// possible (imbalances.hpp). In the end either the nodes that excess reaches are a cut, or the
// network is feasible and the method was wrong. O(n + m), and the work of routing what the method
// did not.
//
// Budgets. Both searches check the control. If they were restarted and stopped at the same budget
// again and again they would never end, so they ignore budgets once the control guarantees steps
// (Control::guarantee_steps).
struct CutSearch {
  // kInfeasible: `cut` proves it. kOptimal: the network is feasible. kCancelled, kBudget: stopped.
  Status status = Status::kOptimal;
  std::vector<NodeId> cut;  // ascending
};

// Calls search(control); while steps are guaranteed, with a control that can only be cancelled.
template <class Search>
CutSearch with_guarantee(const Control& control, const Search& search) {
  if (!control.guarantees_steps()) return search(control);
  return search(CancellationOnly(control));
}

CutSearch search_whole(const Network& network, std::span<const std::int64_t> flow,
                       const Control& control, Stats& stats) {
  CutSearch result;
  ArcGraph<std::int64_t> graph;
  result.status = graph.build(network, {flow, {}}, control, stats);
  if (result.status != Status::kOptimal) return result;
  CancellationChecker checker(control);
  FeasibleFlow feasible(ArcGraphView<std::int64_t>(graph), checker, stats);
  result.status = feasible.run();
  if (result.status != Status::kInfeasible) return result;
  if (const Status stopped = feasible.find_cut(result.cut); stopped != Status::kOptimal)
    result.status = stopped;
  return result;
}

// The local search, with an engine that is local. kOptimal: no cut was found.
class NearbySearch {
 public:
  NearbySearch(const Network& network, const Engine& engine, const Control& control, Stats& stats)
      : network_(network),
        engine_(engine),
        checker_(control),
        stats_(stats),
        inside_(network.num_nodes(), 0) {}

  CutSearch run() {
    CutSearch result;
    for (NodeId v : engine_.unrouted_nodes()) reach(v);
    for (std::size_t begin = 0; begin < reached_.size();) {
      const std::size_t end = std::min(reached_.size(), begin + kMaxBatch);
      result.status = spread(std::span(reached_).subspan(begin, end - begin));
      if (result.status != Status::kOptimal) return result;
      begin = end;
    }
    if (supply_less_capacity_out() <= 0) return result;
    result.status = Status::kInfeasible;
    std::sort(reached_.begin(), reached_.end());
    result.cut = std::move(reached_);
    return result;
  }

 private:
  static constexpr std::size_t kMaxBatch = 4096;  // nodes

  void reach(NodeId v) {
    if (inside_[v] != 0) return;
    inside_[v] = 1;
    reached_.push_back(v);
  }

  // Follows the residual arcs at the nodes reached last.
  Status spread(std::span<const NodeId> nodes) {
    arcs_.clear();
    engine_.incident_arcs(nodes, arcs_);
    for (ArcId a : arcs_) {
      const NodeId tail = network_.tail[a], head = network_.head[a];
      if (inside_[tail] == inside_[head]) continue;
      const std::int64_t flow = engine_.flow(a, tail);
      if (inside_[head] != 0) {
        if (flow > 0) reach(tail);
      } else if (flow < network_.capacity[a]) {
        reach(head);
      } else {
        full_.push_back(a);
      }
    }
    const auto steps = static_cast<std::int64_t>(arcs_.size());
    stats_.scanned += steps;
    return checker_.step(stats_, steps + 1);
  }

  // For the set of reached nodes; only full arcs leave it.
  __int128 supply_less_capacity_out() {
    __int128 sum = 0;
    for (NodeId v : reached_) sum += network_.supply[v];
    std::sort(full_.begin(), full_.end());
    full_.erase(std::unique(full_.begin(), full_.end()), full_.end());
    for (ArcId a : full_) {
      if (inside_[network_.head[a]] == 0) sum -= network_.capacity[a];
    }
    return sum;
  }

  const Network& network_;
  const Engine& engine_;
  CancellationChecker checker_;
  Stats& stats_;
  std::vector<std::uint8_t> inside_;  // per node
  std::vector<NodeId> reached_;
  std::vector<ArcId> arcs_;
  std::vector<ArcId> full_;  // full arcs that left the set when they were found; may repeat
};

CutSearch search_engine(const Network& network, std::span<const std::uint8_t> alive,
                        const Engine& engine, const Control& control, Stats& stats) {
  if (engine.local()) {
    CutSearch nearby = NearbySearch(network, engine, control, stats).run();
    if (nearby.status != Status::kOptimal) return nearby;
  }
  std::vector<std::int64_t> flow(network.num_arcs(), 0);
  const Status read =
      for_each_block(flow.size(), control, stats, [&](std::size_t begin, std::size_t end) {
        for (std::size_t a = begin; a < end; ++a) {
          if (alive[a] != 0) flow[a] = engine.flow(static_cast<ArcId>(a), network.tail[a]);
        }
      });
  if (read != Status::kOptimal) return {read, {}};
  return search_whole(network, flow, control, stats);
}

// `flow`: per arc, within capacities, or empty for none; it need not balance. Supplies balance.
CutSearch find_cut(const Network& network, std::span<const std::int64_t> flow,
                   const Control& control, Stats& stats) {
  return with_guarantee(
      control, [&](const Control& patient) { return search_whole(network, flow, patient, stats); });
}

// After a run of the engine that ended kInfeasible. `alive`: per arc.
CutSearch find_cut(const Network& network, std::span<const std::uint8_t> alive,
                   const Engine& engine, const Control& control, Stats& stats) {
  return with_guarantee(control, [&](const Control& patient) {
    return search_engine(network, alive, engine, patient, stats);
  });
}

[[noreturn]] void throw_repeated_disproof() {
  throw std::logic_error("flowsolver: a feasible network was found infeasible again and again");
}

Solution solve_on(const Method& method, const Network& network, const Start& start,
                  const Control& control, const Stats& before) {
  Solution solution = method(network, start, Control(control, before));
  solution.stats.add(before);
  return solution;
}

// An optimum by the plain reference, for a network that is feasible.
Solution solve_by_reference(const Network& network, const Control& control, const Stats& before) {
  Solution solution = solve_on(solve_cycle_cancelling, network, {}, control, before);
  if (solution.status == Status::kInfeasible) throw_repeated_disproof();
  return solution;
}

}  // namespace

Solution solve_proven(const Method& method, const Network& network, const Start& start,
                      const Control& control) {
  Solution solution = method(network, start, control);
  bool from_scratch = start.flow.empty() && start.price.empty();
  while (solution.status == Status::kInfeasible) {
    CutSearch search = find_cut(network, solution.flow, control, solution.stats);
    if (search.status == Status::kBudget)
      as_int64(flow_cost(network, solution.flow), solution.cost);
    if (search.status == Status::kInfeasible) {  // the pseudoflow is not needed any more
      solution.cost = 0;
      std::fill(solution.flow.begin(), solution.flow.end(), 0);
      std::fill(solution.potential.begin(), solution.potential.end(), 0);
      solution.cut = std::move(search.cut);
    }
    if (search.status != Status::kOptimal) {
      solution.status = search.status;
      break;
    }
    ++solution.stats.disproved;
    if (from_scratch) return solve_by_reference(network, control, solution.stats);
    solution = solve_on(method, network, {}, control, solution.stats);
    from_scratch = true;
  }
  return solution;
}

ProvenRun run_proven(std::unique_ptr<Engine>& engine, const EngineStart& cold_start,
                     const MakeEngine& make, const Control& control, Stats& stats) {
  ProvenRun run{engine->run(control, stats), {}, false};
  for (int times = 1; run.status == Status::kInfeasible; ++times) {
    const std::span<const NodeId> known = engine->cut();
    if (!known.empty()) {
      run.cut.assign(known.begin(), known.end());
      break;
    }
    CutSearch search = find_cut(cold_start.network, cold_start.alive, *engine, control, stats);
    run.status = search.status;
    run.cut = std::move(search.cut);
    if (run.status != Status::kOptimal) break;
    ++stats.disproved;
    EngineStart start = cold_start;
    Solution plain;
    std::vector<std::int64_t> price;
    if (times == 2) {
      plain = solve_by_reference(cold_start.network, control, stats);
      stats = plain.stats;
      run.status = plain.status;
      if (run.status != Status::kOptimal) break;
      price = relative_to_root(start_prices(cold_start.network, {{}, plain.potential}),
                               cold_start.root);
      start.flow = plain.flow;
      start.price = price;
    } else if (times > 2) {
      throw_repeated_disproof();
    }
    run.rebuilt = true;
    engine = make(start, control, stats);
    run.status = engine == nullptr ? Status::kCancelled : engine->run(control, stats);
  }
  return run;
}

WarmStartState::WarmStartState(const EngineStart& start)
    : network_(start.network),
      alive_(start.alive),
      has_solution_(!start.flow.empty() || !start.price.empty()),
      flow_(start.flow.begin(), start.flow.end()),
      price_(start.price.begin(), start.price.end()) {
  flow_.resize(network_.num_arcs(), 0);
  price_.resize(network_.num_nodes(), 0);
}

void WarmStartState::add_node(NodeId v, std::int64_t) {
  if (v >= price_.size()) price_.resize(v + 1, 0);
  price_[v] = 0;
}

void WarmStartState::remove_node(NodeId v) { price_[v] = 0; }

void WarmStartState::add_arc(ArcId arc, NodeId, NodeId, std::int64_t, std::int64_t) {
  if (arc >= flow_.size()) flow_.resize(arc + 1, 0);
  flow_[arc] = 0;
}

void WarmStartState::remove_arc(ArcId arc, NodeId, NodeId) { flow_[arc] = 0; }

void WarmStartState::set_capacity(ArcId arc, NodeId, NodeId, std::int64_t capacity) {
  flow_[arc] = std::min(flow_[arc], capacity);
}

__int128 WarmStartState::cost() const { return flow_cost(network_, flow_); }

void WarmStartState::store(Solution&& answer) {
  flow_ = std::move(answer.flow);
  price_ = std::move(answer.potential);
  has_solution_ = true;
}

void WarmStartState::adopt(const Engine& winner) {
  for (ArcId a = 0; a < flow_.size(); ++a)
    flow_[a] = alive_[a] == 0 ? 0 : winner.flow(a, network_.tail[a]);
  for (NodeId v = 0; v < price_.size(); ++v) price_[v] = winner.price(v);
  has_solution_ = true;
}

void WarmStartState::adopt_touched(const Engine& winner) {
  for (const auto& [arc, before] : winner.touched_arcs()) {
    if (alive_[arc] != 0) flow_[arc] = winner.flow(arc, network_.tail[arc]);
  }
  for (NodeId v : winner.repriced_nodes()) price_[v] = winner.price(v);
}

bool WarmStartState::prices_drifted() const {
  return std::any_of(price_.begin(), price_.end(), is_far);
}

Status WarmStartEngine::run(const Control& control, Stats& stats) {
  store_cut({});
  if (const Status status = control.check(stats); status != Status::kOptimal) return status;
  Solution answer = solve_proven(method_, network_, start(), control);
  stats.add(answer.stats);
  store_cut(std::move(answer.cut));
  const Status status = answer.status;
  if (status == Status::kOptimal || status == Status::kBudget) store(std::move(answer));
  return status;
}

namespace {

void configure_cost_scaling(const AlgorithmSettings& settings, Algorithm& algorithm) {
  algorithm.counts_every_arc = true;
  algorithm.method = [settings](const Network& network, const Start& start,
                                const Control& control) {
    return solve_cost_scaling(network, start, control, settings);
  };
  algorithm.make_own_engine = [settings](const EngineStart& start, const Control& control,
                                         Stats& stats) {
    return make_cost_scaling_engine(start, control, stats, settings);
  };
}

void configure_relaxation(const AlgorithmSettings& settings, Algorithm& algorithm) {
  algorithm.counts_every_arc = true;
  algorithm.method = [settings](const Network& network, const Start& start,
                                const Control& control) {
    return solve_relaxation(network, start, control, settings);
  };
  algorithm.make_own_engine = [settings](const EngineStart& start, const Control& control,
                                         Stats& stats) {
    return make_relaxation_engine(start, control, stats, settings);
  };
}

constexpr std::array<std::string_view, 3> kCostScalingSettings{"alpha", "task_removal",
                                                               "price_refine"};
constexpr std::array<std::string_view, 1> kRelaxationSettings{"arc_prioritisation"};

const std::array<Algorithm, 6>& registry() {
  static const std::array<Algorithm, 6> rows = [] {
    std::array<Algorithm, 6> made{
        Algorithm{"incremental_ssp", "successive shortest paths with persistent prices",
                  solve_incremental_ssp, make_incremental_ssp},
        Algorithm{"successive_shortest_path",
                  "textbook successive shortest paths, one excess after another",
                  solve_successive_shortest_path, nullptr, true},
        Algorithm{"cost_scaling",
                  "cost scaling: push-relabel with partial augmentation and price refine", nullptr,
                  nullptr, false, kCostScalingSettings, configure_cost_scaling},
        Algorithm{"network_simplex", "primal network simplex, from any flow", solve_network_simplex,
                  make_simplex_engine},
        Algorithm{"cycle_cancelling",
                  "a feasible flow, then negative cycles cancelled (slow on large networks)",
                  solve_cycle_cancelling, nullptr, true},
        Algorithm{"relaxation", "dual ascent along balanced arcs, arcs towards demand first",
                  nullptr, nullptr, false, kRelaxationSettings, configure_relaxation},
    };
    for (Algorithm& each : made) {
      if (each.configure != nullptr) each.configure({}, each);
    }
    return made;
  }();
  return rows;
}

}  // namespace

Solution Algorithm::solve(const Network& network, const Start& start,
                          const Control& control) const {
  return solve_proven(method, network, start, control);
}

std::unique_ptr<Engine> Algorithm::make_engine(const EngineStart& start, const Control& control,
                                               Stats& stats) const {
  if (make_own_engine != nullptr) return make_own_engine(start, control, stats);
  return std::make_unique<WarmStartEngine>(method, start, keeps_progress);
}

std::span<const Algorithm> algorithms() { return registry(); }

const Algorithm* find_algorithm(std::string_view name) {
  for (const Algorithm& algorithm : registry()) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

Algorithm configured(const Algorithm& algorithm, const AlgorithmSettings& settings) {
  Algorithm own = algorithm;
  own.from_scratch = settings.from_scratch;
  if (own.configure != nullptr) own.configure(settings, own);
  return own;
}

}  // namespace flowsolver
