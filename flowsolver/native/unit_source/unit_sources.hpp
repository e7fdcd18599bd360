// Unit sources under changes: sources are added, removed and changed, beside the residual graph of
// all other nodes.
//
// A unit source is a node with supply 1, no arcs in, and arcs out of capacity >= 1: a task. It is
// not a node of the graph; initial_assignment.cpp, where the sources are fixed, says why. While
// assigned, it belongs to the head of the arc that has its unit, and stands for residual arcs from
// there to its other heads. Its price is implied: cost(current arc) + p[head].
//
// Invariant, for an assigned source and each of its other arcs: cost(other) + p[its head] - price
// of the source >= 0.
//
// Keys. A search scans only those sources that may lead on within its distance bound. Each node has
// two lists (KeyedLists):
// - assigned: the sources assigned to it, by a lower bound on (best other arc: cost + p[head]) -
//   cost(current arc);
// - incoming: the arcs into it whose source is assigned elsewhere, by a lower bound on cost(arc) -
//   price of the source.
// Prices rise and fall between two scans of a key. A rise of p[v] lowers the true keys, in the
// incoming lists, of the sources assigned to v; a fall lowers those, in the assigned lists, of the
// sources with an arc to v. If few keys are concerned, they are updated. If all prices of a cell
// rise by one, an offset is raised instead: the stored value is the key plus the offset at that
// time, and the bound is the stored value minus the current offset. A key that is scanned is made
// exact again.
//
// For each source it is known which price of it the keys of its incoming arcs allow for. If a
// source's price, less the offset, is not above that, its keys need no look: for instance, when
// waiting tasks get dearer by one, and all prices of the cell rise by one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "control.hpp"
#include "graph/large_array.hpp"
#include "graph/residual_graph.hpp"
#include "solve.hpp"
#include "network.hpp"

namespace flowsolver {

// A list of items per node, each with a key. A visit evaluates only items with small keys.
//
// A key is a lower bound on the result of evaluating the item, and is updated by the evaluation.
// Lists of up to kFlat items are unordered. Longer ones (thousands of tasks at an aggregator) are
// binary heaps by key, of which a visit reads only the items below its limit and their children. An
// item is in at most one list.
//
// Keys are stored as `Key`, 32 bits wide if costs are. A value that does not fit is rounded down,
// which a lower bound allows: to the largest value that fits, or to minus infinity. Infinity is
// kept: such items are never evaluated.
template <class Key>
class KeyedLists {
 public:
  KeyedLists() = default;
  KeyedLists(std::size_t nodes, std::size_t items) : lists_(nodes), place_(items) {}

  // Makes room for at least so many nodes and items.
  void extend(std::size_t nodes, std::size_t items) {
    if (lists_.size() < nodes) lists_.resize(nodes);
    if (place_.size() < items) place_.resize(items);
  }
  // Reserves address space, so that growing does not copy.
  void reserve(std::size_t nodes, std::size_t items, std::size_t entries) {
    lists_.reserve(nodes);
    place_.reserve(items);
    entries_.reserve(entries);
  }

  // Makes all lists empty and releases their room.
  void clear() {
    std::fill(lists_.begin(), lists_.end(), List{});
    entries_.clear();
    for (std::vector<std::uint32_t>& free : free_) free.clear();
  }

  // Makes room for `items` in v's list, which must be empty and have none.
  void make_room(NodeId v, std::uint32_t items) {
    if (items > 0) lists_[v] = take_block(items);
  }

  // `lead`: the node that the item leads to, for callers that need it before the evaluation.
  void add(NodeId v, std::uint32_t item, std::int64_t key, NodeId lead = kNone) {
    List& list = lists_[v];
    if (list.size == list.room) grow(list);
    store(list, list.size++, {stored(key), item, lead});
    if (list.size > kFlat) {
      if (list.size == kFlat + 1) order(list);
      sift_up(list, list.size - 1);
    }
  }

