// The arcs of a flow scheduler's graph: what they stand for (FlowArcs), those on which placements
// pay for slots (SegmentArcs), and array idioms that numpy takes several passes for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace agora {

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

// --- array idioms, among them units of a flow (schedulers/units.py) ---

// How many of `unit` (R) fit each row of `resources` ([M, R]). A resource of which the unit is 0 is
// not checked, not even on machines that are overdrawn in it. If the unit is 0 in all, rows with
// room in some resource hold `most`, and others none. No row holds more than `most`. Throws
// std::invalid_argument if `resources` has another number of rows than `units`.
void units_in(std::span<const int64_t> resources, std::span<const int64_t> unit, int64_t most,
              std::span<int64_t> units);

// The entries of the named rows of a CSR table: begin[0], begin[0] + 1, ... (size[0] of them),
// begin[1], ... Throws std::invalid_argument for columns of different lengths, and sizes below 0.
std::vector<int64_t> ranges(std::span<const int64_t> begin, std::span<const int64_t> size);

// The entries of sets of a CSR table, as arcs: those of set[0] out of row[0], those of set[1] out
// of row[1], ... Throws std::invalid_argument for columns of different lengths, sets that do not
// exist, and offsets that do not ascend within the table.
struct ListedArcs {
  std::vector<int64_t> row, head, cost;
};
ListedArcs listed_arcs(std::span<const int64_t> offsets, std::span<const int64_t> head,
                       std::span<const int64_t> cost, std::span<const int64_t> row,
                       std::span<const int64_t> set);

// The entries of the named rows of a CSR table with these offsets: order[offsets[row[0]]], ...
// Throws std::invalid_argument for rows that do not exist, and offsets that do not ascend within
// `order`.
std::vector<int64_t> entries_of(std::span<const int64_t> offsets, std::span<const int64_t> order,
                                std::span<const int64_t> row);

// The places where two columns differ. Throws std::invalid_argument if their lengths do.
std::vector<int64_t> differing(std::span<const int64_t> a, std::span<const int64_t> b);

// The aggregators that these heads name (-1 - a for aggregator a; others are machines) and that
// have no node yet (negative), ascending. Throws std::invalid_argument for aggregators beyond those
// of `node`.
std::vector<int64_t> without_node(std::span<const int64_t> head, std::span<const int64_t> node);

// A cycle of the graph that has these arcs: the nodes along it, of which the last is the first once
// more. Empty if there is none. O(k log k) for k arcs. Throws std::invalid_argument for columns of
// different lengths.
std::vector<int64_t> cycle_among(std::span<const int64_t> tail, std::span<const int64_t> head);

// The first place of a number that is not within these bounds, or -1.
int64_t first_outside(std::span<const int64_t> column, int64_t lowest, int64_t highest);

}  // namespace agora
