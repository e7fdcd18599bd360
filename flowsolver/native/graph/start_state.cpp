#include "graph/start_state.hpp"

#include <algorithm>

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
    if (relative > 2 * kMaxPathCost || relative < -2 * kMaxPathCost) {
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

}  // namespace flowsolver
