// Python's access to the counting of conflicts by cause.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "conflict_causes.hpp"
#include "schedulers/native/bound_catalog.hpp"
#include "shared_state/native/column.hpp"

namespace nb = nanobind;
using agora::CatalogColumns;
using agora::Column;
using agora::length_of;

namespace {

// With the array it borrows; the catalog is kept alive by nanobind.
struct BoundConflictCauses {
  BoundConflictCauses(size_t machines, nb::handle preference, const CatalogColumns& catalog,
                      std::vector<int64_t> from_us, std::vector<int64_t> to_us)
      : set(preference, "preference", length_of(preference, "preference")),
        causes(machines, set.span(), catalog.spans(), std::move(from_us), std::move(to_us)) {}

  void load(nb::handle task, nb::handle machine, nb::handle owner) {
    const size_t n = length_of(task, "task");
    const Column<const int64_t> tasks(task, "task", n);
    const Column<const int32_t> machines(machine, "machine", n), owners(owner, "owner", n);
    causes.load(tasks.span(), machines.span(), owners.span());
  }

  nb::tuple counts() const {
    return nb::make_tuple(causes.same_tick(), causes.quality(), causes.stale());
  }

  Column<const int32_t> set;
  agora::ConflictCauses causes;
};

}  // namespace

void bind_conflict_causes(nb::module_& module) {
  nb::class_<BoundConflictCauses>(module, "ConflictCauses",
                                  "Conflicts counted by cause; see conflict_causes.hpp.")
      .def(nb::init<size_t, nb::handle, const CatalogColumns&, std::vector<int64_t>,
                    std::vector<int64_t>>(),
           nb::arg("machines"), nb::arg("preference"), nb::arg("catalog"), nb::arg("from_us"),
           nb::arg("to_us"), nb::keep_alive<1, 4>())
      .def("load", &BoundConflictCauses::load, nb::arg("task"), nb::arg("machine"),
           nb::arg("owner"))
      .def(
          "commit",
          [](BoundConflictCauses& self, const agora::Transaction& transaction,
             const agora::CommitResult& result,
             int64_t now_us) { self.causes.commit(transaction, result, now_us); },
          nb::arg("transaction"), nb::arg("result"), nb::arg("now_us"))
      .def("counts", &BoundConflictCauses::counts, "(same tick, quality, staleness).");
}
