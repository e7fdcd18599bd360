// Python's access to the optimum.
#include <nanobind/nanobind.h>

#include "bound_catalog.hpp"
#include "optimum.hpp"
#include "shared_state/native/column.hpp"

namespace nb = nanobind;
using agora::BestPlacement;
using agora::CatalogColumns;
using agora::Column;
using agora::length_of;

namespace {

nb::tuple cost(const BestPlacement& best, nb::handle room, nb::handle preference,
               nb::handle request, size_t dimensions) {
  const Column<const int64_t> rooms(room, "room", best.machines(), dimensions);
  const size_t count = length_of(preference, "preference");
  const Column<const int32_t> sets(preference, "preference", count);
  const Column<const int64_t> requests(request, "request", count, dimensions);
  const agora::Optimum optimum = best.cost({rooms.data(), best.machines() * dimensions}, dimensions,
                                           sets.span(), {requests.data(), count * dimensions});
  return nb::make_tuple(optimum.cost, optimum.exact);
}

}  // namespace

void bind_optimum(nb::module_& module) {
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
