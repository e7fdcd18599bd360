#include "flow_graph.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace agora {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace

UnscheduledAggregators::New UnscheduledAggregators::enter(std::span<const int64_t> group,
                                                          std::span<const int64_t> submitted,
                                                          std::span<int64_t> place) {
  require_named();
  require(submitted.size() == group.size() && place.size() == group.size(),
          "group, submitted, place: expected columns of one length");
  New added;
  for (const int64_t each : group)
    if (!place_of_.contains(each)) added.group.push_back(each);
  std::sort(added.group.begin(), added.group.end());
  added.group.erase(std::unique(added.group.begin(), added.group.end()), added.group.end());
  if (pool_.reserve(added.group.size())) places_.resize(pool_.rows());
  for (const int64_t each : added.group) {
    const int64_t free = pool_.take();
    at(free) = {each, kNoNode, 0, INT64_MAX, 0, 0};
    place_of_.emplace(each, free);
    unnamed_.push_back(free);
  }
  for (size_t i = 0; i < group.size(); ++i) {
    place[i] = place_of_.find(group[i])->second;
    Place& its = at(place[i]);
    ++its.tasks;
    if (its.node == kNoNode) its.first_quantum = std::min(its.first_quantum, submitted[i]);
  }
  for (const int64_t each : unnamed_) added.first_quantum.push_back(at(each).first_quantum);
  return added;
}

void UnscheduledAggregators::name(std::span<const int64_t> node, std::span<const int64_t> arc,
                                  std::span<const int64_t> cost) {
  require(node.size() == unnamed_.size() && arc.size() == unnamed_.size() &&
              cost.size() == unnamed_.size(),
          "node, arc, cost: expected one of each for each new group");
  for (size_t i = 0; i < node.size(); ++i)
    require(node[i] >= 0 && arc[i] >= 0, "node, arc: expected ids from 0 on");
  for (size_t i = 0; i < unnamed_.size(); ++i) {
    at(unnamed_[i]).node = node[i];
    at(unnamed_[i]).arc = arc[i];
    at(unnamed_[i]).cost = cost[i];
  }
  unnamed_.clear();
}

void UnscheduledAggregators::leave(int64_t place) {
  if (at(place).tasks == 0) throw std::logic_error("more tasks left a group than had entered it");
  --at(place).tasks;
}

std::vector<int64_t> UnscheduledAggregators::close_empty() {
  require_named();
  std::vector<int64_t> closed, nodes;
  for (size_t p = 0; p < places_.size(); ++p) {
    if (places_[p].node == kNoNode || places_[p].tasks > 0) continue;
    closed.push_back(static_cast<int64_t>(p));
    nodes.push_back(places_[p].node);
    place_of_.erase(places_[p].group);
    places_[p].node = kNoNode;
  }
  for (auto place = closed.rbegin(); place != closed.rend(); ++place) pool_.give_back(*place);
  return nodes;
}

UnscheduledAggregators::Open UnscheduledAggregators::open() const {
  Open found;
  for (const Place& each : places_) {
    if (each.node == kNoNode) continue;
    found.group.push_back(each.group);
    found.node.push_back(each.node);
    found.arc.push_back(each.arc);
    found.first_quantum.push_back(each.first_quantum);
    found.cost.push_back(each.cost);
    found.tasks.push_back(each.tasks);
  }
  return found;
}

void UnscheduledAggregators::require_named() const {
  if (!unnamed_.empty()) throw std::logic_error("new groups have no ids yet");
}

namespace {

constexpr size_t kFewestRows = 1024;

int64_t floor_divide(int64_t value, int64_t by) { return value / by - (value % by < 0 ? 1 : 0); }

}  // namespace

TaskTable::TaskTable(size_t dimensions) : request(dimensions), pool_(kFewestRows) {
  require(dimensions > 0, "dimensions: expected at least one");
}

