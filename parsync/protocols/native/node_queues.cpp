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

constexpr int64_t kLongestRun = int64_t{1} << 50;  // sums of these stay within 63 bits

}  // namespace

MachineWork::MachineWork(RunTimes times, size_t machines)
    : times_(std::move(times)), machines_(machines), end_us_(times_.duration_us.size()) {
  check_lengths(times_.catalog);
  check_rows("run times", times_.duration_us.size(), times_.preference);
}

void MachineWork::start(int64_t start_us, int64_t task, size_t machine) {
  int64_t& end_us = end_us_.at(static_cast<size_t>(task));
  end_us = start_us + run_us(task, machine);
  machines_[machine].ends_us += end_us;
  ++machines_[machine].running;
}

void MachineWork::end(int64_t task, size_t machine) {
  machines_[machine].ends_us -= end_us_.at(static_cast<size_t>(task));
  --machines_[machine].running;
}

// Tasks whose end waits for the heartbeat have nothing left, and count a little less than that.
int64_t MachineWork::left_us(int64_t now_us, size_t machine) const {
  const Machine& at = machines_[machine];
  return std::max<int64_t>(0, at.ends_us - at.running * now_us) + at.bound_us;
}

int64_t MachineWork::run_us(int64_t task, size_t machine) const {
  const auto row = static_cast<size_t>(task);
  const int64_t duration_us = times_.duration_us.span()[row];
  if (duration_us < 0 || duration_us > kLongestRun) return kLongestRun;
  if (times_.preferred_permille == 1000) return duration_us;
  const int32_t at = static_cast<int32_t>(machine), set = times_.preference[row];
  int64_t cost = 0;
  bool preferred = false;
  placement_cost(times_.catalog, {&set, 1}, {&at, 1}, &cost, &preferred);
  return preferred ? duration_us * times_.preferred_permille / 1000 : duration_us;
}

NodeQueues::NodeQueues(Settings settings)
    : settings_(std::move(settings)),
      width_(settings_.limit.width()),
      machines_(settings_.limit.rows()),
      free_(settings_.limit.data(), settings_.limit.data() + settings_.limit.count()),
      up_(settings_.limit.rows(), true),
      turn_(settings_.order == Order::RoundRobin ? settings_.limit.rows() : 0, kNobody),
      epoch_(settings_.agents),
      asked_(settings_.agents) {
  if (settings_.hop_us < 0) throw std::invalid_argument("hop_us: expected 0 or more");
  if (settings_.request.width() != width_)
    throw std::invalid_argument("request: expected a column for each resource");
  const size_t tasks = settings_.request.rows();
  if (settings_.key.size()) check_rows("key", tasks, settings_.key);
  if (settings_.order == Order::Priority && !settings_.key.size() && tasks)
    throw std::invalid_argument("key: expected the priority of each task");
  if (settings_.is_long.size()) check_rows("is_long", tasks, settings_.is_long);
  if (std::ranges::find(settings_.is_long, true) != settings_.is_long.end())
    long_.resize(machines_.size());
  if (settings_.run_times) {
    check_rows("run times", tasks, settings_.run_times->duration_us);
    if (settings_.asks_work.size() != settings_.agents)
      throw std::invalid_argument("asks_work: expected a value for each agent");
    work_.emplace(*settings_.run_times, machines_.size());
  }
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
    case RoomFreed::kType.key():
      on_room_freed(now_us, event);
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
        unlink(now_us, m, before);
        remove(m, one);
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
    const uint32_t ended = held.reservation;
    end_hold(h);
    remove(static_cast<size_t>(held.machine), ended);
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
             probes.probe[i], kNone, probes.bound, false});
    if (probes.bound && work_) work_->bind(probes.task[i], machine);
    if (!up_[machine]) {
      lose(machine, one);
      continue;
    }
    reservations_[one].behind_long =
        !long_.empty() && long_[machine] > 0 && !is_long(probes.task[i]);
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
        unlink(now_us, machine, before);
        remove(machine, one);
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
      const uint32_t ended = holds_[h].reservation;
      const int32_t user = key(reservations_[ended]);
      end_hold(h);
      remove(machine, ended);
      serve(now_us, machine, user);
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
    const size_t machine = machine_row(asked.machine[i]);
    const Machine& at = machines_[machine];
    const bool of_work = work_ && settings_.asks_work[static_cast<size_t>(asked.agent)];
    values[i] = of_work ? work_->left_us(now_us, machine) : int64_t{at.busy} + at.length;
  }
  answers.length = std::move(length);
  effects.send(asked.agent, std::move(answers));
}

// What happens on the cell.

