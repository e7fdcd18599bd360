#include "pending_queue.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace agora {

namespace {

// Takes the first tasks of a batch, as many as a round has time for.
void take_head(QueuedTasks& batch, std::optional<int64_t> limit, std::span<const int64_t> gang,
               QueuedTasks& offered) {
  const size_t count = batch_within(batch.task, limit, gang);
  offered.clear();
  if (count == batch.size()) {
    std::swap(offered, batch);
    return;
  }
  offered.assign(batch.view().head(count));
  batch.erase_head(count);
}

// Memory for a batch.
QueuedTasks from_spare(std::vector<QueuedTasks>& spare) {
  if (spare.empty()) return {};
  QueuedTasks batch = std::move(spare.back());
  spare.pop_back();
  batch.clear();
  return batch;
}

// Finds rows of tasks by their ids.
class RowsByTask {
 public:
  explicit RowsByTask(std::span<const int64_t> task) : task_(task) {
    if (std::ranges::is_sorted(task)) return;
    rows_.resize(task.size());
    for (size_t i = 0; i < task.size(); ++i) rows_[i] = {task[i], i};
    std::ranges::sort(rows_);
  }

  // Tasks are mostly asked for in their order.
  std::optional<size_t> find(int64_t task) {
    if (next_ < task_.size() && task_[next_] == task) return next_++;
    const std::optional<size_t> row = search(task);
    if (row) next_ = *row + 1;
    return row;
  }

 private:
  std::optional<size_t> search(int64_t task) const {
    if (rows_.empty()) {
      const auto found = std::ranges::lower_bound(task_, task);
      if (found == task_.end() || *found != task) return std::nullopt;
      return static_cast<size_t>(found - task_.begin());
    }
    const auto found =
        std::ranges::lower_bound(rows_, task, {}, &std::pair<int64_t, size_t>::first);
    if (found == rows_.end() || found->first != task) return std::nullopt;
    return found->second;
  }

  std::span<const int64_t> task_;
  std::vector<std::pair<int64_t, size_t>> rows_;  // by task; empty if the ids ascend
  size_t next_ = 0;
};

[[noreturn]] void refuse(int64_t task, const char* expected) {
  throw std::invalid_argument("task " + std::to_string(task) + ": expected " + expected);
}

bool is_too_large(const PlannedTasks& plan, size_t row) {
  return plan.pending_reason[row] == static_cast<int8_t>(PendingReason::TooLarge);
}

void add_too_large(const PlannedTasks& plan, std::vector<int64_t>& task) {
  for (size_t i = 0; i < plan.pending.size(); ++i)
    if (is_too_large(plan, i)) task.push_back(plan.pending[i]);
}

void check(const PlannedTasks& plan) {
  if (plan.pending.size() != plan.pending_reason.size())
    throw std::invalid_argument("plan: expected a reason for each pending task");
}

}  // namespace

JobAdmission::JobAdmission(std::span<const int64_t> job, int64_t jobs_max)
    : job_(job), jobs_max_(jobs_max), is_here_(job.size()) {
  if (jobs_max < 1) throw std::invalid_argument("jobs_max: expected 1 or more");
}

void JobAdmission::add(const QueuedTasksView& tasks, const Admit& admit) {
  std::vector<std::pair<int64_t, QueuedTasks>> jobs;
  std::unordered_map<int64_t, size_t> place;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const int64_t job = job_[row(tasks.task[i])];
    const auto [mine, is_new] = place.try_emplace(job, jobs.size());
    if (is_new) jobs.emplace_back(job, QueuedTasks{});
    jobs[mine->second].second.append_row(tasks, i);
  }
  for (auto& [job, mine] : jobs) {
    if (tasks_of_.contains(job) || has_place()) {
      enter(job, mine.task);
      admit(mine);
      continue;
    }
    const auto [held, is_new] = held_back_.try_emplace(job);
    if (is_new) order_.push_back(job);
    held->second.push_back(std::move(mine));
  }
}

void JobAdmission::on_adopted(std::span<const int64_t> task) {
  for (const int64_t one : task) enter(job_[row(one)], {&one, 1});
}