void TaskTable::offer(const TaskColumns& tasks) {
  const size_t n = tasks.task.size();
  require(tasks.job.size() == n && tasks.request.size() == n * dimensions() &&
              tasks.priority.size() == n && tasks.submit_us.size() == n &&
              tasks.preference.size() == n && tasks.gang.size() == n &&
              tasks.task_class.size() == n,
          "tasks: expected columns of one length, and a column of request per dimension");
  int64_t largest = -1;
  size_t unknown = 0;
  for (const int64_t id : tasks.task) {
    require(id >= 0, "task: expected ids from 0 on");
    if (row_of(id) != kNoRow) continue;
    ++unknown;
    largest = std::max(largest, id);
  }
  if (unknown > 0) reserve(unknown, largest);
  for (size_t i = 0; i < n; ++i) {
    const int64_t known = row_of(tasks.task[i]);
    if (known != kNoRow) {
      change_state(known, TaskState::kWaiting);
      continue;
    }
    const int64_t row = pool_.take();
    row_of_[static_cast<size_t>(tasks.task[i])] = static_cast<int32_t>(row);
    task[row] = tasks.task[i];
    job[row] = tasks.job[i];
    std::copy_n(&tasks.request[i * dimensions()], dimensions(), &request[row]);
    priority[row] = tasks.priority[i];
    submit_us[row] = tasks.submit_us[i];
    preference[row] = tasks.preference[i];
    gang[row] = tasks.gang[i];
    task_class[row] = tasks.task_class[i];
    change_state(row, TaskState::kWaiting);
    machine[row] = allocation[row] = -1;
    since_us[row] = 0;
    node_state[row] = static_cast<int8_t>(TaskNodeState::kNone);
    node[row] = kNoNode;
    running_arc[row] = patience_arc[row] = kNoArc;
    patience_ends_us[row] = 0;
  }
}

void TaskTable::reject(std::span<const int64_t> tasks) {
  for (const int64_t id : tasks) {
    const int64_t row = row_of(id);
    if (row != kNoRow && state_of(row) == TaskState::kInFlight)
      change_state(row, TaskState::kWaiting);
  }
}

void TaskTable::run(std::span<const int64_t> tasks, std::span<const int32_t> on,
                    std::span<const int64_t> as, int64_t at_us) {
  require(on.size() == tasks.size() && as.size() == tasks.size(),
          "machine, allocation: expected one of each per task");
  for (size_t i = 0; i < tasks.size(); ++i) {
    const int64_t row = row_of(tasks[i]);
    if (row == kNoRow) continue;
    change_state(row, TaskState::kInFlight);
    if (node_state_of(row) == TaskNodeState::kRunning) {
      graph_runs_on_.add(machine[row], -1);
      graph_runs_on_.add(on[i], 1);
    }
    machine[row] = on[i];
    change_state(row, TaskState::kRunning);
    allocation[row] = as[i];
    since_us[row] = at_us;
  }
}

void TaskTable::forget(std::span<const int64_t> tasks) {
  std::vector<int64_t> gone;
  for (const int64_t id : tasks) {
    const int64_t row = row_of(id);
    if (row == kNoRow) continue;
    row_of_[static_cast<size_t>(id)] = static_cast<int32_t>(kNoRow);
    gone.push_back(row);
  }
  std::sort(gone.begin(), gone.end());
  for (const int64_t row : gone) {
    leave_graph(row);
    change_state(row, TaskState::kAbsent);
  }
  for (auto row = gone.rbegin(); row != gone.rend(); ++row) pool_.give_back(*row);
}

void TaskTable::set_state(std::span<const int64_t> rows, TaskState to) {
  require_rows(rows);
  for (const int64_t row : rows) change_state(row, to);
}

void TaskTable::change_state(int64_t row, TaskState to) {
  const TaskState was = state_of(row);
  if (was == to) return;
  if (was == TaskState::kRunning) running_on_.add(machine[row], -1);
  if (to == TaskState::kRunning) running_on_.add(machine[row], 1);
  if (was == TaskState::kWaiting) {
    const int32_t at = waiting_place_[row];
    const int64_t last = waiting_.back();
    waiting_[static_cast<size_t>(at)] = last;
    waiting_place_[last] = at;
    waiting_.pop_back();
  }
  if (to == TaskState::kWaiting) {
    waiting_place_[row] = static_cast<int32_t>(waiting_.size());
    waiting_.push_back(row);
  }
  state[row] = static_cast<int8_t>(to);
  restated_.push_back(row);
}

