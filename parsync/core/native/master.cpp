#include "master.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "event.hpp"
#include "shared_state/native/random.hpp"

namespace agora {

namespace {

// The value of a task in a column of the task table. Whoever claims may name any task.
template <class T>
T of_task(const SharedColumn<T>& column, int64_t task) {
  if (static_cast<uint64_t>(task) >= column.size())
    throw std::invalid_argument("task " + std::to_string(task) + ": there is no such task");
  return column[static_cast<size_t>(task)];
}

TasksStarted started_tasks(const Transaction& transaction, const CommitResult& result,
                           size_t accepted) {
  TasksStarted started;
  if (accepted == transaction.size()) {
    started.task = transaction.task;
    started.allocation = result.allocation;
    started.machine = transaction.machine;
    return started;
  }
  std::vector<size_t> rows;
  rows.reserve(accepted);
  for (size_t i = 0; i < transaction.size(); ++i)
    if (result.reason[i] == 0) rows.push_back(i);
  started.task = rows_of(transaction.task, rows);
  started.allocation = rows_of(result.allocation, rows);
  started.machine = rows_of(transaction.machine, rows);
  return started;
}

// One column after the other: that of each event.
template <class T>
SharedColumn<T> joined(const std::vector<std::shared_ptr<const TasksEnded>>& events,
                       SharedColumn<T> TasksEnded::* column) {
  size_t rows = 0;
  for (const auto& event : events) rows += ((*event).*column).size();
  auto [made, values] = SharedColumn<T>::make(rows);
  for (const auto& event : events) values = std::ranges::copy((*event).*column, values).out;
  return made;
}

// What is told at once in place of these events, of which there is at least one.
TasksEnded joined(const std::vector<std::shared_ptr<const TasksEnded>>& events) {
  if (events.size() == 1) return *events[0];
  TasksEnded all;
  all.change = events[0]->change;
  all.task = joined(events, &TasksEnded::task);
  all.allocation = joined(events, &TasksEnded::allocation);
  all.machine = joined(events, &TasksEnded::machine);
  all.version = joined(events, &TasksEnded::version);
  const size_t width = events[0]->request.width();
  auto [request, values] = SharedTable<int64_t>::make(all.task.size(), width);
  for (const auto& event : events)
    values = std::copy_n(event->request.data(), event->request.count(), values);
  all.request = request;
  return all;
}

}  // namespace

Master::Master(ObservedCell cell, MasterSettings settings, Measurements& records)
    : cell_(std::move(cell)), settings_(std::move(settings)), records_(records) {
  if (settings_.sample_us < 1)
    throw std::invalid_argument("sample_us: expected a time of 1 us or more");
  const InitialTasks& initial = settings_.initial;
  check_rows("initial tasks", initial.task.size(), initial.machine, initial.owner);
  check_rows("task table", settings_.priority.size(), settings_.request);
  for (const int64_t task : initial.task) of_task(settings_.priority, task);
  if (settings_.quota_of_task) {
    check_rows("task table", settings_.priority.size(), *settings_.quota_of_task);
    for (const int32_t group : *settings_.quota_of_task)
      if (group < 0 || group >= settings_.quotas)
        throw std::invalid_argument("quota group " + std::to_string(group) + ": there is none");
  }
  std::copy_if(settings_.watchers.begin(), settings_.watchers.end(), std::back_inserter(beside_),
               [](int64_t address) { return address != kWorkers; });
  has_queues_ = beside_.size() < settings_.watchers.size();
  any_wants_ends_ = std::ranges::any_of(
      settings_.ends_notice, [](EndsNotice notice) { return notice != EndsNotice::Never; });
}

void Master::handle(int64_t now_us, const EventPtr& event, Effects& effects) {
  switch (event->key()) {
    case CommitRequest::kType.key():
      return commit(now_us, as<CommitRequest>(event), effects);
    case SyncRequest::kType.key():
      return sync(now_us, as<SyncRequest>(event), effects);
    case RunningRequest::kType.key():
      return show_running(as<RunningRequest>(event), effects);
    case TasksFinished::kType.key():
      return finish_tasks(now_us, as<TasksFinished>(event), effects);
    case HoldRequest::kType.key():
      return hold(now_us, as<HoldRequest>(event), effects);
    case HoldsReleased::kType.key():
      return notify_room_freed(cell_.end_holds(as<HoldsReleased>(event).hold, now_us).machine,
                               effects);
    case SampleDue::kType.key():
      return sample(now_us, as<SampleDue>(event).sample, effects);
    case MachinesChanged::kType.key():
      return change_machines(now_us, event, effects);
    case Started::kType.key():
      return start(now_us, as<Started>(event), effects);
    case QuotaShares::kType.key():
      return record_shares(now_us, as<QuotaShares>(event));
  }
  throw WrongEvent{"master", event};
}

void Master::start(int64_t now_us, const Started& event, Effects& effects) {
  epoch_ = event.epoch;
  SampleDue due;
  due.sample = now_us / settings_.sample_us + 1;
  effects.set_timer(due.sample * settings_.sample_us, due);
  const InitialTasks& initial = settings_.initial;
  const size_t count = initial.task.size();
  if (event.epoch != 0 || count == 0) return;
  const size_t width = settings_.request.width();
  auto [request, requests] = SharedTable<int64_t>::make(count, width);
  for (size_t i = 0; i < count; ++i)
    std::copy_n(settings_.request.row(static_cast<size_t>(initial.task[i])), width,
                requests + i * width);
  TasksStarted started;
  started.start_us = now_us;
  started.task = initial.task;
  started.machine = initial.machine;
  started.owner = initial.owner;
  started.allocation = cell_.load(initial.task, initial.machine, request, initial.owner);
  running_ += static_cast<int64_t>(count);
  const SharedColumn<int64_t> allocation = started.allocation;
  notify_started(std::make_shared<const TasksStarted>(std::move(started)), effects);
  for (const int32_t agent : std::set<int32_t>(initial.owner.begin(), initial.owner.end())) {
    std::vector<size_t> rows;
    for (size_t i = 0; i < count; ++i)
      if (initial.owner[i] == agent) rows.push_back(i);
    TasksAdopted adopted;
    adopted.task = rows_of(initial.task, rows);
    adopted.allocation = rows_of(allocation, rows);
    adopted.machine = rows_of(initial.machine, rows);
    effects.send(agent, std::move(adopted));
  }
}

void Master::commit(int64_t now_us, const CommitRequest& event, Effects& effects) {
  const TransactionPtr& transaction = event.transaction;
  const CommitResultPtr result = cell_.commit(transaction, now_us);
  const int64_t owner = transaction->scheduler;
  CommitReply reply;
  reply.epoch = epoch_;
  reply.scheduler = owner;
  reply.result = result;
  if (event.reply_to == owner) effects.send(owner, reply);
  if (result->evicted.size())
    notify_ended(now_us, describe(cell_.cell(), result->evicted), ChangeKind::Evicted, effects);
  std::vector<int32_t> freed;
  if (!cell_.cell().ended_holds().empty()) {
    const Holds ended = ended_holds(cell_.cell());
    const SharedTable<int64_t> remainder = remainder_of(ended, *transaction, *result);
    for (size_t i = 0; i < ended.size(); ++i)
      if (std::any_of(remainder.row(i), remainder.row(i) + remainder.width(),
                      [](int64_t left) { return left > 0; }))
        freed.push_back(ended.machine[i]);
    notify_holds_ended(HoldEnd::Accepted, remainder, effects);
  }
  const auto accepted =
      static_cast<size_t>(std::count(result->reason.begin(), result->reason.end(), int8_t{0}));
  if (accepted) {
    running_ += static_cast<int64_t>(accepted);
    TasksStarted started = started_tasks(*transaction, *result, accepted);
    started.start_us = now_us;
    started.owner = owner_column(static_cast<int32_t>(owner), accepted);
    notify_started(std::make_shared<const TasksStarted>(std::move(started)), effects);
  }
  notify_room_freed(copied_column(freed), effects);  // they know by then what the claims took
  if (event.reply_to != owner) {  // one who watches the cell knows of the starts by then
    effects.send(event.reply_to, reply);
    ClaimsSettled settled;
    settled.transaction = transaction;
    settled.result = result;
    effects.send(owner, std::move(settled));
  }
}

// What the accepted claims of a transaction left of each hold that it ended, [holds, R]. Of several
// on one machine the first are used up first.
SharedTable<int64_t> Master::remainder_of(const Holds& ended, const Transaction& transaction,
                                          const CommitResult& result) {
  const size_t width = ended.amount.width();
  claimed_.resize(cell_.cell().machines() * width);
  const auto claimed_on = [&](int32_t machine) {
    return claimed_.data() + static_cast<size_t>(machine) * width;
  };
  for (size_t i = 0; i < transaction.size(); ++i)
    for (size_t r = 0; r < width && result.reason[i] == 0; ++r)
      claimed_on(transaction.machine[i])[r] += transaction.request.row(i)[r];
  auto [remainder, left] = SharedTable<int64_t>::make(ended.size(), width);
  for (size_t i = 0; i < ended.size(); ++i)
    for (size_t r = 0; r < width; ++r) {
      int64_t& claimed = claimed_on(ended.machine[i])[r];
      const int64_t used = std::min(ended.amount.row(i)[r], claimed);
      left[i * width + r] = ended.amount.row(i)[r] - used;
      claimed -= used;
    }
  for (size_t i = 0; i < transaction.size(); ++i)
    if (result.reason[i] == 0) std::fill_n(claimed_on(transaction.machine[i]), width, 0);
  return remainder;
}

void Master::sync(int64_t now_us, const SyncRequest& event, Effects& effects) {
  if (event.partition.size() != event.version.size())
    throw std::invalid_argument("SyncRequest: expected a version for each partition");
  SyncReply reply;
  reply.epoch = epoch_;
  reply.deltas.reserve(event.partition.size());
  for (size_t i = 0; i < event.partition.size(); ++i)
    reply.deltas.push_back(
        cell_.delta_since(event.partition[i], event.version[i], now_us, event.with_seqnum));
  if (const auto ends = waiting_ends_.find(event.agent); ends != waiting_ends_.end()) {
    effects.send(event.agent, joined(ends->second));
    waiting_ends_.erase(ends);
  }
  effects.send(event.agent, std::move(reply));
}

void Master::show_running(const RunningRequest& event, Effects& effects) {
  const Released live = allocations(cell_.cell(), -1);
  const auto& offsets = settings_.partition_offsets;
  std::vector<bool> wanted(offsets.size());
  for (const int32_t partition : event.partition)
    if (static_cast<size_t>(partition) < wanted.size())
      wanted[static_cast<size_t>(partition)] = true;
  std::vector<size_t> rows;
  for (size_t i = 0; i < live.size(); ++i) {
    const auto above = std::upper_bound(offsets.begin(), offsets.end(), live.machine[i]);
    const auto partition = static_cast<size_t>(above - offsets.begin()) - 1;
    if (wanted[partition] && of_task(settings_.priority, live.task[i]) < event.below)
      rows.push_back(i);
  }
  RunningReply reply;
  reply.partition = event.partition;
  reply.allocation = rows_of(live.allocation, rows);
  reply.task = rows_of(live.task, rows);
  reply.machine = rows_of(live.machine, rows);
  effects.send(event.agent, std::move(reply));
}

void Master::finish_tasks(int64_t now_us, const TasksFinished& event, Effects& effects) {
  notify_ended(now_us, cell_.release(event.allocation, event.owner, now_us), ChangeKind::Finished,
               effects);
}

void Master::change_machines(int64_t now_us, const EventPtr& event, Effects& effects) {
  const auto& changed = as<MachinesChanged>(event);
  const Released lost = cell_.set_machines(changed.machine, changed.up, now_us);
  for (const int64_t address : settings_.watchers) effects.send(address, event);
  if (!cell_.cell().ended_holds().empty())
    notify_holds_ended(HoldEnd::Lost, ended_holds(cell_.cell()).amount, effects);
  notify_ended(now_us, lost, ChangeKind::Lost, effects);
}

void Master::hold(int64_t now_us, const HoldRequest& event, Effects& effects) {
  HoldReply reply;
  reply.sequence = event.sequence;
  reply.hold = cell_.hold(event.holder, event.machine, event.amount, now_us);
  effects.send(event.reply_to, std::move(reply));
}

// Of the holds that the cell's last call ended.
void Master::notify_holds_ended(HoldEnd cause, const SharedTable<int64_t>& remainder,
                                Effects& effects) {
  HoldsEnded ended;
  ended.hold = ended_holds(cell_.cell()).hold;
  ended.remainder = remainder;
  ended.cause = static_cast<int64_t>(cause);
  const EventPtr event = std::make_shared<const HoldsEnded>(std::move(ended));
  for (const int64_t address : beside_) effects.send(address, event);
}

void Master::notify_room_freed(SharedColumn<int32_t> machine, Effects& effects) {
  if (!has_queues_ || !machine.size()) return;
  RoomFreed freed;
  freed.machine = std::move(machine);
  effects.send(kWorkers, std::move(freed));
}

void Master::add_waiting_ends(int64_t agent, std::shared_ptr<const TasksEnded> ended) {
  if (agent < 0 || static_cast<size_t>(agent) >= settings_.ends_notice.size())
    throw std::invalid_argument("ends: there is no agent " + std::to_string(agent));
  check_rows("ends", ended->task.size(), ended->allocation, ended->machine, ended->request,
             ended->version);
  if (ended->request.width() != settings_.request.width())
    throw std::invalid_argument("ends: expected a request in each resource");
  waiting_ends_[agent].push_back(std::move(ended));
}

void Master::notify_started(EventPtr started, Effects& effects) {
  effects.send(kWorkers, started);
  for (const int64_t address : beside_) effects.send(address, started);
}

void Master::notify_ended(int64_t now_us, const Released& ended, ChangeKind change,
                          Effects& effects) {
  const size_t count = ended.size();
  if (count == 0) return;
  running_ -= static_cast<int64_t>(count);
  RowBuffer& ends = records_.rows("ends");
  ends.grow(count);
  ends.copy(0, ended.task.data());
  ends.copy(1, ended.machine.data());
  ends.copy(2, ended.owner.data());
  ends.fill(3, now_us);
  ends.fill(4, static_cast<int64_t>(change));
  ends.fill(5, 0);
  const bool finished = change == ChangeKind::Finished;
  if (!finished) {
    TasksCancelled cancelled;
    cancelled.allocation = ended.allocation;
    effects.send(kWorkers, std::move(cancelled));
  }
  const std::vector<int64_t>& watchers = finished ? beside_ : settings_.watchers;
  if (!watchers.empty()) {
    AllocationsEnded all;
    all.change = static_cast<int64_t>(change);
    all.task = ended.task;
    all.allocation = ended.allocation;
    all.machine = ended.machine;
    all.owner = ended.owner;
    const EventPtr event = std::make_shared<const AllocationsEnded>(std::move(all));
    for (const int64_t address : watchers) effects.send(address, event);
  }
  if (finished && !any_wants_ends_) return;
  for (const int32_t agent : std::set<int32_t>(ended.owner.begin(), ended.owner.end())) {
    if (static_cast<size_t>(agent) >= settings_.ends_notice.size())
      throw std::invalid_argument("owner " + std::to_string(agent) + ": there is no such agent");
    const EndsNotice notice = settings_.ends_notice[static_cast<size_t>(agent)];
    if (finished && notice == EndsNotice::Never) continue;
    std::vector<size_t> rows;
    for (size_t i = 0; i < count; ++i)
      if (ended.owner[i] == agent) rows.push_back(i);
    TasksEnded told;
    told.change = static_cast<int64_t>(change);
    told.task = rows_of(ended.task, rows);
    told.allocation = rows_of(ended.allocation, rows);
    told.machine = rows_of(ended.machine, rows);
    told.request = rows_of(ended.request, rows);
    told.version = rows_of(ended.version, rows);
    if (finished && notice == EndsNotice::BeforeSync)
      add_waiting_ends(agent, std::make_shared<const TasksEnded>(std::move(told)));
    else
      effects.send(agent, std::move(told));
  }
}

// The owners of `count` tasks of one agent: all such columns share memory.
SharedColumn<int32_t> Master::owner_column(int32_t owner, size_t count) {
  SharedColumn<int32_t>& column = owner_columns_[owner];
  if (column.size() < count)
    column = SharedColumn<int32_t>::filled(std::max<size_t>(count, 256), owner);
  return column.slice(0, count);
}

void Master::sample(int64_t now_us, int64_t sample, Effects& effects) {
  const Cell& cell = cell_.cell();
  const auto used_permille = static_cast<int64_t>(Int128{cell.used_of_first()} * 1000 /
                                                  std::max<int64_t>(1, settings_.capacity));
  records_.rows("cell").add(
      {now_us, running_, static_cast<int64_t>(cell.machines_up()), used_permille});
  if (settings_.quota_of_task) record_quota_use(now_us);
  effects.hand_out();
  const int64_t last = std::numeric_limits<int64_t>::max() / settings_.sample_us - 1;
  SampleDue due;
  due.sample = std::max(std::min(sample, last), now_us / settings_.sample_us) + 1;
  effects.set_timer(due.sample * settings_.sample_us, due);
}

void Master::record_shares(int64_t now_us, const QuotaShares& event) {
  const size_t width = event.share.width();
  if (event.wanted.count() != event.share.count() || event.limit.count() != event.share.count())
    throw std::invalid_argument("QuotaShares: its tables differ in shape");
  for (size_t i = 0; i < event.share.count(); ++i)
    records_.rows("quota_shares")
        .add({now_us, static_cast<int64_t>(i / width), static_cast<int64_t>(i % width),
              event.wanted.data()[i], event.share.data()[i], event.limit.data()[i]});
}

void Master::record_quota_use(int64_t now_us) {
  const Released live = allocations(cell_.cell(), -1);
  const size_t width = cell_.cell().dimensions();
  std::vector<int64_t> held(static_cast<size_t>(settings_.quotas) * width);
  for (size_t i = 0; i < live.size(); ++i) {
    const auto group = static_cast<size_t>(of_task(*settings_.quota_of_task, live.task[i]));
    for (size_t r = 0; r < width; ++r) held[group * width + r] += live.request.row(i)[r];
  }
  for (size_t i = 0; i < held.size(); ++i)
    records_.rows("quota_use")
        .add({now_us, static_cast<int64_t>(i / width), static_cast<int64_t>(i % width), held[i]});
}

void Master::record_due_ends(const SharedColumn<int64_t>& allocation,
                             const SharedColumn<int64_t>& end_us) {
  check_rows("due ends", allocation.size(), end_us);
  std::vector<size_t> rows;
  for (size_t i = 0; i < allocation.size(); ++i)
    if (cell_.cell().is_live(allocation[i])) rows.push_back(i);
  const Released due = describe(cell_.cell(), rows_of(allocation, rows));
  RowBuffer& ends = records_.rows("ends");
  ends.grow(rows.size());
  ends.copy(0, due.task.data());
  ends.copy(1, due.machine.data());
  ends.copy(2, due.owner.data());
  ends.copy(3, rows_of(end_us, rows).data());
  ends.fill(4, static_cast<int64_t>(ChangeKind::Finished));
  ends.fill(5, 1);
}

}  // namespace agora
