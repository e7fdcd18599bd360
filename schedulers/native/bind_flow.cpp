// Python's access to the graph of a flow scheduler: its tasks, what its arcs stand for, the arcs on
// which placements pay for slots, and the way from the flow to placements that can be claimed.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <optional>

#include "bound_types.hpp"
#include "flow_graph.hpp"
#include "flow_placements.hpp"

namespace nb = nanobind;

namespace {

using agora::array_of;
using agora::arrays;
using agora::Column;
using agora::FlowArcs;
using agora::GrowingColumn;
using agora::int64_column;
using agora::length_of;
using agora::SegmentArcs;
using agora::TaskTable;
using agora::with_arrays;

// A read-only array on a column's memory. A table that has grown since has other memory.
template <auto Member>
nb::object window(const TaskTable& self) {
  const auto& column = self.*Member;
  using Value = std::remove_cvref_t<decltype(column[0])>;
  using Shared = std::shared_ptr<const Value[]>;
  auto kept = std::make_unique<Shared>(column.shared());
  const Value* const data = kept->get();
  nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<Shared*>(p); });
  kept.release();
  const size_t shape[] = {column.rows(), column.width()};
  const size_t axes = static_cast<const void*>(&column) == &self.request ? 2 : 1;
  return nb::cast(nb::ndarray<nb::numpy, const Value>(data, axes, shape, owner));
}

void offer(TaskTable& self, nb::handle task, nb::handle job, nb::handle request,
           nb::handle priority, nb::handle submit_us, nb::handle preference, nb::handle gang,
           nb::handle task_class) {
  const size_t n = length_of(task, "task");
  const Column<const int64_t> ids(task, "task", n), jobs(job, "job", n),
      asked(request, "request", n, self.dimensions()), times(submit_us, "submit_us", n),
      gangs(gang, "gang", n);
  const Column<const int32_t> priorities(priority, "priority", n),
      preferences(preference, "preference", n);
  const Column<const int8_t> classes(task_class, "task_class", n);
  self.offer({ids.span(),
              jobs.span(),
              {asked.data(), n * self.dimensions()},
              priorities.span(),
              times.span(),
              preferences.span(),
              gangs.span(),
              classes.span()});
}

void set_state(TaskTable& self, nb::handle row, int state) {
  if (state < 0 || state > static_cast<int>(agora::TaskState::kEvicting))
    throw std::invalid_argument("state: expected a TaskState");
  self.set_state(int64_column(row, "row").span(), static_cast<agora::TaskState>(state));
}

template <class T>
nb::object gather(const GrowingColumn<T>& column, std::span<const int64_t> row, size_t width = 0) {
  const agora::NewArray<T> array(row.size(), width);
  for (size_t i = 0; i < row.size(); ++i)
    std::copy_n(&column[row[i]], column.width(), array.data() + i * column.width());
  return array.object();
}

// The columns of a TaskBatch of these rows.
nb::tuple columns(const TaskTable& self, nb::handle row) {
  const Column<const int64_t> of = int64_column(row, "row");
  self.require_rows(of.span());
  return nb::make_tuple(gather(self.task, of.span()), gather(self.job, of.span()),
                        gather(self.request, of.span(), self.dimensions()),
                        gather(self.priority, of.span()), gather(self.submit_us, of.span()),
                        gather(self.preference, of.span()), gather(self.gang, of.span()),
                        gather(self.task_class, of.span()));
}

nb::object requests(const TaskTable& self, nb::handle row) {
  const Column<const int64_t> of = int64_column(row, "row");
  self.require_rows(of.span());
  return gather(self.request, of.span(), self.dimensions());
}

nb::object gangs(const TaskTable& self, nb::handle row) {
  const Column<const int64_t> of = int64_column(row, "row");
  self.require_rows(of.span());
  return gather(self.gang, of.span());
}

// The columns of FlowArcs::Joining, which it keeps alive.
struct JoiningColumns {
  JoiningColumns(nb::handle row, nb::handle node, nb::handle arc_task, nb::handle arc_head,
                 nb::handle arc_cost, nb::handle unscheduled_node, nb::handle unscheduled_cost,
                 nb::handle machine_node, nb::handle aggregator_node)
      : rows(int64_column(row, "row")),
        nodes(int64_column(node, "node")),
        tasks(int64_column(arc_task, "arc_task")),
        heads(int64_column(arc_head, "arc_head")),
        costs(int64_column(arc_cost, "arc_cost")),
        waiting(int64_column(unscheduled_node, "unscheduled_node")),
        prices(int64_column(unscheduled_cost, "unscheduled_cost")),
        machines(int64_column(machine_node, "machine_node")),
        aggregators(int64_column(aggregator_node, "aggregator_node")) {}

  FlowArcs::Joining spans() const {
    return {rows.span(),    nodes.span(),  tasks.span(),    heads.span(),      costs.span(),
            waiting.span(), prices.span(), machines.span(), aggregators.span()};
  }

  Column<const int64_t> rows, nodes, tasks, heads, costs, waiting, prices, machines, aggregators;
};