void TaskTable::change_node_state(int64_t row, TaskNodeState to) {
  if (node_state_of(row) == TaskNodeState::kRunning) graph_runs_on_.add(machine[row], -1);
  if (to == TaskNodeState::kRunning) graph_runs_on_.add(machine[row], 1);
  node_state[row] = static_cast<int8_t>(to);
}

template <class Holds>
std::vector<int64_t> TaskTable::select_of_all(const Holds& holds) const {
  std::vector<int64_t> found;
  for (int64_t row = 0; row < static_cast<int64_t>(rows()); ++row)
    if (holds(row)) found.push_back(row);
  return found;
}

template <class Holds>
std::vector<int64_t> TaskTable::select(std::span<const int64_t> listed, const Holds& holds) const {
  constexpr size_t kRowsPerListed = 16;  // reading in order takes less than sorting
  if (kRowsPerListed * listed.size() > rows()) return select_of_all(holds);
  std::vector<int64_t> found;
  std::copy_if(listed.begin(), listed.end(), std::back_inserter(found), holds);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<int64_t> TaskTable::Counts::first(size_t machines) const {
  for (size_t m = machines; m < of_.size(); ++m)
    require(of_[m] == 0, "machine: expected machines of the cell");
  std::vector<int64_t> found = of_;
  found.resize(machines, 0);
  return found;
}

TaskTable::Changes TaskTable::begin_update(bool preemption) {
  changing_ = {};
  const auto differs = [&](int64_t row) {
    return node_state_of(row) != wanted(state_of(row), preemption);
  };
  const std::vector<int64_t> differ =
      preemption == preemption_ ? select(restated_, differs) : select_of_all(differs);
  preemption_ = preemption;
  restated_seen_ = restated_.size();
  for (const int64_t row : differ) {
    const TaskNodeState is = node_state_of(row), to_be = wanted(state_of(row), preemption);
    if (is == TaskNodeState::kWaiting && to_be == TaskNodeState::kRunning) {
      changing_.started.push_back(row);
      continue;
    }
    leave_graph(row);
    if (to_be != TaskNodeState::kNone) changing_.joining.push_back(row);
  }
  changing_.removed = std::move(abandoned_);
  abandoned_.clear();
  return changing_;
}

UnscheduledAggregators::New TaskTable::enter_groups(std::span<const int64_t> rows,
                                                    std::span<const int64_t> group,
                                                    int64_t quantum_us) {
  require_rows(rows);
  require(group.size() == rows.size(), "group: expected one per row");
  require(quantum_us > 0, "quantum_us: expected more than 0");
  std::vector<int64_t> submitted, place(rows.size());
  submitted.reserve(rows.size());
  for (const int64_t row : rows) submitted.push_back(floor_divide(submit_us[row], quantum_us));
  UnscheduledAggregators::New added = groups.enter(group, submitted, place);
  for (size_t i = 0; i < rows.size(); ++i) group_place[rows[i]] = place[i];
  return added;
}

std::vector<int64_t> TaskTable::group_nodes(std::span<const int64_t> rows) const {
  require_rows(rows);
  std::vector<int64_t> found(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) found[i] = groups.node(group_place[rows[i]]);
  return found;
}

std::vector<int64_t> TaskTable::group_costs(std::span<const int64_t> rows) const {
  require_rows(rows);
  std::vector<int64_t> found(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) found[i] = groups.cost(group_place[rows[i]]);
  return found;
}

std::vector<int64_t> TaskTable::cost_of_lateness(std::span<const int64_t> rows,
                                                 int64_t quantum_us) const {
  require_rows(rows);
  require(quantum_us > 0, "quantum_us: expected more than 0");
  std::vector<int64_t> found(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t place = group_place[rows[i]];
    found[i] = groups.cost(place) *
               (groups.first_quantum(place) - floor_divide(submit_us[rows[i]], quantum_us));
  }
  return found;
}

void TaskTable::set_node(std::span<const int64_t> rows, std::span<const int64_t> nodes) {
  require(nodes.size() == rows.size(), "node: expected one per row");
  require_rows(rows);
  for (size_t i = 0; i < rows.size(); ++i) node[rows[i]] = nodes[i];
}

void TaskTable::set_running_arc(std::span<const int64_t> rows, std::span<const int64_t> arc) {
  require(arc.size() == rows.size(), "arc: expected one per row");
  require_rows(rows);
  for (size_t i = 0; i < rows.size(); ++i) running_arc[rows[i]] = arc[i];
}

void TaskTable::set_patience(std::span<const int64_t> rows, std::span<const int64_t> arc,
                             std::span<const int64_t> ends_us) {
  require(arc.size() == rows.size() && ends_us.size() == rows.size(),
          "arc, ends_us: expected one of each per row");
  require_rows(rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    patience_arc[rows[i]] = arc[i];
    patience_ends_us[rows[i]] = ends_us[i];
  }
}

std::vector<int64_t> TaskTable::end_patience(std::span<const int64_t> started, int64_t now_us) {
  require_rows(started);
  std::vector<int64_t> arcs;
  size_t next = 0;  // of `started`, which ascends as rows do
  const int64_t end = static_cast<int64_t>(rows());
  for (int64_t row = 0; row < end; ++row) {
    const bool runs = next < started.size() && started[next] == row;
    next += runs;
    if (node_state_of(row) != TaskNodeState::kWaiting || patience_arc[row] == kNoArc) continue;
    if (!runs && patience_ends_us[row] > now_us) continue;
    arcs.push_back(patience_arc[row]);
    patience_arc[row] = kNoArc;
    patience_ends_us[row] = 0;
  }
  return arcs;
}

void TaskTable::end_update() {
  restated_.erase(restated_.begin(),
                  restated_.begin() + static_cast<std::ptrdiff_t>(restated_seen_));
  restated_seen_ = 0;
  for (const int64_t row : changing_.started) change_node_state(row, TaskNodeState::kRunning);
  for (const int64_t row : changing_.joining) {
    if (node[row] == kNoNode) throw std::logic_error("a task that joined the graph has no node");
    change_node_state(row, wanted(state_of(row), true));
  }
  changing_ = {};
}

std::vector<int64_t> TaskTable::rows_of(std::span<const int64_t> tasks) const {
  std::vector<int64_t> found(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) found[i] = row_of(tasks[i]);
  return found;
}

std::vector<int64_t> TaskTable::waiting() const {
  return select(waiting_, [this](int64_t row) { return state_of(row) == TaskState::kWaiting; });
}

bool TaskTable::waiting_ask_for(std::span<const int64_t> unit) const {
  require(unit.size() == dimensions(), "unit: expected a number per dimension");
  return std::all_of(waiting_.begin(), waiting_.end(), [&](int64_t row) {
    return std::equal(unit.begin(), unit.end(), &request[row]);
  });
}

std::vector<int64_t> TaskTable::still_waiting(std::span<const int64_t> tasks) const {
  std::vector<int64_t> found;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const int64_t row = row_of(tasks[i]);
    require(row != kNoRow, "task: expected tasks of the table");
    if (state_of(row) == TaskState::kWaiting) found.push_back(static_cast<int64_t>(i));
  }
  return found;
}

