// Lists of each node's residual half-edges, so that those that may be balanced are found without
// scanning the others.
//
// Every residual half-edge is listed at its tail. One that lost its residual capacity is dropped
// when it is next scanned. So for a machine with 70 arcs in, only its dozen tasks are scanned, and
// for an aggregator with 150,000 only those that use it. A node's list is made when it is first
// scanned. Nodes of few half-edges (tasks) have no list and are scanned completely: half of all
// half-edges, for which nothing is stored.
//
// Heaps. If a list exceeds kFew, half-edges of reduced cost above the level that a visitor asks for
// are moved to a heap, by cost + price[head] at that time. While prices only rise, the key is a
// lower bound, and a half-edge whose key is above price[tail] + level need not be scanned. One that
// reaches the top and got more expensive is reinserted with its new key. So of an aggregator's
// 125,000 arcs of different costs, only those that its price has reached are scanned, in O(log)
// each.
//
// Changes. Lists hold positions in a node's block, whatever half-edge is there and wherever the
// block moves. When another half-edge is there, or it got cheaper (its cost or its head's price
// fell), `refresh` puts the position into the list, where no key is needed. Its entry in the heap
// is outdated and dropped when it reaches the top, as are positions that the block does not have
// any more.
//
// `Node` has the node's price and `list`: the number of its list, kNone without one. During a
// multinode iteration (multinode_iteration.hpp) the stored prices of members are lower than their
// true ones, by no more than the level asked for: their half-edges are visited rather too early
// than too late.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "graph/large_array.hpp"
#include "network.hpp"

namespace flowsolver {

// Whether the arcs of a graph change (dynamic_graph.hpp) or not (arc_graph.hpp).
template <class Arcs>
inline constexpr bool kIsDynamicGraph = requires(const Arcs& arcs) { arcs.touched_arcs(); };

template <class Arcs, class Node>
class ResidualLists {
 public:
  using Edge = typename Arcs::HalfEdge;
  using Nodes = std::vector<Node, LargeAllocator<Node>>;
  static constexpr bool kIsDynamic = kIsDynamicGraph<Arcs>;

  ResidualLists(const Arcs& arcs, Nodes& nodes) : arcs_(arcs), nodes_(nodes) {}

  // Half-edge i of v got residual capacity.
  void add(NodeId v, std::uint32_t i) {
    if (!has_list(v)) return;
    List& list = list_of(v);
    const std::uint32_t place = i - arcs_.begin(v);
    if (list.states[place] == kUnlisted) list.add_to_list(place);
  }

  bool uses_heap(NodeId v) const { return has_list(v) && lists_[nodes_[v].list].uses_heap; }
  // Whether a scan visits all residual half-edges of v, however expensive: none is in a heap, or is
  // about to be.
  bool visits_all(NodeId v) const {
    if (!has_list(v)) return arcs_.end(v) - arcs_.begin(v) <= kFew;
    const List& list = lists_[nodes_[v].list];
    return !list.uses_heap && list.places.size() <= kFew;
  }
  // The number of half-edges of v, which uses a heap, that are in its list. Half-edges that are
  // added later come after them.
  std::uint32_t list_size(NodeId v) const {
    return static_cast<std::uint32_t>(lists_[nodes_[v].list].places.size());
  }

  // Calls visit(index, half-edge) for the residual half-edges of v, from position `from` of its
  // list on, until it returns false: for all of them, or, if v uses a heap, for those of reduced
  // cost <= level (and perhaps some whose head is a member of a set). Returns where it stopped.
  // Half-edges that are added meanwhile are visited as well.
  template <class Visit>
  std::uint32_t scan(NodeId v, std::uint32_t from, std::int64_t level, Stats& stats,
                     Visit&& visit) {
    const std::uint32_t begin = arcs_.begin(v);
    if (!has_list(v)) {
      if (const std::uint32_t end = arcs_.end(v); end - begin <= kFew) {
        std::uint32_t i = begin + from;
        for (; i < end; ++i) {
          const Edge& edge = arcs_.edges[i];
          ++stats.scanned;
          if (edge.residual > 0 && !visit(i, edge)) break;
        }
        return i - begin;
      }
      make_list(v);
    }
    const std::uint32_t number = nodes_[v].list;
    const std::int64_t price = nodes_[v].price;
    const bool starts_heap =
        from == 0 && !lists_[number].uses_heap && lists_[number].places.size() > kFew;
    if (starts_heap) {
      lists_[number].uses_heap = true;
      lists_[number].heap.reserve(lists_[number].places.size());
    }
    const bool uses_heap = lists_[number].uses_heap;
    if (uses_heap) move_due_to_list(v, lists_[number], level, stats);
    std::uint32_t k = from;
    while (k < lists_[number].places.size()) {  // bounded: by a node's half-edges
      List& list = lists_[number];
      const std::uint32_t place = list.places[k], i = begin + place;
      const Edge& edge = arcs_.edges[i];
      ++stats.scanned;
      if (!is_residual(v, i)) {
        list.states[place] = kUnlisted;
        list.take_off(k);
      } else if (uses_heap && edge.cost + nodes_[edge.to].price - price > level) {
        list.take_off(k);
        list.states[place] = kInHeap;
        const HeapEntry entry{edge.cost + nodes_[edge.to].price, place};
        if (starts_heap) {
          list.heap.push_back(entry);
        } else {
          list.push_to_heap(entry);
        }
      } else if (visit(i, edge)) {
        ++k;
      } else {
        break;
      }
    }
    if (starts_heap)
      std::make_heap(lists_[number].heap.begin(), lists_[number].heap.end(), std::greater<>());
    return k;
  }

