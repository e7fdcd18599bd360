#include "shortest_path/incremental_ssp.hpp"

#include <utility>

#include "unit_source/unit_source_engine.hpp"
#include "unit_source/initial_assignment.hpp"
#include "cost_scaling/cost_scaling.hpp"
#include "graph/start_state.hpp"
#include "shortest_path/first_solve_engine.hpp"
#include "shortest_path/ssp_engine.hpp"

namespace flowsolver {

namespace {

// How often searches may scan every half-edge before cost scaling takes over, which then scans each
// a hundred times or more.
constexpr std::int64_t kFallbackScans = 8;

std::int64_t fallback_operations(const Network& network) {
  return 2 * kFallbackScans * static_cast<std::int64_t>(network.num_arcs());
}

std::unique_ptr<Engine> make_growing_engine(const EngineStart& start, const Control& control) {
  return mostly_unit_sources(start, control) ? make_unit_source_engine(start, control)
                                             : make_ssp_engine(start, true, kInfinity, control);
}

enum class SolvedBy { kShortestPaths, kCostScaling };

// From zero: the state that searches reached is no better a start (equally slow on general networks
// and network-aware cells).
SolvedBy solve_by_cost_scaling(const Network& network, const Control& control, Solution& solution) {
  const Stats before = solution.stats;
  solution = solve_cost_scaling(network, {}, Control(control, before));
  solution.stats.add(before);
  return SolvedBy::kCostScaling;
}

// By the engine, from a start, or from the sources assigned so far.
SolvedBy solve_by_engine(const Network& network, NodeId root, InitialAssignment&& from,
                         std::int64_t max_operations, const Control& control, Solution& solution) {
  const auto engine =
      make_ssp_engine({network, {}, root, from.flow, from.price}, false, max_operations, control);
  ++solution.stats.rebuilds;
  solution.status = engine->run(control, solution.stats);
  // at the control's budget, or at the limit of the fallback
  if (solution.status == Status::kBudget) {
    solution.status = control.check(solution.stats);
    if (solution.status == Status::kOptimal)
      return solve_by_cost_scaling(network, control, solution);
  }
  if (solution.status == Status::kCancelled) return SolvedBy::kShortestPaths;
  solution.flow = std::move(from.flow);
  if (solution.flow.empty() &&
      fill_zeros(solution.flow, network.num_arcs(), control) != Status::kOptimal) {
    throw Stopped{Status::kCancelled};
  }
  for (const FlowBefore& before : engine->touched_arcs()) {
    solution.flow[before.arc] = engine->flow(before.arc, network.tail[before.arc]);
  }
  solution.potential.resize(network.num_nodes());
  for (NodeId v = 0; v < network.num_nodes(); ++v) solution.potential[v] = engine->price(v);
  if (!as_int64(engine->cost(), solution.cost) && solution.status == Status::kOptimal)
    solution.status = Status::kBadCostRange;
  return SolvedBy::kShortestPaths;
}

// Returns by what the network was solved, or stopped.
SolvedBy solve_in_range(const Network& network, const Start& start, bool narrow,
                        const Control& control, Solution& solution) {
  const NodeId root = largest_sink(network);
  InitialAssignment placed;
  if (!start.flow.empty() || !start.price.empty()) {
    placed.flow.assign(start.flow.begin(), start.flow.end());
    if (!start.price.empty()) placed.price = relative_to_root(start.price, root);
    return solve_by_engine(network, root, std::move(placed), kInfinity, control, solution);
  }
  placed = assign_unit_sources(network, root, narrow, control, solution.stats);
  if (placed.status == Status::kOptimal && !placed.local)
    return solve_by_cost_scaling(network, control, solution);
  if (placed.status == Status::kOptimal && !placed.complete) {
    return solve_by_engine(network, root, std::move(placed), fallback_operations(network), control,
                           solution);
  }
  solution.status = placed.status;
  if (!as_int64(placed.cost, solution.cost) && placed.complete)
    solution.status = Status::kBadCostRange;
  solution.flow = std::move(placed.flow);
  solution.potential = std::move(placed.price);
  return SolvedBy::kShortestPaths;
}

}  // namespace

Solution solve_incremental_ssp(const Network& network, const Start& start, const Control& control) {
  Solution solution;
  const Ranges ranges = check_ranges(network, control);
  solution.status = ranges.status;
  try {
    if (ranges.status == Status::kOptimal && network.num_nodes() > 0) {
      solve_in_range(network, start, ranges.narrow, control, solution);
    }
  } catch (const Stopped& stopped) {
    solution.status = stopped.status;
  }
  if (solution.status == Status::kCancelled || !solution.potential.empty()) return solution;
  solution.flow.assign(network.num_arcs(), 0);
  solution.potential.assign(network.num_nodes(), 0);
  return solution;
}

std::unique_ptr<Engine> make_incremental_ssp(const EngineStart& start, const Control& control,
                                             Stats& stats) {
  ++stats.rebuilds;
  try {
    if (!start.flow.empty() || !start.price.empty()) return make_growing_engine(start, control);
    Solution solution;
    const SolvedBy by =
        solve_in_range(start.network, {}, fits_narrow(start.network, control), control, solution);
    stats.add(solution.stats);
    if (solution.status == Status::kCancelled) return nullptr;
    // If some source has no path, the engine starts from zero and finds that out itself.
    const bool stopped = solution.status == Status::kBudget;
    if ((!stopped && solution.status != Status::kOptimal) || solution.potential.empty()) {
      return make_growing_engine(start, control);
    }
    const std::vector<std::int64_t> price =
        relative_to_root(start_prices(start.network, {{}, solution.potential}), start.root);
    const EngineStart from{start.network, start.alive, start.root, solution.flow, price};
    if (!stopped) return make_growing_engine(from, control);
    const bool scaling = by == SolvedBy::kCostScaling;
    return std::make_unique<FirstSolveEngine>(from, scaling, fallback_operations(start.network),
                                              make_growing_engine, control);
  } catch (const Stopped&) {
    return nullptr;
  }
}

}  // namespace flowsolver
