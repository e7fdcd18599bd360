// What methods do before and after solving: check ranges, take over the start as the state to
// return when stopped early, bring its prices into range, estimate prices where there is no start,
// and choose the width of the arithmetic.
// Where capacities are too large for sums: the level to which they are lowered.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "control.hpp"
#include "solve.hpp"
#include "network.hpp"

namespace flowsolver {

struct StartState {
  // status by check_ranges; the start's flow and prices, or zeros; the cost of that flow, saturated
  Solution solution;
  bool narrow;  // whether costs and capacities fit 32 bits
};
// If cancelled, only the status is meaningful.
StartState start_state(const Network& network, const Start& start, const Control& control);

// Runs a solve in the narrowest arithmetic that holds costs and capacities:
// solve.operator()<V>(solution) gets the start's state and turns it into the answer. Networks that
// are out of range or empty are answered here.
template <class Solve>
Solution solve_by_width(const Network& network, const Start& start, const Control& control,
                        Solve solve) {
  auto [solution, narrow] = start_state(network, start, control);
  if (solution.status != Status::kOptimal || network.num_nodes() == 0) return std::move(solution);
  try {
    if (narrow) {
      solve.template operator()<std::int32_t>(solution);
    } else {
      solve.template operator()<std::int64_t>(solution);
    }
  } catch (const Stopped& stopped) {
    solution.status = stopped.status;
  }
  return std::move(solution);
}

// make.operator()<V>() with the width of the network's costs and capacities: an engine, or null
// when cancelled meanwhile.
template <class Make>
std::unique_ptr<Engine> make_by_width(const Network& network, const Control& control, Make make) {
  try {
    return fits_narrow(network, control) ? make.template operator()<std::int32_t>()
                                         : make.template operator()<std::int64_t>();
  } catch (const Stopped&) {
    return nullptr;
  }
}
// The largest value for an engine of that width; differences of such values fit.
template <class Value>
constexpr std::uint64_t width_limit(int wide_bits = 56) {
  return sizeof(Value) == 4 ? kNarrowLimit : std::uint64_t{1} << wide_bits;
}

// Makes an array of zeros, with checks in between: the first touch of so much memory takes
// milliseconds. kCancelled: the array is incomplete.
Status fill_zeros(std::vector<std::int64_t>& filled, std::size_t size, const Control& control);

// The start's prices relative to the largest sink's; all zero if some differ from it by more than 2
// * kMaxPathCost, so that sums of a few prices and path costs fit. Precondition: there are nodes.
std::vector<std::int64_t> start_prices(const Network& network, const Start& start);

// The prices minus the root's.
std::vector<std::int64_t> relative_to_root(std::span<const std::int64_t> price, NodeId root);

// An estimate of the price of capacity (machine slots) in an oversubscribed network, used as a
// start.
//
// From zero prices, successive shortest paths on an oversubscribed network fill all capacity and
// then raise all prices a little for every further source: hours of work on a large cell. If all
// capacity were alike, the clearing price could be computed directly. A source is worth (cost of
// its cheapest path around the capacity) - (cost of its cheapest path through it), and with K units
// of capacity the price is the K-th largest of these. The estimate need not be exact: any price is
// a valid start.
struct PriceEstimate {
  std::int64_t price = 0;  // 0: there is capacity for all, or no estimate
  // nodes that start with this price: all with arcs in, except the root and bypasses
  std::vector<NodeId> nodes;
};

// A bypass is a node that only sources lead to, whose arcs to the root can carry at least half of
// the flow that may arrive (an unscheduled aggregator). O(n + m). Throws Stopped when cancelled.
PriceEstimate estimate_price(const Network& network, NodeId root, const Control& control);

// What every unit pays on its way from each node to the sink, as prices to start from: the length of
// a shortest path by costs alone. Empty if there is nothing to gain: several sinks, arcs out of a
// node (but a source, to which no arc leads) over which it is not equally far, negative costs,
// distances that are all 0, or long paths.
//
// If all that leads into machines costs the same more, the distances are that cost, and reduced
// costs are those without it. A method that raises prices step by step from 0 would take as many
// steps more. O(n + m). Throws Stopped when cancelled.
std::vector<std::int64_t> distances_to_sink(const Network& network,
                                            std::span<const std::uint8_t> alive, NodeId root,
                                            const Control& control);

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
