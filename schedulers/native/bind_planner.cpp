// Python's access to greedy planners, decision clocks, and the units that can never be placed.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <vector>

#include "bound_planner.hpp"

namespace nb = nanobind;

namespace {

using agora::BoundDecisionClock;
using agora::BoundGreedyPlanner;
using agora::BoundPricedRows;
using agora::BoundTaskColumns;
using agora::BoundUnplaceableUnits;
using agora::ClusterView;
using agora::Column;
using agora::CountedTime;
using agora::length_of;
using agora::ModelledTime;
using agora::ModelledTimeByClass;

nb::tuple columns_of(const BoundTaskColumns& table, nb::handle task) {
  const Column<const int64_t> ids(task, "task", length_of(task, "task"));
  agora::OfferedTasks tasks;
  tasks.read(table.columns(), ids.span());
  return nb::make_tuple(agora::array_of(tasks.preference),
                        agora::array_of(tasks.request, table.columns().dimensions));
}

nb::tuple plan_and_claim(BoundGreedyPlanner& self, ClusterView& view, nb::handle task,
                         nb::handle partition_order, int ranking, int quality, uint64_t stream,
                         BoundPricedRows* prices) {
  const Column<const int64_t> ids(task, "task", length_of(task, "task"));
  const Column<const int32_t> order(partition_order, "partition_order",
                                    length_of(partition_order, "partition_order"));
  const agora::ClaimedPlan plan = self.planner.plan_and_claim(
      view, ids.span(),
      {stream, agora::ranking_of(ranking), agora::quality_of(quality), order.span()}, {},
      prices == nullptr ? nullptr : &prices->rows);
  return nb::make_tuple(agora::arrays_of(plan, self.table.columns().dimensions, task),
                        nb::tuple(nb::cast(plan.counted_work)));
}

nb::object among(const BoundUnplaceableUnits& self, nb::handle task, int64_t now_us) {
  const Column<const int64_t> ids(task, "task", length_of(task, "task"));
  std::vector<uint8_t> never;
  if (!self.units.among(ids.span(), now_us, never)) return nb::none();
  const agora::NewArray<bool> mask(never.size());
  std::copy(never.begin(), never.end(), mask.data());
  return mask.object();
}

}  // namespace

void bind_planner(nb::module_& module) {
  nb::class_<BoundPricedRows>(module, "PricedRows")
      .def(nb::init<nb::object, bool, int64_t, bool>(), nb::arg("catalog"), nb::arg("paid"),
           nb::arg("weight_permille"), nb::arg("elsewhere_only"))
      .def("lowest_price",
           [](BoundPricedRows& self, ClusterView& view) { return self.rows.lowest_price(view); })
      .def("set_prices", &BoundPricedRows::set_prices, nb::arg("price"), nb::arg("slots"),
           nb::arg("unit"));
  nb::class_<BoundTaskColumns>(module, "TaskColumns")
      .def(nb::init<agora::InAnyOrder<int64_t, 2>, agora::InAnyOrder<int32_t, 1>,
                    agora::InAnyOrder<int64_t, 1>>(),
           nb::arg("request"), nb::arg("preference"), nb::arg("gang"))
      .def("columns_of", &columns_of);
  nb::class_<BoundGreedyPlanner>(module, "GreedyPlanner",
                                 "A greedy placer of tasks by id; see greedy_planner.hpp.")
      .def(
          nb::init<nb::object, const BoundTaskColumns&, int, bool, const std::array<int64_t, 4>&>(),
          nb::arg("catalog"), nb::arg("table"), nb::arg("kind"), nb::arg("preferred_first"),
          nb::arg("weights_ps"))
      .def("plan_and_claim", &plan_and_claim, nb::arg("view"), nb::arg("task"),
           nb::arg("partition_order"), nb::arg("ranking"), nb::arg("quality"), nb::arg("stream"),
           nb::arg("prices").none(),
           "Places tasks (int64[n], ids) and takes the claims of those that found a place out of\n"
           "the view. Returns the plan (bound_planner.hpp, arrays_of) and its counted work.");
  nb::class_<BoundUnplaceableUnits>(module, "UnplaceableUnits")
      .def(nb::init<agora::In<int64_t>, agora::In<int64_t>, agora::In<int64_t>,
                    agora::In<int64_t>>(),
           nb::arg("task_us"), nb::arg("gang_us"), nb::arg("gang"), nb::arg("gang_size"))
      .def("among", &among, nb::arg("task"), nb::arg("now_us"));

  nb::class_<BoundDecisionClock>(module, "DecisionClock",
                                 "How long decisions take; see decision_clock.hpp.")
      .def("duration_us",
           [](const BoundDecisionClock& self, int64_t tasks, int64_t service_tasks,
              int64_t partitions_scanned, int64_t operations, int64_t elapsed_ns,
              int64_t priced_machines) {
             return agora::duration_us(self.clock, {tasks, service_tasks, partitions_scanned,
                                                    operations, elapsed_ns, priced_machines});
           })
      .def("tasks_within",
           [](const BoundDecisionClock& self, int64_t window_us, int64_t partitions_per_task) {
             return agora::tasks_within(self.clock, window_us, partitions_per_task);
           });
  using Times = std::array<int64_t, 4>;  // per round, task, partition and machine with a new price
  const auto modelled = [](const Times& times) {
    return ModelledTime{times[0], times[1], times[2], times[3]};
  };
  module.def("modelled_clock",
             [=](const Times& times) { return BoundDecisionClock{modelled(times)}; });
  module.def("modelled_by_class_clock", [=](const Times& batch, const Times& service) {
    return BoundDecisionClock{ModelledTimeByClass{modelled(batch), modelled(service)}};
  });
  module.def("counted_clock", [](int64_t ns_per_operation) {
    return BoundDecisionClock{CountedTime{ns_per_operation}};
  });
  module.def("measured_clock", [] { return BoundDecisionClock{agora::MeasuredTime{}}; });
  module.attr("PS_PER_OPERATION") = agora::kPsPerOperation;
}