int64_t TaskTable::first_end_of_patience() const {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const int64_t row : waiting_)
    if (patience_ends_us[row] > 0) first = std::min(first, patience_ends_us[row]);
  return first == std::numeric_limits<int64_t>::max() ? 0 : first;
}

void TaskTable::require_rows(std::span<const int64_t> some) const {
  for (const int64_t row : some)
    require(row >= 0 && static_cast<size_t>(row) < rows(), "row: expected rows of the table");
}

TaskNodeState TaskTable::wanted(TaskState state, bool preemption) {
  if (state == TaskState::kWaiting) return TaskNodeState::kWaiting;
  return preemption && state == TaskState::kRunning ? TaskNodeState::kRunning
                                                    : TaskNodeState::kNone;
}

void TaskTable::reserve(size_t more, int64_t largest_id) {
  const size_t ids = static_cast<size_t>(largest_id) + 1;
  if (ids > row_of_.size())
    row_of_.resize(std::max({ids, 2 * row_of_.size(), kFewestRows}), static_cast<int32_t>(kNoRow));
  if (!pool_.reserve(more)) return;
  for (auto* column : {&task, &job, &request, &submit_us, &gang, &machine, &allocation, &since_us,
                       &node, &group_place, &running_arc, &patience_arc, &patience_ends_us})
    column->grow(pool_.rows());
  for (auto* column : {&priority, &preference, &waiting_place_}) column->grow(pool_.rows());
  for (auto* column : {&task_class, &state, &node_state}) column->grow(pool_.rows());
}

