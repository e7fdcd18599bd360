// The engine of a first solve that was stopped at a budget, until that solve is complete
// (incremental_ssp.hpp, "Start").
//
// Method. It continues where the solve was stopped. If that was in shortest paths, they continue
// with the operation limit of a first solve, and cost scaling from zero takes over beyond it. If
// cost scaling had taken over already, it continues from its own flow and prices. So the total
// work is at most a few times that of a solve without a budget. When the network is solved, the
// engine for later rounds is made from the answer, and all calls are passed on to it.
//
// Termination. Cost scaling need not make progress in resolves whose budgets are shorter than its
// phases. After kMaxScalingRuns runs that were stopped in it, shortest paths continue from its flow
// and prices for good: each augmentation is lasting progress.
#pragma once

#include <memory>

#include "engines/forwarding_engine.hpp"

namespace flowsolver {

class FirstSolveEngine final : public ForwardingEngine {
 public:
  using MakeEngine = std::unique_ptr<Engine> (*)(const EngineStart& start, const Control& control);

  // `start`: the state in which the solve was stopped. `scaling`: whether cost scaling had taken
  // over. `fallback_operations`: after so many, cost scaling takes over. `make`: makes the engine
  // for later rounds; throws Stopped.
  FirstSolveEngine(const EngineStart& start, bool scaling, std::int64_t fallback_operations,
                   MakeEngine make, const Control& control);

  Status run(const Control& control, Stats& stats) override;
  bool keeps_progress() const override { return !scaling_; }
  // Not before the final engine is in place: what an earlier one touched is lost with it.
  bool local() const override { return is_final_ && inner().local(); }

 private:
  static constexpr int kMaxScalingRuns = 2;

  Status run_until_fallback(const Control& control, Stats& stats);
  Status run_scaling(const Control& control, Stats& stats);
  void switch_to_final_engine(const Control& control, Stats& stats);

  const Network& network_;
  const std::vector<std::uint8_t>& alive_;
  const NodeId root_;
  const std::int64_t fallback_operations_;
  const MakeEngine make_;
  bool scaling_;  // the inner engine is cost scaling's, not one of make_
  int scaling_runs_ = 0;
  bool is_final_ = false;  // the inner engine stays
};

}  // namespace flowsolver
