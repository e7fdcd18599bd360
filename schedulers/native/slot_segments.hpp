// The arcs on which placements pay for the slots of machines (schedulers/flow/machine_arcs.py).
//
// The prices of a machine's slots never fall with the number that are busy. Free slots of equal
// price share an arc, a segment. Segments take a machine's arcs in order, the dearest first: when
// the load moves by a slot, it is the cheapest that opens or closes, so a capacity changes and no
// cost. In a full cell few levels are free, and only these are looked at.
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

  // The cost of a machine's next slot after `taken` units of those that are free, which are more.
  int64_t next(size_t machine, int64_t taken) const {
    int64_t level = busy(machine);
    if (taken > 0) level += taken * free[machine] / units[machine];
    const int64_t last = static_cast<int64_t>(levels) - 1;
    return cost[machine * levels + static_cast<size_t>(std::min(level, last))];
  }
  int64_t busy(size_t machine) const {
    return std::max<int64_t>(slots[machine] - free[machine], 0);
  }
};

// One entry for each new arc, which is parallel to the machine's others, and for each arc whose
// capacity or cost differs.
struct SegmentChanges {
  std::vector<int64_t> new_machine, new_capacity, new_cost;
  std::vector<int64_t> arc, capacity, cost;
};

// The arcs of M machines. Those of a machine are side by side in memory. An arc exists from when it
// was first open.
class SegmentArcs {
 public:
  explicit SegmentArcs(size_t machines) : machines_(machines), arcs_(machines) {}

  // Brings the arcs of these machines up to date, and says what that changes. O(levels that are, or
  // were, free) for each.
  //
  // Throws std::invalid_argument for columns that do not go together, rows that do not exist, and
  // while new arcs have no ids.
  SegmentChanges set(const SlotCosts& slots, std::span<const int64_t> row);

  // The ids of the new arcs of the last set(), in its order. Throws std::invalid_argument for
  // another number of them, or ids that are negative.
  void name(std::span<const int64_t> arc);

 private:
  static constexpr int64_t kNoArc = -1;
  struct Arc {
    int64_t cost = 0;  // as of when it was open last
    int64_t id = kNoArc;
    int64_t capacity = 0;
  };
  struct NewArc {
    size_t machine, place;
  };

  Arc& at(size_t machine, size_t place) { return arcs_[machine * width_ + place]; }
  void prefetch(const SlotCosts& slots, size_t machine) const;
  void set_machine(const SlotCosts& slots, size_t machine, SegmentChanges& changes);
  void set_arc(size_t machine, size_t place, int64_t capacity, int64_t cost,
               SegmentChanges& changes);
  void widen();

  size_t machines_;
  size_t width_ = 1;  // places for arcs of each machine
  std::vector<Arc> arcs_;
  std::vector<NewArc> new_;  // have no id
};

}  // namespace agora
