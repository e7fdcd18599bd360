#include "network.hpp"

#include <algorithm>

namespace flowsolver {

namespace {

using Wide = __int128;

Wide magnitude(std::int64_t value) { return value < 0 ? -static_cast<Wide>(value) : static_cast<Wide>(value); }

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

NodeId largest_sink(const Network& network, std::span<const std::uint8_t> alive) {
  NodeId root = kNone;
  for (NodeId v = 0; v < network.num_nodes(); ++v) {
    if (!alive.empty() && alive[v] == 0) continue;
    if (root == kNone || network.supply[v] < network.supply[root]) root = v;
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
  rebuilds += other.rebuilds;
  pushes += other.pushes;
  relabels += other.relabels;
  pivots += other.pivots;
}

bool fits_narrow(const Network& network) {
  static_assert((kNarrowLimit & (kNarrowLimit + 1)) == 0, "the bits decide");
  const std::uint64_t bits = magnitude_bits(network.cost) | magnitude_bits(network.capacity);
  return bits <= static_cast<std::uint64_t>(kNarrowLimit);
}

__int128 flow_cost(const Network& network, std::span<const std::int64_t> flow) {
  __int128 cost = 0;
  for (ArcId a = 0; a < flow.size(); ++a) cost += static_cast<__int128>(network.cost[a]) * flow[a];
  return cost;
}

bool as_int64(__int128 value, std::int64_t& out) {
  constexpr __int128 kMost = std::numeric_limits<std::int64_t>::max(), kLeast = std::numeric_limits<std::int64_t>::min();
  out = static_cast<std::int64_t>(std::clamp(value, kLeast, kMost));
  return value == out;
}

Status check_ranges(const Network& network) {
  // An upper bound, found in one quick pass, is nearly always enough; like the sum of capacities below.
  Wide largest_cost = magnitude_bits(network.cost);
  if (largest_cost * static_cast<Wide>(network.num_nodes() + 1) > kMaxPathCost) {
    largest_cost = 0;
    for (std::int64_t cost : network.cost) largest_cost = std::max(largest_cost, magnitude(cost));
  }
  if (largest_cost * static_cast<Wide>(network.num_nodes() + 1) > kMaxPathCost) return Status::kBadCostRange;
  Wide supplies = 0, balance = 0, capacities = 0;
  for (std::int64_t supply : network.supply) {
    supplies += magnitude(supply);
    balance += supply;
  }
  const Wide most = static_cast<Wide>(magnitude_bits(network.capacity)) * static_cast<Wide>(network.num_arcs());
  if (2 * most + supplies > kMaxNodeSum) {
    for (std::int64_t capacity : network.capacity) capacities += capacity;
  }
  if (supplies > kMaxNodeSum) return Status::kBadCapacityRange;
  // The sum over all arcs bounds the sum around every node and is nearly always enough.
  if (2 * capacities + supplies > kMaxNodeSum && !node_sums_fit(network)) return Status::kBadCapacityRange;
  return balance == 0 ? Status::kOptimal : Status::kUnbalanced;
}

}  // namespace flowsolver
