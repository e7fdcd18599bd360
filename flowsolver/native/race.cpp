#include "race.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/capacity_level.hpp"

namespace flowsolver {

namespace {

RaceAnswer race_within_range(const Network& network, std::span<const Algorithm* const> racers,
                             const Start& start, const Control& control, WinnerRule winner_rule) {
  if (racers.size() == 1)
    return {racers.front()->solve(network, start, control), racers.front(), {}};
  std::vector<Solution> solutions(racers.size());
  const Outcome outcome = run_racers(racers.size(), winner_rule, control,
                                     [&](std::size_t i, const Control& own, Stats& stats) {
                                       solutions[i] = racers[i]->solve(network, start, own);
                                       stats = solutions[i].stats;
                                       const Status status = solutions[i].status;
                                       if (status == Status::kCancelled)
                                         // freed in the racer's thread, not by the waiting one
                                         solutions[i] = {};
                                       return status;
                                     });
  return {std::move(solutions[outcome.leader]), racers[outcome.leader], outcome.stop_duration};
}

// The race on the network with capacities above the level lowered to it.
RaceAnswer race_lowered(const Network& network, std::span<const Algorithm* const> racers,
                        const Start& start, const Control& control, WinnerRule winner_rule,
                        std::int64_t level) {
  std::vector<std::int64_t> flow(start.flow.begin(), start.flow.end());
  for (std::int64_t& units : flow) units = std::min(units, level);
  RaceAnswer answer =
      race_within_range(lowered(network, level), racers, {flow, start.price}, control, winner_rule);
  Solution& solution = answer.solution;
  if (solution.status != Status::kOptimal && solution.status != Status::kBadCostRange)
    return answer;
  const Status cycle = find_unbounded_cycle(network, level, control, solution.stats);
  if (cycle != Status::kOptimal) solution.status = cycle;
  return answer;
}

}  // namespace

RaceAnswer race(const Network& network, std::span<const Algorithm* const> racers,
                const Start& start, const Control& control, WinnerRule winner_rule) {
  RaceAnswer answer = race_within_range(network, racers, start, control, winner_rule);
  if (answer.solution.status != Status::kBadCapacityRange) return answer;
  const std::optional<std::int64_t> level = capacity_level(network);
  return level ? race_lowered(network, racers, start, control, winner_rule, *level) : answer;
}

}  // namespace flowsolver
