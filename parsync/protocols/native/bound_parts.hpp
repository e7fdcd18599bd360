// The parts of agents as Python holds them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent_view.hpp"
#include "round_planner.hpp"
#include "sorting_out.hpp"
#include "strategies.hpp"
#include "sync_policies.hpp"
#include "parsync/core/native/bound_queue_parts.hpp"
#include "parsync/metrics/native/bound_agent_log.hpp"
#include "schedulers/native/bound_types.hpp"
#include "shared_state/native/bound_fields.hpp"
#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"

namespace agora {

// An agent's view with the view of the cell that it refreshes.
class BoundAgentView {
 public:
  BoundAgentView(nanobind::object cell, std::vector<int32_t> visible, int64_t first_turn)
      : cell_(std::move(cell)),
        view_(nanobind::cast<ClusterView&>(cell_), std::move(visible), first_turn) {}

  bool on_reply(int64_t now_us, const SyncReply& reply, int64_t rounds, BoundAgentLog& log,
                nanobind::handle rows_changed) {
    const Column<int64_t> changed(rows_changed, "rows_changed", view_.order().size());
    return view_.on_reply(now_us, reply, rounds, log.log, changed.span());
  }

  ClusterView& cell() { return nanobind::cast<ClusterView&>(cell_); }
  AgentView& view() { return view_; }
  nanobind::object order() const { return array_of(view_.order()); }

 private:
  const nanobind::object cell_;
  AgentView view_;
};

// The planner of an agent's rounds, with what it borrows.
class BoundRoundPlanner {
 public:
  BoundRoundPlanner(uint64_t seed, std::string name, int quality, bool checks_seqnum,
                    const BoundDecisionClock* clock, bool charges_kept, nanobind::object planner,
                    nanobind::handle task_class, nanobind::object units)
      : greedy_(std::move(planner)),
        units_(std::move(units)),
        task_class_(task_class, "task_class", length_of(task_class, "task_class")),
        planner_(
            {seed, std::move(name), quality_of(quality), checks_seqnum, charges_kept},
            clock == nullptr ? std::nullopt : std::optional(clock->clock),
            nanobind::cast<BoundGreedyPlanner&>(greedy_).planner, task_class_.span(),
            units_.is_none() ? nullptr : &nanobind::cast<BoundUnplaceableUnits&>(units_).units) {}

  nanobind::tuple plan(ClusterView& view, nanobind::handle task, int64_t round, int64_t now_us,
                       int ranking, nanobind::handle partition_order) {
    const Column<const int64_t> offered(task, "task", length_of(task, "task"));
    const Column<const int32_t> order(partition_order, "partition_order",
                                      length_of(partition_order, "partition_order"));
    const ClaimedPlan& plan =
        planner_.plan(view, {round, now_us, ranking_of(ranking), offered.span()}, order.span());
    return arrays_of(plan, view.static_state().dimensions(), task);
  }

  nanobind::object seqnum() const { return array_of(planner_.seqnum()); }
  int64_t decision_us(int64_t elapsed_ns) const { return planner_.decision_us(elapsed_ns); }

  RoundPlanner& planner() { return planner_; }

 private:
  const nanobind::object greedy_, units_;
  const Column<const int8_t> task_class_;
  RoundPlanner planner_;
};

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

// What sorts out the tasks that an agent can never place. Units and log are kept alive by nanobind.
class BoundSortingOut {
 public:
  BoundSortingOut(const BoundUnplaceableUnits* units, nanobind::handle reason, BoundAgentLog& log)
      : reason_(reason, "reason"),
        sorting_out(units ? &units->units : nullptr, reason_.span(), log.log) {}

  BoundQueuedTasks placeable(int64_t now_us, BoundQueuedTasks& work) {
    QueuedTasks kept = copy_of(work.view());
    sorting_out.keep_placeable(now_us, kept);
    return BoundQueuedTasks(std::move(kept));
  }
  void record(int64_t now_us, nanobind::handle task) {
    sorting_out.record(now_us, Column<const int64_t>(task, "task", length_of(task, "task")).span());
  }

 private:
  OptionalColumn<int8_t> reason_;

 public:
  SortingOut sorting_out;
};

// Sync policies between Python and native code. The built-in ones are native, with classes in
// Python (bind_sync.cpp); native code asks one of a user's as a PythonSyncPolicy.

// A CheckedSyncPolicy (parsync/protocols/optimistic/sync/checked.py), which throws the error of a
// policy that breaks its contract. Used only while the interpreter's lock is held.
class PythonSyncPolicy final : public SyncPolicy {
 public:
  explicit PythonSyncPolicy(nanobind::object policy)
      : policy_(std::move(policy)),
        due_us_(policy_.attr("due_us")),
        partitions_(policy_.attr("partitions")),
        latest_(policy_.attr("latest")),
        at_every_attempt_(
            BoundValue<bool>::from(policy_.attr("at_every_attempt"), "at_every_attempt")),
        retry_us_(BoundValue<std::optional<int64_t>>::from(policy_.attr("retry_us"), "retry_us")),
        wants_feedback_(BoundValue<bool>::from(policy_.attr("wants_feedback"), "wants_feedback")) {}

  bool at_every_attempt() const override { return at_every_attempt_; }
  std::optional<int64_t> retry_us() const override { return retry_us_; }
  bool wants_feedback() const override { return wants_feedback_; }

  std::optional<int64_t> due_us(int64_t k) override {
    return BoundValue<std::optional<int64_t>>::from(due_us_(k), "due_us");
  }
  SharedColumn<int32_t> partitions(int64_t k) override {
    return BoundValue<SharedColumn<int32_t>>::from(partitions_(k), "partitions");
  }
  std::optional<int64_t> latest(int64_t now_us) override {
    return BoundValue<std::optional<int64_t>>::from(latest_(now_us), "latest");
  }

  void observe(const SyncFeedback& feedback) override {
    static const nanobind::handle made_of =
        nanobind::object(nanobind::module_::import_("parsync.protocols.optimistic.sync.policy")
                             .attr("SyncFeedback"))
            .release();
    policy_.attr("observe")(made_of(feedback.now_us, array_of(feedback.claims),
                                    array_of(feedback.conflicts), array_of(feedback.rows_changed),
                                    feedback.delay_us, feedback.queued,
                                    array_of(feedback.used_permille)));
  }

 private:
  const nanobind::object policy_;
  const nanobind::object due_us_, partitions_, latest_;  // its methods, looked up once
  // do not change during a run
  const bool at_every_attempt_;
  const std::optional<int64_t> retry_us_;
  const bool wants_feedback_;
};

// What make_checked_policy (checked.py) returned, as native code asks it: a native policy itself,
// which calls nothing of Python, else a PythonSyncPolicy. Keeps the Python object alive.
inline std::shared_ptr<SyncPolicy> sync_policy_from(nanobind::handle policy) {
  std::shared_ptr<SyncPolicy> native;
  if (nanobind::try_cast(policy, native, false) && native) return native;
  return std::make_shared<PythonSyncPolicy>(nanobind::borrow(policy));
}

}  // namespace agora
