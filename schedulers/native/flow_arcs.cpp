#include "flow_arcs.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <utility>

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

namespace {

// The entries [begin, end) of a row of a CSR table of `size` entries.
std::pair<size_t, size_t> entries_of_row(std::span<const int64_t> offsets, int64_t row,
                                         size_t size) {
  require(row >= 0 && static_cast<size_t>(row) + 1 < offsets.size(),
          "row: expected rows of the table");
  const int64_t begin = offsets[static_cast<size_t>(row)];
  const int64_t end = offsets[static_cast<size_t>(row) + 1];
  require(0 <= begin && begin <= end && static_cast<size_t>(end) <= size,
          "offsets: expected ascending places of the table");
  return {static_cast<size_t>(begin), static_cast<size_t>(end)};
}

}  // namespace

void units_in(std::span<const int64_t> resources, std::span<const int64_t> unit, int64_t most,
              std::span<int64_t> units) {
  const size_t dimensions = unit.size();
  require(resources.size() == units.size() * dimensions,
          "resources: expected a row of each resource per machine");
  const bool counts = std::any_of(unit.begin(), unit.end(), [](int64_t u) { return u != 0; });
  for (size_t m = 0; m < units.size(); ++m) {
    const int64_t* const row = resources.data() + m * dimensions;
    if (!counts) {
      units[m] = std::any_of(row, row + dimensions, [](int64_t r) { return r > 0; }) ? most : 0;
      continue;
    }
    int64_t held = most;
    for (size_t r = 0; r < dimensions; ++r)
      if (unit[r] != 0 && row[r] <= 0)
        held = 0;
      else if (unit[r] != 0)
        held = std::min(held, unit[r] == 1 ? row[r] : row[r] / unit[r]);
    units[m] = held;
  }
}

std::vector<int64_t> ranges(std::span<const int64_t> begin, std::span<const int64_t> size) {
  require(begin.size() == size.size(), "begin, size: expected columns of one length");
  size_t total = 0;
  for (const int64_t each : size) {
    require(each >= 0, "size: expected 0 or more");
    total += static_cast<size_t>(each);
  }
  std::vector<int64_t> entries;
  entries.reserve(total);
  for (size_t i = 0; i < begin.size(); ++i)
    for (int64_t k = 0; k < size[i]; ++k) entries.push_back(begin[i] + k);
  return entries;
}

ListedArcs listed_arcs(std::span<const int64_t> offsets, std::span<const int64_t> head,
                       std::span<const int64_t> cost, std::span<const int64_t> row,
                       std::span<const int64_t> set) {
  require(head.size() == cost.size(), "head, cost: expected columns of one length");
  require(row.size() == set.size(), "row, set: expected columns of one length");
  ListedArcs arcs;
  for (auto* column : {&arcs.row, &arcs.head, &arcs.cost}) column->reserve(4 * row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    const auto [first, last] = entries_of_row(offsets, set[i], head.size());
    const auto begin = static_cast<std::ptrdiff_t>(first), end = static_cast<std::ptrdiff_t>(last);
    arcs.row.insert(arcs.row.end(), last - first, row[i]);
    arcs.head.insert(arcs.head.end(), head.begin() + begin, head.begin() + end);
    arcs.cost.insert(arcs.cost.end(), cost.begin() + begin, cost.begin() + end);
  }
  return arcs;
}

std::vector<int64_t> entries_of(std::span<const int64_t> offsets, std::span<const int64_t> order,
                                std::span<const int64_t> row) {
  std::vector<int64_t> entries;
  for (const int64_t each : row) {
    const auto [begin, end] = entries_of_row(offsets, each, order.size());
    for (size_t k = begin; k < end; ++k) entries.push_back(order[k]);
  }
  return entries;
}

std::vector<int64_t> differing(std::span<const int64_t> a, std::span<const int64_t> b) {
  require(a.size() == b.size(), "expected columns of one length");
  std::vector<int64_t> places;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) places.push_back(static_cast<int64_t>(i));
  return places;
}

std::vector<int64_t> without_node(std::span<const int64_t> head, std::span<const int64_t> node) {
  std::vector<int64_t> named;
  for (const int64_t each : head) {
    if (each >= 0) continue;
    const size_t aggregator = static_cast<size_t>(-1 - each);
    require(aggregator < node.size(), "head: expected aggregators of the graph");
    if (node[aggregator] < 0) named.push_back(-1 - each);
  }
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  return named;
}

std::vector<int64_t> cycle_among(std::span<const int64_t> tail, std::span<const int64_t> head) {
  require(tail.size() == head.size(), "tail, head: expected columns of one length");
  std::vector<size_t> arcs(tail.size());  // by tail
  std::iota(arcs.begin(), arcs.end(), size_t{0});
  std::stable_sort(arcs.begin(), arcs.end(), [&](size_t a, size_t b) { return tail[a] < tail[b]; });
  std::vector<int64_t> node;  // that have arcs, ascending; only they can lie on a cycle
  std::vector<size_t> first;  // of node's arcs
  for (size_t i = 0; i < arcs.size(); ++i)
    if (node.empty() || node.back() != tail[arcs[i]]) {
      node.push_back(tail[arcs[i]]);
      first.push_back(i);
    }
  first.push_back(arcs.size());

  enum class Visit : uint8_t { kNo, kOnPath, kDone };
  std::vector<Visit> visit(node.size(), Visit::kNo);
  std::vector<size_t> next(first.begin(), first.end());  // arc to follow out of each node
  std::vector<size_t> path;
  for (size_t start = 0; start < node.size(); ++start) {
    if (visit[start] != Visit::kNo) continue;
    visit[start] = Visit::kOnPath;
    path.assign(1, start);
    while (!path.empty()) {
      const size_t at = path.back();
      if (next[at] == first[at + 1]) {
        visit[at] = Visit::kDone;
        path.pop_back();
        continue;
      }
      const int64_t to = head[arcs[next[at]++]];
      const auto found = std::lower_bound(node.begin(), node.end(), to);
      if (found == node.end() || *found != to) continue;
      const size_t reached = static_cast<size_t>(found - node.begin());
      if (visit[reached] == Visit::kOnPath) {
        std::vector<int64_t> cycle;
        for (auto on = std::find(path.begin(), path.end(), reached); on != path.end(); ++on)
          cycle.push_back(node[*on]);
        cycle.push_back(to);
        return cycle;
      }
      if (visit[reached] == Visit::kDone) continue;
      visit[reached] = Visit::kOnPath;
      path.push_back(reached);
    }
  }
  return {};
}

int64_t first_outside(std::span<const int64_t> column, int64_t lowest, int64_t highest) {
  for (size_t i = 0; i < column.size(); ++i)
    if (column[i] < lowest || column[i] > highest) return static_cast<int64_t>(i);
  return -1;
}

}  // namespace agora
