// Primal network simplex with block-search pivots and a start from any flow.
//
// Definitions and signs are network.hpp's: rc = cost - p[tail] + p[head]. The network gets one more
// node, the root, and an artificial arc between each node and the root, whose cost M exceeds that
// of every simple path of the network; the largest sink's costs nothing and carries anything: the
// sink balances when all others do. A basis is a spanning tree; arcs outside it are empty ("at the
// lower bound") or full ("upper"). Prices make rc = 0 on tree arcs.
//
// Invariant. The flow, artificial arcs included, is feasible, and the tree strongly feasible: every
// tree arc has residual capacity towards the root (spanning_tree.hpp).
//
// Method. Start: a quick feasible flow, or the given one, and a tree around it (simplex_start.hpp).
// Pivots: simplex_pivots.hpp; the tree is kept under changes to the network by simplex_engine.hpp.
// Arcs that are neither empty, full nor in the tree are pushed, one after another, round the cycle
// they close, the way that does not cost more, until they or an arc of the cycle reach a bound.
// Then pivots: an empty arc with rc < 0 or a full one with rc > 0 enters; flow goes round its cycle
// as far as it can; of the arcs that stop it the last one leaves, counted along the flow from the
// cycle's junction (its node nearest to the root). The entering arc is the most violated one of a
// block of arcs; blocks are taken in turn. Artificial arcs that leave the tree never come back.
//
// Termination. The leaving rule keeps the tree strongly feasible (Cunningham 1976). A pivot that
// moves flow lowers the integer cost. One that does not lets an arc on the junction's way down
// leave (on the way up there is room), so that the part that is cut off, seen from the root, is the
// one that the entering arc's tail end is in, and all its prices fall while the others stay: along
// such pivots the sum of prices falls, so no tree comes twice, and there are finitely many.
//
// Result. No entering arc: rc >= 0 on every residual arc, which certifies the flow if no artificial
// arc carries any. If one does the network is INFEASIBLE: a feasible flow would differ from this
// one by residual cycles, and one of those would lessen the flow of artificial arcs, at the root,
// and close over a simple path of the network: at a cost below zero.
//
// Range. M = max|cost| * n + 1 <= 2^59 + 1. A price differs from the root's by at most M and a
// simple path: 2^60. Reduced costs stay below 2^62. Artificial flow at v is what the network's arcs
// at v do not balance: at most kMaxNodeSum.
//
// Complexity. Exponential in the worst case; a pivot costs a block, the cycle, and the smaller part
// of the tree. In practice the pivots are a small multiple of n, but where tasks compete for
// machines at high prices (more tasks than slots) far more.
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), sections 11.5-11.8; Cunningham, A
// network simplex method (1976); Kiraly and Kovacs, Efficient implementations of minimum-cost flow
// algorithms (2012). The Firmament paper has no simplex. Departures: the start. The textbook's tree
// of artificial arcs takes two pivots and more per task to be rid of.
#pragma once

#include "method.hpp"

namespace flowsolver {

Solution solve_network_simplex(const Network& network, const Start& start, const Control& control);

}  // namespace flowsolver
