#include "optimistic_agent.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "parsync/core/native/event.hpp"
#include "schedulers/native/contract.hpp"
#include "shared_state/native/cell.hpp"

namespace agora {

using optimistic::DemandReply;
using optimistic::RequeueDue;
using optimistic::RetryDue;
using optimistic::RoundDue;
using optimistic::SyncDue;

namespace {

constexpr int8_t kAbandoned = 1;  // schedulers.unplaceable.Unplaceable

// An event with the first of its fields.
template <class T, class Value>
T with(Value T::* field, Value value) {
  T event;
  event.*field = value;
  return event;
}

// The vector as a column, which takes its memory.
template <class T>
SharedColumn<T> column_of(std::vector<T> values) {
  const auto held = std::make_shared<std::vector<T>>(std::move(values));
  return SharedColumn<T>(held->data(), held->size(), held);
}

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

void GreedyAgentScheduler::plan(int64_t now_us, DecisionRound& round) {
  planner_.plan(cell_, {round.number, now_us, round.ranking, round.tasks.offered.task},
                view_.order());
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
  round.plan.in_full = in_full;
}

OptimisticAgent::OptimisticAgent(const Settings& settings, const Parts& parts)
    : settings_(settings),
      parts_(parts),
      visible_(parts.view.visible()),
      sync_(parts.sync, parts.view.order().size()),
      average_(settings.average_permille),
      holds_(parts.log),
      begun_us_(-settings.min_retry_interval_us),
      ranking_(parts.rankings.ranking()) {}

void OptimisticAgent::handle(int64_t now_us, const EventPtr& event, Effects& effects) {
  switch (event->key()) {
    case SyncReply::kType.key():
      return on_synced(now_us, as<SyncReply>(event), effects);
    case DecisionDone::kType.key():
      return on_decided(now_us, as<DecisionDone>(event).decision, effects);
    case CommitReply::kType.key():
      return on_committed(now_us, as<CommitReply>(event), effects);
    case TasksSubmitted::kType.key():
      return submit(now_us, as<TasksSubmitted>(event).task, true, effects);
    case RoundDue::kType.key():
      return start_round(now_us, effects);
    case SyncDue::kType.key():
      return on_sync_due(now_us, as<SyncDue>(event).k, effects);
    case SampleDue::kType.key():
      return on_sample_due(now_us, as<SampleDue>(event).sample, effects);
    case RequeueDue::kType.key():
      parts_.queue.on_requeue_due(as<RequeueDue>(event).key);
      if (activity_ == Activity::Idle) next(now_us, false, effects);
      return;
    case RetryDue::kType.key():
      if (activity_ == Activity::BlockedOnCapacity && as<RetryDue>(event).round == rounds_)
        next(now_us, true, effects);
      return;
    case TasksEnded::kType.key():
      return on_ended(now_us, event, effects);
    case TasksAdopted::kType.key():
      return on_adopted(now_us, event);
    case Started::kType.key():
      return start(now_us, effects);
    case QuotaRequest::kType.key():
      if (!parts_.quota) break;
      return parts_.quota->on_request(as<QuotaRequest>(event).round, effects);
    case QuotaGrant::kType.key():
      if (!parts_.quota) break;
      return on_granted(now_us, event, effects);
    case DemandReply::kType.key():
      if (!parts_.demand) break;
      return parts_.demand->on_reply(now_us, event);
    case RunningReply::kType.key():
      if (!parts_.preemptible) break;
      return parts_.preemptible->on_reply(event);
    default:
      break;
  }
  throw WrongEvent{"agent", event};
}

// Synchronisation.

void OptimisticAgent::start(int64_t now_us, Effects& effects) {
  if (parts_.demand) parts_.demand->request(now_us, effects);
  parts_.view.start(now_us);
  ask_for_all(effects);
  effects.set_timer(now_us + settings_.sample_us,
                    with(&SampleDue::sample, now_us / settings_.sample_us + 1));
  sync_.start(now_us, effects);
}

// Asks the master for what has changed in partitions, all of which the agent may use.
void OptimisticAgent::ask(const SharedColumn<int32_t>& partition, Effects& effects) {
  // The answer about running tasks comes first: a round may begin with that to the other.
  if (parts_.preemptible) parts_.preemptible->request(partition, effects);
  auto [version, values] = SharedColumn<int64_t>::make(partition.size());
  for (size_t i = 0; i < partition.size(); ++i)
    values[i] = parts_.cell.versions()[static_cast<size_t>(partition[i])];
  SyncRequest request;
  request.agent = settings_.index;
  request.partition = partition;
  request.version = std::move(version);
  request.with_seqnum = settings_.checks_seqnum;
  effects.send(kMaster, std::move(request));
}

void OptimisticAgent::on_sync_due(int64_t now_us, int64_t k, Effects& effects) {
  Effects timers;
  SharedColumn<int32_t> partition = sync_.on_due(
      now_us, k, average_.us(), queued_, [this] { return parts_.view.used_permille(); }, timers);
  if (parts_.demand) parts_.demand->request(now_us, effects);
  if (visible_.size() < parts_.view.order().size()) {
    std::vector<int32_t> seen;
    std::ranges::copy_if(partition, std::back_inserter(seen),
                         [this](int32_t one) { return std::ranges::binary_search(visible_, one); });
    partition = column_of(std::move(seen));
  }
  if (partition.size() > 0) ask(partition, effects);
  for (Effect& timer : timers.list()) effects.add(std::move(timer));
}

void OptimisticAgent::on_synced(int64_t now_us, const SyncReply& reply, Effects& effects) {
  if (!parts_.view.on_reply(now_us, reply, rounds_, parts_.log, sync_.rows_changed()))
    return ask_for_all(effects);  // the master was restarted
  if (parts_.quota) parts_.quota->on_synced();
  if (activity_ == Activity::Syncing)
    open_round(now_us, effects);
  else if (activity_ == Activity::BlockedOnCapacity || activity_ == Activity::Idle)
    next(now_us, false, effects);
}

// Tasks.

// first: their next commit is their first; else they ran before.
void OptimisticAgent::submit(int64_t now_us, const SharedColumn<int64_t>& task, bool first,
                             Effects& effects) {
  QueuedTasks tasks;
  tasks.task.assign(task.begin(), task.end());
  tasks.attempts.assign(task.size(), 0);
  tasks.first.assign(task.size(), first ? 1 : 0);
  parts_.sorting_out.keep_placeable(now_us, tasks);
  if (tasks.empty()) return;
  parts_.queue.add(tasks);
  queued_ += static_cast<int64_t>(tasks.size());
  look_again(now_us, effects);
}

// Begins the next round because of new tasks, unless one is under way.
void OptimisticAgent::look_again(int64_t now_us, Effects& effects) {
  // What is new is a reason to look again only for those to whom that may show more than the last
  // look did.
  const bool at_every_attempt = parts_.sync.at_every_attempt();
  const bool looks = parts_.queue.has_new(now_us) || at_every_attempt;
  if (activity_ == Activity::Idle ||
      (activity_ == Activity::BlockedOnCapacity && looks && parts_.view.is_synced()))
    next(now_us, at_every_attempt, effects);
}

void OptimisticAgent::on_adopted(int64_t now_us, const EventPtr& event) {
  if (parts_.observer) parts_.observer->on_adopted(now_us, event);
  if (parts_.quota) parts_.quota->on_adopted(event);
  parts_.queue.on_adopted(as<TasksAdopted>(event).task.span());
}

void OptimisticAgent::on_ended(int64_t now_us, const EventPtr& event, Effects& effects) {
  const auto& ended = as<TasksEnded>(event);
  check_rows("TasksEnded", ended.task.size(), ended.allocation, ended.machine, ended.request,
             ended.version);
  if (ended.request.width() != parts_.cell.static_state().dimensions())
    throw std::invalid_argument("TasksEnded.request: expected a column for each resource");
  if (parts_.quota) parts_.quota->on_ended(event);
  if (parts_.observer) parts_.observer->on_ended(now_us, event);
  if (ended.change != static_cast<int64_t>(ChangeKind::Finished))
    return submit(now_us, ended.task, false, effects);
  const bool admits = parts_.queue.on_finished(ended.task.span());
  if (settings_.freed_at_once) {
    parts_.cell.released(ended.machine.span(), ended.request.data(), ended.version.span());
    parts_.view.changed = true;
    if (activity_ == Activity::BlockedOnCapacity) return next(now_us, false, effects);
  }
  if (admits) look_again(now_us, effects);
}

// What was held back may have room now; running tasks may have to go.
void OptimisticAgent::on_granted(int64_t now_us, const EventPtr& event, Effects& effects) {
  if (const TransactionPtr reclaim = parts_.quota->on_grant(event, transactions_ + 1)) {
    ++transactions_;  // its answer has nothing to settle
    send(reclaim, effects);
  }
  if (activity_ == Activity::Idle) next(now_us, false, effects);
}

// Rounds.

// Begins the next round at the end of this instant, if there is anything to decide.
//
// may_have_changed: the synchronisation before the round may show a change of the view.
void OptimisticAgent::next(int64_t now_us, bool may_have_changed, Effects& effects) {
  if (!parts_.view.is_synced()) {
    activity_ = Activity::BlockedOnCapacity;
    return;
  }
  const bool is_asked = retry_wanted_us_ && *retry_wanted_us_ <= now_us;
  view_may_have_changed_ = view_may_have_changed_ || may_have_changed || is_asked;
  if (!parts_.queue.has_next(now_us, parts_.view.changed || view_may_have_changed_)) {
    if (parts_.queue.has_waiting()) return block_on_capacity(now_us, effects);
    activity_ = Activity::Idle;
    return;
  }
  const int64_t may_begin_us = begun_us_ + settings_.min_retry_interval_us;
  if (may_begin_us > now_us && parts_.queue.has_waiting() && !parts_.queue.has_new(now_us)) {
    activity_ = Activity::BlockedOnCapacity;
    return retry_at(may_begin_us, effects);
  }
  activity_ = Activity::Starting;
  effects.set_timer(now_us, RoundDue{});
}

// Waits for the view to change, and for the time to decide again in any case: that of the sync
// policy, or of the scheduler if it is earlier.
void OptimisticAgent::block_on_capacity(int64_t now_us, Effects& effects) {
  activity_ = Activity::BlockedOnCapacity;
  std::optional<int64_t> at_us;
  if (const auto retry_us = parts_.sync.retry_us()) at_us = now_us + *retry_us;
  if (retry_wanted_us_) {
    const int64_t wanted_us = std::max(now_us, *retry_wanted_us_);
    at_us = at_us ? std::min(*at_us, wanted_us) : wanted_us;
  }
  if (at_us) retry_at(*at_us, effects);
}

void OptimisticAgent::retry_at(int64_t at_us, Effects& effects) {
  const std::pair timer(rounds_, at_us);
  if (retry_timer_ == timer) return;
  retry_timer_ = timer;
  effects.set_timer(at_us, with(&RetryDue::round, rounds_));
}

// Everything of this instant has been handled: freed slots, syncs and commits.
void OptimisticAgent::start_round(int64_t now_us, Effects& effects) {
  if (activity_ != Activity::Starting)
    throw std::invalid_argument("RoundDue: expected once for each round that is to begin");
  if (!parts_.sync.at_every_attempt()) return open_round(now_us, effects);
  activity_ = Activity::Syncing;
  if (parts_.demand) parts_.demand->request(now_us, effects);
  ask_for_all(effects);
}

// Composes the round's batch and asks for the decision.
void OptimisticAgent::open_round(int64_t now_us, Effects& effects) {
  const bool changed = parts_.view.changed || view_may_have_changed_;
  const std::optional<int64_t> begun = parts_.queue.next_batch(now_us, changed);
  view_may_have_changed_ = false;
  if (!begun) {  // a smaller grant of quota has come since has_next()
    activity_ = Activity::Idle;
    return;
  }
  if (*begun > 0) {
    batch_size_ = *begun;
    parts_.rankings.begin_batch(average_.us());
  }
  ranking_ = parts_.rankings.ranking();
  std::optional<int64_t> most = settings_.most_tasks;
  if (parts_.rankings.tells_lengths()) {
    const auto shared = parts_.rankings.of(parts_.queue.current().task);
    ranking_ = shared.ranking;
    most = std::min(most.value_or(INT64_MAX), static_cast<int64_t>(shared.tasks));
  }
  const auto window = round_window(now_us, settings_.cuts_at_sync ? sync_.next_us() : std::nullopt,
                                   settings_.longest_us, ranking_, parts_.view.order().size());
  if (window) {
    const std::optional<int64_t> in_time = parts_.scheduler.tasks_within(*window);
    if (in_time) most = std::min(most.value_or(*in_time), *in_time);
  }
  ++rounds_;
  round_.emplace(DecisionRound{rounds_, now_us, ranking_, batch_size_});
  parts_.queue.take(most, round_->tasks.offered);
  begun_us_ = now_us;
  retry_wanted_us_.reset();
  activity_ = Activity::Deciding;
  parts_.view.changed = false;
  effects.start_decision(rounds_);
}

void OptimisticAgent::decide(int64_t decision, int64_t now_us) {
  if (!round_ || round_->number != decision)
    throw std::logic_error("StartDecision and the open round go together");
  parts_.scheduler.plan(now_us, *round_);
}

int64_t OptimisticAgent::decision_us(int64_t elapsed_ns) {
  if (!round_ || round_->plan.ticket < 0) throw std::logic_error("decide() comes first");
  round_->decision_us = parts_.scheduler.decision_us(*round_, elapsed_ns);
  return round_->decision_us;
}

void OptimisticAgent::on_decided(int64_t now_us, int64_t decision, Effects& effects) {
  if (!round_ || round_->number != decision || round_->plan.ticket < 0)
    throw std::invalid_argument("DecisionDone: expected after decide(), with its number");
  DecisionRound round = std::move(*round_);
  round_.reset();
  const RoundPlan& plan = round.plan;
  retry_wanted_us_ = plan.retry_at_us;
  parts_.log.decided(round.decision_us);
  if (plan.figures) parts_.log.round(now_us, *plan.figures);
  record(now_us, parts_.queue.on_planned(round.tasks, plan.tasks(), round.start_us), effects);
  if (parts_.demand) parts_.demand->report(effects);
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

void OptimisticAgent::commit(DecisionRound round, Effects& effects) {
  const int64_t number = ++transactions_;
  TransactionPtr transaction = transaction_of(round);
  send(transaction, effects);
  claims_in_flight_ += static_cast<int64_t>(transaction->size());
  in_flight_.emplace(number, InFlight{std::move(round), std::move(transaction)});
}

void OptimisticAgent::send(TransactionPtr transaction, Effects& effects) {
  CommitRequest request;
  request.reply_to = settings_.index;
  request.transaction = std::move(transaction);
  effects.send(kMaster, std::move(request));
}

TransactionPtr OptimisticAgent::transaction_of(const DecisionRound& round) const {
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
  return std::make_shared<const Transaction>(std::move(made));
}

void OptimisticAgent::on_committed(int64_t now_us, const CommitReply& reply, Effects& effects) {
  const CommitResult& result = *reply.result;
  const auto found = in_flight_.find(result.sequence);
  // An answer that was repeated after a restart, or to a transaction without claims.
  if (found == in_flight_.end()) return;
  const DecisionRound& round = found->second.round;
  const Transaction& claims = *found->second.transaction;
  check_rows("CommitReply", claims.size(), result.reason, result.allocation, result.rival,
             result.age_us, result.version);
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
  if (parts_.sync.wants_feedback()) {
    std::vector<int32_t> partition;
    std::vector<uint8_t> conflict;
    for (size_t i = 0; i < claims.size(); ++i) {
      partition.push_back(parts_.view.partition_of(claims.machine[i]));
      conflict.push_back(is_conflict(result.reason[i]));
    }
    sync_.on_committed(partition, conflict);
  }
  average_.add(sums.delay_us, sums.first_commits, round.batch_size);
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

// Puts the losers where they belong, and goes on unless the agent has done so already.
void OptimisticAgent::end_round(int64_t now_us, const DecisionRound& round,
                                const QueuedTasksView& losers, Effects& effects) {
  record(now_us, parts_.queue.on_committed(round.tasks, round.plan.tasks(), losers), effects);
  const bool is_over = activity_ == Activity::Deciding || activity_ == Activity::Committing;
  if (is_over && !round_) return begin_next(now_us, round.tasks.blocked, effects);
  if (activity_ == Activity::Idle || (activity_ == Activity::BlockedOnCapacity &&
                                      (parts_.view.changed || parts_.queue.has_new(now_us))))
    next(now_us, false, effects);
}

// After a round. blocked: the view had no room left, so only a change of it helps.
void OptimisticAgent::begin_next(int64_t now_us, bool blocked, Effects& effects) {
  if (blocked && !parts_.view.changed && !parts_.queue.has_new(now_us))
    return block_on_capacity(now_us, effects);
  next(now_us, false, effects);
}

// Measurements.

// Records tasks that will never be placed, and sets the timer of those that are requeued.
void OptimisticAgent::record(int64_t now_us, const QueueExits& exits, Effects& effects) {
  if (exits.empty()) return;
  queued_ -= static_cast<int64_t>(exits.too_large.size() + exits.abandoned.size());
  if (!exits.too_large.empty()) parts_.sorting_out.record(now_us, exits.too_large);
  if (!exits.abandoned.empty()) parts_.log.unplaceable(now_us, exits.abandoned, kAbandoned);
  if (exits.retry)
    effects.set_timer(now_us + settings_.requeue_us, with(&RequeueDue::key, exits.retry));
}

void OptimisticAgent::log_sample(int64_t now_us) {
  parts_.log.sample(now_us, queued_, average_.us(), ranking_ == PartitionRanking::LatencyFirst,
                    parts_.view.staleness_us(now_us));
}

void OptimisticAgent::on_sample_due(int64_t now_us, int64_t sample, Effects& effects) {
  log_sample(now_us);
  effects.hand_out();
  if (parts_.demand) parts_.demand->hand_out(effects);
  const int64_t following = std::max(sample + 1, now_us / settings_.sample_us + 1);
  effects.set_timer(following * settings_.sample_us, with(&SampleDue::sample, following));
}

void OptimisticAgent::finish(int64_t now_us) {
  log_sample(now_us);
  if (settings_.records_holds) holds_.end(now_us, 0);
}

}  // namespace agora