  // Fetches v's list into the cache, and where the item is in it; or its entry, after that.
  void prefetch(NodeId v) const { fetch_line(&lists_[v]); }
  void prefetch_place(std::uint32_t item) const { fetch_line(&place_[item]); }
  void prefetch_entry(NodeId v, std::uint32_t item) const {
    const List& list = lists_[v];
    std::uint32_t at = place_[item];
    fetch_line(&entries_[list.begin + at]);
    for (int level = 0; list.size > kFlat && level < 3 && at > 0; ++level) {
      at = (at - 1) / 2;
      fetch_line(&entries_[list.begin + at]);
    }
  }
  // What lower_key() with the same arguments moves, whose entries are in the cache.
  void prefetch_moved(NodeId v, std::uint32_t item, std::int64_t key) const {
    const List& list = lists_[v];
    if (list.size <= kFlat) return;
    const Key low = stored(key);
    // bounded: by the depth of a heap
    for (std::uint32_t at = place_[item]; at > 0; at = (at - 1) / 2) {
      const Entry& parent = entries_[list.begin + (at - 1) / 2];
      if (parent.key <= low) return;
      fetch_line(&place_[parent.item]);
    }
  }

  // Adds many items to lists that have room for them. Call `order` when all are added; before that
  // the lists may not be used otherwise.
  void append(NodeId v, std::uint32_t item, std::int64_t key, NodeId lead = kNone) {
    List& list = lists_[v];
    store(list, list.size++, {stored(key), item, lead});
  }
  void order(NodeId v) {
    if (lists_[v].size > kFlat) order(lists_[v]);
  }

  void remove(NodeId v, std::uint32_t item) {
    List& list = lists_[v];
    const std::uint32_t at = place_[item];
    const Entry last = entries_[list.begin + --list.size];
    if (at == list.size) return;
    store(list, at, last);
    if (list.size > kFlat) {
      sift_down(list, at);
      sift_up(list, place_[last.item]);
    }
  }

  std::uint32_t size(NodeId v) const { return lists_[v].size; }
  std::int64_t key(NodeId v, std::uint32_t item) const {
    return value(entries_[lists_[v].begin + place_[item]].key);
  }

  void set_key(NodeId v, std::uint32_t item, std::int64_t key) {
    const List& list = lists_[v];
    const std::uint32_t at = place_[item];
    entries_[list.begin + at].key = stored(key);
    if (list.size > kFlat) {
      sift_down(list, at);
      sift_up(list, place_[item]);
    }
  }

  // The key becomes lower, or stays.
  void lower_key(NodeId v, std::uint32_t item, std::int64_t key) {
    const List& list = lists_[v];
    const std::uint32_t at = place_[item];
    Entry& entry = entries_[list.begin + at];
    const Key low = stored(key);
    if (low >= entry.key) return;
    entry.key = low;
    if (list.size > kFlat) sift_up(list, at);
  }

  void set_lead(NodeId v, std::uint32_t item, NodeId lead) {
    entries_[lists_[v].begin + place_[item]].lead = lead;
  }

  // Renumbers the item.
  void renumber(NodeId v, std::uint32_t item, std::uint32_t name) {
    place_[name] = place_[item];
    entries_[lists_[v].begin + place_[item]].item = name;
  }

  template <class Evaluate>
  void for_each(NodeId v, Evaluate evaluate) const {
    for (std::uint32_t i = 0; i < lists_[v].size; ++i) evaluate(entries_[lists_[v].begin + i].item);
  }

  // Adds the same amount to all keys except infinite ones.
  void shift_keys(std::int64_t amount) {
    for (const List& list : lists_) {
      for (std::uint32_t i = list.begin; i < list.begin + list.size; ++i) {
        const std::int64_t key = value(entries_[i].key);
        if (key != kInfinity && key != -kInfinity) entries_[i].key = stored(key + amount);
      }
    }
  }