template <class... Handles>
nb::tuple join(FlowArcs& self, Handles... handles) {
  const FlowArcs::New added = self.join(JoiningColumns(handles...).spans());
  return arrays(added.tail, added.head, added.cost);
}

template <class... Handles>
nb::tuple relist(FlowArcs& self, Handles... handles) {
  const FlowArcs::Relisted found = self.relist(JoiningColumns(handles...).spans());
  return arrays(found.arc, found.cost, found.removed, found.added.tail, found.added.head,
                found.added.cost);
}

using H = nb::handle;

nb::tuple set(SegmentArcs& self, nb::handle cost, nb::handle slots, nb::handle free,
              nb::handle units, nb::handle row, size_t levels) {
  const size_t machines = length_of(slots, "slots");
  const Column<const int64_t> costs(cost, "cost", machines, levels), all(slots, "slots", machines),
      left(free, "free", machines), unused(units, "units", machines),
      rows = int64_column(row, "row");
  agora::SegmentChanges found;
  {
    nb::gil_scoped_release release;
    found = self.set(
        {levels, {costs.data(), machines * levels}, all.span(), left.span(), unused.span()},
        rows.span());
  }
  return arrays(found.new_machine, found.new_capacity, found.new_cost, found.arc, found.capacity,
                found.cost);
}

nb::object units_in(nb::handle resources, nb::handle unit, int64_t most) {
  const size_t machines = length_of(resources, "resources"), dimensions = length_of(unit, "unit");
  const Column<const int64_t> rows(resources, "resources", machines, dimensions),
      one(unit, "unit", dimensions);
  const agora::NewArray<int64_t> units(machines);
  agora::units_in({rows.data(), machines * dimensions}, one.span(), most, units.span());
  return units.object();
}

nb::tuple flow_placements(const agora::ClusterView& view, nb::handle head, nb::handle request,
                          nb::handle arc_task, nb::handle arc_head, nb::handle arc_cost,
                          nb::handle first, nb::handle end, nb::handle inner_head,
                          nb::handle inner_cost, nb::handle inner_flow, nb::handle inner_capacity,
                          bool bounded, nb::handle machine_room, nb::handle slot_cost,
                          size_t slot_levels, nb::handle slots, nb::handle slots_free,
                          nb::handle units_free, int64_t slot_beyond, bool direct_is_priced,
                          nb::handle inner_is_priced, uint64_t stream) {
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
  const agora::SolvedFlow flow{heads.span(),       asked.data(),
                               arc_tasks.span(),   arc_heads.span(),
                               arc_costs.span(),   firsts.span(),
                               ends.span(),        inner_heads.span(),
                               inner_costs.span(), inner_flows.span(),
                               capacities.span(),  bounded,
                               room.span(),        priced};
  agora::FlowPlacements found;
  {
    nb::gil_scoped_release release;
    found = agora::flow_placements(view, flow, stream);
  }
  return arrays(found.solved, found.chosen);
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

nb::object in_whole_gangs(nb::handle gang, nb::handle waiting_gang) {
  const Column<const int64_t> placed(gang, "gang", length_of(gang, "gang")),
      waiting(waiting_gang, "waiting_gang", length_of(waiting_gang, "waiting_gang"));
  const agora::NewArray<bool> whole(placed.size());
  agora::in_whole_gangs(placed.span(), waiting.span(), whole.span());
  return whole.object();
}

}  // namespace

