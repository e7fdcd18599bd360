// The graph of a flow scheduler, without the solver: the tasks that it is about (TaskTable), what
// its arcs stand for (FlowArcs), and the arcs on which placements pay for slots (SegmentArcs).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace agora {

// Hands out the rows of a table, and takes them back to hand them out again: rows given back last
// are taken first. A table that is full at least doubles. Of new rows the lowest is taken first,
// after those that were given back.
class RowPool {
 public:
  // at_least: by how many rows a table grows.
  explicit RowPool(size_t at_least) : at_least_(at_least) {}

  size_t rows() const { return rows_; }

  // Makes sure that n rows can be taken. Returns whether the table has to grow to rows() for it.
  bool reserve(size_t n) {
    if (n <= free_.size()) return false;
    const size_t more = std::max({n - free_.size(), rows_, at_least_});
    std::vector<int64_t> free;
    free.reserve(more + free_.size());
    for (size_t row = rows_ + more; row > rows_; --row)
      free.push_back(static_cast<int64_t>(row) - 1);
    free.insert(free.end(), free_.begin(), free_.end());
    free_ = std::move(free);
    rows_ += more;
    return true;
  }

  // One of the rows reserved.
  int64_t take() {
    const int64_t row = free_.back();
    free_.pop_back();
    return row;
  }

  void give_back(int64_t row) { free_.push_back(row); }

 private:
  size_t at_least_;
  size_t rows_ = 0;
  std::vector<int64_t> free_;  // a stack
};

// The unscheduled aggregators U_j of the flow graph. The flow of a group's tasks that stay waiting
// passes through its U_j, whose arc to the sink costs the waiting price
// (schedulers/flow/waiting.py). A group is a job, unless the policy says otherwise.
//
// A group has a place while tasks of it are in the graph. The place holds the solver's ids of the
// node and of its arc to the sink, what each quantum of waiting costs, and the quantum of time from
// which that arc counts it:
//
//                enter()            name()                leave() of the last task
//     (no place) -------> unnamed --------> tasks > 0 --------------------------> empty
//         ^                                     ^------------ enter() ------------- |
//         '-------------------------- close_empty() -------------------------------'
class UnscheduledAggregators {
 public:
  static constexpr int64_t kNoNode = -1;

  // A column for each attribute of the groups that have a place.
  struct Open {
    std::vector<int64_t> group;
    std::vector<int64_t> node;
    std::vector<int64_t> arc;            // to the sink
    std::vector<int64_t> first_quantum;  // from which the arc counts the waiting price
    std::vector<int64_t> cost;           // of a quantum
    std::vector<int64_t> tasks;
  };
  // Groups that have just got a place, in ascending order.
  struct New {
    std::vector<int64_t> group;
    std::vector<int64_t> first_quantum;  // in which the first of its tasks was submitted
  };

  UnscheduledAggregators() : pool_(64) {}

  // Adds one task for each entry of `group`, submitted in that quantum.
  //
  // Writes the place of each task's group, and returns the groups that had none. These are to be
  // named before anything else is called, or std::logic_error is thrown.
  New enter(std::span<const int64_t> group, std::span<const int64_t> submitted,
            std::span<int64_t> place);

  // The solver's ids for the groups that enter() found new, in its order, and what a quantum of
  // waiting costs in them. Throws std::invalid_argument for another number of them, or ids that are
  // negative.
  void name(std::span<const int64_t> node, std::span<const int64_t> arc,
            std::span<const int64_t> cost);

  // A task of the group of this place leaves the graph.
  void leave(int64_t place);

  // Frees the places without tasks. Returns their nodes, in order of places.
  std::vector<int64_t> close_empty();

  // The groups with a place, in order of places.
  Open open() const;

  int64_t node(int64_t place) const { return at(place).node; }
  int64_t first_quantum(int64_t place) const { return at(place).first_quantum; }
  int64_t cost(int64_t place) const { return at(place).cost; }