bool JobAdmission::leave(std::span<const int64_t> task, const Admit& admit) {
  for (const int64_t one : task) {
    if (!is_here_[row(one)]) continue;
    is_here_[row(one)] = 0;
    const auto job = tasks_of_.find(job_[row(one)]);
    if (--job->second == 0) tasks_of_.erase(job);
  }
  bool admitted = false;
  while (!order_.empty() && has_place()) {
    const auto held = held_back_.extract(order_.front());
    order_.pop_front();
    for (const QueuedTasks& tasks : held.mapped()) {
      enter(held.key(), tasks.task);
      admit(tasks);
    }
    admitted = true;
  }
  return admitted;
}

void JobAdmission::waiting(const SeeWaiting& see) const {
  for (const int64_t job : order_)
    for (const QueuedTasks& tasks : held_back_.at(job))
      see(tasks.task, Waiting::JobNotAdmitted, kNobody);
}

void JobAdmission::enter(int64_t job, std::span<const int64_t> task) {
  int64_t& here = tasks_of_[job];
  for (const int64_t one : task) {
    if (is_here_[row(one)]) continue;
    is_here_[row(one)] = 1;
    ++here;
  }
}

void JobAttempts::on_round(const RoundTasks& round, const PlannedTasks& plan,
                           const QueuedTasksView& losers, std::vector<int64_t>& given_up) {
  struct OfRound {
    bool tried = false, placed = false, waits = false;
  };
  const std::vector<int64_t>& offered = round.offered.task;
  const std::vector<uint8_t>& had_turn = round.had_turn;
  RowsByTask pending(plan.pending), lost(losers.task);
  std::vector<uint8_t> waits(offered.size());
  std::unordered_map<int64_t, OfRound> jobs;
  for (size_t i = 0; i < offered.size(); ++i) {
    OfRound& job = jobs[job_[row_of(offered[i], job_.size())]];
    const auto row = pending.find(offered[i]);
    if (row && is_too_large(plan, *row)) continue;
    const auto reason =
        row ? static_cast<PendingReason>(plan.pending_reason[*row]) : PendingReason::NoRoom;
    waits[i] = row || lost.find(offered[i]);
    job.waits = job.waits || waits[i];
    job.placed = job.placed || !waits[i];
    job.tried = job.tried ||
                ((had_turn.empty() || had_turn[i]) && reason != PendingReason::WaitsForPreferred);
  }
  for (const auto& [job, seen] : jobs) {
    Count& count = count_[job];
    count.attempts = seen.waits ? count.attempts + seen.tried : 0;
    count.some_placed = count.some_placed || seen.placed;
    if (!seen.waits && !count.some_placed) count_.erase(job);
  }
  for (size_t i = 0; i < offered.size(); ++i) {
    const auto found = waits[i] ? count_.find(job_[row_of(offered[i], job_.size())]) : count_.end();
    if (found == count_.end()) continue;
    const Count& count = found->second;
    const int64_t most = count.some_placed ? most_ : std::min(most_, most_unplaced_);
    if (count.attempts >= most) given_up.push_back(offered[i]);
  }
  for (const int64_t task : given_up) count_.erase(job_[row_of(task, job_.size())]);
}

void PendingQueue::limit_jobs(std::span<const int64_t> job, int64_t jobs_max) {
  admission_.emplace(job, jobs_max);
}

void PendingQueue::add(const QueuedTasksView& tasks) {
  if (tasks.empty()) return;
  if (!admission_) return enqueue(tasks);
  admission_->add(tasks, [this](const QueuedTasksView& admitted) { enqueue(admitted); });
}

void PendingQueue::waiting(int64_t now_us, const SeeWaiting& see) {
  see_waiting(now_us, see);
  if (admission_) admission_->waiting(see);
}

const QueueExits& PendingQueue::on_planned(RoundTasks& round, const PlannedTasks& plan,
                                           int64_t start_us) {
  check(plan);
  exits_.clear();
  round.claimed.clear();
  round.left.clear();
  round.blocked = false;
  planned(round, plan, start_us);
  return without_exits();
}

