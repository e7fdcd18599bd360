// The task table over random histories, against a map of tasks in a few lines: what is waiting,
// what the graph is told to add and remove, the jobs' aggregators, the order in which rows are used
// again. And columns that do not go together are refused, and change nothing.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "schedulers/native/flow_graph.hpp"

using namespace agora;

namespace {

constexpr size_t kDimensions = 2;
constexpr int64_t kQuantum = 10;
constexpr size_t kMachines = 5;

size_t at(int64_t index) { return static_cast<size_t>(index); }

template <class Error>
bool throws(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error&) {
    return true;
  }
  return false;
}

struct Batch {
  std::vector<int64_t> task, job, request, submit_us, gang;
  std::vector<int32_t> priority, preference;
  std::vector<int8_t> task_class;

  void add(int64_t id, int64_t of_job, int64_t at_us) {
    task.push_back(id);
    job.push_back(of_job);
    for (size_t r = 0; r < kDimensions; ++r) request.push_back(id + static_cast<int64_t>(r));
    submit_us.push_back(at_us);
    gang.push_back(-1);
    priority.push_back(static_cast<int32_t>(id % 3));
    preference.push_back(static_cast<int32_t>(id % 5));
    task_class.push_back(0);
  }
  TaskColumns columns() const {
    return {task, job, request, priority, submit_us, preference, gang, task_class};
  }
};

struct Known {
  TaskState state;
  int64_t job, submitted;
  int64_t node = -1;  // in the graph
  bool runs = false;  // its node does
};

// A table, and what a reader of its contract expects of it.
class History {
 public:
  History(uint64_t seed, bool preemption)
      : draw_(seed), preemption_(preemption), table_(kDimensions) {}

  void round() {
    offer();
    tell();
    if (draw_(8) == 0) preemption_ = !preemption_;
    const auto changes = table_.begin_update(preemption_);
    check_removed(changes.removed);
    check_started(changes.started);
    join(changes.joining);
    table_.end_update();
    check_graph();
    claim();
  }

 private:
  void offer() {
    Batch batch;
    for (uint64_t n = draw_(6); n > 0; --n) {
      const int64_t id = static_cast<int64_t>(draw_(60));
      if (std::count(batch.task.begin(), batch.task.end(), id)) continue;
      const auto known = tasks_.find(id);
      const int64_t job = static_cast<int64_t>(draw_(4)), now = static_cast<int64_t>(draw_(100));
      batch.add(id, job, now);
      if (known == tasks_.end())
        tasks_[id] = {TaskState::kWaiting, job, now / kQuantum};
      else
        known->second.state = TaskState::kWaiting;
    }
    table_.offer(batch.columns());
    for (size_t i = 0; i < batch.task.size(); ++i) {
      const int64_t row = row_of(batch.task[i]);
      CHECK(table_.task[row] == batch.task[i]);
      CHECK(table_.job[row] == tasks_[batch.task[i]].job);
      for (size_t r = 0; r < kDimensions; ++r)
        CHECK((&table_.request[row])[r] == batch.task[i] + static_cast<int64_t>(r));
    }
  }

  // Reports about any ids, known or not.
  void tell() {
    std::vector<int64_t> ids;
    for (uint64_t n = draw_(8); n > 0; --n) ids.push_back(static_cast<int64_t>(draw_(70)) - 3);
    const auto on = static_cast<int32_t>(draw_(kMachines));
    const std::vector<int32_t> machine(ids.size(), on);
    const std::vector<int64_t> allocation(ids.size(), 9);
    switch (draw_(3)) {
      case 0:
        table_.reject(ids);
        for (const int64_t id : ids)
          if (knows(id) && tasks_[id].state == TaskState::kInFlight)
            tasks_[id].state = TaskState::kWaiting;
        break;
      case 1:
        table_.run(ids, machine, allocation, 5);
        for (const int64_t id : ids) {
          if (!knows(id)) continue;
          tasks_[id].state = TaskState::kRunning;
          CHECK(table_.machine[row_of(id)] == on && table_.allocation[row_of(id)] == 9);
        }
        break;
      default:
        table_.forget(ids);  // an id may be named twice
        for (const int64_t id : ids) {
          if (!knows(id)) continue;
          if (tasks_[id].node >= 0) gone_.insert(tasks_[id].node);
          tasks_.erase(id);
          CHECK(row_of(id) == TaskTable::kNoRow);
        }
    }
  }

