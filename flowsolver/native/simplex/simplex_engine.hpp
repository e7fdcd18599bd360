// The network simplex under changes: spanning tree, flow and prices persist from one resolve to the
// next.
//
// Definitions are network_simplex.hpp's and spanning_tree.hpp's. Between resolves the invariant
// holds except for what is recorded: nodes with an excess (or, if negative, a deficit) that no arc
// carries, and nodes whose tree arc has another cost than the prices imply.
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
// Termination as in network_simplex.hpp. The artificial cost is fixed at more than that of any path
// in range.
//
// Complexity. A change O(1), in the tree O(depth); removing a node also costs its arcs. A resolve:
// its pivots, and one sequential pass over all arcs, the proof that none enters (prices of whole
// subtrees move, so arcs that may have to enter could be anywhere).
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), section 9.11 (sensitivity analysis) and
// section 11.5 on.
#pragma once

#include <memory>

#include "engine.hpp"

namespace flowsolver {

// Null when cancelled meanwhile. The first tree is that of network_simplex.hpp.
std::unique_ptr<Engine> make_simplex_engine(const EngineStart& start, const Control& control,
                                            Stats& stats);

}  // namespace flowsolver
