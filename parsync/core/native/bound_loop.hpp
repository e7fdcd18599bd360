// What the Python classes of both live loops have in common (bind_actor_loop.cpp,
// bind_cell_loop.cpp).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <unordered_set>

#include "bound_event.hpp"

namespace agora {

// The addresses of an iterable of ints.
inline std::unordered_set<int64_t> addresses_from(nanobind::handle addresses) {
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

}  // namespace agora
