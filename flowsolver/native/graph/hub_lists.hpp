// Hubs: nodes with thousands of half-edges, such as a request aggregator with arcs to every
// machine. A search reads only their cheapest half-edges, from a sorted list, and more only when
// its distance gets there.
//
// Definitions. The key of a half-edge of a hub is what it adds to the distance, the hub's own price
// aside: forward cost + p[head], for half-edges with residual capacity; backward -(cost + p[head]),
// for those whose partner has residual capacity. A list holds, for one hub and one direction, the
// half-edges with the smallest keys, each with a lower bound on its key, in the order of these
// bounds. What is not in the list has a key of at least its limit.
//
// Prices and residual capacities change between two visits. If a key falls, or a half-edge opens,
// and the key is below the limit, the half-edge is added with its new key: half-edges may be listed
// twice. Keys that rise stay as they are, since lower bounds are allowed. Half-edges that have
// closed are passed over. When passing over has cost as much as going through the list, this is
// done: keys are made exact, and what is closed or listed twice is dropped. If all prices rise or
// fall by at most the same amount, an offset is raised instead of lowering the bounds.
//
// Half-edges between hubs are always listed, with a key of minus infinity, so that the price of a
// hub may move without a visit to its half-edges.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

template <class Value>
struct HalfEdge;
template <class Value>
class ResidualGraph;

template <class Value>
class HubLists {
 public:
  using Graph = ResidualGraph<Value>;
  using Edge = HalfEdge<Value>;
  // Nodes with more half-edges are hubs once a search has come to them.
  static constexpr std::uint32_t kMinDegree = 2048;

  struct Entry {
    std::int64_t key;
    std::uint32_t id;  // of the half-edge
    NodeId to;
    bool operator<(const Entry& other) const {
      return std::tie(key, id) < std::tie(other.key, other.id);
    }
    bool operator==(const Entry& other) const = default;
  };

  class List {
   public:
    std::size_t size() const { return sorted_.size(); }
    const Entry& operator[](std::size_t at) const { return sorted_[at]; }
    // A lower bound on the key of the entry; after the last one, on those of all others.
    std::int64_t bound(std::size_t at) const {
      const std::int64_t key = at < sorted_.size() ? sorted_[at].key : limit_;
      return key == -kInfinity || key == kInfinity ? key : key - offset_;
    }
    // The entry was closed, or its key is larger than the bound.
    void pass_over() { ++passed_over_; }

   private:
    friend class HubLists;
    std::vector<Entry> sorted_, added_;
    std::vector<std::uint32_t> ways_;      // ids of half-edges, see way_to_target
    std::int64_t ways_price_ = kInfinity;  // of the hub when they were found; kInfinity: never
    std::int64_t limit_ = kInfinity;       // plus the offset, like all stored keys
    std::int64_t offset_ = 0;
    std::size_t target_size_ = kFirstSize;
    std::size_t passed_over_ = 0;
    bool is_valid_ = false;
  };

  bool empty() const { return hubs_.empty(); }
  bool is_hub(NodeId v) const { return v < index_.size() && index_[v] != kNone; }

  // The list of u, ready for a visit. u becomes a hub if it is none. Adds the half-edges read to
  // `stats`.
  template <bool kForward>
  List& prepare(const Graph& graph, NodeId u, Stats& stats) {
    if (!is_hub(u)) add_hub(u);
    List& list = hubs_[index_[u]].lists[kForward];
    merge_added(list);
    if (list.is_valid_ && list.passed_over_ + list.size() > 2 * list.target_size_ + kSpare) {
      refresh<kForward>(graph, u, list, stats);
    }
    if (!list.is_valid_) build<kForward>(graph, u, list, stats);
    return list;
  }

  template <bool kForward>
  List& list(NodeId hub) {
    return hubs_[index_[hub]].lists[kForward];
  }

  // Lists more half-edges of u, if there are more: a visit has reached the end of the list.
  template <bool kForward>
  void extend(const Graph& graph, NodeId u, Stats& stats) {
    List& list = hubs_[index_[u]].lists[kForward];
    if (list.offset_ == 0) list.target_size_ *= kGrowth;
    build<kForward>(graph, u, list, stats);
  }

  // Calls evaluate(index) for every open half-edge of u with key < limit, and some with larger
  // keys.
  template <bool kForward, class Evaluate>
  void visit(const Graph& graph, NodeId u, std::int64_t limit, Stats& stats, Evaluate evaluate) {
    List& list = prepare<kForward>(graph, u, stats);
    // bounded: lists more half-edges each time
    while (list.limit_ != kInfinity && list.bound(list.size()) < limit)
      extend<kForward>(graph, u, stats);
    for (std::size_t at = 0; at < list.size() && list.bound(at) < limit; ++at) {
      ++stats.scanned;
      const std::uint32_t id = list[at].id;
      const std::uint32_t index = graph.position[id];
      if (owns(graph, u, id) && is_open<kForward>(graph.edges[index])) {
        evaluate(index);
      } else {
        list.pass_over();
      }
    }
  }

