// Python's access to what plans are checked against.
#include <nanobind/nanobind.h>

#include "plan_check.hpp"
#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"

namespace nb = nanobind;

namespace {

using agora::array_of;
using agora::Column;
using agora::int64_column;
using agora::length_of;
using agora::PendingTasks;

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

void bind_plan_check(nb::module_& module) {
  nb::class_<PendingTasks>(module, "PendingTasks")
      .def("__init__",
           [](PendingTasks* self, size_t tasks, nb::handle gang) {
             new (self) PendingTasks(tasks, int64_column(gang, "gang").span());
           })
      .def("take_round",
           [](PendingTasks& self, nb::handle offered, nb::handle claimed, nb::handle pending) {
             return self.take_round(int64_column(offered, "offered").span(),
                                    int64_column(claimed, "claimed").span(),
                                    int64_column(pending, "pending").span());
           })
      .def("rejected", [](PendingTasks& self,
                          nb::handle task) { self.rejected(int64_column(task, "task").span()); })
      .def("adopted", [](PendingTasks& self,
                         nb::handle task) { self.adopted(int64_column(task, "task").span()); })
      .def("all", [](const PendingTasks& self) { return array_of(self.all()); })
      .def("count", &PendingTasks::count)
      .def("in_gang", [](const PendingTasks& self, nb::handle gang) {
        return array_of(self.in_gang(int64_column(gang, "gang").span()));
      });
  module.def("first_differing_claim", &first_differing_claim);
}
