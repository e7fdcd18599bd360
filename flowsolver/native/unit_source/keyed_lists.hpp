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
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "graph/large_array.hpp"
#include "network.hpp"

namespace flowsolver {

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

  // Fetches v's list into the cache.
  void prefetch(NodeId v) const { __builtin_prefetch(&lists_[v], 1); }

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
  // meanwhile; `evaluate` returns the new key.
  template <class Limit, class Evaluate>
  void visit(NodeId v, Limit limit, Evaluate evaluate) {
    const List list = lists_[v];
    Entry* const entries = entries_.data() + list.begin;
    if (list.size <= kFlat) {
      for (std::uint32_t i = 0; i < list.size; ++i) {
        Entry& entry = entries[i];
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

}  // namespace flowsolver
