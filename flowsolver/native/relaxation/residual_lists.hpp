// Each node's residual half-edges, so that those that may be balanced are found without a look at the others.
//
// Every residual half-edge is listed at its tail; one whose residual has gone is dropped when it is next come across. So a
// machine with 70 arcs in looks at its dozen tasks, and an aggregator with 150,000 only at those that use it. A node's list
// is made when it is first looked at.
//
// Crowded nodes. Where more than kFew are listed, those of reduced cost above what a visitor asks for wait in a heap
// instead, by cost + price[head] as of when they were put there. While prices only rise the key is a lower bound, and a
// half-edge whose key is above price[tail] + level needs no look. One that comes to the top and has become dearer goes back
// with its new key. So of an aggregator's 125,000 arcs of different costs only those are looked at, in O(log) each, that its
// price has come to.
//
// Changes. Lists hold places in a node's block, whatever half-edge is there. When another one is there, or it has become
// cheaper (its cost fell, or its head's price), `refresh` puts the place at hand, where no key is asked for. What it
// leaves in the heap is stale and dropped when it comes to the top, as are places that the block no longer has.
//
// `Node` has the node's price, `listed` (half-edges at hand, kUnknown before the first look) and `heap` (its, or kNone).
// Within a set under way (ascent_set.hpp) members' prices are kept lower than they are, by no more than the level asked for:
// their half-edges are visited rather too early than too late.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "graph/large_array.hpp"
#include "network.hpp"

namespace flowsolver {

// Of graphs: whether their arcs change (kept_graph.hpp; not those of arc_graph.hpp).
template <class Arcs>
inline constexpr bool kChangeable = requires(const Arcs& arcs) { arcs.touched_arcs(); };

template <class Arcs, class Node>
class ResidualLists {
 public:
  using Edge = typename Arcs::HalfEdge;
  using Nodes = std::vector<Node, LargeAllocator<Node>>;
  static constexpr bool kChanges = kChangeable<Arcs>;
  static constexpr std::uint32_t kUnknown = kNone;

  ResidualLists(const Arcs& arcs, Nodes& nodes) : arcs_(arcs), nodes_(nodes) {}

  // Room for the graph. All nodes' lists are to be unknown, and without a heap.
  void reset() {
    residual_.clear();
    listed_.clear();
    heaps_.clear();
    make_room();
  }

  // Half-edge i of v has got residual capacity.
  void list(NodeId v, std::uint32_t i) {
    if (nodes_[v].listed != kUnknown && listed_[i] == kNot) put_at_hand(v, i);
  }

  bool crowded(NodeId v) const { return nodes_[v].heap != kNone; }
  // Half-edges of v that are not in its heap; what gets listed or comes up later stands behind them.
  std::uint32_t at_hand(NodeId v) const { return nodes_[v].listed; }

