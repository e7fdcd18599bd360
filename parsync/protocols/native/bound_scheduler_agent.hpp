// Agents that drive a scheduler, as Python holds them: the parts of theirs that are Python's, which
// are called here, and what the classes of all such agents have.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "bound_parts.hpp"
#include "parsync/core/native/bound_participant.hpp"
#include "scheduler_agent.hpp"

namespace agora {

template <class T>
nanobind::object face(const std::shared_ptr<const T>& part) {
  return BoundValue<std::shared_ptr<const T>>::to(part);
}

// A scheduler that Python calls (rounds.py).
class PythonAgentScheduler final : public AgentScheduler {
 public:
  explicit PythonAgentScheduler(nanobind::object rounds) : rounds_(std::move(rounds)) {}

  std::optional<int64_t> tasks_within(const RoundWindow& window) override {
    const nanobind::object most =
        rounds_.attr("tasks_within")(window.us, window.partitions_per_task);
    if (most.is_none()) return std::nullopt;
    return BoundValue<int64_t>::from(most, "tasks_within");
  }

  void plan(int64_t now_us, std::span<const int64_t> task, DecisionRound& round) override {
    const nanobind::object planned =
        rounds_.attr("plan")(array_of(task), round.number, static_cast<int>(round.ranking), now_us);
    const nanobind::object plan = planned.attr("plan");
    RoundPlan made;
    made.task = column<int64_t>(plan, "task");
    made.machine = column<int32_t>(plan, "machine");
    made.request = BoundValue<SharedTable<int64_t>>::from(plan.attr("request"), "plan.request");
    made.gang = column<int64_t>(plan, "gang");
    made.evict = column<int64_t>(plan, "evict");
    made.pending = column<int64_t>(plan, "pending");
    made.pending_reason = column<int8_t>(plan, "pending_reason");
    made.synced_us = column<int64_t>(planned, "synced_us");
    made.seqnum =
        BoundValue<std::optional<SharedColumn<uint32_t>>>::from(planned.attr("seqnum"), "seqnum");
    made.ticket = BoundValue<int64_t>::from(planned.attr("ticket"), "ticket");
    made.in_full = nanobind::cast<bool>(planned.attr("in_full"));
    made.operations = nanobind::cast<int64_t>(nanobind::int_(plan.attr("operations")));
    made.priced_machines = nanobind::cast<int64_t>(nanobind::int_(plan.attr("priced_machines")));
    const nanobind::object retry_at_us = plan.attr("retry_at_us");
    if (!retry_at_us.is_none())
      made.retry_at_us = BoundValue<int64_t>::from(retry_at_us, "plan.retry_at_us");
    const nanobind::object figures = planned.attr("figures");
    if (!figures.is_none()) {
      made.figures.emplace();
      for (size_t i = 0; i < kRoundFigures; ++i)
        (*made.figures)[i] = BoundValue<int64_t>::from(figures[i], "plan.stats");
    }
    check_rows("plan", made.task.size(), made.machine, made.request, made.gang, made.synced_us);
    check_rows("plan.pending", made.pending.size(), made.pending_reason);
    round.plan = std::move(made);
  }

  int64_t decision_us(const DecisionRound&, int64_t elapsed_ns) override {
    return BoundValue<int64_t>::from(rounds_.attr("decision_us")(elapsed_ns), "decision_us");
  }

 private:
  template <class T>
  static SharedColumn<T> column(const nanobind::object& plan, const char* field) {
    return BoundValue<SharedColumn<T>>::from(plan.attr(field), field);
  }

  const nanobind::object rounds_;
};

class PythonTaskObserver final : public TaskObserver {
 public:
  explicit PythonTaskObserver(nanobind::object observer) : observer_(std::move(observer)) {}

  void on_adopted(int64_t now_us, const EventPtr& adopted) override {
    observer_.attr("on_adopted")(now_us, face_of(adopted));
  }
  void on_ended(int64_t now_us, const EventPtr& ended) override {
    observer_.attr("on_ended")(now_us, face_of(ended));
  }
  void on_outcome(int64_t now_us, const TransactionPtr& claims, const CommitResultPtr& result,
                  int64_t accepted) override {
    observer_.attr("on_outcome")(now_us, face(claims), face(result), accepted);
  }

 private:
  const nanobind::object observer_;
};

class PythonAgentQuota final : public AgentQuota {
 public:
  explicit PythonAgentQuota(nanobind::object quota) : quota_(std::move(quota)) {}

