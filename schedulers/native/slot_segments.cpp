#include "slot_segments.hpp"

#include <algorithm>
#include <stdexcept>

namespace agora {

namespace {

// The machines of a round are scattered in memory: so many in advance what is read is fetched.
constexpr size_t kAhead = 8;
constexpr size_t kLine = 8;  // numbers in a line of the cache

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

void check(const SlotCosts& slots, size_t machines) {
  require(slots.levels > 0 && slots.cost.size() == machines * slots.levels,
          "cost: expected a row of at least one level per machine");
  require(slots.slots.size() == machines && slots.free.size() == machines &&
              slots.units.size() == machines,
          "slots, free, units: expected one of each per machine");
}

// The number of free units that have a level below this one.
int64_t units_below(int64_t level, int64_t busy, int64_t free, int64_t units) {
  if (level <= busy) return 0;
  const int64_t slots = level - busy;
  if (slots >= free) return units;
  return (slots * units + free - 1) / free;
}

}  // namespace

SegmentChanges SegmentArcs::set(const SlotCosts& slots, std::span<const int64_t> row) {
  check(slots, machines_);
  require(new_.empty(), "arc: expected ids of the new arcs first");
  SegmentChanges changes;
  for (auto* column : {&changes.arc, &changes.capacity, &changes.cost}) column->reserve(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    if (i + kAhead < row.size()) prefetch(slots, static_cast<size_t>(row[i + kAhead]));
    const size_t machine = static_cast<size_t>(row[i]);
    require(machine < machines_, "row: expected machines");
    set_machine(slots, machine, changes);
  }
  return changes;
}

void SegmentArcs::name(std::span<const int64_t> arc) {
  require(arc.size() == new_.size(), "arc: expected one id for each new arc");
  for (const int64_t id : arc) require(id >= 0, "arc: expected ids of 0 or more");
  for (size_t i = 0; i < arc.size(); ++i) at(new_[i].machine, new_[i].place).id = arc[i];
  new_.clear();
}

void SegmentArcs::prefetch(const SlotCosts& slots, size_t machine) const {
  if (machine >= machines_) return;
  __builtin_prefetch(&slots.slots[machine]);
  __builtin_prefetch(&slots.free[machine]);
  __builtin_prefetch(&slots.units[machine]);
  const size_t dearest = machine * slots.levels + slots.levels - 1;
  __builtin_prefetch(&slots.cost[dearest]);
  if (slots.levels > kLine) __builtin_prefetch(&slots.cost[dearest - kLine]);
  __builtin_prefetch(&arcs_[machine * width_], 1);
}

void SegmentArcs::set_machine(const SlotCosts& slots, size_t machine, SegmentChanges& changes) {
  const int64_t free = slots.free[machine], units = slots.units[machine];
  const int64_t busy = slots.busy(machine), levels = static_cast<int64_t>(slots.levels);
  const auto price = [&](int64_t level) {
    return slots.cost[machine * slots.levels + static_cast<size_t>(level)];
  };
  // The levels of free units: from `low` to below `high`.
  const int64_t low = std::min(busy, levels - 1);
  const int64_t high = std::clamp(busy + std::max<int64_t>(free, 1), low + 1, levels);
  size_t place = 0;
  int64_t rest = units;  // those with levels below `level`
  for (int64_t level = high; rest > 0;) {
    const int64_t here = price(--level);
    while (level > low && price(level - 1) == here) --level;
    const int64_t below = level > low ? units_below(level, busy, free, units) : 0;
    if (below == rest) continue;
    set_arc(machine, place++, rest - below, here, changes);
    rest = below;
  }
  for (size_t closed = place; closed < width_ && at(machine, closed).capacity > 0; ++closed)
    set_arc(machine, closed, 0, at(machine, closed).cost, changes);
}

void SegmentArcs::set_arc(size_t machine, size_t place, int64_t capacity, int64_t cost,
                          SegmentChanges& changes) {
  if (place == width_) widen();
  Arc& arc = at(machine, place);
  if (arc.id == kNoArc) {
    new_.push_back({machine, place});
    changes.new_machine.push_back(static_cast<int64_t>(machine));
    changes.new_capacity.push_back(capacity);
    changes.new_cost.push_back(cost);
  } else if (capacity != arc.capacity || cost != arc.cost) {
    changes.arc.push_back(arc.id);
    changes.capacity.push_back(capacity);
    changes.cost.push_back(cost);
  }
  arc.capacity = capacity;
  arc.cost = cost;
}

void SegmentArcs::widen() {
  std::vector<Arc> wider(2 * arcs_.size());
  for (size_t m = 0; m < machines_; ++m)
    std::copy_n(&arcs_[m * width_], width_, &wider[m * 2 * width_]);
  arcs_ = std::move(wider);
  width_ *= 2;
}

}  // namespace agora