 private:
  struct Place {
    int64_t group = 0;
    int64_t node = kNoNode;  // kNoNode: the place is free, or unnamed
    int64_t arc = 0;
    int64_t first_quantum = 0;
    int64_t cost = 0;  // of a quantum
    int64_t tasks = 0;
  };

  Place& at(int64_t place) { return places_[static_cast<size_t>(place)]; }
  const Place& at(int64_t place) const { return places_[static_cast<size_t>(place)]; }
  void require_named() const;

  std::vector<Place> places_;
  RowPool pool_;
  std::unordered_map<int64_t, int64_t> place_of_;  // by group
  std::vector<int64_t> unnamed_;                   // places
};

enum class TaskState : int8_t { kAbsent, kWaiting, kInFlight, kRunning, kEvicting };
enum class TaskNodeState : int8_t { kNone, kWaiting, kRunning };

// [rows], or [rows, width]. A column that grows moves to new memory. Those who share the old memory
// keep it.
template <class T>
class GrowingColumn {
 public:
  explicit GrowingColumn(size_t width = 1) : data_(new T[0]), width_(width) {}

  void grow(size_t rows) {
    std::shared_ptr<T[]> larger(new T[rows * width_]());
    std::copy_n(data_.get(), rows_ * width_, larger.get());
    data_ = std::move(larger);
    rows_ = rows;
  }

  T& operator[](int64_t row) { return data_[static_cast<size_t>(row) * width_]; }
  const T& operator[](int64_t row) const { return data_[static_cast<size_t>(row) * width_]; }
  size_t rows() const { return rows_; }
  size_t width() const { return width_; }
  std::shared_ptr<const T[]> shared() const { return data_; }

 private:
  std::shared_ptr<T[]> data_;
  size_t rows_ = 0;
  size_t width_;
};

// n tasks, as in TaskBatch.
struct TaskColumns {
  std::span<const int64_t> task;
  std::span<const int64_t> job;
  std::span<const int64_t> request;  // [n, R]
  std::span<const int32_t> priority;
  std::span<const int64_t> submit_us;
  std::span<const int32_t> preference;
  std::span<const int64_t> gang;
  std::span<const int8_t> task_class;
};

// The tasks that a flow scheduler is responsible for, with their state and their nodes in its graph
// (schedulers/flow/solver_graph.py).
//
//                     offer()            set_state()             run()
//   (unknown) ------------> WAITING ---------------> IN_FLIGHT ---------> RUNNING
//       ^                   ^  ^-------- reject() ------' |                |   ^
//       |                   '-------- offer() ------------+----------------'   | run()
//       |                                                 |     set_state()    v
//       '---------------------- forget() -----------------'              EVICTING
//
// The graph follows once per round: begin_update() names the tasks whose nodes are to be removed or
// added, and end_update() takes note that this is done. In between, and for tasks that the table
// forgets, state and node state differ:
//
//   wanted node state    WAITING of a task that waits; RUNNING of one that runs, under preemption;
//                        else NONE
//   WAITING -> RUNNING   started: the task keeps its node
//   any other change     the old node leaves, a new one joins
//
// A row of the columns belongs to a task until the table forgets it. Rows are used again.
class TaskTable {
 public:
  static constexpr int64_t kNoRow = -1;
  static constexpr int64_t kNoNode = -1;

  // Rows in ascending order.
  struct Changes {
    std::vector<int64_t> removed;  // nodes, in the order in which their tasks left
    std::vector<int64_t> started;  // waited in the graph, and run
    std::vector<int64_t> joining;  // need a node
  };
  explicit TaskTable(size_t dimensions);

  // --- What became of tasks. Ids that the table does not know are passed over. ---