  // Calls evaluate(item, key, lead) for every item of v with key < limit(), which may decrease
  // meanwhile; `evaluate` returns the new key. Before that, fetch(items) is called with items that
  // are about to be evaluated, unless the limit decreases.
  template <class Limit, class Fetch, class Evaluate>
  void visit(NodeId v, Limit limit, Fetch fetch, Evaluate evaluate) {
    const List list = lists_[v];
    Entry* const entries = entries_.data() + list.begin;
    if (list.size <= kFlat) {
      std::array<std::uint32_t, kFlat> items;
      std::array<std::uint8_t, kFlat> places;
      std::uint32_t found = 0;
      const std::int64_t at_first = limit();
      for (std::uint32_t i = 0; i < list.size; ++i) {
        if (!below(entries[i].key, at_first)) continue;
        items[found] = entries[i].item;
        places[found++] = static_cast<std::uint8_t>(i);
      }
      fetch(std::span<const std::uint32_t>(items.data(), found));
      for (std::uint32_t i = 0; i < found; ++i) {
        Entry& entry = entries[places[i]];
        if (below(entry.key, limit()))
          entry.key = stored(evaluate(entry.item, value(entry.key), entry.lead));
      }
      return;
    }
    // Smallest key first: what is found early lowers the limit.
    todo_.assign(1, {entries[0].key, 0, kNone});
    seen_.clear();
    // bounded: takes an item off the heap each time, and pushes each of the list once
    while (!todo_.empty() && below(todo_.front().key, limit())) {
      const std::uint32_t at = todo_.front().item;
      std::pop_heap(todo_.begin(), todo_.end(), larger);
      todo_.pop_back();
      for (std::uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < list.size; ++child) {
        if (!below(entries[child].key, limit())) continue;
        todo_.push_back({entries[child].key, child, kNone});
        std::push_heap(todo_.begin(), todo_.end(), larger);
      }
      const Key key = stored(evaluate(entries[at].item, value(entries[at].key), entries[at].lead));
      if (key != entries[at].key) seen_.push_back({key, entries[at].item, kNone});
    }
    for (const Entry& seen : seen_) {
      const std::uint32_t at = place_[seen.item];
      entries[at].key = seen.key;
      sift_down(list, at);
    }
  }

 private:
  static constexpr std::uint32_t kFlat = 128;
  static constexpr std::uint32_t kMinRoom = 8;
  static constexpr std::uint32_t kClassesAbove = 5;  // blocks up to one and a half times as large
  static constexpr Key kLargest = std::numeric_limits<Key>::max();  // infinity
  static constexpr Key kLeast = std::numeric_limits<Key>::min();    // minus infinity

  struct Entry {
    Key key;
    std::uint32_t item;
    NodeId lead;
  };
  struct List {
    std::uint32_t begin = 0, size = 0, room = 0;
  };

  static Key stored(std::int64_t key) {
    if (key == kInfinity) return kLargest;
    if (key <= kLeast) return kLeast;
    return key >= kLargest ? kLargest - 1 : static_cast<Key>(key);
  }
  static std::int64_t value(Key key) {
    if (key == kLargest) return kInfinity;
    return key == kLeast ? -kInfinity : std::int64_t{key};
  }
  static bool below(Key key, std::int64_t limit) {
    return key < limit ? key != kLargest : key == kLeast && limit > -kInfinity;
  }
  static bool larger(const Entry& a, const Entry& b) { return a.key > b.key; }
  void store(const List& list, std::uint32_t at, const Entry& entry) {
    entries_[list.begin + at] = entry;
    place_[entry.item] = at;
  }
  // Block sizes have four significant bits. The class of a size is made of those and of the number
  // of bits that follow, in order of size.
  static std::uint32_t class_of(std::uint32_t room) {
    const auto shift = static_cast<std::uint32_t>(std::bit_width(room)) - 4;
    return 8 * shift + (room >> shift) - 8;
  }
  static std::uint32_t room_of(std::uint32_t index) { return (8 + index % 8) << (index / 8); }
  // Takes a free block that is not much larger, or a new one.
  List take_block(std::uint32_t items) {
    const std::uint32_t least = std::max(items, kMinRoom), step = std::bit_floor(least) / 8;
    const std::uint32_t index = class_of((least + step - 1) / step * step);
    for (std::uint32_t fit = index; fit < index + kClassesAbove; ++fit) {
      if (free_[fit].empty()) continue;
      const std::uint32_t begin = free_[fit].back();
      free_[fit].pop_back();
      return {begin, 0, room_of(fit)};
    }
    const auto begin = static_cast<std::uint32_t>(entries_.size());
    entries_.resize(entries_.size() + room_of(index));
    return {begin, 0, room_of(index)};
  }
  void grow(List& list) {
    List wider = take_block(list.size + list.size / 2 + 1);
    std::copy_n(entries_.begin() + list.begin, list.size, entries_.begin() + wider.begin);
    wider.size = list.size;
    if (list.room > 0) free_[class_of(list.room)].push_back(list.begin);
    list = wider;
  }
  void order(const List& list) {
    for (std::uint32_t at = list.size / 2; at-- > 0;) sift_down(list, at);
  }
  void sift_up(const List& list, std::uint32_t at) {
    const Entry entry = entries_[list.begin + at];
    // bounded: by the depth of a heap
    while (at > 0 && entries_[list.begin + (at - 1) / 2].key > entry.key) {
      store(list, at, entries_[list.begin + (at - 1) / 2]);
      at = (at - 1) / 2;
    }
    store(list, at, entry);
  }
  void sift_down(const List& list, std::uint32_t at) {
    const Entry entry = entries_[list.begin + at];
    while (true) {  // bounded: by the depth of a heap
      std::uint32_t child = 2 * at + 1;
      if (child >= list.size) break;
      if (child + 1 < list.size &&
          entries_[list.begin + child + 1].key < entries_[list.begin + child].key)
        ++child;
      if (entries_[list.begin + child].key >= entry.key) break;
      store(list, at, entries_[list.begin + child]);
      at = child;
    }
    store(list, at, entry);
  }

