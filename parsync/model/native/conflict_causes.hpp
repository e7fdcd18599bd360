// Why claims conflict. A conflict has the first of these causes that applies; its rival is the
// transaction that took the slot.
//
//   Same tick   The rival was handled at the same nanosecond.
//   Quality     The slot is preferred: its weight is above the mean of the cell's slots
//               (SlotTable). So a draw by weight from all slots favours it, and every scheduler
//               draws by the same weights. With equal weights no slot is preferred.
//   Staleness   Everything else.
//
// These are the platform's causes (parsync/metrics/conflict_causes.py), where the second is that
// both tasks prefer the machine, and a tick is a microsecond.
//
// Besides, a conflict was visible if the rival was handled before the claim was decided, that is,
// before its round began: a view of that moment would have shown that the slot was taken. Under
// each of the last two causes there are visible and hidden ones; none of the same tick is visible.
//
// Which transaction took a slot is kept as its number, in 32 bits, and compared modulo 2^32. This
// is exact unless 2^32 transactions are handled while a task runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "idle_slots.hpp"
#include "shared_state/native/huge_pages.hpp"
#include "slot_table.hpp"

namespace agora::slots {

struct ConflictCauses {
  int64_t same_tick = 0;
  int64_t quality = 0;
  int64_t stale = 0;
  int64_t visible = 0;  // not a cause

  bool operator==(const ConflictCauses&) const = default;
};

// Counts the conflicts of one transaction after another.
class CauseCounter {
 public:
  explicit CauseCounter(const SlotTable& table) : table_(&table), taker_(table.slots()) {}

  // The number of transactions handled so far: for a claim, it says when it was decided.
  uint32_t transactions() const { return handled_; }
  // Those of the transaction handled last.
  const ConflictCauses& causes() const { return causes_; }

  // A transaction is handled now, whose claims were decided when so many had been handled.
  void count(int64_t now_ns, uint32_t handled_at_decision, std::span<const Pick> winners,
             std::span<const Pick> losers) {
    if (now_ns != tick_ns_) {
      tick_ns_ = now_ns;
      handled_before_tick_ = handled_;
    }
    const uint32_t number = ++handled_;
    const uint32_t in_tick = number - handled_before_tick_;
    const uint32_t since_decision = number - handled_at_decision;
    ConflictCauses found;
    for (const Pick loser : losers) {
      const uint32_t ago = number - taker_[loser.slot];  // in transactions
      const bool same_tick = ago < in_tick;
      found.same_tick += same_tick;
      found.quality += !same_tick & table_->is_preferred(loser.slot, loser.group);
      found.visible += ago >= since_decision;
    }
    found.stale = static_cast<int64_t>(losers.size()) - found.same_tick - found.quality;
    causes_ = found;
    for (const Pick winner : winners) taker_[winner.slot] = number;
  }

 private:
  const SlotTable* table_;
  HugePageVector<uint32_t> taker_;  // [S]: the number of the transaction that took it last
  uint32_t handled_ = 0;            // which is the number of the last transaction
  int64_t tick_ns_ = -1;
  uint32_t handled_before_tick_ = 0;
  ConflictCauses causes_;
};

}  // namespace agora::slots
