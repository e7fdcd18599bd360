#include "slot_simulator.hpp"

#include <algorithm>

namespace agora::slots {

SlotSimulator::SlotSimulator(const SlotSettings& settings)
    : settings_(settings),
      table_(settings_),
      master_(table_, settings_.service_ns),
      sync_(settings_),
      best_scores_(table_),
      measurements_(settings_.groups.size(), static_cast<size_t>(settings_.gap_slices),
                    settings_.bin_ns),
      draws_(table_.partitions),
      best_partition_(table_.partitions),
      next_sync_(sync_.first_event()) {
  schedulers_.reserve(static_cast<size_t>(settings_.schedulers()));
  for (size_t group = 0; group < settings_.groups.size(); ++group)
    for (int64_t i = 0; i < settings_.groups[group].schedulers; ++i)
      schedulers_.emplace_back(settings_, table_, master_, schedulers_.size(), group);
  for (Scheduler& scheduler : schedulers_) {
    const int64_t event = sync_.one_by_one() ? scheduler.index : 0;
    const SyncTimes::Range seen = sync_.partitions(0, scheduler.index);
    scheduler.freshest = sync_.refreshes_all() ? scheduler.first_partition : seen.end - 1;
    scheduler.next_sync_ns = sync_.following_ns(event);
    for (BatchArrivals left = scheduler.arrivals; left.next_ns() != BatchArrivals::kNever;
         left.advance())
      tasks_expected_ += scheduler.settings_of_group->batch_tasks;
    wake(0, scheduler);
  }
}

Ending SlotSimulator::run(int64_t steps) {
  const int64_t enough = decisions_ + events_ + steps;
  while (ending_ == Ending::Running && decisions_ + events_ < enough) {
    const int64_t key = next_key();
    const int64_t now_ns = std::min(time_of(key), settings_.horizon_ns);
    while (ending_ == Ending::Running && measurements_.bin_end_ns() <= now_ns)
      close_bin(measurements_.bin_end_ns());
    if (ending_ != Ending::Running) break;
    if (time_of(key) >= settings_.horizon_ns) {
      end(settings_.horizon_ns, Ending::Horizon);
      break;
    }
    handle_next(key);
    if (tasks_committed_ == tasks_expected_) end(now_ns, Ending::Committed);
  }
  return ending_;
}

int64_t SlotSimulator::next_key() const {
  int64_t key = event_key(sync_.due_ns(next_sync_), EventKind::Sync);
  if (running_.next_end_ns() != RunningSlots::kNever)
    key = std::min(key, event_key(running_.next_end_ns(), EventKind::Free));
  return pending_.empty() ? key : std::min(key, pending_.top().key);
}

void SlotSimulator::push(int64_t at_ns, EventKind kind, const Scheduler& scheduler,
                         uint64_t number) {
  pending_.push({event_key(at_ns, kind), pushed_++, number, scheduler.index});
}

void SlotSimulator::handle_next(int64_t key) {
  ++events_;
  const int64_t now_ns = time_of(key);
  const EventKind kind = kind_of(key);
  if (kind == EventKind::Free) return on_free(now_ns);
  if (kind == EventKind::Sync) return on_sync(now_ns);
  const Event event = pending_.top();
  pending_.pop();
  Scheduler& scheduler = schedulers_[event.scheduler];
  if (kind == EventKind::Commit)
    on_commit(now_ns, scheduler, static_cast<uint32_t>(event.number));
  else if (kind == EventKind::Answer)
    on_answer(now_ns, scheduler, static_cast<uint32_t>(event.number));
  else if (event.number == scheduler.wake)
    on_decide(now_ns, scheduler);
}

void SlotSimulator::on_free(int64_t now_ns) {
  Scheduler* owner = nullptr;
  if (settings_.freed_at_once) {
    owner = &schedulers_[running_.next_owner()];
    running_.remove_next([&](std::span<const Pick> slots) {
      master_.free(slots);
      for (const Pick slot : slots) owner->view.add(slot);
    });
  } else {
    running_.remove_next([&](std::span<const Pick> slots) { master_.free(slots); });
  }
  measure_use(now_ns);
  if (owner != nullptr && owner->activity == Activity::Starved) wake(now_ns, *owner);
}

void SlotSimulator::on_sync(int64_t now_ns) {
  const int64_t event = next_sync_++;
  if (sync_.one_by_one()) return synchronise(now_ns, event, schedulers_[sync_.scheduler(event)]);
  // Starved schedulers go on in the order in which they are synchronised, so that rotates.
  const size_t count = schedulers_.size();
  const size_t first = sync_.scheduler(event);
  for (size_t i = 0; i < count; ++i)
    synchronise(now_ns, event, schedulers_[first + i < count ? first + i : first + i - count]);
}

void SlotSimulator::synchronise(int64_t now_ns, int64_t event, Scheduler& scheduler) {
  const SyncTimes::Range partitions = sync_.partitions(event, scheduler.index);
  for (size_t p = partitions.first; p < partitions.end; ++p)
    scheduler.view.copy_partition(master_.idle(), p);
  if (!scheduler.in_flight.empty()) keep_claims_out(scheduler, partitions);
  // Schedulers that have just seen everything turn to equally fresh partitions from different
  // places.
  scheduler.freshest =
      sync_.refreshes_all()
          ? (scheduler.first_partition + static_cast<size_t>(scheduler.rounds)) % table_.partitions
          : partitions.end - 1;
  scheduler.synced_ns = now_ns;
  scheduler.next_sync_ns = sync_.following_ns(event);
  if (scheduler.activity == Activity::Starved && scheduler.has_room()) wake(now_ns, scheduler);
}

// The view's lists are the master's, so the master knows the places of the claims. From the last
// place to the first, so that what takes a removed place is never itself to be removed.
void SlotSimulator::keep_claims_out(Scheduler& scheduler, SyncTimes::Range partitions) {
  in_the_view_.clear();
  for (const uint32_t number : scheduler.in_flight)
    for (const Pick claim : rounds_[number].picks) {
      const size_t p = table_.partition[claim.group];
      if (p >= partitions.first && p < partitions.end && !master_.is_busy(claim.slot))
        in_the_view_.push_back({claim, master_.place(claim.slot)});
    }
  std::sort(in_the_view_.begin(), in_the_view_.end(), [](const auto& a, const auto& b) {
    return a.first.group != b.first.group ? a.first.group > b.first.group : a.second > b.second;
  });
  for (const auto& [claim, place] : in_the_view_) scheduler.view.remove_at(place, claim);
}

void SlotSimulator::on_commit(int64_t now_ns, Scheduler& scheduler, uint32_t number) {
  std::erase(scheduler.in_flight, number);
  Round& round = rounds_[number];
  const int64_t answered_ns = master_.answered_ns(now_ns, round.picks);
  const size_t claims = round.picks.size();
  const auto [accepted, winners, causes] = master_.grant(now_ns, round.picks, round.in_use);
  const size_t granted = winners.size();
  const size_t its_slice = slice(now_ns, scheduler);
  measurements_.transaction(scheduler.group, its_slice, static_cast<int64_t>(claims),
                            static_cast<int64_t>(granted), causes);
  int64_t score = 0;
  for (const Pick winner : winners) {
    score += table_.value[winner.slot].score;
    measurements_.score(scheduler.group, table_.value[winner.slot].score);
  }
  round.committed = static_cast<int64_t>(granted);
  round.delay_sum_ns = 0;
  size_t claim = 0;
  for (BatchPart& part : round.parts) {
    int64_t commits = 0;
    for (const size_t end = claim + static_cast<size_t>(part.tasks); claim < end; ++claim)
      commits += accepted[claim];
    part.tasks -= commits;
    if (commits == 0) continue;
    const int64_t delay_ns = answered_ns - part.arrived_ns;
    measurements_.delays(scheduler.group, its_slice, commits, delay_ns,
                         std::max<int64_t>(0, answered_ns - part.earliest_ns));
    round.delay_sum_ns += commits * delay_ns;
  }
  if (granted > 0) {
    running_.add(answered_ns + settings_.task_ns, scheduler.index, winners, score);
    measure_use(now_ns);
    tasks_committed_ += static_cast<int64_t>(granted);
    last_commit_ns_ = std::max(last_commit_ns_, answered_ns);
  }
  const int64_t back_ns = answered_ns + settings_.latency_ns;
  if (back_ns == now_ns)
    on_answer(now_ns, scheduler, number);
  else
    push(back_ns, EventKind::Answer, scheduler, number);
}

void SlotSimulator::on_answer(int64_t now_ns, Scheduler& scheduler, uint32_t number) {
  Round& round = rounds_[number];
  if (round.committed > 0)
    scheduler.average.add(round.delay_sum_ns, round.committed, round.batch_tasks);
  for (auto part = round.parts.rbegin(); part != round.parts.rend(); ++part) {
    if (part->tasks == 0) continue;
    if (settings_.losers == LoserPolicy::Block)
      scheduler.work.push_back(*part);
    else
      pause(now_ns, scheduler, *part);
  }
  round.picks.clear();
  round.parts.clear();
  unused_rounds_.push_back(number);
  const bool waited = scheduler.activity == Activity::Busy && !settings_.commit_pipelining;
  if (!waited && scheduler.activity != Activity::Idle) return;
  // Most often nothing else happens at this instant, and the next round can begin right away.
  if (next_key() > event_key(now_ns, EventKind::Decide))
    on_decide(now_ns, scheduler);
  else
    wake(now_ns, scheduler);
}

void SlotSimulator::on_decide(int64_t now_ns, Scheduler& scheduler) {
  for (;;) {
    if (scheduler.work.empty()) {
      const int64_t next_ns = scheduler.next_batch_ns();
      if (next_ns > now_ns) {
        scheduler.activity = Activity::Idle;
        if (next_ns != BatchArrivals::kNever) wake(next_ns, scheduler);
        return;
      }
      scheduler.begin_batch(now_ns);
    }
    if (scheduler.has_room()) return decide_round(now_ns, scheduler);
    if (settings_.losers == LoserPolicy::Block) {
      scheduler.activity = Activity::Starved;
      return;
    }
    for (const BatchPart& part : scheduler.work) pause(now_ns, scheduler, part);
    scheduler.work.clear();
  }
}

void SlotSimulator::decide_round(int64_t now_ns, Scheduler& scheduler) {
  scheduler.activity = Activity::Busy;
  ++scheduler.rounds;
  const int64_t decision_ns =
      settings_.decision_ns(*scheduler.settings_of_group, scheduler.latency_first);
  int64_t limit = scheduler.view.count();
  if (settings_.cut_at_sync)  // decisions that begin before the next synchronisation
    limit = std::min(limit, (scheduler.next_sync_ns - now_ns + decision_ns - 1) / decision_ns);
  const uint32_t number = new_round();
  Round& round = rounds_[number];
  round.batch_tasks = scheduler.batch_tasks;
  int64_t tasks = 0;
  while (tasks < limit && !scheduler.work.empty()) {
    BatchPart& next = scheduler.work.back();
    BatchPart part = next;
    part.tasks = std::min(next.tasks, limit - tasks);
    tasks += part.tasks;
    round.parts.push_back(part);
    next.tasks -= part.tasks;
    if (next.tasks == 0) scheduler.work.pop_back();
  }
  pick(scheduler, tasks, round.picks);
  master_.note_in_use(round.picks, round.in_use);
  decisions_ += tasks;
  scheduler.in_flight.push_back(number);
  const int64_t decided_ns = now_ns + tasks * decision_ns;
  push(decided_ns + settings_.latency_ns, EventKind::Commit, scheduler, number);
  if (settings_.commit_pipelining) wake(decided_ns, scheduler);
}

void SlotSimulator::pick(Scheduler& scheduler, int64_t tasks, std::vector<Pick>& picks) {
  if (table_.partitions == 1 || scheduler.settings_of_group->strategy == Strategy::Optimistic)
    draws_.from_all(scheduler.view, tasks, scheduler.picks, picks);
  else if (scheduler.latency_first)
    pick_from_freshest(scheduler, tasks, picks);
  else
    pick_from_best(scheduler, tasks, picks);
}

void SlotSimulator::pick_from_best(Scheduler& scheduler, int64_t tasks, std::vector<Pick>& picks) {
  best_partition_.begin(scheduler.view);
  for (; tasks > 0; --tasks) {
    draws_.from_partition(scheduler.view, best_partition_.best(), 1, scheduler.picks, picks);
    best_partition_.best_has_changed(scheduler.view);
  }
}

// Partitions are synchronised in ascending order, cyclically, so the next freshest is always the
// one before. Those synchronised at the same instant are tried in that order too.
void SlotSimulator::pick_from_freshest(Scheduler& scheduler, int64_t tasks,
                                       std::vector<Pick>& picks) {
  for (size_t p = scheduler.freshest; tasks > 0; p = p > 0 ? p - 1 : table_.partitions - 1) {
    const int64_t here = std::min(tasks, scheduler.view.partition(p).count);
    draws_.from_partition(scheduler.view, p, here, scheduler.picks, picks);
    tasks -= here;
  }
}

void SlotSimulator::pause(int64_t now_ns, Scheduler& scheduler, const BatchPart& part) {
  scheduler.requeued.push_back({now_ns + settings_.requeue_ns, part});
}

void SlotSimulator::wake(int64_t at_ns, Scheduler& scheduler) {
  push(at_ns, EventKind::Decide, scheduler, ++scheduler.wake);
  if (scheduler.activity == Activity::Starved) scheduler.activity = Activity::Busy;
}

size_t SlotSimulator::slice(int64_t now_ns, const Scheduler& scheduler) const {
  const int64_t since_ns = now_ns - scheduler.synced_ns;
  const int64_t between_ns = scheduler.next_sync_ns - scheduler.synced_ns;
  return static_cast<size_t>(since_ns * settings_.gap_slices / between_ns);
}

uint32_t SlotSimulator::new_round() {
  if (unused_rounds_.empty()) {
    rounds_.emplace_back();
    return static_cast<uint32_t>(rounds_.size() - 1);
  }
  const uint32_t number = unused_rounds_.back();
  unused_rounds_.pop_back();
  return number;
}

void SlotSimulator::measure_use(int64_t now_ns) {
  measurements_.in_use_from(now_ns, {.slots = running_.count(),
                                     .score = running_.score(),
                                     .best = best_scores_.sum(running_.count())});
}

void SlotSimulator::close_bin(int64_t end_ns) {
  for (Scheduler& scheduler : schedulers_)
    for (; scheduler.arrivals_counted.next_ns() < end_ns; scheduler.arrivals_counted.advance())
      measurements_.arrived(scheduler.group, scheduler.settings_of_group->batch_tasks);
  measurements_.close(end_ns, idle());
  if (backlog_is_hopeless()) ending_ = Ending::GrowingBacklog;
}

bool SlotSimulator::backlog_is_hopeless() const {
  const std::vector<Bin>& bins = measurements_.bins();
  const size_t span = static_cast<size_t>(settings_.growing_bins);
  if (span == 0 || bins.size() <= span) return false;
  if (bins.back().backlog_all() <= bins[bins.size() - 1 - span].backlog_all()) return false;
  int64_t best = 0;
  for (size_t bin = bins.size() - span; bin < bins.size(); ++bin)
    best = std::max(best, bins[bin].commits());
  const int64_t left = tasks_expected_ - tasks_committed_;
  const int64_t left_ns = settings_.finish_by_ns - bins.back().end_ns;
  return static_cast<Int128>(left) * settings_.bin_ns > static_cast<Int128>(best) * left_ns;
}

void SlotSimulator::end(int64_t now_ns, Ending ending) {
  // What happened at the very start of a bin needs a bin; the horizon is the end of its last one.
  const int64_t start_ns = measurements_.bin_start_ns();
  if (ending == Ending::Committed || now_ns > start_ns) close_bin(std::max(now_ns, start_ns + 1));
  ending_ = ending;
}

}  // namespace agora::slots
