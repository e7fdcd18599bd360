#include "graph/arc_graph.hpp"

#include <algorithm>

namespace flowsolver {

template <class V>
Status ArcGraph<V>::build(const Network& network, const Start& start, const Control& control,
                          Stats& stats) {
  const std::size_t n = network.num_nodes(), m = network.num_arcs();
  constexpr std::size_t kPage = LargeAllocator<HalfEdge>::kHugePage / sizeof(HalfEdge);
  first.assign(n + 1, 0);
  excess.assign(network.supply.begin(), network.supply.end());
  position.resize(m);
  full_loops.clear();
  const auto stopped = [&](Status status) {
    first.assign(n + 1, 0);
    return status;
  };
  // Visits the arcs in order, in blocks whose loop holds nothing but `visit`.
  const auto each_arc = [&](auto&& visit) {
    for (ArcId begin = 0; begin < m;) {
      const ArcId end = static_cast<ArcId>(
          std::min<std::size_t>(m, begin + std::size_t{Control::kCheckInterval}));
      for (ArcId a = begin; a < end; ++a) visit(a);
      begin = end;
      if (const Status status = control.check(stats); status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  };
  const Status counted = each_arc([&](ArcId a) {
    position[a] = kNone;
    if (network.capacity[a] == 0) return;
    if (network.tail[a] == network.head[a]) {
      if (network.cost[a] < 0) full_loops.emplace_back(a, network.capacity[a]);
      return;
    }
    ++first[network.tail[a] + 1];
    ++first[network.head[a] + 1];
  });
  if (counted != Status::kOptimal) return stopped(counted);
  for (std::size_t v = 0; v < n; ++v) first[v + 1] += first[v];
  edges.resize(first[n]);
  forward.resize(first[n]);
  // Heads are scattered: even the first arcs would touch nearly all pages.
  for (std::size_t e = 0; e < edges.size(); e += kPage) {
    edges[e] = {};
    if (const Status status = control.check(stats); status != Status::kOptimal)
      return stopped(status);
  }
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  const Status filled = each_arc([&](ArcId a) {
    ++stats.scanned;
    const NodeId tail = network.tail[a], head = network.head[a];
    if (network.capacity[a] == 0 || tail == head) return;
    const std::uint32_t there = next[tail]++, back = next[head]++;
    const std::int64_t flow = start.flow_of(a);
    edges[there] = {head, back, static_cast<V>(network.cost[a]),
                    static_cast<V>(network.capacity[a] - flow)};
    edges[back] = {tail, there, static_cast<V>(-network.cost[a]), static_cast<V>(flow)};
    forward[there] = 1;
    forward[back] = 0;
    position[a] = there;
    if (flow == 0) return;
    excess[tail] -= flow;
    excess[head] += flow;
  });
  if (filled != Status::kOptimal) return stopped(filled);
  ++stats.rebuilds;
  return Status::kOptimal;
}

template <class V>
void ArcGraph<V>::write_flow(const Network& network, const Control& control,
                             Solution& solution) const {
  if (solution.status == Status::kCancelled) return;
  __int128 cost = 0;
  solution.flow.resize(position.size());
  const Status written = for_each_block(
      position.size(), control, solution.stats, [&](std::size_t begin, std::size_t end) {
        for (std::size_t a = begin; a < end; ++a) {
          const std::int64_t flow =
              position[a] == kNone ? 0 : network.capacity[a] - edges[position[a]].residual;
          solution.flow[a] = flow;
          if (flow != 0) cost += static_cast<__int128>(network.cost[a]) * flow;
        }
      });
  if (written != Status::kOptimal) {
    solution.status = written;
    return;
  }
  for (const auto& [arc, amount] : full_loops) {
    solution.flow[arc] = amount;
    cost += static_cast<__int128>(network.cost[arc]) * amount;
  }
  if (!as_int64(cost, solution.cost) && solution.status == Status::kOptimal)
    solution.status = Status::kBadCostRange;
}

template class ArcGraph<std::int32_t>;
template class ArcGraph<std::int64_t>;

}  // namespace flowsolver
