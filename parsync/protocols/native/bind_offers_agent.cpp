// Python's access to the agent of the protocol of offers. Its Python class (offers/agent.py)
// chooses its parts. Delay scheduling is Python's, and is called here.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "bound_scheduler_agent.hpp"
#include "offers_agent.hpp"

namespace nb = nanobind;

using namespace agora;

namespace {

class PythonDelayScheduling final : public offers::DelayScheduling {
 public:
  explicit PythonDelayScheduling(nb::object delay) : delay_(std::move(delay)) {}

  SharedColumn<bool> tries(int64_t now_us, std::span<const int64_t> task,
                           std::span<const int32_t> machine) override {
    return flags(delay_.attr("tries")(now_us, array_of(task), array_of(machine)), "tries");
  }
  SharedColumn<bool> takes(int64_t now_us, const SharedColumn<int64_t>& task,
                           const SharedColumn<int32_t>& machine) override {
    return flags(delay_.attr("takes")(now_us, array_of(task), array_of(machine)), "takes");
  }
  void on_planned(int64_t now_us, std::span<const int64_t> passed_over,
                  const SharedColumn<int64_t>& placed,
                  const SharedColumn<int32_t>& machine) override {
    delay_.attr("on_planned")(now_us, array_of(passed_over), array_of(placed), array_of(machine));
  }

 private:
  static SharedColumn<bool> flags(const nb::object& array, const char* name) {
    return BoundValue<SharedColumn<bool>>::from(array, name);
  }

  const nb::object delay_;
};

class BoundOffersAgent final : public BoundSchedulerAgent {
 public:
  BoundOffersAgent(const nb::object& records, const nb::object& settings, const nb::object& view,
                   const nb::object& queue, const nb::object& log, const nb::object& sorting_out,
                   const nb::object& planner, const nb::object& observer,
                   const BoundDecisionClock* clock, const nb::object& delay)
      : BoundSchedulerAgent(records, settings, view, planner, observer,
                            nb::make_tuple(queue, log, sorting_out)),
        task_class_(BoundValue<SharedColumn<int8_t>>::from(settings.attr("task_class"), "class")),
        gang_(BoundValue<SharedColumn<int64_t>>::from(settings.attr("gang"), "gang")),
        delay_(part_of<PythonDelayScheduling>(delay)),
        room_(nb::cast<BoundAgentView&>(view).cell()),
        agent_(settings_of(settings, clock),
               {parts_of(view, queue, log, sorting_out), room_,
                nb::cast<Measurements&>(records).rows("offer_waits"), delay_.get()}) {}

  SchedulerAgent& agent() override { return agent_; }

 private:
  offers::OffersAgent::Settings settings_of(const nb::object& settings,
                                            const BoundDecisionClock* clock) const {
    offers::OffersAgent::Settings made;
    load(settings, made);
    made.cell_side = number(settings, "cell_side");
    made.locks = is(settings, "locks");
    made.says_wants = is(settings, "says_wants");
    made.suppresses = is(settings, "suppresses");
    made.hoards = is(settings, "hoards");
    made.gives_up = is(settings, "gives_up");
    if (clock) made.clock = clock->clock;
    made.task_class = task_class_.span();
    made.gang = gang_.span();
    made.request = BoundValue<SharedTable<int64_t>>::from(settings.attr("request"), "request");
    return made;
  }

  const SharedColumn<int8_t> task_class_;
  const SharedColumn<int64_t> gang_;
  const std::unique_ptr<PythonDelayScheduling> delay_;
  offers::OfferedRoom room_;
  offers::OffersAgent agent_;
};

}  // namespace

void bind_offers_agent(nb::module_& module) {
  nb::class_<BoundOffersAgent, BoundSchedulerAgent>(module, "OffersAgent", "See offers_agent.hpp.")
      .def(nb::init<const nb::object&, const nb::object&, const nb::object&, const nb::object&,
                    const nb::object&, const nb::object&, const nb::object&, const nb::object&,
                    const BoundDecisionClock*, const nb::object&>(),
           nb::arg("records"), nb::arg("settings"), nb::arg("view"), nb::arg("queue"),
           nb::arg("log"), nb::arg("sorting_out"), nb::arg("planner"), nb::arg("observer").none(),
           nb::arg("clock").none(), nb::arg("delay").none());
}
