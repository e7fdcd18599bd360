// Python's access to the optimistic agent and its protocol's events. The agent's Python class
// (optimistic/agent.py) chooses its parts. Those that only some agents have are Python's, and are
// called here.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bound_parts.hpp"
#include "optimistic_agent.hpp"
#include "optimistic_events.hpp"
#include "parsync/core/native/bound_participant.hpp"

namespace nb = nanobind;

void bind_optimistic_events(nb::module_& module) {
  using namespace agora::optimistic;
  nb::dict body;
  body["__slots__"] = nb::tuple();
  body["__module__"] = module.attr("__name__");
  body["kind"] = nb::str(kOptimisticKind.data(), kOptimisticKind.size());
  const nb::object base =
      nb::module_::import_("builtins")
          .attr("type")("OptimisticEvent",
                        nb::make_tuple(nb::module_::import_("parsync.core.event").attr("Event")),
                        body);
  module.attr("OptimisticEvent") = base;
  const auto bind = [&]<class... Events>() { (agora::bind_event<Events>(module, base), ...); };
  bind.
  operator()<SyncDue, RequeueDue, RetryDue, RoundDue, DemandReport, DemandRequest, DemandReply>();
}

using namespace agora;

namespace {

template <class T>
nb::object face(const std::shared_ptr<const T>& part) {
  return BoundValue<std::shared_ptr<const T>>::to(part);
}

// A scheduler that Python calls (rounds.py).
class PythonAgentScheduler final : public AgentScheduler {
 public:
  explicit PythonAgentScheduler(nb::object rounds) : rounds_(std::move(rounds)) {}

  std::optional<int64_t> tasks_within(const RoundWindow& window) override {
    const nb::object most = rounds_.attr("tasks_within")(window.us, window.partitions_per_task);
    if (most.is_none()) return std::nullopt;
    return BoundValue<int64_t>::from(most, "tasks_within");
  }

  void plan(int64_t now_us, DecisionRound& round) override {
    const nb::object planned =
        rounds_.attr("plan")(array_of(std::span<const int64_t>(round.tasks.offered.task)),
                             round.number, static_cast<int>(round.ranking), now_us);
    const nb::object plan = planned.attr("plan");
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
    made.in_full = nb::cast<bool>(planned.attr("in_full"));
    const nb::object retry_at_us = plan.attr("retry_at_us");
    if (!retry_at_us.is_none())
      made.retry_at_us = BoundValue<int64_t>::from(retry_at_us, "plan.retry_at_us");
    const nb::object figures = planned.attr("figures");
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
  static SharedColumn<T> column(const nb::object& plan, const char* field) {
    return BoundValue<SharedColumn<T>>::from(plan.attr(field), field);
  }

  const nb::object rounds_;
};

class PythonTaskObserver final : public TaskObserver {
 public:
  explicit PythonTaskObserver(nb::object observer) : observer_(std::move(observer)) {}

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
  const nb::object observer_;
};

class PythonAgentQuota final : public AgentQuota {
 public:
  explicit PythonAgentQuota(nb::object quota) : quota_(std::move(quota)) {}

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
    const nb::object reclaim = quota_.attr("on_grant")(face_of(grant), sequence);
    if (reclaim.is_none()) return nullptr;
    return BoundValue<TransactionPtr>::from(reclaim, "on_grant");
  }

 private:
  const nb::object quota_;
};

class PythonDemandExchange final : public DemandExchange {
 public:
  explicit PythonDemandExchange(nb::object demand) : demand_(std::move(demand)) {}

  void request(int64_t now_us, Effects& effects) override {
    add_effects(demand_.attr("request")(now_us), effects);
  }
  void report(Effects& effects) override { add_effects(demand_.attr("report")(), effects); }
  void on_reply(int64_t now_us, const EventPtr& reply) override {
    demand_.attr("on_reply")(now_us, face_of(reply));
  }
  void hand_out(Effects& effects) override { add_effects(demand_.attr("flush")(), effects); }

 private:
  const nb::object demand_;
};

class PythonPreemptibleTasks final : public PreemptibleTasks {
 public:
  explicit PythonPreemptibleTasks(nb::object tasks) : tasks_(std::move(tasks)) {}

  void request(const SharedColumn<int32_t>& partition, Effects& effects) override {
    add_effects(tasks_.attr("request")(array_of(partition)), effects);
  }
  void on_reply(const EventPtr& reply) override { tasks_.attr("on_reply")(face_of(reply)); }

