// The search for the cut that proves a network infeasible (certificate.hpp), in the residual graph
// of the pseudoflow that a method ended with when it found no way for an excess.
//
// Nearby. The nodes that can be reached over residual arcs from those whose excess could not be
// sent. No residual arc leaves them, so that their supply exceeds the capacity out by what their
// excesses sum up to, deficits counted negative. Where that is positive they are the cut; the work
// is that of the nodes reached, but for a byte a node. For engines that know their arcs node by
// node.
//
// In the whole network. Where nothing is found nearby, the pseudoflow is made feasible if it can be
// (feasible_flow.hpp): in the end either the nodes that excess reaches are a cut, or the network is
// feasible, and the method was wrong. O(n + m), and what it takes to send what the method did not.
//
// Stopped. Both look at the control. Begun anew and stopped at the same budget again and again they
// would not end, so they do not stop at a budget once the control grants steps (Control).
#pragma once

#include <span>
#include <vector>

#include "control.hpp"
#include "engine.hpp"
#include "network.hpp"

namespace flowsolver {

struct CutSearch {
  // kInfeasible: `cut` proves it. kOptimal: the network is feasible. kCancelled, kBudget: stopped
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
