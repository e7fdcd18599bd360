// The Python classes of the loops: the event queue of runs in virtual time, and the loops of live
// actors and of the cell.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "actor_loop.hpp"
#include "bound_event.hpp"
#include "cell_loop.hpp"
#include "event_queue.hpp"

namespace nb = nanobind;

namespace agora {

namespace {

// The addresses of an iterable of ints.
std::unordered_set<int64_t> addresses_from(nanobind::handle addresses) {
  std::unordered_set<int64_t> known;
  for (const nanobind::handle address : nanobind::iter(addresses))
    known.insert(nanobind::cast<int64_t>(address));
  return known;
}

template <class Loop>
void bind_loop(nanobind::class_<Loop>& loop) {
  loop.def(
          "send",
          [](Loop& self, int64_t to, nanobind::handle event, int64_t sender) {
            self.send(to, event_from(event), sender);
          },
          nanobind::arg("to"), nanobind::arg("event"), nanobind::arg("sender"))
      .def(
          "set_timer",
          [](Loop& self, int64_t at_us, nanobind::handle event, int64_t address) {
            self.set_timer(at_us, event_from(event), address);
          },
          nanobind::arg("at_us"), nanobind::arg("event"), nanobind::arg("address"))
      .def_prop_ro("address", &Loop::address)
      .def_prop_ro("event", [](const Loop& self) {
        return self.event() ? face_of(self.event()) : nanobind::none();
      });
}

}  // namespace

}  // namespace agora

// Python's access to the event queue.
using agora::EventQueue;

void bind_event_queue(nb::module_& module) {
  nb::class_<EventQueue>(module, "EventQueue",
                         "The events of a run in virtual time; see event_queue.hpp.")
      .def(
          "__init__",
          [](EventQueue* self, int64_t message_us, const nb::frozenset& beside_cell) {
            std::unordered_set<int64_t> addresses;
            for (nb::handle address : beside_cell) addresses.insert(nb::cast<int64_t>(address));
            new (self) EventQueue(message_us, std::move(addresses));
          },
          nb::arg("message_us"), nb::arg("beside_cell"))
      .def(
          "send",
          [](EventQueue& self, int64_t now_us, int64_t to, nb::handle event, int64_t sender) {
            self.send(now_us, to, agora::event_from(event), sender);
          },
          nb::arg("now_us"), nb::arg("to"), nb::arg("event"), nb::arg("sender"))
      .def(
          "set_timer",
          [](EventQueue& self, int64_t now_us, int64_t at_us, nb::handle event, int64_t address) {
            self.set_timer(now_us, at_us, agora::event_from(event), address);
          },
          nb::arg("now_us"), nb::arg("at_us"), nb::arg("event"), nb::arg("address"))
      .def(
          "begin_rest",
          [](EventQueue& self, nb::handle event, int64_t until_us, int64_t interval_us,
             int64_t before_us) {
            const auto kind = nb::cast<std::string>(event.attr("kind"));
            const uint64_t key =
                agora::EventType::key_of(kind, nb::cast<int>(event.attr("number")));
            self.begin_rest({key, until_us, interval_us, before_us});
          },
          nb::arg("event"), nb::arg("until_us"), nb::arg("interval_us"), nb::arg("before_us"))
      .def("end_rest", &EventQueue::end_rest)
      .def("run_until", &EventQueue::run_until, nb::arg("until_us"), nb::arg("log"),
           nb::arg("handlers"), nb::arg("carry_out"), nb::arg("hash_log"),
           nb::arg("gathered").none())
      .def("waiting", &EventQueue::waiting)
      .def_prop_ro("now_us", &EventQueue::now_us)
      .def_prop_ro("handled", &EventQueue::handled)
      .def_prop_ro("address", &EventQueue::address)
      .def_prop_ro("event", [](const EventQueue& self) {
        return self.event() ? agora::face_of(self.event()) : nb::none();
      });
}

// Python's access to the loop of an actor.
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

// Python's access to the loop of the participants beside the cell.
using agora::CellLoop;
using agora::EventHeap;

namespace {

nb::tuple timers(CellLoop& self) {
  nb::list waiting;
  for (const EventHeap::Entry* entry : self.timers().in_order())
    waiting.append(nb::make_tuple(entry->at_us, static_cast<int>(entry->priority), entry->sequence,
                                  entry->address, agora::face_of(entry->event)));
  return nb::make_tuple(self.timers().added(), nb::tuple(waiting));
}

void restore_timers(CellLoop& self, const nb::tuple& state) {
  std::vector<EventHeap::Entry> entries;
  for (const nb::handle timer : nb::iter(state[1]))
    entries.push_back({nb::cast<int64_t>(timer[0]),
                       static_cast<agora::Priority>(nb::cast<int>(timer[1])),
                       nb::cast<uint64_t>(timer[2]), nb::cast<int64_t>(timer[3]),
                       agora::event_from(nb::object(timer[4]))});
  self.timers().restore(std::move(entries), nb::cast<uint64_t>(state[0]));
}

}  // namespace

void bind_cell_loop(nb::module_& module) {
  nb::class_<CellLoop> loop(module, "CellLoop",
                            "The participants beside the cell; see cell_loop.hpp.");
  agora::bind_loop(loop);
  loop.def(
          "__init__",
          [](CellLoop* self, const nb::dict& participants, nb::handle addresses) {
            new (self) CellLoop(participants, agora::addresses_from(addresses));
          },
          nb::arg("participants"), nb::arg("addresses"))
      .def("replace", &CellLoop::replace, nb::arg("participants"))
      .def(
          "start",
          [](CellLoop& self, nb::handle event, int64_t at_us, nb::handle rest, nb::handle outgoing,
             nb::handle unknown, agora::EffectsDigest* digest, nb::handle on_placed,
             nb::handle on_handled) {
            self.start(agora::event_from(event), at_us,
                       {rest, outgoing, unknown, digest, on_placed, on_handled});
          },
          nb::arg("event"), nb::arg("at_us"), nb::arg("rest"), nb::arg("outgoing"),
          nb::arg("unknown"), nb::arg("digest").none(), nb::arg("on_placed").none(),
          nb::arg("on_handled").none())
      .def(
          "run",
          [](CellLoop& self, nb::handle messages, int64_t at_us, nb::handle rest,
             nb::handle outgoing, nb::handle unknown, agora::EffectsDigest* digest,
             nb::handle on_placed, nb::handle on_handled) {
            self.run(at_us, messages, {rest, outgoing, unknown, digest, on_placed, on_handled});
          },
          nb::arg("messages"), nb::arg("at_us"), nb::arg("rest"), nb::arg("outgoing"),
          nb::arg("unknown"), nb::arg("digest").none(), nb::arg("on_placed").none(),
          nb::arg("on_handled").none())
      .def("timers", &timers)
      .def("restore_timers", &restore_timers, nb::arg("state"))
      .def_prop_rw("now_us", &CellLoop::now_us, &CellLoop::set_now_us);
}
