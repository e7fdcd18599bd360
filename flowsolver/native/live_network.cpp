#include "live_network.hpp"

#include <algorithm>

namespace flowsolver {

LiveNetwork live_network(const Network& all, std::span<const std::uint8_t> node_alive,
                         std::span<const std::uint8_t> arc_alive, const Control& control) {
  LiveNetwork live;
  std::vector<NodeId> number(all.num_nodes(), kNone);
  const auto nodes = static_cast<std::size_t>(
      std::count_if(node_alive.begin(), node_alive.end(), [](std::uint8_t a) { return a != 0; }));
  const auto arcs = static_cast<std::size_t>(
      std::count_if(arc_alive.begin(), arc_alive.end(), [](std::uint8_t a) { return a != 0; }));
  live.nodes.reserve(nodes);
  live.network.supply.reserve(nodes);
  build_each(all.num_nodes(), control, [&](std::size_t v) {
    if (node_alive[v] == 0) return;
    number[v] = static_cast<NodeId>(live.nodes.size());
    live.nodes.push_back(static_cast<NodeId>(v));
    live.network.supply.push_back(all.supply[v]);
  });
  live.arcs.reserve(arcs);
  live.network.tail.reserve(arcs);
  live.network.head.reserve(arcs);
  live.network.capacity.reserve(arcs);
  live.network.cost.reserve(arcs);
  build_each(all.num_arcs(), control, [&](std::size_t a) {
    if (arc_alive[a] == 0) return;
    live.arcs.push_back(static_cast<ArcId>(a));
    live.network.tail.push_back(number[all.tail[a]]);
    live.network.head.push_back(number[all.head[a]]);
    live.network.capacity.push_back(all.capacity[a]);
    live.network.cost.push_back(all.cost[a]);
  });
  return live;
}

}  // namespace flowsolver
