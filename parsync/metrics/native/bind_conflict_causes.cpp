// Python's access to the counting of conflicts by cause.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "conflict_causes.hpp"
#include "schedulers/native/bound_catalog.hpp"
#include "shared_state/native/bound_fields.hpp"

namespace nb = nanobind;
using namespace agora;

void bind_conflict_causes(nb::module_& module) {
  nb::class_<ConflictCauses, CellObserver>(module, "ConflictCauses",
                                           "Conflicts counted by cause; see conflict_causes.hpp.")
      .def(
          "__init__",
          [](ConflictCauses* self, size_t machines, nb::handle preference,
             const CatalogColumns& catalog, std::vector<int64_t> from_us,
             std::vector<int64_t> to_us) {
            new (self) ConflictCauses(
                machines, BoundValue<SharedColumn<int32_t>>::from(preference, "preference"),
                catalog.spans(), std::move(from_us), std::move(to_us));
          },
          nb::arg("machines"), nb::arg("preference"), nb::arg("catalog"), nb::arg("from_us"),
          nb::arg("to_us"), nb::keep_alive<1, 4>())
      .def(
          "counts",
          [](const ConflictCauses& self) {
            return nb::make_tuple(self.same_tick(), self.quality(), self.stale());
          },
          "(same tick, quality, staleness).");
}
