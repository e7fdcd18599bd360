// The pending events of schedulers, in the order of (time, priority, order of insertion).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace agora::slots {

// By priority: at equal times slots become free first, then views are synchronised, then
// transactions reach the master and answers the schedulers, then decisions begin.
enum class EventKind : uint8_t { Free = 0, Sync = 1, Commit = 2, Answer = 3, Decide = 4 };

// A time and a priority as one number.
constexpr int64_t event_key(int64_t time_ns, EventKind kind) {
  return time_ns << 3 | static_cast<int64_t>(kind);
}
constexpr int64_t time_of(int64_t key) { return key >> 3; }
constexpr EventKind kind_of(int64_t key) { return static_cast<EventKind>(key & 7); }
constexpr int64_t kNoEvent = std::numeric_limits<int64_t>::max();

struct Event {
  int64_t key;
  uint64_t order;
  uint64_t number;  // Commit, Answer: the round; Decide: the scheduler's wake number
  uint32_t scheduler;
};

class EventQueue {
 public:
  int64_t next_key() const { return heap_.empty() ? kNoEvent : heap_.front().key; }

  void push(int64_t time_ns, EventKind kind, uint32_t scheduler, uint64_t number) {
    heap_.push_back({event_key(time_ns, kind), order_++, number, scheduler});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool later(const Event& a, const Event& b) {
    return a.key != b.key ? a.key > b.key : a.order > b.order;
  }

  std::vector<Event> heap_;
  uint64_t order_ = 0;
};

}  // namespace agora::slots
