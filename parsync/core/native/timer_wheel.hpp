// Timer wheel: millions of pending task ends, taken out in batches, one per tick.
//
// Definitions. A tick is a multiple of tick_us; an entry that ends at end_us belongs to tick
// ceil(end_us / tick_us). The wheel has SLOTS slots; tick t lives in slot t mod SLOTS. An entry is
// (end_us, id, owner). Invariant. All entries of a slot are kept together with their tick;
// take(now) removes exactly the entries whose tick time is at most now, in order of (end_us, order
// of insertion), so the outcome does not depend on the wheel's layout. Complexity. O(1) per
// insertion; take is O(entries taken * log + slots passed), plus entries of later laps found in a
// passed slot. next_tick() is exact; it walks occupied slots through a bitmap, and falls back to
// one pass over the entries when all lie a lap or more ahead.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <unordered_set>
#include <vector>

namespace agora {

class TimerWheel {
 public:
  struct Entry {
    int64_t end_us;
    int64_t order;
    int64_t id;
    int32_t owner;
    int32_t machine;
  };

  explicit TimerWheel(int64_t tick_us)
      : tick_us_(tick_us), slots_(SLOTS), occupied_(SLOTS / 64, 0) {
    if (tick_us <= 0) throw std::invalid_argument("tick_us must be positive");
  }

  int64_t size() const { return size_; }

  void add(int64_t end_us, int64_t id, int32_t owner, int32_t machine = -1) {
    if (end_us < 0) throw std::invalid_argument("end_us must not be negative");
    const int64_t tick = std::max(tick_of(end_us), next_);
    const auto slot = static_cast<size_t>(tick % SLOTS);
    slots_[slot].push_back({end_us, order_++, id, owner, machine});
    occupied_[slot / 64] |= uint64_t{1} << (slot % 64);
    ++size_;
  }

  // Its end no longer counts. Ids unknown to the wheel are the caller's mistake and would be kept
  // forever, so callers cancel only what they added.
  void cancel(int64_t id) { cancelled_.insert(id); }

  // Entries whose tick time is at most now_us, ordered by (end_us, insertion); cancelled ones are
  // dropped.
  std::vector<Entry> take(int64_t now_us) {
    std::vector<Entry> taken;
    if (now_us < 0) return taken;
    const int64_t last = now_us / tick_us_;
    // at most one lap, however far the jump
    const int64_t passed = std::min<int64_t>(last - next_ + 1, SLOTS);
    for (int64_t k = 0; k < passed; ++k) {
      const auto slot = static_cast<size_t>((next_ + k) % SLOTS);
      if (!(occupied_[slot / 64] >> (slot % 64) & 1)) continue;
      auto& entries = slots_[slot];
      size_t kept = 0;
      for (Entry& entry : entries) {
        if (tick_of(entry.end_us) <= last)
          taken.push_back(entry);
        else
          entries[kept++] = entry;
      }
      entries.resize(kept);
      if (kept == 0) occupied_[slot / 64] &= ~(uint64_t{1} << (slot % 64));
    }
    next_ = std::max(next_, last + 1);
    size_ -= static_cast<int64_t>(taken.size());
    std::sort(taken.begin(), taken.end(), [](const Entry& a, const Entry& b) {
      return a.end_us != b.end_us ? a.end_us < b.end_us : a.order < b.order;
    });
    if (!cancelled_.empty())
      std::erase_if(taken, [this](const Entry& entry) { return cancelled_.erase(entry.id) > 0; });
    return taken;
  }

  // Time in us of the earliest tick that holds an entry; -1 if there is none.
  int64_t next_us() const {
    if (size_ == 0) return -1;
    for (int64_t k = 0; k < SLOTS;) {
      const auto slot = static_cast<size_t>((next_ + k) % SLOTS);
      const uint64_t word = occupied_[slot / 64] >> (slot % 64);
      if (word == 0) {
        k += 64 - static_cast<int64_t>(slot % 64);
        continue;
      }
      const int skip = std::countr_zero(word);
      k += skip;
      if (k >= SLOTS) break;
      for (const Entry& entry : slots_[static_cast<size_t>((next_ + k) % SLOTS)])
        if (std::max(tick_of(entry.end_us), next_) == next_ + k) return (next_ + k) * tick_us_;
      ++k;
    }
    int64_t earliest = std::numeric_limits<int64_t>::max();
    for (const auto& entries : slots_)
      for (const Entry& entry : entries) earliest = std::min(earliest, tick_of(entry.end_us));
    return earliest * tick_us_;
  }

 private:
  static constexpr int64_t SLOTS = 1 << 14;

  int64_t tick_of(int64_t end_us) const { return end_us / tick_us_ + (end_us % tick_us_ != 0); }

  int64_t tick_us_;
  int64_t next_ = 0;  // first tick not yet taken
  int64_t order_ = 0;
  int64_t size_ = 0;
  std::vector<std::vector<Entry>> slots_;
  std::vector<uint64_t> occupied_;
  std::unordered_set<int64_t> cancelled_;
};

}  // namespace agora
