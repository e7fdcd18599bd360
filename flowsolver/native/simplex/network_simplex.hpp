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
// Method. Start: a quickly found feasible flow, or the given one, and a tree for it (SimplexStart
// in the source file). First, arcs that are neither empty, full nor in the tree are pushed, one
// after another, around the cycle they close, in the direction that does not cost more, until they
// or an arc of the cycle reach a bound. Then pivots: an empty arc with rc < 0 or a full one with rc
// > 0 enters; flow is sent around its cycle as far as possible; of the blocking arcs, the last one
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
// of artificial arcs takes two or more pivots per task to replace. Where sources are not tasks and
// the network is not nearly a tree (network_shape.hpp), a solve from scratch does start from that
// tree (star_simplex.hpp): with a quickly found flow it makes three to five times as many pivots.
#pragma once

#include <memory>

#include "solve.hpp"

namespace flowsolver {

Solution solve_network_simplex(const Network& network, const Start& start, const Control& control);

// The network simplex under changes: spanning tree, flow and prices persist from one resolve to the
// next.
//
// Definitions are those above and spanning_tree.hpp's. Between resolves the invariant holds except
// for what is recorded: nodes with an excess (or, if negative, a deficit) that no arc carries, and
// nodes whose tree arc has another cost than the prices imply.
//
// Changes.
// - Node: unused ids, beyond the network's nodes or of removed nodes, are leaves at the root with
//   an empty artificial arc. A new node takes such an id, a removed one becomes one.
// - Arc: a new arc is empty. One that is removed, or whose capacity falls below its flow, leaves an
//   excess and a deficit at its ends. If it was in the tree, or has no residual capacity towards
//   the root any more, the subtree below it is attached to the root by an empty artificial arc.
//   Arcs outside the tree whose capacity rises are between their bounds.
// - Cost: outside the tree nothing but the arc's own reduced cost changes; in the tree, the prices
//   of a subtree.
//
// A resolve.
// (1) Prices of subtrees below tree arcs of other costs are moved; if more than a few subtrees are
//     concerned, all prices are computed again, in one walk of the tree.
// (2) Each excess is sent up the tree towards the root as far as possible, each deficit is drawn
//     down from there: nearly always over the free arc of the sink, whose own balance is implied by
//     all others'. The rest goes over an artificial arc that enters the tree.
// (3) Arcs between their bounds are pushed to one, or into the tree.
// (4) Pivots: changed arcs are priced first, then all arcs, in one pass that reads nothing else,
//     until none enters.
//
// Whenever a subtree was attached to the root by an artificial arc, in a change or in (2), the
// pivot that rejoins it is made at once, by the best of the arcs at its nodes (of a few thousand,
// if there are more). So all other prices stay near what they were. If that were left to the
// pricing of blocks, the first arc found would rejoin it, at any price, and thousands of pivots
// would correct that.
//
// All steps keep the tree strongly feasible (the leaving rule of (2) is that of a pivot), and flow
// and prices a basis. So a stop loses nothing, and what a later resolve does in addition is a pivot
// or the pricing of a few thousand arcs.
//
// Termination as above. The artificial cost is fixed at more than that of any path in range.
//
// Complexity. A change O(1), in the tree O(depth); removing a node also costs its arcs. A resolve:
// its pivots, and one sequential pass over all arcs, the proof that none enters (prices of whole
// subtrees move, so arcs that may have to enter could be anywhere).
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), section 9.11 (sensitivity analysis) and
// section 11.5 on.
//
// Null when cancelled meanwhile. The first tree is that of the solve from scratch.
std::unique_ptr<Engine> make_simplex_engine(const EngineStart& start, const Control& control,
                                            Stats& stats);

}  // namespace flowsolver
