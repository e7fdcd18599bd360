// The slots of a cell and what never changes about them.
//
// Definitions. A partition is a contiguous block of slots. A slot has a score, drawn from
// N(10, V), and a weight, an integer of 16 significant bits, at most 2^31. Within a partition slots
// are numbered from the heaviest to the lightest, which changes nothing, since their scores are
// drawn independently. A group is a run of at most 65,535 slots of one partition whose weights have
// the same number of bits, 2^bits being the next power of two. So a place within a group fits in 16
// bits, which keeps the schedulers' views small. The envelope of a group in a set of slots is the
// number of its slots in the set x 2^bits: at most twice their weight, and enough to draw from them
// exactly by weight (slot_draws.hpp). Every partition has the same number of groups, some of them
// empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "shared_state/native/huge_pages.hpp"
#include "slot_settings.hpp"

namespace agora::slots {

// Weight and score as 16 bits each: four bytes that most steps of a simulation look up at random.
struct SlotValue {
  uint16_t weight;  // in units of 2^shift of the group
  uint16_t score;   // in steps of score_step above lowest_score
};

struct SlotTable {
  // Requires: check(settings) has refused nothing.
  explicit SlotTable(const SlotSettings& settings);

  size_t slots() const { return value.size(); }
  size_t groups() const { return partition.size(); }

  size_t partitions;
  size_t groups_per_partition = 0;
  double lowest_score = 0;
  double score_step = 0;               // 2^-16 of the range of scores
  HugePageVector<SlotValue> value;     // [S]
  std::vector<uint32_t> start;         // [groups + 1]: the first slot of the group
  std::vector<uint32_t> partition;     // [groups]
  std::vector<uint8_t> shift;          // [groups]: a slot's weight is value.weight << shift
  std::vector<uint8_t> envelope_bits;  // [groups]: and is below 2^envelope_bits

  // A slot is preferred if its weight is above the mean of all slots.
  std::vector<uint32_t> preferred_end;  // [groups]: its preferred slots come before this one

  bool ranks_partitions;  // some scheduler ranks partitions by the quality of their slots
  PartitionQuality ranks_by;

  int64_t weight(uint32_t slot, uint32_t group) const {
    return int64_t{value[slot].weight} << shift[group];
  }
  bool is_preferred(uint32_t slot, uint32_t group) const { return slot < preferred_end[group]; }
  // What partitions are ranked by the mean of.
  int64_t quality(uint32_t slot, uint32_t group) const {
    return ranks_by == PartitionQuality::MeanScore ? value[slot].score : weight(slot, group);
  }
};

struct Pick {
  uint32_t slot;
  uint32_t group;
};

struct PartitionSum {
  int64_t envelope = 0;  // of its groups (SlotTable)
  int64_t count = 0;
  int64_t quality = 0;  // of its slots; 0 unless partitions are ranked by it (SlotTable)
};

class IdleSlots {
 public:
  explicit IdleSlots(const SlotTable& table)
      : table_(&table),
        list_(table.slots()),
        count_(table.groups()),
        partition_(table.partitions) {}

  const SlotTable& table() const { return *table_; }
  const PartitionSum& partition(size_t p) const { return partition_[p]; }
  int64_t count() const { return count_all_; }
  uint32_t count(uint32_t group) const { return count_[group]; }
  int64_t envelope(uint32_t group) const {
    return static_cast<int64_t>(count_[group]) << table_->envelope_bits[group];
  }
  uint32_t slot_at(uint32_t group, uint32_t place) const {
    return table_->start[group] + list_[table_->start[group] + place];
  }

  // Ask for the memory that these read: envelope(group) of a partition, slot_at(group, place).
  void prefetch_counts(size_t p) const {
    __builtin_prefetch(&count_[p * table_->groups_per_partition]);
    __builtin_prefetch(&count_[(p + 1) * table_->groups_per_partition - 1]);
  }
  void prefetch(uint32_t group, uint32_t place) const {
    __builtin_prefetch(&list_[table_->start[group] + place], 1);
  }

  // Requires: not in the set. Returns the place in the group's list.
  uint32_t add(Pick pick) {
    const uint32_t start = table_->start[pick.group];
    const uint32_t place = count_[pick.group]++;
    list_[start + place] = static_cast<uint16_t>(pick.slot - start);
    change_sums(pick, +1);
    return place;
  }

  // Requires: the slot is at this place of its group's list. The last of the list takes the place;
  // returns that slot (the removed one if it was the last).
  uint32_t remove_at(uint32_t place, Pick pick) {
    const uint32_t start = table_->start[pick.group];
    const uint16_t last = list_[start + --count_[pick.group]];
    list_[start + place] = last;
    change_sums(pick, -1);
    return start + last;
  }

  // Makes the partition what it is in `other`.
  void copy_partition(const IdleSlots& other, size_t p) {
    const size_t first = p * table_->groups_per_partition;
    const size_t end = first + table_->groups_per_partition;
    for (size_t group = first; group < end; ++group) {
      const uint32_t start = table_->start[group];
      if (const uint32_t count = other.count_[group]; count > 0)
        std::memcpy(&list_[start], &other.list_[start], count * sizeof(uint16_t));
      count_[group] = other.count_[group];
    }
    count_all_ += other.partition_[p].count - partition_[p].count;
    partition_[p] = other.partition_[p];
  }

 private:
  void change_sums(Pick pick, int64_t sign) {
    PartitionSum& sum = partition_[table_->partition[pick.group]];
    sum.envelope += sign << table_->envelope_bits[pick.group];
    sum.count += sign;
    // Looked up only where needed: most often it lies in no cache.
    if (table_->ranks_partitions) sum.quality += sign * table_->quality(pick.slot, pick.group);
    count_all_ += sign;
  }

  const SlotTable* table_;
  HugePageVector<uint16_t> list_;  // [S]
  std::vector<uint32_t> count_;    // [groups]
  std::vector<PartitionSum> partition_;
  int64_t count_all_ = 0;
};

class BestScores {
 public:
  explicit BestScores(const SlotTable& table) : descending_(table.slots()) {
    std::vector<uint32_t> slots_of_score(size_t{1} << 16);
    for (const SlotValue& value : table.value) ++slots_of_score[value.score];
    auto next = descending_.begin();
    for (size_t score = slots_of_score.size(); score-- > 0;)
      for (uint32_t i = 0; i < slots_of_score[score]; ++i) *next++ = static_cast<uint16_t>(score);
  }

  // In steps (SlotTable). Requires: 0 <= slots <= S. Complexity: O(change since the last call).
  int64_t sum(int64_t slots) {
    sum_ += slots > slots_ ? between(slots_, slots) : -between(slots, slots_);
    slots_ = slots;
    return sum_;
  }

 private:
  int64_t between(int64_t first, int64_t end) const {
    return std::accumulate(descending_.begin() + first, descending_.begin() + end, int64_t{0});
  }

  std::vector<uint16_t> descending_;  // [S]
  int64_t slots_ = 0;
  int64_t sum_ = 0;  // of the first slots_
};

}  // namespace agora::slots
