// Python's access to the catalog, placement costs and the placement kernel.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <stdexcept>

#include "bound_catalog.hpp"
#include "may_be_placed.hpp"
#include "placer.hpp"
#include "shared_state/native/bound_names.hpp"

namespace nb = nanobind;

namespace {

using agora::BoundCatalog;
using agora::CatalogColumns;
using agora::ClusterView;

using agora::In;
using agora::span_of;
template <typename T>
using InRows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;

template <typename T>
struct Fresh {
  explicit Fresh(size_t size)
      : count(size),
        data(new T[size]),
        owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); }) {}
  Out<T> array() const { return Out<T>(data, {count}, owner); }
  size_t count;
  T* data;
  nb::capsule owner;
};

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
  const Fresh<int64_t> cost(placed.size());
  const Fresh<bool> preferred(placed.size());
  agora::placement_cost(columns.spans(), span_of(preference), span_of(placed), cost.data,
                        preferred.data);
  return nb::make_tuple(cost.array(), preferred.array());
}

nb::tuple place(ClusterView& view, const BoundCatalog& catalog, InRows<int64_t> request,
                In<int32_t> preference, In<int64_t> gang, In<int32_t> partition_order, int ranking,
                int kind, uint64_t stream, bool preferred_first, In<bool> waits, In<bool> kept) {
  const size_t count = preference.size();
  if (request.shape(0) != count || request.shape(1) != view.static_state().dimensions() ||
      gang.size() != count)
    throw std::invalid_argument(
        "expected one request, preference and gang per task, and a column of request per "
        "dimension");
  if (ranking < 0 || ranking > static_cast<int>(agora::PartitionRanking::LatencyFirst))
    throw std::invalid_argument("unknown ranking");
  if (kind < 0 || kind > static_cast<int>(agora::PlacementKind::WeightedSampling))
    throw std::invalid_argument("unknown placement kind");
  const Fresh<int32_t> machine(count);
  const agora::PlaceRequest input{count,
                                  request.data(),
                                  span_of(preference),
                                  span_of(gang),
                                  span_of(partition_order),
                                  static_cast<agora::PartitionRanking>(ranking),
                                  static_cast<agora::PlacementKind>(kind),
                                  stream,
                                  preferred_first,
                                  span_of(waits),
                                  span_of(kept)};
  agora::PlaceWork work;
  {
    nb::gil_scoped_release release;
    work = agora::place(view, catalog.catalog, input, machine.data);
  }
  return nb::make_tuple(machine.array(), work.searches, work.looked_at, work.ranked,
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
  const Fresh<bool> may(count);
  const agora::WaitingTasks tasks{count, request.data(), span_of(preference), span_of(waits)};
  const int64_t looked_at = agora::may_be_placed(view, catalog.catalog, tasks, may.data);
  return nb::make_tuple(may.array(), looked_at);
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
  module.def("place", &place);
  module.def("may_be_placed", &may_be_placed);
  module.attr("RANKING_NAMES") = agora::bound_names(agora::kRankingNames);
  module.attr("PLACEMENT_KIND_NAMES") = agora::bound_names(agora::kPlacementKindNames);
}