void TaskTable::leave_graph(int64_t row) {
  if (node_state_of(row) == TaskNodeState::kNone) return;
  abandoned_.push_back(node[row]);
  groups.leave(group_place[row]);
  change_node_state(row, TaskNodeState::kNone);
  node[row] = kNoNode;
}

FlowArcs::Listed FlowArcs::listed(const Joining& tasks) {
  const size_t n = tasks.row.size(), k = tasks.arc_task.size();
  require(tasks.node.size() == n && tasks.unscheduled_node.size() == n &&
              tasks.unscheduled_cost.size() == n,
          "tasks: expected columns of one length");
  require(tasks.arc_head.size() == k && tasks.arc_cost.size() == k,
          "arcs of tasks: expected columns of one length");
  Listed found;
  New& added = found.nodes;
  for (auto* column : {&added.tail, &added.head, &added.cost}) column->reserve(k + n);
  found.arcs.reserve(k + n);
  for (size_t i = 0; i < k; ++i) {
    const int64_t task = tasks.arc_task[i], head = tasks.arc_head[i];
    require(0 <= task && at(task) < n, "an arc of a task that does not exist");
    const auto& nodes = head >= 0 ? tasks.machine_node : tasks.aggregator_node;
    const size_t index = at(head >= 0 ? head : -1 - head);
    require(index < nodes.size() && nodes[index] >= 0,
            "an arc leads to a node that does not exist");
    added.tail.push_back(tasks.node[at(task)]);
    added.head.push_back(nodes[index]);
    added.cost.push_back(tasks.arc_cost[i]);
    found.arcs.push_back({tasks.row[at(task)], head, tasks.arc_cost[i], kNoArc});
  }
  for (size_t i = 0; i < n; ++i) {
    require(tasks.row[i] >= 0, "row: expected rows of the task table");
    added.tail.push_back(tasks.node[i]);
    added.head.push_back(tasks.unscheduled_node[i]);
    added.cost.push_back(tasks.unscheduled_cost[i]);
    found.arcs.push_back({tasks.row[i], kUnscheduled, tasks.unscheduled_cost[i], kNoArc});
  }
  return found;
}

FlowArcs::New FlowArcs::join(const Joining& tasks) {
  require(unnamed_.empty(), "expected ids of the tasks' arcs first");
  Listed found = listed(tasks);
  int64_t largest = -1;
  for (const int64_t row : tasks.row) largest = std::max(largest, row);
  if (at(largest + 1) > tasks_.size()) tasks_.resize(std::max(at(largest + 1), 2 * tasks_.size()));
  for (const int64_t row : tasks.row) {
    tasks_[at(row)] = {};
    note(row);
  }
  unnamed_ = std::move(found.arcs);
  return std::move(found.nodes);
}

void FlowArcs::name(std::span<const int64_t> arc) {
  require(arc.size() == unnamed_.size(), "arc: expected one id for each new arc");
  reserve(arc);
  link(arc, unnamed_);
  unnamed_.clear();
}

