#include "engines/warm_start_engine.hpp"

#include <utility>

#include "engines/proven_infeasibility.hpp"

namespace flowsolver {

Status WarmEngine::run(const Control& control, Stats& stats) {
  keep_cut({});
  if (const Status status = control.look(stats); status != Status::kOptimal) return status;
  Solution answer = solve_proven(method_, network_, start(), control);
  stats.add(answer.stats);
  keep_cut(std::move(answer.cut));
  const Status status = answer.status;
  if (status == Status::kOptimal || status == Status::kBudget) keep(std::move(answer));
  return status;
}

}  // namespace flowsolver
