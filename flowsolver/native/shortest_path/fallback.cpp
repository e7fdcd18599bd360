#include "shortest_path/fallback.hpp"

#include <algorithm>

#include "cost_scaling/cost_scaling.hpp"
#include "graph/network_shape.hpp"
#include "relaxation/relaxation.hpp"
#include "simplex/network_simplex.hpp"

namespace flowsolver {

namespace {

// How often searches may scan every half-edge before another algorithm takes over. Cost scaling
// scans each a hundred times or more, the algorithms for other networks as few as thirty times.
constexpr std::int64_t kSchedulingScans = 8, kGeneralScans = 4;
constexpr std::size_t kRoadArcsPerNode = 4;
// Few supplies: fewer than one node in so many has one.
constexpr std::size_t kNodesPerSupply = 100;
// Cost scaling solves other networks from so many nodes on, and from fewer if they have few
// supplies.
constexpr std::size_t kManyNodes = 65'536, kManyNodesFewSupplies = 24'576;
constexpr std::size_t kFewArcsPerNode = 6, kManyArcsPerNode = 100;
// Searches are tried on any network whose supplies may need no more paths than this.
constexpr __int128 kFewPaths = 4;

Solution scale_costs(const Network& network, const Start& start, const Control& control) {
  return solve_cost_scaling(network, start, control);
}

Solution relax(const Network& network, const Start& start, const Control& control) {
  return solve_relaxation(network, start, control);
}

bool has_few_supplies(const Network& network) {
  const auto balanced = std::count(network.supply.begin(), network.supply.end(), 0);
  const std::size_t supplied = network.num_nodes() - static_cast<std::size_t>(balanced);
  return kNodesPerSupply * supplied < network.num_nodes();
}

// One path per source, and more where supplies exceed the mean capacity.
bool needs_few_paths(const Network& network, const Control& control) {
  __int128 capacity = 0, supply = 0, sources = 0;
  for_each_until_cancelled(network.num_arcs(), control,
                           [&](std::size_t a) { capacity += network.capacity[a]; });
  for_each_until_cancelled(network.num_nodes(), control, [&](std::size_t v) {
    if (network.supply[v] <= 0) return;
    ++sources;
    supply += network.supply[v];
  });
  const auto arcs = static_cast<__int128>(network.num_arcs());
  return sources <= kFewPaths && supply * arcs <= (kFewPaths - sources) * capacity;
}

}  // namespace

Fallback choose_fallback(const Network& network, const Control& control) {
  const std::int64_t scan = 2 * static_cast<std::int64_t>(network.num_arcs());
  if (is_scheduling_graph(network, control)) return {scale_costs, kSchedulingScans * scan};
  const std::size_t nodes = network.num_nodes(), arcs = network.num_arcs();
  if (is_nearly_tree(network, control)) return {solve_network_simplex, kGeneralScans * scan, true};
  const bool is_road =
      arcs <= kRoadArcsPerNode * nodes && 2 * count_two_way(network, control) >= arcs;
  const bool few_supplies = has_few_supplies(network);
  Method method = solve_network_simplex;
  if (is_road && few_supplies) {
    method = relax;
  } else if (arcs > kFewArcsPerNode * nodes && arcs <= kManyArcsPerNode * nodes &&
             nodes >= (few_supplies ? kManyNodesFewSupplies : kManyNodes)) {
    method = scale_costs;
  }
  const bool may_be_near = few_supplies && (is_road || needs_few_paths(network, control));
  return {method, may_be_near ? kGeneralScans * scan : 0, true};
}

}  // namespace flowsolver
