// What arcs stand for, over random histories of tasks that join and leave while ids are used again,
// against maps; running tasks that the flow moves, against a look at all rows; and arcs that do not
// exist are refused.
#include <algorithm>
#include <map>
#include <vector>

#include "check.hpp"
#include "schedulers/native/flow_graph.hpp"

using namespace agora;

namespace {

using Ids = std::vector<int64_t>;

// A solver's side of the contract: it hands out ids of arcs, those of removed ones first, and sends
// the unit of every task over one of its arcs.
class History {
 public:
  explicit History(uint64_t seed) : draw_(seed) {
    const Ids inner{0, 0, 1};
    inner_arcs_ = take(inner.size());
    arcs_.add_inner(inner_arcs_, inner);
    inner_of_ = inner;
  }

  void round() {
    leave();
    join();
    relist();
    move_inner();
    solve();
    check();
  }

 private:
  struct Task {
    Ids arcs, heads, costs;
    size_t carries = 0;  // which of its arcs
  };

  Ids take(size_t n) {
    Ids ids;
    for (; n > 0; --n) {
      if (free_.empty()) free_.push_back(next_++);
      ids.push_back(free_.back());
      free_.pop_back();
    }
    return ids;
  }

  void leave() {
    for (auto task = tasks_.begin(); task != tasks_.end();) {
      if (draw_(3)) {
        ++task;
        continue;
      }
      free_.insert(free_.end(), task->second.arcs.begin(), task->second.arcs.end());
      task = tasks_.erase(task);
    }
    arcs_.add_others(take(1));  // which may have been a task's
  }

  void join() {
    Ids row, node, arc_task, arc_head, arc_cost, wait_node, wait_cost;
    for (int64_t r = 0; r < 12; ++r) {
      if (tasks_.contains(r) || draw_(2)) continue;
      row.push_back(r);
      node.push_back(100 + r);
      wait_node.push_back(200);
      wait_cost.push_back(static_cast<int64_t>(draw_(50)));
    }
    if (!row.empty())
      for (uint64_t k = draw_(20); k > 0; --k) {  // of tasks in any order
        arc_task.push_back(static_cast<int64_t>(draw_(row.size())));
        arc_head.push_back(static_cast<int64_t>(draw_(5)) - 2);
        arc_cost.push_back(static_cast<int64_t>(draw_(9)));
      }
    const Ids machine_node{10, 11, 12}, aggregator_node{20, 21};
    const auto added = arcs_.join({row, node, arc_task, arc_head, arc_cost, wait_node, wait_cost,
                                   machine_node, aggregator_node});
    const size_t k = arc_task.size();
    CHECK(added.tail.size() == k + row.size());
    const Ids ids = take(added.tail.size());
    arcs_.name(ids);
    for (const int64_t r : row) tasks_[r] = {};
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool waits = i >= k;
      const size_t task = waits ? i - k : static_cast<size_t>(arc_task[i]);
      const int64_t head = waits ? FlowArcs::kUnscheduled : arc_head[i];
      CHECK(added.tail[i] == node[task]);
      CHECK(added.head[i] == (waits ? 200 : head >= 0 ? 10 + head : 19 - head));
      CHECK(added.cost[i] == (waits ? wait_cost[task] : arc_cost[i]));
      Task& its = tasks_[row[task]];
      its.arcs.push_back(ids[i]);
      its.heads.push_back(head);
      its.costs.push_back(added.cost[i]);
      its.carries = its.arcs.size();  // none yet
    }
    if (row.empty() || draw_(2)) return;  // a further arc, such as that of a running task
    const Ids further = take(1);
    arcs_.add_of_tasks(further, Ids{row.front()}, Ids{2});
    Task& its = tasks_[row.front()];
    its.arcs.push_back(further.front());
    its.heads.push_back(2);
    its.costs.push_back(-1);  // not in the list
    its.carries = its.arcs.size();
  }

