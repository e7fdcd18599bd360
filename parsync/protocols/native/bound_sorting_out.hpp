// What sorts out the tasks that an agent can never place, as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include "parsync/core/native/bound_queue_parts.hpp"
#include "parsync/metrics/native/bound_agent_log.hpp"
#include "schedulers/native/bound_planner.hpp"
#include "sorting_out.hpp"

namespace agora {

// Units and log are kept alive by nanobind.
class BoundSortingOut {
 public:
  BoundSortingOut(const BoundUnplaceableUnits* units, nanobind::handle reason, BoundAgentLog& log)
      : reason_(reason, "reason"),
        sorting_out(units ? &units->units : nullptr, reason_.span(), log.log) {}

  BoundQueuedTasks placeable(int64_t now_us, BoundQueuedTasks& work) {
    QueuedTasks kept = copy_of(work.view());
    sorting_out.keep_placeable(now_us, kept);
    return BoundQueuedTasks(std::move(kept));
  }
  void record(int64_t now_us, nanobind::handle task) {
    sorting_out.record(now_us, Column<const int64_t>(task, "task", length_of(task, "task")).span());
  }

 private:
  OptionalColumn<int8_t> reason_;

 public:
  SortingOut sorting_out;
};

}  // namespace agora
