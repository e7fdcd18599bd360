// Python's access to which placements of a flow can be claimed.
#include <nanobind/nanobind.h>

#include "claimable.hpp"
#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"

namespace nb = nanobind;

namespace {

using agora::Column;
using agora::length_of;

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

nb::object in_whole_gangs(nb::handle gang, nb::handle waiting_gang) {
  const Column<const int64_t> placed(gang, "gang", length_of(gang, "gang")),
      waiting(waiting_gang, "waiting_gang", length_of(waiting_gang, "waiting_gang"));
  const agora::NewArray<bool> whole(placed.size());
  agora::in_whole_gangs(placed.span(), waiting.span(), whole.span());
  return whole.object();
}

}  // namespace

void bind_claimable(nb::module_& module) {
  module.def("fit_together", &fit_together);
  module.def("in_whole_gangs", &in_whole_gangs);
}
