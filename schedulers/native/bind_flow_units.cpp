// Python's access to units of a flow, and to array idioms of the flow scheduler.
#include <nanobind/nanobind.h>

#include "flow_units.hpp"
#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"

namespace nb = nanobind;

namespace {

using agora::array_of;
using agora::Column;
using agora::int64_column;
using agora::length_of;

nb::object units_in(nb::handle resources, nb::handle unit, int64_t most) {
  const size_t machines = length_of(resources, "resources"), dimensions = length_of(unit, "unit");
  const Column<const int64_t> rows(resources, "resources", machines, dimensions),
      one(unit, "unit", dimensions);
  const agora::NewArray<int64_t> units(machines);
  agora::units_in({rows.data(), machines * dimensions}, one.span(), most, units.span());
  return units.object();
}

nb::object ranges(nb::handle begin, nb::handle size) {
  return array_of(
      agora::ranges(int64_column(begin, "begin").span(), int64_column(size, "size").span()));
}

nb::object listed_arcs(nb::handle offsets, nb::handle head, nb::handle cost, nb::handle row,
                       nb::handle set) {
  const agora::ListedArcs arcs =
      agora::listed_arcs(int64_column(offsets, "offsets").span(), int64_column(head, "head").span(),
                         int64_column(cost, "cost").span(), int64_column(row, "row").span(),
                         int64_column(set, "set").span());
  return nb::make_tuple(array_of(arcs.row), array_of(arcs.head), array_of(arcs.cost));
}

nb::object entries_of(nb::handle offsets, nb::handle order, nb::handle row) {
  return array_of(agora::entries_of(int64_column(offsets, "offsets").span(),
                                    int64_column(order, "order").span(),
                                    int64_column(row, "row").span()));
}

nb::object differing(nb::handle a, nb::handle b) {
  return array_of(agora::differing(int64_column(a, "a").span(), int64_column(b, "b").span()));
}

nb::object without_node(nb::handle head, nb::handle node) {
  return array_of(
      agora::without_node(int64_column(head, "head").span(), int64_column(node, "node").span()));
}

nb::object cycle_among(nb::handle tail, nb::handle head) {
  return array_of(
      agora::cycle_among(int64_column(tail, "tail").span(), int64_column(head, "head").span()));
}

int64_t first_outside(nb::handle column, int64_t lowest, int64_t highest) {
  return agora::first_outside(int64_column(column, "column").span(), lowest, highest);
}

}  // namespace

void bind_flow_units(nb::module_& module) {
  module.def("units_in", &units_in);
  module.def("ranges", &ranges);
  module.def("listed_arcs", &listed_arcs);
  module.def("entries_of", &entries_of);
  module.def("differing", &differing);
  module.def("without_node", &without_node);
  module.def("cycle_among", &cycle_among);
  module.def("first_outside", &first_outside);
}
