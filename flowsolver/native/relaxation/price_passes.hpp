// Passes over a whole balanced graph (balanced_graph.hpp), between iterations: computing hops,
// raising prices by distance, closing gaps between prices, degenerate raises. Relaxation uses them
// as a fallback, decided by counted work (relaxation.hpp).
//
// Closing gaps. Prices only rise. When one exceeds kMaxPrice, or a start's prices are too far
// apart, close_gaps sorts them and moves every group of nodes that lies further than the largest
// |cost| above the rest down to that distance. Arcs out of such a group T have rc < 0 before and <=
// 0 after, arcs into it rc > 0 and >= 0, so the invariant stays. All prices then lie in [0, (n - 1)
// max|cost|], below 2^59. Since T's arcs are full out and empty in, e(T) > 0 proves that no flow is
// feasible; otherwise the dual objective does not decrease.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "relaxation/balanced_graph.hpp"

namespace flowsolver {

// The largest cost of any half-edge, which is the largest |cost|.
template <class Arcs>
std::int64_t largest_cost(const Arcs& arcs) {
  std::int64_t largest = 0;
  for (NodeId v = 0; v < arcs.num_nodes(); ++v) {
    for (std::uint32_t i = arcs.begin(v); i < arcs.end(v); ++i) {
      largest = std::max<std::int64_t>(largest, arcs.edges[i].cost);
    }
  }
  return largest;
}

// Computes the hops of all nodes by breadth-first search backward from all deficits.
template <class Graph>
Status measure_hops(Graph& graph, const Control& control, Stats& stats) {
  CancellationChecker checker(control);
  const auto& arcs = graph.arcs();
  std::vector<NodeId> reached;
  for (NodeId v = 0; v < graph.num_nodes(); ++v) {
    graph.nodes[v].hops = graph.has_deficit(v) ? 0 : Graph::kFar;
    graph.nodes[v].current = 0;
    if (graph.has_deficit(v)) reached.push_back(v);
  }
  for (std::size_t k = 0; k < reached.size(); ++k) {
    const NodeId w = reached[k];
    if (graph.nodes[w].hops + 1 >= Graph::kFar) break;
    for (std::uint32_t i = arcs.begin(w); i < arcs.end(w); ++i) {
      const auto& edge = arcs.edges[i];
      auto& node = graph.nodes[edge.to];
      if (node.hops != Graph::kFar || graph.reduced_cost(w, edge) != 0 ||
          arcs.edges[edge.partner].residual == 0)
        continue;
      node.hops = graph.nodes[w].hops + 1;
      reached.push_back(edge.to);
    }
    const std::int64_t steps = arcs.end(w) - arcs.begin(w);
    stats.scanned += steps;
    if (const Status status = checker.step(stats, steps + 1); status != Status::kOptimal)
      return status;
  }
  return Status::kOptimal;
}

// Whether a start's prices have gaps that many small raises would be needed to close.
template <class Graph>
bool prices_too_far_apart(const Graph& graph) {
  const auto cheaper = [](const auto& a, const auto& b) { return a.price < b.price; };
  const auto [low, high] = std::minmax_element(graph.nodes.begin(), graph.nodes.end(), cheaper);
  return high->price - low->price >
         largest_cost(graph.arcs()) * static_cast<std::int64_t>(graph.nodes.size() - 1);
}

// See "Closing gaps". False: no flow is feasible.
template <class Graph>
bool close_gaps(Graph& graph) {
  std::vector<NodeId> order(graph.num_nodes());
  std::iota(order.begin(), order.end(), NodeId{0});
  std::sort(order.begin(), order.end(), [&](NodeId a, NodeId b) {
    const std::int64_t price_a = graph.nodes[a].price, price_b = graph.nodes[b].price;
    return price_a != price_b ? price_a > price_b : a < b;
  });
  const std::int64_t widest = largest_cost(graph.arcs());
  __int128 above = 0;  // excess of the nodes above a gap
  for (std::size_t k = 0; k + 1 < order.size(); ++k) {
    above += graph.excess(order[k]);
    if (above > 0 && graph.nodes[order[k]].price - graph.nodes[order[k + 1]].price > widest)
      return false;
  }
  std::int64_t before = graph.nodes[order.back()].price, price = 0;
  for (std::size_t k = order.size(); k-- > 0;) {
    auto& node = graph.nodes[order[k]];
    price += std::min(node.price - before, widest);
    before = node.price;
    node.price = price;
    node.current = 0;
    graph.note_price(order[k]);
  }
  graph.forget_keys();
  return true;
}

struct Reached {
  std::int64_t distance;
  NodeId node;
  bool operator>(const Reached& other) const {
    return distance != other.distance ? distance > other.distance : node > other.node;
  }
};

// Raises every node by its distance to the nearest deficit in reduced costs, but none by more than
// the farthest excess. So each excess gets a balanced path to a deficit. kInfeasible: one has no
// path at all, so the nodes it reaches have more supply than capacity out.
template <class Graph>
Status raise_by_distance(Graph& graph, const Control& control, Stats& stats) {
  CancellationChecker checker(control);
  const auto& arcs = graph.arcs();
  std::vector<std::int64_t> distance(graph.num_nodes(), kInfinity);
  std::vector<Reached> heap;
  const auto label = [&](NodeId v, std::int64_t at) {
    distance[v] = at;
    heap.push_back({at, v});
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  std::int64_t left = 0, farthest = 0;  // left: number of excesses not yet reached
  for (NodeId v = 0; v < graph.num_nodes(); ++v) {
    if (graph.has_deficit(v)) label(v, 0);
    if (graph.is_excess(v)) ++left;
  }
  while (left > 0 && !heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto [at, w] = heap.back();
    heap.pop_back();
    if (at > distance[w]) continue;
    if (graph.is_excess(w)) --left;
    farthest = at;
    for (std::uint32_t i = arcs.begin(w); i < arcs.end(w); ++i) {
      const auto& edge = arcs.edges[i];
      const std::int64_t beyond = at - graph.reduced_cost(w, edge);
      if (arcs.edges[edge.partner].residual > 0 && beyond < distance[edge.to])
        label(edge.to, beyond);
    }
    const std::int64_t steps = arcs.end(w) - arcs.begin(w);
    stats.scanned += steps;
    const Status status = checker.step(stats, steps + 1);
    // If the graph persists, it does not stop at a budget: the same one again and again would never
    // suffice.
    if (status == Status::kCancelled || (status == Status::kBudget && !Graph::kIsDynamic))
      return status;
  }
  if (left > 0) return Status::kInfeasible;
  std::int64_t highest = 0;
  for (NodeId v = 0; v < graph.num_nodes(); ++v) {
    if (distance[v] > 0) graph.raise(v, std::min(distance[v], farthest));
    highest = std::max(highest, graph.nodes[v].price);
  }
  ++stats.relabels;
  if (highest > Graph::kMaxPrice && !close_gaps(graph)) return Status::kInfeasible;
  return measure_hops(graph, control, stats);
}

// Degenerate raises of all sources without excess.
template <class Graph>
Status raise_sources_degenerate(Graph& graph, const Control& control, Stats& stats) {
  CancellationChecker checker(control);
  for (NodeId v = 0; v < graph.num_nodes(); ++v) {
    const std::int64_t before = stats.scanned;
    if (graph.nodes[v].source && graph.excess(v) == 0) graph.raise_degenerate(v, stats);
    if (const Status status = checker.step(stats, stats.scanned - before + 1);
        status != Status::kOptimal)
      return status;
  }
  return Status::kOptimal;
}

}  // namespace flowsolver
