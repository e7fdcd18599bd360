// Python's access to the demand of offered tasks, to implied costs, and to the optimum.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <utility>

#include "bound_types.hpp"
#include "estimators.hpp"
#include "schedulers/native/objective.hpp"
#include "shared_state/native/column.hpp"
#include "objective.hpp"

namespace nb = nanobind;

namespace {

using agora::array_of;
using agora::BestPlacement;
using agora::CatalogColumns;
using agora::Column;
using agora::length_of;
using agora::NewArray;
using agora::OfferedDemand;

// With the arrays that it borrows.
struct BoundDemand {
  BoundDemand(CatalogColumns arrays, size_t dimensions, size_t samples)
      : columns(std::move(arrays)), demand(columns.spans(), dimensions, samples) {}
  const CatalogColumns columns;
  OfferedDemand demand;
};

void offered(BoundDemand& self, nb::handle task, nb::handle preference, nb::handle request) {
  const size_t count = length_of(task, "task");
  const Column<const int64_t> ids(task, "task", count);
  const Column<const int32_t> sets(preference, "preference", count);
  const Column<const int64_t> requests(request, "request", count, self.demand.dimensions());
  self.demand.offered(ids.span(), sets.span(), requests.data());
}

void learn(BoundDemand& self, nb::handle preference, nb::handle tasks, nb::handle squares) {
  const size_t count = length_of(preference, "preference");
  const Column<const int32_t> sets(preference, "preference", count);
  const Column<const int64_t> of_set(tasks, "tasks", count), squared(squares, "squares", count);
  self.demand.learn(sets.span(), of_set.span(), squared.span());
}

nb::object gain(const BoundDemand& self) {
  const NewArray<int64_t> gain(self.demand.machines());
  self.demand.gain(gain.span());
  return gain.object();
}

nb::object load(const BoundDemand& self, int64_t busy) {
  const NewArray<int64_t> load(self.demand.machines());
  self.demand.load(busy, load.span());
  return load.object();
}

nb::object implied_cost(int64_t load, int64_t slots, int64_t gain, size_t levels) {
  if (load < 0 || load > int64_t{1} << 62 || slots < 0 || slots > agora::kMaxLevels || gain < 0 ||
      gain > int64_t{1} << 32)
    throw std::invalid_argument("load, slots, gain: out of range");
  const NewArray<int64_t> price(levels);
  agora::implied_cost(load, slots, gain, price.span());
  return price.object();
}

nb::tuple update_implied_prices(nb::handle price, nb::handle load_before, nb::handle gain_before,
                                nb::handle load, nb::handle slots, nb::handle gain, size_t levels) {
  const size_t machines = length_of(load, "load");
  const Column<int64_t> prices(price, "price", machines, levels);
  const Column<int64_t> loads_before(load_before, "load_before", machines);
  const Column<int64_t> gains_before(gain_before, "gain_before", machines);
  const Column<const int64_t> loads(load, "load", machines), slot_counts(slots, "slots", machines),
      gains(gain, "gain", machines);
  const agora::ImpliedPrices held{
      {prices.data(), machines * levels}, levels, loads_before.span(), gains_before.span()};
  agora::PriceChanges changes;
  {
    nb::gil_scoped_release release;
    changes = agora::update_implied_prices(held, loads.span(), slot_counts.span(), gains.span());
  }
  return nb::make_tuple(changes.computed, changes.changed);
}

nb::tuple cost(BestPlacement& best, nb::handle room, nb::handle preference, nb::handle request,
               size_t dimensions) {
  const Column<const int64_t> rooms(room, "room", best.machines(), dimensions);
  const size_t count = length_of(preference, "preference");
  const Column<const int32_t> sets(preference, "preference", count);
  const Column<const int64_t> requests(request, "request", count, dimensions);
  const agora::Optimum optimum = best.cost({rooms.data(), best.machines() * dimensions}, dimensions,
                                           sets.span(), {requests.data(), count * dimensions});
  return nb::make_tuple(optimum.cost, optimum.exact);
}

}  // namespace

void bind_prices(nb::module_& module) {
  nb::class_<BoundDemand>(module, "OfferedDemand")
      .def(nb::init<CatalogColumns, size_t, size_t>(), nb::arg("columns"), nb::arg("dimensions"),
           nb::arg("samples"))
      .def("offered", &offered)
      .def("share", [](BoundDemand& self) { self.demand.share(); })
      .def("take_new", [](BoundDemand& self) { return array_of(self.demand.take_new()); })
      .def("learn", &learn)
      .def("advance",
           [](BoundDemand& self, int64_t keep) {
             nb::gil_scoped_release release;
             return self.demand.advance(keep);
           })
      .def("pool", [](BoundDemand& self) { self.demand.pool(); })
      .def_prop_ro("total", [](const BoundDemand& self) { return self.demand.total(); })
      .def_prop_ro("tasks", [](const BoundDemand& self) { return self.demand.tasks(); })
      .def_prop_ro("demand", [](const BoundDemand& self) { return array_of(self.demand.demand()); })
      .def_prop_ro("members",
                   [](const BoundDemand& self) { return array_of(self.demand.members()); })
      .def_prop_ro("recent_requests",
                   [](const BoundDemand& self) {
                     return array_of(self.demand.recent_requests(), self.demand.dimensions());
                   })
      .def_prop_ro("recent_sets",
                   [](const BoundDemand& self) { return array_of(self.demand.recent_sets()); })
      .def("gain", &gain)
      .def("mean_gain", [](const BoundDemand& self) { return self.demand.mean_gain(); })
      .def("load", &load);
  module.attr("KEEP_ALL") = OfferedDemand::kKeepAll;
  module.attr("PRICE_LEVELS") = agora::kMaxLevels;
  module.def("implied_cost", &implied_cost);
  module.def("update_implied_prices", &update_implied_prices);

  nb::class_<BestPlacement>(module, "BestPlacement")
      .def(
          "__init__",
          [](BestPlacement* self, const CatalogColumns& catalog) {
            new (self) BestPlacement(catalog.spans());
          },
          nb::arg("catalog"), nb::keep_alive<1, 2>())
      .def("cost", &cost, nb::arg("room"), nb::arg("preference"), nb::arg("request"),
           nb::arg("dimensions"));
}
