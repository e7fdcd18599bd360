#include "flow_arcs.hpp"

#include <algorithm>
#include <stdexcept>

namespace agora {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace

FlowArcs::New FlowArcs::join(const Joining& tasks) {
  const size_t n = tasks.row.size(), k = tasks.arc_task.size();
  require(tasks.node.size() == n && tasks.unscheduled_node.size() == n &&
              tasks.unscheduled_cost.size() == n,
          "tasks: expected columns of one length");
  require(tasks.arc_head.size() == k && tasks.arc_cost.size() == k,
          "arcs of tasks: expected columns of one length");
  require(unnamed_.empty(), "expected ids of the tasks' arcs first");
  New added;
  for (auto* column : {&added.tail, &added.head, &added.cost}) column->reserve(k + n);
  std::vector<TaskArc> arcs;
  arcs.reserve(k + n);
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
    arcs.push_back({tasks.row[at(task)], head, tasks.arc_cost[i], kNoArc});
  }
  int64_t largest = -1;
  for (size_t i = 0; i < n; ++i) {
    require(tasks.row[i] >= 0, "row: expected rows of the task table");
    largest = std::max(largest, tasks.row[i]);
    added.tail.push_back(tasks.node[i]);
    added.head.push_back(tasks.unscheduled_node[i]);
    added.cost.push_back(tasks.unscheduled_cost[i]);
    arcs.push_back({tasks.row[i], kUnscheduled, tasks.unscheduled_cost[i], kNoArc});
  }
  if (at(largest + 1) > tasks_.size()) tasks_.resize(std::max(at(largest + 1), 2 * tasks_.size()));
  for (const int64_t row : tasks.row) tasks_[at(row)] = {};
  unnamed_ = std::move(arcs);
  return added;
}

void FlowArcs::name(std::span<const int64_t> arc) {
  require(arc.size() == unnamed_.size(), "arc: expected one id for each new arc");
  reserve(arc);
  // From the last on, so that each list is in the order of its arcs.
  for (size_t i = arc.size(); i-- > 0;) {
    TaskArc& its = of_tasks_[at(arc[i])];
    its = unnamed_[i];
    int64_t& first = tasks_[at(its.row)].first;
    its.next = first;
    first = arc[i];
  }
  unnamed_.clear();
}

void FlowArcs::add_of_tasks(std::span<const int64_t> arc, std::span<const int64_t> row,
                            std::span<const int64_t> head) {
  require(row.size() == arc.size() && head.size() == arc.size(),
          "row, head: expected one of each per arc");
  for (const int64_t each : row) task_at(each);
  reserve(arc);
  for (size_t i = 0; i < arc.size(); ++i) of_tasks_[at(arc[i])] = {row[i], head[i], 0, kNoArc};
}

void FlowArcs::add_inner(std::span<const int64_t> arc, std::span<const int64_t> inner) {
  require(inner.size() == arc.size(), "inner: expected one per arc");
  add_others(arc);
  for (size_t i = 0; i < arc.size(); ++i) inner_[at(arc[i])] = {inner[i], 0};
}

void FlowArcs::add_others(std::span<const int64_t> arc) {
  reserve(arc);
  for (const int64_t id : arc) of_tasks_[at(id)] = {};
}

void FlowArcs::take_flow(std::span<const int64_t> arc, std::span<const int64_t> flow,
                         std::span<int64_t> inner_flow) {
  require(flow.size() == arc.size(), "flow: expected one per arc");
  for (const int64_t id : arc)
    require(id >= 0 && at(id) < of_tasks_.size(), "arc: expected arcs of the graph");
  for (size_t i = 0; i < arc.size(); ++i) {
    const int64_t row = of_tasks_[at(arc[i])].row;
    if (row != kNoRow) {
      if (flow[i] > 0) tasks_[at(row)].next_hop = arc[i];
      continue;
    }
    InnerArc& its = inner_[at(arc[i])];
    if (its.inner == kNoRow) continue;
    require(at(its.inner) < inner_flow.size(), "inner_flow: expected one per row");
    inner_flow[at(its.inner)] += flow[i] - its.flow;
    its.flow = flow[i];
  }
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

FlowArcs::OfTasks FlowArcs::direct_arcs(std::span<const int64_t> row,
                                        std::span<const int64_t> head) const {
  require(head.size() == row.size(), "head: expected one per row");
  OfTasks found;
  for (size_t i = 0; i < row.size(); ++i) {
    if (head[i] < 0) continue;
    for (int64_t arc = task_at(row[i]).first; arc != kNoArc; arc = of_tasks_[at(arc)].next) {
      const TaskArc& its = of_tasks_[at(arc)];
      if (its.row != row[i]) throw std::logic_error("an arc in the list of another task");
      if (its.head < 0) continue;
      found.task.push_back(static_cast<int64_t>(i));
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

}  // namespace agora