  // The least reduced cost of the half-edges in v's heap for which counts(half-edge) holds;
  // kInfinity if there are none, or no heap. The others are moved to the list.
  template <class Counts>
  std::int64_t min_in_heap(NodeId v, Stats& stats, Counts&& counts) {
    if (!uses_heap(v)) return kInfinity;
    const std::uint32_t begin = arcs_.begin(v);
    List& list = list_of(v);
    while (!list.heap.empty()) {  // bounded: takes one off the heap each time, or ends
      const std::uint32_t place = list.heap.front().place, i = begin + place;
      ++stats.scanned;
      if (list.states[place] != kInHeap) {
        list.take_top();
        continue;
      }
      if (!is_residual(v, i)) {
        list.take_top();
        list.states[place] = kUnlisted;
        continue;
      }
      const Edge& edge = arcs_.edges[i];
      const std::int64_t key = edge.cost + nodes_[edge.to].price;
      const bool good = counts(edge);
      if (good && key <= list.heap.front().key) return key - nodes_[v].price;
      list.take_top();
      if (good) {
        list.push_to_heap({key, place});
      } else {
        list.add_to_list(place);
      }
    }
    return kInfinity;
  }

  // Must be called after prices were lowered: no key is a bound any more.
  void forget_keys() {
    for (List& list : lists_) list.move_heap_to_list();
  }

  // Half-edge i of v was replaced, or got cheaper or residual.
  void refresh(NodeId v, std::uint32_t i) {
    if (!has_list(v) || i >= arcs_.end(v)) return;
    List& list = list_of(v);
    const std::uint32_t place = i - arcs_.begin(v), degree = arcs_.end(v) - arcs_.begin(v);
    if (list.states.size() < degree) list.states.resize(degree, kUnlisted);
    if (list.states[place] == kInList) return;
    const bool was_in_heap = list.states[place] == kInHeap;
    list.states[place] = kUnlisted;
    if (arcs_.edges[i].residual == 0) return;
    list.add_to_list(place);
    if (was_in_heap && list.heap.size() > 2 * std::size_t{degree}) list.move_heap_to_list();
  }

  // v has no half-edges left.
  void clear(NodeId v) {
    if (!has_list(v)) return;
    list_of(v) = {};
    free_.push_back(nodes_[v].list);
    nodes_[v].list = kNone;
  }

 private:
  static constexpr std::uint32_t kFew = 16;  // scanning so few is as fast as keeping a heap
  enum State : std::uint8_t { kUnlisted, kInList, kInHeap };
  struct HeapEntry {
    std::int64_t key;
    std::uint32_t place;
    bool operator>(const HeapEntry& other) const {
      return key != other.key ? key > other.key : place > other.place;
    }
  };
  struct List {
    std::vector<std::uint32_t> places;  // positions in the list
    std::vector<State> states;          // per position in the block
    std::vector<HeapEntry> heap;
    bool uses_heap = false;

    void add_to_list(std::uint32_t place) {
      places.push_back(place);
      states[place] = kInList;
    }
    void take_off(std::uint32_t k) {
      places[k] = places.back();
      places.pop_back();
    }
    void move_heap_to_list() {
      for (const HeapEntry& entry : heap) {
        if (states[entry.place] == kInHeap) add_to_list(entry.place);
      }
      heap.clear();
    }
    void push_to_heap(HeapEntry entry) {
      heap.push_back(entry);
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
    void take_top() {
      std::pop_heap(heap.begin(), heap.end(), std::greater<>());
      heap.pop_back();
    }
  };

  bool has_list(NodeId v) const { return nodes_[v].list != kNone; }
  List& list_of(NodeId v) { return lists_[nodes_[v].list]; }

  void make_list(NodeId v) {
    if (free_.empty()) {
      nodes_[v].list = static_cast<std::uint32_t>(lists_.size());
      lists_.emplace_back();
    } else {
      nodes_[v].list = free_.back();
      free_.pop_back();
    }
    List& list = list_of(v);
    const std::uint32_t begin = arcs_.begin(v), end = arcs_.end(v);
    list.states.assign(end - begin, kUnlisted);
    const auto residual = [](const Edge& edge) { return edge.residual > 0; };
    list.places.reserve(
        std::count_if(arcs_.edges.begin() + begin, arcs_.edges.begin() + end, residual));
    for (std::uint32_t i = begin; i < end; ++i) {
      if (residual(arcs_.edges[i])) list.add_to_list(i - begin);
    }
  }

  bool is_residual(NodeId v, std::uint32_t i) const {
    if (kIsDynamic && i >= arcs_.end(v)) return false;
    return arcs_.edges[i].residual > 0;
  }

  void move_due_to_list(NodeId v, List& list, std::int64_t level, Stats& stats) {
    const std::uint32_t begin = arcs_.begin(v);
    const std::int64_t price = nodes_[v].price;
    // bounded: takes one off the heap each time
    while (!list.heap.empty() && list.heap.front().key - price <= level) {
      const std::uint32_t place = list.heap.front().place, i = begin + place;
      ++stats.scanned;
      list.take_top();
      if (list.states[place] != kInHeap) continue;
      if (!is_residual(v, i)) {
        list.states[place] = kUnlisted;
        continue;
      }
      const Edge& edge = arcs_.edges[i];
      const std::int64_t key = edge.cost + nodes_[edge.to].price;
      if (key - price > level) {
        list.push_to_heap({key, place});
      } else {
        list.add_to_list(place);
      }
    }
  }

  const Arcs& arcs_;
  Nodes& nodes_;
  std::vector<List> lists_;
  std::vector<std::uint32_t> free_;  // lists of removed nodes
};

}  // namespace flowsolver