  void check_removed(const std::vector<int64_t>& removed) {
    for (auto& [id, task] : tasks_) {
      const bool stays = task.node >= 0 && (task.runs ? task.state == TaskState::kRunning
                                                      : task.state == TaskState::kWaiting ||
                                                            task.state == TaskState::kRunning);
      if (task.node < 0 || (stays && (preemption_ || task.state == TaskState::kWaiting))) continue;
      gone_.insert(task.node);
      task.node = -1;
    }
    CHECK(std::set<int64_t>(removed.begin(), removed.end()) == gone_);
    CHECK(removed.size() == gone_.size());
    gone_.clear();
  }

  void check_started(const std::vector<int64_t>& started) {
    std::set<int64_t> expected;
    for (auto& [id, task] : tasks_) {
      if (task.node < 0 || task.runs || task.state != TaskState::kRunning) continue;
      expected.insert(row_of(id));
      task.runs = true;
    }
    CHECK(std::set<int64_t>(started.begin(), started.end()) == expected);
  }

  static int64_t cost_of(int64_t job) { return 1 + job % 3; }

  void join(const std::vector<int64_t>& joining) {
    CHECK(std::is_sorted(joining.begin(), joining.end()));
    std::map<int64_t, int64_t> first;  // of jobs that are new to the graph
    for (const int64_t row : joining) {
      const Known& task = tasks_.at(table_.task[row]);
      CHECK(task.node < 0);
      if (jobs_.contains(task.job)) continue;
      const auto [entry, is_new] = first.emplace(task.job, task.submitted);
      if (!is_new) entry->second = std::min(entry->second, task.submitted);
    }
    std::vector<int64_t> groups;
    for (const int64_t row : joining) groups.push_back(table_.job[row]);
    const auto entered = table_.enter_groups(joining, groups, kQuantum);
    CHECK(entered.first_quantum.size() == first.size());
    std::vector<int64_t> node, arc, cost;
    size_t i = 0;
    for (const auto& [job, quantum] : first) {  // in ascending order
      CHECK(entered.group[i] == job && entered.first_quantum[i] == quantum);
      ++i;
      jobs_[job] = {next_node_, quantum};
      node.push_back(next_node_++);
      arc.push_back(node.back() + 1000);
      cost.push_back(cost_of(job));
    }
    if (!first.empty()) {
      CHECK(throws<std::logic_error>([&] { table_.enter_groups(joining, groups, kQuantum); }));
      CHECK(throws<std::invalid_argument>([&] { table_.groups.name(node, {}, cost); }));
      CHECK(throws<std::invalid_argument>([&] { table_.groups.name(node, arc, {}); }));
      table_.groups.name(node, arc, cost);
    }
    std::vector<int64_t> nodes;
    for (size_t k = 0; k < joining.size(); ++k) {
      Known& task = tasks_.at(table_.task[joining[k]]);
      const std::span<const int64_t> row{&joining[k], 1};
      const auto& [its_node, first_quantum] = jobs_.at(task.job);
      CHECK(table_.cost_of_lateness(row, kQuantum).front() ==
            cost_of(task.job) * (first_quantum - task.submitted));
      CHECK(table_.group_nodes(row).front() == its_node);
      CHECK(table_.group_costs(row).front() == cost_of(task.job));
      task.node = next_node_++;
      task.runs = task.state == TaskState::kRunning;
      nodes.push_back(task.node);
    }
    table_.set_node(joining, nodes);
    std::set<int64_t> alive;
    for (const auto& [id, task] : tasks_)
      if (task.node >= 0) alive.insert(task.job);
    std::set<int64_t> empty;
    for (auto job = jobs_.begin(); job != jobs_.end();) {
      if (alive.contains(job->first)) {
        ++job;
        continue;
      }
      empty.insert(job->second.first);
      job = jobs_.erase(job);
    }
    const auto closed = table_.groups.close_empty();
    CHECK(std::set<int64_t>(closed.begin(), closed.end()) == empty);
    const auto open = table_.groups.open();
    CHECK(open.node.size() == jobs_.size());
    for (size_t k = 0; k < open.node.size(); ++k) {
      CHECK(open.arc[k] == open.node[k] + 1000);
      CHECK(std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& job) {
        return job.second == std::pair(open.node[k], open.first_quantum[k]);
      }));
    }
  }

  void check_graph() {
    std::vector<int64_t> expected;
    for (const auto& [id, task] : tasks_) {
      const int64_t row = row_of(id);
      CHECK(static_cast<TaskState>(table_.state[row]) == task.state);
      CHECK(table_.node[row] == task.node);
      const auto is = static_cast<TaskNodeState>(table_.node_state[row]);
      CHECK(is == (task.node < 0
                       ? TaskNodeState::kNone
                       : (task.runs ? TaskNodeState::kRunning : TaskNodeState::kWaiting)));
      if (task.state == TaskState::kWaiting) expected.push_back(row);
    }
    std::sort(expected.begin(), expected.end());
    CHECK(table_.waiting() == expected);
    std::vector<int64_t> run(kMachines, 0), run_in_graph(kMachines, 0);
    for (const auto& [id, task] : tasks_) {
      const int64_t on = table_.machine[row_of(id)];
      if (task.state == TaskState::kRunning) ++run[at(on)];
      if (task.node >= 0 && task.runs) ++run_in_graph[at(on)];
    }
    CHECK(table_.running_on(kMachines) == run && table_.graph_runs_on(kMachines) == run_in_graph);
    // Each task requests something else.
    const int64_t first = expected.empty() ? 0 : table_.task[expected.front()];
    CHECK(table_.waiting_ask_for(std::vector<int64_t>{first, first + 1}) == (expected.size() < 2));
  }

  void claim() {
    std::vector<int64_t> rows;
    for (auto& [id, task] : tasks_) {
      if (task.state != TaskState::kWaiting || draw_(2)) continue;
      rows.push_back(row_of(id));
      task.state = TaskState::kInFlight;
    }
    table_.set_state(rows, TaskState::kInFlight);
  }

  bool knows(int64_t id) const { return tasks_.contains(id); }
  int64_t row_of(int64_t id) const { return table_.rows_of({&id, 1}).front(); }

  Draws draw_;
  bool preemption_;
  TaskTable table_;
  std::map<int64_t, Known> tasks_;
  std::map<int64_t, std::pair<int64_t, int64_t>> jobs_;  // node, first quantum
  std::set<int64_t> gone_;                               // nodes of tasks that are forgotten
  int64_t next_node_ = 0;
};