  // These tasks wait. Throws std::invalid_argument for negative ids, or columns that do not go
  // together.
  void offer(const TaskColumns& tasks);
  // Those that are IN_FLIGHT wait again.
  void reject(std::span<const int64_t> task);
  void run(std::span<const int64_t> task, std::span<const int32_t> machine,
           std::span<const int64_t> allocation, int64_t at_us);
  // The table forgets these tasks. Their nodes leave the graph with the next update.
  void forget(std::span<const int64_t> task);
  void set_state(std::span<const int64_t> row, TaskState state);

  // --- The graph. ---

  Changes begin_update(bool preemption);
  // Tasks that join become those of their groups' unscheduled aggregators. The groups that are new
  // are to be named. quantum_us: of the waiting price.
  UnscheduledAggregators::New enter_groups(std::span<const int64_t> row,
                                           std::span<const int64_t> group, int64_t quantum_us);
  void name_groups(std::span<const int64_t> node, std::span<const int64_t> arc,
                   std::span<const int64_t> cost) {
    groups.name(node, arc, cost);
  }
  // Of tasks that have entered their groups: the nodes of their unscheduled aggregators, what a
  // quantum of waiting costs there, and what the waiting price of the group has in excess of the
  // task's own, which is negative if the task came later than the group's first.
  std::vector<int64_t> group_nodes(std::span<const int64_t> row) const;
  std::vector<int64_t> group_costs(std::span<const int64_t> row) const;
  std::vector<int64_t> cost_of_lateness(std::span<const int64_t> row, int64_t quantum_us) const;
  // The nodes of tasks that join.
  void set_node(std::span<const int64_t> row, std::span<const int64_t> node);
  void set_running_arc(std::span<const int64_t> row, std::span<const int64_t> arc);
  // Where tasks wait while their patience lasts: the arc, or kNoArc, and the end, or 0.
  void set_patience(std::span<const int64_t> row, std::span<const int64_t> arc,
                    std::span<const int64_t> ends_us);
  // Ends the patience of these tasks and of those for which it is over. Returns their arcs, in
  // order of rows.
  std::vector<int64_t> end_patience(std::span<const int64_t> started, int64_t now_us);
  // As begin_update() said.
  void end_update();

  // --- Queries. ---

  std::vector<int64_t> rows_of(std::span<const int64_t> task) const;  // kNoRow: unknown
  std::vector<int64_t> waiting() const;                               // rows, ascending
  // Whether every task that waits requests exactly `unit`.
  bool waiting_ask_for(std::span<const int64_t> unit) const;
  // How many tasks are RUNNING on each of so many machines, and by their node state.
  std::vector<int64_t> running_on(size_t machines) const { return running_on_.first(machines); }
  std::vector<int64_t> graph_runs_on(size_t machines) const {
    return graph_runs_on_.first(machines);
  }
  // Which of these tasks wait, as indices. All must be known.
  std::vector<int64_t> still_waiting(std::span<const int64_t> task) const;
  // When the patience of the first waiting task that has some ends; 0: none has.
  int64_t first_end_of_patience() const;
  size_t rows() const { return state.rows(); }
  size_t dimensions() const { return request.width(); }
  void require_rows(std::span<const int64_t> row) const;

  // Columns by row, to be read. What the agent said:
  GrowingColumn<int64_t> task, job, request, submit_us, gang, machine, allocation, since_us;
  GrowingColumn<int32_t> priority, preference;
  GrowingColumn<int8_t> task_class, state;
  // What the graph keeps:
  GrowingColumn<int8_t> node_state;
  GrowingColumn<int64_t> node, group_place, running_arc, patience_arc, patience_ends_us;
  UnscheduledAggregators groups;

 private:
  static constexpr int64_t kNoArc = -1;

  int64_t row_of(int64_t id) const {
    return id >= 0 && static_cast<size_t>(id) < row_of_.size() ? row_of_[static_cast<size_t>(id)]
                                                               : kNoRow;
  }
  // Machines to numbers of tasks.
  class Counts {
   public:
    void add(int64_t on, int64_t more) {
      if (on < 0) return;  // no machine
      if (static_cast<size_t>(on) >= of_.size()) of_.resize(static_cast<size_t>(on) + 1, 0);
      of_[static_cast<size_t>(on)] += more;
    }
    // Of so many machines. Throws std::invalid_argument if others have tasks.
    std::vector<int64_t> first(size_t machines) const;

