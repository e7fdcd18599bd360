// How far a flow is from an optimum, counted in tasks: Firmament's "misplaced" ones, for its
// Figure 10.
//
// Definitions. A task is a node of supply 1. A flow delivers it when its unit gets to a node with
// demand left; the last arc there, as (tail, head), is its place: (machine, sink), or (unscheduled
// aggregator, sink) of a task that waits. A task is misplaced when the flow does not deliver it, or
// delivers it to another place than the optimum does. A task that waits in one and runs in the
// other is misplaced either way; the paper counts the one that is preempted and the one that is on
// another machine.
//
// Units that pass an aggregator are alike: which of them came from which task is a matter of how
// one takes the flows apart. What is counted depends on that, and the least count over all ways is
// hard to find; this finds one way, the same on every machine, so that the count is an upper bound,
// and 0 when both flows are equal and deliver all.
//
// Method. (1) Along arcs on which both flows have units left, every task in the order of ids is
// sent to a demand, as in one phase of Dinic's blocking flows; what both can deliver this way is
// placed alike. (2) Each task left is walked through what is left of the optimum, and through what
// is left of the flow, by the first arcs with units left; those whose places agree count as placed
// alike, too. The rest is misplaced.
//
// Complexity. Walks take units off the arcs they use, and nodes from which no walk can go on are
// not entered again: O(n + m + length of all walks), at most a handful of arcs each in scheduling
// graphs.
//
// Preconditions: both flows are as long as the network has arcs, the optimum is feasible. The flow
// need not balance (an answer at a budget): units that start nowhere or end early deliver nothing.
// Where units of supply > 1 mix with the tasks', either may be taken for the other.
//
// Reference. Gog et al., Firmament, OSDI 2016, section 5.1. Ahuja, Magnanti, Orlin, section 3.5
// (flow decomposition).
#pragma once

#include <cstdint>
#include <span>

#include "network.hpp"

namespace flowsolver {

std::int64_t misplaced_tasks(const Network& network, std::span<const std::int64_t> flow,
                             std::span<const std::int64_t> optimum);

}  // namespace flowsolver
