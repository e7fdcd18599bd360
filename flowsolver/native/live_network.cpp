#include "live_network.hpp"

#include <algorithm>

namespace flowsolver {

LiveNetwork live_network(const Network& all, std::span<const std::uint8_t> node_alive,
                         std::span<const std::uint8_t> arc_alive, const Control& control) {
  LiveNetwork live;
  std::vector<NodeId> number(all.num_nodes());
  const auto is_alive = [](std::uint8_t alive) { return alive != 0; };
  live.nodes.resize(
      static_cast<std::size_t>(std::count_if(node_alive.begin(), node_alive.end(), is_alive)));
  live.arcs.resize(
      static_cast<std::size_t>(std::count_if(arc_alive.begin(), arc_alive.end(), is_alive)));
  Network& network = live.network;
  network.supply.resize(live.nodes.size());
  network.tail.resize(live.arcs.size());
  network.head.resize(live.arcs.size());
  network.capacity.resize(live.arcs.size());
  network.cost.resize(live.arcs.size());
  NodeId nodes = 0;
  for_each_until_cancelled(all.num_nodes(), control, [&](std::size_t v) {
    if (node_alive[v] == 0) return;
    number[v] = nodes;
    live.nodes[nodes] = static_cast<NodeId>(v);
    network.supply[nodes++] = all.supply[v];
  });
  ArcId arcs = 0;
  for_each_until_cancelled(all.num_arcs(), control, [&](std::size_t a) {
    if (arc_alive[a] == 0) return;
    live.arcs[arcs] = static_cast<ArcId>(a);
    network.tail[arcs] = number[all.tail[a]];
    network.head[arcs] = number[all.head[a]];
    network.capacity[arcs] = all.capacity[a];
    network.cost[arcs++] = all.cost[a];
  });
  return live;
}

}  // namespace flowsolver