  void on_adopted(const EventPtr& adopted) override { quota_.attr("on_adopted")(face_of(adopted)); }
  void on_outcome(const TransactionPtr& claims, const CommitResultPtr& result) override {
    quota_.attr("on_outcome")(face(claims), face(result));
  }
  void on_ended(const EventPtr& ended) override { quota_.attr("on_ended")(face_of(ended)); }
  void on_synced() override { quota_.attr("on_synced")(); }
  void on_request(int64_t round, Effects& effects) override {
    add_effects(quota_.attr("on_request")(round), effects);
  }
  TransactionPtr on_grant(const EventPtr& grant, int64_t sequence) override {
    const nanobind::object reclaim = quota_.attr("on_grant")(face_of(grant), sequence);
    if (reclaim.is_none()) return nullptr;
    return BoundValue<TransactionPtr>::from(reclaim, "on_grant");
  }

 private:
  const nanobind::object quota_;
};

// Null for None.
template <class T>
std::unique_ptr<T> part_of(const nanobind::object& part) {
  return part.is_none() ? nullptr : std::make_unique<T>(part);
}

// What such an agent borrows, and the number-valued and other settings of a SimpleNamespace.
class BoundSchedulerAgent : public BoundParticipant {
 public:
  Participant& core() override { return agent(); }
  Decider* decider() override { return &agent(); }
  virtual SchedulerAgent& agent() = 0;

 protected:
  // held: what the agent borrows beside these. planner: a native one, or Python's.
  BoundSchedulerAgent(const nanobind::object& records, const nanobind::object& settings,
                      const nanobind::object& view, const nanobind::object& planner,
                      const nanobind::object& observer, nanobind::object held)
      : BoundParticipant(records),
        observer_(part_of<PythonTaskObserver>(observer)),
        scheduler_(scheduler_of(planner, nanobind::cast<BoundAgentView&>(view))),
        job_(settings.attr("job"), "job", length_of(settings.attr("job"), "job")),
        held_(nanobind::make_tuple(view, planner, std::move(held))) {}

  SchedulerAgent::Parts parts_of(const nanobind::object& view, const nanobind::object& queue,
                                 const nanobind::object& log, const nanobind::object& sorting_out,
                                 AgentQuota* quota = nullptr) const {
    auto& bound = nanobind::cast<BoundAgentView&>(view);
    return {bound.cell(),
            bound.view(),
            *nanobind::cast<BoundQueue&>(queue).queue,
            nanobind::cast<BoundAgentLog&>(log).log,
            nanobind::cast<BoundSortingOut&>(sorting_out).sorting_out,
            *scheduler_,
            observer_.get(),
            quota};
  }
  void load(const nanobind::object& settings, SchedulerAgent::Settings& made) const {
    made.index = number(settings, "index");
    made.sample_us = number(settings, "sample_us");
    made.pipelines = is(settings, "pipelines");
    made.checks_seqnum = is(settings, "checks_seqnum");
    made.unit = static_cast<SchedulerAgent::Settings::Unit>(number(settings, "unit"));
    made.records_holds = is(settings, "records_holds");
    made.job = job_.span();
  }
  static int64_t number(const nanobind::object& settings, const char* name) {
    return BoundValue<int64_t>::from(settings.attr(name), name);
  }
  static std::optional<int64_t> number_or_none(const nanobind::object& settings, const char* name) {
    const nanobind::object value = settings.attr(name);
    if (value.is_none()) return std::nullopt;
    return BoundValue<int64_t>::from(value, name);
  }
  static bool is(const nanobind::object& settings, const char* name) {
    return nanobind::cast<bool>(settings.attr(name));
  }

 private:
  static std::unique_ptr<AgentScheduler> scheduler_of(const nanobind::object& planner,
                                                      BoundAgentView& view) {
    BoundRoundPlanner* native = nullptr;
    if (!nanobind::try_cast(planner, native, false))
      return std::make_unique<PythonAgentScheduler>(planner);
    return std::make_unique<GreedyAgentScheduler>(native->planner(), view.cell(), view.view());
  }

  const std::unique_ptr<PythonTaskObserver> observer_;
  const std::unique_ptr<AgentScheduler> scheduler_;
  const Column<const int64_t> job_;
  const nanobind::object held_;
};

}  // namespace agora
