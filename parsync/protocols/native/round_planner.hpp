// The planning of an agent's decision rounds by a built-in greedy placer, and how long that takes:
//
//   most_tasks()    how many tasks a round that begins now may be about (round_window)
//   plan()          sets aside units that can never be placed; for the others the placer claims
//                   machines in the agent's view; it draws from a random stream that follows from
//                   the root seed, the agent's name and the number of the round
//   decision_us()   the decision time of the round just planned
//   take()          its plan, for the transaction
//
// Plans of other schedulers are made in Python (rounds.py).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "schedulers/native/contract.hpp"
#include "schedulers/native/placer.hpp"

namespace agora {

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
  RoundPlanner(Settings settings, std::optional<DecisionClock> clock, GreedyPlanner& planner,
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
  GreedyPlanner& planner_;
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
