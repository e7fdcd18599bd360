// Each node's residual half-edges, so that those that may be balanced are found without a look at the others.
//
// Every residual half-edge is listed at its tail; one whose residual has gone is dropped when it is next come across. So a
// machine with 70 arcs in looks at its dozen tasks, and an aggregator with 150,000 only at those that use it.
//
// Crowded nodes. Where more than kFew are listed, those of reduced cost above what a visitor asks for wait in a heap
// instead, by cost + price[head] as of when they were put there. Prices only rise, so the key is a lower bound, and a
// half-edge whose key is above price[tail] + level needs no look. One that comes to the top and has become dearer goes back
// with its new key. So of an aggregator's 125,000 arcs of different costs only those are looked at, in O(log) each, that its
// price has come to.
//
// `Prices` maps a node to its price. Within a set under way (ascent_set.hpp) members' prices are kept lower than they are,
// by no more than the level asked for: their half-edges are visited rather too early than too late.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "arc_graph.hpp"

namespace flowsolver {

template <class V>
class ResidualLists {
 public:
  using Edge = typename ArcGraph<V>::HalfEdge;

  explicit ResidualLists(const ArcGraph<V>& arcs) : arcs_(arcs) {}

  // Room for the graph, in O(n): each node's list is to be filled before it is used.
  void reset() {
    residual_.resize(arcs_.edges.size());
    listed_.resize(arcs_.edges.size());
    count_.assign(arcs_.num_nodes(), 0);
    heap_of_.assign(arcs_.num_nodes(), kNone);
    heaps_.clear();
  }

  void fill(NodeId v) {
    const std::uint32_t begin = arcs_.first[v];
    std::uint32_t count = 0;
    for (std::uint32_t i = begin; i < arcs_.first[v + 1]; ++i) {
      const bool residual = arcs_.edges[i].residual > 0;
      listed_[i] = residual ? 1 : 0;
      residual_[begin + count] = i;
      count += residual ? 1 : 0;
    }
    count_[v] = count;
  }

  // Half-edge i of v has got residual capacity.
  void list(NodeId v, std::uint32_t i) {
    if (listed_[i] != 0) return;
    listed_[i] = 1;
    put_at_hand(v, i);
  }

  bool crowded(NodeId v) const { return heap_of_[v] != kNone; }
  // Half-edges of v that are not in its heap; what gets listed or comes up later stands behind them.
  std::uint32_t at_hand(NodeId v) const { return count_[v]; }

  // Calls visit(index, half-edge) for the residual half-edges of v, from the `from`-th at hand on, until it returns false:
  // all of them, or if v is crowded those of reduced cost <= level (and perhaps some to members of a set). Returns where it
  // stopped. What is listed meanwhile is visited as well.
  template <class Prices, class Visit>
  std::uint32_t scan(NodeId v, std::uint32_t from, std::int64_t level, const Prices& price, Stats& stats, Visit&& visit) {
    const std::uint32_t begin = arcs_.first[v];
    const bool gets_crowded = from == 0 && count_[v] > kFew && !crowded(v);
    if (gets_crowded) {
      heap_of_[v] = static_cast<std::uint32_t>(heaps_.size());
      heaps_.emplace_back();
    }
    std::vector<Waiting>* const heap = crowded(v) ? &heaps_[heap_of_[v]] : nullptr;
    if (heap != nullptr) bring_up(v, *heap, level, price, stats);
    std::uint32_t k = from;
    while (k < count_[v]) {
      const std::uint32_t i = residual_[begin + k];
      const Edge& edge = arcs_.edges[i];
      ++stats.scanned;
      if (edge.residual == 0) {
        listed_[i] = 0;
        residual_[begin + k] = residual_[begin + --count_[v]];
      } else if (heap != nullptr && edge.cost + price(edge.to) - price(v) > level) {
        residual_[begin + k] = residual_[begin + --count_[v]];
        const Waiting waiting{edge.cost + price(edge.to), i};
        if (gets_crowded) {
          heap->push_back(waiting);
        } else {
          wait(*heap, waiting);
        }
      } else if (visit(i, edge)) {
        ++k;
      } else {
        break;
      }
    }
    if (gets_crowded) std::make_heap(heap->begin(), heap->end(), std::greater<>());
    return k;
  }

  // The least reduced cost of those in v's heap that count; kInfinity when there are none, or v is not crowded. Those that
  // do not count are put at hand.
  template <class Prices, class Counts>
  std::int64_t least_waiting(NodeId v, const Prices& price, Stats& stats, Counts&& counts) {
    if (!crowded(v)) return kInfinity;
    std::vector<Waiting>& heap = heaps_[heap_of_[v]];
    while (!heap.empty()) {
      const std::uint32_t i = heap.front().edge;
      const Edge& edge = arcs_.edges[i];
      const std::int64_t key = edge.cost + price(edge.to);
      const bool good = edge.residual > 0 && counts(edge);
      ++stats.scanned;
      if (good && key <= heap.front().key) return key - price(v);
      take_top(heap);
      if (good) {
        wait(heap, {key, i});
      } else if (edge.residual > 0) {
        put_at_hand(v, i);
      } else {
        listed_[i] = 0;
      }
    }
    return kInfinity;
  }

  // Prices have been lowered: no key is a bound any more.
  void forget_keys() {
    for (NodeId v = 0; v < arcs_.num_nodes(); ++v) {
      if (!crowded(v)) continue;
      for (const Waiting& waiting : heaps_[heap_of_[v]]) put_at_hand(v, waiting.edge);
      heaps_[heap_of_[v]].clear();
    }
  }

 private:
  static constexpr std::uint32_t kFew = 16;  // as soon looked at as kept in order
  struct Waiting {
    std::int64_t key;
    std::uint32_t edge;
    bool operator>(const Waiting& other) const { return key != other.key ? key > other.key : edge > other.edge; }
  };

  void put_at_hand(NodeId v, std::uint32_t i) { residual_[arcs_.first[v] + count_[v]++] = i; }
  static void wait(std::vector<Waiting>& heap, Waiting waiting) {
    heap.push_back(waiting);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  static void take_top(std::vector<Waiting>& heap) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
  }

  template <class Prices>
  void bring_up(NodeId v, std::vector<Waiting>& heap, std::int64_t level, const Prices& price, Stats& stats) {
    while (!heap.empty() && heap.front().key - price(v) <= level) {
      const std::uint32_t i = heap.front().edge;
      const Edge& edge = arcs_.edges[i];
      const std::int64_t key = edge.cost + price(edge.to);
      ++stats.scanned;
      take_top(heap);
      if (edge.residual == 0) {
        listed_[i] = 0;
      } else if (key - price(v) > level) {
        wait(heap, {key, i});
      } else {
        put_at_hand(v, i);
      }
    }
  }

  const ArcGraph<V>& arcs_;
  LargeArray<std::uint32_t> residual_;  // like arcs_.edges: v's block, the first count_[v] in use
  LargeArray<std::uint8_t> listed_;     // per half-edge: at hand or in the heap
  std::vector<std::uint32_t> count_;    // per node
  std::vector<std::uint32_t> heap_of_;  // per node, kNone where few have been listed
  std::vector<std::vector<Waiting>> heaps_;
};

}  // namespace flowsolver
