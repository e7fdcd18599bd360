#include "network.hpp"

#include <algorithm>
#include <cstdlib>

#include "control.hpp"

namespace flowsolver {

namespace {

using Wide = __int128;

Wide magnitude(std::int64_t value) {
  return value < 0 ? -static_cast<Wide>(value) : static_cast<Wide>(value);
}

Status bits_with_checks(std::span<const std::int64_t> values, const Control& control,
                        std::uint64_t& bits) {
  return for_each_block(values.size(), control, {}, [&](std::size_t begin, std::size_t end) {
    bits |= magnitude_bits(values.subspan(begin, end - begin));
  });
}

bool narrow(std::uint64_t bits) {
  static_assert((kNarrowLimit & (kNarrowLimit + 1)) == 0, "the bits decide");
  return bits <= static_cast<std::uint64_t>(kNarrowLimit);
}

bool node_sums_fit(const Network& network) {
  std::vector<Wide> sum(network.num_nodes(), 0);
  for (NodeId v = 0; v < network.num_nodes(); ++v) sum[v] = magnitude(network.supply[v]);
  for (ArcId a = 0; a < network.num_arcs(); ++a) {
    sum[network.tail[a]] += network.capacity[a];
    sum[network.head[a]] += network.capacity[a];
  }
  return std::all_of(sum.begin(), sum.end(), [](Wide s) { return s <= kMaxNodeSum; });
}

}  // namespace

std::uint64_t magnitude_bits(std::span<const std::int64_t> values) {
  std::uint64_t bits = 0;
  for (std::int64_t value : values) {
    const auto sign = static_cast<std::uint64_t>(value >> 63);
    bits |= (static_cast<std::uint64_t>(value) ^ sign) - sign;
  }
  return bits;
}

std::uint64_t largest_magnitude(std::span<const std::int64_t> values) {
  std::uint64_t largest = 0;
  for (std::int64_t value : values)
    largest = std::max(largest, static_cast<std::uint64_t>(magnitude(value)));
  return largest;
}

NodeId largest_sink(const Network& network, std::span<const std::uint8_t> alive) {
  NodeId root = kNone;
  // the least value is found first in a pass without branches, then its position
  if (alive.empty() && !network.supply.empty()) {
    std::int64_t least = network.supply[0];
    for (std::int64_t supply : network.supply) least = std::min(least, supply);
    return static_cast<NodeId>(std::find(network.supply.begin(), network.supply.end(), least) -
                               network.supply.begin());
  }
  for (NodeId v = 0; v < network.num_nodes() && !alive.empty(); ++v) {
    if (alive[v] != 0 && (root == kNone || network.supply[v] < network.supply[root])) root = v;
  }
  return root;
}

void Stats::add(const Stats& other) {
  searches += other.searches;
  settled += other.settled;
  scanned += other.scanned;
  augmentations += other.augmentations;
  phases += other.phases;
  repaired += other.repaired;
  refined += other.refined;
  rebuilds += other.rebuilds;
  pushes += other.pushes;
  relabels += other.relabels;
  ascents += other.ascents;
  pivots += other.pivots;
  disproved += other.disproved;
}

bool fits_narrow(const Network& network, const Control& control) {
  std::uint64_t bits = 0;
  for (const auto* values : {&network.cost, &network.capacity}) {
    if (bits_with_checks(*values, control, bits) != Status::kOptimal)
      throw Stopped{Status::kCancelled};
  }
  return narrow(bits);
}

Status add_up_cost(const Network& network, std::span<const std::int64_t> flow,
                   const Control& control, __int128& cost) {
  cost = 0;
  return for_each_block(flow.size(), control, {}, [&](std::size_t begin, std::size_t end) {
    for (std::size_t a = begin; a < end; ++a)
      cost += static_cast<__int128>(network.cost[a]) * flow[a];
  });
}

__int128 flow_cost(const Network& network, std::span<const std::int64_t> flow) {
  __int128 cost = 0;
  add_up_cost(network, flow, Control(), cost);
  return cost;
}

bool as_int64(__int128 value, std::int64_t& out) {
  constexpr __int128 kMost = std::numeric_limits<std::int64_t>::max(),
                     kLeast = std::numeric_limits<std::int64_t>::min();
  out = static_cast<std::int64_t>(std::clamp(value, kLeast, kMost));
  return value == out;
}

namespace {

// Bounds found in one quick pass nearly always suffice, both for costs and for the sum of
// capacities.
Ranges ranges_of(const Network& network, std::size_t live_nodes, const Control& control) {
  std::uint64_t cost_bits = 0, capacity_bits = 0;
  Status status = bits_with_checks(network.cost, control, cost_bits);
  if (status == Status::kOptimal)
    status = bits_with_checks(network.capacity, control, capacity_bits);
  if (status != Status::kOptimal) return {status, false};
  const auto longest_path = [&](std::uint64_t cost) {
    return Wide{cost} * static_cast<Wide>(live_nodes + 1);
  };
  if (longest_path(cost_bits) > kMaxPathCost &&
      longest_path(largest_magnitude(network.cost)) > kMaxPathCost) {
    return {Status::kBadCostRange, false};
  }
  const std::uint64_t supply_bits = magnitude_bits(network.supply);
  Wide supplies = 0, balance = 0, capacities = 0;
  // sums that fit 64 bits
  if (Wide{supply_bits} * static_cast<Wide>(network.num_nodes()) <= kMaxNodeSum) {
    std::int64_t sum = 0, absolute = 0;
    for (std::int64_t supply : network.supply) {
      sum += supply;
      absolute += std::abs(supply);
    }
    balance = sum;
    supplies = absolute;
  } else {
    for (std::int64_t supply : network.supply) {
      supplies += magnitude(supply);
      balance += supply;
    }
  }
  const Wide most = Wide{capacity_bits} * static_cast<Wide>(network.num_arcs());
  if (2 * most + supplies > kMaxNodeSum) {
    for (std::int64_t capacity : network.capacity) capacities += capacity;
  }
  if (supplies > kMaxNodeSum) return {Status::kBadCapacityRange, false};
  // The sum over all arcs bounds the sum around every node and nearly always suffices.
  if (2 * capacities + supplies > kMaxNodeSum && !node_sums_fit(network))
    return {Status::kBadCapacityRange, false};
  return {balance == 0 ? Status::kOptimal : Status::kUnbalanced, narrow(cost_bits | capacity_bits)};
}

}  // namespace

Ranges check_ranges(const Network& network, const Control& control) {
  return ranges_of(network, network.num_nodes(), control);
}

Status check_ranges(const Network& network) { return check_ranges(network, Control()).status; }

Status check_live_ranges(const Network& network, std::size_t live_nodes) {
  return ranges_of(network, live_nodes, Control()).status;
}

}  // namespace flowsolver