  // Some tasks have other arcs from now on. Those that lead where an old one led keep its id, which
  // carries on; ids of the others are used again.
  void relist() {
    Ids row, node, arc_task, arc_head, arc_cost, wait_node, wait_cost;
    for (const auto& [r, task] : tasks_) {
      if (draw_(3)) continue;
      row.push_back(r);
      node.push_back(100 + r);
      wait_node.push_back(200);
      wait_cost.push_back(static_cast<int64_t>(draw_(50)));
    }
    if (row.empty()) return;
    for (uint64_t k = draw_(12); k > 0; --k) {
      arc_task.push_back(static_cast<int64_t>(draw_(row.size())));
      arc_head.push_back(static_cast<int64_t>(draw_(5)) - 2);
      arc_cost.push_back(static_cast<int64_t>(draw_(9)));
    }
    const Ids machine_node{10, 11, 12}, aggregator_node{20, 21};
    const auto found = arcs_.relist({row, node, arc_task, arc_head, arc_cost, wait_node, wait_cost,
                                     machine_node, aggregator_node});
    check_refused([&] {  // the new arcs have no ids yet
      arcs_.relist({row, node, {}, {}, {}, wait_node, wait_cost, machine_node, aggregator_node});
    });
    std::map<int64_t, int64_t> recosted;
    for (size_t i = 0; i < found.arc.size(); ++i) recosted[found.arc[i]] = found.cost[i];
    const Ids ids = take(found.added.tail.size());
    arcs_.name_relisted(ids);
    Ids removed;
    size_t next = 0;
    std::vector<Task> before;
    Ids carried;
    for (const int64_t r : row) {
      before.push_back(tasks_[r]);
      Task& old = before.back();
      carried.push_back(old.carries < old.arcs.size() ? old.arcs[old.carries] : -1);
      Task further;  // arcs outside of the list stay
      for (size_t k = 0; k < old.arcs.size(); ++k) {
        if (old.costs[k] >= 0) continue;
        further.arcs.push_back(old.arcs[k]);
        further.heads.push_back(old.heads[k]);
        further.costs.push_back(-1);
      }
      tasks_[r] = further;
    }
    const auto add = [&](size_t task, int64_t head, int64_t to, int64_t cost) {
      Task &its = tasks_[row[task]], &old = before[task];
      int64_t arc = -1;
      for (size_t k = 0; k < old.arcs.size() && arc < 0; ++k) {
        if (old.costs[k] < 0 || old.heads[k] != head) continue;
        arc = old.arcs[k];
        CHECK(recosted.contains(arc) == (old.costs[k] != cost));
        if (old.costs[k] != cost) CHECK(recosted[arc] == cost);
        recosted.erase(arc);
        old.costs[k] = -1;  // taken
      }
      if (arc < 0) {
        CHECK(found.added.tail[next] == node[task] && found.added.head[next] == to);
        CHECK(found.added.cost[next] == cost);
        arc = ids[next++];
      }
      its.arcs.push_back(arc);
      its.heads.push_back(head);
      its.costs.push_back(cost);
    };
    for (size_t i = 0; i < arc_task.size(); ++i) {
      const int64_t head = arc_head[i];
      add(static_cast<size_t>(arc_task[i]), head, head >= 0 ? 10 + head : 19 - head, arc_cost[i]);
    }
    for (size_t i = 0; i < row.size(); ++i) add(i, FlowArcs::kUnscheduled, 200, wait_cost[i]);
    CHECK(next == ids.size() && recosted.empty());
    for (const Task& old : before)
      for (size_t k = 0; k < old.arcs.size(); ++k)
        if (old.costs[k] >= 0) removed.push_back(old.arcs[k]);
    Ids said = found.removed;
    std::sort(said.begin(), said.end());
    std::sort(removed.begin(), removed.end());
    CHECK(said == removed);
    free_.insert(free_.end(), removed.begin(), removed.end());
    for (size_t i = 0; i < row.size(); ++i) {
      Task& its = tasks_[row[i]];
      const auto carries =
          std::find(its.arcs.begin(), its.arcs.end(), carried[i]) - its.arcs.begin();
      its.carries = static_cast<size_t>(carries);  // if none does, one will after the solve
    }
  }

  // The rows of the table of arcs out of aggregators change places.
  void move_inner() {
    if (draw_(4)) return;
    arcs_.move_inner(Ids{1, 0});
    std::swap(inner_flow_[0], inner_flow_[1]);
    for (int64_t& row : inner_of_) row = 1 - row;
  }

