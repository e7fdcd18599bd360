// Python's access to the event queue.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bound_event.hpp"
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
