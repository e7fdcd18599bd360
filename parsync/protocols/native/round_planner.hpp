// The decision rounds of agents: how they rank partitions and how long they last; and what plans
// those of native placers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "schedulers/native/contract.hpp"
#include "schedulers/native/placer.hpp"

namespace agora {

// How an agent ranks partitions from one decision round to the next (ParSync section 5.2), and the
// average delay that this may depend on. Integers only: every machine switches at the same task.

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

// The time from a round's start within which the decision on its last task has to begin, and the
// number of partitions that the decision on each task may scan.
struct RoundWindow {
  int64_t us;
  int64_t partitions_per_task;
};

// The window of a round that begins now; none: its length has no limit.
// end_us: the time by which the decision on the last task has to begin; longest_us: the longest
// time from now until then; none: no limit. partitions: of the cell.
std::optional<RoundWindow> round_window(int64_t now_us, std::optional<int64_t> end_us,
                                        std::optional<int64_t> longest_us, PartitionRanking ranking,
                                        size_t partitions);

// The planning of an agent's decision rounds by a built-in placer, and how long that takes:
//
//   most_tasks()    how many tasks a round that begins now may be about (round_window)
//   plan()          sets aside units that can never be placed; for the others the placer claims
//                   machines in the agent's view; it draws from a random stream that follows from
//                   the root seed, the agent's name and the number of the round
//   decision_us()   the decision time of the round just planned
//   take()          its plan, for the transaction
//
// Plans of other schedulers are made in Python (rounds.py).
class RoundPlanner {
 public:
  struct Settings {
    uint64_t seed;
    std::string name;
    PartitionQuality quality;
    bool checks_seqnum;  // transactions need the sequence numbers of their machines
    // Whether tasks that were not offered cost time (DecisionClock.charges_kept).
    bool charges_kept;
  };

  // clock: none if the caller computes decision times itself and does not ask for them here.
  // task_class: shared_state.tasks.TaskClass of every task. units: none: all can be placed.
  RoundPlanner(Settings settings, std::optional<DecisionClock> clock, TaskPlanner& planner,
               std::span<const int8_t> task_class, const UnplaceableUnits* units)
      : settings_(std::move(settings)),
        clock_(std::move(clock)),
        planner_(planner),
        task_class_(task_class),
        units_(units) {}

  struct Round {
    int64_t number;
    int64_t now_us;
    PartitionRanking ranking;
    std::span<const int64_t> offered;
  };
  // Takes the claims out of the view. partition_order: the freshest first. Throws
  // std::invalid_argument, with the view as it was, for input out of range.
  const ClaimedPlan& plan(ClusterView& view, const Round& round,
                          std::span<const int32_t> partition_order);

  // The most tasks that a round may be about that begins now; none: any number, or the decision
  // time is not known beforehand.
  std::optional<int64_t> most_tasks(const std::optional<RoundWindow>& window) const {
    return clock_ && window ? tasks_within(*clock_, window->us, window->partitions_per_task)
                            : std::nullopt;
  }

  // Of the round planned last: the sequence numbers that the view shows of its machines, if
  // transactions need them; how long it takes to decide; its plan, taken out.
  const std::vector<uint32_t>& seqnum() const { return seqnum_; }
  int64_t decision_us(int64_t elapsed_ns) const;
  ClaimedPlan take() { return std::exchange(plan_, {}); }

 private:
  const Settings settings_;
  const std::optional<DecisionClock> clock_;
  TaskPlanner& planner_;
  const std::span<const int8_t> task_class_;
  const UnplaceableUnits* const units_;

  // of the round planned last
  ClaimedPlan plan_;
  std::vector<uint32_t> seqnum_;
  DecisionWork work_{};
  std::vector<uint8_t> never_;
};

// How many of these tasks are of services. Throws std::invalid_argument for a task that does not
// exist.
int64_t count_services(std::span<const int8_t> task_class, std::span<const int64_t> task);

}  // namespace agora
