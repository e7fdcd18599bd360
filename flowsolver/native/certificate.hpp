// Certificates of optimality and of infeasibility, checked independently of how the answer was
// found; and how many tasks a flow misplaces.
//
// A flow x is optimal if it is feasible and there are prices p such that, for every arc,
//   x < capacity  =>  rc >= 0   and   x > 0  =>  rc <= 0        (complementary slackness)
// with signs as in network.hpp. Then its cost equals the dual's: sum supply[v] p[v] + sum over arcs
// with rc < 0 of capacity * rc. Sums are exact (128 bits), and so are reduced costs.
//
// A network is infeasible if for some set of nodes, a cut, the sum of supplies exceeds the capacity
// of the arcs that leave it: that much supply cannot leave. (By the max-flow min-cut theorem, every
// infeasible network whose supplies balance has one.)
#pragma once

#include <cstdint>
#include <span>

#include "network.hpp"

namespace flowsolver {

struct Certificate {
  std::int64_t arcs_checked = 0;
  std::int64_t nodes_checked = 0;
  std::int64_t capacity_violations = 0;   // arcs with flow outside [0, capacity]
  std::int64_t balance_violations = 0;    // nodes where outflow - inflow != supply
  std::int64_t slackness_violations = 0;  // arcs
  // cost claimed == primal == dual (a partial check leaves this true)
  bool costs_agree = false;

  bool ok() const {
    return capacity_violations == 0 && balance_violations == 0 && slackness_violations == 0 &&
           costs_agree;
  }
};

// `alive` is per arc, empty for all live. Spans have the network's lengths.
Certificate certify(const Network& network, std::span<const std::int64_t> flow,
                    std::span<const std::int64_t> potential, std::int64_t cost,
                    std::span<const std::uint8_t> alive = {});

struct CutCertificate {
  std::int64_t nodes = 0;          // in the cut
  std::int64_t unknown_nodes = 0;  // entries that are not live nodes, or that occurred before
  __int128 supply = 0;             // of its nodes
  __int128 capacity = 0;           // of the arcs that leave it

  bool ok() const { return unknown_nodes == 0 && supply > capacity; }
};

// `alive` is per node, empty for all live; arcs at removed nodes have no capacity.
CutCertificate certify_cut(const Network& network, std::span<const NodeId> cut,
                           std::span<const std::uint8_t> alive = {});

// One arc: adds to the counts of the certificate.
void check_arc(const Network& network, ArcId arc, std::int64_t flow, std::int64_t tail_potential,
               std::int64_t head_potential, Certificate& certificate);

// The number of misplaced tasks (Firmament, figure 10): how far a flow is from an optimal one,
// counted in tasks.
//
// Definitions. A task is a node of supply 1. A flow delivers it when its unit reaches a node with
// unmet demand. The last arc on the way, (tail, head), is its placement: (machine, sink), or
// (unscheduled aggregator, sink) for a task that waits. A task is misplaced if the flow does not
// deliver it, or delivers it to another placement than the optimum does. A task that waits in one
// flow and runs in the other is misplaced either way. The paper counts tasks that are preempted and
// tasks that are on another machine.
//
// Units that pass an aggregator are interchangeable: which of them belongs to which task depends on
// how the flows are decomposed into paths. The least count over all decompositions is hard to find.
// This finds one decomposition, the same on every machine. So the count is an upper bound, and 0
// when both flows are equal and deliver all tasks.
//
// Method.
// (1) Each task, in the order of ids, is sent to a demand over arcs on which both flows have units
//     left, as in one phase of Dinic's blocking flows. What both flows can deliver this way has
//     equal placements.
// (2) Each remaining task is walked through the rest of the optimum and through the rest of the
//     flow, by the first arcs with units left. Tasks whose placements agree are not misplaced
//     either; the others are.
//
// Complexity. Walks take units off the arcs they use, and nodes from which no walk can continue are
// not entered again: O(n + m + length of all walks), at most a handful of arcs each in scheduling
// graphs.
//
// Preconditions: both flows are as long as the network has arcs, and the optimum is feasible. The
// flow need not balance (an answer at a budget): units that start nowhere or end early deliver
// nothing. If nodes of supply > 1 are mixed with tasks, their units may be taken for each other.
//
// References. Gog et al., Firmament, OSDI 2016, section 5.1; Ahuja, Magnanti, Orlin, section 3.5
// (flow decomposition).
std::int64_t misplaced_tasks(const Network& network, std::span<const std::int64_t> flow,
                             std::span<const std::int64_t> optimum);

// How a unit from a source reaches a sink; kNone: it does not.
struct RoutedUnit {
  ArcId first = kNone;  // the arc by which it leaves its source
  ArcId last = kNone;   // the arc by which it reaches the sink
};

// Which of these sources, each named once for each unit, have a unit that a pseudoflow (>= 0,
// within capacities) takes to a sink, and how.
//
// Units that meet are interchangeable: one decomposition of the flow into paths is used, in which
// earlier sources go first. So no arc is used by more units than its flow, and no sink gets more
// than its demand. If only sinks have deficits and the flow has no cycle, all units that can be
// routed at once are; else there may be a few more. O(n + m), and the lengths of the paths.
std::vector<RoutedUnit> routed_units(const Network& network, std::span<const std::int64_t> flow,
                                     std::span<const NodeId> nodes);

}  // namespace flowsolver
