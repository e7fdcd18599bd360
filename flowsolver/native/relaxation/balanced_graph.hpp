// A residual graph with prices that are kept reduced-cost optimal, and what the iterations of
// relaxation need to know at any time: each node's residual half-edges (ResidualLists), which nodes
// have excess, and about how far each node is from a deficit.
//
// Invariant: rc = cost - p[u] + p[w] >= 0 on every residual half-edge u -> w. One with rc = 0 is
// balanced: flow may be moved along it. (During a multinode iteration the prices of the set are
// stored without its raise; the invariant holds with the raise added.)
//
// Degenerate raises. If the flow of a source is on full arcs only, its price may be anything
// between what those require and the price at which the first other arc gets balanced: the dual
// objective is the same. `raise_degenerate` sets it to the latter (a degenerate ascent step). Then
// the residual half-edges back to it have as reduced cost what it would cost the source to move
// elsewhere, instead of 0, and no set has to include thousands of tasks that use one aggregator and
// cannot move.
//
// Hops. hops[v] estimates the number of balanced arcs from v to the nearest deficit: exactly 0 at
// deficits, kFar if no path is known. Hops determine the order of searches only; no answer depends
// on them. A scan of all arcs of v sets hops[v] to 1 + the least of its balanced heads, so that
// dead ends are learned once.
//
// Range. Prices only rise; close_gaps (dual_ascent.hpp) brings them back below 2^59.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "graph/arc_graph.hpp"
#include "graph/imbalances.hpp"
#include "graph/dynamic_graph.hpp"
#include "graph/large_array.hpp"
#include "network.hpp"

namespace flowsolver {

// What relaxation remembers of nodes between two solves of a graph that changes.
enum class NodeMark : std::uint8_t { kRepriced = 1, kNewNode = 2, kChanged = 4 };

class NodeMarks {
 public:
  void reserve(std::size_t nodes) { of_.reserve(nodes); }
  void assign(std::size_t nodes) { of_.assign(nodes, 0); }
  void resize(std::size_t nodes) { of_.resize(nodes, 0); }
  // Sets a mark. False: it was set already.
  bool set(NodeId v, NodeMark mark) {
    const bool is_new = !has(v, mark);
    of_[v] |= static_cast<std::uint8_t>(mark);
    return is_new;
  }
  bool has(NodeId v, NodeMark mark) const {
    return (of_[v] & static_cast<std::uint8_t>(mark)) != 0;
  }
  void clear(NodeId v, NodeMark mark) {
    of_[v] &= static_cast<std::uint8_t>(~static_cast<std::uint8_t>(mark));
  }

 private:
  std::vector<std::uint8_t> of_;  // per node
};

// A queue of nodes with excess, first in first out: the order in which relaxation tries them.
class NodeQueue {
 public:
  void push(NodeId v) { nodes_.push_back(v); }
  NodeId pop() {  // kNone when empty
    if (begin_ < nodes_.size()) return nodes_[begin_++];
    nodes_.clear();
    begin_ = 0;
    return kNone;
  }
  std::size_t size() const { return nodes_.size() - begin_; }
  NodeId operator[](std::size_t i) const { return nodes_[begin_ + i]; }

 private:
  std::vector<NodeId> nodes_;
  std::size_t begin_ = 0;
};

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
// multinode iteration the stored prices of members are lower than their true ones, by no more than
// the level asked for: their half-edges are visited rather too early than too late.
//
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

// Arcs: arc_graph.hpp, or dynamic_graph.hpp if they change.
template <class Arcs>
class BalancedGraph {
 public:
  using Edge = typename Arcs::HalfEdge;
  using Value = typename Arcs::Value;
  static constexpr bool kIsDynamic = kIsDynamicGraph<Arcs>;
  static constexpr std::uint32_t kFar = 64;
  static constexpr std::int64_t kMaxPrice = std::int64_t{1} << 60;

  // position relative to the current set
  enum class Place : std::uint8_t { kOutside, kLabelled, kInside };
  struct Node {  // two to a cache line: nearly all that a scan reads of a node
    std::int64_t price = 0;
    std::uint32_t hops = 1;
    // current arc: position in its list before which no arc was balanced and led to fewer hops
    std::uint32_t current = 0;
    std::uint32_t list = kNone;  // ResidualLists
    // inside the set: the arc by which it was reached, kNone at the root
    std::uint32_t parent = kNone;
    Place place = Place::kOutside;
    bool source = false;  // has supply
    bool queued = false;  // is in `untried` or `postponed`
  };