  // The position of a half-edge of u by which a search comes to a target at no further cost, if u
  // is a hub and one is known; else kNone. is_target(node): whether the search ends there.
  //
  // Many searches of a round come to the same hub, and few of the thousands of half-edges that cost
  // them nothing lead to a target. All that do are found at once, when the hub's price is new; each
  // search uses one that still leads on. Adds the half-edges looked at to `looked_at`. Must not be
  // called while a search has a place in the list.
  template <bool kForward, class IsTarget>
  std::uint32_t way_to_target(const Graph& graph, NodeId u, std::int64_t& looked_at,
                              IsTarget is_target) {
    if (!is_hub(u)) return kNone;
    List& list = hubs_[index_[u]].lists[kForward];
    if (!list.is_valid_) return kNone;
    const std::int64_t price = graph.nodes[u].price;
    if (list.ways_price_ != price) {
      list.ways_price_ = price;
      find_ways(graph, kForward ? price : -price, list, looked_at, is_target);
    }
    // bounded: by the number of ways
    for (; !list.ways_.empty(); list.ways_.pop_back()) {
      const std::uint32_t id = list.ways_.back();
      if (!owns(graph, u, id)) continue;
      const std::uint32_t index = graph.position[id];
      const Edge& edge = graph.edges[index];
      const auto& head = graph.nodes[edge.to];
      if (is_open<kForward>(edge) && edge.cost + head.price == price && is_target(head))
        return index;
    }
    return kNone;
  }
  // Must be called when there may be new targets.
  void forget_ways() {
    for (Hub& hub : hubs_) {
      for (List& list : hub.lists) list.ways_price_ = kInfinity;
    }
  }

  // Whether a search in this direction can use the half-edge.
  template <bool kForward>
  static bool is_open(const Edge& edge) {
    return (kForward ? edge.residual : edge.reverse_residual) > 0;
  }
  // Whether u still owns the half-edge with this id.
  static bool owns(const Graph& graph, NodeId u, std::uint32_t id) {
    const auto& node = graph.nodes[u];
    return graph.position[id] - node.begin < node.degree;
  }