   private:
    std::vector<int64_t> of_;
  };

  TaskState state_of(int64_t row) const { return static_cast<TaskState>(state[row]); }
  void change_state(int64_t row, TaskState to);
  void change_node_state(int64_t row, TaskNodeState to);
  // The rows for which something holds, ascending. It holds only for rows that are listed.
  template <class Holds>
  std::vector<int64_t> select_of_all(const Holds& holds) const;
  template <class Holds>
  std::vector<int64_t> select(std::span<const int64_t> listed, const Holds& holds) const;
  TaskNodeState node_state_of(int64_t row) const {
    return static_cast<TaskNodeState>(node_state[row]);
  }
  static TaskNodeState wanted(TaskState state, bool preemption);
  void reserve(size_t more, int64_t largest_id);
  void leave_graph(int64_t row);

  RowPool pool_;
  std::vector<int32_t> row_of_;     // by task id
  std::vector<int64_t> abandoned_;  // nodes to be removed with the next update
  Changes changing_;                // since begin_update()
  // Kept, so that a round need not look at all rows:
  std::vector<int64_t> waiting_;          // rows, in no order
  GrowingColumn<int32_t> waiting_place_;  // where a row is in it
  Counts running_on_, graph_runs_on_;     // RUNNING by state, and by node state
  // Rows whose state has changed since the last update, perhaps twice, and how many of them
  // begin_update() saw.
  std::vector<int64_t> restated_;
  size_t restated_seen_ = 0;
  bool preemption_ = false;  // of the last update
};

// What the arcs of a flow scheduler's graph stand for, and what the solver's flow says about tasks
// and aggregators (schedulers/flow/solver_graph.py). It knows no solver: ids of nodes and arcs are
// numbers.
//
//   arc of a task         a row of the task table, where the arc leads, what it costs. The arcs
//                         that a task joined the graph with form a list per row.
//   arc out of an         a row of the table of these arcs. Several of the solver's may stand for
//   aggregator            one row: the row's flow is their sum.
//   any other arc         nothing is kept
//
// A task sends one unit: the arc that carries it is the task's next hop.
class FlowArcs {
 public:
  static constexpr int64_t kNoArc = -1;
  // Where an arc to U_j, or to the patience node, leads.
  static constexpr int64_t kUnscheduled = std::numeric_limits<int64_t>::min();

  // k arcs for the solver, of one unit each: nodes, and costs.
  struct New {
    std::vector<int64_t> tail;
    std::vector<int64_t> head;
    std::vector<int64_t> cost;
  };
  // Arcs of tasks, `task` counting from 0 in the order asked for. cost: as they joined with it.
  struct OfTasks {
    std::vector<int64_t> task;
    std::vector<int64_t> arc;
    std::vector<int64_t> head;
    std::vector<int64_t> cost;
  };
  // Tasks whose unit goes to a machine row or to aggregator -1 - head.
  struct Sent {
    std::vector<int64_t> row;
    std::vector<int64_t> head;
  };
  // n tasks that join the graph, with the k arcs that their policy gives them, and one more each.
  struct Joining {
    std::span<const int64_t> row;   // [n]: of the task table
    std::span<const int64_t> node;  // [n]
    std::span<const int64_t> arc_task;
    std::span<const int64_t> arc_head;  // [k]: a machine row, or -1 - a for aggregator a
    std::span<const int64_t> arc_cost;
    std::span<const int64_t> unscheduled_node;  // [n]: the node of each task's U_j,
    std::span<const int64_t> unscheduled_cost;  // [n]: and the cost of the arc there
    std::span<const int64_t> machine_node;      // [M]: where tasks enter machines
    std::span<const int64_t> aggregator_node;   // [A]: negative: not in the graph
  };

