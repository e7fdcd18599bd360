#include "slot_segments.hpp"

#include <algorithm>
#include <stdexcept>

namespace agora {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

void check(const SlotCosts& slots, const SegmentArcs& arcs) {
  const size_t machines = slots.slots.size();
  require(slots.levels > 0 && slots.cost.size() == machines * slots.levels,
          "cost: expected a row of at least one level per machine");
  require(slots.free.size() == machines && slots.units.size() == machines,
          "slots, free, units: expected one of each per machine");
  require(arcs.arc.size() == machines * arcs.width && arcs.capacity.size() == arcs.arc.size() &&
              arcs.cost.size() == arcs.arc.size(),
          "arc, capacity, cost: expected a row of arcs per machine");
}

// The number of free units that have a level below this one.
int64_t units_below(int64_t level, int64_t busy, int64_t free, int64_t units) {
  if (level <= busy) return 0;
  const int64_t slots = level - busy;
  if (slots >= free) return units;
  return (slots * units + free - 1) / free;
}

void set_segment(const SegmentArcs& arcs, size_t place, int64_t capacity, int64_t cost,
                 SegmentChanges& changes) {
  const int64_t arc = arcs.arc[place];
  const bool is_open = capacity > 0;
  if (arc < 0) {
    if (!is_open) return;
    changes.new_place.push_back(static_cast<int64_t>(place));
    changes.new_capacity.push_back(capacity);
    changes.new_cost.push_back(cost);
  } else {
    if (capacity != arcs.capacity[place]) {
      changes.capacity_arc.push_back(arc);
      changes.capacity.push_back(capacity);
    }
    if (is_open && cost != arcs.cost[place]) {
      changes.cost_arc.push_back(arc);
      changes.cost.push_back(cost);
    }
  }
  arcs.capacity[place] = capacity;
  if (is_open) arcs.cost[place] = cost;
}

}  // namespace

size_t most_segments(std::span<const int64_t> cost, size_t levels) {
  size_t most = 1;
  for (size_t row = 0; levels > 0 && row + levels <= cost.size(); row += levels) {
    size_t segments = 1;
    for (size_t l = row + 1; l < row + levels; ++l) segments += cost[l] != cost[l - 1];
    most = std::max(most, segments);
  }
  return most;
}

SegmentChanges set_segments(const SlotCosts& slots, std::span<const int64_t> row,
                            const SegmentArcs& arcs) {
  check(slots, arcs);
  SegmentChanges changes;
  for (const int64_t at : row) {
    const size_t m = static_cast<size_t>(at);
    require(m < slots.slots.size(), "row: expected machines");
    const std::span<const int64_t> cost = slots.cost.subspan(m * slots.levels, slots.levels);
    const int64_t free = slots.free[m], units = slots.units[m];
    const int64_t busy = slots.busy(m);
    size_t segment = 0;
    int64_t below = 0;
    const auto add = [&](int64_t capacity, int64_t price) {
      require(segment < arcs.width, "arc: a machine has more segments than arcs");
      set_segment(arcs, m * arcs.width + segment++, capacity, price, changes);
    };
    for (size_t level = 1; level < cost.size(); ++level) {
      if (cost[level] == cost[level - 1]) continue;
      const int64_t next = units_below(static_cast<int64_t>(level), busy, free, units);
      add(next - below, cost[level - 1]);
      below = next;
    }
    add(units - below, cost.back());
    while (segment < arcs.width) add(0, 0);
  }
  return changes;
}

}  // namespace agora