const QueueExits& PendingQueue::on_committed(const RoundTasks& round, const PlannedTasks& plan,
                                             const QueuedTasksView& losers) {
  check(plan);
  exits_.clear();
  committed(round, plan, losers);
  return without_exits();
}

void PendingQueue::on_adopted(std::span<const int64_t> task) {
  if (admission_) admission_->on_adopted(task);
}

bool PendingQueue::on_finished(std::span<const int64_t> task) {
  if (!admission_) return false;
  return admission_->leave(task, [this](const QueuedTasksView& admitted) { enqueue(admitted); });
}

// Lets the tasks that leave the queue leave their jobs, too.
const QueueExits& PendingQueue::without_exits() {
  if (!exits_.too_large.empty()) on_finished(exits_.too_large);
  if (!exits_.abandoned.empty()) on_finished(exits_.abandoned);
  return exits_;
}

Lines::Lines(QuotaAccount* account, std::span<const int32_t> priority)
    : account_(account), priority_(priority), lines_(account ? account->groups() : 1) {}

bool Lines::empty() const {
  return std::ranges::all_of(lines_, [](const Line& line) { return line.empty(); });
}

bool Lines::has_head(std::span<const int64_t> before) const {
  return std::ranges::any_of(lines_, [&](const Line& line) { return has_room(line, before); });
}

bool Lines::has_new_head(std::span<const int64_t> before) const {
  return std::ranges::any_of(lines_, [&](const Line& line) {
    return has_room(line, before) && line.front().tasks.rounds == 0;
  });
}

void Lines::take_head(const QueuedTasksView& before, QueuedTasks& batch) {
  Line* first = nullptr;
  for (Line& line : lines_)
    if (has_room(line, {}) && (!first || line.front().number < first->front().number))
      first = &line;
  if (!first) throw std::logic_error("no line has room for the task at its head");
  put_back(before);
  Batch head = pop(*first);
  std::swap(batch, head.tasks);
  spare_.push_back(std::move(head.tasks));
}

void Lines::take_new(std::span<const int64_t> before, QueuedTasks& batch) {
  std::vector<Line*> open;
  for (Line& line : lines_)
    if (has_room(line, before)) open.push_back(&line);
  Line taken, requeued;
  for (Line* line : open)
    while (!line->empty()) {
      if (line->front().tasks.rounds == 0)
        taken.push_back(pop(*line));
      else if (account_)
        break;
      else
        requeued.push_back(pop(*line));
    }
  if (!account_) lines_[0] = std::move(requeued);  // taken in their order, which makes them a heap
  std::ranges::stable_sort(taken, {}, &Batch::number);
  for (Batch& one : taken) {
    batch.append(one.tasks);
    spare_.push_back(std::move(one.tasks));
  }
}

void Lines::waiting(std::span<const int64_t> holder, const SeeWaiting& see) const {
  for (const Line& line : lines_) {
    if (line.empty()) continue;
    std::vector<const Batch*> ordered;
    for (const Batch& batch : line) ordered.push_back(&batch);
    std::ranges::sort(ordered, [](const Batch* a, const Batch* b) { return is_later(*b, *a); });
    std::vector<int64_t> task;
    for (const Batch* batch : ordered)
      task.insert(task.end(), batch->tasks.task.begin(), batch->tasks.task.end());
    if (account_ && !account_->has_room(task, {}))
      see(task, Waiting::Quota, kNobody);
    else if (holder.empty())
      see(task, Waiting::NotTried, kNobody);
    else
      see(task, Waiting::Behind, holder[0]);
  }
}

bool Lines::is_later(const Batch& a, const Batch& b) {
  return a.level != b.level ? a.level > b.level : a.number > b.number;
}

bool Lines::has_room(const Line& line, std::span<const int64_t> before) const {
  return !line.empty() && (!account_ || account_->has_room(line.front().tasks.task, before));
}

