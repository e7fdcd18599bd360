// Priority preemption on random machines: who ends has to, is of lower priority and may end, and
// the machine that is chosen is the one whose victims matter least.
#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "check.hpp"
#include "schedulers/native/priority_preemption.hpp"

using namespace agora;

namespace {

constexpr size_t kDimensions = 2;

// A cell whose machines are full of tasks, and a view that shows it.
struct Crowd {
  size_t machines;
  std::shared_ptr<const StaticCellState> cell;
  ClusterView view;
  std::vector<int64_t> offsets{0}, since_us, request;
  std::vector<int32_t> priority;
  std::vector<uint8_t> fate;

  explicit Crowd(Draws& draw)
      : machines(1 + draw(6)), cell(cell_of(draw, machines)), view(cell, false) {
    std::vector<int64_t> used(machines * kDimensions);
    for (size_t row = 0; row < machines; ++row) {
      std::vector<std::pair<int32_t, int64_t>> tasks;
      for (uint64_t n = draw(4); n > 0; --n)
        tasks.emplace_back(-static_cast<int32_t>(draw(3)), static_cast<int64_t>(draw(3)));
      std::ranges::sort(tasks);  // the most important first
      for (const auto& [level, began_us] : tasks) {
        priority.push_back(-level);
        since_us.push_back(began_us);
        fate.push_back(static_cast<uint8_t>(draw(8) == 0 ? draw(3) : uint64_t{kMayEnd}));
        for (size_t r = 0; r < kDimensions; ++r) {
          request.push_back(static_cast<int64_t>(draw(3)));
          used[row * kDimensions + r] += request.back();
        }
      }
      offsets.push_back(static_cast<int64_t>(priority.size()));
    }
    std::vector<uint16_t> rows(machines);
    std::iota(rows.begin(), rows.end(), uint16_t{0});
    const std::unique_ptr<bool[]> up(new bool[machines]);
    for (size_t row = 0; row < machines; ++row) up[row] = draw(8) != 0;
    view.apply({0, 0, 1, 0, machines, rows.data(), 2, used.data(), 8, up.get(), nullptr});
  }

  static std::shared_ptr<const StaticCellState> cell_of(Draws& draw, size_t machines) {
    std::vector<int64_t> limit;
    for (size_t i = 0; i < machines * kDimensions; ++i)
      limit.push_back(static_cast<int64_t>(draw(7)));
    return std::make_shared<const StaticCellState>(
        kDimensions, limit, std::vector<int64_t>(machines),
        std::vector<int64_t>{0, static_cast<int64_t>(machines)});
  }

  RunningByMachine running() const { return {offsets, priority, since_us, request, fate}; }

  // Does the task fit once these, and those that end anyway, have ended?
  bool fits(const Preemptor& task, int32_t machine, const std::vector<int64_t>& victims) const {
    const auto row = static_cast<size_t>(machine);
    const int64_t* free = view.free(machine);
    for (size_t r = 0; r < kDimensions; ++r) {
      int64_t room = free[r];
      for (auto i = static_cast<size_t>(offsets[row]); i < static_cast<size_t>(offsets[row + 1]);
           ++i) {
        const bool ends = std::ranges::find(victims, static_cast<int64_t>(i)) != victims.end() ||
                          fate[i] == kEnds;
        if (ends && priority[i] < task.priority) room += request[i * kDimensions + r];
      }
      if (task.request[r] > 0 && task.request[r] > room) return false;
    }
    return true;
  }
};

void victims_have_to_end(Draws& draw) {
  const Crowd crowd(draw);
  const std::vector<int64_t> request{static_cast<int64_t>(draw(5)), static_cast<int64_t>(draw(5))};
  const Preemptor task{request, static_cast<int32_t>(draw(4))};
  for (size_t row = 0; row < crowd.machines; ++row) {
    const auto machine = static_cast<int32_t>(row);
    std::vector<int64_t> all;
    for (int64_t i = crowd.offsets[row]; i < crowd.offsets[row + 1]; ++i)
      if (crowd.fate[static_cast<size_t>(i)] == kMayEnd) all.push_back(i);
    MadeRoom made;
    const bool fits = select_victims(crowd.view, crowd.running(), task, machine, made);
    CHECK(fits == (crowd.view.is_up(machine) && crowd.fits(task, machine, all)));
    if (!fits) continue;
    CHECK(crowd.fits(task, machine, made.victims));
    for (const int64_t victim : made.victims) {
      CHECK(std::ranges::find(all, victim) != all.end());
      CHECK(crowd.priority[static_cast<size_t>(victim)] < task.priority);
      std::vector<int64_t> others = made.victims;
      std::erase(others, victim);
      CHECK(!crowd.fits(task, machine, others));
    }
  }
}

void the_victims_of_the_machine_matter_least(Draws& draw) {
  const Crowd crowd(draw);
  const std::vector<int64_t> request{static_cast<int64_t>(draw(5)), static_cast<int64_t>(draw(5))};
  const Preemptor task{request, static_cast<int32_t>(draw(4))};
  const RowAffinity anywhere(crowd.machines);
  Stream stream(draw(1000));
  const MadeRoom chosen = make_room(crowd.view, crowd.running(), task, anywhere, {100, 1}, stream);
  const auto highest = [&](const std::vector<int64_t>& victims) {
    return crowd.priority[static_cast<size_t>(victims.front())];
  };
  if (chosen.machine >= 0) CHECK(!chosen.victims.empty());
  for (size_t row = 0; row < crowd.machines; ++row) {
    MadeRoom made;
    const auto machine = static_cast<int32_t>(row);
    const bool fits = select_victims(crowd.view, crowd.running(), task, machine, made);
    if (!fits || made.victims.empty()) continue;
    CHECK(chosen.machine >= 0);
    CHECK(highest(chosen.victims) <= highest(made.victims));
  }
}

}  // namespace

int main() {
  for (uint64_t seed = 1; seed <= tries(2000); ++seed) {
    Draws draw(seed);
    victims_have_to_end(draw);
    the_victims_of_the_machine_matter_least(draw);
  }
  return 0;
}
