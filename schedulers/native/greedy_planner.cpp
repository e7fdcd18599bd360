#include "greedy_planner.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "shared_state/native/random.hpp"

namespace agora {

namespace {

constexpr int8_t kNoRoom = 0, kTooLarge = 1;  // schedulers.interface.PendingReason

}  // namespace

void OfferedTasks::read(const PlacingColumns& table, std::span<const int64_t> task) {
  const size_t width = table.dimensions;
  request.resize(task.size() * width);
  preference.resize(task.size());
  gang.resize(task.size());
  for (size_t i = 0; i < task.size(); ++i) {
    const int64_t id = task[i];
    if (id < 0 || static_cast<size_t>(id) >= table.tasks)
      throw std::invalid_argument("task[" + std::to_string(i) + "]: there is no such task");
    const int64_t* row = table.request + id * table.request_row_stride;
    for (size_t r = 0; r < width; ++r)
      request[i * width + r] = row[static_cast<int64_t>(r) * table.request_stride];
    preference[i] = table.preference[id * table.preference_stride];
    gang[i] = table.gang[id * table.gang_stride];
  }
}

ClaimedPlan GreedyPlanner::plan_and_claim(ClusterView& view, std::span<const int64_t> task,
                                          const PlanContext& context,
                                          std::span<const uint8_t> never, PricedRows* prices) {
  if (table_.dimensions != view.static_state().dimensions())
    throw std::invalid_argument("the tasks are of another cell than the view");
  if (!never.empty() && never.size() != task.size())
    throw std::invalid_argument("never: expected one per task, or none");
  ClaimedPlan plan;
  std::span<const int64_t> offered = task;
  if (!never.empty()) {
    offered_.clear();
    for (size_t i = 0; i < task.size(); ++i)
      if (!never[i]) offered_.push_back(task[i]);
    offered = offered_;
  }
  // A scheduler is not called if there is nothing left to offer to it.
  if (never.empty() || !offered.empty()) place_offered(view, offered, context, prices, plan);
  for (size_t i = 0; i < never.size(); ++i) {
    if (!never[i]) continue;
    plan.pending.push_back(task[i]);
    plan.pending_reason.push_back(kTooLarge);
    ++plan.too_large;
  }
  if (plan.task.size() + plan.pending.size() != task.size())
    throw std::logic_error("the plan does not name every task once");
  plan.ticket = view.claim(plan.machine, plan.request.data());
  return plan;
}

void GreedyPlanner::place_offered(ClusterView& view, std::span<const int64_t> task,
                                  const PlanContext& context, PricedRows* prices,
                                  ClaimedPlan& plan) {
  const size_t count = task.size(), width = table_.dimensions;
  tasks_.read(table_, task);
  found_.resize(count);
  PlaceRequest input{count,       tasks_.request.data(),   tasks_.preference,
                     tasks_.gang, context.partition_order, context.ranking,
                     kind_,       context.stream,          preferred_first_};
  input.prices = prices;
  input.quality = context.quality;
  const PlaceWork work = place(view, catalog_, input, found_.data());

  const auto placed = static_cast<size_t>(
      std::count_if(found_.begin(), found_.end(), [](int32_t row) { return row >= 0; }));
  plan.task.reserve(placed);
  plan.machine.reserve(placed);
  plan.request.reserve(placed * width);
  plan.gang.reserve(placed);
  plan.synced_us.reserve(placed);
  for (size_t i = 0; i < count; ++i) {
    if (found_[i] < 0) {
      plan.pending.push_back(task[i]);
      continue;
    }
    const int64_t* request = tasks_.request.data() + i * width;
    plan.task.push_back(task[i]);
    plan.machine.push_back(found_[i]);
    plan.request.insert(plan.request.end(), request, request + width);
    plan.gang.push_back(tasks_.gang[i]);
    plan.synced_us.push_back(view.synced_us()[view.static_state().index.partition_of(found_[i])]);
  }
  plan.pending_reason.assign(plan.pending.size(), kNoRoom);
  if (view.first_oversubscribed(plan.machine, plan.request.data(), {}, nullptr) >= 0)
    throw std::logic_error("the kernel placed more than the view has room for");

  plan.counted_work = {1, preferred_first_ ? work.searches : static_cast<int64_t>(count),
                       work.looked_at, work.ranked};
  Int128 work_ps = 0;
  for (size_t i = 0; i < weights_ps_.size(); ++i)
    work_ps += Int128{weights_ps_[i]} * plan.counted_work[i];
  plan.operations = static_cast<int64_t>(work_ps / kPsPerOperation);
  plan.partitions_scanned = work.partitions_scanned;
}

}  // namespace agora
