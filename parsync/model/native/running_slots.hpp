// The slots that run tasks, in the order in which they become free.
//
// A run of slots starts and ends together: the winners of one transaction. All tasks run equally
// long, so runs end in the order in which they are added, but for masters with a service time,
// whose answers may overtake each other. Runs that are out of order wait in a heap beside the
// queue; of equal ends the earlier added goes first.
//
// Complexity: add and remove O(slots of the run), and O(log) of the runs out of order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "idle_slots.hpp"

namespace agora::slots {

class RunningSlots {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  RunningSlots() : slots_(1024), runs_(256) {}

  int64_t count() const { return count_; }
  int64_t score() const { return score_; }  // summed over the slots, in steps (SlotTable)
  int64_t next_end_ns() const { return next_end_ns_; }  // kNever: nothing runs

  // `score` is the sum of those of the slots.
  void add(int64_t end_ns, uint32_t owner, std::span<const Pick> slots, int64_t score) {
    if (end_slot_ - first_slot_ + slots.size() > slots_.size())
      grow(slots_, first_slot_, end_slot_, slots.size());
    if (end_run_ - first_run_ == runs_.size()) grow(runs_, first_run_, end_run_, 1);
    at(runs_, end_run_) = {end_ns, end_slot_, score, static_cast<uint32_t>(slots.size()),
                           owner,  false};
    for (const Pick slot : slots) at(slots_, end_slot_++) = slot;
    count_ += static_cast<int64_t>(slots.size());
    score_ += score;
    if (end_ns < latest_in_order_ns_) {
      late_.push({end_ns, end_run_});
      at(runs_, end_run_).out_of_order = true;
    } else {
      latest_in_order_ns_ = end_ns;
    }
    ++end_run_;
    find_next();
  }

  // Whose slots end next. Requires: something runs.
  uint32_t next_owner() { return at(runs_, next_is_late() ? late_.top().second : in_order_).owner; }

  // Removes the run that ends next, calling each(slots) for one or two spans of its slots.
  // Requires: something runs.
  template <class Each>
  void remove_next(Each each) {
    uint64_t number = in_order_;
    if (next_is_late()) {
      number = late_.top().second;
      late_.pop();
    } else {
      ++in_order_;
    }
    Run& run = at(runs_, number);
    const uint64_t first = run.first_slot & (slots_.size() - 1);
    const uint64_t before_wrap = std::min<uint64_t>(run.count, slots_.size() - first);
    each(std::span<const Pick>(&slots_[first], before_wrap));
    if (before_wrap < run.count)
      each(std::span<const Pick>(slots_.data(), run.count - before_wrap));
    count_ -= run.count;
    score_ -= run.score;
    run.count = 0;
    release();
    find_next();
  }

 private:
  struct Run {
    int64_t end_ns;
    uint64_t first_slot;
    int64_t score;
    uint32_t count;  // 0: removed
    uint32_t owner;
    bool out_of_order;
  };
  using Late = std::pair<int64_t, uint64_t>;  // end, number of the run

  // Slots and runs are numbered for good; number i lies at i mod the (power of two) size.
  template <class T>
  static T& at(std::vector<T>& ring, uint64_t number) {
    return ring[number & (ring.size() - 1)];
  }
  template <class T>
  static void grow(std::vector<T>& ring, uint64_t first, uint64_t end, size_t more) {
    size_t size = ring.size();
    while (size < end - first + more) size *= 2;
    std::vector<T> larger(size);
    for (uint64_t i = first; i < end; ++i) at(larger, i) = at(ring, i);
    ring.swap(larger);
  }

  void release() {
    while (first_run_ < end_run_ && at(runs_, first_run_).count == 0) ++first_run_;
    first_slot_ = first_run_ < end_run_ ? at(runs_, first_run_).first_slot : end_slot_;
  }

  bool next_is_late() {
    if (late_.empty()) return false;
    const Run* run = in_order_run();
    return run == nullptr || late_.top() < Late{run->end_ns, in_order_};
  }
  const Run* in_order_run() {
    while (in_order_ < end_run_ && at(runs_, in_order_).out_of_order) ++in_order_;
    return in_order_ < end_run_ ? &at(runs_, in_order_) : nullptr;
  }
  void find_next() {
    const Run* run = in_order_run();
    next_end_ns_ = run == nullptr ? kNever : run->end_ns;
    if (!late_.empty()) next_end_ns_ = std::min(next_end_ns_, late_.top().first);
  }

  std::vector<Pick> slots_;  // ring
  std::vector<Run> runs_;    // ring
  uint64_t first_slot_ = 0, end_slot_ = 0;
  uint64_t first_run_ = 0, end_run_ = 0;
  uint64_t in_order_ = 0;  // the next run that is not out of order, or one before it that is
  std::priority_queue<Late, std::vector<Late>, std::greater<>> late_;
  int64_t latest_in_order_ns_ = 0;
  int64_t next_end_ns_ = kNever;
  int64_t count_ = 0;
  int64_t score_ = 0;
};

}  // namespace agora::slots
