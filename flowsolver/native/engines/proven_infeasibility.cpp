#include "engines/proven_infeasibility.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "graph/cut_search.hpp"
#include "graph/start_state.hpp"
#include "reference/cycle_cancelling.hpp"

namespace flowsolver {

namespace {

[[noreturn]] void throw_repeated_disproof() {
  throw std::logic_error("flowsolver: a feasible network was found infeasible again and again");
}

Solution solve_on(Method method, const Network& network, const Start& start, const Control& control,
                  const Stats& before) {
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

Solution solve_proven(Method method, const Network& network, const Start& start,
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

}  // namespace flowsolver
