#include "offers_agent.hpp"

#include <algorithm>
#include <cassert>
#include <memory>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>

#include "parsync/core/native/participant.hpp"
#include "round_planner.hpp"
#include "shared_state/native/cell.hpp"

namespace agora::offers {

OfferedRoom::OfferedRoom(ClusterView& view)
    : view_(view), width_(view.static_state().dimensions()), marked_((machines() + 63) / 64) {}

size_t OfferedRoom::row_of(int32_t machine) const {
  if (machine < 0 || static_cast<size_t>(machine) >= machines())
    throw std::invalid_argument("machine " + std::to_string(machine) + ": there is none");
  return static_cast<size_t>(machine);
}

size_t OfferedRoom::partitions() const {
  const StaticCellState& state = view_.static_state();
  std::vector<uint8_t> has_some(state.partitions());
  size_t count = 0;
  for (size_t i = 0; i < size() && count < has_some.size(); ++i)
    count += std::exchange(has_some[state.index.partition_of(machine_[i])], 1) == 0;
  return count;
}

void OfferedRoom::start(int64_t now_us) {
  const StaticCellState& state = view_.static_state();
  for (size_t partition = 0; partition < state.partitions(); ++partition) {
    if (view_.synced_us()[partition] != ClusterView::kNeverSynced) return;
    const auto first = static_cast<size_t>(state.index.offsets[partition]);
    const size_t rows = static_cast<size_t>(state.index.offsets[partition + 1]) - first;
    std::vector<uint32_t> row(rows);
    std::iota(row.begin(), row.end(), 0U);
    const auto up = std::make_unique<bool[]>(rows);
    std::fill_n(up.get(), rows, true);
    view_.apply(Delta{static_cast<int32_t>(partition), 0, 1, now_us, rows, row.data(),
                      sizeof(uint32_t), state.limit.data() + first * width_, sizeof(int64_t),
                      up.get(), nullptr});
  }
}

void OfferedRoom::add(int64_t now_us, const Offers& event) {
  const size_t count = event.offer.size();
  check_rows("Offers", count, event.machine, event.amount);
  if (event.amount.width() != width_)
    throw std::invalid_argument("Offers: expected an amount of each resource");
  for (const int32_t machine : event.machine)
    if (static_cast<uint32_t>(machine) >= machines()) row_of(machine);  // throws
  offer_.insert(offer_.end(), event.offer.begin(), event.offer.end());
  machine_.insert(machine_.end(), event.machine.begin(), event.machine.end());
  amount_.insert(amount_.end(), event.amount.data(), event.amount.data() + event.amount.count());
  made_us_.insert(made_us_.end(), count, event.made_us);
  rescinded_.resize(offer_.size());
  view_.shift(event.machine.span(), event.amount.data(), +1, now_us);
}

std::vector<size_t> OfferedRoom::rows_on(std::span<const int32_t> machine, size_t count) const {
  for (const int32_t one : machine) row_of(one);
  for (const int32_t one : machine) marked_[row_of(one) / 64] |= uint64_t{1} << (one % 64);
  std::vector<size_t> rows;
  for (size_t i = 0; i < count; ++i) {
    const auto row = static_cast<size_t>(machine_[i]);
    if (marked_[row / 64] >> (row % 64) & 1) rows.push_back(i);
  }
  for (const int32_t one : machine) marked_[row_of(one) / 64] = 0;
  return rows;
}

void OfferedRoom::rescind(int64_t now_us, std::span<const int64_t> offer) {
  std::vector<int64_t> ids(offer.begin(), offer.end());
  std::ranges::sort(ids);
  const auto ended = [&](size_t i) {
    return !rescinded_[i] && std::ranges::binary_search(ids, offer_[i]);
  };
  remove(now_us, [&](size_t i) { return i >= round_ && ended(i); });
  for (size_t i = 0; i < round_; ++i) {
    if (!ended(i)) continue;
    int64_t* const amount = amount_.data() + i * width_;
    view_.shift({&machine_[i], 1}, amount, -1, now_us);
    std::fill_n(amount, width_, 0);
    rescinded_[i] = 1;
  }
}

void OfferedRoom::end_round(int64_t now_us, std::span<const uint8_t> kept) {
  if (!kept.empty() && kept.size() != size())
    throw std::invalid_argument("kept: expected a value for each offer");
  const size_t round = std::exchange(round_, 0);
  if (kept.empty()) return remove_first(now_us, round);
  remove(now_us, [&](size_t i) { return i < round && (!kept[i] || rescinded_[i]); });
}

std::vector<int64_t> OfferedRoom::remove_all(int64_t now_us) {
  assert(round_ == 0);  // a round's offers end with the round
  std::vector<int64_t> offer = offer_;
  remove_first(now_us, size());
  return offer;
}

void OfferedRoom::remove_first(int64_t now_us, size_t count) {
  view_.shift({machine_.data(), count}, amount_.data(), -1, now_us);
  const auto erase = [](auto& column, size_t values) {
    column.erase(column.begin(), column.begin() + static_cast<ptrdiff_t>(values));
  };
  erase(offer_, count);
  erase(machine_, count);
  erase(amount_, count * width_);
  erase(made_us_, count);
  erase(rescinded_, count);
}

// Removes the offers that `goes(i)` says, and their room from the view.
template <class Goes>
void OfferedRoom::remove(int64_t now_us, const Goes& goes) {
  gone_machine_.clear();
  gone_amount_.clear();
  size_t stay = 0;
  for (size_t i = 0; i < size(); ++i) {
    const auto amount = amount_.begin() + static_cast<ptrdiff_t>(i * width_);
    if (goes(i)) {
      gone_machine_.push_back(machine_[i]);
      gone_amount_.insert(gone_amount_.end(), amount, amount + static_cast<ptrdiff_t>(width_));
      continue;
    }
    offer_[stay] = offer_[i];
    machine_[stay] = machine_[i];
    std::copy_n(amount, width_, amount_.begin() + static_cast<ptrdiff_t>(stay * width_));
    made_us_[stay] = made_us_[i];
    rescinded_[stay++] = rescinded_[i];
  }
  offer_.resize(stay);
  machine_.resize(stay);
  amount_.resize(stay * width_);
  made_us_.resize(stay);
  rescinded_.resize(stay);
  view_.shift(gone_machine_, gone_amount_.data(), -1, now_us);
}

LookedAt looked_at(std::span<const int64_t> offered, std::span<const int64_t> placed,
                   std::span<const int64_t> job, std::span<const int8_t> task_class) {
  if (job.size() != task_class.size())
    throw std::invalid_argument("task_class: expected a value for each task");
  std::vector<int64_t> ids(placed.begin(), placed.end());
  std::ranges::sort(ids);
  size_t count = offered.size();
  while (count > 1 && !std::ranges::binary_search(ids, offered[count - 1])) --count;
  std::vector<int64_t> of_class[2];  // jobs with batch tasks, and with service tasks
  for (const int64_t task : offered.first(count)) {
    if (task < 0 || static_cast<size_t>(task) >= job.size())
      throw std::invalid_argument("task " + std::to_string(task) + ": there is none");
    const auto at = static_cast<size_t>(task);
    of_class[task_class[at] == kService].push_back(job[at]);
  }
  LookedAt found;
  found.tasks = static_cast<int64_t>(count);
  found.service_tasks = static_cast<int64_t>(of_class[1].size());
  for (std::vector<int64_t>& jobs : of_class) {
    std::ranges::sort(jobs);
    jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  }
  found.batch_jobs = static_cast<int64_t>(of_class[0].size());
  found.service_jobs = static_cast<int64_t>(of_class[1].size());
  found.jobs = found.batch_jobs + std::ranges::count_if(of_class[1], [&](int64_t one) {
                 return !std::ranges::binary_search(of_class[0], one);
               });
  return found;
}

bool SizeCount::alike(int64_t one, int64_t other) const {
  const int64_t* const row = request_.row(static_cast<size_t>(one));
  return std::equal(row, row + request_.width(), request_.row(static_cast<size_t>(other)));
}

void SizeCount::add(std::span<const int64_t> task) {
  size_t last = sizes_.size();  // of the task before; none
  for (const int64_t id : task) {
    if (id < 0 || static_cast<size_t>(id) >= request_.rows())
      throw std::invalid_argument("task " + std::to_string(id) + ": there is none");
    if (last < sizes_.size() && alike(sizes_[last].first, id)) {
      ++sizes_[last].second;
      continue;
    }
    uint64_t hash = 0;
    for (size_t r = 0; r < request_.width(); ++r)
      hash = (hash ^ static_cast<uint64_t>(request_.row(static_cast<size_t>(id))[r])) *
             0x9E3779B97F4A7C15;
    const auto [first, end] = rows_.equal_range(hash);
    const auto found = std::find_if(
        first, end, [&](const auto& entry) { return alike(sizes_[entry.second].first, id); });
    last = found == end ? sizes_.size() : found->second;
    if (found == end) {
      rows_.emplace(hash, last);
      sizes_.emplace_back(id, 0);
    }
    ++sizes_[last].second;
  }
}

Sizes SizeCount::take() {
  Sizes made;
  for (const auto& [task, tasks] : sizes_) {
    const int64_t* const row = request_.row(static_cast<size_t>(task));
    made.request.insert(made.request.end(), row, row + request_.width());
    made.tasks.push_back(tasks);
  }
  sizes_.clear();
  rows_.clear();
  return made;
}

// The agent.

namespace {

constexpr size_t kWaitsColumns = 7;

// The values of the rows, as a column.
template <class T>
SharedColumn<T> taken(std::span<const T> values, std::span<const size_t> rows) {
  auto [column, to] = SharedColumn<T>::make(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) to[i] = values[rows[i]];
  return column;
}

template <class Is>
std::vector<size_t> rows_where(size_t count, const Is& is) {
  std::vector<size_t> rows;
  for (size_t i = 0; i < count; ++i)
    if (is(i)) rows.push_back(i);
  return rows;
}

SharedTable<int64_t> table_of(const std::vector<int64_t>& values, size_t rows, size_t width) {
  auto [table, to] = SharedTable<int64_t>::make(rows, width);
  std::ranges::copy(values, to);
  return table;
}

}  // namespace

OffersAgent::OffersAgent(const Settings& settings, const Parts& parts)
    : SchedulerAgent(settings, parts, Activity::Idle),
      settings_(settings),
      parts_(parts),
      wanted_(settings.request) {
  if (parts.waits.columns() != kWaitsColumns)
    throw std::invalid_argument("offer_waits: its columns are not those that the agent writes");
  if (settings.request.width() != parts.room.width())
    throw std::invalid_argument("request: expected a column for each resource");
}

void OffersAgent::handle(int64_t now_us, const EventPtr& event, Effects& effects) {
  SchedulerAgent::handle(now_us, event, effects);
  if (!answer_) return;
  tell(std::move(*answer_), effects);  // after the claims that rest on the offers
  answer_.reset();
}

template <class T>
void OffersAgent::tell(T event, Effects& effects) const {
  event.agent = settings_.index;
  event.epoch = epoch_;
  effects.send(settings_.cell_side, std::move(event));
}

// Whether offers that come begin a round.
bool OffersAgent::waits() const {
  return activity_ == Activity::Idle || activity_ == Activity::WaitingForGrant ||
         activity_ == Activity::BlockedOnCapacity;
}

// Offers come and go.

void OffersAgent::on_started(int64_t now_us, int64_t epoch, Effects& effects) {
  epoch_ = epoch;
  parts_.room.start(now_us);
  is_suppressed_ = settings_.suppresses;
  Subscribe subscribe;
  subscribe.suppressed = is_suppressed_;
  tell(subscribe, effects);
  set_sample_timer(now_us, 0, effects);
}

void OffersAgent::on_event(int64_t now_us, const EventPtr& event, Effects& effects) {
  switch (event->key()) {
    case Offers::kType.key():
      return on_offers(now_us, as<Offers>(event), effects);
    case OffersRescinded::kType.key():
      return on_rescinded(now_us, as<OffersRescinded>(event), effects);
    default:
      throw WrongEvent{"agent", event};
  }
}

void OffersAgent::on_offers(int64_t now_us, const Offers& offers, Effects& effects) {
  if (offers.epoch != epoch_) return;
  parts_.room.add(now_us, offers);
  parts_.view.changed = true;
  end_wait(now_us, 0);
  if (!waits()) return;
  if (queued() > 0) return next(now_us, false, effects);
  decline_all(now_us, effects);
}

void OffersAgent::on_rescinded(int64_t now_us, const OffersRescinded& rescinded, Effects& effects) {
  if (rescinded.epoch != epoch_) return;
  parts_.room.rescind(now_us, rescinded.offer.span());
  // the tasks that this room was for; a round that is open says so at its end
  if (queued() > 0 && waits()) say_wants(now_us, effects);
}

// Asks for offers, if the agent had no tasks before.
void OffersAgent::on_queued(int64_t now_us, Effects& effects) {
  begin_waits(now_us);
  say_wants(now_us, effects);
  if (is_suppressed_) {
    is_suppressed_ = false;
    tell(Revive{}, effects);
  }
  if (waits() && (activity_ != Activity::BlockedOnCapacity || parts_.queue.has_new(now_us)))
    next(now_us, false, effects);
}

void OffersAgent::decline_all(int64_t now_us, Effects& effects) {
  if (parts_.room.size() == 0) return;
  OffersAnswered answered = answer();
  answered.declined = column_of(parts_.room.remove_all(now_us));
  tell(std::move(answered), effects);
}

// Accepts and declines nothing.
OffersAnswered OffersAgent::answer() const {
  OffersAnswered made;
  made.accepted_amount = table_of({}, 0, parts_.room.width());
  return made;
}

// Says how large the tasks are that wait, and how many of each size, where the allocator offers
// room for tasks.
void OffersAgent::say_wants(int64_t now_us, Effects& effects) {
  if (!settings_.says_wants) return;
  parts_.queue.waiting(
      now_us, [this](std::span<const int64_t> task, Waiting, int64_t) { wanted_.add(task); });
  Sizes sizes = wanted_.take();
  if (sizes.tasks.empty()) return;
  TasksWanted wanted;
  wanted.request = table_of(sizes.request, sizes.tasks.size(), parts_.room.width());
  wanted.tasks = column_of(std::move(sizes.tasks));
  tell(std::move(wanted), effects);
}

// A round.

// Begins at once if there are offers; they are held meanwhile.
void OffersAgent::start_round(int64_t now_us, Effects& effects) {
  if (parts_.room.size() == 0) {
    activity_ = Activity::WaitingForGrant;
    return;
  }
  parts_.room.begin_round();
  open_round(now_us, effects);
}

SchedulerAgent::Composition OffersAgent::compose(int64_t, bool) {
  return {PartitionRanking::Optimistic, std::nullopt};
}

void OffersAgent::plan(int64_t now_us, DecisionRound& round) {
  if (parts_.delay)
    plan_with_delay(now_us, round);
  else
    SchedulerAgent::plan(now_us, round);
  const OfferedRoom& room = parts_.room;
  std::unordered_map<int32_t, int64_t> latest_us;  // by machine: when its last offer was made
  for (const size_t row : room.rows_on(round.plan.machine.span(), room.size()))
    latest_us[room.machine()[row]] = room.made_us()[row];
  auto [made_us, values] = SharedColumn<int64_t>::make(round.plan.machine.size());
  for (const int32_t machine : round.plan.machine) *values++ = latest_us[machine];
  round.plan.synced_us = std::move(made_us);
}

// Plans the tasks that some offer is near enough for, and leaves those waiting that the scheduler
// puts elsewhere, with their gangs. Their room is not used in this round.
void OffersAgent::plan_with_delay(int64_t now_us, DecisionRound& round) {
  const std::vector<int64_t>& offered = round.tasks.offered.task;
  const SharedColumn<bool> tries = parts_.delay->tries(now_us, offered, parts_.room.machine());
  if (tries.size() != offered.size())
    throw std::invalid_argument("tries: expected a value for each task");
  std::vector<int64_t> tried, passed_over;
  for (size_t i = 0; i < offered.size(); ++i)
    (tries[i] ? tried : passed_over).push_back(offered[i]);
  parts_.scheduler.plan(now_us, tried, round);

  RoundPlan& plan = round.plan;
  const size_t claims = plan.task.size(), width = parts_.room.width();
  const SharedColumn<bool> takes = parts_.delay->takes(now_us, plan.task, plan.machine);
  if (takes.size() != claims) throw std::invalid_argument("takes: expected a value for each task");
  for (size_t i = 0; i < claims; ++i)
    if (!takes[i]) passed_over.push_back(plan.task[i]);
  const std::vector<size_t> near = rows_where(claims, [&](size_t i) { return takes[i]; });
  auto [request, requests] = SharedTable<int64_t>::make(near.size(), width);
  for (size_t i = 0; i < near.size(); ++i)
    std::copy_n(plan.request.row(near[i]), width, requests + i * width);
  plan.task = taken(plan.task.span(), near);
  plan.machine = taken(plan.machine.span(), near);
  plan.gang = taken(plan.gang.span(), near);
  plan.request = std::move(request);
  std::vector<int64_t> pending(plan.pending.begin(), plan.pending.end());
  std::vector<int8_t> reason(plan.pending_reason.begin(), plan.pending_reason.end());
  pending.insert(pending.end(), passed_over.begin(), passed_over.end());
  reason.resize(pending.size(), static_cast<int8_t>(PendingReason::WaitsForPreferred));
  plan.pending = column_of(std::move(pending));
  plan.pending_reason = column_of(std::move(reason));
  plan.in_full = false;
  parts_.delay->on_planned(now_us, passed_over, plan.task, plan.machine);
}

int64_t OffersAgent::time_of(const DecisionRound& round, int64_t elapsed_ns) {
  if (!settings_.clock) return SchedulerAgent::time_of(round, elapsed_ns);
  const RoundPlan& plan = round.plan;
  const LookedAt seen =
      looked_at(round.tasks.offered.task, plan.task.span(), settings_.job, settings_.task_class);
  const DecisionClock& clock = *settings_.clock;
  const auto partitions = static_cast<int64_t>(parts_.room.partitions());
  const int64_t first_us =
      duration_us(clock, {seen.tasks, seen.service_tasks, seen.tasks * partitions, plan.operations,
                          elapsed_ns, plan.priced_machines});
  if (const auto* one = std::get_if<ModelledTime>(&clock))
    return first_us + one->job_us * (seen.jobs - 1);
  if (const auto* both = std::get_if<ModelledTimeByClass>(&clock))
    return first_us + both->service.job_us * std::max<int64_t>(0, seen.service_jobs - 1) +
           both->batch.job_us * std::max<int64_t>(0, seen.batch_jobs - 1);
  return first_us;
}

// Accepts the offers that the claims rest on, and declines the others.
void OffersAgent::on_decided(int64_t now_us, DecisionRound& round, Effects&) {
  OfferedRoom& room = parts_.room;
  RoundPlan& plan = round.plan;
  if (settings_.gives_up) round.tasks.had_turn = turns_of(round);
  parts_.cell.withdraw(plan.ticket);  // the room leaves the view with the offers,
  plan.ticket = -1;                   // and nothing is left to settle
  const std::vector<size_t> used = room.rows_on(plan.machine.span(), room.round());
  const std::vector<uint8_t> kept = kept_for_gangs(plan, used);
  SharedColumn<int64_t> others = declined(used, kept);
  std::vector<size_t> accepted;
  if (settings_.locks)
    round.holds = taken<int64_t>(room.offer(), used);
  else
    std::ranges::copy_if(used, std::back_inserter(accepted),
                         [&](size_t i) { return !room.rescinded()[i]; });
  if (plan.task.size() > 0) end_wait(now_us, 1);
  if (!accepted.empty() || others.size() > 0) {
    answer_ = answer();
    answer_->accepted = taken<int64_t>(room.offer(), accepted);
    answer_->accepted_amount = table_of(claimed_of(plan, accepted), accepted.size(), room.width());
    answer_->declined = std::move(others);
  }
  room.end_round(now_us, kept);
}

// The offers of the round that are neither used nor kept, nor have ended before. used: rows,
// ascending.
SharedColumn<int64_t> OffersAgent::declined(std::span<const size_t> used,
                                            std::span<const uint8_t> kept) const {
  const OfferedRoom& room = parts_.room;
  auto [column, ids] = SharedColumn<int64_t>::make(room.round());
  size_t count = 0;
  auto next = used.begin();
  for (size_t i = 0; i < room.round(); ++i) {
    if (next != used.end() && *next == i)
      ++next;
    else if ((kept.empty() || !kept[i]) && !room.rescinded()[i])
      ids[count++] = room.offer()[i];
  }
  return column.slice(0, count);
}

// What a plan claims of the offers at these rows, [n, R]: of several on one machine the first are
// used up first.
std::vector<int64_t> OffersAgent::claimed_of(const RoundPlan& plan, std::span<const size_t> rows) {
  if (rows.empty()) return {};
  const OfferedRoom& room = parts_.room;
  const size_t width = room.width();
  claimed_.resize(room.machines() * width);
  const auto of = [&](int32_t machine) {
    return claimed_.data() + static_cast<size_t>(machine) * width;
  };
  for (size_t i = 0; i < plan.task.size(); ++i)
    for (size_t r = 0; r < width; ++r) of(plan.machine[i])[r] += plan.request.row(i)[r];
  std::vector<int64_t> amount;
  for (const size_t row : rows) {
    int64_t* const claimed = of(room.machine()[row]);
    for (size_t r = 0; r < width; ++r) {
      amount.push_back(std::min(room.amount()[row * width + r], claimed[r]));
      claimed[r] -= amount.back();
    }
  }
  for (size_t i = 0; i < plan.task.size(); ++i) std::fill_n(of(plan.machine[i]), width, 0);
  return amount;
}

// Which of the tasks offered had their turn, as in Omega's simulator: those up to the last one
// placed, and those after it for which the offers still have some of each resource.
std::vector<uint8_t> OffersAgent::turns_of(const DecisionRound& round) const {
  const OfferedRoom& room = parts_.room;
  const RoundPlan& plan = round.plan;
  const std::vector<int64_t>& offered = round.tasks.offered.task;
  const size_t width = room.width();
  std::vector<int64_t> left(width);
  for (size_t i = 0; i < room.round() * width; ++i) left[i % width] += room.amount()[i];
  for (size_t i = 0; i < plan.task.size(); ++i)
    for (size_t r = 0; r < width; ++r) left[r] -= plan.request.row(i)[r];
  std::vector<int64_t> placed(plan.task.begin(), plan.task.end());
  std::ranges::sort(placed);
  std::vector<uint8_t> turns(offered.size(), 1);
  for (size_t i = offered.size(); i-- > 0;) {
    if (std::ranges::binary_search(placed, offered[i])) break;
    const int64_t* const request =
        settings_.request.row(row_of(offered[i], settings_.request.rows()));
    turns[i] = std::ranges::all_of(std::views::iota(size_t{0}, width),
                                   [&](size_t r) { return request[r] == 0 || left[r] > 0; });
  }
  return turns;
}

// The offers that are hoarded for the first gang that found no room: those that hold one of its
// tasks, until they hold all, or the rest if they do not. By offer; empty if none can be. used:
// rows, ascending.
std::vector<uint8_t> OffersAgent::kept_for_gangs(const RoundPlan& plan,
                                                 std::span<const size_t> used) const {
  if (!settings_.hoards || settings_.gang.empty()) return {};
  const OfferedRoom& room = parts_.room;
  const size_t width = room.width();
  std::vector<uint8_t> kept(room.size());
  int64_t gang = kNoGang, members = 0;
  std::vector<int64_t> request(width);
  for (size_t i = 0; i < plan.pending.size(); ++i) {
    if (plan.pending_reason[i] != static_cast<int8_t>(PendingReason::NoRoom)) continue;
    const size_t task = row_of(plan.pending[i], settings_.gang.size());
    if (gang == kNoGang) gang = settings_.gang[task];
    if (gang == kNoGang || settings_.gang[task] != gang) continue;
    ++members;
    for (size_t r = 0; r < width; ++r)
      request[r] = std::max(request[r], settings_.request.row(task)[r]);
  }
  for (size_t i = 0; i < room.round() && members > 0; ++i) {
    if (std::ranges::binary_search(used, i) || room.rescinded()[i]) continue;
    int64_t holds = members;
    for (size_t r = 0; r < width; ++r)
      if (request[r] > 0) holds = std::min(holds, room.amount()[i * width + r] / request[r]);
    kept[i] = holds > 0;
    members -= holds;
  }
  return kept;
}

// Counts the claims on accepted offers that failed.
void OffersAgent::on_outcome(int64_t now_us, const DecisionRound&, const Transaction& claims,
                             const CommitResult&, const OutcomeSums& sums) {
  const int64_t failed = static_cast<int64_t>(claims.size()) -
                         sums.claims[static_cast<size_t>(Reason::Accepted)] -
                         sums.claims[static_cast<size_t>(Reason::Duplicate)];
  if (failed > 0) parts_.waits.add({now_us, settings_.index, 0, 0, 0, 0, failed});
}

// Goes on with the offers that came meanwhile.
void OffersAgent::on_round_over(int64_t now_us, const DecisionRound& round, Effects& effects) {
  // others may use what was kept for a gang that is given up
  if (parts_.room.size() > 0 && !parts_.queue.exits().abandoned.empty()) parts_.view.changed = true;
  if (queued() > 0) {
    begin_waits(now_us);
    say_wants(now_us, effects);
    return begin_next(now_us, round.tasks.blocked, effects);
  }
  since_us_ = {};
  decline_all(now_us, effects);
  activity_ = Activity::Idle;
  if (!settings_.suppresses || is_suppressed_) return;
  is_suppressed_ = true;
  tell(Suppress{}, effects);
}

// Measurements.

void OffersAgent::begin_waits(int64_t now_us) {
  for (std::optional<int64_t>& since_us : since_us_)
    if (!since_us) since_us = now_us;
}

// An offer has come (0), or one that was used (1): records how long tasks had waited. The next wait
// is for the next offer.
void OffersAgent::end_wait(int64_t now_us, size_t which) {
  if (!since_us_[which]) return;
  const int64_t waited_us = now_us - *since_us_[which];
  since_us_[which].reset();
  if (which == 0)
    parts_.waits.add({now_us, settings_.index, 1, waited_us, 0, 0, 0});
  else
    parts_.waits.add({now_us, settings_.index, 0, 0, 1, waited_us, 0});
}

// An offer is true until it ends: the view is never stale.
void OffersAgent::log_sample(int64_t now_us) { parts_.log.sample(now_us, queued(), 0, false, 0); }

}  // namespace agora::offers
