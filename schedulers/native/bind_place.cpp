// Python's access to the placement kernel, with the catalog and placement costs; to greedy
// planners, decision clocks and the units that can never be placed; and to what plans are checked
// against.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

#include <stdexcept>
#include <vector>

#include "bound_types.hpp"
#include "placer.hpp"
#include "contract.hpp"

namespace nb = nanobind;

namespace {

using agora::BoundCatalog;
using agora::BoundDecisionClock;
using agora::BoundPricedRows;
using agora::BoundTaskColumns;
using agora::BoundTaskPlanner;
using agora::BoundUnplaceableUnits;
using agora::CatalogColumns;
using agora::ClusterView;
using agora::Column;
using agora::CountedTime;
using agora::In;
using agora::InRows;
using agora::int64_column;
using agora::kind_of;
using agora::length_of;
using agora::ModelledTime;
using agora::ModelledTimeByClass;
using agora::NewArray;
using agora::PendingTasks;
using agora::quality_of;
using agora::ranking_of;
using agora::span_of;
using agora::with_arrays;

nb::tuple placement_cost(In<int64_t> machine_offsets, In<int32_t> machine, In<int64_t> machine_cost,
                         In<int64_t> rack_offsets, In<int32_t> rack, In<int64_t> rack_cost,
                         In<int64_t> elsewhere_cost, In<int64_t> unscheduled_cost,
                         In<int32_t> rack_of, In<int32_t> preference, In<int32_t> placed) {
  const CatalogColumns columns{
      machine_offsets, machine,        machine_cost,     rack_offsets, rack,
      rack_cost,       elsewhere_cost, unscheduled_cost, rack_of};
  agora::check_lengths(columns.spans());
  if (preference.size() != placed.size())
    throw std::invalid_argument("expected one machine per preference");
  const NewArray<int64_t> cost(placed.size());
  const NewArray<bool> preferred(placed.size());
  agora::placement_cost(columns.spans(), span_of(preference), span_of(placed), cost.data(),
                        preferred.data());
  return nb::make_tuple(cost.object(), preferred.object());
}

nb::tuple place(ClusterView& view, const BoundCatalog& catalog, InRows<int64_t> request,
                In<int32_t> preference, In<int64_t> gang, In<int32_t> partition_order, int ranking,
                int quality, int kind, uint64_t stream, bool preferred_first, In<bool> waits,
                In<bool> kept, BoundPricedRows* prices) {
  const size_t count = preference.size();
  if (request.shape(0) != count || request.shape(1) != view.static_state().dimensions() ||
      gang.size() != count)
    throw std::invalid_argument(
        "expected one request, preference and gang per task, and a column of request per "
        "dimension");
  const NewArray<int32_t> machine(count);
  const agora::PlaceRequest input{count,
                                  request.data(),
                                  span_of(preference),
                                  span_of(gang),
                                  span_of(partition_order),
                                  ranking_of(ranking),
                                  kind_of(kind),
                                  stream,
                                  preferred_first,
                                  span_of(waits),
                                  span_of(kept),
                                  prices == nullptr ? nullptr : &prices->rows,
                                  quality_of(quality)};
  agora::PlaceWork work;
  {
    nb::gil_scoped_release release;
    work = agora::place(view, catalog.catalog, input, machine.data());
  }
  return nb::make_tuple(machine.object(), work.searches, work.looked_at, work.ranked,
                        work.partitions_scanned);
}

nb::tuple may_be_placed(const ClusterView& view, const BoundCatalog& catalog,
                        InRows<int64_t> request, In<int32_t> preference, In<bool> waits) {
  const size_t count = preference.size();
  if (request.shape(0) != count || request.shape(1) != view.static_state().dimensions() ||
      waits.size() != count)
    throw std::invalid_argument(
        "expected one request and preference per task, and whether it waits, and a column of "
        "request per dimension");
  const NewArray<bool> may(count);
  const agora::WaitingTasks tasks{count, request.data(), span_of(preference), span_of(waits)};
  const int64_t looked_at = agora::may_be_placed(view, catalog.catalog, tasks, may.data());
  return nb::make_tuple(may.object(), looked_at);
}

nb::tuple columns_of(const BoundTaskColumns& table, nb::handle task) {
  const Column<const int64_t> ids(task, "task", length_of(task, "task"));
  agora::OfferedTasks tasks;
  tasks.read(table.columns(), ids.span());
  return nb::make_tuple(agora::array_of(tasks.preference),
                        agora::array_of(tasks.request, table.columns().dimensions));
}

class BoundGreedyPlanner final : public BoundTaskPlanner {
 public:
  BoundGreedyPlanner(nb::object catalog, const BoundTaskColumns& columns, int kind,
                     bool preferred_first, const std::array<int64_t, 4>& weights_ps)
      : BoundTaskPlanner(columns),
        catalog_(std::move(catalog)),
        planner_(nb::cast<const agora::BoundCatalog&>(catalog_).catalog, table.columns(),
                 kind_of(kind), preferred_first, weights_ps) {}

  agora::TaskPlanner& planner() override { return planner_; }

