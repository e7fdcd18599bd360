// Python's access to how many tasks the room of machines holds.
#include <nanobind/nanobind.h>

#include "machine_room.hpp"
#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"

namespace nb = nanobind;

namespace {

using agora::Column;
using agora::length_of;

nb::object units_in(nb::handle resources, nb::handle unit, int64_t most) {
  const size_t machines = length_of(resources, "resources"), dimensions = length_of(unit, "unit");
  const Column<const int64_t> rows(resources, "resources", machines, dimensions),
      one(unit, "unit", dimensions);
  const agora::NewArray<int64_t> units(machines);
  agora::units_in({rows.data(), machines * dimensions}, one.span(), most, units.span());
  return units.object();
}

nb::object fit_together(nb::handle task, nb::handle priority, nb::handle request,
                        nb::handle machine, nb::handle free, size_t dimensions) {
  const size_t n = length_of(task, "task"), machines = length_of(free, "free");
  const Column<const int64_t> ids(task, "task", n), asked(request, "request", n, dimensions),
      on(machine, "machine", n), left(free, "free", machines, dimensions);
  const Column<const int32_t> first(priority, "priority", n);
  const agora::NewArray<bool> fits(n);
  agora::fit_together({ids.span(), first.span(), {asked.data(), n * dimensions}, on.span()},
                      {left.data(), machines * dimensions}, dimensions, fits.span());
  return fits.object();
}

}  // namespace

void bind_machine_room(nb::module_& module) {
  module.def("units_in", &units_in);
  module.def("fit_together", &fit_together);
}
