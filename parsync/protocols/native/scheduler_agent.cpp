#include "scheduler_agent.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "parsync/core/native/event.hpp"
#include "schedulers/native/contract.hpp"
#include "shared_state/native/cell.hpp"

namespace agora {

namespace {

constexpr int8_t kAbandoned = 1;  // schedulers.unplaceable.Unplaceable

bool is_accepted(int8_t reason) { return reason == static_cast<int8_t>(Reason::Accepted); }
bool is_duplicate(int8_t reason) { return reason == static_cast<int8_t>(Reason::Duplicate); }

// What stands or falls together: gangs, and every task without one by itself. (To the cell, claims
// without a gang are one group.)
SharedColumn<int64_t> gangs_or_alone(std::span<const int64_t> gang) {
  auto [unit, values] = SharedColumn<int64_t>::make(gang.size());
  for (size_t i = 0; i < gang.size(); ++i)
    values[i] = gang[i] == kNoGang ? kNoGang - 1 - static_cast<int64_t>(i) : gang[i];
  return unit;
}

SharedColumn<int64_t> jobs_of(std::span<const int64_t> task, std::span<const int64_t> job) {
  auto [unit, values] = SharedColumn<int64_t>::make(task.size());
  for (size_t i = 0; i < task.size(); ++i) values[i] = job[row_of(task[i], job.size())];
  return unit;
}

}  // namespace

std::span<const int64_t> DecisionRound::about(std::vector<int64_t>& joined) const {
  const std::vector<int64_t>& offered = tasks.offered.task;
  if (plan.in_full || plan.task.size() == 0) return offered;
  joined = offered;
  joined.insert(joined.end(), plan.task.begin(), plan.task.end());
  std::ranges::sort(joined);
  const auto repeated = std::ranges::unique(joined);
  joined.erase(repeated.begin(), repeated.end());
  return joined;
}

void GreedyAgentScheduler::plan(int64_t now_us, std::span<const int64_t> task,
                                DecisionRound& round) {
  planner_.plan(cell_, {round.number, now_us, round.ranking, task}, view_.order());
  if (!planner_.seqnum().empty()) round.plan.seqnum = SharedColumn<uint32_t>(planner_.seqnum());
  ClaimedPlan plan = planner_.take();
  const bool in_full = plan.in_full();
  const size_t claims = plan.task.size(), width = cell_.static_state().dimensions();
  const auto request = std::make_shared<std::vector<int64_t>>(std::move(plan.request));
  round.plan.request = SharedTable<int64_t>(request->data(), claims, width, request);
  round.plan.task = column_of(std::move(plan.task));
  round.plan.machine = column_of(std::move(plan.machine));
  round.plan.gang = column_of(std::move(plan.gang));
  round.plan.synced_us = column_of(std::move(plan.synced_us));
  round.plan.pending = column_of(std::move(plan.pending));
  round.plan.pending_reason = column_of(std::move(plan.pending_reason));
  round.plan.ticket = plan.ticket;
  round.plan.operations = plan.operations;
  round.plan.in_full = in_full;
}

SchedulerAgent::SchedulerAgent(const Settings& settings, const Parts& parts, Activity activity)
    : activity_(activity), settings_(settings), parts_(parts), holds_(parts.log) {}

void SchedulerAgent::handle(int64_t now_us, const EventPtr& event, Effects& effects) {
  switch (event->key()) {
    case DecisionDone::kType.key():
      return on_decision_done(now_us, as<DecisionDone>(event).decision, effects);
    case CommitReply::kType.key():
      return on_commit_reply(now_us, as<CommitReply>(event), effects);
    case TasksSubmitted::kType.key():
      return submit(now_us, as<TasksSubmitted>(event).task, true, effects);
    case TasksEnded::kType.key():
      return on_ended(now_us, event, effects);
    case TasksAdopted::kType.key():
      return on_adopted(now_us, event);
    case SampleDue::kType.key():
      log_sample(now_us);
      effects.hand_out();
      on_hand_out(effects);
      return set_sample_timer(now_us, as<SampleDue>(event).sample, effects);
    case Started::kType.key():
      return on_started(now_us, as<Started>(event).epoch, effects);
    case QuotaRequest::kType.key():
      if (!parts_.quota) break;
      return parts_.quota->on_request(as<QuotaRequest>(event).round, effects);
    case QuotaGrant::kType.key():
      if (!parts_.quota) break;
      return on_granted(now_us, event, effects);
    default:
      break;
  }
  on_event(now_us, event, effects);
}

void SchedulerAgent::set_sample_timer(int64_t now_us, int64_t sample, Effects& effects) const {
  SampleDue due;
  due.sample = std::max(sample, now_us / settings_.sample_us) + 1;
  effects.set_timer(due.sample * settings_.sample_us, due);
}

void SchedulerAgent::finish(int64_t now_us) {
  log_sample(now_us);
  if (settings_.records_holds) holds_.end(now_us, 0);
}

// Tasks.

// first: their next commit is their first; else they ran before.
void SchedulerAgent::submit(int64_t now_us, const SharedColumn<int64_t>& task, bool first,
                            Effects& effects) {
  QueuedTasks tasks;
  tasks.task.assign(task.begin(), task.end());
  tasks.attempts.assign(task.size(), 0);
  tasks.first.assign(task.size(), first ? 1 : 0);
  parts_.sorting_out.keep_placeable(now_us, tasks);
  if (tasks.empty()) return;
  parts_.queue.add(tasks);
  queued_ += static_cast<int64_t>(tasks.size());
  on_queued(now_us, effects);
}

void SchedulerAgent::on_adopted(int64_t now_us, const EventPtr& event) {
  if (parts_.observer) parts_.observer->on_adopted(now_us, event);
  if (parts_.quota) parts_.quota->on_adopted(event);
  parts_.queue.on_adopted(as<TasksAdopted>(event).task.span());
}

void SchedulerAgent::on_ended(int64_t now_us, const EventPtr& event, Effects& effects) {
  const auto& ended = as<TasksEnded>(event);
  check_rows("TasksEnded", ended.task.size(), ended.allocation, ended.machine, ended.request,
             ended.version);
  if (ended.request.width() != parts_.cell.static_state().dimensions())
    throw std::invalid_argument("TasksEnded.request: expected a column for each resource");
  if (parts_.quota) parts_.quota->on_ended(event);
  if (parts_.observer) parts_.observer->on_ended(now_us, event);
  if (ended.change != static_cast<int64_t>(ChangeKind::Finished))
    return submit(now_us, ended.task, false, effects);
  on_finished(now_us, ended, parts_.queue.on_finished(ended.task.span()), effects);
}

void SchedulerAgent::on_finished(int64_t now_us, const TasksEnded&, bool admits, Effects& effects) {
  if (admits) on_queued(now_us, effects);
}

void SchedulerAgent::on_paused(int64_t, int64_t, Effects&) {
  throw std::logic_error("a queue whose tasks pause needs a timer: override on_paused()");
}

// What was held back may have room now; running tasks may have to go.
void SchedulerAgent::on_granted(int64_t now_us, const EventPtr& event, Effects& effects) {
  if (const TransactionPtr reclaim = parts_.quota->on_grant(event, transactions_ + 1)) {
    ++transactions_;  // its answer has nothing to settle
    send(reclaim, effects);
  }
  if (activity_ == Activity::Idle) next(now_us, false, effects);
}

// Rounds.

void SchedulerAgent::next(int64_t now_us, bool looks_anyway, Effects& effects) {
  const bool is_asked = retry_wanted_us_ && *retry_wanted_us_ <= now_us;
  looks_anyway_ = looks_anyway_ || looks_anyway || is_asked;
  if (parts_.queue.has_next(now_us, parts_.view.changed || looks_anyway_)) {
    activity_ = Activity::Starting;
    return start_round(now_us, effects);
  }
  activity_ = parts_.queue.has_waiting() ? Activity::BlockedOnCapacity : Activity::Idle;
  if (activity_ == Activity::BlockedOnCapacity) on_blocked(now_us, effects);
}

void SchedulerAgent::open_round(int64_t now_us, Effects& effects) {
  const bool changed = parts_.view.changed || looks_anyway_;
  const std::optional<int64_t> begun = parts_.queue.next_batch(now_us, changed);
  looks_anyway_ = false;
  if (!begun) {  // a smaller grant of quota has come since has_next()
    activity_ = Activity::Idle;
    return;
  }
  if (*begun > 0) batch_size_ = *begun;
  const Composition composed = compose(now_us, *begun > 0);
  ++rounds_;
  round_.emplace(DecisionRound{rounds_, now_us, composed.ranking, batch_size_});
  parts_.queue.take(composed.most, round_->tasks.offered);
  retry_wanted_us_.reset();
  activity_ = Activity::Deciding;
  parts_.view.changed = false;
  effects.start_decision(rounds_);
}

void SchedulerAgent::plan(int64_t now_us, DecisionRound& round) {
  parts_.scheduler.plan(now_us, round.tasks.offered.task, round);
}

void SchedulerAgent::decide(int64_t decision, int64_t now_us) {
  if (!round_ || round_->number != decision)
    throw std::logic_error("StartDecision and the open round go together");
  plan(now_us, *round_);
}

int64_t SchedulerAgent::decision_us(int64_t elapsed_ns) {
  if (!round_ || round_->plan.ticket < 0) throw std::logic_error("decide() comes first");
  round_->decision_us = time_of(*round_, elapsed_ns);
  return round_->decision_us;
}

int64_t SchedulerAgent::time_of(const DecisionRound& round, int64_t elapsed_ns) {
  return parts_.scheduler.decision_us(round, elapsed_ns);
}

void SchedulerAgent::on_decision_done(int64_t now_us, int64_t decision, Effects& effects) {
  if (!round_ || round_->number != decision || round_->plan.ticket < 0)
    throw std::invalid_argument("DecisionDone: expected after decide(), with its number");
  DecisionRound round = std::move(*round_);
  round_.reset();
  const RoundPlan& plan = round.plan;
  retry_wanted_us_ = plan.retry_at_us;
  parts_.log.decided(round.decision_us);
  if (plan.figures) parts_.log.round(now_us, *plan.figures);
  record(now_us, parts_.queue.on_planned(round.tasks, plan.tasks(), round.start_us), effects);
  on_decided(now_us, round, effects);
  if (settings_.records_holds) {
    const auto claims = static_cast<int64_t>(plan.task.size());
    holds_.see(now_us, parts_.queue.holder(now_us), queued_ - claims_in_flight_ - claims);
  }
  if (plan.task.size() == 0 && plan.evict.size() == 0) {
    std::vector<int64_t> joined;
    parts_.log.attempts({round.start_us, round.decision_us, round.about(joined)});
    return end_round(now_us, round, {}, effects);
  }
  const bool blocked = round.tasks.blocked;
  commit(std::move(round), effects);
  if (settings_.pipelines) return begin_next(now_us, blocked, effects);
  activity_ = Activity::Committing;
}

// Commits.

void SchedulerAgent::commit(DecisionRound round, Effects& effects) {
  const int64_t number = ++transactions_;
  TransactionPtr transaction = transaction_of(round);
  send(transaction, effects);
  claims_in_flight_ += static_cast<int64_t>(transaction->size());
  in_flight_.emplace(number, InFlight{std::move(round), std::move(transaction)});
}

void SchedulerAgent::send(TransactionPtr transaction, Effects& effects) {
  CommitRequest request;
  request.reply_to = settings_.index;
  request.transaction = std::move(transaction);
  effects.send(kMaster, std::move(request));
}

TransactionPtr SchedulerAgent::transaction_of(const DecisionRound& round) const {
  const RoundPlan& plan = round.plan;
  Transaction made;
  made.scheduler = settings_.index;
  made.sequence = transactions_;
  made.task = plan.task;
  made.machine = plan.machine;
  made.request = plan.request;
  made.synced_us = plan.synced_us;
  if (settings_.checks_seqnum) made.conflict_check = ConflictCheck::SequenceNumber;
  if (settings_.unit != Settings::Unit::Claim) {
    made.commit_mode = CommitMode::AllOrNothing;
    made.gang = settings_.unit == Settings::Unit::Job ? jobs_of(plan.task.span(), settings_.job)
                                                      : gangs_or_alone(plan.gang.span());
  }
  made.seqnum = plan.seqnum;
  if (plan.evict.size() > 0) made.evict = plan.evict;
  made.holds = round.holds;
  return std::make_shared<const Transaction>(std::move(made));
}

void SchedulerAgent::on_commit_reply(int64_t now_us, const CommitReply& reply, Effects& effects) {
  const CommitResult& result = *reply.result;
  const auto found = in_flight_.find(result.sequence);
  // An answer that was repeated after a restart, or to a transaction without claims.
  if (found == in_flight_.end()) return;
  const DecisionRound& round = found->second.round;
  const Transaction& claims = *found->second.transaction;
  check_rows("CommitReply", claims.size(), result.reason, result.allocation, result.rival,
             result.age_us, result.version);
  if (round.plan.ticket >= 0)
    parts_.cell.settle(round.plan.ticket, result.reason.span(), result.version.span());
  claims_in_flight_ -= static_cast<int64_t>(claims.size());
  const auto held = in_flight_.extract(found);
  // While they were under way, claims with sequence numbers kept their machines closed.
  parts_.view.changed = parts_.view.changed || settings_.checks_seqnum;

  QueuedTasks claimed;
  parts_.queue.claimed_tasks(round.tasks, round.plan.tasks(), claimed);
  for (int32_t& attempts : claimed.attempts) ++attempts;
  std::vector<int64_t> joined;
  const OutcomeSums sums =
      parts_.log.commit(now_us,
                        {result.sequence, claims.task.span(), claims.machine.data(),
                         claims.synced_us.data(), claimed.attempts.data(), claimed.first.data(),
                         result.reason.data(), result.rival.data(), result.age_us.data()},
                        {round.start_us, round.decision_us, static_cast<int64_t>(round.ranking),
                         round.about(joined)});
  on_outcome(now_us, round, claims, result, sums);
  if (parts_.quota) parts_.quota->on_outcome(held.mapped().transaction, reply.result);
  const int64_t accepted = sums.claims[static_cast<size_t>(Reason::Accepted)];
  if (parts_.observer)
    parts_.observer->on_outcome(now_us, held.mapped().transaction, reply.result, accepted);
  queued_ -= accepted + sums.claims[static_cast<size_t>(Reason::Duplicate)];

  QueuedTasks losers;
  for (size_t i = 0; i < claims.size(); ++i)
    if (!is_accepted(result.reason[i]) && !is_duplicate(result.reason[i]))
      losers.append_row(claimed, i);
  end_round(now_us, round, losers, effects);
}

// Puts the losers where they belong.
void SchedulerAgent::end_round(int64_t now_us, const DecisionRound& round,
                               const QueuedTasksView& losers, Effects& effects) {
  record(now_us, parts_.queue.on_committed(round.tasks, round.plan.tasks(), losers), effects);
  on_round_over(now_us, round, effects);
}

void SchedulerAgent::on_round_over(int64_t now_us, const DecisionRound& round, Effects& effects) {
  const bool is_over = activity_ == Activity::Deciding || activity_ == Activity::Committing;
  if (is_over && !round_) return begin_next(now_us, round.tasks.blocked, effects);
  if (activity_ == Activity::Idle || (activity_ == Activity::BlockedOnCapacity &&
                                      (parts_.view.changed || parts_.queue.has_new(now_us))))
    next(now_us, false, effects);
}

void SchedulerAgent::begin_next(int64_t now_us, bool blocked, Effects& effects) {
  if (!blocked || parts_.view.changed || parts_.queue.has_new(now_us))
    return next(now_us, false, effects);
  activity_ = Activity::BlockedOnCapacity;
  on_blocked(now_us, effects);
}

// Records tasks that will never be placed, and has those that pause do so.
void SchedulerAgent::record(int64_t now_us, const QueueExits& exits, Effects& effects) {
  if (exits.empty()) return;
  queued_ -= static_cast<int64_t>(exits.too_large.size() + exits.abandoned.size());
  if (!exits.too_large.empty()) parts_.sorting_out.record(now_us, exits.too_large);
  if (!exits.abandoned.empty()) parts_.log.unplaceable(now_us, exits.abandoned, kAbandoned);
  if (exits.retry) on_paused(now_us, exits.retry, effects);
}

}  // namespace agora