  void solve() {
    Ids arc, flow;
    for (auto& [row, task] : tasks_) {
      const size_t before = task.carries;
      task.carries = before < task.arcs.size() && draw_(2) ? before : draw_(task.arcs.size());
      if (task.carries == before) continue;
      if (before < task.arcs.size()) {
        arc.push_back(task.arcs[before]);
        flow.push_back(0);
      }
      arc.push_back(task.arcs[task.carries]);
      flow.push_back(1);
    }
    for (size_t i = 0; i < inner_arcs_.size(); ++i) {
      if (draw_(2)) continue;
      inner_flow_of_[i] = static_cast<int64_t>(draw_(9));
      arc.push_back(inner_arcs_[i]);
      flow.push_back(inner_flow_of_[i]);
    }
    arcs_.take_flow(arc, flow, inner_flow_);
  }

  void check() {
    Ids rows, heads, sent_rows, sent_heads;
    for (const auto& [row, task] : tasks_) {
      rows.push_back(row);
      heads.push_back(task.heads[task.carries]);
      CHECK(arcs_.next_hop(Ids{row}).front() == task.arcs[task.carries]);
      if (heads.back() == FlowArcs::kUnscheduled) continue;
      sent_rows.push_back(row);
      sent_heads.push_back(heads.back());
    }
    CHECK(arcs_.destination(rows) == heads);
    const auto sent = arcs_.sent(rows);
    CHECK(sent.row == sent_rows && sent.head == sent_heads);
    const auto lists = arcs_.lists(rows);
    size_t next = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Task& task = tasks_[rows[i]];
      for (size_t k = 0; k < task.arcs.size(); ++k) {
        if (task.costs[k] < 0) continue;
        CHECK(lists.task[next] == static_cast<int64_t>(i) && lists.arc[next] == task.arcs[k]);
        CHECK(lists.head[next] == task.heads[k] && lists.cost[next] == task.costs[k]);
        ++next;
      }
    }
    CHECK(next == lists.task.size());
    Ids sums(2, 0);
    for (size_t i = 0; i < inner_of_.size(); ++i)
      sums[static_cast<size_t>(inner_of_[i])] += inner_flow_of_[i];
    CHECK(sums == inner_flow_);
  }

  Draws draw_;
  FlowArcs arcs_;
  std::map<int64_t, Task> tasks_;  // by row
  Ids inner_arcs_, inner_of_, inner_flow_ = Ids(2, 0), inner_flow_of_ = Ids(3, 0);
  Ids free_;
  int64_t next_ = 0;
};

// Running tasks that the flow moves, and how many stay, as a look at every row finds them.
class RunningTasks {
 public:
  explicit RunningTasks(uint64_t seed) : draw_(seed) {}

  void round() {
    come_run_and_end();
    update();
    solve();
    if (draw_(4)) check();
  }

 private:
  static constexpr size_t kMachines = 4;

  void come_run_and_end() {
    const Ids id{next_task_++};
    const std::vector<int32_t> zero{0};
    const Ids of{0};
    table_.offer({id, of, of, zero, of, zero, of, std::vector<int8_t>{0}});
    for (int64_t task = 0; task < next_task_; ++task) {
      const Ids one{task};
      if (table_.rows_of(one)[0] < 0) continue;
      const auto on = static_cast<int32_t>(draw_(kMachines));
      if (draw_(3) == 0) table_.run(one, std::vector<int32_t>{on}, one, 0);
      if (draw_(9) == 0) table_.offer({one, of, of, zero, of, zero, of, std::vector<int8_t>{0}});
      if (draw_(9) == 0) table_.forget(one);
    }
  }