  std::vector<List> lists_;
  LargeArray<std::uint32_t> place_;  // position of an item in its node's list
  LargeArray<Entry> entries_;
  std::array<std::vector<std::uint32_t>, 8 * 32> free_;  // free blocks by the class of their size
  // used by a visit; the items of `todo_` are positions in the list
  std::vector<Entry> todo_, seen_;
};

template <class V>
class UnitSources {
 public:
  using Value = V;
  using Edge = HalfEdge<V>;
  static constexpr bool kHasUnitSources = true;
  static constexpr bool kListsHubs = true;
  static constexpr std::uint32_t kMinHubDegree = HubLists<V>::kMinDegree;
  struct SourceArc {
    NodeId head;
    V cost;
    ArcId id;
  };

  // Starts without sources. Reserves room for those of `network`, which also gives the tails of
  // arcs.
  UnitSources(ResidualGraph<V>& graph, const Network& network);

  // Which nodes are unit sources.
  bool is_source(NodeId v) const { return v < is_source_.size() && is_source_[v]; }
  void add_source(NodeId v);     // without arcs
  void remove_source(NodeId v);  // with its arcs
  void extend(std::size_t nodes);

  // The arcs of a source, and the position of one of them. Finding all by id takes O(1) each if
  // they are looked up in the order in which they were added.
  std::pair<std::uint32_t, std::uint32_t> arcs_of(NodeId source) const {
    return {sources_[source].begin, sources_[source].begin + sources_[source].count};
  }
  std::uint32_t position_of(ArcId arc, NodeId source);
  bool is_assigned_over(NodeId source, ArcId arc) const {
    return sources_[source].current != kNone && source_arcs[sources_[source].current].id == arc;
  }
  void reserve_arcs(NodeId source, std::uint32_t arcs);  // before the first arc is added
  void add_arc(NodeId source, ArcId id, NodeId head, V cost);
  void remove_arc(NodeId source, std::uint32_t arc);  // not the current arc
  // call `refresh` before the next search
  void set_cost(NodeId source, std::uint32_t arc, V cost) {
    if (cost < source_arcs[arc].cost) sources_[source].keyed_price = kNotKeyed;
    source_arcs[arc].cost = cost;
  }
  // kNone: not assigned
  std::uint32_t current_arc(NodeId source) const { return sources_[source].current; }
  NodeId source_of(std::uint32_t arc) const { return tail_[source_arcs[arc].id]; }
  void prefetch(NodeId source) const { fetch_line(&sources_[source]); }
  // the same for its arcs; the source is in the cache
  void prefetch_arcs(NodeId source) const {
    constexpr std::uint32_t kArcsPerLine = 5;
    const auto [begin, end] = arcs_of(source);
    for (std::uint32_t i = begin; i < end; i += kArcsPerLine) fetch_line(&source_arcs[i]);
  }
  // Marks the source; false if it was marked already.
  bool mark_changed(NodeId source) { return !std::exchange(sources_[source].changed, true); }
  void clear_changed(NodeId source) { sources_[source].changed = false; }
  // whether its arcs are in the lists of their heads
  bool listed(NodeId source) const { return sources_[source].listed; }

  std::int64_t cost_through(std::uint32_t arc) const {
    return source_arcs[arc].cost + nodes[source_arcs[arc].head].price;
  }
  std::int64_t best_cost(NodeId source) const;  // kInfinity without arcs
  std::int64_t price(NodeId source) const;
  bool is_on_best_arc(NodeId source) const {
    return best_cost(source) >= cost_through(sources_[source].current);
  }
  std::int64_t best_other_cost(NodeId source) const;  // without the current arc

  // Assignments of its unit. `assign` is for a source that is not assigned; `reassign` keeps its
  // price.
  void assign(NodeId source, std::uint32_t arc);
  void reassign(NodeId source, std::uint32_t arc);
  void unassign(NodeId source);
  // Recomputes the keys of assigned sources.
  void refresh(std::span<const NodeId> sources);