// Puts tasks into the lines of their groups. Those of one priority stay in their order.
void Lines::insert(const QueuedTasksView& tasks, int64_t number) {
  if (tasks.empty()) return;
  if (!account_) {
    push(0, 0, number).tasks.append(tasks);
    return sift(0);
  }
  struct Place {
    int64_t level;
    size_t line;
    size_t row;
  };
  std::vector<Place> places;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const int64_t task = tasks.task[i];
    const int64_t level =
        priority_.empty() ? 0 : -int64_t{priority_[row_of(task, priority_.size())]};
    places.push_back({level, account_->group_of(task), i});
  }
  std::ranges::stable_sort(places, [](const Place& a, const Place& b) {
    return a.level != b.level ? a.level < b.level : a.line < b.line;
  });
  for (size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    const auto [level, line, row] = places[begin];
    QueuedTasks& batch = push(line, level, number).tasks;
    batch.rounds = tasks.rounds;
    batch.some_placed = tasks.some_placed;
    for (; end < places.size() && places[end].level == level && places[end].line == line; ++end)
      batch.append_row(tasks, places[end].row);
    sift(line);
  }
}

Lines::Batch& Lines::push(size_t line, int64_t level, int64_t number) {
  return lines_[line].emplace_back(Batch{level, number, from_spare(spare_)});
}

void Lines::sift(size_t line) { std::ranges::push_heap(lines_[line], is_later); }

Lines::Batch Lines::pop(Line& line) {
  std::ranges::pop_heap(line, is_later);
  Batch batch = std::move(line.back());
  line.pop_back();
  return batch;
}

AgentQueue::AgentQueue(const Options& options)
    : options_(options), lines_(options.account, options.priority) {
  if (options.skipped && (options.requeues || options.whole_queue))
    throw std::invalid_argument(
        "what a round left without room is skipped: expected neither requeued tasks nor rounds "
        "about the whole queue");
  if (options.is_own_limit && !options.account)
    throw std::invalid_argument("a limit of a scheduler's own: expected its account");
}

bool AgentQueue::has_new(int64_t now_us) {
  return options_.skipped ? has_more(now_us) : has_new_batches();
}

bool AgentQueue::has_waiting() const {
  if (options_.is_own_limit && (!current_.empty() || !lines_.empty())) return true;
  return options_.skipped && options_.skipped->size() > 0;
}

bool AgentQueue::has_next(int64_t now_us, bool view_changed) {
  if (options_.is_own_limit && view_changed) options_.account->look();
  if (!options_.skipped) return has_batch();
  return has_more(now_us) || (view_changed && options_.skipped->has_to_offer());
}

void AgentQueue::enqueue(const QueuedTasksView& tasks) {
  if (options_.account) options_.account->submit(tasks.task);
  lines_.append(tasks);
}

std::optional<int64_t> AgentQueue::next_batch(int64_t now_us, bool view_changed) {
  place_ = std::nullopt;
  SkippedUnits* const skipped = options_.skipped;
  if (!skipped) return begin_batch();
  while (options_.account && skipped->release(now_us, scratch_)) lines_.put_back(scratch_);
  if (view_changed) skipped->on_view_changed();
  if (has_losers()) return 0;
  place_ = skipped->due(now_us, has_batch());
  if (place_) return 0;
  if (skipped->holds(now_us)) return std::nullopt;
  return begin_batch();
}

QueuedTasksView AgentQueue::current() {
  if (!losers_.empty()) return losers_.front().first;
  if (place_) return options_.skipped->current(*place_);
  keep_within_quota(current_);
  return current_;
}

void AgentQueue::take(std::optional<int64_t> limit, QueuedTasks& offered) {
  SkippedUnits* const skipped = options_.skipped;
  if (!losers_.empty()) {
    auto& [losers, since_us] = losers_.front();
    skipped->try_again(since_us);
    take_head(losers, limit, options_.gang, offered);
    if (losers.empty()) losers_.pop_front();
  } else if (place_) {
    skipped->take(*place_, limit, offered);
  } else {
    keep_within_quota(current_);
    take_head(current_, limit, options_.gang, offered);
    if (skipped) skipped->pass_on();
  }
  if (options_.account) options_.account->offer(offered.task);
}

