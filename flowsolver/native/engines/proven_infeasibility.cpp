#include "engines/proven_infeasibility.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "graph/cut_search.hpp"
#include "graph/start_state.hpp"
#include "reference/cycle_cancelling.hpp"

namespace flowsolver {

namespace {

[[noreturn]] void refuse() {
  throw std::logic_error("flowsolver: a feasible network was found infeasible again and again");
}

Solution solve_on(Method method, const Network& network, const Start& start, const Control& control,
                  const Stats& before) {
  Solution solution = method(network, start, Control(control, before));
  solution.stats.add(before);
  return solution;
}

// An optimum by the plain reference, of a network that is feasible.
Solution solve_plainly(const Network& network, const Control& control, const Stats& before) {
  Solution solution = solve_on(solve_cycle_cancelling, network, {}, control, before);
  if (solution.status == Status::kInfeasible) refuse();
  return solution;
}

}  // namespace

Solution solve_proven(Method method, const Network& network, const Start& start,
                      const Control& control) {
  Solution solution = method(network, start, control);
  bool from_nothing = start.flow.empty() && start.price.empty();
  while (solution.status == Status::kInfeasible) {
    CutSearch search = find_cut(network, solution.flow, control, solution.stats);
    if (search.status == Status::kBudget)
      as_int64(flow_cost(network, solution.flow), solution.cost);
    if (search.status == Status::kInfeasible) {  // the pseudoflow has served its purpose
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
    if (from_nothing) return solve_plainly(network, control, solution.stats);
    solution = solve_on(method, network, {}, control, solution.stats);
    from_nothing = true;
  }
  return solution;
}

ProvenRun run_proven(std::unique_ptr<Engine>& engine, const EngineStart& nothing,
                     const MakeEngine& make, const Control& control, Stats& stats) {
  ProvenRun run{engine->run(control, stats), {}, false};
  for (int times = 1; run.status == Status::kInfeasible; ++times) {
    const std::span<const NodeId> known = engine->cut();
    if (!known.empty()) {
      run.cut.assign(known.begin(), known.end());
      break;
    }
    CutSearch search = find_cut(nothing.network, nothing.alive, *engine, control, stats);
    run.status = search.status;
    run.cut = std::move(search.cut);
    if (run.status != Status::kOptimal) break;
    ++stats.disproved;
    EngineStart start = nothing;
    Solution plain;
    std::vector<std::int64_t> price;
    if (times == 2) {
      plain = solve_plainly(nothing.network, control, stats);
      stats = plain.stats;
      run.status = plain.status;
      if (run.status != Status::kOptimal) break;
      price = grounded(start_prices(nothing.network, {{}, plain.potential}), nothing.root);
      start.flow = plain.flow;
      start.price = price;
    } else if (times > 2) {
      refuse();
    }
    run.made_anew = true;
    engine = make(start, control, stats);
    run.status = engine == nullptr ? Status::kCancelled : engine->run(control, stats);
  }
  return run;
}

}  // namespace flowsolver
