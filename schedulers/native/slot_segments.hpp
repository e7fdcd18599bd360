// The arcs on which placements pay for the slots of machines (schedulers/flow/slot_arcs.py).
//
// The prices of a machine's slots never fall with the number that are busy. Slots of equal price
// share an arc, a segment. Segments stand for fixed levels of occupancy, so when a machine's load
// moves by a slot, a capacity changes and no cost.
//
// Levels count slots, capacities count units of the flow. Where the two differ in size, the free
// units are spread evenly over the free slots.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace agora {

// What the slots of M machines cost, and how many are free. Rows of `cost` never fall.
struct SlotCosts {
  size_t levels = 0;               // at least 1
  std::span<const int64_t> cost;   // [M, levels]: of the next slot of a machine with so many busy
  std::span<const int64_t> slots;  // [M]: of the empty machine
  std::span<const int64_t> free;   // [M]: slots
  std::span<const int64_t> units;  // [M]: free units

  // The cost of a machine's next slot after `taken` units of those that are free.
  int64_t next(size_t machine, int64_t taken) const {
    int64_t level = busy(machine);
    if (units[machine] > 0) level += taken * free[machine] / units[machine];
    const int64_t last = static_cast<int64_t>(levels) - 1;
    return cost[machine * levels + static_cast<size_t>(std::min(level, last))];
  }
  int64_t busy(size_t machine) const {
    return std::max<int64_t>(slots[machine] - free[machine], 0);
  }
};

// Up to `width` parallel arcs for each of M machines. An arc exists from when it was first open.
struct SegmentArcs {
  size_t width = 0;
  std::span<const int64_t> arc;  // [M, width]: ids, negative where there is none
  std::span<int64_t> capacity;   // [M, width]
  std::span<int64_t> cost;       // [M, width]: as of when the arc was open last
};

// One entry each. A new arc is named by its place in [M, width].
struct SegmentChanges {
  std::vector<int64_t> new_place, new_capacity, new_cost;
  std::vector<int64_t> capacity_arc, capacity;
  std::vector<int64_t> cost_arc, cost;
};

// The largest number of segments that a machine has.
size_t most_segments(std::span<const int64_t> cost, size_t levels);

// Brings the arcs of these machines up to date, and says what that changes. O(levels) for each.
// Throws std::invalid_argument for columns that do not go together, rows that do not exist, or a
// machine with more segments than `width`.
SegmentChanges set_segments(const SlotCosts& slots, std::span<const int64_t> row,
                            const SegmentArcs& arcs);

}  // namespace agora