void rows_freed_last_are_used_first() {
  TaskTable table(kDimensions);
  Batch batch;
  for (int64_t id = 0; id < 4; ++id) batch.add(id, 0, 0);
  table.offer(batch.columns());
  CHECK((table.rows_of(batch.task) == std::vector<int64_t>{0, 1, 2, 3}));
  const size_t rows = table.rows();
  table.forget(std::vector<int64_t>{3, 1});
  Batch more;
  for (int64_t id = 10; id < 13; ++id) more.add(id, 0, 0);
  table.offer(more.columns());
  CHECK((table.rows_of(more.task) == std::vector<int64_t>{1, 3, 4}));
  CHECK(table.rows() == rows);
  Batch many;  // more than there are rows: the lowest new ones come after those that are free
  for (int64_t id = 20; id < 20 + static_cast<int64_t>(rows); ++id) many.add(id, 0, 0);
  table.offer(many.columns());
  const auto row = table.rows_of(many.task);
  CHECK(std::is_sorted(row.begin(), row.end()) && row.front() == 5);
  CHECK(table.rows() == 2 * rows);
}

void a_window_outlives_growth() {
  TaskTable table(kDimensions);
  Batch batch;
  batch.add(0, 0, 0);
  table.offer(batch.columns());
  const auto before = table.task.shared();
  Batch many;
  for (int64_t id = 1; id < 3000; ++id) many.add(id, 0, 0);
  table.offer(many.columns());
  CHECK(before[0] == 0 && table.task.shared() != before);
}