  // The arcs of tasks that join: the policy's in their order, then those to the U_j. They replace
  // what was kept for these rows, and are to be named before the next call of join().
  //
  // Throws std::invalid_argument for columns that do not go together, and heads that do not exist.
  New join(const Joining& tasks);
  // The solver's ids for the arcs of the last join(). Throws std::invalid_argument for another
  // number of them, or ids that are negative.
  void name(std::span<const int64_t> arc);

  // The same for tasks in the graph whose policy gives them other arcs. An arc that leads where one
  // of the task's arcs led before is that arc, with its new cost. The others are removed or new;
  // the new ones are to be named with name_relisted().
  //
  // Throws as join() does, and for rows that are named twice.
  struct Relisted {
    std::vector<int64_t> arc, cost;  // that differ
    std::vector<int64_t> removed;    // arcs
    New added;
  };
  Relisted relist(const Joining& tasks);
  void name_relisted(std::span<const int64_t> arc);

  // Further arcs of tasks, which are part of no list.
  void add_of_tasks(std::span<const int64_t> arc, std::span<const int64_t> row,
                    std::span<const int64_t> head);
  // Arcs out of aggregators, of these rows of the table of them; negative: of none.
  void add_inner(std::span<const int64_t> arc, std::span<const int64_t> inner);
  // Arcs of neither kind. Their ids may have been those of a task's.
  void add_others(std::span<const int64_t> arc);

  // The rows of the table of arcs out of aggregators have moved: each to row[its old one].
  void move_inner(std::span<const int64_t> row);

  // Takes the arcs whose flow has changed since the last call, with their flow now. For arcs out of
  // aggregators, adds the change to the flow of their row in `inner_flow`.
  void take_flow(std::span<const int64_t> arc, std::span<const int64_t> flow,
                 std::span<int64_t> inner_flow);

  // Running tasks of the graph: the rows of those that the flow moves, and how many others stay on
  // each machine.
  struct Running {
    std::vector<int64_t> moved;    // rows, ascending
    std::vector<int64_t> staying;  // [M]
  };
  Running running(const TaskTable& table, size_t machines);

  // Of rows that have been in the graph at a solve:
  std::vector<int64_t> next_hop(std::span<const int64_t> row) const;     // kNoArc: never solved
  std::vector<int64_t> destination(std::span<const int64_t> row) const;  // or kUnscheduled
  Sent sent(std::span<const int64_t> row) const;
  // The lists of those rows, one after the other. Each ends with the arc to the U_j.
  OfTasks lists(std::span<const int64_t> row) const;

 private:
  static constexpr int64_t kNoRow = -1;

  struct TaskArc {
    int64_t row = kNoRow;
    int64_t head = 0;
    int64_t cost = 0;
    int64_t next = kNoArc;  // of the row's list
  };
  struct InnerArc {
    int64_t inner = kNoRow;
    int64_t flow = 0;  // as of the last take_flow()
  };
  struct Task {
    int64_t first = kNoArc;  // of its list
    int64_t next_hop = kNoArc;
  };

  // The task may be one that the flow moves, though it was none at the last call of running().
  void note(int64_t row) {
    if (noted_.size() < tasks_.size()) noted_.resize(tasks_.size(), false);
    if (noted_[static_cast<size_t>(row)]) return;
    noted_[static_cast<size_t>(row)] = true;
    may_move_.push_back(row);
  }

  // The arcs of tasks that join, or are listed anew: nodes, and what is kept of each.
  struct Listed {
    New nodes;
    std::vector<TaskArc> arcs;
  };

  static size_t at(int64_t index) { return static_cast<size_t>(index); }
  static Listed listed(const Joining& tasks);
  void link(std::span<const int64_t> arc, std::span<const TaskArc> its);
  void reserve(std::span<const int64_t> arc);
  const Task& task_at(int64_t row) const;
  int64_t destination_of(int64_t row) const;

