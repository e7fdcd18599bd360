#include "worker_pool.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "event.hpp"
#include "schedulers/native/contract.hpp"

namespace agora {

namespace {

// One field of all entries.
template <class T, class Get>
SharedColumn<T> column_of(const std::vector<TimerWheel::Entry>& entries, Get get) {
  auto [column, values] = SharedColumn<T>::make(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) values[i] = get(entries[i]);
  return column;
}

}  // namespace

WorkerPool::WorkerPool(int64_t heartbeat_us, std::span<const int64_t> duration_us,
                       std::span<const int32_t> preference, const PreferenceColumns& catalog,
                       int64_t preferred_permille, std::vector<NodeSide> node_sides,
                       std::vector<std::string> protocol_of)
    : tasks_(heartbeat_us, duration_us, preference, catalog, preferred_permille,
             !node_sides.empty()),
      node_sides_(std::move(node_sides)),
      protocol_of_(std::move(protocol_of)) {}

void WorkerPool::handle(int64_t now_us, const EventPtr& event, Effects& effects) {
  switch (event->key()) {
    case TasksStarted::kType.key():
      start(as<TasksStarted>(event));
      if (!node_sides_.empty()) notify(now_us, event, effects);
      return arm(now_us, effects);
    case HeartbeatDue::kType.key():
      return heartbeat(now_us, effects);
    case TasksCancelled::kType.key():
      return cancel(as<TasksCancelled>(event));
    case AllocationsEnded::kType.key():
      return notify_ended(now_us, as<AllocationsEnded>(event), effects);
    case Started::kType.key():
    case MachinesChanged::kType.key():
    case RoomFreed::kType.key():
      return notify(now_us, event, effects);
    case CommitReply::kType.key(): {
      const auto owner = static_cast<size_t>(as<CommitReply>(event).scheduler);
      Participant* const queues =
          owner < protocol_of_.size() ? queues_of(protocol_of_[owner]) : nullptr;
      if (queues) return queues->handle(now_us, event, effects);
      break;
    }
    default:
      if (Participant* const queues = queues_of(event->kind()))
        return queues->handle(now_us, event, effects);
  }
  throw WrongEvent{"worker pool", event};
}

void WorkerPool::start(const TasksStarted& started) {
  check_rows("TasksStarted", started.task.size(), started.allocation, started.machine,
             started.owner);
  tasks_.start(started.start_us, started.task.span(), started.allocation.data(),
               started.machine.span(), started.owner.data());
}

void WorkerPool::cancel(const TasksCancelled& cancelled) {
  for (const int64_t allocation : cancelled.allocation) tasks_.wheel.cancel(allocation);
}

std::vector<TimerWheel::Entry> WorkerPool::due_ends() {
  constexpr int64_t kForeverUs = int64_t{1} << 62;
  return tasks_.wheel.take(kForeverUs);
}

Participant* WorkerPool::queues_of(std::string_view protocol) {
  for (const NodeSide& side : node_sides_)
    if (side.protocol == protocol) return side.queues.get();
  return nullptr;
}

void WorkerPool::notify(int64_t now_us, const EventPtr& event, Effects& effects) {
  for (const NodeSide& side : node_sides_) side.queues->handle(now_us, event, effects);
}

// Notifies the queues of the ends that they have not been notified of.
void WorkerPool::notify_ended(int64_t now_us, const AllocationsEnded& ended, Effects& effects) {
  check_rows("AllocationsEnded", ended.allocation.size(), ended.task, ended.machine, ended.owner);
  std::vector<size_t> unknown;
  for (size_t i = 0; i < ended.allocation.size(); ++i)
    if (tasks_.forget(ended.task[i], ended.allocation[i])) unknown.push_back(i);
  if (unknown.empty()) return;
  AllocationsEnded told;
  told.change = ended.change;
  told.task = rows_of(ended.task, unknown);
  told.allocation = rows_of(ended.allocation, unknown);
  told.machine = rows_of(ended.machine, unknown);
  told.owner = rows_of(ended.owner, unknown);
  notify(now_us, std::make_shared<const AllocationsEnded>(std::move(told)), effects);
}

void WorkerPool::heartbeat(int64_t now_us, Effects& effects) {
  armed_us_.erase(armed_us_.begin(), armed_us_.upper_bound(now_us));
  const std::vector<TimerWheel::Entry> due = tasks_.wheel.take(now_us);
  if (!due.empty()) {
    TasksFinished finished;
    finished.allocation = column_of<int64_t>(due, [](const auto& end) { return end.id; });
    finished.owner = column_of<int32_t>(due, [](const auto& end) { return end.owner; });
    finished.end_us = column_of<int64_t>(due, [](const auto& end) { return end.end_us; });
    AllocationsEnded ended;
    if (!node_sides_.empty()) {
      ended.change = static_cast<int64_t>(ChangeKind::Finished);
      for (const TimerWheel::Entry& end : due) tasks_.forget(end.task, end.id);
      ended.task = column_of<int64_t>(due, [](const auto& end) { return end.task; });
      ended.allocation = finished.allocation;
      ended.machine = column_of<int32_t>(due, [](const auto& end) { return end.machine; });
      ended.owner = finished.owner;
    }
    effects.send(kMaster, std::move(finished));
    if (!node_sides_.empty())
      notify(now_us, std::make_shared<const AllocationsEnded>(std::move(ended)), effects);
  }
  arm(now_us, effects);
}

// A timer at the earliest end's heartbeat, unless one fires no later.
void WorkerPool::arm(int64_t now_us, Effects& effects) {
  const int64_t next_us = tasks_.wheel.next_us();
  if (next_us < 0 || (!armed_us_.empty() && *armed_us_.begin() <= next_us)) return;
  const int64_t at_us = std::max(next_us, now_us);
  armed_us_.insert(at_us);
  effects.set_timer(at_us, HeartbeatDue{});
}

}  // namespace agora
