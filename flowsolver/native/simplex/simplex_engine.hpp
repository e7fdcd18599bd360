// The network simplex that is kept under changes: spanning tree, flow and prices stay from one
// resolve to the next.
//
// Definitions are network_simplex.hpp's and spanning_tree.hpp's. Between resolves the invariant
// holds but for what is noted: nodes with an excess (or, below zero, a deficit) that no arc
// carries; nodes whose tree arc has another cost than the prices say.
//
// Changes.
//   Node: ids beyond the network's nodes, and those of nodes that have gone, are leaves that hang
//   from the root by an empty
//     artificial arc. A node that comes takes such a one, one that goes becomes one.
//   Arc: a new one is empty. One that goes, or whose capacity falls below its flow, leaves its ends
//   an excess and a deficit.
//     Where it was in the tree, or has no residual capacity towards the root any more, what hung on
//     it hangs from the root, by an empty artificial arc. Arcs outside the tree whose capacity
//     rises are between their bounds.
//   Cost: outside the tree nothing but the arc's own reduced cost changes; in the tree, the prices
//   of a subtree.
//
// A resolve. (1) Prices of subtrees below tree arcs of other costs move; where that is more than a
// few nodes with subtrees, all are computed anew, in one walk of the tree. (2) Each excess goes up
// the tree towards the root as far as it can, each deficit is met down from there: nearly always
// over the free arc of the sink, whose own balance follows from all others'. What does not fit goes
// over an artificial arc that enters the tree for it. (3) Arcs between their bounds are pushed to
// one, or into the tree. Whenever a part of the tree has come to hang from the root by an
// artificial arc, in a change or in (2), the pivot that joins it to the rest again is made at once,
// by the best of the arcs at its nodes (of a few thousand, where they are more): of that, all other
// prices stay near what they were. Left to the pricing of blocks, whatever arc came first would
// join it, at any price, and thousands of pivots would put that right. (4) Pivots: changed arcs are
// priced first, then all arcs, in one pass without looking at anything else, until none enters. All
// of these keep the tree strongly feasible (the leaving rule of (2) is that of a pivot), and flow
// and prices a basis: a stop on the way loses nothing, and what a later resolve does is a pivot or
// a few thousand arcs' pricing more.
//
// Termination as in network_simplex.hpp. The artificial cost is fixed at more than any path's
// within range.
//
// Complexity. A change O(1), in the tree O(depth); removing a node its arcs, too. A resolve: its
// pivots, and one sequential pass over all arcs: the proof that none enters (prices of whole
// subtrees move, so that arcs that may have to enter could be anywhere).
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), section 9.11 (sensitivity analysis) and
// section 11.5 on.
#pragma once

#include <memory>

#include "engine.hpp"

namespace flowsolver {

// Null when cancelled meanwhile. Begins with the tree that network_simplex.hpp begins with.
std::unique_ptr<Engine> make_simplex_engine(const EngineStart& start, const Control& control,
                                            Stats& stats);

}  // namespace flowsolver
