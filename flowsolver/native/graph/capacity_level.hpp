// Capacities that the solver's sums cannot hold, lowered to a level that no answer depends on.
//
// Definitions. Supplies and capacities around a node must not exceed kMaxNodeSum in sum. A caller
// who means "unbounded" writes a number as large as it can be, and one such arc is already too
// much. Lowering the capacity of every arc above a level B to B changes nothing when
//   B > S + F,
// S the sum of the positive supplies, F the sum of the capacities up to B (0 where no arc has a
// negative cost: then no optimal flow needs a cycle).
//
// Why. An optimal flow is a sum of paths, S units in all, and of cycles. A cycle over an arc that
// was not lowered carries at most that arc's capacity, all those together F. So an arc with B units
// on it lies on a cycle of lowered arcs alone. If its reduced cost is negative, so is the cost of
// that cycle: over arcs without bounds the cost has no least value (kUnbounded). If it is not, the
// prices prove the optimum for the capacities as they were, too.
//
// Method. Levels are one less than a power of two, at least kNarrowLimit, so that narrow networks
// stay narrow. Of those that satisfy the inequality and keep the sums in range, the least is taken
// where no cost is negative, and else the highest: a capacity that could be used up on a cycle
// should only count as unbounded if there is no other way. One pass sorts capacities by their
// number of bits; sums around nodes are added up only where bounds on them do not decide.
//
// Reference. Ahuja, Magnanti, Orlin, Network Flows, section 9.2 (upper bounds on arcs without one),
// section 3.5 (flow decomposition). Departure: capacities that are not lowered are part of the
// bound, so that negative cycles over bounded arcs are filled as they should be.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

// The level for these capacities and supplies; none if even with it some sum is too large.
std::optional<std::int64_t> capacity_level(const Network& network);

// Whether lowering the capacities to this level changes no answer, and keeps all sums in range.
bool is_right_level(const Network& network, std::int64_t level);

// The network with every capacity above the level lowered to it.
Network lowered(const Network& network, std::int64_t level);

// Whether arcs of capacity above the level form a cycle of negative cost. kOptimal: no; kUnbounded:
// yes; kCancelled or kBudget: stopped. One solve on those arcs alone, each of capacity 1: there is
// a circulation of negative cost if and only if there is such a cycle.
Status find_unbounded_cycle(const Network& network, std::int64_t level, const Control& control,
                            Stats& stats);

}  // namespace flowsolver
