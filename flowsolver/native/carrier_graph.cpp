#include "carrier_graph.hpp"

namespace flowsolver {

template <class V>
SplitNetwork<V>::SplitNetwork(const Network& network, NodeId network_root, const Control& control) {
  const std::size_t n = network.num_nodes(), m = network.num_arcs();
  std::vector<std::uint8_t> has_in(n, 0);
  build_each(m, control, [&](std::size_t a) { has_in[network.head[a]] = 1; });
  constexpr std::uint32_t kIsSource = std::uint32_t{1} << 31;
  std::vector<std::uint32_t> number(n);  // of a core node, or kIsSource + the number of a source
  for (NodeId v = 0; v < n; ++v) {
    if (network.supply[v] == 1 && has_in[v] == 0 && v != network_root) {
      number[v] = kIsSource + static_cast<std::uint32_t>(source_node.size());
      source_node.push_back(v);
    } else {
      number[v] = static_cast<std::uint32_t>(core_node.size());
      core_node.push_back(v);
      core.supply.push_back(network.supply[v]);
    }
  }
  root = number[network_root];

  begin.assign(source_node.size() + 1, 0);
  std::uint32_t last = 0;
  bool in_order = true;
  build_each(m, control, [&](std::size_t a) {
    const std::uint32_t tail = number[network.tail[a]];
    if ((tail & kIsSource) == 0) {
      core_arc.push_back(static_cast<ArcId>(a));
    } else if (network.capacity[a] > 0) {
      in_order &= tail >= last;
      last = tail;
      ++begin[(tail & ~kIsSource) + 1];
    }
  });
  for (std::size_t s = 0; s < source_node.size(); ++s) begin[s + 1] += begin[s];
  arcs.resize(begin.back());
  arc_id.resize(begin.back());
  std::vector<std::uint32_t> next;  // where a source's next arc goes
  if (!in_order) next.assign(begin.begin(), begin.end() - 1);
  std::uint32_t at = 0;
  build_each(m, control, [&](std::size_t a) {
    const std::uint32_t tail = number[network.tail[a]];
    if ((tail & kIsSource) == 0 || network.capacity[a] == 0) return;
    const std::uint32_t place = in_order ? at++ : next[tail & ~kIsSource]++;
    arcs[place] = {number[network.head[a]], static_cast<V>(network.cost[a])};
    arc_id[place] = static_cast<ArcId>(a);
  });

  core.tail.resize(core_arc.size());
  core.head.resize(core_arc.size());
  core.capacity.resize(core_arc.size());
  core.cost.resize(core_arc.size());
  build_each(core_arc.size(), control, [&](std::size_t k) {
    const ArcId a = core_arc[k];
    core.tail[k] = number[network.tail[a]];
    core.head[k] = number[network.head[a]];
    core.capacity[k] = network.capacity[a];
    core.cost[k] = network.cost[a];
  });
}

template struct SplitNetwork<std::int32_t>;
template struct SplitNetwork<std::int64_t>;

}  // namespace flowsolver