  // Builds the graph with the start's flow; arcs that violate optimality at `price` (empty: all 0)
  // are filled or emptied.
  Status build(const Network& network, const Start& start, std::span<const std::int64_t> price,
               const Control& control, Stats& stats) {
    Status status = arcs_.build(network, start, control, stats);
    if (status != Status::kOptimal) return status;
    nodes.assign(network.num_nodes(), Node{});
    cut.assign(network.num_nodes(), 0);
    for (NodeId v = 0; v < price.size(); ++v) nodes[v].price = price[v];
    CancellationChecker checker(control);
    std::int64_t cheapest = 0;
    for (std::int64_t cost : network.cost) cheapest = std::min(cheapest, cost);
    if (cheapest < 0 || !start.flow.empty() || !price.empty()) {
      status = each_node(checker, stats, [&](NodeId v) { saturate(v, stats); });
      if (status != Status::kOptimal) return status;
    }
    if (!start.flow.empty()) status = cancel_deficits(arcs_, price, control, stats);
    if (status != Status::kOptimal) return status;
    for (NodeId v = 0; v < num_nodes(); ++v) {
      nodes[v].source = network.supply[v] > 0;
      note_excess(v);
      if (excess(v) > 0) nodes[v].hops = kFar - 1;
    }
    return Status::kOptimal;
  }

  BalancedGraph()
    requires(!kIsDynamic)
  = default;
  // The graph with this flow and these prices (empty: zeros), of arcs that are alive (empty: all).
  // Arcs may still violate optimality. Throws Stopped when cancelled.
  BalancedGraph(const Network& network, std::span<const std::int64_t> flow,
                std::span<const std::uint8_t> alive, std::span<const std::int64_t> price,
                const Control& control)
    requires kIsDynamic
      : arcs_(network, flow, alive, control) {
    const std::size_t n = network.num_nodes();
    nodes.reserve(n + n / 4);
    cut.reserve(n + n / 4);
    marks.reserve(n + n / 4);
    nodes.assign(n, Node{});
    cut.assign(n, 0);
    marks.assign(n);
    for_each_until_cancelled(n, control, [&](std::size_t at) {
      const NodeId v = static_cast<NodeId>(at);
      if (!price.empty()) nodes[v].price = price[v];
      nodes[v].source = network.supply[v] > 0;
      if (nodes[v].source) nodes[v].hops = kFar - 1;
    });
  }

  NodeId num_nodes() const { return static_cast<NodeId>(nodes.size()); }
  const Arcs& arcs() const { return arcs_; }
  const Edge& edge(std::uint32_t i) const { return arcs_.edges[i]; }
  NodeId tail(std::uint32_t i) const { return arcs_.edges[arcs_.edges[i].partner].to; }
  __int128 total_excess() const {  // sum of all excesses
    __int128 sum = 0;
    for (NodeId v = 0; v < num_nodes(); ++v) sum += is_excess(v) ? excess(v) : 0;
    return sum;
  }
  std::int64_t excess(NodeId v) const { return arcs_.excess[v]; }
  bool is_excess(NodeId v) const { return excess(v) > 0 && v != root; }
  bool has_deficit(NodeId v) const { return excess(v) < 0 || v == root; }
  std::int64_t deficit(NodeId v) const { return v == root ? kInfinity : -excess(v); }
  std::int64_t reduced_cost(NodeId v, const Edge& edge) const {
    return edge.cost - nodes[v].price + nodes[edge.to].price;
  }

  // Scans the residual half-edges of v (ResidualLists). Without a level: those that may be
  // balanced.
  template <class Visit>
  std::uint32_t scan(NodeId v, std::uint32_t from, Stats& stats, Visit&& visit) {
    return lists_.scan(v, from, 0, stats, visit);
  }
  template <class Visit>
  std::uint32_t scan_up_to(std::int64_t level, NodeId v, std::uint32_t from, Stats& stats,
                           Visit&& visit) {
    return lists_.scan(v, from, level, stats, visit);
  }
  template <class Counts>
  std::int64_t min_in_heap(NodeId v, Stats& stats, Counts&& counts) {
    return lists_.min_in_heap(v, stats, counts);
  }
  std::int64_t min_in_heap(NodeId v, Stats& stats) {
    return min_in_heap(v, stats, [](const Edge&) { return true; });
  }
  bool uses_heap(NodeId v) const { return lists_.uses_heap(v); }
  bool visits_all(NodeId v) const { return lists_.visits_all(v); }
  std::uint32_t list_size(NodeId v) const { return lists_.list_size(v); }

