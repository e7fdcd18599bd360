// Python's access to the event queue.
#include <nanobind/nanobind.h>

#include "event_queue.hpp"

namespace nb = nanobind;
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
      .def("send", &EventQueue::send, nb::arg("now_us"), nb::arg("to"), nb::arg("event"),
           nb::arg("sender"))
      .def("set_timer", &EventQueue::set_timer, nb::arg("now_us"), nb::arg("at_us"),
           nb::arg("event"), nb::arg("address"))
      .def("run_until", &EventQueue::run_until, nb::arg("until_us"), nb::arg("log"),
           nb::arg("handlers"), nb::arg("carry_out"), nb::arg("hash_log"))
      .def("waiting", &EventQueue::waiting)
      .def_prop_ro("now_us", &EventQueue::now_us)
      .def_prop_ro("handled", &EventQueue::handled)
      .def_prop_ro("address", &EventQueue::address)
      .def_prop_ro("event", &EventQueue::event);
}
