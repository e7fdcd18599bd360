// The search for a cut that proves a network infeasible (certificate.hpp), in the residual graph of
// the pseudoflow with which a method ended because it found no path for an excess.
//
// Local search. The nodes that can be reached over residual arcs from those whose excess could not
// be routed. No residual arc leaves this set, so its supply exceeds the capacity out of it by the
// sum of its excesses, deficits counted negative. If that is positive, the set is the cut. The work
// is that of the nodes reached, plus a byte per node. For engines that know the arcs at each node.
//
// Global search. If the local search finds no cut, the pseudoflow is made feasible as far as
// possible (feasible_flow.hpp). In the end either the nodes that excess reaches are a cut, or the
// network is feasible and the method was wrong. O(n + m), and the work of routing what the method
// did not.
//
// Budgets. Both searches check the control. If they were restarted and stopped at the same budget
// again and again they would never end, so they ignore budgets once the control guarantees steps
// (Control::guarantee_steps).
#pragma once

#include <span>
#include <vector>

#include "control.hpp"
#include "engine.hpp"
#include "network.hpp"

namespace flowsolver {

struct CutSearch {
  // kInfeasible: `cut` proves it. kOptimal: the network is feasible. kCancelled, kBudget: stopped.
  Status status = Status::kOptimal;
  std::vector<NodeId> cut;  // ascending
};

// `flow`: per arc, within capacities, or empty for none; it need not balance. Supplies balance.
CutSearch find_cut(const Network& network, std::span<const std::int64_t> flow,
                   const Control& control, Stats& stats);

// After a run of the engine that ended kInfeasible. `alive`: per arc.
CutSearch find_cut(const Network& network, std::span<const std::uint8_t> alive,
                   const Engine& engine, const Control& control, Stats& stats);

}  // namespace flowsolver
