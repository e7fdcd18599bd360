// Python's access to the planner of decision rounds.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bound_round_planner.hpp"

namespace nb = nanobind;
using agora::BoundDecisionClock;
using agora::BoundRoundPlanner;

void bind_round_planner(nb::module_& module) {
  nb::class_<BoundRoundPlanner>(module, "RoundPlanner",
                                "Plans the rounds of one agent; see round_planner.hpp.")
      .def(nb::init<uint64_t, std::string, int, bool, const BoundDecisionClock*, bool, nb::object,
                    nb::handle, nb::object>(),
           nb::arg("seed"), nb::arg("name"), nb::arg("quality"), nb::arg("checks_seqnum"),
           nb::arg("clock").none(), nb::arg("charges_kept"), nb::arg("planner"),
           nb::arg("task_class"), nb::arg("units").none())
      .def("plan", &BoundRoundPlanner::plan, nb::arg("view"), nb::arg("task"), nb::arg("round"),
           nb::arg("now_us"), nb::arg("ranking"), nb::arg("partition_order"),
           "Plans int64[n] tasks and takes their claims out of the view. The plan, as\n"
           "bound_planner.hpp's arrays_of has it.")
      .def_prop_ro("seqnum", &BoundRoundPlanner::seqnum,
                   "uint32[k], the sequence numbers of the last plan's machines in the view.")
      .def("decision_us", &BoundRoundPlanner::decision_us, nb::arg("elapsed_ns"),
           "How long the last plan takes to decide.");
}
