#include "optimistic_agent.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "parsync/core/native/event.hpp"
#include "shared_state/native/cell.hpp"

namespace agora {

using optimistic::DemandReply;
using optimistic::RequeueDue;
using optimistic::RetryDue;
using optimistic::RoundDue;
using optimistic::SyncDue;

namespace {

// An event with the first of its fields.
template <class T, class Value>
T with(Value T::* field, Value value) {
  T event;
  event.*field = value;
  return event;
}

}  // namespace

OptimisticAgent::OptimisticAgent(const Settings& settings, const Parts& parts)
    : SchedulerAgent(settings, parts, Activity::BlockedOnCapacity),
      settings_(settings),
      parts_(parts),
      visible_(parts.view.visible()),
      sync_(parts.sync, parts.view.order().size()),
      average_(settings.average_permille),
      begun_us_(-settings.min_retry_interval_us),
      ranking_(parts.rankings.ranking()) {}

void OptimisticAgent::on_event(int64_t now_us, const EventPtr& event, Effects& effects) {
  switch (event->key()) {
    case SyncReply::kType.key():
      return on_synced(now_us, as<SyncReply>(event), effects);
    case RoundDue::kType.key():
      return on_round_due(now_us, effects);
    case SyncDue::kType.key():
      return on_sync_due(now_us, as<SyncDue>(event).k, effects);
    case RequeueDue::kType.key():
      parts_.queue.on_requeue_due(as<RequeueDue>(event).key);
      if (activity_ == Activity::Idle) next(now_us, false, effects);
      return;
    case RetryDue::kType.key():
      if (activity_ == Activity::BlockedOnCapacity && as<RetryDue>(event).round == rounds())
        next(now_us, true, effects);
      return;
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

void OptimisticAgent::on_started(int64_t now_us, int64_t, Effects& effects) {
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
      now_us, k, average_.us(), queued(), [this] { return parts_.view.used_permille(); }, timers);
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
  if (!parts_.view.on_reply(now_us, reply, rounds(), parts_.log, sync_.rows_changed()))
    return ask_for_all(effects);  // the master was restarted
  if (parts_.quota) parts_.quota->on_synced();
  if (activity_ == Activity::Syncing)
    open_round(now_us, effects);
  else if (activity_ == Activity::BlockedOnCapacity || activity_ == Activity::Idle)
    next(now_us, false, effects);
}

// Tasks.

// Begins the next round because of new tasks, unless one is under way.
void OptimisticAgent::on_queued(int64_t now_us, Effects& effects) {
  // What is new is a reason to look again only for those to whom that may show more than the last
  // look did.
  const bool at_every_attempt = parts_.sync.at_every_attempt();
  const bool looks = parts_.queue.has_new(now_us) || at_every_attempt;
  if (activity_ == Activity::Idle ||
      (activity_ == Activity::BlockedOnCapacity && looks && parts_.view.is_synced()))
    next(now_us, at_every_attempt, effects);
}

void OptimisticAgent::on_finished(int64_t now_us, const TasksEnded& ended, bool admits,
                                  Effects& effects) {
  if (settings_.freed_at_once) {
    parts_.cell.released(ended.machine.span(), ended.request.data(), ended.version.span());
    parts_.view.changed = true;
    if (activity_ == Activity::BlockedOnCapacity) return next(now_us, false, effects);
  }
  SchedulerAgent::on_finished(now_us, ended, admits, effects);
}

void OptimisticAgent::on_paused(int64_t now_us, int64_t key, Effects& effects) {
  effects.set_timer(now_us + settings_.requeue_us, with(&RequeueDue::key, key));
}

// Rounds.

void OptimisticAgent::next(int64_t now_us, bool looks_anyway, Effects& effects) {
  if (parts_.view.is_synced()) return SchedulerAgent::next(now_us, looks_anyway, effects);
  activity_ = Activity::BlockedOnCapacity;
}

// The round begins at the end of this instant.
void OptimisticAgent::start_round(int64_t now_us, Effects& effects) {
  const int64_t may_begin_us = begun_us_ + settings_.min_retry_interval_us;
  if (may_begin_us > now_us && parts_.queue.has_waiting() && !parts_.queue.has_new(now_us)) {
    activity_ = Activity::BlockedOnCapacity;
    return retry_at(may_begin_us, effects);
  }
  effects.set_timer(now_us, RoundDue{});
}

// Waits for the view to change, and for the time to decide again in any case: that of the sync
// policy, or of the scheduler if it is earlier.
void OptimisticAgent::on_blocked(int64_t now_us, Effects& effects) {
  std::optional<int64_t> at_us;
  if (const auto retry_us = parts_.sync.retry_us()) at_us = now_us + *retry_us;
  if (const auto asked_us = retry_wanted_us()) {
    const int64_t wanted_us = std::max(now_us, *asked_us);
    at_us = at_us ? std::min(*at_us, wanted_us) : wanted_us;
  }
  if (at_us) retry_at(*at_us, effects);
}

void OptimisticAgent::retry_at(int64_t at_us, Effects& effects) {
  const std::pair timer(rounds(), at_us);
  if (retry_timer_ == timer) return;
  retry_timer_ = timer;
  effects.set_timer(at_us, with(&RetryDue::round, rounds()));
}

// Everything of this instant has been handled: freed slots, syncs and commits.
void OptimisticAgent::on_round_due(int64_t now_us, Effects& effects) {
  if (activity_ != Activity::Starting)
    throw std::invalid_argument("RoundDue: expected once for each round that is to begin");
  if (!parts_.sync.at_every_attempt()) return open_round(now_us, effects);
  activity_ = Activity::Syncing;
  if (parts_.demand) parts_.demand->request(now_us, effects);
  ask_for_all(effects);
}

SchedulerAgent::Composition OptimisticAgent::compose(int64_t now_us, bool begins) {
  if (begins) parts_.rankings.begin_batch(average_.us());
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
  begun_us_ = now_us;
  return {ranking_, most};
}

void OptimisticAgent::on_decided(int64_t, DecisionRound&, Effects& effects) {
  if (parts_.demand) parts_.demand->report(effects);
}

void OptimisticAgent::on_outcome(int64_t, const DecisionRound& round, const Transaction& claims,
                                 const CommitResult& result, const OutcomeSums& sums) {
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
}

// Measurements.

void OptimisticAgent::log_sample(int64_t now_us) {
  parts_.log.sample(now_us, queued(), average_.us(), ranking_ == PartitionRanking::LatencyFirst,
                    parts_.view.staleness_us(now_us));
}

void OptimisticAgent::on_hand_out(Effects& effects) {
  if (parts_.demand) parts_.demand->hand_out(effects);
}

}  // namespace agora
