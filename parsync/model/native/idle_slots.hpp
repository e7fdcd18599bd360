// A set of idle slots: what the master knows, and what a scheduler believes.
//
// Invariant. The first count(g) entries of a group's list are the places, within the group, of its
// slots in the set; the sums of partitions are those of these slots. Weights are integers, so sums
// never drift. Complexity: add, remove O(1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "shared_state/native/huge_pages.hpp"
#include "slot_table.hpp"

namespace agora::slots {

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

}  // namespace agora::slots
