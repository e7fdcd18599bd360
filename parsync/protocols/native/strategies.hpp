// How an agent ranks partitions from one decision round to the next (ParSync section 5.2), and the
// average delay that this may depend on. Integers only: every machine switches at the same task.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "schedulers/native/placer.hpp"

namespace agora {

constexpr int8_t kService = 1;  // shared_state.tasks.TaskClass: a long job

// One ranking throughout.
struct FixedStrategy {
  PartitionRanking ranking;
};
// Quality-first while the average delay is below tau, else latency-first.
struct AdaptiveStrategy {
  int64_t tau_us;
};
using Strategy = std::variant<FixedStrategy, AdaptiveStrategy>;

// The ranking for a batch begun when the agent's average scheduling delay is `delay_average_us`.
PartitionRanking ranking_by(const Strategy& strategy, int64_t delay_average_us);

// The ranking of each decision round of an agent.
//
// With a strategy of their own, long jobs are ranked apart from others (supplement B of ParSync).
// Run times are not known beforehand, so long jobs are those of services. Then all tasks of a round
// are short, or all are long.
class RoundRankings {
 public:
  // long_strategy: of long jobs; none: as the others. task_class: shared_state.tasks.TaskClass of
  // every task.
  RoundRankings(Strategy strategy, std::optional<Strategy> long_strategy,
                std::span<const int8_t> task_class);

  // Chooses the ranking of a batch that begins now, at this average scheduling delay.
  void begin_batch(int64_t delay_average_us);

  PartitionRanking ranking() const { return ranking_; }
  // Whether the ranking of a round depends on its tasks.
  bool tells_lengths() const { return long_strategy_.has_value(); }

  // The ranking of a round about the first of these tasks, and how many of them share it. Throws
  // std::invalid_argument for a task that does not exist.
  struct Shared {
    PartitionRanking ranking;
    size_t tasks;
  };
  Shared of(std::span<const int64_t> task) const;

 private:
  bool is_long(int64_t task) const;

  const Strategy strategy_;
  const std::optional<Strategy> long_strategy_;
  const std::span<const int8_t> task_class_;
  PartitionRanking ranking_;
  PartitionRanking long_ranking_ = PartitionRanking::Optimistic;
};

// Exponential moving average of the scheduling delay in fixed point.
//
// One fully committed batch weighs `coefficient_permille`; a part of a batch weighs its share.
class DelayAverage {
 public:
  static constexpr int kFraction = 16;  // it is kept in units of 2^-16 us

  explicit DelayAverage(int64_t coefficient_permille)
      : coefficient_permille_(coefficient_permille) {}

  int64_t us() const { return scaled_ >> kFraction; }
  int64_t scaled() const { return scaled_; }

  // `committed` tasks of a batch of `batch_size` had delays that sum to `delay_sum_us`. Throws
  // std::invalid_argument for an empty batch, std::overflow_error for averages of 2^47 us or more.
  void add(int64_t delay_sum_us, int64_t committed, int64_t batch_size);

 private:
  const int64_t coefficient_permille_;
  int64_t scaled_ = 0;
};

}  // namespace agora