  // Must be called when a half-edge of u was added, has opened in this direction or its cost
  // changed.
  template <bool kForward>
  void note_half_edge(const Graph& graph, NodeId u, const Edge& edge) {
    if (!is_hub(u) || !is_open<kForward>(edge)) return;
    add(hubs_[index_[u]].lists[kForward], {key<kForward>(graph, edge), edge.id, edge.to});
  }
  void note_half_edge(const Graph& graph, NodeId u, const Edge& edge) {
    note_half_edge<true>(graph, u, edge);
    note_half_edge<false>(graph, u, edge);
  }
  // Must be called after the price of v rose (fell).
  void price_moved(const Graph& graph, NodeId v, bool up) {
    if (is_hub(v)) return;
    const auto& node = graph.nodes[v];
    for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
      const Edge& edge = graph.edges[i];
      if (!is_hub(edge.to)) continue;
      // The hub's half-edge is the partner.
      auto& lists = hubs_[index_[edge.to]].lists;
      const std::int64_t away = node.price - std::int64_t{edge.cost};
      if (up) {
        if (edge.residual > 0) add(lists[false], {-away, edge.id ^ 1, v});
      } else if (edge.reverse_residual > 0) {
        add(lists[true], {away, edge.id ^ 1, v});
      }
    }
  }
  // The same, if the prices of any nodes rose (fell) by at most the amount.
  void prices_moved(std::int64_t most, bool up) {
    for (Hub& hub : hubs_) {
      List& list = hub.lists[!up];
      list.offset_ += most;
      if (list.offset_ > kMaxOffset) list.is_valid_ = false;
    }
  }
  // v was removed. Another node may get its id.
  void forget(NodeId v) {
    if (!is_hub(v)) return;
    for (List& list : hubs_[index_[v]].lists) list.is_valid_ = false;
  }

 private:
  static constexpr std::size_t kFirstSize = 1024;
  static constexpr std::size_t kGrowth = 4;
  static constexpr std::size_t kSpare = 256;
  static constexpr std::int64_t kMaxOffset = std::int64_t{1} << 40;

  struct Hub {
    std::array<List, 2> lists;  // backward, forward
  };

  void add_hub(NodeId u) {
    if (u >= index_.size()) index_.resize(u + 1, kNone);
    index_[u] = static_cast<std::uint32_t>(hubs_.size());
    hubs_.emplace_back();
    for (Hub& hub : hubs_) {  // their half-edges to u must be listed
      for (List& list : hub.lists) list.is_valid_ = false;
    }
  }

  template <bool kForward>
  std::int64_t key(const Graph& graph, const Edge& edge) const {
    if (is_hub(edge.to)) return -kInfinity;
    const std::int64_t away = std::int64_t{edge.cost} + graph.nodes[edge.to].price;
    return kForward ? away : -away;
  }

  static void add(List& list, Entry entry) {
    if (!list.is_valid_) return;
    if (entry.key != -kInfinity) entry.key += list.offset_;
    if (entry.key >= list.limit_) return;
    list.added_.push_back(entry);
    if (list.added_.size() > list.target_size_ + kSpare) {  // of a hub to which no search comes
      list.is_valid_ = false;
      list.added_.clear();
    }
  }

  static void merge_added(List& list) {
    if (list.added_.empty()) return;
    std::sort(list.added_.begin(), list.added_.end());
    const auto middle = static_cast<std::ptrdiff_t>(list.sorted_.size());
    list.sorted_.insert(list.sorted_.end(), list.added_.begin(), list.added_.end());
    std::inplace_merge(list.sorted_.begin(), list.sorted_.begin() + middle, list.sorted_.end());
    list.added_.clear();
  }

  // Keeps the entries with the smallest keys, in order. All keys are exact.
  static void finish(List& list) {
    const auto size = static_cast<std::ptrdiff_t>(list.target_size_);
    if (list.size() > list.target_size_) {
      std::nth_element(list.sorted_.begin(), list.sorted_.begin() + size, list.sorted_.end());
      const std::int64_t next = list.sorted_[list.target_size_].key;
      if (next != -kInfinity) {
        list.limit_ = std::min(list.limit_, next);
        list.sorted_.resize(list.target_size_);
      }
    }
    std::sort(list.sorted_.begin(), list.sorted_.end());
    list.sorted_.erase(std::unique(list.sorted_.begin(), list.sorted_.end()), list.sorted_.end());
    list.passed_over_ = 0;
    list.is_valid_ = true;
  }

  template <bool kForward>
  void build(const Graph& graph, NodeId u, List& list, Stats& stats) {
    const auto& node = graph.nodes[u];
    list.sorted_.clear();
    list.added_.clear();
    list.limit_ = kInfinity;
    list.offset_ = 0;
    const std::uint32_t count = kForward ? node.residual_degree : node.degree;
    for (std::uint32_t i = node.begin; i < node.begin + count; ++i) {
      const Edge& edge = graph.edges[i];
      if (is_open<kForward>(edge))
        list.sorted_.push_back({key<kForward>(graph, edge), edge.id, edge.to});
    }
    stats.scanned += count;
    finish(list);
  }

  template <bool kForward>
  void refresh(const Graph& graph, NodeId u, List& list, Stats& stats) {
    stats.scanned += static_cast<std::int64_t>(list.size());
    if (list.limit_ != kInfinity) list.limit_ -= list.offset_;
    list.offset_ = 0;
    std::erase_if(list.sorted_, [&](Entry& entry) {
      if (!owns(graph, u, entry.id)) return true;
      const Edge& edge = graph.edges[graph.position[entry.id]];
      entry.key = key<kForward>(graph, edge);
      return !is_open<kForward>(edge) || entry.key >= list.limit_;
    });
    std::sort(list.sorted_.begin(), list.sorted_.end());
    list.sorted_.erase(std::unique(list.sorted_.begin(), list.sorted_.end()), list.sorted_.end());
    finish(list);
    if (list.limit_ != kInfinity && list.size() < list.target_size_ / kGrowth)
      list.is_valid_ = false;
  }

  // Finds the half-edges with this key that lead to a target. As a rule, the price of a target has
  // not moved since its half-edge was listed: the bound differs by no more than the offset.
  template <class IsTarget>
  static void find_ways(const Graph& graph, std::int64_t key, List& list, std::int64_t& looked_at,
                        IsTarget is_target) {
    merge_added(list);
    list.ways_.clear();
    const auto first = std::partition_point(list.sorted_.begin(), list.sorted_.end(),
                                            [key](const Entry& entry) { return entry.key < key; });
    const auto last = std::partition_point(
        first, list.sorted_.end(),
        [end = key + list.offset_](const Entry& entry) { return entry.key <= end; });
    for (auto entry = first; entry != last; ++entry) {
      if (is_target(graph.nodes[entry->to])) list.ways_.push_back(entry->id);
    }
    looked_at += last - first;
  }

  std::vector<std::uint32_t> index_;  // by node: its place in `hubs_`, or kNone
  std::vector<Hub> hubs_;
};

}  // namespace flowsolver