 private:
  const nb::object catalog_;
  agora::GreedyPlanner planner_;
};

nb::tuple plan_and_claim(BoundTaskPlanner& self, ClusterView& view, nb::handle task,
                         nb::handle partition_order, int ranking, int quality, uint64_t stream,
                         int64_t now_us, BoundPricedRows* prices) {
  const Column<const int64_t> ids(task, "task", length_of(task, "task"));
  const Column<const int32_t> order(partition_order, "partition_order",
                                    length_of(partition_order, "partition_order"));
  const agora::ClaimedPlan plan = self.planner().plan_and_claim(
      view, ids.span(),
      {stream, agora::ranking_of(ranking), agora::quality_of(quality), order.span(), now_us,
       prices == nullptr ? nullptr : &prices->rows});
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

nb::object first_differing_claim(nb::handle task, nb::handle request, nb::handle gang,
                                 nb::handle all_request, nb::handle all_gang, size_t dimensions) {
  const size_t claims = length_of(task, "task"), tasks = length_of(all_gang, "all_gang");
  const Column<const int64_t> id(task, "task", claims),
      asked(request, "request", claims, dimensions), gangs(gang, "gang", claims),
      of_all(all_request, "all_request", tasks, dimensions),
      gang_of_all(all_gang, "all_gang", tasks);
  const agora::DifferingClaim first = agora::first_differing_claim(
      id.span(), {asked.data(), claims * dimensions}, gangs.span(),
      {of_all.data(), tasks * dimensions}, gang_of_all.span(), dimensions);
  return nb::make_tuple(first.place, first.request);
}

}  // namespace

void bind_place(nb::module_& module) {
  nb::class_<CatalogColumns>(module, "CatalogColumns")
      .def("__init__", [](CatalogColumns* self, In<int64_t> machine_offsets, In<int32_t> machine,
                          In<int64_t> machine_cost, In<int64_t> rack_offsets, In<int32_t> rack,
                          In<int64_t> rack_cost, In<int64_t> elsewhere_cost,
                          In<int64_t> unscheduled_cost, In<int32_t> rack_of) {
        new (self)
            CatalogColumns{machine_offsets, machine,        machine_cost,     rack_offsets, rack,
                           rack_cost,       elsewhere_cost, unscheduled_cost, rack_of};
      });
  nb::class_<BoundCatalog>(module, "Catalog").def(nb::init<CatalogColumns>(), nb::arg("columns"));
  module.def("placement_cost", &placement_cost);
  module.def("place", &place, nb::arg("view"), nb::arg("catalog"), nb::arg("request"),
             nb::arg("preference"), nb::arg("gang"), nb::arg("partition_order"), nb::arg("ranking"),
             nb::arg("quality"), nb::arg("kind"), nb::arg("stream"), nb::arg("preferred_first"),
             nb::arg("waits"), nb::arg("kept"), nb::arg("prices").none());
  module.def("may_be_placed", &may_be_placed);
  module.attr("RANKING_NAMES") = agora::bound_names(agora::kRankingNames);
  module.attr("QUALITY_NAMES") = agora::bound_names(agora::kQualityNames);
  module.attr("PLACEMENT_KIND_NAMES") = agora::bound_names(agora::kPlacementKindNames);

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
  nb::class_<BoundTaskPlanner>(module, "TaskPlanner", "Plans tasks by id; see placer.hpp.")
      .def("plan_and_claim", &plan_and_claim, nb::arg("view"), nb::arg("task"),
           nb::arg("partition_order"), nb::arg("ranking"), nb::arg("quality"), nb::arg("stream"),
           nb::arg("now_us"), nb::arg("prices").none(),
           "Places tasks (int64[n], ids) and takes the claims of those that found a place out of\n"
           "the view. Returns the plan (bound_types.hpp, arrays_of) and its counted work.");
  nb::class_<BoundGreedyPlanner, BoundTaskPlanner>(module, "GreedyPlanner",
                                                   "A greedy placer of tasks by id.")
      .def(
          nb::init<nb::object, const BoundTaskColumns&, int, bool, const std::array<int64_t, 4>&>(),
          nb::arg("catalog"), nb::arg("table"), nb::arg("kind"), nb::arg("preferred_first"),
          nb::arg("weights_ps"));
  nb::class_<BoundUnplaceableUnits>(module, "UnplaceableUnits")
      .def(nb::init<agora::In<int64_t>, agora::In<int64_t>, agora::In<int64_t>,
                    agora::In<int64_t>>(),
           nb::arg("task_us"), nb::arg("gang_us"), nb::arg("gang"), nb::arg("gang_size"))
      .def("among", &among, nb::arg("task"), nb::arg("now_us"));

  nb::class_<BoundDecisionClock>(module, "DecisionClock",
                                 "How long decisions take; see contract.hpp.")
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

  nb::class_<PendingTasks>(module, "PendingTasks")
      .def("__init__",
           [](PendingTasks* self, size_t tasks, nb::handle gang) {
             new (self) PendingTasks(tasks, int64_column(gang, "gang").span());
           })
      .def("take_round", with_arrays(&PendingTasks::take_round, {"offered", "claimed", "pending"}))
      .def("rejected", with_arrays(&PendingTasks::rejected, {"task"}))
      .def("adopted", with_arrays(&PendingTasks::adopted, {"task"}))
      .def("all", with_arrays(&PendingTasks::all, {}))
      .def("count", &PendingTasks::count)
      .def("in_gang", with_arrays(&PendingTasks::in_gang, {"gang"}));
  module.def("first_differing_claim", &first_differing_claim);
}