std::span<const int64_t> AgentQueue::holder(int64_t now_us) const {
  if (options_.skipped) return options_.skipped->holder(now_us);
  if (options_.whole_queue) return {};
  return without_room_;
}

void AgentQueue::claimed_tasks(const RoundTasks& round, const PlannedTasks& plan,
                               QueuedTasks& claimed) const {
  claimed.clear();
  if (plan.in_full || std::ranges::equal(plan.claimed, round.offered.task)) {
    claimed.append(round.offered);
    return;
  }
  RowsByTask rows(round.offered.task);
  for (const int64_t task : plan.claimed) {
    const auto row = rows.find(task);
    if (!row) refuse(task, "a task that the round was offered");
    claimed.append_row(round.offered, *row);
  }
}

void AgentQueue::planned(RoundTasks& round, const PlannedTasks& plan, int64_t start_us) {
  if (options_.account) options_.account->withdraw(plan.pending);
  if (options_.skipped) round.since_us = options_.skipped->since_us();
  without_room_.clear();
  if (plan.pending.empty()) return;
  add_too_large(plan, exits_.too_large);
  if (options_.account) options_.account->drop(exits_.too_large);
  QueuedTasks& left = options_.requeues ? round.left : scratch_;
  left.clear();
  RowsByTask pending(plan.pending);
  for (size_t i = 0; i < round.offered.size(); ++i) {
    const auto row = pending.find(round.offered.task[i]);
    if (row && !is_too_large(plan, *row)) left.append_row(round.offered, i);
  }
  if (options_.requeues) return;
  round.blocked = !left.empty();
  if (!options_.skipped) {
    current_.prepend(left);
    without_room_ = left.task;
  } else if (round.blocked) {
    options_.skipped->on_no_room(start_us, left);
  }
}

void AgentQueue::committed(const RoundTasks& round, const PlannedTasks& plan,
                           const QueuedTasksView& losers) {
  if (options_.account) options_.account->withdraw(losers.task);
  if (options_.requeues)
    requeue(round, plan, losers);
  else if (!options_.skipped)
    current_.prepend(losers);
  else if (!losers.empty())
    losers_.emplace_back(QueuedTasks{}, round.since_us).first.assign(losers);
  if (attempts_) give_up(round, plan, losers);
}

void AgentQueue::on_requeue_due(int64_t key) {
  const auto paused = paused_.find(key);
  if (paused == paused_.end())
    throw std::out_of_range("pause " + std::to_string(key) + ": expected one that is not over");
  lines_.append(paused->second);
  paused_.erase(paused);
}

void AgentQueue::see_waiting(int64_t now_us, const SeeWaiting& see) {
  const auto holding = holder(now_us);
  const Waiting why = holding.empty() ? Waiting::NotTried : Waiting::Behind;
  const int64_t ahead = holding.empty() ? kNobody : holding[0];
  QueuedTasks skipped_units;
  if (options_.skipped) options_.skipped->all_tasks(skipped_units);
  const std::vector<int64_t>& lacks = options_.skipped ? skipped_units.task : without_room_;
  see(lacks, Waiting::NoRoom, kNobody);
  std::vector<int64_t> others;
  RowsByTask rows(lacks);
  std::ranges::copy_if(current_.task, std::back_inserter(others),
                       [&](int64_t task) { return !rows.find(task); });
  see(others, why, ahead);
  if (!options_.account) lines_.waiting(holding, see);
  for (const auto& [losers, since_us] : losers_) see(losers.task, Waiting::Rejected, kNobody);
  for (const auto& [key, tasks] : paused_) see(tasks.task, Waiting::Paused, kNobody);
  if (options_.account) lines_.waiting(holding, see);
}

// Whether there are batches that join the next round. Of a group's quota, what is left of the
// current batch takes its part first: others would find none either.
bool AgentQueue::has_new_batches() const {
  return options_.whole_queue && lines_.has_new_head(current_.task);
}

// Whether a batch can be begun, or the current one continued.
bool AgentQueue::has_batch() const { return may_continue() || lines_.has_head(); }

// Whether a task of the current batch may be offered.
bool AgentQueue::may_continue() const {
  if (current_.empty()) return false;
  return !options_.account || options_.account->any_within(current_.task);
}

