// The arcs of slots over random histories of loads and prices: what a caller knows who applies all
// changes, against a count unit by unit. And columns that do not go together are refused.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "schedulers/native/slot_segments.hpp"

using namespace agora;

namespace {

constexpr size_t kMachines = 4, kLevels = 5;

size_t at(int64_t index) { return static_cast<size_t>(index); }

struct Cell {
  std::vector<int64_t> cost, slots, free, units, arc, capacity, arc_cost;

  SlotCosts costs() const { return {kLevels, cost, slots, free, units}; }
  SegmentArcs arcs() { return {kLevels, arc, capacity, arc_cost}; }
};

Cell empty_cell() {
  Cell cell;
  cell.cost.assign(kMachines * kLevels, 0);
  cell.slots.assign(kMachines, 3);
  cell.free.assign(kMachines, 3);
  cell.units.assign(kMachines, 3);
  cell.arc.assign(kMachines * kLevels, -1);
  cell.capacity.assign(kMachines * kLevels, 0);
  cell.arc_cost.assign(kMachines * kLevels, 0);
  return cell;
}

void follow_history(Draws& draw) {
  Cell cell = empty_cell();
  std::vector<int64_t> capacity, cost;  // by arc, as a solver has them
  for (int round = 0; round < 20; ++round) {
    for (size_t m = 0; m < kMachines; ++m) {
      const auto row = cell.cost.begin() + static_cast<std::ptrdiff_t>(m * kLevels);
      if (draw(3) == 0) {
        for (size_t l = 0; l < kLevels; ++l)
          row[static_cast<std::ptrdiff_t>(l)] = static_cast<int64_t>(draw(4));
        std::sort(row, row + kLevels);
      }
      cell.slots[m] = static_cast<int64_t>(draw(8));
      cell.free[m] = static_cast<int64_t>(draw(static_cast<uint64_t>(cell.slots[m]) + 1));
      cell.units[m] = static_cast<int64_t>(draw(8));
    }
    std::vector<int64_t> rows;
    for (size_t m = 0; m < kMachines; ++m) rows.push_back(static_cast<int64_t>(m));
    const SegmentChanges changes = set_segments(cell.costs(), rows, cell.arcs());
    for (size_t i = 0; i < changes.capacity_arc.size(); ++i)
      capacity[at(changes.capacity_arc[i])] = changes.capacity[i];
    for (size_t i = 0; i < changes.cost_arc.size(); ++i)
      cost[at(changes.cost_arc[i])] = changes.cost[i];
    for (size_t i = 0; i < changes.new_place.size(); ++i) {
      CHECK(changes.new_capacity[i] > 0);
      cell.arc[at(changes.new_place[i])] = static_cast<int64_t>(capacity.size());
      capacity.push_back(changes.new_capacity[i]);
      cost.push_back(changes.new_cost[i]);
    }
    for (size_t m = 0; m < kMachines; ++m) {
      std::vector<int64_t> paid, expected;
      for (size_t s = m * kLevels; s < (m + 1) * kLevels; ++s)
        if (cell.arc[s] >= 0)
          paid.insert(paid.end(), at(capacity[at(cell.arc[s])]), cost[at(cell.arc[s])]);
      for (int64_t unit = 0; unit < cell.units[m]; ++unit) {
        const int64_t busy = cell.slots[m] - cell.free[m];
        const int64_t level = busy + unit * cell.free[m] / cell.units[m];
        expected.push_back(cell.cost[m * kLevels + std::min(at(level), kLevels - 1)]);
        CHECK(cell.costs().next(m, unit) == expected.back());
      }
      CHECK(paid == expected);
    }
  }
}

void refuse(void (*spoil)(Cell&), int64_t row = 0) {
  Cell cell = empty_cell();
  spoil(cell);
  const std::vector<int64_t> rows{row};
  bool refused = false;
  try {
    set_segments(cell.costs(), rows, cell.arcs());
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

}  // namespace

int main() {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Draws draw(seed);
    follow_history(draw);
  }
  refuse([](Cell& cell) { cell.cost.pop_back(); });
  refuse([](Cell& cell) { cell.units.pop_back(); });
  refuse([](Cell& cell) { cell.free.clear(); });
  refuse([](Cell& cell) { cell.capacity.pop_back(); });
  refuse([](Cell& cell) { cell.arc.clear(); });
  refuse([](Cell&) {}, static_cast<int64_t>(kMachines));
  refuse([](Cell&) {}, -1);
  CHECK(most_segments(std::vector<int64_t>{1, 1, 2, 0, 3, 9}, 3) == 3);
  CHECK(most_segments(std::vector<int64_t>{}, 3) == 1);
}
