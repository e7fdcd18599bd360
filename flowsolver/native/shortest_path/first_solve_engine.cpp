#include "shortest_path/first_solve_engine.hpp"

#include <utility>

#include "cost_scaling/cost_scaling.hpp"
#include "engines/warm_start_engine.hpp"
#include "graph/start_state.hpp"

namespace flowsolver {

FirstSolve::FirstSolve(const EngineStart& start, bool scaling, std::int64_t patience,
                       MakeEngine make, const Control& control)
    : network_(start.network),
      alive_(start.alive),
      root_(start.root),
      patience_(patience),
      make_(make),
      scaling_(scaling) {
  if (scaling) {
    engine_ = std::make_unique<WarmEngine>(solve_cost_scaling, start);
  } else {
    engine_ = make_(start, control);
  }
}

Status FirstSolve::run(const Control& control, Stats& stats) {
  if (settled_) return engine_->run(control, stats);
  if (!scaling_) {
    const Status status = run_with_patience(control, stats);
    settled_ = status == Status::kOptimal;
    if (status != Status::kBudget) return status;
    if (const Status looked = control.look(stats); looked != Status::kOptimal) return looked;
    engine_ = std::make_unique<WarmEngine>(solve_cost_scaling,
                                           EngineStart{network_, alive_, root_, {}, {}});
    scaling_ = true;
  }
  return run_scaling(control, stats);
}

// kBudget: the budget's, or patience has ended.
Status FirstSolve::run_with_patience(const Control& control, Stats& stats) {
  Control patient;
  patient.limit_operations(stats.operations() + patience_);
  patient.poll(
      [&control](const Stats& counted) { return control.look(counted) != Status::kOptimal; }, {});
  const Status status = engine_->run(patient, stats);
  if (status != Status::kCancelled) return status;
  return control.look(stats) == Status::kBudget ? Status::kBudget : Status::kCancelled;
}

Status FirstSolve::run_scaling(const Control& control, Stats& stats) {
  Stats counted;
  const Status status = engine_->run(Control(control, stats), counted);
  stats.add(counted);
  const bool last_try = status == Status::kBudget && ++tries_ >= kTries;
  if (status != Status::kOptimal && !last_try) return status;
  try {
    settle(control, stats);
  } catch (const Stopped& stopped) {
    return stopped.status;
  }
  return last_try ? status : engine_->run(control, stats);
}

// With what cost scaling has got to.
void FirstSolve::settle(const Control& control, Stats& stats) {
  std::vector<std::int64_t> flow(network_.num_arcs(), 0), price(network_.num_nodes(), 0);
  build_each(flow.size(), control, [&](std::size_t a) {
    if (alive_[a] != 0) flow[a] = engine_->flow(static_cast<ArcId>(a), network_.tail[a]);
  });
  build_each(price.size(), control,
             [&](std::size_t v) { price[v] = engine_->price(static_cast<NodeId>(v)); });
  price = grounded(start_prices(network_, {{}, price}), root_);
  engine_ = make_({network_, alive_, root_, flow, price}, control);
  ++stats.rebuilds;
  scaling_ = false;
  settled_ = true;
}

}  // namespace flowsolver
