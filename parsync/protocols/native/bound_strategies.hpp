// The rankings of rounds as Python holds them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "schedulers/native/bound_planner.hpp"
#include "strategies.hpp"

namespace agora {

struct BoundStrategy {
  Strategy strategy;
};

// The rankings of an agent's rounds, with the column of the task table that they borrow.
class BoundRoundRankings {
 public:
  BoundRoundRankings(const BoundStrategy& strategy, const BoundStrategy* long_strategy,
                     nanobind::handle task_class)
      : task_class_(task_class, "task_class", length_of(task_class, "task_class")),
        rankings(strategy.strategy,
                 long_strategy == nullptr ? std::nullopt : std::optional(long_strategy->strategy),
                 task_class_.span()) {}

  nanobind::tuple of(nanobind::handle task) const {
    const Column<const int64_t> tasks(task, "task", length_of(task, "task"));
    const RoundRankings::Shared shared = rankings.of(tasks.span());
    return nanobind::make_tuple(static_cast<int>(shared.ranking), shared.tasks);
  }

 private:
  const Column<const int8_t> task_class_;

 public:
  RoundRankings rankings;
};

}  // namespace agora
