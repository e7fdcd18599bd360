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

}  // namespace agora::slots
