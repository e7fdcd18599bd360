#include "scorer.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace agora {

namespace {

constexpr int64_t kMaxRequest = int64_t{1} << 50;
constexpr int32_t kUnplaced = -1;

}  // namespace

Scorer::Scorer(const Catalog& catalog, std::unique_ptr<ScoringRule> rule, bool remembers)
    : catalog_(catalog),
      rule_(std::move(rule)),
      remembers_(remembers),
      own_(catalog.machines()),
      affinity_(catalog.machines()) {}

void Scorer::check(const ClusterView& view, const ScoreRequest& tasks,
                   std::span<const int32_t> machine) const {
  const size_t count = tasks.count();
  if (catalog_.machines() != view.static_state().machines())
    throw std::invalid_argument("the catalog is of another cell than the view");
  if (tasks.dimensions != view.static_state().dimensions() ||
      tasks.request.size() != count * tasks.dimensions || tasks.job.size() != count ||
      tasks.preference.size() != count || tasks.gang.size() != count ||
      tasks.task_class.size() != count || machine.size() != count)
    throw std::invalid_argument("expected one entry per task in each column");
  for (size_t i = 0; i < tasks.request.size(); ++i)
    if (tasks.request[i] < 0 || tasks.request[i] > kMaxRequest)
      throw std::invalid_argument("request[" + std::to_string(i / tasks.dimensions) +
                                  "]: expected 0 to 2^50");
  for (size_t i = 0; i < count; ++i)
    if (tasks.preference[i] < 0 || static_cast<size_t>(tasks.preference[i]) >= catalog_.sets())
      throw std::invalid_argument("preference[" + std::to_string(i) + "]: there is no set " +
                                  std::to_string(tasks.preference[i]));
}

bool Scorer::alike(const ScoreRequest& tasks, size_t one, size_t other) const {
  return tasks.job[one] == tasks.job[other] && tasks.preference[one] == tasks.preference[other] &&
         std::equal(tasks.request_of(one), tasks.request_of(one) + tasks.dimensions,
                    tasks.request_of(other));
}

void Scorer::set_order(const ScoreRequest& tasks) {
  order_.clear();
  units_.clear();
  std::unordered_map<int64_t, std::vector<uint32_t>> gangs;
  for (size_t i = 0; i < tasks.count(); ++i)
    if (tasks.gang[i] >= 0) gangs[tasks.gang[i]].push_back(static_cast<uint32_t>(i));
  for (size_t i = 0; i < tasks.count(); ++i) {
    if (tasks.gang[i] < 0) {
      order_.push_back(static_cast<uint32_t>(i));
    } else {
      const std::vector<uint32_t>& members = gangs[tasks.gang[i]];
      if (members.front() != i) continue;  // it is decided on with its first member
      order_.insert(order_.end(), members.begin(), members.end());
    }
    units_.push_back({order_.size(), tasks.gang[i] >= 0});
  }
  group_end_.resize(order_.size());
  for (size_t at = order_.size(); at-- > 0;) {
    const bool goes_on = at + 1 < order_.size() && alike(tasks, order_[at], order_[at + 1]);
    group_end_[at] = goes_on ? group_end_[at + 1] : at + 1;
  }
}

