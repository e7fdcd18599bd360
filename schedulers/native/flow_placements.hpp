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
//   at once, and each takes the machine that has the most room then.
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

#include "flow_arcs.hpp"
#include "shared_state/native/view.hpp"

namespace agora {

// What tasks pay for the slots of machines that they enter over priced arcs.
struct PricedSlots {
  SlotCosts slots;              // no levels: nothing has a price
  int64_t beyond = 0;           // the cost of a unit of a machine that has no free one left
  bool direct = false;          // arcs of tasks to machines are priced
  std::span<const bool> inner;  // [arcs out of aggregators]: whether each is priced
};

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
  std::span<const int64_t> inner_capacity;  // of arcs into machines; others are unbounded
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

}  // namespace agora
