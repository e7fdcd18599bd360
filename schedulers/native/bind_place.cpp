// Python's access to the catalog, placement costs and the placement kernel.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bound_catalog.hpp"
#include "may_be_placed.hpp"
#include "placer.hpp"
#include "shared_state/native/bound_names.hpp"
#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"

namespace nb = nanobind;

namespace {

using agora::BoundCatalog;
using agora::CatalogColumns;
using agora::ClusterView;
using agora::Column;
using agora::NewArray;

using agora::In;
using agora::span_of;
template <typename T>
using InRows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T, int kDimensions>
using InAnyOrder = nb::ndarray<const T, nb::ndim<kDimensions>, nb::device::cpu>;
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

agora::PartitionRanking ranking_of(int ranking) {
  if (ranking < 0 || ranking > static_cast<int>(agora::kRankingNames.size()) - 1)
    throw std::invalid_argument("unknown ranking");
  return static_cast<agora::PartitionRanking>(ranking);
}

agora::PartitionQuality quality_of(int quality) {
  if (quality < 0 || quality > static_cast<int>(agora::kQualityNames.size()) - 1)
    throw std::invalid_argument("unknown quality");
  return static_cast<agora::PartitionQuality>(quality);
}

agora::PlacementKind kind_of(int kind) {
  if (kind < 0 || kind > static_cast<int>(agora::PlacementKind::WeightedSampling))
    throw std::invalid_argument("unknown placement kind");
  return static_cast<agora::PlacementKind>(kind);
}

// The rows of a scheduler's view by price, as Python holds them: with the catalog.
struct BoundPricedRows {
  BoundPricedRows(nb::object of, bool paid, int64_t weight_permille, bool elsewhere_only)
      : catalog(std::move(of)),
        rows(nb::cast<const BoundCatalog&>(catalog).catalog,
             {paid, weight_permille, elsewhere_only}) {}
  void set_prices(const InRows<int64_t>& price, const In<int64_t>& slots, const In<int64_t>& unit) {
    rows.set_prices(std::make_shared<agora::SlotPrices>(
        std::span(price.data(), price.size()), price.shape(1), span_of(slots), span_of(unit)));
  }
  const nb::object catalog;
  agora::PricedRows rows;
};

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

// The columns of the task table that placing reads, by task id. Borrowed. A column of one value
// may repeat it with a stride of 0, so no column is expected to be contiguous.
struct TaskColumns {
  TaskColumns(InAnyOrder<int64_t, 2> request, InAnyOrder<int32_t, 1> preference,
              InAnyOrder<int64_t, 1> gang)
      : request(std::move(request)), preference(std::move(preference)), gang(std::move(gang)) {
    if (this->request.shape(0) != tasks() || this->gang.shape(0) != tasks())
      throw std::invalid_argument("task table: expected columns of one length");
  }

  size_t tasks() const { return preference.shape(0); }
  size_t dimensions() const { return request.shape(1); }

  InAnyOrder<int64_t, 2> request;
  InAnyOrder<int32_t, 1> preference;
  InAnyOrder<int64_t, 1> gang;
};

// Tasks of a plan, [n] each; request is [n, R].
struct PlannedTasks {
  PlannedTasks(const TaskColumns& table, std::span<const int64_t> ids)
      : request(ids.size() * table.dimensions()), preference(ids.size()), gang(ids.size()) {
    const size_t width = table.dimensions();
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto row = static_cast<size_t>(ids[i]);
      if (row >= table.tasks())
        throw std::invalid_argument("task[" + std::to_string(i) + "]: there is no such task");
      for (size_t r = 0; r < width; ++r) request[i * width + r] = table.request(row, r);
      preference[i] = table.preference(row);
      gang[i] = table.gang(row);
    }
  }

  std::vector<int64_t> request;
  std::vector<int32_t> preference;
  std::vector<int64_t> gang;
};

nb::tuple columns_of(const TaskColumns& table, nb::handle task) {
  const Column<const int64_t> ids(task, "task", agora::length_of(task, "task"));
  const PlannedTasks tasks(table, ids.span());
  const NewArray<int32_t> preference(tasks.preference.size());
  const NewArray<int64_t> request(tasks.preference.size(), table.dimensions());
  std::copy(tasks.preference.begin(), tasks.preference.end(), preference.data());
  std::copy(tasks.request.begin(), tasks.request.end(), request.data());
  return nb::make_tuple(preference.object(), request.object());
}

