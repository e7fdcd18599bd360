// Python's access to the tasks of a flow scheduler, and to what the arcs of its graph stand for.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>

#include "shared_state/native/new_array.hpp"
#include "flow_arcs.hpp"
#include "shared_state/native/column.hpp"
#include "task_table.hpp"

namespace nb = nanobind;

namespace {

using agora::array_of;
using agora::Column;
using agora::FlowArcs;
using agora::GrowingColumn;
using agora::int64_column;
using agora::length_of;
using agora::TaskTable;

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

void reject(TaskTable& self, nb::handle task) { self.reject(int64_column(task, "task").span()); }

void run(TaskTable& self, nb::handle task, nb::handle machine, nb::handle allocation,
         int64_t at_us) {
  const Column<const int32_t> on(machine, "machine", length_of(machine, "machine"));
  self.run(int64_column(task, "task").span(), on.span(),
           int64_column(allocation, "allocation").span(), at_us);
}

void forget(TaskTable& self, nb::handle task) { self.forget(int64_column(task, "task").span()); }

void set_state(TaskTable& self, nb::handle row, int state) {
  if (state < 0 || state > static_cast<int>(agora::TaskState::kEvicting))
    throw std::invalid_argument("state: expected a TaskState");
  self.set_state(int64_column(row, "row").span(), static_cast<agora::TaskState>(state));
}

nb::tuple begin_update(TaskTable& self, bool preemption) {
  const TaskTable::Changes changes = self.begin_update(preemption);
  return nb::make_tuple(array_of(changes.removed), array_of(changes.started),
                        array_of(changes.joining));
}

nb::tuple enter_jobs(TaskTable& self, nb::handle row, int64_t quantum_us) {
  const TaskTable::Entered entered = self.enter_jobs(int64_column(row, "row").span(), quantum_us);
  return nb::make_tuple(array_of(entered.first_quantum), array_of(entered.lateness));
}

void name_jobs(TaskTable& self, nb::handle node, nb::handle arc) {
  self.jobs.name(int64_column(node, "node").span(), int64_column(arc, "arc").span());
}

nb::tuple open_jobs(const TaskTable& self) {
  const auto open = self.jobs.open();
  return nb::make_tuple(array_of(open.node), array_of(open.arc), array_of(open.first_quantum));
}

nb::object job_node(const TaskTable& self, nb::handle row) {
  return array_of(self.job_nodes(int64_column(row, "row").span()));
}

void set_node(TaskTable& self, nb::handle row, nb::handle node) {
  self.set_node(int64_column(row, "row").span(), int64_column(node, "node").span());
}

void set_running_arc(TaskTable& self, nb::handle row, nb::handle arc, nb::handle cost) {
  self.set_running_arc(int64_column(row, "row").span(), int64_column(arc, "arc").span(),
                       int64_column(cost, "cost").span());
}

void set_patience(TaskTable& self, nb::handle row, nb::handle arc, nb::handle ends_us) {
  self.set_patience(int64_column(row, "row").span(), int64_column(arc, "arc").span(),
                    int64_column(ends_us, "ends_us").span());
}

nb::object end_patience(TaskTable& self, nb::handle started, int64_t now_us) {
  return array_of(self.end_patience(int64_column(started, "started").span(), now_us));
}

nb::object rows(const TaskTable& self, nb::handle task) {
  return array_of(self.rows_of(int64_column(task, "task").span()));
}

nb::object still_waiting(const TaskTable& self, nb::handle task) {
  return array_of(self.still_waiting(int64_column(task, "task").span()));
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

bool waiting_ask_for(const TaskTable& self, nb::handle unit) {
  return self.waiting_ask_for(int64_column(unit, "unit").span());
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

nb::tuple join(FlowArcs& self, nb::handle row, nb::handle node, nb::handle arc_task,
               nb::handle arc_head, nb::handle arc_cost, nb::handle unscheduled_node,
               nb::handle unscheduled_cost, nb::handle machine_node, nb::handle aggregator_node) {
  const Column<const int64_t> rows = int64_column(row, "row"), nodes = int64_column(node, "node"),
                              tasks = int64_column(arc_task, "arc_task"),
                              heads = int64_column(arc_head, "arc_head"),
                              costs = int64_column(arc_cost, "arc_cost"),
                              waiting = int64_column(unscheduled_node, "unscheduled_node"),
                              prices = int64_column(unscheduled_cost, "unscheduled_cost"),
                              machines = int64_column(machine_node, "machine_node"),
                              aggregators = int64_column(aggregator_node, "aggregator_node");
  const FlowArcs::New added =
      self.join({rows.span(), nodes.span(), tasks.span(), heads.span(), costs.span(),
                 waiting.span(), prices.span(), machines.span(), aggregators.span()});
  return nb::make_tuple(array_of(added.tail), array_of(added.head), array_of(added.cost));
}

void name(FlowArcs& self, nb::handle arc) { self.name(int64_column(arc, "arc").span()); }

void add_of_tasks(FlowArcs& self, nb::handle arc, nb::handle row, nb::handle head) {
  self.add_of_tasks(int64_column(arc, "arc").span(), int64_column(row, "row").span(),
                    int64_column(head, "head").span());
}

void add_inner(FlowArcs& self, nb::handle arc, nb::handle inner) {
  self.add_inner(int64_column(arc, "arc").span(), int64_column(inner, "inner").span());
}

void add_others(FlowArcs& self, nb::handle arc) {
  self.add_others(int64_column(arc, "arc").span());
}

void take_flow(FlowArcs& self, nb::handle arc, nb::handle flow, nb::handle inner_flow) {
  const Column<int64_t> sums(inner_flow, "inner_flow", length_of(inner_flow, "inner_flow"));
  self.take_flow(int64_column(arc, "arc").span(), int64_column(flow, "flow").span(), sums.span());
}

nb::object next_hop(const FlowArcs& self, nb::handle row) {
  return array_of(self.next_hop(int64_column(row, "row").span()));
}

nb::object destination(const FlowArcs& self, nb::handle row) {
  return array_of(self.destination(int64_column(row, "row").span()));
}

nb::tuple sent(const FlowArcs& self, nb::handle row) {
  const FlowArcs::Sent found = self.sent(int64_column(row, "row").span());
  return nb::make_tuple(array_of(found.row), array_of(found.head));
}

nb::tuple lists(const FlowArcs& self, nb::handle row) {
  const FlowArcs::OfTasks found = self.lists(int64_column(row, "row").span());
  return nb::make_tuple(array_of(found.task), array_of(found.arc), array_of(found.head),
                        array_of(found.cost));
}

}  // namespace

void bind_task_table(nb::module_& module) {
  nb::class_<TaskTable>(module, "TaskTable")
      .def(nb::init<size_t>(), nb::arg("dimensions"))
      .def("offer_columns", &offer)
      .def("reject", &reject)
      .def("run", &run)
      .def("forget", &forget)
      .def("set_state", &set_state)
      .def("begin_update", &begin_update)
      .def("end_update", &TaskTable::end_update)
      .def("enter_jobs", &enter_jobs)
      .def("name_jobs", &name_jobs)
      .def("close_empty_jobs", [](TaskTable& self) { return array_of(self.jobs.close_empty()); })
      .def("open_jobs", &open_jobs)
      .def("job_node", &job_node)
      .def("set_node", &set_node)
      .def("set_running_arc", &set_running_arc)
      .def("set_patience", &set_patience)
      .def("end_patience", &end_patience)
      .def("first_end_of_patience", &TaskTable::first_end_of_patience)
      .def("rows", &rows)
      .def("waiting", [](const TaskTable& self) { return array_of(self.waiting()); })
      .def("still_waiting", &still_waiting)
      .def("columns", &columns)
      .def("waiting_ask_for", &waiting_ask_for)
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
      .def_prop_ro("running_arc_cost", &window<&TaskTable::running_arc_cost>)
      .def_prop_ro("patience_ends_us", &window<&TaskTable::patience_ends_us>);
  nb::class_<FlowArcs>(module, "FlowArcs")
      .def(nb::init<>())
      .def("join", &join)
      .def("name", &name)
      .def("add_of_tasks", &add_of_tasks)
      .def("add_inner", &add_inner)
      .def("add_others", &add_others)
      .def("take_flow", &take_flow)
      .def("next_hop", &next_hop)
      .def("destination", &destination)
      .def("sent", &sent)
      .def("lists", &lists);
}
