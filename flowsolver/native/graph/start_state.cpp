#include "graph/start_state.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "cost_scaling/cost_scaling.hpp"

namespace flowsolver {

namespace {

// `values`, or zeros if empty.
Status fill(std::vector<std::int64_t>& filled, std::span<const std::int64_t> values,
            std::size_t size, const Control& control) {
  if (values.empty()) return fill_zeros(filled, size, control);
  filled.reserve(size);
  return for_each_block(size, control, {}, [&](std::size_t begin, std::size_t end) {
    const auto block = values.subspan(begin, end - begin);
    filled.insert(filled.end(), block.begin(), block.end());
  });
}

}  // namespace

Status fill_zeros(std::vector<std::int64_t>& filled, std::size_t size, const Control& control) {
  filled.clear();
  filled.reserve(size);
  return for_each_block(size, control, {},
                        [&](std::size_t, std::size_t end) { filled.resize(end, 0); });
}

StartState start_state(const Network& network, const Start& start, const Control& control) {
  Solution state;
  const Ranges ranges = check_ranges(network, control);
  state.status = ranges.status;
  if (state.status == Status::kCancelled) return {std::move(state), false};
  Status filled = fill(state.flow, start.flow, network.num_arcs(), control);
  if (filled == Status::kOptimal)
    filled = fill(state.potential, start.price, network.num_nodes(), control);
  if (state.status == Status::kOptimal && !start.flow.empty() && filled == Status::kOptimal) {
    __int128 cost = 0;
    filled = add_up_cost(network, start.flow, control, cost);
    as_int64(cost, state.cost);
  }
  if (filled != Status::kOptimal) state.status = filled;
  return {std::move(state), ranges.narrow};
}

std::vector<std::int64_t> start_prices(const Network& network, const Start& start) {
  std::vector<std::int64_t> price(network.num_nodes(), 0);
  if (start.price.empty()) return price;
  const __int128 base = start.price[largest_sink(network)];
  for (NodeId v = 0; v < network.num_nodes(); ++v) {
    const __int128 relative = start.price[v] - base;
    if (is_far(relative)) {
      std::fill(price.begin(), price.end(), 0);
      return price;
    }
    price[v] = static_cast<std::int64_t>(relative);
  }
  return price;
}

std::vector<std::int64_t> relative_to_root(std::span<const std::int64_t> price, NodeId root) {
  std::vector<std::int64_t> relative(price.begin(), price.end());
  for (std::int64_t& p : relative) p -= price[root];
  return relative;
}

namespace {

struct Worth {
  std::int64_t price;
  std::int64_t supply;
};

// The price above which there are sources for just `room` units: selection by weight, O(n).
std::int64_t clearing_price(std::vector<Worth>& worths, std::int64_t room,
                            CancellationChecker& checker) {
  auto first = worths.begin(), last = worths.end();
  while (first != last) {
    checker.step_until_cancelled({}, last - first);
    const auto middle = first + (last - first) / 2;
    std::nth_element(first, middle, last,
                     [](const Worth& a, const Worth& b) { return a.price > b.price; });
    std::int64_t dearer = 0;
    for (auto worth = first; worth != middle; ++worth) dearer += worth->supply;
    if (dearer >= room) {
      last = middle;
    } else if (dearer + middle->supply >= room) {
      return std::max<std::int64_t>(0, middle->price);
    } else {
      room -= dearer + middle->supply;
      first = middle + 1;
    }
  }
  return 0;
}

}  // namespace

PriceEstimate estimate_price(const Network& network, NodeId root, const Control& control) {
  const std::size_t n = network.num_nodes(), m = network.num_arcs();
  std::vector<std::int64_t> to_root(n, 0);
  std::vector<std::uint8_t> is_reached(n, 0), is_source(n, 0), from_others(n, 0);
  for_each_until_cancelled(m, control, [&](std::size_t a) {
    is_reached[network.head[a]] |= network.capacity[a] > 0;
    if (network.head[a] == root) to_root[network.tail[a]] += network.capacity[a];
  });
  std::int64_t supply = 0;
  for (NodeId v = 0; v < n; ++v) {
    is_source[v] = network.supply[v] > 0 && is_reached[v] == 0;
    if (is_source[v]) supply += network.supply[v];
  }
  // A node without supply that no arc reaches (a removed task) leads nowhere.
  for_each_until_cancelled(m, control, [&](std::size_t a) {
    from_others[network.head[a]] |= is_reached[network.tail[a]] & (network.capacity[a] > 0);
  });
  // Nearly always the capacity that arcs lead to suffices.
  std::int64_t shared_room = 0;
  for (NodeId v = 0; v < n; ++v) {
    if (!is_source[v] && from_others[v] != 0) shared_room += to_root[v];
  }
  if (supply <= shared_room) return {};
  std::vector<std::int64_t> in(n, 0);
  for_each_until_cancelled(m, control,
                           [&](std::size_t a) { in[network.head[a]] += network.capacity[a]; });
  const auto is_bypass = [&](NodeId v) {
    return to_root[v] >= in[v] - in[v] / 2 && in[v] > 0 && !from_others[v];
  };
  std::int64_t room = 0;
  for (NodeId v = 0; v < n; ++v) {
    if (!is_source[v] && !is_bypass(v)) room += to_root[v];
  }
  if (supply <= room) return {};

  std::vector<std::int64_t> bypass(n, kInfinity), inside(n, kInfinity);
  for_each_until_cancelled(m, control, [&](std::size_t a) {
    const NodeId u = network.tail[a], v = network.head[a];
    if (!is_source[u] || network.capacity[a] == 0) return;
    std::int64_t& best = v == root || is_bypass(v) ? bypass[u] : inside[u];
    best = std::min(best, network.cost[a]);
  });
  std::vector<Worth> worths;
  for (NodeId v = 0; v < n; ++v) {
    if (!is_source[v] || inside[v] == kInfinity) continue;
    if (bypass[v] == kInfinity) {
      room -= network.supply[v];  // uses capacity at any price
    } else {
      worths.push_back({bypass[v] - inside[v], network.supply[v]});
    }
  }
  PriceEstimate estimate;
  if (room <= 0) return estimate;
  CancellationChecker checker(control);
  estimate.price = clearing_price(worths, room, checker);
  if (estimate.price == 0) return estimate;
  for (NodeId v = 0; v < n; ++v) {
    if (is_reached[v] != 0 && v != root && !is_bypass(v)) estimate.nodes.push_back(v);
  }
  return estimate;
}

std::vector<std::int64_t> distances_to_sink(const Network& network,
                                            std::span<const std::uint8_t> alive, NodeId root,
                                            const Control& control) {
  constexpr int kLongestPath = 16;
  const std::size_t n = network.num_nodes(), m = network.num_arcs();
  for (NodeId v = 0; v < n; ++v) {
    if (network.supply[v] < 0 && v != root) return {};
  }
  const auto leads = [&](std::size_t a) {
    return network.capacity[a] > 0 && (alive.empty() || alive[a] != 0);
  };
  std::vector<std::uint8_t> is_reached(n, 0);
  for_each_until_cancelled(m, control,
                           [&](std::size_t a) { is_reached[network.head[a]] |= leads(a); });
  std::vector<ArcId> inner;  // arcs not out of sources
  bool negative = false;
  for_each_until_cancelled(m, control, [&](std::size_t a) {
    if (!leads(a) || is_reached[network.tail[a]] == 0 || network.tail[a] == root) return;
    negative |= network.cost[a] < 0;
    inner.push_back(static_cast<ArcId>(a));
  });
  if (negative) return {};
  std::vector<std::int64_t> distance(n, kInfinity);
  distance[root] = 0;
  bool changes = true;
  for (int length = 0; changes; ++length) {
    if (length == kLongestPath) return {};
    changes = false;
    for_each_until_cancelled(inner.size(), control, [&](std::size_t i) {
      const std::int64_t beyond = distance[network.head[inner[i]]];
      std::int64_t& here = distance[network.tail[inner[i]]];
      if (beyond == kInfinity || here <= beyond + network.cost[inner[i]]) return;
      here = beyond + network.cost[inner[i]];
      changes = true;
    });
  }
  std::int64_t farthest = 0;
  for (const std::int64_t each : distance) {
    if (each != kInfinity) farthest = std::max(farthest, each);
  }
  if (farthest == 0) return {};
  const auto over = [&](std::size_t a) { return distance[network.head[a]] + network.cost[a]; };
  for (ArcId a : inner) {
    if (distance[network.head[a]] == kInfinity || distance[network.tail[a]] != over(a)) return {};
  }
  for_each_until_cancelled(m, control, [&](std::size_t a) {
    if (!leads(a) || is_reached[network.tail[a]] != 0) return;
    if (distance[network.head[a]] == kInfinity) distance[network.head[a]] = farthest;
    distance[network.tail[a]] = std::min(distance[network.tail[a]], over(a));
  });
  for (std::int64_t& each : distance) {
    if (each == kInfinity) each = 0;  // no arc is at the node
  }
  return distance;
}

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