nb::tuple place_and_claim(ClusterView& view, const BoundCatalog& catalog, const TaskColumns& table,
                          nb::object task, nb::handle partition_order, int ranking, int quality,
                          int kind, uint64_t stream, bool preferred_first,
                          BoundPricedRows* prices) {
  const size_t count = agora::length_of(task, "task"), width = table.dimensions();
  const Column<const int64_t> ids(task, "task", count);
  const Column<const int32_t> order(partition_order, "partition_order",
                                    agora::length_of(partition_order, "partition_order"));
  if (width != view.static_state().dimensions())
    throw std::invalid_argument("the tasks are of another cell than the view");
  const PlannedTasks tasks(table, ids.span());
  std::vector<int32_t> found(count);
  agora::PlaceRequest input{count,          tasks.request.data(), tasks.preference, tasks.gang,
                            order.span(),   ranking_of(ranking),  kind_of(kind),    stream,
                            preferred_first};
  if (prices != nullptr) input.prices = &prices->rows;
  input.quality = quality_of(quality);
  const agora::PlaceWork work = agora::place(view, catalog.catalog, input, found.data());

  const auto placed = static_cast<size_t>(
      std::count_if(found.begin(), found.end(), [](int32_t row) { return row >= 0; }));
  const NewArray<int32_t> machine(placed);
  const NewArray<int64_t> request(placed, width), gang(placed), synced_us(placed);
  std::optional<NewArray<int64_t>> claimed, pending;  // of the others, if there are any
  if (placed < count) {
    claimed.emplace(placed);
    pending.emplace(count - placed);
  }
  size_t claim = 0;
  for (size_t i = 0; i < count; ++i) {
    if (found[i] < 0) {
      pending->data()[i - claim] = ids.data()[i];
      continue;
    }
    machine.data()[claim] = found[i];
    std::copy_n(tasks.request.data() + i * width, width, request.data() + claim * width);
    gang.data()[claim] = tasks.gang[i];
    synced_us.data()[claim] = view.synced_us()[view.static_state().index.partition_of(found[i])];
    if (placed < count) claimed->data()[claim] = ids.data()[i];
    ++claim;
  }
  if (view.first_oversubscribed(machine.span(), request.data(), {}, nullptr) >= 0)
    throw std::logic_error("the kernel placed more than the view has room for");
  const int64_t ticket = view.claim(machine.span(), request.data());
  return nb::make_tuple(claimed ? claimed->object() : task, machine.object(), request.object(),
                        gang.object(), synced_us.object(), pending ? pending->object() : nb::none(),
                        ticket, work.searches, work.looked_at, work.ranked,
                        work.partitions_scanned);
}

constexpr const char* place_and_claim_doc =
    "Places tasks (int64[n], ids) and takes those that found a place, k of them, out of the view.\n"
    "\n"
    "Returns (task int64[k], machine int32[k], request int64[k, R], gang int64[k], synced_us\n"
    "int64[k], pending int64[n - k], ticket, searches, looked_at, ranked, partitions_scanned). If\n"
    "k = n, `task` is the array given, and `pending` is None. synced_us: when each machine's\n"
    "partition was synced.";

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
  nb::class_<BoundPricedRows>(module, "PricedRows")
      .def(nb::init<nb::object, bool, int64_t, bool>(), nb::arg("catalog"), nb::arg("paid"),
           nb::arg("weight_permille"), nb::arg("elsewhere_only"))
      .def("lowest_price",
           [](BoundPricedRows& self, ClusterView& view) { return self.rows.lowest_price(view); })
      .def("set_prices", &BoundPricedRows::set_prices, nb::arg("price"), nb::arg("slots"),
           nb::arg("unit"));
  module.def("place", &place, nb::arg("view"), nb::arg("catalog"), nb::arg("request"),
             nb::arg("preference"), nb::arg("gang"), nb::arg("partition_order"), nb::arg("ranking"),
             nb::arg("quality"), nb::arg("kind"), nb::arg("stream"), nb::arg("preferred_first"),
             nb::arg("waits"), nb::arg("kept"), nb::arg("prices").none());
  nb::class_<TaskColumns>(module, "TaskColumns")
      .def(nb::init<InAnyOrder<int64_t, 2>, InAnyOrder<int32_t, 1>, InAnyOrder<int64_t, 1>>(),
           nb::arg("request"), nb::arg("preference"), nb::arg("gang"))
      .def("columns_of", &columns_of);
  module.def("place_and_claim", &place_and_claim, nb::arg("view"), nb::arg("catalog"),
             nb::arg("table"), nb::arg("task"), nb::arg("partition_order"), nb::arg("ranking"),
             nb::arg("quality"), nb::arg("kind"), nb::arg("stream"), nb::arg("preferred_first"),
             nb::arg("prices").none(), place_and_claim_doc);
  module.def("may_be_placed", &may_be_placed);
  module.attr("RANKING_NAMES") = agora::bound_names(agora::kRankingNames);
  module.attr("QUALITY_NAMES") = agora::bound_names(agora::kQualityNames);
  module.attr("PLACEMENT_KIND_NAMES") = agora::bound_names(agora::kPlacementKindNames);
}
