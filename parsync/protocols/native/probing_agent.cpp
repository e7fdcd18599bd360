#include "probing_agent.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <variant>

#include "parsync/core/native/event.hpp"
#include "shared_state/native/cell.hpp"

namespace agora {

using probing::AgentRestarted;
using probing::DecisionDue;
using probing::is_early;
using probing::LengthAnswers;
using probing::LengthRequests;
using probing::Probes;
using probing::ProbesCancelled;
using probing::ProbesLost;
using probing::ReprobeDue;
using probing::TaskAnswers;
using probing::TaskRequests;

namespace {

constexpr int8_t kService = 1;  // shared_state.tasks.TaskClass
constexpr size_t kProbesColumns = 14;

}  // namespace

void MachineDraw::draw(Stream& stream, size_t count, bool replace, std::vector<int32_t>& drawn) {
  const size_t n = machines_.size();
  if (n == 0) throw std::invalid_argument("probes: no machine may run the task");
  drawn.reserve(drawn.size() + count);
  if (replace) {
    for (size_t i = 0; i < count; ++i) drawn.push_back(machines_[stream.below(n)]);
    return;
  }
  while (count > 0) {  // the first steps of a shuffle, whose result does not depend on the order
    const size_t distinct = std::min(count, n);
    for (size_t i = 0; i < distinct;) {
      // Some at once, so that their machines are on the way to the cache together.
      std::array<size_t, 32> other;
      const size_t some = std::min(other.size(), distinct - i);
      for (size_t k = 0; k < some; ++k) {
        other[k] = i + k + stream.below(n - i - k);
        __builtin_prefetch(&machines_[other[k]], 1);
      }
      for (size_t k = 0; k < some; ++k, ++i) {
        std::swap(machines_[i], machines_[other[k]]);
        drawn.push_back(machines_[i]);
      }
    }
    count -= distinct;
  }
}

ProbingAgent::Request& ProbingAgent::Requests::at(int64_t number) {
  Request* const found = find(number);
  if (!found) throw std::out_of_range("there is no request " + std::to_string(number));
  return *found;
}

void ProbingAgent::Requests::end(int64_t number) {
  at(number) = Request{};
  at(number).is_live = false;
  --live_;
  while (!list_.empty() && !list_.front().is_live) {
    list_.pop_front();
    ++first_;
  }
}

ProbingAgent::ProbingAgent(Settings settings, const Parts& parts)
    : settings_(std::move(settings)),
      parts_(parts),
      stream_(stream_key(settings_.seed, settings_.name + "/probes", 0)) {
  if (parts.probes.columns() != kProbesColumns)
    throw std::invalid_argument("probes: its columns are not those that the agent writes");
  if (settings_.ratio_permille < 1000) throw std::invalid_argument("probe ratio: below 1");
}

void ProbingAgent::handle(int64_t now_us, const EventPtr& event, Effects& effects) {
  switch (event->key()) {
    case TaskRequests::kType.key():
      return on_asked(now_us, event, effects);
    case ClaimsSettled::kType.key():
      return on_settled(now_us, as<ClaimsSettled>(event));
    case TasksSubmitted::kType.key():
      return submit(now_us, as<TasksSubmitted>(event).task.span(), 1, effects);
    case DecisionDue::kType.key():
      due_ = false;
      if (deciding_.empty() && !undecided_.empty()) effects.start_decision(decisions_ + 1);
      return;
    case DecisionDone::kType.key():
      return on_decided(now_us, as<DecisionDone>(event).decision, effects);
    case LengthAnswers::kType.key():
      return on_lengths(now_us, event, effects);
    case ProbesLost::kType.key():
      return on_lost(now_us, event, effects);
    case ReprobeDue::kType.key():
      return on_reprobe(now_us, effects);
    case TasksEnded::kType.key(): {
      const auto& ended = as<TasksEnded>(event);
      if (ended.change == static_cast<int64_t>(ChangeKind::Finished)) return;
      return submit(now_us, ended.task.span(), 0, effects);
    }
    case TasksAdopted::kType.key():
      return;
    case SampleDue::kType.key(): {
      log_sample(now_us);
      effects.hand_out();
      SampleDue due;
      due.sample = std::max(as<SampleDue>(event).sample, now_us / settings_.sample_us) + 1;
      return effects.set_timer(due.sample * settings_.sample_us, due);
    }
    case Started::kType.key():
      return start(now_us, as<Started>(event).epoch, effects);
    default:
      throw WrongEvent{"agent", event};
  }
}

void ProbingAgent::start(int64_t now_us, int64_t epoch, Effects& effects) {
  epoch_ = epoch;
  if (epoch > 0) {  // what the agent before it had reserved ends, and it draws anew
    stream_ = Stream(
        stream_key(settings_.seed, settings_.name + "/probes", static_cast<uint64_t>(epoch)));
    AgentRestarted restarted;
    restarted.agent = settings_.index;
    restarted.epoch = epoch;
    effects.send(kWorkers, restarted);
  }
  SampleDue due;
  due.sample = now_us / settings_.sample_us + 1;
  effects.set_timer(due.sample * settings_.sample_us, due);
}

// Tasks.

void ProbingAgent::submit(int64_t now_us, std::span<const int64_t> task, int8_t first,
                          Effects& effects) {
  const std::vector<uint8_t>& never = parts_.sorting_out.sort_out(now_us, task);
  std::vector<Waiting> tasks;
  tasks.reserve(task.size());
  for (size_t i = 0; i < task.size(); ++i)
    if (never.empty() || !never[i]) tasks.push_back({task[i], 0, first});
  if (tasks.empty()) return;
  queued_ += static_cast<int64_t>(tasks.size());
  add_requests(tasks);
  wake(now_us, effects);
}

// A request for the tasks of each job that ask for the same; or for each task.
void ProbingAgent::add_requests(std::span<const Waiting> tasks) {
  std::unordered_map<int64_t, std::vector<int64_t>> made_for;  // requests made here, by job
  for (const Waiting& task : tasks) {
    std::vector<int64_t>& of_job = made_for[settings_.job[static_cast<size_t>(task.task)]];
    const auto same =
        settings_.per_task ? of_job.end() : std::ranges::find_if(of_job, [&](int64_t one) {
          return alike(requests_.at(one).like, task.task);
        });
    if (same != of_job.end()) {
      requests_.at(*same).tasks.push_back(task);
      continue;
    }
    const int64_t number = requests_.add(task.task);
    requests_.at(number).tasks.push_back(task);
    undecided_.push_back(number);
    of_job.push_back(number);
  }
}

// Of tasks of one job.
bool ProbingAgent::alike(int64_t one, int64_t other) const {
  const auto a = static_cast<size_t>(one), b = static_cast<size_t>(other);
  const size_t width = settings_.request.width();
  if (!settings_.priority.empty() && settings_.priority[a] != settings_.priority[b]) return false;
  return set_of(one, settings_.preferred_permille > 0) ==
             set_of(other, settings_.preferred_permille > 0) &&
         std::equal(settings_.request.row(a), settings_.request.row(a) + width,
                    settings_.request.row(b));
}

void ProbingAgent::wake(int64_t now_us, Effects& effects) {
  if (due_ || !deciding_.empty() || undecided_.empty()) return;
  due_ = true;
  effects.set_timer(now_us, DecisionDue{});
}

// Decisions: which machines to probe.

void ProbingAgent::decide(int64_t decision, int64_t now_us) {
  if (decision != decisions_ + 1 || !deciding_.empty() || undecided_.empty())
    throw std::logic_error("StartDecision and what is undecided go together");
  ++decisions_;
  begun_us_ = now_us;
  drawn_.clear();
  drawn_end_.clear();
  // One request after the other; what was submitted together as single tasks goes together.
  do {
    deciding_.push_back(undecided_.front());
    undecided_.pop_front();
    const Request& request = requests_.at(deciding_.back());
    const auto tasks = static_cast<int64_t>(request.tasks.size());
    const int64_t probes = settings_.binding == Binding::Random
                               ? tasks
                               : (tasks * settings_.ratio_permille + 999) / 1000;
    draw(request.like, static_cast<size_t>(probes), drawn_);
    drawn_end_.push_back(drawn_.size());
  } while (settings_.per_task && !undecided_.empty() &&
           settings_.job[static_cast<size_t>(requests_.at(undecided_.front()).like)] ==
               settings_.job[static_cast<size_t>(requests_.at(deciding_.front()).like)]);
}

int64_t ProbingAgent::decision_us(int64_t elapsed_ns) {
  DecisionWork work{};
  decided_tasks_.clear();
  for (const int64_t number : deciding_)
    for (const Waiting& task : requests_.at(number).tasks) {
      decided_tasks_.push_back(task.task);
      work.service_tasks += settings_.task_class[static_cast<size_t>(task.task)] == kService;
    }
  work.tasks = static_cast<int64_t>(decided_tasks_.size());
  work.operations = static_cast<int64_t>(drawn_.size());
  work.elapsed_ns = elapsed_ns;
  decision_us_ = duration_us(settings_.clock, work);
  return decision_us_;
}

void ProbingAgent::on_decided(int64_t now_us, int64_t decision, Effects& effects) {
  if (decision != decisions_ || deciding_.empty())
    throw std::invalid_argument("DecisionDone: expected after decide(), with its number");
  parts_.log.decided(decision_us_);
  parts_.log.attempts({.start_us = begun_us_,
                       .decision_us = decision_us_,
                       .task = decided_tasks_,
                       .placed_later = true});
  send_probes(now_us, effects);
  deciding_.clear();
  wake(now_us, effects);
}

void ProbingAgent::send_probes(int64_t now_us, Effects& effects) {
  counts_.probes += static_cast<int64_t>(drawn_.size());
  std::vector<int64_t> number;
  number.reserve(drawn_.size());
  for (size_t i = 0; i < deciding_.size(); ++i) number.resize(drawn_end_[i], deciding_[i]);
  if (settings_.binding == Binding::LeastQueue || settings_.binding == Binding::LeastWork) {
    LengthRequests asks;
    asks.agent = settings_.index;
    asks.epoch = epoch_;
    asks.due_us = now_us + settings_.hop_us;
    asks.request = copied_column(number);
    asks.machine = copied_column(drawn_);
    return effects.send(kWorkers, std::move(asks));
  }
  const bool bound = settings_.binding == Binding::Random;
  Reservations made;
  made.request = std::move(number);
  made.machine = drawn_;
  size_t begin = 0;
  for (size_t i = 0; i < deciding_.size(); ++i) {
    Request& request = requests_.at(deciding_[i]);
    const size_t probes = drawn_end_[i] - begin;
    for (size_t k = 0; k < probes; ++k) {
      made.probe.push_back(static_cast<int32_t>(k));
      made.task.push_back(bound ? request.tasks[k].task : request.like);
      if (bound) under_way_[made.task.back()] = {kBound, request.tasks[k]};
    }
    if (bound)
      requests_.end(deciding_[i]);
    else
      request.machine.assign(drawn_.begin() + static_cast<std::ptrdiff_t>(begin),
                             drawn_.begin() + static_cast<std::ptrdiff_t>(drawn_end_[i]));
    begin = drawn_end_[i];
  }
  send(now_us, bound, made, effects);
}

void ProbingAgent::send(int64_t now_us, bool bound, const Reservations& made, Effects& effects) {
  Probes probes;
  probes.agent = settings_.index;
  probes.epoch = epoch_;
  probes.due_us = now_us + settings_.hop_us;
  probes.bound = bound;
  probes.request = copied_column(made.request);
  probes.probe = copied_column(made.probe);
  probes.machine = copied_column(made.machine);
  probes.task = copied_column(made.task);
  effects.send(kWorkers, std::move(probes));
}

void ProbingAgent::draw(int64_t like, size_t count, std::vector<int32_t>& drawn) {
  size_t preferred = 0;
  if (settings_.preferred_permille > 0 && settings_.preference[static_cast<size_t>(like)] > 0) {
    MachineDraw& from = draws_of(like, true);
    preferred = (count * static_cast<size_t>(settings_.preferred_permille) + 500) / 1000;
    if (!settings_.replace || from.size() == 0) preferred = std::min(preferred, from.size());
    if (preferred > 0) from.draw(stream_, preferred, settings_.replace, drawn);
  }
  draws_of(like, false).draw(stream_, count - preferred, settings_.replace, drawn);
}

// The preference set of a task, 0 if it does not matter for where the task may run or is probed.
int32_t ProbingAgent::set_of(int64_t task, bool preferred) const {
  const int32_t set = settings_.preference[static_cast<size_t>(task)];
  return preferred || settings_.is_constraint[static_cast<size_t>(set)] ? set : 0;
}

MachineDraw& ProbingAgent::draws_of(int64_t task, bool preferred) {
  Draws& draws = preferred ? preferred_ : allowed_;
  const size_t width = settings_.request.width();
  const int64_t* const request = settings_.request.row(static_cast<size_t>(task));
  const int32_t set = set_of(task, preferred);
  if (draws.last && set == set_of(draws.last_task, preferred) &&
      std::equal(request, request + width,
                 settings_.request.row(static_cast<size_t>(draws.last_task))))
    return *draws.last;
  std::vector<int64_t> key(request, request + width);
  key.push_back(set);
  auto found = draws.by_key.find(key);
  if (found == draws.by_key.end()) {
    MachineDraw made(preferred ? parts_.machines.preferred(task) : parts_.machines.allowed(task));
    found = draws.by_key.emplace(std::move(key), std::move(made)).first;
  }
  draws.last_task = task;
  draws.last = &found->second;
  return found->second;
}

// Late binding.

void ProbingAgent::on_asked(int64_t now_us, const EventPtr& event, Effects& effects) {
  const auto& asked = as<TaskRequests>(event);
  check_rows("TaskRequests", asked.request.size(), asked.probe, asked.hold);
  if (asked.epoch != epoch_) return;  // meant for the agent before this host was restarted
  if (is_early(now_us, asked, event, effects)) return;
  TaskAnswers answers;
  answers.agent = settings_.index;
  answers.epoch = epoch_;
  answers.due_us = now_us + settings_.hop_us;
  answers.hold = asked.hold;
  const auto questions = static_cast<int64_t>(asked.request.size());
  counts_.asked += questions;
  counts_.held_us += questions * (answers.due_us - asked.sent_us);
  counts_.queued_us += asked.queued_us;
  counts_.head_us += asked.head_us;
  auto [given, tasks] = SharedColumn<int64_t>::make(asked.request.size());
  const int32_t* behind = asked.behind_long.begin();
  std::vector<int64_t> cancelled;
  std::vector<int32_t> cancelled_probe, cancelled_machine;
  for (size_t i = 0; i < asked.request.size(); ++i) {
    const bool waited = behind != asked.behind_long.end() && static_cast<size_t>(*behind) == i;
    behind += waited;
    Request* const request = requests_.find(asked.request[i]);
    if (!request || request->left().empty()) {
      tasks[i] = -1;
      ++counts_.empty;
      continue;
    }
    request->machine.at(static_cast<size_t>(asked.probe[i])) = kEnded;
    const Waiting& task = request->tasks[request->next++];
    ++request->under_way;
    under_way_[task.task] = {asked.request[i], task};
    tasks[i] = task.task;
    counts_.given_short += settings_.task_class[static_cast<size_t>(task.task)] != kService;
    counts_.behind_long += waited;
    if (!settings_.cancels || !request->left().empty()) continue;
    for (size_t probe = 0; probe < request->machine.size(); ++probe) {
      int32_t& machine = request->machine[probe];
      if (machine == kEnded) continue;
      cancelled.push_back(asked.request[i]);
      cancelled_probe.push_back(static_cast<int32_t>(probe));
      cancelled_machine.push_back(machine);
      machine = kEnded;
    }
  }
  answers.task = std::move(given);
  if (!cancelled.empty()) {  // first: a machine that is told of no task asks for the next at once
    counts_.cancelled += static_cast<int64_t>(cancelled.size());
    ProbesCancelled cancels;
    cancels.agent = settings_.index;
    cancels.epoch = epoch_;
    cancels.due_us = answers.due_us;
    cancels.request = copied_column(cancelled);
    cancels.probe = copied_column(cancelled_probe);
    cancels.machine = copied_column(cancelled_machine);
    effects.send(kWorkers, std::move(cancels));
  }
  effects.send(kWorkers, std::move(answers));
}

void ProbingAgent::on_lost(int64_t now_us, const EventPtr& event, Effects& effects) {
  const auto& lost = as<ProbesLost>(event);
  check_rows("ProbesLost", lost.request.size(), lost.probe, lost.task);
  if (lost.epoch != epoch_) return;
  if (is_early(now_us, lost, event, effects)) return;
  const bool waits = !lost_.empty();
  counts_.lost += static_cast<int64_t>(lost.request.size());
  for (size_t i = 0; i < lost.request.size(); ++i)
    lost_.push_back({lost.request[i], lost.task[i], lost.probe[i]});
  if (!waits && !lost_.empty()) effects.set_timer(now_us + settings_.reprobe_us, ReprobeDue{});
}

// Lost probes of requests with tasks are sent to other machines; bound tasks are decided anew.
void ProbingAgent::on_reprobe(int64_t now_us, Effects& effects) {
  Reservations made;
  std::vector<Waiting> unbound;
  for (const LostProbe& lost : lost_) {
    if (lost.task >= 0) {
      const auto found = under_way_.find(lost.task);
      if (found == under_way_.end()) continue;
      unbound.push_back(found->second.task);
      under_way_.erase(found);
      continue;
    }
    Request* const request = requests_.find(lost.request);
    if (!request || request->left().empty()) continue;
    draw(request->like, 1, made.machine);
    request->machine.at(static_cast<size_t>(lost.probe)) = made.machine.back();
    made.request.push_back(lost.request);
    made.probe.push_back(lost.probe);
    made.task.push_back(request->like);
  }
  lost_.clear();
  add_requests(unbound);
  wake(now_us, effects);
  if (made.request.empty()) return;
  counts_.probes += static_cast<int64_t>(made.request.size());
  send(now_us, false, made, effects);
}

// Early binding to the least queue or work: the tasks of a request go to the machines with the
// least of those that it asked, one to each. Of equal ones, to that which was drawn first.
void ProbingAgent::on_lengths(int64_t now_us, const EventPtr& event, Effects& effects) {
  const auto& answers = as<LengthAnswers>(event);
  check_rows("LengthAnswers", answers.request.size(), answers.machine, answers.length);
  if (answers.epoch != epoch_) return;
  if (is_early(now_us, answers, event, effects)) return;
  Reservations made;
  std::vector<size_t> order;
  for (size_t begin = 0, end = 0; begin < answers.request.size(); begin = end) {
    while (end < answers.request.size() && answers.request[end] == answers.request[begin]) ++end;
    order.resize(end - begin);
    std::iota(order.begin(), order.end(), begin);
    std::ranges::stable_sort(order, {}, [&](size_t i) { return answers.length[i]; });
    const int64_t number = answers.request[begin];
    const Request* const request = requests_.find(number);
    if (!request) throw std::invalid_argument("LengthAnswers: no such request");
    const std::vector<Waiting>& tasks = request->tasks;
    for (size_t i = 0; i < tasks.size(); ++i) {
      made.request.push_back(number);
      made.probe.push_back(static_cast<int32_t>(i));
      made.machine.push_back(answers.machine[order[i % order.size()]]);
      made.task.push_back(tasks[i].task);
      under_way_[tasks[i].task] = {kBound, tasks[i]};
    }
    requests_.end(number);
  }
  send(now_us, true, made, effects);
}

// Outcomes.

void ProbingAgent::on_settled(int64_t now_us, const ClaimsSettled& settled) {
  const Transaction& claims = *settled.transaction;
  const CommitResult& result = *settled.result;
  const size_t count = claims.size();
  check_rows("ClaimsSettled", count, claims.machine, claims.synced_us, result.reason, result.rival,
             result.age_us);
  attempts_.assign(count, 1);
  first_.assign(count, 1);
  rejected_.clear();
  placed_of_.clear();
  int64_t latest_us = 0;
  for (size_t i = 0; i < count; ++i) {
    latest_us = std::max(latest_us, claims.synced_us[i]);
    const auto found = under_way_.find(claims.task[i]);
    if (found == under_way_.end()) continue;  // claimed for the agent before a restart
    UnderWay& of = found->second;
    attempts_[i] = ++of.task.attempts;
    first_[i] = of.task.first;
    const bool placed = is_placed(result.reason[i]);
    if (placed) --queued_;
    if (!placed) ++counts_.returned;
    if (of.request == kBound) {
      if (placed) under_way_.erase(found);
      continue;  // its reservation is still at the machine
    }
    --requests_.at(of.request).under_way;
    if (placed)
      placed_of_.push_back(of.request);
    else
      rejected_.emplace_back(of.request, of.task);
    under_way_.erase(found);
  }
  // In the order that they were given away in.
  for (auto one = rejected_.rbegin(); one != rejected_.rend(); ++one)
    requests_.at(one->first).put_back(one->second);
  for (const int64_t request : placed_of_) end_if_done(request);
  parts_.log.commit(now_us,
                    {result.sequence, claims.task.span(), claims.machine.data(),
                     claims.synced_us.data(), attempts_.data(), first_.data(), result.reason.data(),
                     result.rival.data(), result.age_us.data()},
                    {latest_us, 0});
}

void ProbingAgent::end_if_done(int64_t request) {
  const Request* const found = requests_.find(request);
  if (found && found->left().empty() && found->under_way == 0) requests_.end(request);
}

void ProbingAgent::log_sample(int64_t now_us) {
  parts_.log.sample(now_us, queued_, 0, false, 0);
  const Counts& of = counts_;
  if (of.probes || of.asked || of.cancelled || of.lost || of.returned)
    parts_.probes.add({now_us, settings_.index, of.probes, of.asked, of.asked - of.empty, of.empty,
                       of.cancelled, of.lost, of.returned, of.held_us, of.queued_us, of.head_us,
                       of.given_short, of.behind_long});
  counts_ = {};
}

}  // namespace agora
