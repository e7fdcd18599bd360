#include "unit_source/unit_source_graph.hpp"

#include <algorithm>

namespace flowsolver {

template <class V>
SplitNetwork<V>::SplitNetwork(const Network& network, NodeId network_root, const Control& control) {
  const std::size_t n = network.num_nodes(), m = network.num_arcs();
  std::vector<std::uint8_t> is_core(n, 0);
  for_each_until_cancelled(
      m, control,
      [&, core = is_core.data(), to = network.head.data()](std::size_t a) { core[to[a]] = 1; });
  is_core[network_root] = 1;
  std::size_t nodes = 0;
  for_each_until_cancelled(n, control,
                           [&](std::size_t v) { nodes += is_core[v] |= network.supply[v] != 1; });
  const std::size_t sources = n - nodes;
  source_node.resize(sources);
  core_node.resize(nodes);
  core.supply.resize(nodes);
  constexpr std::uint32_t kIsSource = std::uint32_t{1} << 31;
  std::vector<std::uint32_t> number(n);  // of a core node; of a source, kIsSource + its number
  std::uint32_t next_source = 0, next_core = 0;
  for (NodeId v = 0; v < n; ++v) {
    if (is_core[v] == 0) {
      number[v] = kIsSource + next_source;
      source_node[next_source++] = v;
    } else {
      number[v] = next_core;
      core_node[next_core] = v;
      core.supply[next_core++] = network.supply[v];
    }
  }
  root = number[network_root];

  std::size_t core_arcs = 0;
  NodeId last = 0;
  bool in_order = true;  // whether the sources' arcs are sorted by tail
  for_each_until_cancelled(m, control, [&](std::size_t a) {
    const NodeId tail = network.tail[a];
    const bool of_core = is_core[tail] != 0;
    core_arcs += of_core;
    in_order &= of_core | (tail >= last);
    last = of_core ? last : tail;
  });
  begin.assign(sources + 1, 0);
  arcs.resize(m - core_arcs);
  arc_id.resize(m - core_arcs);
  core_arc.resize(core_arcs);
  core.tail.resize(core_arcs);
  core.head.resize(core_arcs);
  core.capacity.resize(core_arcs);
  core.cost.resize(core_arcs);
  reached.assign(nodes, 0);
  std::size_t at_core = 0;
  std::uint32_t at = 0;
  // `place(source)`: index of the next arc of the source.
  const auto distribute_arcs = [&](auto place) {
    for_each_until_cancelled(m, control, [&](std::size_t a) {
      const std::uint32_t tail = number[network.tail[a]], head = number[network.head[a]];
      const std::int64_t capacity = network.capacity[a];
      const auto cost = static_cast<V>(network.cost[a]);
      if ((tail & kIsSource) == 0) {
        core_arc[at_core] = static_cast<ArcId>(a);
        core.tail[at_core] = tail;
        core.head[at_core] = head;
        core.capacity[at_core] = static_cast<V>(capacity);
        core.cost[at_core++] = cost;
      } else if (capacity > 0) {
        const std::uint32_t to = place(tail & ~kIsSource);
        arcs[to] = {head, cost};
        arc_id[to] = static_cast<ArcId>(a);
        ++at;
      }
      reached[head] |= capacity > 0;
    });
  };
  if (in_order) {
    distribute_arcs([&](std::uint32_t source) {
      begin[source + 1] = at + 1;
      return at;
    });
    // sources without arcs
    for (std::size_t s = 0; s < sources; ++s) begin[s + 1] = std::max(begin[s], begin[s + 1]);
  } else {
    for_each_until_cancelled(m, control, [&](std::size_t a) {
      const std::uint32_t tail = number[network.tail[a]];
      if ((tail & kIsSource) != 0 && network.capacity[a] > 0) ++begin[(tail & ~kIsSource) + 1];
    });
    for (std::size_t s = 0; s < sources; ++s) begin[s + 1] += begin[s];
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    distribute_arcs([&](std::uint32_t source) { return next[source]++; });
  }
  arcs.resize(at);
  arc_id.resize(at);
}

template struct SplitNetwork<std::int32_t>;
template struct SplitNetwork<std::int64_t>;

}  // namespace flowsolver
