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

}  // namespace agora::slots
