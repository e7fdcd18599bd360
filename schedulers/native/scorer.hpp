// The scoring kernel: tasks one after the other, each to the best of the machines that pass the
// filters, by the rule of a known central scheduler.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "contract.hpp"
#include "objective.hpp"
#include "placer.hpp"
#include "priority_preemption.hpp"
#include "scoring_memory.hpp"
#include "scoring_rules.hpp"
#include "shared_state/native/view.hpp"

namespace agora {

enum class ScoringKind : int { Kubernetes = 0, SwarmKit = 1, Nomad = 2, Stranded = 3 };
// By value, as schedulers.scoring.scheduler.ScoringKind names them.
constexpr std::array kScoringKindNames{"KUBERNETES", "SWARMKIT", "NOMAD", "STRANDED"};
static_assert(kScoringKindNames.size() == static_cast<size_t>(ScoringKind::Stranded) + 1);

// One scheduler's scoring, with what it remembers between its plans.
//
// A plan decides on tasks in the order given, a gang at its first member's turn, whole or not at
// all. Each goes to a machine in the view as the tasks before it left it; the view itself is left
// as it was. Tasks alike that follow each other (of one job, request and preference set) are a
// *group*: what depends on these alone is made ready once. A gang that finds no room ends the
// group.
//
// A plan remembers its own placements at once (OwnTasks), before the cell has answered.
class Scorer {
 public:
  // remembers: whether observe() will be told what becomes of tasks.
  Scorer(const Catalog& catalog, std::unique_ptr<ScoringRule> rule, bool remembers);

  // How a call of plan() continues the one before it, for schedulers that plan in several calls.
  struct Continuation {
    bool stream = false;        // draws go on where they ended; the key of `tasks` is not used
    bool stop_at_wait = false;  // stops after the first task of no gang that is left waiting
  };
  struct Decided {
    size_t tasks;  // in order, each gang at its first member's turn
    ScoreWork work;
  };
  // Writes a row for each task, -1 where it is left waiting or not decided. Throws
  // std::invalid_argument for input out of range, before anything has changed.
  Decided plan(ClusterView& view, const ScoreRequest& tasks, const Continuation& continuation,
               std::span<int32_t> machine);

  // Where ending tasks makes room for a task that no machine has room for, as Kubernetes chooses
  // it. Draws go on where those of plan() ended.
  MadeRoom make_room(ClusterView& view, const RunningByMachine& running, const Preemptor& task,
                     int32_t preference, const CandidateShare& share);

  // What became of tasks; `job` is given for those adopted, and empty for others.
  void observe(ChangeKind change, int64_t at_us, std::span<const int64_t> task,
               std::span<const int32_t> machine, std::span<const int64_t> job);

 private:
  struct Unit {
    size_t end;  // in order_
    bool gang;
  };

  void check(const ClusterView& view, const ScoreRequest& tasks,
             std::span<const int32_t> machine) const;
  void set_order(const ScoreRequest& tasks);
  bool alike(const ScoreRequest& tasks, size_t one, size_t other) const;

  const Catalog& catalog_;
  const std::unique_ptr<ScoringRule> rule_;
  const bool remembers_;
  OwnTasks own_;
  RecentFailures failures_;
  AvoidedMachines avoided_;
  RowAffinity affinity_;
  Stream stream_{0};               // of the last plan
  std::vector<uint32_t> order_;    // of the tasks of the plan
  std::vector<Unit> units_;        // of order_
  std::vector<size_t> group_end_;  // by place in order_: of the tasks alike from there on
};

// Plans by one scheduler's scoring. It counts plans, tasks, rows held against the filters and rows
// scored. It ranks no partitions, and so scans all of them for each task.
class ScoringPlanner final : public TaskPlanner {
 public:
  // job, task_class: of every task of the table. Throws std::invalid_argument for others.
  ScoringPlanner(Scorer& scorer, const PlacingColumns& table, std::span<const int64_t> job,
                 std::span<const int8_t> task_class, const std::array<int64_t, 4>& weights_ps);

 private:
  Work find(ClusterView& view, std::span<const int64_t> task, const OfferedTasks& columns,
            const PlanContext& context, std::span<int32_t> machine) override;

  Scorer& scorer_;
  const std::span<const int64_t> job_;
  const std::span<const int8_t> task_class_;
  // of the tasks of the round being planned
  std::vector<int64_t> jobs_;
  std::vector<int8_t> classes_;
};

}  // namespace agora
