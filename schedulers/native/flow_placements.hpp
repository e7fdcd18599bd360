// From an optimal flow to placements, with ties broken towards the emptier machine.
//
// The flow is decomposed into one path per task (Firmament, section 6.3, Listing 1). Where other
// paths cost a task the same and have residual capacity, the solver's choice among them is an
// accident of its algorithm. It is replaced: the task goes to the machine with the most room, of
// equals to one drawn at random. The new flow is feasible and costs what the solver's does, so it
// is optimal too.
//
// What counts as a choice:
//   a task whose flow goes straight to a machine: its own arcs to machines, of the same cost;
//   tasks whose flow goes to one aggregator first: the machines reached from that aggregator at the
//   same cost, over any other aggregators. Such tasks are interchangeable: all leave their places
//   at once, and each takes the machine that has the most room then. Where arcs between aggregators
//   on the way have a capacity, only the last arc of a path is chosen anew.
// With slot prices a machine's next slot may cost more than its last one: of the choices only those
// with the lowest price count, which keeps the optimum too.
// Tasks with few choices go first. A place that the solver gave to a task that has yet to choose
// stays that task's, so every task finds at least the place it had.
//
// Room is the view's, less what this call has placed: the sum over dimensions of what is free, as
// shares of the cell's largest machine. This is what the greedy kind load_spreading ranks by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flow_graph.hpp"
#include "shared_state/native/view.hpp"

namespace agora {

// What tasks pay for the slots of machines that they enter over priced arcs.
struct PricedSlots {
  SlotCosts slots;              // no levels: nothing has a price
  int64_t beyond = 0;           // the cost of a unit of a machine that has no free one left
  bool direct = false;          // arcs of tasks to machines are priced
  std::span<const bool> inner;  // [arcs out of aggregators]: whether each is priced
};

// A capacity that no round reaches.
inline constexpr int64_t kUnbounded = int64_t{1} << 30;

// Where arcs lead: a machine row, or -1 - a for aggregator a.
struct SolvedFlow {
  // Tasks, n. Of every aggregator that one of them goes to, all tasks that do.
  std::span<const int64_t> head;  // [n]: where each goes first
  const int64_t* request;         // [n, R]
  // The arcs of these tasks to machines, k of them in any order, those that carry flow included;
  // other arcs of theirs are ignored.
  std::span<const int64_t> arc_task;
  std::span<const int64_t> arc_head;
  std::span<const int64_t> arc_cost;
  // The arcs out of aggregators. Those of aggregator a are [first[a], end[a]).
  std::span<const int64_t> first;
  std::span<const int64_t> end;
  std::span<const int64_t> inner_head;
  std::span<const int64_t> inner_cost;
  std::span<const int64_t> inner_flow;
  std::span<const int64_t> inner_capacity;  // at least kUnbounded: nothing bounds it
  bool bounded;                             // whether some arc between aggregators is
  // [M]: how many of these tasks each machine can take, those included that the flow takes there.
  std::span<const int64_t> machine_room;
  PricedSlots priced = {};
};

// The machine of each task: as the solver's flow has it, and with ties broken. n each.
struct FlowPlacements {
  std::vector<int64_t> solved;
  std::vector<int64_t> chosen;
};

// `stream` keys the draws among equals. O(n log n + arcs out of the aggregators that carry flow).
// Throws std::invalid_argument for columns whose lengths do not go together, heads out of range or
// aggregators in a cycle, std::runtime_error where less flow leaves an aggregator than tasks enter
// it: that is no flow.
FlowPlacements flow_placements(const ClusterView& view, const SolvedFlow& flow, uint64_t stream);

// Which placements of a flow can be claimed: the flow knows units, machines have several resources,
// and a gang is placed as a whole (schedulers/flow/extraction.py).

// n placements.
struct Placed {
  std::span<const int64_t> task;      // ids
  std::span<const int32_t> priority;  // of one machine's tasks the highest come first
  std::span<const int64_t> request;   // [n, R]
  std::span<const int64_t> machine;   // rows
};

// Writes which placements fit together in what is free ([M, R]). A resource that a task does not
// request is not checked, not even on machines that are overdrawn in it. On one machine tasks of
// higher priority come first, then lower ids. Tasks after one that does not fit are judged as if it
// did. O(n (log n + R)). Throws std::invalid_argument for columns that do not go together, and
// machines that do not exist.
void fit_together(const Placed& placed, std::span<const int64_t> free, size_t dimensions,
                  std::span<bool> fits);

// Writes which placements, of tasks of these gangs, are of no gang (negative), or of one that has
// no waiting task without a place. waiting_gang: the gangs of all waiting tasks, the placed ones
// among them. Throws std::invalid_argument for columns that do not go together.
void in_whole_gangs(std::span<const int64_t> gang, std::span<const int64_t> waiting_gang,
                    std::span<bool> whole);

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
