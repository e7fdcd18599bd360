// The arcs of slots over random histories of loads and prices: what a caller knows who applies all
// changes, against a count unit by unit. And columns that do not go together are refused.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "schedulers/native/flow_graph.hpp"

using namespace agora;

namespace {

constexpr size_t kMachines = 4, kLevels = 5;

size_t at(int64_t index) { return static_cast<size_t>(index); }

struct Cell {
  std::vector<int64_t> cost, slots, free, units;

  SlotCosts costs() const { return {kLevels, cost, slots, free, units}; }
};

Cell empty_cell() {
  Cell cell;
  cell.cost.assign(kMachines * kLevels, 0);
  cell.slots.assign(kMachines, 3);
  cell.free.assign(kMachines, 3);
  cell.units.assign(kMachines, 3);
  return cell;
}

void follow_history(Draws& draw) {
  Cell cell = empty_cell();
  SegmentArcs arcs(kMachines);
  std::vector<int64_t> machine, capacity, cost;  // by arc, as a solver has them
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
    const SegmentChanges changes = arcs.set(cell.costs(), rows);
    for (size_t i = 0; i < changes.arc.size(); ++i) {
      capacity[at(changes.arc[i])] = changes.capacity[i];
      cost[at(changes.arc[i])] = changes.cost[i];
    }
    std::vector<int64_t> ids;
    for (size_t i = 0; i < changes.new_machine.size(); ++i) {
      ids.push_back(static_cast<int64_t>(capacity.size()));
      machine.push_back(changes.new_machine[i]);
      capacity.push_back(changes.new_capacity[i]);
      cost.push_back(changes.new_cost[i]);
    }
    arcs.name(ids);
    for (size_t m = 0; m < kMachines; ++m) {
      std::vector<int64_t> paid, expected;
      for (size_t a = 0; a < machine.size(); ++a)
        if (at(machine[a]) == m) paid.insert(paid.end(), at(capacity[a]), cost[a]);
      for (int64_t unit = 0; unit < cell.units[m]; ++unit) {
        const int64_t busy = cell.slots[m] - cell.free[m];
        const int64_t level = busy + unit * cell.free[m] / cell.units[m];
        expected.push_back(cell.cost[m * kLevels + std::min(at(level), kLevels - 1)]);
        CHECK(cell.costs().next(m, unit) == expected.back());
      }
      std::sort(paid.begin(), paid.end());
      CHECK(paid == expected);
    }
  }
}

void refuse(void (*spoil)(Cell&), int64_t row = 0) {
  Cell cell = empty_cell();
  spoil(cell);
  const std::vector<int64_t> rows{row};
  SegmentArcs arcs(kMachines);
  bool refused = false;
  try {
    arcs.set(cell.costs(), rows);
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

// The four machines' first arcs cannot have these ids, nor be set again without any.
void refuse_ids(const std::vector<int64_t>& ids) {
  const Cell cell = empty_cell();
  SegmentArcs arcs(kMachines);
  const std::vector<int64_t> rows{0, 1, 2, 3};
  CHECK(arcs.set(cell.costs(), rows).new_machine == rows);
  int refused = 0;
  for (const bool names : {true, false}) {
    try {
      if (names) arcs.name(ids);
      if (!names) arcs.set(cell.costs(), rows);
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  CHECK(refused == 2);
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
  refuse([](Cell&) {}, static_cast<int64_t>(kMachines));
  refuse([](Cell&) {}, -1);
  refuse_ids({}), refuse_ids({0, -1, 2, 3}), refuse_ids({0, 1, 2, 3, 4});
}
