#include "shortest_path/first_solve_engine.hpp"

#include <utility>

#include "cost_scaling/cost_scaling.hpp"
#include "engines/warm_start_engine.hpp"
#include "graph/start_state.hpp"

namespace flowsolver {

FirstSolveEngine::FirstSolveEngine(const EngineStart& start, bool scaling,
                                   std::int64_t fallback_operations, MakeEngine make,
                                   const Control& control)
    : network_(start.network),
      alive_(start.alive),
      root_(start.root),
      fallback_operations_(fallback_operations),
      make_(make),
      scaling_(scaling) {
  if (scaling) {
    set_inner(std::make_unique<WarmStartEngine>(solve_cost_scaling, start));
  } else {
    set_inner(make_(start, control));
  }
}

Status FirstSolveEngine::run(const Control& control, Stats& stats) {
  if (is_final_) return inner().run(control, stats);
  if (!scaling_) {
    const Status status = run_until_fallback(control, stats);
    is_final_ = status == Status::kOptimal;
    if (status != Status::kBudget) return status;
    if (const Status checked = control.check(stats); checked != Status::kOptimal) return checked;
    set_inner(std::make_unique<WarmStartEngine>(solve_cost_scaling,
                                                EngineStart{network_, alive_, root_, {}, {}}));
    scaling_ = true;
  }
  return run_scaling(control, stats);
}

// kBudget: at the budget, or at the operation limit of the fallback.
Status FirstSolveEngine::run_until_fallback(const Control& control, Stats& stats) {
  Control limited;
  limited.limit_operations(stats.operations() + fallback_operations_);
  limited.poll(
      [&control](const Stats& counted) { return control.check(counted) != Status::kOptimal; }, {});
  const Status status = inner().run(limited, stats);
  if (status != Status::kCancelled) return status;
  return control.check(stats) == Status::kBudget ? Status::kBudget : Status::kCancelled;
}

Status FirstSolveEngine::run_scaling(const Control& control, Stats& stats) {
  Stats counted;
  const Status status = inner().run(Control(control, stats), counted);
  stats.add(counted);
  const bool last_try = status == Status::kBudget && ++scaling_runs_ >= kMaxScalingRuns;
  if (status != Status::kOptimal && !last_try) return status;
  try {
    switch_to_final_engine(control, stats);
  } catch (const Stopped& stopped) {
    return stopped.status;
  }
  return last_try ? status : inner().run(control, stats);
}

// The final engine starts from the flow and prices that cost scaling reached.
void FirstSolveEngine::switch_to_final_engine(const Control& control, Stats& stats) {
  std::vector<std::int64_t> flow(network_.num_arcs(), 0), price(network_.num_nodes(), 0);
  for_each_until_cancelled(flow.size(), control, [&](std::size_t a) {
    if (alive_[a] != 0) flow[a] = inner().flow(static_cast<ArcId>(a), network_.tail[a]);
  });
  for_each_until_cancelled(price.size(), control, [&](std::size_t v) {
    price[v] = inner().price(static_cast<NodeId>(v));
  });
  price = relative_to_root(start_prices(network_, {{}, price}), root_);
  set_inner(make_({network_, alive_, root_, flow, price}, control));
  ++stats.rebuilds;
  scaling_ = false;
  is_final_ = true;
}

}  // namespace flowsolver
