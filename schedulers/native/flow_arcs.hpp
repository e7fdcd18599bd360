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
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace agora {

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

  // Further arcs of tasks, which are part of no list.
  void add_of_tasks(std::span<const int64_t> arc, std::span<const int64_t> row,
                    std::span<const int64_t> head);
  // Arcs out of aggregators, of these rows of the table of them; negative: of none.
  void add_inner(std::span<const int64_t> arc, std::span<const int64_t> inner);
  // Arcs of neither kind. Their ids may have been those of a task's.
  void add_others(std::span<const int64_t> arc);

  // Takes the arcs whose flow has changed since the last call, with their flow now. For arcs out of
  // aggregators, adds the change to the flow of their row in `inner_flow`.
  void take_flow(std::span<const int64_t> arc, std::span<const int64_t> flow,
                 std::span<int64_t> inner_flow);

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

  static size_t at(int64_t index) { return static_cast<size_t>(index); }
  void reserve(std::span<const int64_t> arc);
  const Task& task_at(int64_t row) const;
  int64_t destination_of(int64_t row) const;

  std::vector<TaskArc> of_tasks_;  // by arc
  std::vector<InnerArc> inner_;    // by arc
  std::vector<Task> tasks_;        // by row
  std::vector<TaskArc> unnamed_;
};

}  // namespace agora
