// Primal network simplex with block-search pivots and a start from any flow.
//
// Definitions and signs are network.hpp's: rc = cost - p[tail] + p[head]. The network gets one more
// node, the root, and an artificial arc between each node and the root, whose cost M exceeds that
// of every simple path of the network. The largest sink's artificial arc costs nothing and has
// unlimited capacity: the sink balances when all others do. A basis is a spanning tree; arcs
// outside it are empty ("at the lower bound") or full ("at the upper bound"). Prices make rc = 0 on
// tree arcs.
//
// Invariant. The flow, artificial arcs included, is feasible, and the tree strongly feasible: every
// tree arc has residual capacity towards the root (spanning_tree.hpp).
//
// Method. Start: a quickly found feasible flow, or the given one, and a tree for it
// (simplex_start.hpp). Pivots: simplex_pivots.hpp; simplex_engine.hpp keeps the tree under changes
// to the network. First, arcs that are neither empty, full nor in the tree are pushed, one after
// another, around the cycle they close, in the direction that does not cost more, until they or an
// arc of the cycle reach a bound. Then pivots: an empty arc with rc < 0 or a full one with rc > 0
// enters; flow is sent around its cycle as far as possible; of the blocking arcs, the last one
// leaves, counted along the flow from the cycle's apex (its node nearest to the root). The entering
// arc is the most violated one of a block of arcs; blocks are taken in turn. Artificial arcs that
// leave the tree never come back.
//
// Termination. The leaving rule keeps the tree strongly feasible (Cunningham 1976). A pivot that
// moves flow decreases the integer cost. In one that does not, an arc on the path down from the
// apex leaves (on the path up there is residual capacity). So the part that is cut off, seen from
// the root, is the one that contains the tail of the entering arc, and all its prices fall while
// the others stay. Along such pivots the sum of prices decreases, so no tree occurs twice, and
// there are finitely many.
//
// Result. No entering arc: rc >= 0 on every residual arc, which certifies the flow if no artificial
// arc carries any. If one does, the network is INFEASIBLE: a feasible flow would differ from this
// one by residual cycles, and one of those would decrease the flow of artificial arcs, at the root,
// and close over a simple path of the network: at a cost below zero.
//
// Range. M = max|cost| * n + 1 <= 2^59 + 1. A price differs from the root's by at most M and a
// simple path: 2^60. Reduced costs stay below 2^62. Artificial flow at v is the imbalance that the
// network's arcs leave at v: at most kMaxNodeSum.
//
// Complexity. Exponential in the worst case; a pivot costs a block, the cycle, and the smaller part
// of the tree. In practice there are a small multiple of n pivots, but far more where tasks compete
// for machines at high prices (more tasks than slots).
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), sections 11.5-11.8; Cunningham, A
// network simplex method (1976); Kiraly and Kovacs, Efficient implementations of minimum-cost flow
// algorithms (2012). The Firmament paper has no simplex. Departure: the start. The textbook's tree
// of artificial arcs takes two or more pivots per task to replace.
#pragma once

#include "method.hpp"

namespace flowsolver {

Solution solve_network_simplex(const Network& network, const Start& start, const Control& control);

}  // namespace flowsolver
