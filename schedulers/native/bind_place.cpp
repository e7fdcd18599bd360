// Python's access to the catalog, placement costs and the placement kernel.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "bound_planner.hpp"
#include "may_be_placed.hpp"
#include "placer.hpp"
#include "shared_state/native/bound_names.hpp"
#include "shared_state/native/new_array.hpp"

namespace nb = nanobind;

namespace {

using agora::BoundCatalog;
using agora::BoundPricedRows;
using agora::CatalogColumns;
using agora::ClusterView;
using agora::NewArray;

using agora::In;
using agora::InRows;
using agora::kind_of;
using agora::quality_of;
using agora::ranking_of;
using agora::span_of;

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
}