FlowArcs::Relisted FlowArcs::relist(const Joining& tasks) {
  require(relisted_.empty(), "expected ids of the tasks' arcs first");
  const Listed wanted = listed(tasks);
  struct Old {
    int64_t row, head;
    size_t order;
    int64_t arc;
    bool kept = false;
  };
  std::vector<Old> old;
  for (const int64_t row : tasks.row)
    for (int64_t arc = task_at(row).first; arc != kNoArc; arc = of_tasks_[at(arc)].next)
      old.push_back({row, of_tasks_[at(arc)].head, old.size(), arc});
  std::sort(old.begin(), old.end(), [](const Old& a, const Old& b) {
    return std::tie(a.row, a.head, a.order) < std::tie(b.row, b.head, b.order);
  });
  for (size_t i = 1; i < old.size(); ++i)
    require(old[i - 1].arc != old[i].arc, "row: expected each task once");
  Relisted found;
  for (size_t i = 0; i < wanted.arcs.size(); ++i) {
    const TaskArc& its = wanted.arcs[i];
    auto same = std::lower_bound(old.begin(), old.end(), its, [](const Old& a, const TaskArc& b) {
      return std::tie(a.row, a.head) < std::tie(b.row, b.head);
    });
    const auto matches = [&] {
      return same != old.end() && same->row == its.row && same->head == its.head;
    };
    while (matches() && same->kept) ++same;
    if (!matches()) {
      found.added.tail.push_back(wanted.nodes.tail[i]);
      found.added.head.push_back(wanted.nodes.head[i]);
      found.added.cost.push_back(its.cost);
      relisted_arcs_.push_back(kNoArc);
      continue;
    }
    same->kept = true;
    relisted_arcs_.push_back(same->arc);
    if (of_tasks_[at(same->arc)].cost == its.cost) continue;
    found.arc.push_back(same->arc);
    found.cost.push_back(its.cost);
  }
  for (const Old& each : old)
    if (!each.kept) found.removed.push_back(each.arc);
  for (const int64_t row : tasks.row) tasks_[at(row)].first = kNoArc;
  relisted_ = wanted.arcs;
  return found;
}

void FlowArcs::name_relisted(std::span<const int64_t> arc) {
  require(arc.size() ==
              static_cast<size_t>(std::count(relisted_arcs_.begin(), relisted_arcs_.end(), kNoArc)),
          "arc: expected one id for each new arc");
  reserve(arc);
  auto next = arc.begin();
  for (int64_t& id : relisted_arcs_)
    if (id == kNoArc) id = *next++;
  link(relisted_arcs_, relisted_);
  relisted_arcs_.clear();
  relisted_.clear();
}

// From the last on, so that each list is in the order of its arcs.
void FlowArcs::link(std::span<const int64_t> arc, std::span<const TaskArc> listed) {
  for (size_t i = arc.size(); i-- > 0;) {
    TaskArc& its = of_tasks_[at(arc[i])];
    its = listed[i];
    int64_t& first = tasks_[at(its.row)].first;
    its.next = first;
    first = arc[i];
  }
}

void FlowArcs::add_of_tasks(std::span<const int64_t> arc, std::span<const int64_t> row,
                            std::span<const int64_t> head) {
  require(row.size() == arc.size() && head.size() == arc.size(),
          "row, head: expected one of each per arc");
  for (const int64_t each : row) task_at(each);
  reserve(arc);
  for (size_t i = 0; i < arc.size(); ++i) {
    of_tasks_[at(arc[i])] = {row[i], head[i], 0, kNoArc};
    note(row[i]);
  }
}

void FlowArcs::add_inner(std::span<const int64_t> arc, std::span<const int64_t> inner) {
  require(inner.size() == arc.size(), "inner: expected one per arc");
  add_others(arc);
  for (size_t i = 0; i < arc.size(); ++i) inner_[at(arc[i])] = {inner[i], 0};
}

void FlowArcs::add_others(std::span<const int64_t> arc) {
  reserve(arc);
  for (const int64_t id : arc) {
    of_tasks_[at(id)] = {};
    inner_[at(id)] = {};
  }
}

void FlowArcs::move_inner(std::span<const int64_t> row) {
  for (InnerArc& its : inner_) {
    if (its.inner == kNoRow) continue;
    require(at(its.inner) < row.size(), "row: expected one per row of the table");
    its.inner = row[at(its.inner)];
  }
}