  // For many sources at once, in less time and memory: `preassign` puts the unit on an arc, and
  // `build_lists`, when all are preassigned, makes the lists, which must be empty. In between only
  // reading and adding sources is allowed. False: cancelled, and the lists are still empty.
  void preassign(NodeId source, std::uint32_t arc) { sources_[source].current = arc; }
  bool build_lists(const Control& control);

  // The lists of a node.
  template <class Evaluate>
  void for_each_assigned(NodeId v, Evaluate evaluate) const {
    assigned_.for_each(v, evaluate);
  }
  template <class Evaluate>
  void for_each_incoming(NodeId v, Evaluate evaluate) const {
    incoming_.for_each(v, evaluate);
  }
  std::uint32_t num_assigned(NodeId v) const { return assigned_.size(v); }
  std::uint32_t num_incoming(NodeId v) const { return incoming_.size(v); }

  // What searches need, as in UnitSourceGraph. The parent of a label is a half-edge, or an arc of a
  // source with the top bit set.
  NodeId root() const { return graph_.root(); }
  NodeId num_nodes() const { return graph_.num_nodes(); }
  NodeId owner(std::uint32_t edge_index) const { return graph_.owner(edge_index); }
  std::uint32_t partner(std::uint32_t edge_index) const {
    return graph_.position[edges[edge_index].id ^ 1];
  }
  bool is_forward(const Edge& edge) const { return graph_.is_forward(edge); }
  const ResidualGraph<V>& residual_graph() const { return graph_; }
  static std::uint32_t parent_of_move(NodeId, std::uint32_t arc) { return encode_parent(arc); }
  static std::uint32_t encode_parent(std::uint32_t arc) { return arc | kSourceBit; }
  static bool is_source_arc(std::uint32_t parent) { return (parent & kSourceBit) != 0; }
  static std::uint32_t decode_parent(std::uint32_t parent) { return parent & ~kSourceBit; }
  template <class Limit, class Evaluate>
  void visit_assigned(NodeId v, Limit limit, Evaluate evaluate) {
    assigned_.visit(
        v, [&] { return plus(limit(), assigned_offset_); },
        [&](std::span<const std::uint32_t> sources) {
          for (NodeId source : sources) prefetch(source);
          for (NodeId source : sources) prefetch_arcs(source);
        },
        [&](NodeId source, std::int64_t key, NodeId lead) {
          return plus(evaluate(source, plus(key, -assigned_offset_), lead), assigned_offset_);
        });
  }
  template <class Limit, class Evaluate>
  void visit_incoming(NodeId v, Limit limit, Evaluate evaluate) {
    incoming_.visit(
        v, [&] { return plus(limit(), incoming_offset_); },
        [&](std::span<const std::uint32_t> arcs) {
          for (std::uint32_t arc : arcs) fetch_line(&source_arcs[arc]);
          for (std::uint32_t arc : arcs) fetch_line(&tail_[source_arcs[arc].id]);
          for (std::uint32_t arc : arcs) prefetch(source_of(arc));
        },
        [&](std::uint32_t arc, std::int64_t key, NodeId lead) {
          const std::int64_t exact =
              plus(evaluate(arc, plus(key, -incoming_offset_), lead), incoming_offset_);
          if (exact != key) note_incoming_key(arc, exact);
          return exact;
        });
  }
  // Must be called after the prices of these nodes rose (fell) by reach - distance, where that is >
  // 0.
  void prices_moved(std::span<const NodeId> moved, std::int64_t reach, bool up);
  // Must be called after any prices rose (fell), by at most `most`.
  void prices_moved(std::int64_t most, bool up);
  // Must be called after one node's price was changed by other means than a search, with the
  // invariant intact.
  void price_changed(NodeId v, bool up) {
    if (!up) return lower_assigned_keys(v);
    const std::pair<std::int64_t, NodeId> risen{0, v};
    lower_incoming_keys({&risen, 1});
  }

  decltype(ResidualGraph<V>::nodes)& nodes;
  decltype(ResidualGraph<V>::edges)& edges;
  decltype(ResidualGraph<V>::hubs)& hubs;
  LargeArray<SourceArc> source_arcs;

