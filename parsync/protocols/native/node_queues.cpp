#include "node_queues.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "parsync/core/native/events.hpp"
#include "shared_state/native/cell.hpp"

namespace agora {

using probing::AgentRestarted;
using probing::is_early;
using probing::LengthAnswers;
using probing::LengthRequests;
using probing::Probes;
using probing::ProbesCancelled;
using probing::ProbesLost;
using probing::TaskAnswers;
using probing::TaskRequests;

namespace {

// The first sequence number of transactions of the worker pool (parsync/core/addresses.py).
constexpr int64_t kFirstSequence = -kWorkers * (int64_t{1} << 40);

constexpr size_t kAhead = 16;  // rows of a message whose machines are on their way to the cache

}  // namespace

NodeQueues::NodeQueues(Settings settings)
    : settings_(std::move(settings)),
      width_(settings_.limit.width()),
      machines_(settings_.limit.rows()),
      free_(settings_.limit.data(), settings_.limit.data() + settings_.limit.count()),
      up_(settings_.limit.rows(), true),
      epoch_(settings_.agents),
      asked_(settings_.agents) {
  if (settings_.hop_us < 0) throw std::invalid_argument("hop_us: expected 0 or more");
  if (settings_.request.width() != width_)
    throw std::invalid_argument("request: expected a column for each resource");
}

void NodeQueues::handle(int64_t now_us, const EventPtr& event, Effects& effects) {
  switch (event->key()) {
    case Probes::kType.key():
      on_probes(now_us, event, effects);
      break;
    case TaskAnswers::kType.key():
      on_answers(now_us, event, effects);
      break;
    case CommitReply::kType.key():
      on_claimed(now_us, event);
      break;
    case TasksStarted::kType.key():
      return on_started(event);
    case AllocationsEnded::kType.key():
      on_ended(now_us, event);
      break;
    case ProbesCancelled::kType.key():
      on_cancelled(now_us, event, effects);
      break;
    case LengthRequests::kType.key():
      return on_lengths(now_us, event, effects);
    case MachinesChanged::kType.key():
      on_machines(now_us, event);
      break;
    case AgentRestarted::kType.key(): {
      const auto& restarted = as<AgentRestarted>(event);
      is_current(now_us, restarted.agent, restarted.epoch);
      break;
    }
    case Started::kType.key():
      return;
    default:
      throw WrongEvent{"queues at the machines", event};
  }
  send(now_us, effects);
}

// Messages of agents.

// Whether a message is of the agent that is alive. Forgets what an earlier one had reserved.
bool NodeQueues::is_current(int64_t now_us, int64_t agent, int64_t epoch) {
  if (agent < 0 || static_cast<size_t>(agent) >= epoch_.size())
    throw std::invalid_argument("agent " + std::to_string(agent) + ": there is none");
  int64_t& known = epoch_[static_cast<size_t>(agent)];
  if (epoch > known) {
    known = epoch;
    forget(now_us, agent);
  }
  return epoch == known;
}

void NodeQueues::forget(int64_t now_us, int64_t agent) {
  for (size_t m = 0; m < machines_.size(); ++m) {
    Machine& at = machines_[m];
    uint32_t before = kNone;
    for (uint32_t one = at.first; one != kNone;) {
      const uint32_t next = reservations_[one].next;
      if (reservations_[one].agent == agent) {
        unlink(now_us, at, before);
        remove(one);
      } else {
        before = one;
      }
      one = next;
    }
  }
  for (size_t h = 0; h < holds_.size(); ++h) {
    const Hold& held = holds_[h];
    // a claim that is under way ends with its answer
    if (held.reservation == kNone || held.claiming) continue;
    if (reservations_[held.reservation].agent != agent) continue;
    remove(held.reservation);
    end_hold(h);
  }
  for (size_t m = 0; m < machines_.size(); ++m) serve(now_us, m);
}

void NodeQueues::on_probes(int64_t now_us, const EventPtr& event, Effects& effects) {
  const auto& probes = as<Probes>(event);
  check_rows("Probes", probes.request.size(), probes.probe, probes.machine, probes.task);
  if (!is_current(now_us, probes.agent, probes.epoch)) return;
  if (is_early(now_us, probes, event, effects)) return;
  const size_t rows = probes.request.size();
  for (size_t i = 0; i < std::min(kAhead, rows); ++i) prefetch(probes.machine[i]);
  for (size_t i = 0; i < rows; ++i) {
    if (i + kAhead < rows) prefetch(probes.machine[i + kAhead]);
    const size_t machine = machine_row(probes.machine[i]);
    task_row(probes.task[i]);
    const uint32_t one =
        add({probes.request[i], probes.task[i], now_us, static_cast<int32_t>(probes.agent),
             probes.probe[i], probes.bound, kNone});
    if (!up_[machine]) {
      lose(one);
      continue;
    }
    push_back(now_us, machine, one);
    serve(now_us, machine);
  }
}

void NodeQueues::on_cancelled(int64_t now_us, const EventPtr& event, Effects& effects) {
  const auto& cancelled = as<ProbesCancelled>(event);
  check_rows("ProbesCancelled", cancelled.request.size(), cancelled.probe, cancelled.machine);
  if (!is_current(now_us, cancelled.agent, cancelled.epoch)) return;
  if (is_early(now_us, cancelled, event, effects)) return;
  for (size_t i = 0; i < cancelled.request.size(); ++i) {
    const size_t machine = machine_row(cancelled.machine[i]);
    Machine& at = machines_[machine];
    uint32_t before = kNone;
    for (uint32_t one = at.first; one != kNone; one = reservations_[one].next) {
      const Reservation& of = reservations_[one];
      if (of.agent == cancelled.agent && of.request == cancelled.request[i] &&
          of.probe == cancelled.probe[i]) {
        unlink(now_us, at, before);
        remove(one);
        if (before == kNone) serve(now_us, machine);
        break;
      }
      before = one;
    }
  }
}

void NodeQueues::on_answers(int64_t now_us, const EventPtr& event, Effects& effects) {
  const auto& answers = as<TaskAnswers>(event);
  check_rows("TaskAnswers", answers.hold.size(), answers.task);
  if (!is_current(now_us, answers.agent, answers.epoch)) return;
  if (is_early(now_us, answers, event, effects)) return;
  const auto agent = static_cast<int32_t>(answers.agent);
  for (size_t i = 0; i < answers.hold.size(); ++i) {
    const auto h = static_cast<size_t>(answers.hold[i]);
    if (h >= holds_.size() || holds_[h].reservation == kNone || holds_[h].claiming ||
        reservations_[holds_[h].reservation].agent != agent)
      throw std::invalid_argument("TaskAnswers: hold " + std::to_string(answers.hold[i]) +
                                  ": the agent has none of that number");
    if (answers.task[i] < 0) {
      const auto machine = static_cast<size_t>(holds_[h].machine);
      remove(holds_[h].reservation);
      end_hold(h);
      serve(now_us, machine);
      continue;
    }
    task_row(answers.task[i]);
    reservations_[holds_[h].reservation].task = answers.task[i];
    asked(agent).claimed.push_back(static_cast<int64_t>(h));
  }
}

void NodeQueues::on_lengths(int64_t now_us, const EventPtr& event, Effects& effects) {
  const auto& asked = as<LengthRequests>(event);
  check_rows("LengthRequests", asked.request.size(), asked.machine);
  if (!is_current(now_us, asked.agent, asked.epoch)) return;
  if (is_early(now_us, asked, event, effects)) return;
  LengthAnswers answers;
  answers.epoch = asked.epoch;
  answers.due_us = now_us + settings_.hop_us;
  answers.request = asked.request;
  answers.machine = asked.machine;
  auto [length, values] = SharedColumn<int64_t>::make(asked.machine.size());
  for (size_t i = 0; i < asked.machine.size(); ++i) {
    const Machine& at = machines_[machine_row(asked.machine[i])];
    values[i] = int64_t{at.busy} + at.length;
  }
  answers.length = std::move(length);
  effects.send(asked.agent, std::move(answers));
}

// What happens on the cell.

void NodeQueues::on_started(const EventPtr& event) {
  const auto& started = as<TasksStarted>(event);
  for (size_t i = 0; i < started.task.size(); ++i) {
    task_row(started.task[i]);
    take(machine_row(started.machine[i]), started.task[i]);
  }
}

void NodeQueues::on_ended(int64_t now_us, const EventPtr& event) {
  const auto& ended = as<AllocationsEnded>(event);
  const size_t rows = ended.task.size();
  for (size_t i = 0; i < std::min(kAhead, rows); ++i) prefetch(ended.machine[i]);
  for (size_t i = 0; i < rows; ++i) {
    if (i + kAhead < rows) prefetch(ended.machine[i + kAhead]);
    if (i + kAhead / 2 < rows) prefetch_first(ended.machine[i + kAhead / 2]);
    const size_t machine = machine_row(ended.machine[i]);
    task_row(ended.task[i]);
    give_back(machine, ended.task[i]);
    ++machines_[machine].changes;
    serve(now_us, machine);
  }
}

void NodeQueues::on_machines(int64_t now_us, const EventPtr& event) {
  const auto& changed = as<MachinesChanged>(event);
  for (size_t i = 0; i < changed.machine.size(); ++i) {
    const size_t machine = machine_row(changed.machine[i]);
    up_[machine] = changed.up[i];
    ++machines_[machine].changes;
    if (!changed.up[i]) lose_queue(now_us, machine);
  }
}

void NodeQueues::on_claimed(int64_t now_us, const EventPtr& event) {
  const CommitResult& result = *as<CommitReply>(event).result;
  const auto found = claims_.find(result.sequence);
  if (found == claims_.end()) return;  // repeated after a restart of the cell
  const std::vector<int64_t> claimed = std::move(found->second);
  claims_.erase(found);
  if (result.reason.size() != claimed.size())
    throw std::invalid_argument("CommitReply: expected an answer for each claim");
  for (size_t i = 0; i < claimed.size(); ++i) {
    const auto h = static_cast<size_t>(claimed[i]);
    const Hold held = holds_[h];
    const auto machine = static_cast<size_t>(held.machine);
    const Reservation& of = reservations_[held.reservation];
    end_hold(h);
    if (is_placed(result.reason[i]) || held.epoch != epoch_[static_cast<size_t>(of.agent)]) {
      remove(held.reservation);
    } else if (!up_[machine]) {
      lose(held.reservation);
    } else {
      push_front(now_us, machine, held.reservation);
      // Somebody else was first. Only an end makes room again, unless one came meanwhile.
      machines_[machine].blocked = held.changes;
    }
    serve(now_us, machine);
  }
}

// Room.

bool NodeQueues::fits(size_t machine, int64_t task) const {
  const int64_t* const request = settings_.request.row(static_cast<size_t>(task));
  const int64_t* const free = free_.data() + machine * width_;
  for (size_t r = 0; r < width_; ++r)
    if (request[r] > 0 && request[r] > free[r]) return false;
  return true;
}

void NodeQueues::take(size_t machine, int64_t task) {
  const int64_t* const request = settings_.request.row(static_cast<size_t>(task));
  for (size_t r = 0; r < width_; ++r) free_[machine * width_ + r] -= request[r];
  ++machines_[machine].busy;
}

void NodeQueues::give_back(size_t machine, int64_t task) {
  const int64_t* const request = settings_.request.row(static_cast<size_t>(task));
  for (size_t r = 0; r < width_; ++r) free_[machine * width_ + r] += request[r];
  --machines_[machine].busy;
}

// Messages may name any machine.
void NodeQueues::prefetch(int64_t machine) const {
  if (static_cast<uint64_t>(machine) >= machines_.size()) return;
  const auto row = static_cast<size_t>(machine);
  __builtin_prefetch(&machines_[row], 1);
  __builtin_prefetch(&free_[row * width_], 1);
}

void NodeQueues::prefetch_first(int64_t machine) const {
  if (static_cast<uint64_t>(machine) >= machines_.size()) return;
  const uint32_t first = machines_[static_cast<size_t>(machine)].first;
  if (first != kNone) __builtin_prefetch(&reservations_[first], 1);
}

// Queues.

void NodeQueues::serve(int64_t now_us, size_t machine) {
  Machine& at = machines_[machine];
  while (at.first != kNone && at.blocked != at.changes &&
         fits(machine, reservations_[at.first].task)) {
    const int64_t head_us = now_us - at.head_since_us;
    const uint32_t one = pop_front(now_us, machine);
    const Reservation& of = reservations_[one];
    const size_t h = hold(machine, one);
    Asked& to = asked(of.agent);
    if (of.bound) {
      to.claimed.push_back(static_cast<int64_t>(h));
      continue;
    }
    to.request.push_back(of.request);
    to.probe.push_back(of.probe);
    to.hold.push_back(static_cast<int64_t>(h));
    to.queued_us += now_us - of.queued_us;
    to.head_us += head_us;
  }
}

void NodeQueues::push_back(int64_t now_us, size_t machine, uint32_t reservation) {
  Machine& at = machines_[machine];
  reservations_[reservation].next = kNone;
  if (at.first == kNone) {
    at.first = reservation;
    at.head_since_us = now_us;
  } else {
    reservations_[at.last].next = reservation;
  }
  at.last = reservation;
  ++at.length;
}

void NodeQueues::push_front(int64_t now_us, size_t machine, uint32_t reservation) {
  Machine& at = machines_[machine];
  reservations_[reservation].next = at.first;
  if (at.first == kNone) at.last = reservation;
  at.first = reservation;
  at.head_since_us = now_us;
  ++at.length;
}

uint32_t NodeQueues::pop_front(int64_t now_us, size_t machine) {
  const uint32_t first = machines_[machine].first;
  unlink(now_us, machines_[machine], kNone);
  return first;
}

void NodeQueues::unlink(int64_t now_us, Machine& at, uint32_t before) {
  const uint32_t one = before == kNone ? at.first : reservations_[before].next;
  const uint32_t next = reservations_[one].next;
  if (before == kNone) {
    at.first = next;
    at.head_since_us = now_us;
  } else {
    reservations_[before].next = next;
  }
  if (at.last == one) at.last = before;
  --at.length;
}

void NodeQueues::lose_queue(int64_t now_us, size_t machine) {
  while (machines_[machine].first != kNone) lose(pop_front(now_us, machine));
}

// Gives a reservation back to its agent: its machine is down.
void NodeQueues::lose(uint32_t reservation) {
  const Reservation& of = reservations_[reservation];
  Asked& to = asked(of.agent);
  to.lost_request.push_back(of.request);
  to.lost_probe.push_back(of.probe);
  to.lost_task.push_back(of.bound ? of.task : -1);
  remove(reservation);
}

uint32_t NodeQueues::add(Reservation reservation) {
  if (free_reservations_.empty()) {
    reservations_.push_back(reservation);
    return static_cast<uint32_t>(reservations_.size() - 1);
  }
  const uint32_t one = free_reservations_.back();
  free_reservations_.pop_back();
  reservations_[one] = reservation;
  return one;
}

// Keeps the room that a reservation asks for.
size_t NodeQueues::hold(size_t machine, uint32_t reservation) {
  size_t h = holds_.size();
  if (free_holds_.empty()) {
    holds_.emplace_back();
  } else {
    h = free_holds_.back();
    free_holds_.pop_back();
  }
  const Reservation& of = reservations_[reservation];
  holds_[h] = {reservation, static_cast<int32_t>(machine), epoch_[static_cast<size_t>(of.agent)], 0,
               false};
  take(machine, of.task);
  return h;
}

void NodeQueues::end_hold(size_t h) {
  Hold& held = holds_[h];
  give_back(static_cast<size_t>(held.machine), reservations_[held.reservation].task);
  held.reservation = kNone;
  free_holds_.push_back(h);
}

// Messages to agents and to the master: one of each kind for each agent.

NodeQueues::Asked& NodeQueues::asked(int32_t agent) {
  Asked& found = asked_[static_cast<size_t>(agent)];
  if (!found.touched) {
    found.touched = true;
    touched_.push_back(agent);
  }
  return found;
}

void NodeQueues::send(int64_t now_us, Effects& effects) {
  for (const int32_t agent : touched_) {
    Asked& of = asked_[static_cast<size_t>(agent)];
    of.touched = false;
    const int64_t epoch = epoch_[static_cast<size_t>(agent)];
    if (!of.claimed.empty()) {
      claim(now_us, agent, of.claimed, effects);
      of.claimed.clear();
    }
    if (!of.request.empty()) {
      TaskRequests asks;
      asks.epoch = epoch;
      asks.sent_us = now_us;
      asks.due_us = now_us + settings_.hop_us;
      asks.request = copied_column(of.request);
      asks.probe = copied_column(of.probe);
      asks.hold = copied_column(of.hold);
      asks.queued_us = std::exchange(of.queued_us, 0);
      asks.head_us = std::exchange(of.head_us, 0);
      effects.send(agent, std::move(asks));
      of.request.clear();
      of.hold.clear();
      of.probe.clear();
    }
    if (!of.lost_request.empty()) {
      ProbesLost lost;
      lost.epoch = epoch;
      lost.due_us = now_us + settings_.hop_us;
      lost.request = copied_column(of.lost_request);
      lost.probe = copied_column(of.lost_probe);
      lost.task = copied_column(of.lost_task);
      effects.send(agent, std::move(lost));
      of.lost_request.clear();
      of.lost_task.clear();
      of.lost_probe.clear();
    }
  }
  touched_.clear();
}

void NodeQueues::claim(int64_t now_us, int32_t agent, const std::vector<int64_t>& holds,
                       Effects& effects) {
  Transaction made;
  made.scheduler = agent;
  made.sequence = kFirstSequence + ++transactions_;
  auto [task, tasks] = SharedColumn<int64_t>::make(holds.size());
  auto [machine, machines] = SharedColumn<int32_t>::make(holds.size());
  auto [request, requests] = SharedTable<int64_t>::make(holds.size(), width_);
  for (size_t i = 0; i < holds.size(); ++i) {
    Hold& held = holds_[static_cast<size_t>(holds[i])];
    held.claiming = true;
    held.changes = machines_[static_cast<size_t>(held.machine)].changes;
    tasks[i] = reservations_[held.reservation].task;
    machines[i] = held.machine;
    std::copy_n(settings_.request.row(static_cast<size_t>(tasks[i])), width_,
                requests + i * width_);
  }
  made.task = std::move(task);
  made.machine = std::move(machine);
  made.request = std::move(request);
  made.synced_us = SharedColumn<int64_t>::filled(holds.size(), now_us);
  claims_.emplace(made.sequence, holds);
  CommitRequest asks;
  asks.reply_to = kWorkers;
  asks.transaction = std::make_shared<const Transaction>(std::move(made));
  effects.send(kMaster, std::move(asks));
}

// Whoever sends a message may name any row.

size_t NodeQueues::task_row(int64_t task) const {
  if (task < 0 || static_cast<size_t>(task) >= settings_.request.rows())
    throw std::invalid_argument("task " + std::to_string(task) + ": there is no such task");
  return static_cast<size_t>(task);
}

size_t NodeQueues::machine_row(int64_t machine) const {
  if (machine < 0 || static_cast<size_t>(machine) >= machines_.size())
    throw std::invalid_argument("machine " + std::to_string(machine) + ": there is none");
  return static_cast<size_t>(machine);
}

}  // namespace agora
