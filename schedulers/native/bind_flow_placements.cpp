// Python's access to the extraction of placements from a flow.
#include <nanobind/nanobind.h>

#include <optional>

#include "shared_state/native/new_array.hpp"
#include "flow_placements.hpp"
#include "shared_state/native/column.hpp"

namespace nb = nanobind;

namespace {

using agora::array_of;
using agora::Column;
using agora::int64_column;
using agora::length_of;

nb::tuple flow_placements(const agora::ClusterView& view, nb::handle head, nb::handle request,
                          nb::handle arc_task, nb::handle arc_head, nb::handle arc_cost,
                          nb::handle first, nb::handle end, nb::handle inner_head,
                          nb::handle inner_cost, nb::handle inner_flow, nb::handle inner_capacity,
                          nb::handle machine_room, nb::handle slot_cost, size_t slot_levels,
                          nb::handle slots, nb::handle slots_free, nb::handle units_free,
                          int64_t slot_beyond, bool direct_is_priced, nb::handle inner_is_priced,
                          uint64_t stream) {
  const size_t n = length_of(head, "head"), dimensions = view.static_state().dimensions();
  const Column<const int64_t> heads(head, "head", n), asked(request, "request", n, dimensions),
      arc_tasks = int64_column(arc_task, "arc_task"),
      arc_heads = int64_column(arc_head, "arc_head"),
      arc_costs = int64_column(arc_cost, "arc_cost"), firsts = int64_column(first, "first"),
      ends = int64_column(end, "end"), inner_heads = int64_column(inner_head, "inner_head"),
      inner_costs = int64_column(inner_cost, "inner_cost"),
      inner_flows = int64_column(inner_flow, "inner_flow"),
      capacities = int64_column(inner_capacity, "inner_capacity"),
      room = int64_column(machine_room, "machine_room"), all = int64_column(slots, "slots"),
      left = int64_column(slots_free, "slots_free"),
      unused = int64_column(units_free, "units_free");
  const size_t priced_machines = slot_levels ? length_of(slot_cost, "slot_cost") : 0;
  const Column<const bool> inner_priced(inner_is_priced, "inner_is_priced",
                                        length_of(inner_is_priced, "inner_is_priced"));
  std::optional<Column<const int64_t>> costs;
  if (slot_levels) costs.emplace(slot_cost, "slot_cost", priced_machines, slot_levels);
  const agora::PricedSlots priced{{slot_levels,
                                   {costs ? costs->data() : nullptr, priced_machines * slot_levels},
                                   all.span(),
                                   left.span(),
                                   unused.span()},
                                  slot_beyond,
                                  direct_is_priced,
                                  inner_priced.span()};
  const agora::SolvedFlow flow{heads.span(),
                               asked.data(),
                               arc_tasks.span(),
                               arc_heads.span(),
                               arc_costs.span(),
                               firsts.span(),
                               ends.span(),
                               inner_heads.span(),
                               inner_costs.span(),
                               inner_flows.span(),
                               capacities.span(),
                               room.span(),
                               priced};
  agora::FlowPlacements found;
  {
    nb::gil_scoped_release release;
    found = agora::flow_placements(view, flow, stream);
  }
  return nb::make_tuple(array_of(found.solved), array_of(found.chosen));
}

}  // namespace

void bind_flow_placements(nb::module_& module) { module.def("flow_placements", &flow_placements); }
