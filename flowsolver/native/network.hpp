// A minimum-cost flow problem as plain arrays, the solution, and the status of a solve.
//
// Problem. A directed graph of nodes 0..n-1 and arcs 0..m-1. Arc a goes from tail[a] to head[a],
// carries an integer flow 0 <= x[a] <= capacity[a] and costs cost[a] per unit (any sign). Node v
// has supply[v]: positive where flow starts, negative where it ends. A flow is feasible if, for
// every v, (flow out of v) - (flow into v) == supply[v]. Sought: a feasible flow of least total
// cost. Parallel arcs, self-loops, zero capacities and isolated nodes are allowed.
//
// Signs. A potential (price) p[v] is the cost of one more unit of supply at v; the reduced cost of
// an arc is
//   rc[a] = cost[a] - p[tail[a]] + p[head[a]].
// (OR-tools' potentials have the opposite sign.)
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace flowsolver {

using NodeId = std::uint32_t;
using ArcId = std::uint32_t;
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::int64_t kInfinity = std::numeric_limits<std::int64_t>::max();
// Ids and half-edge positions are 32 bits wide; the limits leave room for the spare places of
// growing nodes.
inline constexpr std::size_t kMaxNodes = std::size_t{1} << 30;
inline constexpr std::size_t kMaxArcs = std::size_t{1} << 29;

enum class Status : std::uint8_t {
  kOptimal,
  kInfeasible,  // supplies balance, but no flow can meet them: a cut proves it (certificate.hpp)
  kUnbalanced,  // supplies do not sum to zero
  // max|cost| * (n + 1), or the optimal cost itself, does not fit the arithmetic
  kBadCostRange,
  kBadCapacityRange,  // supplies and capacities around some node, or all supplies, sum beyond 2^61
  kCancelled,         // stopped by the caller; no answer
  // stopped at its budget of operations or time; the flow is the best one reached, and need not
  // balance
  kBudget,
  // a cycle of negative cost over arcs whose capacities are beyond range (race.hpp): no least cost
  kUnbounded,
};

struct Network {
  std::vector<NodeId> tail, head;
  std::vector<std::int64_t> capacity, cost;
  std::vector<std::int64_t> supply;

  std::size_t num_nodes() const { return supply.size(); }
  std::size_t num_arcs() const { return tail.size(); }
};

// Counted work of one solve: deterministic, so that it can stand in for time.
struct Stats {
  std::int64_t searches = 0;       // shortest-path searches
  std::int64_t settled = 0;        // nodes taken from the queue
  std::int64_t scanned = 0;        // half-edges scanned
  std::int64_t augmentations = 0;  // paths along which flow was sent
  std::int64_t phases = 0;         // searches from all unbalanced nodes at once
  std::int64_t repaired = 0;       // prices, arcs and assigned sources repaired after changes
  std::int64_t refined = 0;        // of those: prices lowered by price refine (cost scaling)
  std::int64_t rebuilds = 0;       // times the residual graph was rebuilt
  // single arcs along which flow was sent (cost scaling, relaxation)
  std::int64_t pushes = 0;
  std::int64_t relabels = 0;  // prices moved one at a time (cost scaling)
  // dual ascents: prices of a node, or of a set of nodes at once, raised (relaxation)
  std::int64_t ascents = 0;
  std::int64_t pivots = 0;  // exchanges of tree arcs (network simplex), cycles cancelled
  // times a method took a feasible network for infeasible: an error of the method, which was
  // detected, and the network was solved again (solve.hpp)
  std::int64_t disproved = 0;

  void add(const Stats& other);

  // One number to compare methods by: steps weighted by about how many scans of a half-edge they
  // take.
  std::int64_t operations() const {
    return scanned + 4 * (settled + augmentations + repaired) + 2 * pushes +
           8 * (relabels + ascents) + 32 * pivots;
  }
};

struct Solution {
  Status status = Status::kInfeasible;
  // cost, flow and potential are meaningful if optimal, and zero if infeasible
  std::int64_t cost = 0;
  std::vector<std::int64_t> flow;       // per arc
  std::vector<std::int64_t> potential;  // per node
  // when infeasible: the nodes whose supply cannot leave (certificate.hpp), ascending
  std::vector<NodeId> cut;
  Stats stats;
};

// |cost| * (n + 1) must not exceed this, so that no path length or difference of prices overflows.
inline constexpr std::int64_t kMaxPathCost = std::int64_t{1} << 59;
// Whether a price, relative to the largest sink's, is so far off that sums of a few prices and path
// costs need not fit.
constexpr bool is_far(__int128 price) {
  return price > 2 * kMaxPathCost || price < -2 * kMaxPathCost;
}
// Supplies and capacities around one node must not exceed this in sum.
inline constexpr std::int64_t kMaxNodeSum = std::int64_t{1} << 61;

// Costs and capacities up to this are kept in 32 bits.
inline constexpr std::int64_t kNarrowLimit = (std::int64_t{1} << 31) - 1;

class Control;

// All bits set in the magnitude of some value: at least the largest magnitude, less than twice it.
std::uint64_t magnitude_bits(std::span<const std::int64_t> values);
std::uint64_t largest_magnitude(std::span<const std::int64_t> values);

// The largest sink, or the node of least supply; the first of equal ones. kNone without (live)
// nodes. `alive` empty: all live.
NodeId largest_sink(const Network& network, std::span<const std::uint8_t> alive = {});

// Whether costs and capacities all fit 32 bits. Throws Stopped when cancelled.
bool fits_narrow(const Network& network, const Control& control);

// Exact cost of a flow given per arc.
__int128 flow_cost(const Network& network, std::span<const std::int64_t> flow);
// The same; or kCancelled.
Status add_up_cost(const Network& network, std::span<const std::int64_t> flow,
                   const Control& control, __int128& cost);

// False when the value does not fit, `out` then being the nearest that does.
bool as_int64(__int128 value, std::int64_t& out);

struct Ranges {
  // kOptimal when the numbers are within range and the supplies balance (says nothing about
  // feasibility)
  Status status;
  bool narrow;  // fits_narrow, where the status is kOptimal
};
// May be kCancelled as well.
Ranges check_ranges(const Network& network, const Control& control);
Status check_ranges(const Network& network);
// The same where some nodes and arcs are removed ones, whose numbers are all zero: paths pass no
// more than `live_nodes`.
Status check_live_ranges(const Network& network, std::size_t live_nodes);

}  // namespace flowsolver