 private:
  const nb::object tasks_;
};

// Null for None.
template <class T>
std::unique_ptr<T> part_of(const nb::object& part) {
  return part.is_none() ? nullptr : std::make_unique<T>(part);
}

class BoundOptimisticAgent final : public BoundParticipant {
 public:
  BoundOptimisticAgent(const nb::object& records, const nb::object& settings,
                       const nb::object& view, const nb::object& queue, const nb::object& log,
                       const nb::object& sorting_out, const nb::object& rankings,
                       const nb::object& sync, const nb::object& planner,
                       const nb::object& observer, const nb::object& quota,
                       const nb::object& demand, const nb::object& preemptible)
      : BoundParticipant(records),
        held_(nb::make_tuple(view, queue, log, sorting_out, rankings, planner)),
        job_(settings.attr("job"), "job", length_of(settings.attr("job"), "job")),
        sync_(sync_policy_from(sync)),
        observer_(part_of<PythonTaskObserver>(observer)),
        quota_(part_of<PythonAgentQuota>(quota)),
        demand_(part_of<PythonDemandExchange>(demand)),
        preemptible_(part_of<PythonPreemptibleTasks>(preemptible)),
        scheduler_(scheduler_of(planner, nb::cast<BoundAgentView&>(view))),
        agent_(settings_of(settings),
               {nb::cast<BoundAgentView&>(view).cell(), nb::cast<BoundAgentView&>(view).view(),
                *nb::cast<BoundQueue&>(queue).queue, nb::cast<BoundAgentLog&>(log).log,
                nb::cast<BoundSortingOut&>(sorting_out).sorting_out,
                nb::cast<BoundRoundRankings&>(rankings).rankings, *sync_, *scheduler_,
                observer_.get(), quota_.get(), demand_.get(), preemptible_.get()}) {}

  Participant& core() override { return agent_; }
  Decider* decider() override { return &agent_; }
  OptimisticAgent& agent() { return agent_; }

 private:
  OptimisticAgent::Settings settings_of(const nb::object& settings) const {
    const auto number = [&](const char* name) {
      return BoundValue<int64_t>::from(settings.attr(name), name);
    };
    const auto is = [&](const char* name) { return nb::cast<bool>(settings.attr(name)); };
    const auto number_or_none = [&](const char* name) -> std::optional<int64_t> {
      const nb::object value = settings.attr(name);
      if (value.is_none()) return std::nullopt;
      return BoundValue<int64_t>::from(value, name);
    };
    OptimisticAgent::Settings made;
    made.index = number("index");
    made.sample_us = number("sample_us");
    made.longest_us = number_or_none("longest_us");
    made.most_tasks = number_or_none("most_tasks");
    made.cuts_at_sync = is("cuts_at_sync");
    made.pipelines = is("pipelines");
    made.freed_at_once = is("freed_at_once");
    made.checks_seqnum = is("checks_seqnum");
    made.unit = static_cast<OptimisticAgent::Settings::Unit>(number("unit"));
    made.requeue_us = number("requeue_us");
    made.min_retry_interval_us = number("min_retry_interval_us");
    made.average_permille = number("average_permille");
    made.records_holds = is("records_holds");
    made.job = job_.span();
    return made;
  }

  // planner: a native one, or Python's.
  static std::unique_ptr<AgentScheduler> scheduler_of(const nb::object& planner,
                                                      BoundAgentView& view) {
    BoundRoundPlanner* native = nullptr;
    if (!nb::try_cast(planner, native, false))
      return std::make_unique<PythonAgentScheduler>(planner);
    return std::make_unique<GreedyAgentScheduler>(native->planner(), view.cell(), view.view());
  }

  const nb::object held_;  // what the agent borrows
  const Column<const int64_t> job_;
  const std::shared_ptr<SyncPolicy> sync_;
  const std::unique_ptr<PythonTaskObserver> observer_;
  const std::unique_ptr<PythonAgentQuota> quota_;
  const std::unique_ptr<PythonDemandExchange> demand_;
  const std::unique_ptr<PythonPreemptibleTasks> preemptible_;
  const std::unique_ptr<AgentScheduler> scheduler_;
  OptimisticAgent agent_;
};

}  // namespace

void bind_optimistic_agent(nb::module_& module) {
  using Agent = BoundOptimisticAgent;
  nb::class_<Agent, BoundParticipant>(module, "OptimisticAgent", "See optimistic_agent.hpp.")
      .def(nb::init<const nb::object&, const nb::object&, const nb::object&, const nb::object&,
                    const nb::object&, const nb::object&, const nb::object&, const nb::object&,
                    const nb::object&, const nb::object&, const nb::object&, const nb::object&,
                    const nb::object&>(),
           nb::arg("records"), nb::arg("settings"), nb::arg("view"), nb::arg("queue"),
           nb::arg("log"), nb::arg("sorting_out"), nb::arg("rankings"), nb::arg("sync"),
           nb::arg("planner"), nb::arg("observer").none(), nb::arg("quota").none(),
           nb::arg("demand").none(), nb::arg("preemptible").none())
      .def(
          "decide",
          [](Agent& self, int64_t decision, int64_t now_us) {
            self.agent().decide(decision, now_us);
          },
          nb::arg("decision"), nb::arg("now_us"))
      .def(
          "decision_us",
          [](Agent& self, int64_t elapsed_ns) { return self.agent().decision_us(elapsed_ns); },
          nb::arg("elapsed_ns"))
      .def(
          "log_end", [](Agent& self, int64_t now_us) { self.agent().finish(now_us); },
          nb::arg("now_us"))
      .def_prop_ro("queued", [](Agent& self) { return self.agent().queued(); })
      .def_prop_ro("rounds", [](Agent& self) { return self.agent().rounds(); })
      .def_prop_ro("activity",
                   [](Agent& self) { return static_cast<int>(self.agent().activity()); });
}
