// Python's access to what all agents that drive a scheduler have. Those of each protocol are bound
// in a file of their own.

#include <nanobind/nanobind.h>

#include <cstdint>

#include "bound_scheduler_agent.hpp"

namespace nb = nanobind;

using namespace agora;

void bind_scheduler_agent(nb::module_& module) {
  using Bound = BoundSchedulerAgent;
  nb::class_<Bound, BoundParticipant>(module, "SchedulerAgent", "See scheduler_agent.hpp.")
      .def(
          "decide",
          [](Bound& self, int64_t decision, int64_t now_us) {
            self.agent().decide(decision, now_us);
          },
          nb::arg("decision"), nb::arg("now_us"))
      .def(
          "decision_us",
          [](Bound& self, int64_t elapsed_ns) { return self.agent().decision_us(elapsed_ns); },
          nb::arg("elapsed_ns"))
      .def(
          "log_end", [](Bound& self, int64_t now_us) { self.agent().finish(now_us); },
          nb::arg("now_us"))
      .def_prop_ro("queued", [](Bound& self) { return self.agent().queued(); })
      .def_prop_ro("rounds", [](Bound& self) { return self.agent().rounds(); })
      .def_prop_ro("activity",
                   [](Bound& self) { return static_cast<int>(self.agent().activity()); });
}
