// Removes the tasks that one agent can never place when it receives them, so that they hold up no
// others, and records them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parsync/core/native/queued_tasks.hpp"
#include "parsync/metrics/native/agent_log.hpp"
#include "schedulers/native/contract.hpp"

namespace agora {

class SortingOut {
 public:
  // units: none: the agent can place all. reason: why each task can never be placed
  // (schedulers.unplaceable.Unplaceable), of the tasks for which `units` says that.
  SortingOut(const UnplaceableUnits* units, std::span<const int8_t> reason, AgentLog& log)
      : units_(units), reason_(reason), log_(log) {}

  // Which of these tasks, submitted together, are recorded as unplaceable: 1 in the answer, [n],
  // which is empty if there are none, and valid until the next call.
  const std::vector<uint8_t>& sort_out(int64_t now_us, std::span<const int64_t> task) {
    never_.clear();
    if (!units_ || !units_->among(task, now_us, never_)) return never_;
    std::vector<int64_t> unplaceable;
    for (size_t i = 0; i < task.size(); ++i)
      if (never_[i]) unplaceable.push_back(task[i]);
    record(now_us, unplaceable);
    return never_;
  }

  // Removes them.
  void keep_placeable(int64_t now_us, QueuedTasks& tasks) {
    if (sort_out(now_us, tasks.task).empty()) return;
    size_t kept = 0;
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (never_[i]) continue;
      tasks.task[kept] = tasks.task[i];
      tasks.attempts[kept] = tasks.attempts[i];
      tasks.first[kept++] = tasks.first[i];
    }
    tasks.truncate(kept);
  }

  // Records tasks that can never be placed.
  void record(int64_t now_us, std::span<const int64_t> task) {
    if (!units_) return log_.unplaceable(now_us, task, kLargerThanEveryMachine);
    std::vector<int8_t> reasons;
    for (const int64_t id : task) reasons.push_back(reason_[row_of(id, reason_.size())]);
    log_.unplaceable(now_us, task, reasons);
  }

 private:
  static constexpr int8_t kLargerThanEveryMachine = 0;

  const UnplaceableUnits* const units_;
  const std::span<const int8_t> reason_;
  AgentLog& log_;
  std::vector<uint8_t> never_;
};

}  // namespace agora
