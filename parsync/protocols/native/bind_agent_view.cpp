// Python's access to an agent's view of the cell.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <vector>

#include "bound_agent_view.hpp"

namespace nb = nanobind;

using agora::array_of;
using agora::BoundAgentView;

void bind_agent_view(nb::module_& module) {
  nb::class_<BoundAgentView>(module, "AgentView", "An agent's view; see agent_view.hpp.")
      .def(nb::init<nb::object, std::vector<int32_t>, int64_t>(), nb::arg("cell"),
           nb::arg("visible"), nb::arg("first_turn"))
      .def("start", [](BoundAgentView& self, int64_t now_us) { self.view().start(now_us); })
      .def(
          "forget", [](BoundAgentView& self) { self.view().forget(); },
          "Shows nothing any more, until the next reply.")
      .def("on_reply", &BoundAgentView::on_reply, nb::arg("now_us"), nb::arg("reply"),
           nb::arg("rounds"), nb::arg("log"), nb::arg("rows_changed"))
      .def("staleness_us",
           [](BoundAgentView& self, int64_t now_us) { return self.view().staleness_us(now_us); })
      .def("used_permille",
           [](BoundAgentView& self) { return array_of<int64_t>(self.view().used_permille()); })
      .def_prop_ro("order", &BoundAgentView::order)
      .def_prop_rw(
          "changed", [](BoundAgentView& self) { return self.view().changed; },
          [](BoundAgentView& self, bool changed) { self.view().changed = changed; });
}