  void raise(NodeId v, std::int64_t by) {
    nodes[v].price += by;
    nodes[v].current = 0;
    note_price(v);
  }
  // Half-edges into v get cheaper, so what is recorded of them is updated.
  void lower(NodeId v, std::int64_t by)
    requires kIsDynamic
  {
    nodes[v].price -= by;
    nodes[v].current = 0;
    note_price(v);
    for (std::uint32_t i = arcs_.begin(v); i < arcs_.end(v); ++i) {
      const Edge& edge = arcs_.edges[i];
      Node& tail = nodes[edge.to];
      tail.current = 0;
      if (lists_.uses_heap(edge.to)) lists_.refresh(edge.to, edge.partner);
    }
  }
  // Must be called after any prices were lowered.
  void forget_keys() { lists_.forget_keys(); }
  void note_price(NodeId v) {
    if constexpr (kIsDynamic) {
      if (marks.set(v, NodeMark::kRepriced)) repriced_.push_back(v);
    }
  }

  void set_price(NodeId v, std::int64_t price)
    requires kIsDynamic
  {
    const std::int64_t before = nodes[v].price;
    if (price > before) raise(v, price - before);
    if (price < before) lower(v, before - price);
  }
  // Fills the half-edges of v with rc < 0, before there are lists. An arc with rc > 0 is emptied by
  // its other half-edge.
  void saturate(NodeId v, Stats& stats) {
    for (std::uint32_t i = arcs_.begin(v); i < arcs_.end(v); ++i) {
      const Edge& edge = arcs_.edges[i];
      if (edge.residual == 0 || reduced_cost(v, edge) >= 0) continue;
      arcs_.push(v, i, edge.residual);
      ++stats.repaired;
      if constexpr (kIsDynamic) {
        arcs_.note_unbalanced(v);
        arcs_.note_unbalanced(edge.to);
      }
    }
  }

  // For a source without excess. Does nothing if an arc out is balanced.
  void raise_degenerate(NodeId v, Stats& stats) {
    std::int64_t least = kInfinity;
    scan(v, 0, stats, [&](std::uint32_t, const Edge& edge) {
      least = std::min(least, reduced_cost(v, edge));
      return least > 0;
    });
    if (least > 0) least = std::min(least, min_in_heap(v, stats));
    if (least == 0 || least == kInfinity) return;
    raise(v, least);
    ++stats.ascents;
  }

  void note_excess(NodeId v) {
    Node& node = nodes[v];
    if (has_deficit(v)) {
      node.hops = 0;
      if constexpr (kIsDynamic) arcs_.note_unbalanced(v);
      return;
    }
    if (node.hops == 0) node.hops = 1;
    if (excess(v) > 0 && !node.queued) {
      node.queued = true;
      untried.push(v);
    }
  }
  // Moves flow along a half-edge; the caller updates the excess of its ends.
  void move(std::uint32_t i, std::int64_t amount) {
    if constexpr (kIsDynamic) {
      const NodeId from = tail(i), to = arcs_.edges[i].to;
      arcs_.push(from, i, amount);
      arcs_.excess[from] += amount;
      arcs_.excess[to] -= amount;
      lists_.add(to, arcs_.edges[i].partner);
      return;
    }
    Edge& there = arcs_.edges[i];
    Edge& back = arcs_.edges[there.partner];
    there.residual -= static_cast<Value>(amount);
    back.residual += static_cast<Value>(amount);
    lists_.add(there.to, there.partner);
  }
  void add_excess(NodeId v, std::int64_t amount) {
    arcs_.excess[v] += amount;
    note_excess(v);
  }
  void push(NodeId from, std::uint32_t i, std::int64_t amount, Stats& stats) {
    move(i, amount);
    add_excess(from, -amount);
    add_excess(arcs_.edges[i].to, amount);
    ++stats.pushes;
  }

