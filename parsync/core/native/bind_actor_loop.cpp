// Python's access to the loop of an actor.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include "actor_loop.hpp"
#include "bound_event.hpp"
#include "bound_loop.hpp"

namespace nb = nanobind;
using agora::ActorLoop;
using agora::EventPtr;
using agora::StepWaits;

namespace {

nb::list listed(const std::vector<std::pair<int64_t, EventPtr>>& messages) {
  nb::list made;
  for (const auto& [address, event] : messages)
    made.append(nb::make_tuple(address, agora::face_of(event)));
  return made;
}

template <void (ActorLoop::*run)(const ActorLoop::Calls&)>
void run_loop(ActorLoop& self, nb::handle now_us, nb::handle rest, nb::handle on_decision,
              agora::HandledFrames* log, nb::handle write_log, StepWaits* waits,
              nb::handle on_handled) {
  (self.*run)({now_us, rest, on_decision, log, write_log, waits, on_handled});
}

}  // namespace

void bind_actor_loop(nb::module_& module) {
  nb::class_<StepWaits>(module, "StepWaits", "See step_waits.hpp.")
      .def(
          "__init__",
          [](StepWaits* self, nb::handle submit_us) {
            new (self) StepWaits(
                agora::BoundValue<agora::SharedColumn<int64_t>>::from(submit_us, "submit_us"));
          },
          nb::arg("submit_us"))
      .def(
          "handled",
          [](StepWaits& self, int64_t at_us, nb::handle event, nb::handle effects) {
            agora::note_waits(self, at_us, *agora::event_from(event), effects);
          },
          nb::arg("at_us"), nb::arg("event"), nb::arg("effects"))
      .def("stepped", &StepWaits::stepped, nb::arg("now_us"))
      .def_prop_ro("tasks", &StepWaits::tasks)
      .def_prop_ro("submission_us", &StepWaits::submission_us)
      .def_prop_ro("claim_us", &StepWaits::claim_us);
  nb::class_<ActorLoop> loop(module, "ActorLoop",
                             "The participants of one actor of a live run; see actor_loop.hpp.");
  agora::bind_loop(loop);
  loop.def(
          "__init__",
          [](ActorLoop* self, const nb::dict& participants, nb::handle addresses,
             int64_t lateness_us) {
            new (self) ActorLoop(participants, agora::addresses_from(addresses), lateness_us);
          },
          nb::arg("participants"), nb::arg("addresses"), nb::arg("lateness_us"))
      .def(
          "deliver",
          [](ActorLoop& self, int64_t address, nb::handle event) {
            self.deliver(address, agora::event_from(event));
          },
          nb::arg("address"), nb::arg("event"))
      .def(
          "add_decision",
          [](ActorLoop& self, int64_t due_us, int64_t address, nb::handle event, int64_t took_us,
             int64_t over_us) {
            self.add_decision(due_us, address, agora::event_from(event), took_us, over_us);
          },
          nb::arg("due_us"), nb::arg("address"), nb::arg("event"), nb::arg("took_us"),
          nb::arg("over_us"))
      .def("advance", &run_loop<&ActorLoop::advance>, nb::arg("now_us"), nb::arg("rest"),
           nb::arg("on_decision"), nb::arg("log").none(), nb::arg("write_log").none(),
           nb::arg("waits").none(), nb::arg("on_handled").none())
      .def("handle_messages", &run_loop<&ActorLoop::handle_messages>, nb::arg("now_us"),
           nb::arg("rest"), nb::arg("on_decision"), nb::arg("log").none(),
           nb::arg("write_log").none(), nb::arg("waits").none(), nb::arg("on_handled").none())
      .def(
          "take_outgoing",
          [](ActorLoop& self, int64_t rotation) { return listed(self.take_outgoing(rotation)); },
          nb::arg("rotation"))
      .def("messages", [](const ActorLoop& self) { return listed(self.messages()); })
      .def_prop_ro("next_due_us", &ActorLoop::next_due_us)
      .def_prop_ro("unhandled", &ActorLoop::unhandled)
      .def_prop_ro("has_outgoing", &ActorLoop::has_outgoing)
      .def_prop_ro("decision_start_us", &ActorLoop::decision_start_us);
}
