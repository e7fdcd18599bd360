// The start of a solve from scratch: places unit sources, one after another, each on a shortest
// residual path.
//
// Definitions. Signs are network.hpp's. A unit source has supply 1 and no arcs in; all other nodes
// are the core. A source that is placed is carried by the head of the one arc its unit is on
// (unit_source_graph.hpp); the state is a pseudoflow with 0 <= x <= capacity and prices p of the
// core.
//
// Invariant. rc >= 0 on every residual arc of the core and for every move of a placed source from
// its arc to another one:
//   cost(other) + p[its head] - cost(present) - p[present head] >= 0.
// At the start all sources are unplaced, core prices are those of the estimate (price_estimate.hpp)
// or 0, and every core arc with rc < 0 is full; its ends' imbalances tell.
//
// Method. The unit of a source goes to the nearest node with a deficit or with room to the root, by
// a search (path_search.hpp) over the core in which a carried source is a bundle of arcs: it is
// displaced, not visited. Most sources find room right where their cheapest arc leads.
//
// Deficits that are left (the estimated price was too high) are lessened by lowering all prices at
// once, as long as that helps (uniform_price_decrease.hpp), and then filled by searches against the
// arcs, from the root.
//
// Result. All flow, all prices (a source's is cost + p[head] of its arc). When no imbalance is
// left, this is the optimum. At a budget the same of what has been placed, so that what is left to
// do is less. Where imbalances of the core itself are left, it is a start with rc >= 0 from which
// incremental_ssp.hpp goes on. Where searches go far (network-aware cells: aggregators with 40,000
// arcs of different costs, and prices that move for thousands of machines at a time) it is given
// up. Networks most of whose arcs are not unit sources' are not begun.
//
// Termination and complexity. One search and one augmentation by 1 per source, O(n) searches of O(m
// + n log n) each, in practice a handful of nodes each. No path from a source: INFEASIBLE, as in
// incremental_ssp.hpp.
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), section 12.4: successive shortest paths
// for assignment, where rows need no labels. Departures: heads have capacities and lead on through
// a network; prices of rows are implied.
#pragma once

#include <cstdint>
#include <vector>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

struct InitialAssignment {
  // kOptimal: see `complete`; kInfeasible, kBudget: as far as it went; kCancelled
  Status status = Status::kOptimal;
  bool complete = false;  // no imbalance is left
  bool local = true;      // else it was given up, because searches went far
  __int128 cost = 0;      // of `flow`
  // per arc; empty, like the price: nothing was done, or it is of no use
  std::vector<std::int64_t> flow;
  std::vector<std::int64_t> price;  // per node
};

// Numbers are in range and supplies balance. `narrow`: as Ranges says.
InitialAssignment assign_unit_sources(const Network& network, NodeId root, bool narrow,
                                      const Control& control, Stats& stats);

}  // namespace flowsolver
