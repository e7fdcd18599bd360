// The parts of agents as Python holds them, with what they borrow.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent_view.hpp"
#include "pending_queue.hpp"
#include "round_planner.hpp"
#include "sync.hpp"
#include "parsync/core/native/bound_queue_parts.hpp"
#include "parsync/metrics/native/bound_agent_log.hpp"
#include "schedulers/native/bound_types.hpp"
#include "shared_state/native/bound_fields.hpp"
#include "shared_state/native/column.hpp"

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
      : tasks_(std::move(planner)),
        units_(std::move(units)),
        task_class_(task_class, "task_class", length_of(task_class, "task_class")),
        planner_(
            {seed, std::move(name), quality_of(quality), checks_seqnum, charges_kept},
            clock == nullptr ? std::nullopt : std::optional(clock->clock),
            nanobind::cast<BoundTaskPlanner&>(tasks_).planner(), task_class_.span(),
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
  const nanobind::object tasks_, units_;
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
// Python (module.cpp); native code asks one of a user's as a PythonSyncPolicy.

// A CheckedSyncPolicy (parsync/protocols/optimistic/sync.py), which throws the error of a
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
        nanobind::object(
            nanobind::module_::import_("parsync.protocols.optimistic.sync").attr("SyncFeedback"))
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

// What make_checked_policy (sync.py) returned, as native code asks it: a native policy itself,
// which calls nothing of Python, else a PythonSyncPolicy. Keeps the Python object alive.
inline std::shared_ptr<SyncPolicy> sync_policy_from(nanobind::handle policy) {
  std::shared_ptr<SyncPolicy> native;
  if (nanobind::try_cast(policy, native, false) && native) return native;
  return std::make_shared<PythonSyncPolicy>(nanobind::borrow(policy));
}

// The queues of agents.

// The tasks that leave the queue, as arrays.
struct BoundExits {
  nanobind::object too_large = array_of(std::span<const int64_t>{});
  nanobind::object abandoned = array_of(std::span<const int64_t>{});
  int64_t retry = 0;
};

// An attribute of Python's; its name is kept, for a round reads a dozen.
template <size_t n>
struct Name {
  char text[n];
  constexpr Name(const char (&name)[n]) { std::ranges::copy(name, text); }  // NOLINT: a literal
};

template <Name name>
nanobind::handle attribute_name() {
  static const nanobind::handle kept =
      nanobind::steal(PyUnicode_InternFromString(name.text)).release();
  return kept;
}

template <Name name>
nanobind::object get(nanobind::handle object) {
  nanobind::object value =
      nanobind::steal(PyObject_GetAttr(object.ptr(), attribute_name<name>().ptr()));
  if (!value.is_valid()) throw nanobind::python_error();
  return value;
}

template <Name name>
void set(nanobind::handle object, const nanobind::object& value) {
  if (PyObject_SetAttr(object.ptr(), attribute_name<name>().ptr(), value.ptr()) != 0)
    throw nanobind::python_error();
}

// A column of a Python plan; an empty one is not looked at.
template <class T>
class PlanColumn {
 public:
  PlanColumn(nanobind::object array, const char* field) : array_(std::move(array)) {
    if (const size_t length = length_of(array_, field)) column_.emplace(array_, field, length);
  }
  std::span<const T> span() const { return column_ ? column_->span() : std::span<const T>{}; }

 private:
  nanobind::object array_;
  std::optional<Column<const T>> column_;
};

// What a queue has to know of the plan of a Python Round.
class Plan {
 public:
  Plan(nanobind::handle round, bool with_claims)
      : plan_(get<"plan">(round)),
        pending_(get<"pending">(plan_), "plan.pending"),
        reason_(get<"pending_reason">(plan_), "plan.pending_reason") {
    if (!with_claims) return;
    in_full_ = is_in_full(round);
    claimed_.emplace(get<"task">(plan_), "plan.task");
  }

  static bool is_in_full(nanobind::handle round) {
    return get<"in_full">(round).is(nanobind::handle(Py_True));
  }

  PlannedTasks tasks() const {
    return {claimed_ ? claimed_->span() : std::span<const int64_t>{}, pending_.span(),
            reason_.span(), in_full_};
  }

 private:
  nanobind::object plan_;
  PlanColumn<int64_t> pending_;
  PlanColumn<int8_t> reason_;
  std::optional<PlanColumn<int64_t>> claimed_;
  bool in_full_ = false;
};

// A queue with what it borrows of arrays; objects are kept alive by nanobind.
class BoundQueue {
 public:
  BoundQueue(nanobind::handle gang, bool keeps)
      : gang_(gang, "gang"),
        keeps_(keeps),
        no_exits_(nanobind::module_::import_("parsync.protocols._native").attr("NO_EXITS")) {}

  void limit_jobs(nanobind::handle job, int64_t jobs_max) {
    job_.emplace(job, "job", length_of(job, "job"));
    queue->limit_jobs(job_->span(), jobs_max);
  }

  void add(BoundQueuedTasks& work) { queue->add(work.view()); }

  BoundQueuedTasks take(std::optional<int64_t> limit) {
    QueuedTasks offered;
    queue->take(limit, offered);
    return BoundQueuedTasks(std::move(offered));
  }

  // The very tasks that Python was offered where the plan is known to claim them.
  nanobind::object claimed_tasks(nanobind::handle round) {
    nanobind::object offered = get<"offered">(round);
    if (Plan::is_in_full(round)) return offered;
    load(offered, round_.offered);
    load(get<"claimed">(round), round_.claimed);
    QueuedTasks claimed;
    queue->claimed_tasks(round_, Plan(round, true).tasks(), claimed);
    return nanobind::cast(BoundQueuedTasks(std::move(claimed)));
  }

  nanobind::object on_planned(nanobind::handle round) {
    const Plan plan(round, keeps_);
    int64_t start_us = 0;
    round_.offered.clear();
    if (keeps_ || !plan.tasks().pending.empty()) {  // else nothing goes back into it
      load(get<"offered">(round), round_.offered);
      start_us = nanobind::cast<int64_t>(get<"start_us">(round));
    }
    const QueueExits& exits = queue->on_planned(round_, plan.tasks(), start_us);
    if (round_.blocked) set<"blocked">(round, nanobind::bool_(true));
    if (round_.since_us != SkippedUnits::kNotYet)
      set<"since_us">(round, nanobind::int_(round_.since_us));
    const auto keep = [](QueuedTasks& tasks) {
      return nanobind::cast(BoundQueuedTasks(std::exchange(tasks, {})));
    };
    if (!round_.left.empty()) set<"left">(round, keep(round_.left));
    if (!round_.claimed.empty()) set<"claimed">(round, keep(round_.claimed));
    return exits_of(exits);
  }

  nanobind::object on_committed(nanobind::handle round, BoundQueuedTasks& losers) {
    const Plan plan(round, false);
    load(get<"left">(round), round_.left);
    if (losers.size() > 0 || !round_.left.empty()) {  // else everything was placed
      load(get<"offered">(round), round_.offered);
      round_.since_us = nanobind::cast<int64_t>(get<"since_us">(round));
    }
    return exits_of(queue->on_committed(round_, plan.tasks(), losers.view()));
  }

  nanobind::list waiting(int64_t now_us) {
    nanobind::list parts;
    queue->waiting(now_us, [&](std::span<const int64_t> task, Waiting why, int64_t ahead) {
      parts.append(nanobind::make_tuple(array_of(task), static_cast<int>(why), ahead));
    });
    return parts;
  }

  std::unique_ptr<PendingQueue> queue;

 protected:
  OptionalColumn<int64_t> gang_;

 private:
  nanobind::object exits_of(const QueueExits& exits) const {
    if (exits.empty()) return no_exits_;
    return nanobind::cast(BoundExits{array_of(std::span<const int64_t>(exits.too_large)),
                                     array_of(std::span<const int64_t>(exits.abandoned)),
                                     exits.retry});
  }

  static void load(const nanobind::object& face, QueuedTasks& tasks) {
    tasks.assign(nanobind::cast<BoundQueuedTasks&>(face).view());
  }

  const bool keeps_;                 // its scheduler remembers what waits
  const nanobind::object no_exits_;  // where nothing leaves, as in nearly every round
  std::optional<Column<const int64_t>> job_;
  RoundTasks round_;
};

class BoundAgentQueue : public BoundQueue {
 public:
  BoundAgentQueue(bool requeues, int64_t attempts_max, int64_t attempts_max_unplaced,
                  nanobind::handle gang, bool whole_queue, BoundSkippedUnits* skipped,
                  BoundQuotaAccount* account, nanobind::handle priority, bool is_own_limit)
      : BoundQueue(gang, false), priority_(priority, "priority") {
    queue = std::make_unique<AgentQueue>(
        AgentQueue::Options{requeues, attempts_max, attempts_max_unplaced, gang_.span(),
                            whole_queue, skipped ? &skipped->skipped : nullptr,
                            account ? &account->account : nullptr, priority_.span(), is_own_limit});
  }

  void give_up_jobs(nanobind::handle job, int64_t most, int64_t most_unplaced) {
    attempted_job_.emplace(job, "job", length_of(job, "job"));
    static_cast<AgentQueue&>(*queue).give_up_jobs(attempted_job_->span(), most, most_unplaced);
  }

 private:
  OptionalColumn<int32_t> priority_;
  std::optional<Column<const int64_t>> attempted_job_;
};

class BoundSchedulerQueue : public BoundQueue {
 public:
  BoundSchedulerQueue(bool whole_queue, nanobind::handle gang) : BoundQueue(gang, true) {
    queue = std::make_unique<SchedulerQueue>(whole_queue, gang_.span());
  }
};

}  // namespace agora