void NodeQueues::on_started(const EventPtr& event) {
  const auto& started = as<TasksStarted>(event);
  for (size_t i = 0; i < started.task.size(); ++i) {
    const size_t machine = machine_row(started.machine[i]);
    task_row(started.task[i]);
    take(machine, started.task[i]);
    if (work_) work_->start(started.start_us, started.task[i], machine);
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
    if (work_) work_->end(ended.task[i], machine);
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

void NodeQueues::on_room_freed(int64_t now_us, const EventPtr& event) {
  for (const int32_t freed : as<RoomFreed>(event).machine) {
    const size_t machine = machine_row(freed);
    ++machines_[machine].changes;
    serve(now_us, machine);
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
      remove(machine, held.reservation);
    } else if (!up_[machine]) {
      lose(machine, held.reservation);
    } else {
      push_front(now_us, machine, held.reservation);
      // Somebody else was first. Only an end, of a task or of what the cell held for an offer,
      // makes room again, unless one came meanwhile.
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
  if (is_long(task)) ++long_[machine];
}

void NodeQueues::give_back(size_t machine, int64_t task) {
  const int64_t* const request = settings_.request.row(static_cast<size_t>(task));
  for (size_t r = 0; r < width_; ++r) free_[machine * width_ + r] += request[r];
  --machines_[machine].busy;
  if (is_long(task)) --long_[machine];
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

void NodeQueues::serve(int64_t now_us, size_t machine, int32_t again) {
  Machine& at = machines_[machine];
  for (; at.first != kNone && at.blocked != at.changes; again = kNobody) {
    const bool is_turn = turn_.empty() || bring_forward(now_us, machine, again);
    if (!fits(machine, reservations_[at.first].task)) return;
    const int64_t head_us = now_us - at.head_since_us;
    const uint32_t one = pop_front(now_us, machine);
    const Reservation& of = reservations_[one];
    if (!turn_.empty() && is_turn) turn_[machine] = key(of);
    const size_t h = hold(machine, one);
    Asked& to = asked(of.agent);
    if (of.bound) {
      to.claimed.push_back(static_cast<int64_t>(h));
      continue;
    }
    if (of.behind_long && now_us > of.queued_us)
      to.behind_long.push_back(static_cast<int32_t>(to.request.size()));
    to.request.push_back(of.request);
    to.probe.push_back(of.probe);
    to.hold.push_back(static_cast<int64_t>(h));
    to.queued_us += now_us - of.queued_us;
    to.head_us += head_us;
  }
}

// Round robin: makes the first reservation of the user whose turn it is the first of the queue. A
// user who was served in vain goes on, without its being a turn (as in Sparrow's
// RoundRobinTaskScheduler); after the user served last comes the next one by number. Returns
// whether it is a turn.
bool NodeQueues::bring_forward(int64_t now_us, size_t machine, int32_t again) {
  uint32_t chosen = kNone, before_chosen = kNone;
  uint64_t least = ~uint64_t{0};
  uint32_t before = kNone;
  for (uint32_t one = machines_[machine].first; one != kNone; one = reservations_[one].next) {
    const int32_t user = key(reservations_[one]);
    // the user who goes on, then those after the last one, then all others
    const uint64_t place =
        user == again ? 0 : uint64_t{1} + static_cast<uint32_t>(user - turn_[machine] - 1);
    if (place < least) {
      least = place;
      chosen = one;
      before_chosen = before;
    }
    before = one;
  }
  if (before_chosen != kNone) {
    unlink(now_us, machine, before_chosen);
    link(now_us, machine, kNone, chosen);
  }
  return least > 0;
}

void NodeQueues::push_back(int64_t now_us, size_t machine, uint32_t reservation) {
  const Machine& at = machines_[machine];
  uint32_t before = at.last;
  if (settings_.order == Order::Priority && before != kNone) {
    const int32_t priority = key(reservations_[reservation]);
    if (key(reservations_[before]) < priority) {
      before = kNone;
      for (uint32_t one = at.first; key(reservations_[one]) >= priority;
           one = reservations_[one].next)
        before = one;
    }
  }
  link(now_us, machine, before, reservation);
}

void NodeQueues::push_front(int64_t now_us, size_t machine, uint32_t reservation) {
  const int32_t mine = key(reservations_[reservation]);
  uint32_t before = kNone;
  if (settings_.order == Order::Priority)
    for (uint32_t one = machines_[machine].first; one != kNone && key(reservations_[one]) > mine;
         one = reservations_[one].next)
      before = one;
  if (!turn_.empty()) turn_[machine] = mine - 1;
  link(now_us, machine, before, reservation);
}

uint32_t NodeQueues::pop_front(int64_t now_us, size_t machine) {
  return unlink(now_us, machine, kNone);
}

void NodeQueues::link(int64_t now_us, size_t machine, uint32_t before, uint32_t reservation) {
  Machine& at = machines_[machine];
  uint32_t& place = before == kNone ? at.first : reservations_[before].next;
  if (before == kNone) at.head_since_us = now_us;
  if (at.last == before) at.last = reservation;
  reservations_[reservation].next = place;
  place = reservation;
  ++at.length;
  if (is_long(reservations_[reservation].task)) ++long_[machine];
}

uint32_t NodeQueues::unlink(int64_t now_us, size_t machine, uint32_t before) {
  Machine& at = machines_[machine];
  uint32_t& place = before == kNone ? at.first : reservations_[before].next;
  const uint32_t one = place;
  place = reservations_[one].next;
  if (before == kNone) at.head_since_us = now_us;
  if (at.last == one) at.last = before;
  --at.length;
  if (is_long(reservations_[one].task)) --long_[machine];
  return one;
}

void NodeQueues::lose_queue(int64_t now_us, size_t machine) {
  while (machines_[machine].first != kNone) lose(machine, pop_front(now_us, machine));
}

// Gives a reservation back to its agent: its machine is down.
void NodeQueues::lose(size_t machine, uint32_t reservation) {
  const Reservation& of = reservations_[reservation];
  Asked& to = asked(of.agent);
  to.lost_request.push_back(of.request);
  to.lost_probe.push_back(of.probe);
  to.lost_task.push_back(of.bound ? of.task : -1);
  remove(machine, reservation);
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

// Of a reservation that is in no queue.
void NodeQueues::remove(size_t machine, uint32_t reservation) {
  const Reservation& of = reservations_[reservation];
  if (of.bound && work_) work_->unbind(of.task, machine);
  free_reservations_.push_back(reservation);
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
      if (!of.behind_long.empty()) asks.behind_long = copied_column(of.behind_long);
      asks.queued_us = std::exchange(of.queued_us, 0);
      asks.head_us = std::exchange(of.head_us, 0);
      effects.send(agent, std::move(asks));
      of.request.clear();
      of.hold.clear();
      of.probe.clear();
      of.behind_long.clear();
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