  std::vector<TaskArc> of_tasks_;  // by arc
  std::vector<InnerArc> inner_;    // by arc
  std::vector<Task> tasks_;        // by row
  // Rows, each once, of tasks that the flow moved at the last call of running(), or that have got
  // another next hop or a running arc since; and by row, whether it is among them.
  std::vector<int64_t> may_move_;
  std::vector<bool> noted_;
  std::vector<TaskArc> unnamed_;
  std::vector<TaskArc> relisted_;       // in order, with their ids in
  std::vector<int64_t> relisted_arcs_;  // kNoArc: new
};

// The arcs on which placements pay for the slots of machines (schedulers/flow/machine_arcs.py).
//
// The prices of a machine's slots never fall with the number that are busy. Free slots of equal
// price share an arc, a segment. Segments take a machine's arcs in order, the dearest first: when
// the load moves by a slot, it is the cheapest that opens or closes, so a capacity changes and no
// cost. In a full cell few levels are free, and only these are looked at.
//
// Levels count slots, capacities count units of the flow. Where the two differ in size, the free
// units are spread evenly over the free slots.

// What the slots of M machines cost, and how many are free. Rows of `cost` never fall.
struct SlotCosts {
  size_t levels = 0;               // at least 1
  std::span<const int64_t> cost;   // [M, levels]: of the next slot of a machine with so many busy
  std::span<const int64_t> slots;  // [M]: of the empty machine
  std::span<const int64_t> free;   // [M]: slots
  std::span<const int64_t> units;  // [M]: free units

  // The cost of a machine's next slot after `taken` units of those that are free, which are more.
  int64_t next(size_t machine, int64_t taken) const {
    int64_t level = busy(machine);
    if (taken > 0) level += taken * free[machine] / units[machine];
    const int64_t last = static_cast<int64_t>(levels) - 1;
    return cost[machine * levels + static_cast<size_t>(std::min(level, last))];
  }
  int64_t busy(size_t machine) const {
    return std::max<int64_t>(slots[machine] - free[machine], 0);
  }
};

// One entry for each new arc, which is parallel to the machine's others, and for each arc whose
// capacity or cost differs.
struct SegmentChanges {
  std::vector<int64_t> new_machine, new_capacity, new_cost;
  std::vector<int64_t> arc, capacity, cost;
};

// The arcs of M machines. Those of a machine are side by side in memory. An arc exists from when it
// was first open.
class SegmentArcs {
 public:
  explicit SegmentArcs(size_t machines) : machines_(machines), arcs_(machines) {}

  // Brings the arcs of these machines up to date, and says what that changes. O(levels that are, or
  // were, free) for each.
  //
  // Throws std::invalid_argument for columns that do not go together, rows that do not exist, and
  // while new arcs have no ids.
  SegmentChanges set(const SlotCosts& slots, std::span<const int64_t> row);

  // The ids of the new arcs of the last set(), in its order. Throws std::invalid_argument for
  // another number of them, or ids that are negative.
  void name(std::span<const int64_t> arc);

 private:
  static constexpr int64_t kNoArc = -1;
  struct Arc {
    int64_t cost = 0;  // as of when it was open last
    int64_t id = kNoArc;
    int64_t capacity = 0;
  };
  struct NewArc {
    size_t machine, place;
  };

  Arc& at(size_t machine, size_t place) { return arcs_[machine * width_ + place]; }
  void prefetch(const SlotCosts& slots, size_t machine) const;
  void set_machine(const SlotCosts& slots, size_t machine, SegmentChanges& changes);
  void set_arc(size_t machine, size_t place, int64_t capacity, int64_t cost,
               SegmentChanges& changes);
  void widen();

  size_t machines_;
  size_t width_ = 1;  // places for arcs of each machine
  std::vector<Arc> arcs_;
  std::vector<NewArc> new_;  // have no id
};

}  // namespace agora
