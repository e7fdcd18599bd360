#include "engines/warm_start_engine.hpp"

#include <utility>

#include "engines/proven_infeasibility.hpp"

namespace flowsolver {

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

}  // namespace flowsolver