  // Changes. The caller restores reduced-cost optimality, and calls `note_excesses`.
  void add_node(NodeId v, std::int64_t supply)
    requires kIsDynamic
  {
    arcs_.add_node(v, supply);
    if (v >= nodes.size()) {
      nodes.resize(v + 1);
      cut.resize(v + 1, 0);
      marks.resize(v + 1);
    }
    Node& node = nodes[v];
    node.price = 0;
    node.current = 0;
    node.source = supply > 0;
    node.hops = node.source ? kFar - 1 : 1;
    note_price(v);
  }
  void remove_node(NodeId v)
    requires kIsDynamic
  {
    arcs_.remove_node(v);
    lists_.clear(v);
    nodes[v].source = false;
  }
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost)
    requires kIsDynamic
  {
    if (tail == head) return arcs_.add_arc(arc, tail, head, capacity, cost);
    const std::uint32_t tail_middle = arcs_.middle(tail) - arcs_.begin(tail);
    const std::uint32_t tail_places = arcs_.end(tail) - arcs_.begin(tail),
                        head_places = arcs_.end(head) - arcs_.begin(head);
    arcs_.add_arc(arc, tail, head, capacity, cost);
    lists_.refresh(tail, arcs_.begin(tail) + tail_middle);
    lists_.refresh(tail, arcs_.begin(tail) + tail_places);
    lists_.refresh(head, arcs_.begin(head) + head_places);
    nodes[tail].current = nodes[head].current = 0;
  }
  void remove_arc(ArcId arc, NodeId tail)
    requires kIsDynamic
  {
    const std::uint32_t there = arcs_.position[arc];
    if (there == kNone) return arcs_.remove_arc(arc, tail);
    const NodeId head = arcs_.edges[there].to;
    const std::uint32_t back = arcs_.edges[there].partner, last_forward = arcs_.middle(tail) - 1;
    arcs_.remove_arc(arc, tail);
    lists_.refresh(tail, there);
    lists_.refresh(tail, last_forward);
    lists_.refresh(head, back);
  }
  void set_capacity(ArcId arc, NodeId tail, std::int64_t capacity)
    requires kIsDynamic
  {
    arcs_.set_capacity(arc, tail, capacity);
    if (arcs_.position[arc] != kNone) lists_.refresh(tail, arcs_.position[arc]);
  }
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost)
    requires kIsDynamic
  {
    arcs_.set_cost(arc, tail, cost);
    const std::uint32_t there = arcs_.position[arc];
    if (there == kNone) return;
    lists_.refresh(tail, there);
    lists_.refresh(arcs_.edges[there].to, arcs_.edges[there].partner);
    nodes[tail].current = nodes[arcs_.edges[there].to].current = 0;
  }
  void change_supply(NodeId v, std::int64_t delta, std::int64_t supply)
    requires kIsDynamic
  {
    arcs_.change_supply(v, delta);
    nodes[v].source = supply > 0;
  }
  // Compacts the half-edges if half of them are unused, in O(n + m). Throws Stopped when cancelled.
  void keep_compact(const Control& control)
    requires kIsDynamic
  {
    if (arcs_.is_sparse()) arcs_.compact(control);
  }
  const std::vector<NodeId>& repriced() const { return repriced_; }
  void begin_round()
    requires kIsDynamic
  {
    for (NodeId v : repriced_) marks.clear(v, NodeMark::kRepriced);
    repriced_.clear();
    arcs_.begin_round();
  }
  // Updates the queues for all nodes whose excess may have changed since the last call. Then only
  // nodes with an excess or deficit remain listed.
  void note_excesses()
    requires kIsDynamic
  {
    const std::vector<NodeId> changed = arcs_.unbalanced();
    for (NodeId v : changed) note_excess(v);
    arcs_.drop_balanced();
  }

  // Nodes with excess are in one of the queues, except the one that was taken last.
  NodeId take(NodeQueue& queue) {
    for (NodeId v = queue.pop(); v != kNone; v = queue.pop()) {  // bounded: takes one off
      nodes[v].queued = false;
      if (is_excess(v)) return v;
    }
    return kNone;
  }
  void postpone(NodeId v) {
    if (nodes[v].queued) return;
    nodes[v].queued = true;
    postponed.push(v);
  }
  void retry_postponed() {
    for (NodeId v = take(postponed); v != kNone; v = take(postponed)) {  // bounded: takes one off
      nodes[v].queued = true;
      untried.push(v);
    }
  }

  // A node at which all excess may end and from which all deficits may draw; its own imbalance is
  // implied by the others'. Its price stays. kNone: there is none.
  NodeId root = kNone;
  std::vector<Node, LargeAllocator<Node>> nodes;
  // per labelled node: residual capacity of the balanced arcs from the set to it
  std::vector<std::int64_t> cut;
  // untried: not tried since excess arrived. postponed: left for a multinode iteration.
  NodeQueue untried, postponed;
  NodeMarks marks;  // if the graph is dynamic; all but kRepriced are set by the caller

 private:
  template <class Visit>
  Status each_node(CancellationChecker& checker, const Stats& stats, Visit&& visit) {
    for (NodeId v = 0; v < num_nodes(); ++v) {
      visit(v);
      const Status status = checker.step(stats, 1 + arcs_.end(v) - arcs_.begin(v));
      if (status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }
  std::vector<NodeId> repriced_;
  Arcs arcs_;
  ResidualLists<Arcs, Node> lists_{arcs_, nodes};
};

}  // namespace flowsolver
