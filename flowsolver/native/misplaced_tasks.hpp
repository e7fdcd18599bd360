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
#pragma once

#include <cstdint>
#include <span>

#include "network.hpp"

namespace flowsolver {

std::int64_t misplaced_tasks(const Network& network, std::span<const std::int64_t> flow,
                             std::span<const std::int64_t> optimum);

}  // namespace flowsolver