  void update() {
    const auto changes = table_.begin_update(true);
    const size_t n = changes.joining.size();
    const Ids zero(n, 0);
    const auto entered = table_.enter_groups(changes.joining, zero, 1);
    table_.name_groups(entered.group, entered.group, entered.group);
    table_.set_node(changes.joining, zero);
    arcs_.join({changes.joining, zero, {}, {}, {}, zero, zero, {}, {}});
    Ids to_wait;
    for (size_t i = 0; i < n; ++i) to_wait.push_back(next_arc_++);
    arcs_.name(to_wait);
    for (size_t i = 0; i < n; ++i) arcs_of_[changes.joining[i]] = {to_wait[i]};
    Ids rows = changes.started;
    for (const int64_t row : changes.joining)
      if (static_cast<TaskState>(table_.state[row]) == TaskState::kRunning) rows.push_back(row);
    for (const int64_t row : rows) {
      const Ids one{row}, arc{next_arc_++}, on{table_.machine[row]};
      arcs_.add_of_tasks(arc, one, on);
      table_.set_running_arc(one, arc);
      arcs_of_[row].push_back(arc[0]);
    }
    table_.end_update();
  }

  // Most units stay where they are.
  void solve() {
    for (const auto& [row, arcs] : arcs_of_) {
      if (static_cast<TaskNodeState>(table_.node_state[row]) == TaskNodeState::kNone) continue;
      const Ids one{row};
      if (arcs_.next_hop(one)[0] >= 0 && draw_(4)) continue;
      for (const int64_t arc : arcs) arcs_.take_flow(Ids{arc}, Ids{0}, {});
      arcs_.take_flow(Ids{arcs[draw_(arcs.size())]}, Ids{1}, {});
    }
  }

  void check() {
    Ids moved, staying(kMachines, 0);
    for (int64_t row = 0; row < static_cast<int64_t>(table_.rows()); ++row) {
      if (static_cast<TaskNodeState>(table_.node_state[row]) != TaskNodeState::kRunning) continue;
      if (arcs_.next_hop(Ids{row})[0] != table_.running_arc[row])
        moved.push_back(row);
      else
        ++staying[static_cast<size_t>(table_.machine[row])];
    }
    const auto found = arcs_.running(table_, kMachines);
    CHECK(found.moved == moved && found.staying == staying);
  }

  Draws draw_;
  TaskTable table_{1};
  FlowArcs arcs_;
  std::map<int64_t, Ids> arcs_of_;  // by row
  int64_t next_task_ = 0, next_arc_ = 0;
};

void arcs_that_do_not_exist_are_refused() {
  FlowArcs arcs;
  const Ids one{0}, two{0, 1}, none, negative{-1};
  const auto join = [&](const Ids& row, const Ids& task, const Ids& head) {
    arcs.join({row, one, task, head, task, one, one, one, negative});
  };
  check_refused([&] { join(one, one, two); });      // columns of two lengths
  check_refused([&] { join(one, Ids{1}, one); });   // a task
  check_refused([&] { join(one, one, Ids{1}); });   // a machine
  check_refused([&] { join(one, one, Ids{-1}); });  // an aggregator that has no node
  check_refused([&] { join(one, one, Ids{-2}); });  // or is none
  check_refused([&] { join(negative, none, none); });
  check_refused([&] { arcs.destination(one); });  // nothing has joined
  join(one, one, one);
  check_refused([&] { join(one, one, one); });  // the arcs have no ids yet
  check_refused([&] { arcs.name(one); });
  check_refused([&] { arcs.name(Ids{0, -1}); });
  arcs.name(two);
  check_refused([&] { arcs.destination(one); });  // nothing was solved
  check_refused([&] { arcs.sent(negative); });
  check_refused([&] { arcs.take_flow(Ids{9}, one, {}); });
  check_refused([&] { arcs.take_flow(one, two, {}); });
  check_refused([&] { arcs.add_of_tasks(one, Ids{5}, one); });
  check_refused([&] { arcs.add_inner(two, one); });
  arcs.add_inner(Ids{2}, Ids{3});
  check_refused([&] { arcs.take_flow(Ids{2}, one, {}); });  // no room for its row
  check_refused([&] { arcs.move_inner(Ids{0, 1, 2}); });    // its row is none of these
}

}  // namespace

int main() {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    History history(seed);
    for (int round = 0; round < 40; ++round) history.round();
  }
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    RunningTasks history(seed);
    for (int round = 0; round < 40; ++round) history.round();
  }
  arcs_that_do_not_exist_are_refused();
  return 0;
}
