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
#include <vector>

#include "row_pool.hpp"
#include "unscheduled_aggregators.hpp"

namespace agora {

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
