// The tasks that a flow scheduler is responsible for, with their state and their nodes in its graph
// (schedulers/flow/task_table.py).
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
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

// The unscheduled aggregators U_j of the flow graph. The flow of a job's tasks that stay waiting
// passes through its U_j, whose arc to the sink costs the waiting price (schedulers/flow/graph.py).
//
// A job has a place while tasks of it are in the graph. The place holds the solver's ids of the
// node and of its arc to the sink, and the quantum of time from which that arc counts the waiting
// price:
//
//                enter()            name()                leave() of the last task
//     (no place) -------> unnamed --------> tasks > 0 --------------------------> empty
//         ^                                     ^------------ enter() ------------- |
//         '-------------------------- close_empty() -------------------------------'

class UnscheduledAggregators {
 public:
  static constexpr int64_t kNoNode = -1;

  // A column for each attribute of the jobs that have a place.
  struct Open {
    std::vector<int64_t> node;
    std::vector<int64_t> arc;            // to the sink
    std::vector<int64_t> first_quantum;  // from which the arc counts the waiting price
  };

  UnscheduledAggregators() : pool_(64) {}

  // Adds one task for each entry of `job`, submitted in that quantum.
  //
  // Writes the place of each task's job. Returns the first quantum of each job that had no place,
  // in ascending order of jobs: that in which the first of its tasks was submitted. These jobs are
  // to be named before anything else is called, or std::logic_error is thrown.
  std::vector<int64_t> enter(std::span<const int64_t> job, std::span<const int64_t> submitted,
                             std::span<int64_t> place);

  // The solver's ids for the jobs that enter() found new, in its order. Throws
  // std::invalid_argument for another number of them, or ids that are negative.
  void name(std::span<const int64_t> node, std::span<const int64_t> arc);

  // A task of the job of this place leaves the graph.
  void leave(int64_t place);

  // Frees the places without tasks. Returns their nodes, in order of places.
  std::vector<int64_t> close_empty();

  // The jobs with a place, in order of places.
  Open open() const;

  int64_t node(int64_t place) const { return at(place).node; }
  int64_t first_quantum(int64_t place) const { return at(place).first_quantum; }

 private:
  struct Place {
    int64_t job = 0;
    int64_t node = kNoNode;  // kNoNode: the place is free, or unnamed
    int64_t arc = 0;
    int64_t first_quantum = 0;
    int64_t tasks = 0;
  };

  Place& at(int64_t place) { return places_[static_cast<size_t>(place)]; }
  const Place& at(int64_t place) const { return places_[static_cast<size_t>(place)]; }
  void require_named() const;

  std::vector<Place> places_;
  RowPool pool_;
  std::unordered_map<int64_t, int64_t> place_of_;  // by job
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
  struct Entered {
    std::vector<int64_t> first_quantum;  // of each new job, as UnscheduledAggregators::enter()
    std::vector<int64_t> lateness;       // by how many quanta each task came after its job's first
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
  // Tasks that join become those of their jobs' unscheduled aggregators; `jobs` then has new jobs
  // to name. quantum_us: of the waiting price.
  Entered enter_jobs(std::span<const int64_t> row, int64_t quantum_us);
  // The nodes of their jobs' unscheduled aggregators, for tasks that have entered them.
  std::vector<int64_t> job_nodes(std::span<const int64_t> row) const;
  // The nodes of tasks that join.
  void set_node(std::span<const int64_t> row, std::span<const int64_t> node);
  void set_running_arc(std::span<const int64_t> row, std::span<const int64_t> arc,
                       std::span<const int64_t> cost);
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
  GrowingColumn<int64_t> node, job_place, running_arc, running_arc_cost, patience_arc,
      patience_ends_us;
  UnscheduledAggregators jobs;

 private:
  static constexpr int64_t kNoArc = -1;

  int64_t row_of(int64_t id) const {
    return id >= 0 && static_cast<size_t>(id) < row_of_.size() ? row_of_[static_cast<size_t>(id)]
                                                               : kNoRow;
  }
  TaskState state_of(int64_t row) const { return static_cast<TaskState>(state[row]); }
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
};

}  // namespace agora
