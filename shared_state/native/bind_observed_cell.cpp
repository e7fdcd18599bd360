// Native observers of the cell, for Python code that calls the cell itself
// (shared_state/observed_cell.py).
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include "bound_fields.hpp"
#include "observed_cell.hpp"

namespace nb = nanobind;
using namespace agora;

namespace {

template <class T>
std::shared_ptr<const T> part(nb::handle value, const char* field) {
  return BoundValue<std::shared_ptr<const T>>::from(value, field);
}
template <class T>
SharedColumn<T> column(nb::handle array, const char* field) {
  return BoundValue<SharedColumn<T>>::from(array, field);
}

void on_load(CellObserver& self, nb::handle task, nb::handle machine, nb::handle request,
             nb::handle owner, nb::handle allocation) {
  self.on_load({column<int64_t>(task, "task"), column<int32_t>(machine, "machine"),
                BoundValue<SharedTable<int64_t>>::from(request, "request"),
                column<int32_t>(owner, "owner"), column<int64_t>(allocation, "allocation")});
}

}  // namespace

void bind_observed_cell(nb::module_& module) {
  nb::class_<CellObserver>(module, "CellObserver", "A native observer; see observed_cell.hpp.")
      .def("attach", &CellObserver::attach, nb::arg("cell"), nb::keep_alive<1, 2>())
      .def("before_change", &CellObserver::before_change, nb::arg("now_us"))
      .def(
          "before_commit",
          [](CellObserver& self, nb::handle transaction, int64_t now_us) {
            self.before_commit(part<Transaction>(transaction, "transaction"), now_us);
          },
          nb::arg("transaction"), nb::arg("now_us"))
      .def(
          "on_commit",
          [](CellObserver& self, nb::handle transaction, nb::handle result, int64_t now_us) {
            self.on_commit(part<Transaction>(transaction, "transaction"),
                           part<CommitResult>(result, "result"), now_us);
          },
          nb::arg("transaction"), nb::arg("result"), nb::arg("now_us"))
      .def("on_release", &CellObserver::on_release, nb::arg("released"), nb::arg("now_us"))
      .def("on_load", &on_load, nb::arg("task"), nb::arg("machine"), nb::arg("request"),
           nb::arg("owner"), nb::arg("allocation"))
      .def(
          "on_machines",
          [](CellObserver& self, nb::handle machine, nb::handle up, const Released& lost,
             int64_t now_us) {
            self.on_machines(column<int32_t>(machine, "machine"), column<bool>(up, "up"), lost,
                             now_us);
          },
          nb::arg("machine"), nb::arg("up"), nb::arg("lost"), nb::arg("now_us"))
      .def(
          "on_delta",
          [](CellObserver& self, nb::handle delta, int64_t now_us) {
            self.on_delta(part<PartitionDelta>(delta, "delta"), now_us);
          },
          nb::arg("delta"), nb::arg("now_us"));
}