Scorer::Decided Scorer::plan(ClusterView& view, const ScoreRequest& tasks,
                             const Continuation& continuation, std::span<int32_t> machine) {
  check(view, tasks, machine);
  std::fill(machine.begin(), machine.end(), kUnplaced);
  set_order(tasks);
  failures_.expire(tasks.now_us);
  if (remembers_)  // what is offered runs nowhere
    for (const int64_t task : tasks.task) own_.remove(task);

  Trial trial(view);
  if (!continuation.stream) stream_ = Stream(tasks.stream);
  ScoringPlan plan{view, tasks, own_, failures_, avoided_, affinity_, stream_, {}};
  rule_->begin(plan);
  size_t first = 0, group_end = 0;
  for (const Unit& unit : units_) {
    const size_t before = trial.mark();
    size_t at = first;
    for (; at < unit.end; ++at) {
      const size_t task = order_[at];
      if (at >= group_end) {
        group_end = group_end_[at];
        affinity_.use(catalog_, tasks.preference[task]);
        rule_->begin_group(task, group_end - at);
      }
      const int32_t row = rule_->choose(task);
      if (row == kUnplaced) break;
      trial.take(row, tasks.request_of(task));
      if (remembers_) own_.put(tasks.task[task], {tasks.job[task], row});
      machine[task] = row;
      rule_->took(row);
    }
    if (at < unit.end && unit.gang) {
      trial.rollback(before);
      for (size_t placed = first; placed < at; ++placed) {
        own_.remove(tasks.task[order_[placed]]);
        machine[order_[placed]] = kUnplaced;
      }
      rule_->rolled_back();
      group_end = 0;
    }
    first = unit.end;
    if (at < unit.end && !unit.gang && continuation.stop_at_wait) break;
  }
  return {first, plan.work};
}

MadeRoom Scorer::make_room(ClusterView& view, const RunningByMachine& running,
                           const Preemptor& task, int32_t preference, const CandidateShare& share) {
  if (preference < 0 || static_cast<size_t>(preference) >= catalog_.sets())
    throw std::invalid_argument("preference: there is no set " + std::to_string(preference));
  if (catalog_.machines() != view.static_state().machines())
    throw std::invalid_argument("the catalog is of another cell than the view");
  affinity_.use(catalog_, preference);
  return agora::make_room(view, running, task, affinity_, share, stream_);
}

void Scorer::observe(ChangeKind change, int64_t at_us, std::span<const int64_t> task,
                     std::span<const int32_t> machine, std::span<const int64_t> job) {
  if (machine.size() != task.size() || (change == ChangeKind::Adopted && job.size() != task.size()))
    throw std::invalid_argument("expected one entry per task in each column");
  for (size_t i = 0; i < task.size(); ++i) {
    const std::optional<OwnTasks::Place> known = own_.find(task[i]);
    switch (change) {
      case ChangeKind::Adopted:
        own_.put(task[i], {job[i], machine[i]});
        break;
      case ChangeKind::Committed:
        if (known) own_.put(task[i], {known->job, machine[i]});
        break;
      case ChangeKind::Rejected:
      case ChangeKind::Lost:
        if (known) failures_.add(known->job, machine[i], at_us);
        avoided_.add(task[i], machine[i]);
        own_.remove(task[i]);
        break;
      case ChangeKind::Finished:
        avoided_.forget(task[i]);
        own_.remove(task[i]);
        break;
      case ChangeKind::Evicted:
        own_.remove(task[i]);
        break;
    }
  }
}

ScoringPlanner::ScoringPlanner(Scorer& scorer, const PlacingColumns& table,
                               std::span<const int64_t> job, std::span<const int8_t> task_class,
                               const std::array<int64_t, 4>& weights_ps)
    : TaskPlanner(table, weights_ps), scorer_(scorer), job_(job), task_class_(task_class) {
  if (job.size() != table.tasks || task_class.size() != table.tasks)
    throw std::invalid_argument("task table: expected columns of one length");
}

TaskPlanner::Work ScoringPlanner::find(ClusterView& view, std::span<const int64_t> task,
                                       const OfferedTasks& columns, const PlanContext& context,
                                       std::span<int32_t> machine) {
  jobs_.clear();
  classes_.clear();
  for (const int64_t id : task) {
    jobs_.push_back(job_[static_cast<size_t>(id)]);
    classes_.push_back(task_class_[static_cast<size_t>(id)]);
  }
  const ScoreRequest request{
      task,         jobs_,    columns.request, table_.dimensions, columns.preference,
      columns.gang, classes_, context.stream,  context.now_us};
  const Scorer::Decided decided = scorer_.plan(view, request, {}, machine);
  const auto tasks = static_cast<int64_t>(task.size());
  return {{1, tasks, decided.work.filtered, decided.work.scored},
          tasks * static_cast<int64_t>(context.partition_order.size())};
}

}  // namespace agora