void bind_flow(nb::module_& module) {
  nb::class_<TaskTable>(module, "TaskTable")
      .def(nb::init<size_t>(), nb::arg("dimensions"))
      .def("offer_columns", &offer)
      .def("reject", with_arrays(&TaskTable::reject, {"task"}))
      .def("run", with_arrays(&TaskTable::run, {"task", "machine", "allocation", "at_us"}))
      .def("forget", with_arrays(&TaskTable::forget, {"task"}))
      .def("set_state", &set_state)
      .def("begin_update",
           [](TaskTable& self, bool preemption) {
             const TaskTable::Changes changes = self.begin_update(preemption);
             return arrays(changes.removed, changes.started, changes.joining);
           })
      .def("end_update", &TaskTable::end_update)
      .def("enter_groups",
           [](TaskTable& self, nb::handle row, nb::handle group, int64_t quantum_us) {
             const auto added = self.enter_groups(int64_column(row, "row").span(),
                                                  int64_column(group, "group").span(), quantum_us);
             return arrays(added.group, added.first_quantum);
           })
      .def("name_groups", with_arrays(&TaskTable::name_groups, {"node", "arc", "cost"}))
      .def("close_empty_groups",
           [](TaskTable& self) { return array_of(self.groups.close_empty()); })
      .def("open_groups",
           [](const TaskTable& self) {
             const auto open = self.groups.open();
             return arrays(open.group, open.node, open.arc, open.first_quantum, open.cost,
                           open.tasks);
           })
      .def("group_node", with_arrays(&TaskTable::group_nodes, {"row"}))
      .def("group_cost", with_arrays(&TaskTable::group_costs, {"row"}))
      .def("cost_of_lateness", with_arrays(&TaskTable::cost_of_lateness, {"row", "quantum_us"}))
      .def("set_node", with_arrays(&TaskTable::set_node, {"row", "node"}))
      .def("set_running_arc", with_arrays(&TaskTable::set_running_arc, {"row", "arc"}))
      .def("set_patience", with_arrays(&TaskTable::set_patience, {"row", "arc", "ends_us"}))
      .def("end_patience", with_arrays(&TaskTable::end_patience, {"started", "now_us"}))
      .def("first_end_of_patience", &TaskTable::first_end_of_patience)
      .def("rows", with_arrays(&TaskTable::rows_of, {"task"}))
      .def("waiting", with_arrays(&TaskTable::waiting, {}))
      .def("still_waiting", with_arrays(&TaskTable::still_waiting, {"task"}))
      .def("running_on", [](const TaskTable& self,
                            size_t machines) { return array_of(self.running_on(machines)); })
      .def("columns", &columns)
      .def("waiting_ask_for", with_arrays(&TaskTable::waiting_ask_for, {"unit"}))
      .def("requests", &requests)
      .def("gangs", &gangs)
      .def_prop_ro("capacity", &TaskTable::rows)
      .def_prop_ro("task", &window<&TaskTable::task>)
      .def_prop_ro("request", &window<&TaskTable::request>)
      .def_prop_ro("gang", &window<&TaskTable::gang>)
      .def_prop_ro("machine", &window<&TaskTable::machine>)
      .def_prop_ro("allocation", &window<&TaskTable::allocation>)
      .def_prop_ro("since_us", &window<&TaskTable::since_us>)
      .def_prop_ro("state", &window<&TaskTable::state>)
      .def_prop_ro("node_state", &window<&TaskTable::node_state>)
      .def_prop_ro("node", &window<&TaskTable::node>)
      .def_prop_ro("running_arc", &window<&TaskTable::running_arc>)
      .def_prop_ro("patience_ends_us", &window<&TaskTable::patience_ends_us>);
  nb::class_<FlowArcs>(module, "FlowArcs")
      .def(nb::init<>())
      .def("join", &join<H, H, H, H, H, H, H, H, H>)
      .def("relist", &relist<H, H, H, H, H, H, H, H, H>)
      .def("name_relisted", with_arrays(&FlowArcs::name_relisted, {"arc"}))
      .def("move_inner", with_arrays(&FlowArcs::move_inner, {"row"}))
      .def("name", with_arrays(&FlowArcs::name, {"arc"}))
      .def("add_of_tasks", with_arrays(&FlowArcs::add_of_tasks, {"arc", "row", "head"}))
      .def("add_inner", with_arrays(&FlowArcs::add_inner, {"arc", "inner"}))
      .def("add_others", with_arrays(&FlowArcs::add_others, {"arc"}))
      .def("take_flow", with_arrays(&FlowArcs::take_flow, {"arc", "flow", "inner_flow"}))
      .def("next_hop", with_arrays(&FlowArcs::next_hop, {"row"}))
      .def("destination", with_arrays(&FlowArcs::destination, {"row"}))
      .def("running",
           [](FlowArcs& self, const TaskTable& table, size_t machines) {
             const FlowArcs::Running found = self.running(table, machines);
             return arrays(found.moved, found.staying);
           })
      .def("sent",
           [](const FlowArcs& self, nb::handle row) {
             const FlowArcs::Sent found = self.sent(int64_column(row, "row").span());
             return arrays(found.row, found.head);
           })
      .def("lists", [](const FlowArcs& self, nb::handle row) {
        const FlowArcs::OfTasks found = self.lists(int64_column(row, "row").span());
        return arrays(found.task, found.arc, found.head, found.cost);
      });
  nb::class_<SegmentArcs>(module, "SegmentArcs")
      .def(nb::init<size_t>(), nb::arg("machines"))
      .def("set", &set)
      .def("name", with_arrays(&SegmentArcs::name, {"arc"}));

  module.def("units_in", &units_in);
  module.def("ranges", with_arrays(&agora::ranges, {"begin", "size"}));
  module.def("listed_arcs", [](nb::handle offsets, nb::handle head, nb::handle cost, nb::handle row,
                               nb::handle set) {
    const agora::ListedArcs arcs =
        agora::listed_arcs(int64_column(offsets, "offsets").span(),
                           int64_column(head, "head").span(), int64_column(cost, "cost").span(),
                           int64_column(row, "row").span(), int64_column(set, "set").span());
    return arrays(arcs.row, arcs.head, arcs.cost);
  });
  module.def("entries_of", with_arrays(&agora::entries_of, {"offsets", "order", "row"}));
  module.def("differing", with_arrays(&agora::differing, {"a", "b"}));
  module.def("without_node", with_arrays(&agora::without_node, {"head", "node"}));
  module.def("cycle_among", with_arrays(&agora::cycle_among, {"tail", "head"}));
  module.def("first_outside", with_arrays(&agora::first_outside, {"column", "lowest", "highest"}));
  module.def("flow_placements", &flow_placements);
  module.def("fit_together", &fit_together);
  module.def("in_whole_gangs", &in_whole_gangs);
}
