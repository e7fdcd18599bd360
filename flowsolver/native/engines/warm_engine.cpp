#include "engines/warm_engine.hpp"

#include <utility>

namespace flowsolver {

Status WarmEngine::run(const Control& control, Stats& stats) {
  if (const Status status = control.look(stats); status != Status::kOptimal) return status;
  Solution answer = method_(network_, start(), control);
  stats.add(answer.stats);
  const Status status = answer.status;
  if (status == Status::kOptimal || status == Status::kBudget) keep(std::move(answer));
  return status;
}

}  // namespace flowsolver
