// The first stage of a solve from scratch: assigns unit sources one after another, each along a
// shortest residual path.
//
// Definitions. Signs are network.hpp's. A unit source has supply 1 and no arcs in; all other nodes
// are the core. An assigned source belongs to the head of the one arc that has its unit
// (SplitNetwork). The state is a pseudoflow with 0 <= x <= capacity and prices p of the core.
//
// Invariant. rc >= 0 on every residual arc of the core and for every change of an assigned source
// from its arc to another one:
//   cost(other) + p[its head] - cost(current) - p[current head] >= 0.
// At the start no source is assigned, core prices are those of the estimate (start_state.hpp) or
// 0, and every core arc with rc < 0 is full, with the imbalances that follow from it.
//
// Method. The unit of a source goes to the nearest node with a deficit or with residual capacity to
// the root, found by a search (path_search.hpp) over the core in which an assigned source is a set
// of arcs: the search reassigns it but does not visit it. For most sources the head of their
// cheapest arc has capacity.
//
// If deficits remain (the estimated price was too high), all prices are lowered together as long as
// that helps (UniformPriceDecrease). Then the deficits are filled by backward searches, from the
// root.
//
// Result. All flows and all prices (a source's is cost + p[head] of its arc). If no imbalance is
// left, this is the optimum. At a budget, the same for what was assigned, so that less is left to
// do. If imbalances of the core are left, it is a start with rc >= 0 from which incremental_ssp.hpp
// continues. Where searches go far (network-aware cells: aggregators with 40,000 arcs of different
// costs, and prices that change for thousands of machines at a time), the assignment is given up.
// It is not attempted in networks most of whose arcs do not belong to unit sources.
//
// Termination and complexity. One search and one augmentation by 1 per source: O(n) searches of O(m
// + n log n) each, in practice a handful of nodes each. No path from a source: INFEASIBLE, as in
// incremental_ssp.hpp.
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), section 12.4: successive shortest paths
// for the assignment problem, where rows need no labels. Departures: heads have capacities and lead
// on through a network; prices of rows are implied.
#pragma once

#include <cstdint>
#include <vector>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

struct InitialAssignment {
  // kOptimal: see `complete`. kInfeasible, kBudget: the state reached. kCancelled
  Status status = Status::kOptimal;
  bool complete = false;  // whether no imbalance is left
  bool local = true;      // false: given up, because searches went far
  __int128 cost = 0;      // of `flow`
  // per arc; empty, like the price, if nothing was done or the result is of no use
  std::vector<std::int64_t> flow;
  std::vector<std::int64_t> price;  // per node
};

// Precondition: numbers are in range and supplies balance. `narrow`: see Ranges (network.hpp).
InitialAssignment assign_unit_sources(const Network& network, NodeId root, bool narrow,
                                      const Control& control, Stats& stats);

}  // namespace flowsolver
