#include "shortest_path/fallback.hpp"

#include <algorithm>
#include <vector>

#include "cost_scaling/cost_scaling.hpp"
#include "relaxation/relaxation.hpp"
#include "simplex/network_simplex.hpp"

namespace flowsolver {

namespace {

// How often searches may scan every half-edge before another algorithm takes over. Cost scaling
// scans each a hundred times or more, the algorithms for roads as few as thirty times.
constexpr std::int64_t kFallbackScans = 8, kRoadScans = 4;
constexpr std::size_t kRoadArcsPerNode = 4;
// Of a network with at least one node in so many that has a supply, network simplex solves roads.
constexpr std::size_t kNodesPerSupply = 8;

Solution scale_costs(const Network& network, const Start& start, const Control& control) {
  return solve_cost_scaling(network, start, control);
}

Solution relax(const Network& network, const Start& start, const Control& control) {
  return solve_relaxation(network, start, control);
}

bool is_scheduling_graph(const Network& network, const Control& control) {
  std::vector<std::uint8_t> has_arc_in(network.num_nodes(), 0);
  for_each_until_cancelled(network.num_arcs(), control,
                           [&](std::size_t a) { has_arc_in[network.head[a]] = 1; });
  std::size_t sources = 0, tasks = 0;
  for_each_until_cancelled(network.num_nodes(), control, [&](std::size_t v) {
    sources += network.supply[v] > 0;
    tasks += network.supply[v] == 1 && has_arc_in[v] == 0;
  });
  return 2 * tasks >= sources;
}

// Of arcs whose head has more arcs out than roads meet at a crossing, only the first few of those
// are looked at, so this is O(n + m).
bool mostly_two_way(const Network& network, const Control& control) {
  constexpr std::size_t kLook = 8;
  std::vector<std::size_t> begin(network.num_nodes() + 1, 0);
  for_each_until_cancelled(network.num_arcs(), control,
                           [&](std::size_t a) { ++begin[network.tail[a] + 1]; });
  for_each_until_cancelled(network.num_nodes(), control,
                           [&](std::size_t v) { begin[v + 1] += begin[v]; });
  std::vector<std::size_t> end(begin.begin(), begin.end() - 1);
  std::vector<NodeId> heads(network.num_arcs());
  for_each_until_cancelled(network.num_arcs(), control,
                           [&](std::size_t a) { heads[end[network.tail[a]]++] = network.head[a]; });
  std::size_t two_way = 0;
  for_each_until_cancelled(network.num_arcs(), control, [&](std::size_t a) {
    const NodeId from = network.head[a];
    const std::size_t last = std::min(end[from], begin[from] + kLook);
    for (std::size_t i = begin[from]; i < last; ++i) {
      if (heads[i] == network.tail[a]) {
        ++two_way;
        break;
      }
    }
  });
  return 2 * two_way >= network.num_arcs();
}

bool has_many_supplies(const Network& network) {
  const auto balanced = std::count(network.supply.begin(), network.supply.end(), 0);
  const std::size_t supplied = network.num_nodes() - static_cast<std::size_t>(balanced);
  return kNodesPerSupply * supplied >= network.num_nodes();
}

}  // namespace

Fallback choose_fallback(const Network& network, const Control& control) {
  const std::int64_t scan = 2 * static_cast<std::int64_t>(network.num_arcs());
  if (is_scheduling_graph(network, control)) return {scale_costs, kFallbackScans * scan};
  if (network.num_arcs() > kRoadArcsPerNode * network.num_nodes() ||
      !mostly_two_way(network, control)) {
    return {scale_costs, kFallbackScans * scan, true};
  }
  if (has_many_supplies(network)) return {solve_network_simplex, kRoadScans * scan, true};
  return {relax, kRoadScans * scan, true};
}

}  // namespace flowsolver
