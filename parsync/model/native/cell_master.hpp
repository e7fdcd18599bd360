// The master of the cell: which slots are idle in truth, and the queues of claims.
//
// Claims are handled first in, first out, each at the master of its slot's partition. Since two
// claims for the same slot wait in the same queue, the order of arrival decides who gets it; the
// service time of a claim delays the answer only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "conflict_causes.hpp"
#include "idle_slots.hpp"

namespace agora::slots {

class CellMaster {
 public:
  CellMaster(const SlotTable& table, int64_t service_ns)
      : table_(&table),
        idle_(table),
        place_(table.slots()),
        busy_((table.slots() + 63) / 64),
        causes_(table),
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

  // The number of transactions handled so far: for a round that begins now.
  uint32_t transactions() const { return causes_.transactions(); }
  // Why claims of the transaction handled last were not granted.
  ConflictCauses causes() const { return causes_.causes(); }

  // Handles a transaction: grants the claims whose slots are idle, and moves them to the front of
  // `claims`, in their order. Returns their number; accepted[i] says whether claim i was one of
  // them. They were decided when so many transactions had been handled.
  size_t grant(int64_t now_ns, uint32_t handled_at_decision, std::span<Pick> claims,
               std::vector<uint8_t>& accepted) {
    accepted.resize(claims.size());
    rejected_.resize(claims.size());
    size_t granted = 0, rejected = 0;
    // Nobody can predict who wins, so nothing here branches on it.
    for (size_t i = 0; i < claims.size(); ++i) {
      const Pick claim = claims[i];
      const bool wins = !is_busy(claim.slot);
      busy_[claim.slot / 64] |= uint64_t{1} << (claim.slot % 64);
      accepted[i] = wins;
      claims[granted] = claim;
      rejected_[rejected] = claim;
      granted += wins;
      rejected += !wins;
    }
    const std::span<const Pick> winners = claims.first(granted);
    for (const Pick winner : winners) {
      __builtin_prefetch(&place_[winner.slot], 1);
      __builtin_prefetch(&table_->value[winner.slot]);
    }
    causes_.count(now_ns, handled_at_decision, winners, {rejected_.data(), rejected});
    for (const Pick winner : winners) {
      const uint16_t place = place_[winner.slot];
      place_[idle_.remove_at(place, winner)] = place;
    }
    return granted;
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
  CauseCounter causes_;
  std::vector<Pick> rejected_;  // of the transaction at hand
  int64_t service_ns_;
  std::vector<int64_t> free_at_ns_;  // per partition; empty without a service time
};

}  // namespace agora::slots
