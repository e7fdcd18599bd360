#include "start_state.hpp"

#include <algorithm>

namespace flowsolver {

Solution start_state(const Network& network, const Start& start) {
  Solution state;
  state.status = check_ranges(network);
  state.flow.assign(start.flow.begin(), start.flow.end());
  state.flow.resize(network.num_arcs(), 0);
  state.potential.assign(start.price.begin(), start.price.end());
  state.potential.resize(network.num_nodes(), 0);
  if (state.status != Status::kOptimal || start.flow.empty()) return state;
  as_int64(flow_cost(network, start.flow), state.cost);
  return state;
}

std::vector<std::int64_t> start_prices(const Network& network, const Start& start) {
  std::vector<std::int64_t> price(network.num_nodes(), 0);
  if (start.price.empty()) return price;
  const __int128 base = start.price[largest_sink(network)];
  for (NodeId v = 0; v < network.num_nodes(); ++v) {
    const __int128 relative = start.price[v] - base;
    if (relative > 2 * kMaxPathCost || relative < -2 * kMaxPathCost) {
      std::fill(price.begin(), price.end(), 0);
      return price;
    }
    price[v] = static_cast<std::int64_t>(relative);
  }
  return price;
}

}  // namespace flowsolver