void FlowArcs::take_flow(std::span<const int64_t> arc, std::span<const int64_t> flow,
                         std::span<int64_t> inner_flow) {
  require(flow.size() == arc.size(), "flow: expected one per arc");
  for (const int64_t id : arc)
    require(id >= 0 && at(id) < of_tasks_.size(), "arc: expected arcs of the graph");
  for (size_t i = 0; i < arc.size(); ++i) {
    const int64_t row = of_tasks_[at(arc[i])].row;
    if (row != kNoRow) {
      if (flow[i] == 0) continue;
      tasks_[at(row)].next_hop = arc[i];
      note(row);
      continue;
    }
    InnerArc& its = inner_[at(arc[i])];
    if (its.inner == kNoRow) continue;
    require(at(its.inner) < inner_flow.size(), "inner_flow: expected one per row");
    inner_flow[at(its.inner)] += flow[i] - its.flow;
    its.flow = flow[i];
  }
}

FlowArcs::Running FlowArcs::running(const TaskTable& table, size_t machines) {
  Running found{{}, table.graph_runs_on(machines)};
  for (const int64_t row : may_move_) {
    noted_[at(row)] = false;
    if (at(row) >= table.rows() ||
        static_cast<TaskNodeState>(table.node_state[row]) != TaskNodeState::kRunning ||
        tasks_[at(row)].next_hop == table.running_arc[row])
      continue;
    found.moved.push_back(row);
    --found.staying[at(table.machine[row])];
  }
  std::sort(found.moved.begin(), found.moved.end());
  may_move_.clear();
  for (const int64_t row : found.moved) note(row);  // until the flow lets them stay
  return found;
}

std::vector<int64_t> FlowArcs::next_hop(std::span<const int64_t> row) const {
  std::vector<int64_t> found(row.size());
  for (size_t i = 0; i < row.size(); ++i) found[i] = task_at(row[i]).next_hop;
  return found;
}

std::vector<int64_t> FlowArcs::destination(std::span<const int64_t> row) const {
  std::vector<int64_t> found(row.size());
  for (size_t i = 0; i < row.size(); ++i) found[i] = destination_of(row[i]);
  return found;
}

FlowArcs::Sent FlowArcs::sent(std::span<const int64_t> row) const {
  Sent found;
  for (const int64_t each : row) {
    const int64_t head = destination_of(each);
    if (head == kUnscheduled) continue;
    found.row.push_back(each);
    found.head.push_back(head);
  }
  return found;
}

FlowArcs::OfTasks FlowArcs::lists(std::span<const int64_t> row) const {
  OfTasks found;
  for (size_t i = 0; i < row.size(); ++i) {
    for (int64_t arc = task_at(row[i]).first; arc != kNoArc; arc = of_tasks_[at(arc)].next) {
      const TaskArc& its = of_tasks_[at(arc)];
      if (its.row != row[i]) throw std::logic_error("an arc in the list of another task");
      found.task.push_back(static_cast<int64_t>(i));
      found.arc.push_back(arc);
      found.head.push_back(its.head);
      found.cost.push_back(its.cost);
    }
  }
  return found;
}

void FlowArcs::reserve(std::span<const int64_t> arc) {
  int64_t largest = -1;
  for (const int64_t id : arc) {
    require(id >= 0, "arc: expected ids from 0 on");
    largest = std::max(largest, id);
  }
  const size_t arcs = at(largest + 1);
  if (arcs <= of_tasks_.size()) return;
  of_tasks_.resize(std::max(arcs, 2 * of_tasks_.size()));
  inner_.resize(of_tasks_.size());
}

const FlowArcs::Task& FlowArcs::task_at(int64_t row) const {
  require(row >= 0 && at(row) < tasks_.size(), "row: expected tasks that have joined the graph");
  return tasks_[at(row)];
}

int64_t FlowArcs::destination_of(int64_t row) const {
  const int64_t arc = task_at(row).next_hop;
  require(arc != kNoArc, "row: expected tasks that were in the graph at the last solve");
  return of_tasks_[at(arc)].head;
}

namespace {

// The machines of a round are scattered in memory: so many in advance what is read is fetched.
constexpr size_t kAhead = 8;
constexpr size_t kLine = 8;  // numbers in a line of the cache

void check(const SlotCosts& slots, size_t machines) {
  require(slots.levels > 0 && slots.cost.size() == machines * slots.levels,
          "cost: expected a row of at least one level per machine");
  require(slots.slots.size() == machines && slots.free.size() == machines &&
              slots.units.size() == machines,
          "slots, free, units: expected one of each per machine");
}

// The number of free units that have a level below this one.
int64_t units_below(int64_t level, int64_t busy, int64_t free, int64_t units) {
  if (level <= busy) return 0;
  const int64_t slots = level - busy;
  if (slots >= free) return units;
  return (slots * units + free - 1) / free;
}

}  // namespace

