// Python's access to the arcs on which placements pay for slots.
#include <nanobind/nanobind.h>

#include "shared_state/native/new_array.hpp"
#include "shared_state/native/column.hpp"
#include "slot_segments.hpp"

namespace nb = nanobind;

namespace {

using agora::array_of;
using agora::Column;
using agora::SegmentArcs;

nb::tuple set(SegmentArcs& self, nb::handle cost, nb::handle slots, nb::handle free,
              nb::handle units, nb::handle row, size_t levels) {
  const size_t machines = agora::length_of(slots, "slots");
  const Column<const int64_t> costs(cost, "cost", machines, levels);
  const Column<const int64_t> all(slots, "slots", machines), left(free, "free", machines),
      unused(units, "units", machines);
  const Column<const int64_t> rows(row, "row", agora::length_of(row, "row"));
  agora::SegmentChanges found;
  {
    nb::gil_scoped_release release;
    found = self.set(
        {levels, {costs.data(), machines * levels}, all.span(), left.span(), unused.span()},
        rows.span());
  }
  return nb::make_tuple(array_of(found.new_machine), array_of(found.new_capacity),
                        array_of(found.new_cost), array_of(found.arc), array_of(found.capacity),
                        array_of(found.cost));
}

void name(SegmentArcs& self, nb::handle arc) {
  self.name(Column<const int64_t>(arc, "arc", agora::length_of(arc, "arc")).span());
}

}  // namespace

void bind_slot_segments(nb::module_& module) {
  nb::class_<SegmentArcs>(module, "SegmentArcs")
      .def(nb::init<size_t>(), nb::arg("machines"))
      .def("set", &set)
      .def("name", &name);
}
