// Events that are still to come, in the order of their delivery: time, then priority
// (parsync/core/event.py), then the order in which they were added.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "event.hpp"

namespace agora {

class EventHeap {
 public:
  struct Entry {
    int64_t at_us;
    Priority priority;
    uint64_t sequence;
    int64_t address;
    EventPtr event;
  };

  bool empty() const { return entries_.empty(); }
  // When the first is due. There is one.
  int64_t next_us() const { return entries_.front().at_us; }

  void push(int64_t at_us, int64_t address, EventPtr event) {
    const Priority priority = event->priority();
    entries_.push_back({at_us, priority, ++added_, address, std::move(event)});
    std::push_heap(entries_.begin(), entries_.end(), IsLater{});
  }

  // Takes off the first. There is one.
  Entry pop() {
    std::pop_heap(entries_.begin(), entries_.end(), IsLater{});
    Entry entry = std::move(entries_.back());
    entries_.pop_back();
    return entry;
  }

  void clear() { entries_.clear(); }

  // How many were ever added. The sequence of an entry is its number among them.
  uint64_t added() const { return added_; }
  // Puts entries back, in any order, and goes on counting from `added`.
  void restore(std::vector<Entry> entries, uint64_t added) {
    entries_ = std::move(entries);
    std::make_heap(entries_.begin(), entries_.end(), IsLater{});
    added_ = added;
  }

  // All of them, in order.
  std::vector<const Entry*> in_order() const {
    std::vector<const Entry*> entries;
    for (const Entry& entry : entries_) entries.push_back(&entry);
    std::sort(entries.begin(), entries.end(),
              [](const Entry* a, const Entry* b) { return IsLater{}(*b, *a); });
    return entries;
  }

 private:
  struct IsLater {
    bool operator()(const Entry& a, const Entry& b) const {
      if (a.at_us != b.at_us) return a.at_us > b.at_us;
      if (a.priority != b.priority) return a.priority > b.priority;
      return a.sequence > b.sequence;
    }
  };

  std::vector<Entry> entries_;
  uint64_t added_ = 0;
};

}  // namespace agora
