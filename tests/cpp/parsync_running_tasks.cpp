// Running tasks against a plain list: shortened on preferred machines, never ending ones left out,
// input out of range refused whole, the allocation of each task known until it is forgotten.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <stdexcept>

#include "check.hpp"
#include "parsync/core/native/worker_pool.hpp"

int main() {
  const std::vector<int64_t> machine_offsets{0, 0, 2}, machine_cost{3, 5}, rack_offsets{0, 0, 0},
      rack_cost, elsewhere{0, 11}, unscheduled{0, 99};
  const std::vector<int32_t> machine{1, 6}, rack, rack_of{0, 0, 0, 0, 1, 1, 1, 1};
  const agora::PreferenceColumns catalog{machine_offsets, machine,     machine_cost,
                                         rack_offsets,    rack,        rack_cost,
                                         elsewhere,       unscheduled, rack_of};
  const std::vector<int64_t> duration_us{1000, 2001, -1, 5000, 0};
  const std::vector<int32_t> preference{0, 1, 1, 1, 0};

  for (const int64_t permille : {700, 1000}) {
    const bool indexed = permille == 700;
    agora::RunningTasks running(100, duration_us, preference, catalog, permille, indexed);
    const std::vector<int64_t> task{0, 1, 2, 3, 4}, allocation{10, 11, 12, 13, 14};
    const std::vector<int32_t> placed{1, 6, 1, 2, 0}, owner{0, 1, 2, 3, 4};
    running.start(500, task, allocation.data(), placed, owner.data());
    CHECK(running.wheel.size() == 4);
    std::map<int64_t, int64_t> end_us;
    for (const auto& entry : running.wheel.take(1'000'000)) {
      CHECK(entry.owner == entry.id - 10 && entry.task == entry.id - 10);
      end_us[entry.id] = entry.end_us;
    }
    CHECK(end_us == (std::map<int64_t, int64_t>{
                        {10, 1500}, {11, 500 + 2001 * permille / 1000}, {13, 5500}, {14, 500}}));

    for (size_t i = 0; i < 3; ++i) {
      CHECK(!running.forget(task[i], allocation[i] + 1));
      CHECK(running.forget(task[i], allocation[i]) == indexed);
      CHECK(!running.forget(task[i], allocation[i]));
    }
    CHECK(!running.forget(99, 10) && !running.forget(-1, 10) && !running.forget(0, -1));

    const auto refused = [&](std::vector<int64_t> tasks, std::vector<int32_t> machines) {
      bool thrown = false;
      try {
        running.start(500, tasks, allocation.data(), machines, owner.data());
      } catch (const std::invalid_argument&) {
        thrown = true;
      }
      CHECK(running.wheel.size() == 0);
      return thrown;
    };
    CHECK(running.forget(3, 13) == indexed);
    CHECK(refused({0, 5}, {0, 0}));
    CHECK(refused({0, -1}, {0, 0}));
    if (permille != 1000) CHECK(refused({0, 1}, {0, 8}));
    CHECK(!running.forget(0, 10) && !running.forget(1, 11));
  }
  return EXIT_SUCCESS;
}