 private:
  static constexpr std::uint32_t kSourceBit = std::uint32_t{1} << 31;
  // Maximum number of keys updated after one search; beyond it, the offset is raised.
  static constexpr std::int64_t kMaxKeyUpdates = 32'768;
  // Maximum offset: shifted keys must fit their type.
  static constexpr std::int64_t kMaxOffset = std::int64_t{1} << (sizeof(V) == 4 ? 29 : 58);

  static constexpr std::int64_t kNotKeyed = std::numeric_limits<std::int64_t>::min();
  struct Source {
    std::uint32_t begin = 0, count = 0, current = kNone;
    std::uint32_t room = 0;  // for arcs
    // The keys of its arcs in the incoming lists are at most their cost - keyed_price. It is not
    // below the price of the source - the offset, unless its arcs changed.
    std::int64_t keyed_price = kNotKeyed;
    bool listed = false;   // its arcs, except the current one, are in the incoming lists
    bool changed = false;  // see mark_changed
  };
  static constexpr std::uint32_t kMinRoom = 8;

  static std::int64_t plus(std::int64_t key, std::int64_t offset) {
    return key == kInfinity || key == -kInfinity ? key : key + offset;
  }
  void take_block(Source& source, std::uint32_t room);
  void release_block(const Source& source);
  void relocate(NodeId source, std::uint32_t room);
  std::int64_t assigned_key(NodeId source) const;
  // What the price of an assigned source is compared with: see Source::keyed_price.
  std::int64_t price_to_key(const Source& source) const {
    return cost_through(source.current) - incoming_offset_;
  }
  void note_incoming_key(std::uint32_t arc, std::int64_t key) {
    Source& source = sources_[source_of(arc)];
    source.keyed_price = std::min(source.keyed_price, source_arcs[arc].cost - key);
  }
  void set_incoming_keys(NodeId source);
  void lower_incoming_keys(std::span<const std::pair<std::int64_t, NodeId>> risen);
  void lower_keys_of_risen_sources();
  void lower_assigned_keys(NodeId v);
  // Returns whether it became so large that all keys were recomputed instead.
  bool raise_offset(std::int64_t by, bool up);
  void refresh_all();

  ResidualGraph<V>& graph_;
  const std::vector<NodeId>& tail_;               // by arc id
  std::vector<Source> sources_;                   // by node
  std::vector<bool> is_source_;                   // by node; apart, so that all stay in the cache
  std::uint32_t last_position_ = 0;               // where `position_of` found the last arc
  std::vector<std::vector<std::uint32_t>> free_;  // free blocks of `source_arcs`, by size
  KeyedLists<V> assigned_, incoming_;
  std::int64_t assigned_offset_ = 0, incoming_offset_ = 0;
  std::vector<std::pair<std::int64_t, NodeId>> price_changes_;
  struct LoweredKey {
    NodeId head;
    std::uint32_t arc;
    std::int64_t key;
  };
  // used by `lower_incoming_keys`
  std::vector<NodeId> risen_sources_;
  std::vector<LoweredKey> lowered_keys_;
};

extern template class UnitSources<std::int32_t>;
extern template class UnitSources<std::int64_t>;

// The engine of incremental successive shortest paths (incremental_ssp.hpp) for networks most of
// whose arcs belong to unit sources, that is, to tasks. These are not nodes of the graph. So a
// search visits machines and aggregators only, and at each of them only those tasks whose next best
// place is within its distance bound.
//
// A source that gets another supply, an arc in, or an arc without capacity becomes a core node for
// the rest of its life.
std::unique_ptr<Engine> make_unit_source_engine(const EngineStart& start, const Control& control);

// Whether most arcs belong to unit sources.
bool mostly_unit_sources(const EngineStart& start, const Control& control);

// The first stage of a solve from scratch (initial_assignment.cpp).
struct InitialAssignment {
  // kOptimal: see `complete`. kInfeasible, kBudget: the state reached. kCancelled
  Status status = Status::kOptimal;
  bool complete = false;  // whether no imbalance is left
  bool local = true;      // false: given up, because searches went far
  __int128 cost = 0;      // of `flow`
  // per arc; empty, like the price, if nothing was done or the result is of no use
  std::vector<std::int64_t> flow;
  std::vector<std::int64_t> price;  // per node
};

// Precondition: numbers are in range and supplies balance. `narrow`: see Ranges (network.hpp).
InitialAssignment assign_unit_sources(const Network& network, NodeId root, bool narrow,
                                      const Control& control, Stats& stats);

}  // namespace flowsolver