// Whether there are tasks whose claims were rejected and that may be offered again.
bool AgentQueue::has_losers() {
  while (!losers_.empty()) {
    keep_within_quota(losers_.front().first);
    if (!losers_.front().first.empty()) return true;
    losers_.pop_front();
  }
  return false;
}

// Whether there is something to offer though the view has not changed, where others go ahead.
bool AgentQueue::has_more(int64_t now_us) {
  if (has_losers()) return true;
  const bool batch = has_batch();
  if (options_.skipped->due(now_us, batch)) return true;
  return batch && !options_.skipped->holds(now_us);
}

// Continues the current batch or begins the next, as next_batch().
std::optional<int64_t> AgentQueue::begin_batch() {
  if (has_new_batches()) {
    lines_.take_new(current_.task, current_);
    return static_cast<int64_t>(current_.size());
  }
  if (may_continue()) return 0;
  if (!lines_.has_head()) return std::nullopt;
  scratch_.clear();
  std::swap(scratch_, current_);
  lines_.take_head(scratch_, current_);
  return static_cast<int64_t>(current_.size());
}

// Puts those that may not be offered now back into their lines.
void AgentQueue::keep_within_quota(QueuedTasks& tasks) {
  if (!options_.account || tasks.empty()) return;
  const auto fits = options_.account->within(tasks.task);
  if (std::ranges::all_of(fits, [](uint8_t fit) { return fit != 0; })) return;
  QueuedTasks kept, others;
  kept.rounds = others.rounds = tasks.rounds;
  kept.some_placed = others.some_placed = tasks.some_placed;
  for (size_t i = 0; i < tasks.size(); ++i) (fits[i] ? kept : others).append_row(tasks, i);
  lines_.put_back(others);
  std::swap(tasks, kept);
}

void AgentQueue::give_up_jobs(std::span<const int64_t> job, int64_t most, int64_t most_unplaced) {
  if (options_.requeues || options_.skipped || options_.account)
    throw std::logic_error("give_up_jobs: expected a queue that offers all that waits");
  attempts_.emplace(job, most, most_unplaced);
}

// Removes the jobs that have had their chances: what waits of them is in the current batch.
void AgentQueue::give_up(const RoundTasks& round, const PlannedTasks& plan,
                         const QueuedTasksView& losers) {
  attempts_->on_round(round, plan, losers, exits_.abandoned);
  if (exits_.abandoned.empty()) return;
  RowsByTask gone(exits_.abandoned);
  size_t kept = 0;
  for (size_t i = 0; i < current_.size(); ++i) {
    if (gone.find(current_.task[i])) continue;
    current_.task[kept] = current_.task[i];
    current_.attempts[kept] = current_.attempts[i];
    current_.first[kept++] = current_.first[i];
  }
  current_.truncate(kept);
  std::erase_if(without_room_, [&](int64_t task) { return gone.find(task).has_value(); });
}

// The tasks that the round left without a place pause together, unless they have had their chances.
void AgentQueue::requeue(const RoundTasks& round, const PlannedTasks& plan,
                         const QueuedTasksView& losers) {
  scratch_.assign(losers);
  scratch_.append(round.left);
  if (scratch_.empty()) return;
  size_t gone = scratch_.size();
  for (size_t i = 0; i < plan.pending.size(); ++i) gone += is_too_large(plan, i);
  const int64_t rounds = round.offered.rounds + 1;
  const bool some_placed = round.offered.some_placed || gone < round.offered.size();
  const int64_t most = some_placed
                           ? options_.attempts_max
                           : std::min(options_.attempts_max, options_.attempts_max_unplaced);
  if (rounds >= most) {
    exits_.abandoned = scratch_.task;
    if (options_.account) options_.account->drop(exits_.abandoned);
    return;
  }
  exits_.retry = ++pauses_;
  QueuedTasks& paused = paused_[pauses_];
  std::swap(paused, scratch_);
  paused.rounds = rounds;
  paused.some_placed = some_placed;
}

