#include "race.hpp"

#include <utility>
#include <vector>

namespace flowsolver {

RaceAnswer race(const Network& network, std::span<const Algorithm* const> racers,
                const Start& start, const Control& control, Winning winning) {
  if (racers.size() == 1)
    return {racers.front()->solve(network, start, control), racers.front(), {}};
  std::vector<Solution> solutions(racers.size());
  const Outcome outcome = run_contest(racers.size(), winning, control,
                                      [&](std::size_t i, const Control& own, Stats& stats) {
                                        solutions[i] = racers[i]->solve(network, start, own);
                                        stats = solutions[i].stats;
                                        const Status status = solutions[i].status;
                                        if (status == Status::kCancelled)
                                          solutions[i] = {};  // freed here, not by who waits
                                        return status;
                                      });
  return {std::move(solutions[outcome.leader]), racers[outcome.leader], outcome.stopping};
}

}  // namespace flowsolver