SegmentChanges SegmentArcs::set(const SlotCosts& slots, std::span<const int64_t> row) {
  check(slots, machines_);
  require(new_.empty(), "arc: expected ids of the new arcs first");
  SegmentChanges changes;
  for (auto* column : {&changes.arc, &changes.capacity, &changes.cost}) column->reserve(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    if (i + kAhead < row.size()) prefetch(slots, static_cast<size_t>(row[i + kAhead]));
    const size_t machine = static_cast<size_t>(row[i]);
    require(machine < machines_, "row: expected machines");
    set_machine(slots, machine, changes);
  }
  return changes;
}

void SegmentArcs::name(std::span<const int64_t> arc) {
  require(arc.size() == new_.size(), "arc: expected one id for each new arc");
  for (const int64_t id : arc) require(id >= 0, "arc: expected ids of 0 or more");
  for (size_t i = 0; i < arc.size(); ++i) at(new_[i].machine, new_[i].place).id = arc[i];
  new_.clear();
}

void SegmentArcs::prefetch(const SlotCosts& slots, size_t machine) const {
  if (machine >= machines_) return;
  __builtin_prefetch(&slots.slots[machine]);
  __builtin_prefetch(&slots.free[machine]);
  __builtin_prefetch(&slots.units[machine]);
  const size_t dearest = machine * slots.levels + slots.levels - 1;
  __builtin_prefetch(&slots.cost[dearest]);
  if (slots.levels > kLine) __builtin_prefetch(&slots.cost[dearest - kLine]);
  __builtin_prefetch(&arcs_[machine * width_], 1);
}

void SegmentArcs::set_machine(const SlotCosts& slots, size_t machine, SegmentChanges& changes) {
  const int64_t free = slots.free[machine], units = slots.units[machine];
  const int64_t busy = slots.busy(machine), levels = static_cast<int64_t>(slots.levels);
  const auto price = [&](int64_t level) {
    return slots.cost[machine * slots.levels + static_cast<size_t>(level)];
  };
  // The levels of free units: from `low` to below `high`.
  const int64_t low = std::min(busy, levels - 1);
  const int64_t high = std::clamp(busy + std::max<int64_t>(free, 1), low + 1, levels);
  size_t place = 0;
  int64_t rest = units;  // those with levels below `level`
  for (int64_t level = high; rest > 0;) {
    const int64_t here = price(--level);
    while (level > low && price(level - 1) == here) --level;
    const int64_t below = level > low ? units_below(level, busy, free, units) : 0;
    if (below == rest) continue;
    set_arc(machine, place++, rest - below, here, changes);
    rest = below;
  }
  for (size_t closed = place; closed < width_ && at(machine, closed).capacity > 0; ++closed)
    set_arc(machine, closed, 0, at(machine, closed).cost, changes);
}

void SegmentArcs::set_arc(size_t machine, size_t place, int64_t capacity, int64_t cost,
                          SegmentChanges& changes) {
  if (place == width_) widen();
  Arc& arc = at(machine, place);
  if (arc.id == kNoArc) {
    new_.push_back({machine, place});
    changes.new_machine.push_back(static_cast<int64_t>(machine));
    changes.new_capacity.push_back(capacity);
    changes.new_cost.push_back(cost);
  } else if (capacity != arc.capacity || cost != arc.cost) {
    changes.arc.push_back(arc.id);
    changes.capacity.push_back(capacity);
    changes.cost.push_back(cost);
  }
  arc.capacity = capacity;
  arc.cost = cost;
}

void SegmentArcs::widen() {
  std::vector<Arc> wider(2 * arcs_.size());
  for (size_t m = 0; m < machines_; ++m)
    std::copy_n(&arcs_[m * width_], width_, &wider[m * 2 * width_]);
  arcs_ = std::move(wider);
  width_ *= 2;
}

}  // namespace agora
