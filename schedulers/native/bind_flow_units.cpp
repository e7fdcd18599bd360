// Python's access to units of a flow, and to array idioms of the flow scheduler.
#include <nanobind/nanobind.h>

#include "flow_units.hpp"
#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"

namespace nb = nanobind;

namespace {

using agora::array_of;
using agora::Column;
using agora::length_of;

Column<const int64_t> column_of(nb::handle array, const char* field) {
  return {array, field, length_of(array, field)};
}

nb::object units_in(nb::handle resources, nb::handle unit, int64_t most) {
  const size_t machines = length_of(resources, "resources"), dimensions = length_of(unit, "unit");
  const Column<const int64_t> rows(resources, "resources", machines, dimensions),
      one(unit, "unit", dimensions);
  const agora::NewArray<int64_t> units(machines);
  agora::units_in({rows.data(), machines * dimensions}, one.span(), most, units.span());
  return units.object();
}

nb::object ranges(nb::handle begin, nb::handle size) {
  return array_of(agora::ranges(column_of(begin, "begin").span(), column_of(size, "size").span()));
}

nb::object listed_arcs(nb::handle offsets, nb::handle head, nb::handle cost, nb::handle row,
                       nb::handle set) {
  const agora::ListedArcs arcs = agora::listed_arcs(
      column_of(offsets, "offsets").span(), column_of(head, "head").span(),
      column_of(cost, "cost").span(), column_of(row, "row").span(), column_of(set, "set").span());
  return nb::make_tuple(array_of(arcs.row), array_of(arcs.head), array_of(arcs.cost));
}

nb::object entries_of(nb::handle offsets, nb::handle order, nb::handle row) {
  return array_of(agora::entries_of(column_of(offsets, "offsets").span(),
                                    column_of(order, "order").span(),
                                    column_of(row, "row").span()));
}

nb::object differing(nb::handle a, nb::handle b) {
  return array_of(agora::differing(column_of(a, "a").span(), column_of(b, "b").span()));
}

nb::object without_node(nb::handle head, nb::handle node) {
  return array_of(
      agora::without_node(column_of(head, "head").span(), column_of(node, "node").span()));
}

nb::object cycle_among(nb::handle tail, nb::handle head) {
  return array_of(
      agora::cycle_among(column_of(tail, "tail").span(), column_of(head, "head").span()));
}

int64_t first_outside(nb::handle column, int64_t lowest, int64_t highest) {
  return agora::first_outside(column_of(column, "column").span(), lowest, highest);
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
