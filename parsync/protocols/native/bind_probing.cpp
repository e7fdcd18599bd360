// Python's access to the probing protocol: its events, its agent, and the queues at the machines.
// parsync/protocols/probing/ puts them together.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bound_parts.hpp"
#include "node_queues.hpp"
#include "parsync/core/native/bound_participant.hpp"
#include "probing_agent.hpp"
#include "probing_events.hpp"

namespace nb = nanobind;

void bind_probing_events(nb::module_& module) {
  using namespace agora::probing;
  nb::dict body;
  body["__slots__"] = nb::tuple();
  body["__module__"] = module.attr("__name__");
  body["kind"] = nb::str(kProbingKind.data(), kProbingKind.size());
  const nb::object base =
      nb::module_::import_("builtins")
          .attr("type")("ProbingEvent",
                        nb::make_tuple(nb::module_::import_("parsync.core.event").attr("Event")),
                        body);
  module.attr("ProbingEvent") = base;
  const auto bind = [&]<class... Events>() { (agora::bind_event<Events>(module, base), ...); };
  bind.operator()<Probes, TaskRequests, TaskAnswers, ProbesCancelled, ProbesLost, AgentRestarted,
                  LengthRequests, LengthAnswers, DecisionDue, ReprobeDue>();
}

using namespace agora;

namespace {

// Where a task may run, as an object of Python says: asked once for tasks that ask for the same.
class PythonTaskMachines final : public TaskMachines {
 public:
  explicit PythonTaskMachines(nb::object machines) : machines_(std::move(machines)) {}

  std::vector<int32_t> allowed(int64_t task) override {
    return values(machines_.attr("allowed")(task));
  }
  std::vector<int32_t> preferred(int64_t task) override {
    return values(machines_.attr("preferred")(task));
  }

 private:
  static std::vector<int32_t> values(const nb::object& array) {
    const auto column = BoundValue<SharedColumn<int32_t>>::from(array, "machines");
    return {column.begin(), column.end()};
  }

  const nb::object machines_;
};

template <class T>
SharedColumn<T> column(const nb::object& settings, const char* name) {
  return BoundValue<SharedColumn<T>>::from(settings.attr(name), name);
}

class BoundProbingAgent final : public BoundParticipant {
 public:
  BoundProbingAgent(const nb::object& records, const nb::object& settings, BoundAgentLog& log,
                    BoundSortingOut& sorting_out, const BoundDecisionClock& clock,
                    nb::object machines)
      : BoundParticipant(records),
        machines_(std::move(machines)),
        job_(column<int64_t>(settings, "job")),
        preference_(column<int32_t>(settings, "preference")),
        task_class_(column<int8_t>(settings, "task_class")),
        priority_(column<int32_t>(settings, "priority")),
        is_constraint_(column<bool>(settings, "is_constraint")),
        agent_(settings_of(settings, clock), {log.log, sorting_out.sorting_out, machines_,
                                              nb::cast<Measurements&>(records).rows("probes")}) {}

  Participant& core() override { return agent_; }
  Decider* decider() override { return &agent_; }
  ProbingAgent& agent() { return agent_; }

 private:
  ProbingAgent::Settings settings_of(const nb::object& settings,
                                     const BoundDecisionClock& clock) const {
    const auto number = [&](const char* name) {
      return BoundValue<int64_t>::from(settings.attr(name), name);
    };
    const auto is = [&](const char* name) { return nb::cast<bool>(settings.attr(name)); };
    ProbingAgent::Settings made;
    made.index = number("index");
    made.seed = nb::cast<uint64_t>(settings.attr("seed"));
    made.name = nb::cast<std::string>(settings.attr("name"));
    made.sample_us = number("sample_us");
    made.hop_us = number("hop_us");
    made.reprobe_us = number("reprobe_us");
    made.ratio_permille = number("ratio_permille");
    made.preferred_permille = number("preferred_permille");
    made.binding = static_cast<ProbingAgent::Binding>(number("binding"));
    made.per_task = is("per_task");
    made.replace = is("replace");
    made.cancels = is("cancels");
    made.clock = clock.clock;
    made.job = job_.span();
    made.preference = preference_.span();
    made.task_class = task_class_.span();
    made.priority = priority_.span();
    made.is_constraint = is_constraint_.span();
    made.request = BoundValue<SharedTable<int64_t>>::from(settings.attr("request"), "request");
    return made;
  }

