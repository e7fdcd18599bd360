// Price refine: prices in whole cost units that prove a flow optimal, if it is.
//
// Definitions. rc = cost - p[tail] + p[head] on residual half-edges (arc_graph.hpp). A flow or
// pseudoflow is optimal for its own imbalances if there are prices with rc >= 0 on every residual
// half-edge, that is, if its residual graph has no negative cycle.
//
// Method. Label correcting: starting from the given prices, p[u] is lowered to the minimum over
// residual u -> v of cost + p[v], until no price changes. Nodes are taken in rounds, first in first
// out (Bellman and Ford), so that the work of a round is that of the nodes lowered in the round
// before. Prices that are nearly right are refined in about one pass over the arcs. The flow is not
// changed.
//
// Termination. Without a negative cycle, each price is determined by a path of at most n - 1 arcs;
// a round after the n-th proves a negative cycle. `max_scans` ends the method earlier, without a
// verdict.
//
// Range. The given prices are within 2^61, so the results stay above -(2^61 + kMaxPathCost +
// |cost|).
//
// References. Goldberg, An efficient implementation of a scaling minimum-cost flow algorithm, J.
// Algorithms 22 (1997), section 5; Bunnagel, Korte, Vygen, Efficient implementation of the
// Goldberg-Tarjan minimum-cost flow algorithm (1998); Gog et al., Firmament, OSDI 2016, section
// 6.2. Departure: there, prices are refined for the next epsilon of the scaling, here always for
// zero: on scheduling graphs an optimal flow is found so early that the remaining phases can be
// skipped.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/arc_graph.hpp"

namespace flowsolver {

struct RefineResult {
  Status status = Status::kOptimal;  // or kCancelled or kBudget
  bool done = false;  // rc >= 0 everywhere; if false, `price` holds intermediate values
};

template <class Graph>
RefineResult refine_prices(const Graph& graph, std::vector<std::int64_t>& price,
                           std::int64_t max_scans, const Control& control, Stats& stats) {
  const NodeId n = graph.num_nodes();
  CancellationChecker checker(control);
  std::vector<NodeId> lowered, next;
  std::vector<std::uint8_t> queued(n, 0);
  for (NodeId u = 0; u < n; ++u) {
    std::int64_t least = price[u];
    const std::uint32_t last = graph.end(u);
    for (std::uint32_t e = graph.begin(u); e < last; ++e) {
      const auto& edge = graph.edges[e];
      if (edge.residual > 0 && edge.cost + price[edge.to] < least)
        least = edge.cost + price[edge.to];
    }
    stats.scanned += last - graph.begin(u);
    if (const Status status = checker.step(stats, last - graph.begin(u) + 1);
        status != Status::kOptimal)
      return {status};
    if (least == price[u]) continue;
    price[u] = least;
    ++stats.repaired;
    queued[u] = 1;
    lowered.push_back(u);
  }
  for (std::size_t round = 1; !lowered.empty(); ++round) {
    if (round > n) return {};
    for (NodeId v : lowered) {
      queued[v] = 0;
      const std::int64_t price_v = price[v];
      const std::uint32_t first = graph.begin(v), last = graph.end(v);
      for (std::uint32_t e = first; e < last; ++e) {
        const auto& edge = graph.edges[e];  // v -> u, whose partner is u -> v
        if (price_v - edge.cost >= price[edge.to] || graph.edges[edge.partner].residual == 0)
          continue;
        price[edge.to] = price_v - edge.cost;
        ++stats.repaired;
        if (queued[edge.to] != 0) continue;
        queued[edge.to] = 1;
        next.push_back(edge.to);
      }
      stats.scanned += last - first;
      if (const Status status = checker.step(stats, last - first + 1); status != Status::kOptimal)
        return {status};
      if ((max_scans -= last - first) < 0) return {};
    }
    lowered.swap(next);
    next.clear();
  }
  return {Status::kOptimal, true};
}

}  // namespace flowsolver
