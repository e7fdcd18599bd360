// The cell of a slot simulation: which slots are idle in truth, why claims for others conflict, and
// which slots run tasks until when.
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

#include "slot_table.hpp"

namespace agora::slots {

// Why claims conflict. A conflict has the first of these causes that applies:
//
//   Same tick   The slot was taken at the same nanosecond, by a transaction handled before.
//   Quality     The slot is preferred: its weight is above the mean of the cell's slots
//               (SlotTable). So a draw by weight from all slots favours it, and every scheduler
//               draws by the same weights. With equal weights no slot is preferred.
//   Staleness   Everything else.
//
// These are the platform's causes (parsync/metrics/kinds/conflicts.py), where the second is that
// both tasks prefer the machine, and a tick is a microsecond.
//
// Besides, a conflict was visible if the slot was in use when the claim was decided, that is, when
// its round began: a view of that moment would have shown it. All others were hidden: no view
// could have.
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

// The master of the cell: which slots are idle in truth, and the queues of claims.
//
// Claims are handled first in, first out, each at the master of its slot's partition. Since two
// claims for the same slot wait in the same queue, the order of arrival decides who gets it; the
// service time of a claim delays the answer only.
class CellMaster {
 public:
  CellMaster(const SlotTable& table, int64_t service_ns)
      : table_(&table),
        idle_(table),
        place_(table.slots()),
        busy_((table.slots() + 63) / 64),
        taken_(table.slots()),
        service_ns_(service_ns),
        free_at_ns_(service_ns > 0 ? table.partitions : 0) {
    for (uint32_t group = 0; group < table.groups(); ++group)
      for (uint32_t slot = table.start[group]; slot < table.start[group + 1]; ++slot)
        place_[slot] = static_cast<uint16_t>(idle_.add({slot, group}));
  }

  const IdleSlots& idle() const { return idle_; }
  bool is_busy(uint32_t slot) const { return busy_[slot / 64] >> (slot % 64) & 1; }
  // Requires: idle. Its place in the list of its group.
  uint32_t place(uint32_t slot) const { return place_[slot]; }

  // in_use[i] says whether the slot of claim i is in use now.
  void note_in_use(std::span<const Pick> claims, std::vector<uint8_t>& in_use) const {
    in_use.resize(claims.size());
    uint8_t* next = in_use.data();
    for (const Pick claim : claims) *next++ = is_busy(claim.slot);
  }

  // A transaction that has been handled. The spans are valid until the next one.
  struct Outcome {
    std::span<const uint8_t> accepted;  // for each claim
    std::span<const Pick> winners;      // in the order of the claims
    ConflictCauses causes;              // of all other claims
  };

  // Grants the claims whose slots are idle. `in_use` says of each claim whether its slot was in
  // use when it was decided.
  Outcome grant(int64_t now_ns, std::span<const Pick> claims, std::span<const uint8_t> in_use) {
    accepted_.resize(claims.size());
    winners_.resize(claims.size());
    rejected_.resize(claims.size());
    uint64_t* const busy = busy_.data();  // plain pointers: stores of bytes may change anything
    uint8_t* const accepted = accepted_.data();
    Pick *winner = winners_.data(), *loser = rejected_.data();
    int64_t visible = 0;
    // Nobody can predict who wins, so nothing here branches on it; memory is asked for in any case.
    for (size_t i = 0; i < claims.size(); ++i) {
      const Pick claim = claims[i];
      uint64_t& word = busy[claim.slot / 64];
      const bool wins = !(word >> (claim.slot % 64) & 1);
      word |= uint64_t{1} << (claim.slot % 64);
      accepted[i] = wins;
      __builtin_prefetch(&place_[claim.slot], 1);
      __builtin_prefetch(&table_->value[claim.slot]);
      *winner = claim;
      *loser = claim;
      winner += wins;
      loser += !wins;
      visible += wins ? 0 : in_use[i];
    }
    const std::span<const Pick> winners(winners_.data(), winner);
    const std::span<const Pick> rejected(rejected_.data(), loser);
    taken_.begin(now_ns);
    ConflictCauses causes = causes_of(rejected, taken_, *table_);
    causes.visible = visible;
    taken_.add(winners);
    for (const Pick claim : winners) {
      const uint16_t place = place_[claim.slot];
      place_[idle_.remove_at(place, claim)] = place;
    }
    return {accepted_, winners, causes};
  }

  // When the last of these claims, which arrive now, has been answered.
  int64_t answered_ns(int64_t now_ns, std::span<const Pick> claims) {
    int64_t answered_ns = now_ns;
    if (service_ns_ > 0) {
      for (const Pick claim : claims) {
        int64_t& free_at_ns = free_at_ns_[table_->partition[claim.group]];
        free_at_ns = std::max(free_at_ns, now_ns) + service_ns_;
        answered_ns = std::max(answered_ns, free_at_ns);
      }
    }
    return answered_ns;
  }

  void free(std::span<const Pick> slots) {
    for (const Pick slot : slots) {
      busy_[slot.slot / 64] &= ~(uint64_t{1} << (slot.slot % 64));
      __builtin_prefetch(&place_[slot.slot], 1);
      __builtin_prefetch(&table_->value[slot.slot]);
    }
    for (const Pick slot : slots) place_[slot.slot] = static_cast<uint16_t>(idle_.add(slot));
  }

 private:
  const SlotTable* table_;
  IdleSlots idle_;
  HugePageVector<uint16_t> place_;  // [S], where idle
  std::vector<uint64_t> busy_;      // bitmap
  TakenInTick taken_;
  std::vector<uint8_t> accepted_;         // of the transaction at hand
  std::vector<Pick> winners_, rejected_;  // the same
  int64_t service_ns_;
  std::vector<int64_t> free_at_ns_;  // per partition; empty without a service time
};

// The slots that run tasks, in the order in which they become free.
//
// A run of slots starts and ends together: the winners of one transaction. All tasks run equally
// long, so runs end in the order in which they are added, but for masters with a service time,
// whose answers may overtake each other. Runs that are out of order wait in a heap beside the
// queue; of equal ends the earlier added goes first.
//
// Complexity: add and remove O(slots of the run), and O(log) of the runs out of order.
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
