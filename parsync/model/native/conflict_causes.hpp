// Why claims conflict. A conflict has the first of these causes that applies:
//
//   Same tick   The slot was taken at the same nanosecond, by a transaction handled before.
//   Quality     The slot is preferred: its weight is above the mean of the cell's slots
//               (SlotTable). So a draw by weight from all slots favours it, and every scheduler
//               draws by the same weights. With equal weights no slot is preferred.
//   Staleness   Everything else.
//
// These are the platform's causes (parsync/metrics/conflicts.py), where the second is that
// both tasks prefer the machine, and a tick is a microsecond.
//
// Besides, a conflict was visible if the slot was in use when the claim was decided, that is, when
// its round began: a view of that moment would have shown it. All others were hidden: no view
// could have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "idle_slots.hpp"
#include "slot_table.hpp"

namespace agora::slots {

struct ConflictCauses {
  int64_t same_tick = 0;
  int64_t quality = 0;
  int64_t stale = 0;
  int64_t visible = 0;  // not a cause

  ConflictCauses& operator+=(const ConflictCauses& other) {
    same_tick += other.same_tick;
    quality += other.quality;
    stale += other.stale;
    visible += other.visible;
    return *this;
  }
};

// The slots that were taken at this very time. Most often one transaction is all that happens at a
// time, and nobody asks.
class TakenInTick {
 public:
  explicit TakenInTick(size_t slots) : bits_((slots + 63) / 64) {}

  // From now on it is this time; contains() knows what was added before. Requires: not earlier.
  void begin(int64_t now_ns) {
    if (now_ns == now_ns_) {
      for (; marked_ < taken_.size(); ++marked_) word(taken_[marked_]) |= bit(taken_[marked_]);
      return;
    }
    now_ns_ = now_ns;
    for (; marked_ > 0; --marked_) word(taken_[marked_ - 1]) = 0;
    taken_.clear();
  }
  void add(std::span<const Pick> taken) { taken_.insert(taken_.end(), taken.begin(), taken.end()); }
  bool contains(Pick pick) const { return bits_[pick.slot / 64] & bit(pick); }
  // Whether it contains anything.
  bool any() const { return marked_ > 0; }

 private:
  uint64_t& word(Pick pick) { return bits_[pick.slot / 64]; }
  static uint64_t bit(Pick pick) { return uint64_t{1} << (pick.slot % 64); }

  std::vector<uint64_t> bits_;  // bitmap
  std::vector<Pick> taken_;
  size_t marked_ = 0;  // so many of taken_ are in the bitmap
  int64_t now_ns_ = -1;
};

// The causes of a transaction's conflicts; visible ones are not counted.
inline ConflictCauses causes_of(std::span<const Pick> rejected, const TakenInTick& taken,
                                const SlotTable& table) {
  int64_t same_tick = 0, preferred = 0;
  for (const Pick claim : rejected) preferred += table.is_preferred(claim.slot, claim.group);
  if (taken.any())
    for (const Pick claim : rejected)
      if (taken.contains(claim)) {
        ++same_tick;
        preferred -= table.is_preferred(claim.slot, claim.group);
      }
  const int64_t all = static_cast<int64_t>(rejected.size());
  return {.same_tick = same_tick, .quality = preferred, .stale = all - same_tick - preferred};
}

}  // namespace agora::slots
