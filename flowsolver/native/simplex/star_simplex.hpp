// Primal network simplex from scratch on general networks, from a star of artificial arcs.
//
// Definitions are those of network_simplex.hpp; this file is responsible for the start and for
// pricing where no flow is given and sources are not tasks.
//
// Invariant. As there: the flow, artificial arcs included, is feasible, and the tree strongly
// feasible. No node is outer (spanning_tree.hpp).
//
// Method. Start: every node hangs on the root by an artificial arc. Those of nodes with demand lead
// from the root and cost M, more than any simple path; all others lead to the root, free of charge.
// So arcs between nodes without demand do not violate anything at first, and the tree grows
// backward from the sinks. First the cheapest arc into each sink enters. Then the most violated arc
// of a block of 2 sqrt(m) arcs, blocks in turn. A block holds arcs from all parts of the network:
// the list has every sqrt(m)-th arc of the network next to each other. Artificial arcs that leave
// the tree never come back.
//
// Termination as there.
//
// Result. If an artificial arc of a sink carries flow in the end, the network is infeasible: else a
// feasible flow would differ from this one by residual cycles, one of which would take a unit off
// that arc and off one to the root, and close over a simple path of the network, at a cost below
// zero. Without flow on them none flows to the root either, and the prices prove the optimum.
//
// Range as there. Memory: 17 bytes an arc (25 where costs need 64 bits) beside the answer, 60 a
// node.
//
// Complexity. Exponential in the worst case; in practice 2 to 3 n pivots. A tree of long paths
// makes each of them move the prices of many nodes, so nearly trees start from a flow instead
// (network_simplex.hpp).
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), section 11.5; Grigoriadis, An efficient
// implementation of the network simplex method (1986), for block pricing; Kiraly and Kovacs,
// Efficient implementations of minimum-cost flow algorithms (2012), section 4, for the star, the
// first arcs and the order of the list. Departure: blocks twice as long as theirs.
//
// A run stopped at a budget leaves the flow of the network's own arcs, which need not balance.
#pragma once

#include "solve.hpp"

namespace flowsolver {

Solution solve_star_simplex(const Network& network, const Control& control);

}  // namespace flowsolver