bool SchedulerQueue::has_new(int64_t) { return !current_.empty() || !new_.empty(); }

bool SchedulerQueue::has_next(int64_t now_us, bool view_changed) {
  return has_new(now_us) || (view_changed && !kept_.empty());
}

void SchedulerQueue::enqueue(const QueuedTasksView& tasks) {
  new_.push_back(from_spare(spare_));
  new_.back().append(tasks);
}

std::optional<int64_t> SchedulerQueue::next_batch(int64_t, bool view_changed) {
  if (!whole_queue_ && !current_.empty()) return 0;
  while (!new_.empty() && (whole_queue_ || current_.empty())) {
    current_.append(new_.front());
    spare_.push_back(std::move(new_.front()));
    new_.pop_front();
  }
  if (current_.empty() && (kept_.empty() || !view_changed)) return std::nullopt;
  return std::max<int64_t>(1, static_cast<int64_t>(current_.size()));
}

void SchedulerQueue::take(std::optional<int64_t> limit, QueuedTasks& offered) {
  take_head(current_, limit, gang_, offered);
}

void SchedulerQueue::claimed_tasks(const RoundTasks& round, const PlannedTasks&,
                                   QueuedTasks& claimed) const {
  claimed.assign(round.claimed);
}

void SchedulerQueue::planned(RoundTasks& round, const PlannedTasks& plan, int64_t) {
  if (plan.in_full) return round.claimed.append(round.offered);
  const QueuedTasks& offered = round.offered;
  QueuedTasks& claimed = round.claimed;
  std::vector<uint8_t> is_claimed(offered.size());
  RowsByTask rows(offered.task);
  for (const int64_t task : plan.claimed) {
    if (const auto row = rows.find(task)) {
      is_claimed[*row] = 1;
      claimed.append_row(offered, *row);
      continue;
    }
    const auto kept = kept_.extract(task);
    if (!kept) refuse(task, "one that the scheduler was offered, or had kept");
    claimed.task.push_back(task);
    claimed.attempts.push_back(kept.mapped().attempts);
    claimed.first.push_back(kept.mapped().first);
  }
  for (size_t i = 0; i < offered.size(); ++i)
    if (!is_claimed[i])
      kept_[offered.task[i]] = {offered.attempts[i], offered.first[i], PendingReason::NoRoom};
  for (size_t i = 0; i < plan.pending.size(); ++i) {
    const auto kept = kept_.find(plan.pending[i]);
    if (kept == kept_.end()) refuse(plan.pending[i], "one that waits with the scheduler");
    if (is_too_large(plan, i))
      kept_.erase(kept);
    else
      kept->second.reason = static_cast<PendingReason>(plan.pending_reason[i]);
  }
}

void SchedulerQueue::committed(const RoundTasks&, const PlannedTasks& plan,
                               const QueuedTasksView& losers) {
  current_.prepend(losers);
  add_too_large(plan, exits_.too_large);
}

void SchedulerQueue::on_requeue_due(int64_t) {
  throw std::logic_error(
      "losers of a scheduler that remembers what waits are offered again at once");
}

void SchedulerQueue::see_waiting(int64_t, const SeeWaiting& see) {
  static constexpr std::pair<PendingReason, Waiting> kWhy[] = {
      {PendingReason::NoRoom, Waiting::NoRoom},
      {PendingReason::PricedOut, Waiting::PricedOut},
      {PendingReason::WaitsForPreferred, Waiting::WaitsForPreferred},
      {PendingReason::SlotsTooDear, Waiting::SlotsTooDear},
      {PendingReason::HeldBack, Waiting::HeldBack},
      {PendingReason::NotRouted, Waiting::NotRouted},
  };
  for (const auto& [reason, why] : kWhy) {
    std::vector<int64_t> task;
    for (const auto& [one, kept] : kept_)
      if (kept.reason == reason) task.push_back(one);
    std::ranges::sort(task);
    see(task, why, kNobody);
  }
  see(current_.task, Waiting::NotTried, kNobody);
  for (const QueuedTasks& tasks : new_) see(tasks.task, Waiting::NotTried, kNobody);
}

}  // namespace agora
