#include "graph/network_shape.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace flowsolver {

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

std::size_t count_two_way(const Network& network, const Control& control) {
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
  std::vector<std::uint8_t> has_back(network.num_arcs(), 0);
  for_each_until_cancelled(network.num_nodes(), control, [&](std::size_t v) {
    for (std::size_t i = begin[v]; i < begin[v + 1]; ++i) {
      const NodeId head = heads[i];
      const std::size_t last = std::min(begin[head + 1], begin[head] + kLook);
      for (std::size_t back = begin[head]; back < last; ++back) {
        if (heads[back] != v) continue;
        has_back[i] = has_back[back] = 1;
        break;
      }
    }
  });
  return static_cast<std::size_t>(std::count(has_back.begin(), has_back.end(), 1));
}

bool is_nearly_tree(const Network& network, const Control& control) {
  constexpr std::size_t kMoreThanTree = 8;  // one pair more for so many nodes
  const std::size_t most = network.num_nodes() + network.num_nodes() / kMoreThanTree;
  if (network.num_arcs() <= most) return true;
  return network.num_arcs() <= 2 * most &&
         network.num_arcs() - count_two_way(network, control) / 2 <= most;
}

}  // namespace flowsolver
