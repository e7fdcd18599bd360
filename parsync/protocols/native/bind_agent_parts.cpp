// Python's access to small parts of agents: what sorts out tasks, and what records holds.
#include <nanobind/nanobind.h>

#include "bound_sorting_out.hpp"
#include "queue_holds.hpp"

namespace nb = nanobind;
using agora::BoundAgentLog;
using agora::BoundSortingOut;
using agora::BoundUnplaceableUnits;
using agora::Column;
using agora::length_of;
using agora::QueueHolds;

void bind_agent_parts(nb::module_& module) {
  nb::class_<BoundSortingOut>(module, "SortingOut")
      .def(nb::init<const BoundUnplaceableUnits*, nb::handle, BoundAgentLog&>(),
           nb::arg("units").none(), nb::arg("reason").none(), nb::arg("log"),
           nb::keep_alive<1, 2>(), nb::keep_alive<1, 4>())
      .def("placeable", &BoundSortingOut::placeable, nb::arg("now_us"), nb::arg("work"))
      .def("record", &BoundSortingOut::record, nb::arg("now_us"), nb::arg("task"));
  nb::class_<QueueHolds>(module, "QueueHolds", R"(Records the holds of one agent's queue that keep
tasks waiting; see queue_holds.hpp.)")
      .def(
          "__init__", [](QueueHolds* self, BoundAgentLog& log) { new (self) QueueHolds(log.log); },
          nb::arg("log"), nb::keep_alive<1, 2>())
      .def(
          "see",
          [](QueueHolds& self, int64_t now_us, nb::handle holder, int64_t queued) {
            const Column<const int64_t> tasks(holder, "holder", length_of(holder, "holder"));
            self.see(now_us, tasks.span(), queued);
          },
          nb::arg("now_us"), nb::arg("holder"), nb::arg("queued"),
          "A round is decided. holder: the tasks of the unit that holds the queue, int64[n]; none "
          "if no\nunit does. queued: the tasks that wait, those included.")
      .def("end", &QueueHolds::end, nb::arg("now_us"), nb::arg("queued"),
           "The hold is over, with so many tasks that wait; or the run is.");
}