void patience_ends_once() {
  TaskTable table(kDimensions);
  Batch batch;
  for (int64_t id = 0; id < 3; ++id) batch.add(id, 0, 0);
  table.offer(batch.columns());
  const auto joining = table.begin_update(true).joining;
  const std::vector<int64_t> zero{0};
  table.enter_groups(joining, std::vector<int64_t>(joining.size()), kQuantum);
  table.groups.name(zero, zero, zero);
  table.set_node(joining, std::vector<int64_t>{1, 2, 3});
  table.set_patience(joining, std::vector<int64_t>{5, 6, -1}, std::vector<int64_t>{100, 50, 0});
  CHECK(
      table.end_patience({}, 99).empty());  // tasks that join are looked at from the next round on
  table.end_update();
  CHECK(table.first_end_of_patience() == 50);
  CHECK((table.end_patience({}, 50) == std::vector<int64_t>{6}));
  CHECK(table.first_end_of_patience() == 100);
  CHECK((table.end_patience(std::vector<int64_t>{0}, 50) == std::vector<int64_t>{5}));
  CHECK(table.first_end_of_patience() == 0 && table.end_patience({}, 1000).empty());
}

void bad_input_is_refused() {
  CHECK(throws<std::invalid_argument>([] { TaskTable(0); }));
  TaskTable table(kDimensions);
  Batch batch;
  batch.add(1, 0, 0);
  TaskColumns columns = batch.columns();
  columns.request = columns.request.subspan(1);
  CHECK(throws<std::invalid_argument>([&] { table.offer(columns); }));
  Batch negative;
  negative.add(2, 0, 0);
  negative.add(-1, 0, 0);
  CHECK(throws<std::invalid_argument>([&] { table.offer(negative.columns()); }));
  CHECK(table.rows_of(std::vector<int64_t>{1, 2, -1, INT64_MAX}) == std::vector<int64_t>(4, -1));
  const std::vector<int64_t> beyond{int64_t{1} << 40}, below{-1};
  for (const auto& row : {beyond, below}) {
    CHECK(throws<std::invalid_argument>([&] { table.set_state(row, TaskState::kWaiting); }));
    CHECK(throws<std::invalid_argument>([&] { table.enter_groups(row, row, kQuantum); }));
    CHECK(throws<std::invalid_argument>([&] { table.set_node(row, row); }));
  }
  CHECK(throws<std::invalid_argument>([&] { table.still_waiting(beyond); }));
  CHECK(throws<std::invalid_argument>([&] { table.enter_groups({}, {}, 0); }));
  CHECK(throws<std::invalid_argument>([&] { table.enter_groups({}, below, kQuantum); }));
  table.offer(batch.columns());
  table.begin_update(false);
  CHECK(throws<std::logic_error>([&] { table.end_update(); }));  // without a node
  CHECK(at(table.waiting().front()) < table.rows());
}

void quanta_are_rounded_down() {
  TaskTable table(kDimensions);
  Batch batch;
  batch.add(0, 0, -1);
  batch.add(1, 0, -kQuantum);
  batch.add(2, 0, 19);
  table.offer(batch.columns());
  const std::vector<int64_t> one{1}, row = table.waiting();
  const auto entered = table.enter_groups(row, std::vector<int64_t>(row.size()), kQuantum);
  CHECK(entered.first_quantum == std::vector<int64_t>{-1});
  table.groups.name(one, one, one);
  CHECK((table.cost_of_lateness(row, kQuantum) == std::vector<int64_t>{0, 0, -2}));
}

}  // namespace

int main() {
  for (uint64_t seed = 1; seed <= 40; ++seed)
    for (const bool preemption : {false, true}) {
      History history(seed, preemption);
      for (int round = 0; round < 60; ++round) history.round();
    }
  rows_freed_last_are_used_first();
  a_window_outlives_growth();
  patience_ends_once();
  bad_input_is_refused();
  quanta_are_rounded_down();
  return 0;
}
