// Python's access to the optimistic agent and its protocol's events. The agent's Python class
// (optimistic/agent.py) chooses its parts. Those that only some agents have are Python's, and are
// called here.

#include <nanobind/nanobind.h>

#include <memory>

#include "bound_scheduler_agent.hpp"
#include "optimistic_agent.hpp"
#include "optimistic_events.hpp"

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

class BoundOptimisticAgent final : public BoundSchedulerAgent {
 public:
  BoundOptimisticAgent(const nb::object& records, const nb::object& settings,
                       const nb::object& view, const nb::object& queue, const nb::object& log,
                       const nb::object& sorting_out, const nb::object& rankings,
                       const nb::object& sync, const nb::object& planner,
                       const nb::object& observer, const nb::object& quota,
                       const nb::object& demand, const nb::object& preemptible)
      : BoundSchedulerAgent(records, settings, view, planner, observer,
                            nb::make_tuple(queue, log, sorting_out, rankings)),
        sync_(sync_policy_from(sync)),
        quota_(part_of<PythonAgentQuota>(quota)),
        demand_(part_of<PythonDemandExchange>(demand)),
        preemptible_(part_of<PythonPreemptibleTasks>(preemptible)),
        agent_(settings_of(settings), {parts_of(view, queue, log, sorting_out, quota_.get()),
                                       nb::cast<BoundRoundRankings&>(rankings).rankings, *sync_,
                                       demand_.get(), preemptible_.get()}) {}

  SchedulerAgent& agent() override { return agent_; }

 private:
  OptimisticAgent::Settings settings_of(const nb::object& settings) const {
    OptimisticAgent::Settings made;
    load(settings, made);
    made.longest_us = number_or_none(settings, "longest_us");
    made.most_tasks = number_or_none(settings, "most_tasks");
    made.cuts_at_sync = is(settings, "cuts_at_sync");
    made.freed_at_once = is(settings, "freed_at_once");
    made.requeue_us = number(settings, "requeue_us");
    made.min_retry_interval_us = number(settings, "min_retry_interval_us");
    made.average_permille = number(settings, "average_permille");
    return made;
  }

  const std::shared_ptr<SyncPolicy> sync_;
  const std::unique_ptr<PythonAgentQuota> quota_;
  const std::unique_ptr<PythonDemandExchange> demand_;
  const std::unique_ptr<PythonPreemptibleTasks> preemptible_;
  OptimisticAgent agent_;
};

}  // namespace

void bind_optimistic_agent(nb::module_& module) {
  using Agent = BoundOptimisticAgent;
  nb::class_<Agent, BoundSchedulerAgent>(module, "OptimisticAgent", "See optimistic_agent.hpp.")
      .def(nb::init<const nb::object&, const nb::object&, const nb::object&, const nb::object&,
                    const nb::object&, const nb::object&, const nb::object&, const nb::object&,
                    const nb::object&, const nb::object&, const nb::object&, const nb::object&,
                    const nb::object&>(),
           nb::arg("records"), nb::arg("settings"), nb::arg("view"), nb::arg("queue"),
           nb::arg("log"), nb::arg("sorting_out"), nb::arg("rankings"), nb::arg("sync"),
           nb::arg("planner"), nb::arg("observer").none(), nb::arg("quota").none(),
           nb::arg("demand").none(), nb::arg("preemptible").none());
}
