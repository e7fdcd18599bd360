// Python's access to the loop of the participants beside the cell.
#include <nanobind/nanobind.h>

#include <unordered_set>
#include <vector>

#include "bound_event.hpp"
#include "bound_loop.hpp"
#include "cell_loop.hpp"

namespace nb = nanobind;
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
