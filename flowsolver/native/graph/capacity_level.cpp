#include "graph/capacity_level.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "cost_scaling/cost_scaling.hpp"

namespace flowsolver {

namespace {

using Wide = __int128;

// Counts and sums of capacities by their number of bits.
struct Census {
  std::array<Wide, 65> sum{};
  std::array<std::int64_t, 65> count{};
  Wide supplies = 0, positive = 0;  // sums: of magnitudes, and of positive supplies
  bool negative_costs = false;
};

Census census_of(const Network& network) {
  Census census;
  for (const std::int64_t capacity : network.capacity) {
    const int bits = std::bit_width(static_cast<std::uint64_t>(capacity));
    census.sum[static_cast<std::size_t>(bits)] += capacity;
    ++census.count[static_cast<std::size_t>(bits)];
  }
  for (const std::int64_t supply : network.supply) {
    census.supplies += supply < 0 ? -Wide{supply} : Wide{supply};
    census.positive += std::max<std::int64_t>(supply, 0);
  }
  for (std::size_t a = 0; a < network.num_arcs() && !census.negative_costs; ++a)
    census.negative_costs = network.cost[a] < 0 && network.capacity[a] > 0;
  return census;
}

// The level of `bits` bits, and the sum of the capacities up to it.
struct Level {
  Wide value, below;
};

Level level_of(const Census& census, int bits) {
  Level level{(Wide{1} << bits) - 1, 0};
  for (int b = 0; b <= bits; ++b) level.below += census.sum[static_cast<std::size_t>(b)];
  return level;
}

bool is_high_enough(const Census& census, const Level& level) {
  return level.value > census.positive + (census.negative_costs ? level.below : 0);
}

bool sums_fit(const Network& network, const Census& census, const Level& level, int bits) {
  std::int64_t above = 0;
  for (int b = bits + 1; b <= 64; ++b) above += census.count[static_cast<std::size_t>(b)];
  if (2 * (level.below + above * level.value) + census.supplies <= kMaxNodeSum) return true;
  std::vector<Wide> sum(network.num_nodes(), 0);
  for (NodeId v = 0; v < network.num_nodes(); ++v)
    sum[v] = network.supply[v] < 0 ? -Wide{network.supply[v]} : Wide{network.supply[v]};
  for (ArcId a = 0; a < network.num_arcs(); ++a) {
    const Wide capacity = std::min(Wide{network.capacity[a]}, level.value);
    sum[network.tail[a]] += capacity;
    sum[network.head[a]] += capacity;
  }
  return std::all_of(sum.begin(), sum.end(), [](Wide s) { return s <= kMaxNodeSum; });
}

}  // namespace

std::optional<std::int64_t> capacity_level(const Network& network) {
  const Census census = census_of(network);
  if (census.supplies > kMaxNodeSum) return std::nullopt;
  constexpr int kFewest = std::bit_width(static_cast<std::uint64_t>(kNarrowLimit)), kMost = 61;
  for (int step = 0; step <= kMost - kFewest; ++step) {
    // Without negative costs any level is right. With them, the fewer capacities are lowered the
    // better: a bounded one that is lowered counts as unbounded.
    const int bits = census.negative_costs ? kMost - step : kFewest + step;
    const Level level = level_of(census, bits);
    if (is_high_enough(census, level) && sums_fit(network, census, level, bits))
      return static_cast<std::int64_t>(level.value);
  }
  return std::nullopt;
}

bool is_right_level(const Network& network, std::int64_t level) {
  const Census census = census_of(network);
  if (census.supplies > kMaxNodeSum) return false;
  const int bits = std::bit_width(static_cast<std::uint64_t>(level));
  const Level sums = level_of(census, bits);
  return is_high_enough(census, sums) && sums_fit(network, census, sums, bits);
}

Network lowered(const Network& network, std::int64_t level) {
  Network result = network;
  for (std::int64_t& capacity : result.capacity) capacity = std::min(capacity, level);
  return result;
}

Status find_unbounded_cycle(const Network& network, std::int64_t level, const Control& control,
                            Stats& stats) {
  Network circulation;
  circulation.supply.assign(network.num_nodes(), 0);
  bool negative = false;
  for (ArcId a = 0; a < network.num_arcs(); ++a) {
    if (network.capacity[a] <= level) continue;
    circulation.tail.push_back(network.tail[a]);
    circulation.head.push_back(network.head[a]);
    circulation.capacity.push_back(1);
    circulation.cost.push_back(network.cost[a]);
    negative = negative || network.cost[a] < 0;
  }
  if (!negative) return Status::kOptimal;
  const Solution solution = solve_cost_scaling(circulation, {}, Control(control, stats));
  stats.add(solution.stats);
  // Zero flow is a circulation too, so a cost out of range is far below zero.
  if (solution.status == Status::kBadCostRange) return Status::kUnbounded;
  if (solution.status != Status::kOptimal) return solution.status;
  return solution.cost < 0 ? Status::kUnbounded : Status::kOptimal;
}

}  // namespace flowsolver
