// What the worker pool runs: every task's true duration, and a timer wheel of ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedulers/native/objective.hpp"
#include "shared_state/native/random.hpp"
#include "timer_wheel.hpp"

namespace agora {

class RunningTasks {
 public:
  // duration_us: [tasks], -1 = never ends. preference: [tasks], sets of the catalog.
  // preferred_permille: of its duration a task takes on one of its preferred machines. Columns are
  // borrowed. With `indexed`, the task of every running allocation is kept, for forget(). Throws
  // std::invalid_argument for lengths that differ or a share that is negative.
  RunningTasks(int64_t tick_us, std::span<const int64_t> duration_us,
               std::span<const int32_t> preference, const PreferenceColumns& catalog,
               int64_t preferred_permille, bool indexed)
      : wheel(tick_us),
        duration_us_(duration_us),
        preference_(preference),
        catalog_(catalog),
        preferred_permille_(preferred_permille),
        indexed_(indexed) {
    check_lengths(catalog);
    if (duration_us.size() != preference.size())
      throw std::invalid_argument("duration_us and preference differ in length");
    if (preferred_permille < 0)
      throw std::invalid_argument("preferred_permille must not be negative");
  }

  // n tasks start at start_us; those that end go into the wheel. Throws std::invalid_argument, with
  // nothing added, for a task or machine that does not exist.
  void start(int64_t start_us, std::span<const int64_t> task, const int64_t* allocation,
             std::span<const int32_t> machine, const int32_t* owner) {
    const size_t count = task.size();
    for (size_t i = 0; i < count; ++i)
      if (task[i] < 0 || static_cast<size_t>(task[i]) >= duration_us_.size())
        throw std::invalid_argument("task[" + std::to_string(i) + "]: there is no task " +
                                    std::to_string(task[i]));
    preferred_.assign(count, 0);
    if (catalog_.sets() > 1 && preferred_permille_ != 1000) {
      set_.resize(count);
      cost_.resize(count);
      for (size_t i = 0; i < count; ++i) set_[i] = preference_[static_cast<size_t>(task[i])];
      placement_cost(catalog_, set_, machine, cost_.data(),
                     reinterpret_cast<bool*>(preferred_.data()));
    }
    if (indexed_)
      for (size_t i = 0; i < count; ++i) task_of_[allocation[i]] = task[i];
    for (size_t i = 0; i < count; ++i) {
      int64_t duration_us = duration_us_[static_cast<size_t>(task[i])];
      if (duration_us < 0) continue;
      if (preferred_[i])
        duration_us = static_cast<int64_t>(Int128{duration_us} * preferred_permille_ / 1000);
      const int64_t end_us =
          duration_us < kLatestEnd - start_us ? start_us + duration_us : kLatestEnd;
      wheel.add(end_us, allocation[i], owner[i], machine[i]);
    }
  }

  // The task of an allocation that ends, which is forgotten; -1 if it does not run or has been
  // forgotten before.
  int64_t forget(int64_t allocation) {
    const auto found = task_of_.find(allocation);
    if (found == task_of_.end()) return -1;
    const int64_t task = found->second;
    task_of_.erase(found);
    return task;
  }

  TimerWheel wheel;

 private:
  // Of a task that ends later: no run lasts so long, and sums of times stay within 63 bits.
  static constexpr int64_t kLatestEnd = int64_t{1} << 61;

  std::span<const int64_t> duration_us_;
  std::span<const int32_t> preference_;
  PreferenceColumns catalog_;
  int64_t preferred_permille_;
  bool indexed_;
  std::unordered_map<int64_t, int64_t> task_of_;  // allocation -> task
  std::vector<int32_t> set_;
  std::vector<int64_t> cost_;
  std::vector<uint8_t> preferred_;
};

}  // namespace agora