  // Calls visit(index, half-edge) for the residual half-edges of v, from the `from`-th at hand on, until it returns false:
  // all of them, or if v is crowded those of reduced cost <= level (and perhaps some to members of a set). Returns where it
  // stopped. What is listed meanwhile is visited as well.
  template <class Visit>
  std::uint32_t scan(NodeId v, std::uint32_t from, std::int64_t level, Stats& stats, Visit&& visit) {
    Node& node = nodes_[v];
    if (node.listed == kUnknown) fill(v);
    const std::uint32_t begin = arcs_.begin(v);
    const bool gets_crowded = from == 0 && node.listed > kFew && !crowded(v);
    if (gets_crowded) {
      node.heap = static_cast<std::uint32_t>(heaps_.size());
      heaps_.emplace_back().reserve(node.listed);
    }
    std::vector<Waiting>* const heap = crowded(v) ? &heaps_[node.heap] : nullptr;
    if (heap != nullptr) bring_up(v, *heap, level, stats);
    std::uint32_t k = from;
    while (k < node.listed) {
      const std::uint32_t place = residual_[begin + k], i = begin + place;
      const Edge& edge = arcs_.edges[i];
      ++stats.scanned;
      if (!is_residual(v, i)) {
        listed_[i] = kNot;
        residual_[begin + k] = residual_[begin + --node.listed];
      } else if (heap != nullptr && edge.cost + nodes_[edge.to].price - node.price > level) {
        residual_[begin + k] = residual_[begin + --node.listed];
        listed_[i] = kWaits;
        const Waiting waiting{edge.cost + nodes_[edge.to].price, place};
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
  template <class Counts>
  std::int64_t least_waiting(NodeId v, Stats& stats, Counts&& counts) {
    if (!crowded(v)) return kInfinity;
    const std::uint32_t begin = arcs_.begin(v);
    std::vector<Waiting>& heap = heaps_[nodes_[v].heap];
    while (!heap.empty()) {
      const std::uint32_t place = heap.front().place, i = begin + place;
      ++stats.scanned;
      if (listed_[i] != kWaits) {
        take_top(heap);
        continue;
      }
      if (!is_residual(v, i)) {
        take_top(heap);
        listed_[i] = kNot;
        continue;
      }
      const Edge& edge = arcs_.edges[i];
      const std::int64_t key = edge.cost + nodes_[edge.to].price;
      const bool good = counts(edge);
      if (good && key <= heap.front().key) return key - nodes_[v].price;
      take_top(heap);
      if (good) {
        wait(heap, {key, place});
      } else {
        put_at_hand(v, i);
      }
    }
    return kInfinity;
  }

  // Prices have been lowered: no key is a bound any more.
  void forget_keys() {
    for (NodeId v = 0; v < nodes_.size(); ++v) {
      if (crowded(v)) put_all_at_hand(v);
    }
  }

  // Half-edge i of v is another one, or has become cheaper or residual.
  void refresh(NodeId v, std::uint32_t i) {
    if (nodes_[v].listed == kUnknown || i >= arcs_.end(v) || listed_[i] == kAtHand) return;
    const bool waited = listed_[i] == kWaits;
    listed_[i] = kNot;
    if (arcs_.edges[i].residual == 0) return;
    put_at_hand(v, i);
    if (waited && heaps_[nodes_[v].heap].size() > 2 * (arcs_.end(v) - arcs_.begin(v))) put_all_at_hand(v);
  }

  // The block of v, which began at `before` and had so many places in use, may have moved to the end of all.
  void moved(NodeId v, std::uint32_t before, std::uint32_t places) {
    const std::uint32_t begin = arcs_.begin(v);
    if (listed_.size() < arcs_.edges.size()) make_room();
    if (begin == before || nodes_[v].listed == kUnknown) return;
    std::uint32_t kept = 0;
    for (std::uint32_t place = 0; place < places; ++place) listed_[begin + place] = listed_[before + place];
    for (std::uint32_t k = 0; k < nodes_[v].listed; ++k) {
      const std::uint32_t place = residual_[before + k];
      if (place < places) residual_[begin + kept++] = place;
    }
    nodes_[v].listed = kept;
  }

  // v has no half-edges left.
  void clear(NodeId v) {
    if (nodes_[v].listed == kUnknown) return;
    const std::uint32_t begin = arcs_.begin(v);
    for (std::uint32_t k = 0; k < nodes_[v].listed; ++k) listed_[begin + residual_[begin + k]] = kNot;
    nodes_[v].listed = 0;
    if (!crowded(v)) return;
    for (const Waiting& waiting : heaps_[nodes_[v].heap]) listed_[begin + waiting.place] = kNot;
    heaps_[nodes_[v].heap] = {};
  }

 private:
  static constexpr std::uint32_t kFew = 16;  // as soon looked at as kept in order
  enum Listed : std::uint8_t { kNot, kAtHand, kWaits };
  struct Waiting {
    std::int64_t key;
    std::uint32_t place;
    bool operator>(const Waiting& other) const { return key != other.key ? key > other.key : place > other.place; }
  };

  void make_room() {
    const std::size_t before = listed_.size();
    if constexpr (kChanges) {
      residual_.reserve(arcs_.edges.capacity());
      listed_.reserve(arcs_.edges.capacity());
    }
    residual_.resize(arcs_.edges.size());
    listed_.resize(arcs_.edges.size());
    if constexpr (kChanges) std::fill(listed_.begin() + static_cast<std::ptrdiff_t>(before), listed_.end(), kNot);
  }

  void fill(NodeId v) {
    const std::uint32_t begin = arcs_.begin(v), end = arcs_.end(v);
    std::uint32_t count = 0;
    for (std::uint32_t i = begin; i < end; ++i) {
      const bool residual = arcs_.edges[i].residual > 0;
      listed_[i] = residual ? kAtHand : kNot;
      residual_[begin + count] = i - begin;
      count += residual ? 1 : 0;
    }
    nodes_[v].listed = count;
  }

  bool is_residual(NodeId v, std::uint32_t i) const {
    if (kChanges && i >= arcs_.end(v)) return false;
    return arcs_.edges[i].residual > 0;
  }
  void put_at_hand(NodeId v, std::uint32_t i) {
    const std::uint32_t begin = arcs_.begin(v);
    residual_[begin + nodes_[v].listed++] = i - begin;
    listed_[i] = kAtHand;
  }
  void put_all_at_hand(NodeId v) {
    const std::uint32_t begin = arcs_.begin(v);
    std::vector<Waiting>& heap = heaps_[nodes_[v].heap];
    for (const Waiting& waiting : heap) {
      if (listed_[begin + waiting.place] == kWaits) put_at_hand(v, begin + waiting.place);
    }
    heap.clear();
  }
  static void wait(std::vector<Waiting>& heap, Waiting waiting) {
    heap.push_back(waiting);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  static void take_top(std::vector<Waiting>& heap) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
  }

  void bring_up(NodeId v, std::vector<Waiting>& heap, std::int64_t level, Stats& stats) {
    const std::uint32_t begin = arcs_.begin(v);
    const std::int64_t price = nodes_[v].price;
    while (!heap.empty() && heap.front().key - price <= level) {
      const std::uint32_t place = heap.front().place, i = begin + place;
      ++stats.scanned;
      take_top(heap);
      if (listed_[i] != kWaits) continue;
      if (!is_residual(v, i)) {
        listed_[i] = kNot;
        continue;
      }
      const Edge& edge = arcs_.edges[i];
      const std::int64_t key = edge.cost + nodes_[edge.to].price;
      if (key - price > level) {
        wait(heap, {key, place});
      } else {
        put_at_hand(v, i);
      }
    }
  }

  const Arcs& arcs_;
  Nodes& nodes_;
  LargeArray<std::uint32_t> residual_;  // like arcs_.edges: v's block, the first `listed` in use, places in the block
  LargeArray<std::uint8_t> listed_;     // per half-edge
  std::vector<std::vector<Waiting>> heaps_;
};

}  // namespace flowsolver