  PythonTaskMachines machines_;
  const SharedColumn<int64_t> job_;
  const SharedColumn<int32_t> preference_;
  const SharedColumn<int8_t> task_class_;
  const SharedColumn<int32_t> priority_;
  const SharedColumn<bool> is_constraint_;
  ProbingAgent agent_;
};

class BoundNodeQueues final : public BoundParticipant {
 public:
  explicit BoundNodeQueues(const nb::object& settings)
      : BoundParticipant(nb::none()),
        catalog_(settings.attr("catalog")),
        queues_(settings_of(settings)) {}

  Participant& core() override { return queues_; }
  NodeQueues& queues() { return queues_; }

 private:
  NodeQueues::Settings settings_of(const nb::object& settings) const {
    NodeQueues::Settings made;
    made.hop_us = BoundValue<int64_t>::from(settings.attr("hop_us"), "hop_us");
    made.limit = BoundValue<SharedTable<int64_t>>::from(settings.attr("limit"), "limit");
    made.request = BoundValue<SharedTable<int64_t>>::from(settings.attr("request"), "request");
    made.agents = nb::cast<size_t>(settings.attr("agents"));
    made.order = static_cast<NodeQueues::Order>(nb::cast<int>(settings.attr("order")));
    made.key = column<int32_t>(settings, "key");
    made.is_long = column<bool>(settings, "is_long");
    if (catalog_.is_none()) return made;
    const auto asks_work = column<bool>(settings, "asks_work");
    made.asks_work.assign(asks_work.begin(), asks_work.end());
    made.run_times = MachineWork::RunTimes{
        column<int64_t>(settings, "duration_us"), column<int32_t>(settings, "preference"),
        nb::cast<const CatalogColumns&>(catalog_).spans(),
        BoundValue<int64_t>::from(settings.attr("preferred_permille"), "preferred_permille")};
    return made;
  }

  const nb::object catalog_;  // what run times borrow, or None
  NodeQueues queues_;
};

}  // namespace

void bind_probing(nb::module_& module) {
  nb::class_<BoundProbingAgent, BoundParticipant>(module, "ProbingAgent", "See probing_agent.hpp.")
      .def(nb::init<const nb::object&, const nb::object&, BoundAgentLog&, BoundSortingOut&,
                    const BoundDecisionClock&, nb::object>(),
           nb::arg("records"), nb::arg("settings"), nb::arg("log"), nb::arg("sorting_out"),
           nb::arg("clock"), nb::arg("machines"), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>())
      .def(
          "decide",
          [](BoundProbingAgent& self, int64_t decision, int64_t now_us) {
            self.agent().decide(decision, now_us);
          },
          nb::arg("decision"), nb::arg("now_us"))
      .def(
          "decision_us",
          [](BoundProbingAgent& self, int64_t elapsed_ns) {
            return self.agent().decision_us(elapsed_ns);
          },
          nb::arg("elapsed_ns"))
      .def(
          "log_end", [](BoundProbingAgent& self, int64_t now_us) { self.agent().finish(now_us); },
          nb::arg("now_us"))
      .def_prop_ro("queued", [](BoundProbingAgent& self) { return self.agent().queued(); })
      .def_prop_ro("decisions", [](BoundProbingAgent& self) { return self.agent().decisions(); })
      .def_prop_ro("requests", [](BoundProbingAgent& self) { return self.agent().requests(); });
  nb::class_<BoundNodeQueues, BoundParticipant>(module, "NodeQueues", "See node_queues.hpp.")
      .def(nb::init<const nb::object&>(), nb::arg("settings"))
      .def(
          "queued_at",
          [](BoundNodeQueues& self, size_t machine) { return self.queues().queued(machine); },
          nb::arg("machine"))
      .def_prop_ro("holds", [](BoundNodeQueues& self) { return self.queues().holds(); });
}
