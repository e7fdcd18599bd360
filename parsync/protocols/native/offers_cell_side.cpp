#include "offers_cell_side.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace agora::offers {

namespace {

constexpr int64_t kPpm = 1'000'000;

bool is_zero(const int64_t* amount, size_t width) {
  return std::all_of(amount, amount + width, [](int64_t of) { return of == 0; });
}

// Throws std::invalid_argument unless a table has these rows and this width.
void check_table(const char* event, const SharedTable<int64_t>& table, size_t rows, size_t width) {
  check_rows(event, rows, table);
  if (table.width() != width)
    throw std::invalid_argument(std::string(event) + ": expected an amount of each resource");
}

}  // namespace

// Offers without an answer.

std::vector<int32_t> OutstandingOffers::Rows::agents() const {
  std::vector<int32_t> agents;
  for (const int32_t one : agent)
    if (agents.empty() || agents.back() != one) agents.push_back(one);
  std::ranges::sort(agents);
  agents.erase(std::unique(agents.begin(), agents.end()), agents.end());
  return agents;
}

void OutstandingOffers::add(std::span<const int64_t> id, std::span<const int32_t> agent,
                            std::span<const int32_t> machine, const int64_t* amount,
                            std::span<const int64_t> made_us) {
  drop_ended();
  const auto append = [](auto& column, const auto& values) {
    column.insert(column.end(), values.begin(), values.end());
  };
  ids_.append(id);
  append(agent_, agent);
  append(machine_, machine);
  append(amount_, std::span(amount, id.size() * width_));
  append(made_us_, made_us);
  ended_.resize(ids_.size());
  size_ += id.size();
}

OutstandingOffers::Rows OutstandingOffers::end(std::span<const int64_t> ids,
                                               std::vector<size_t>* place) {
  Rows ended;
  std::vector<size_t> rows;
  rows.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const size_t row = ids_.find(ids[i]);
    if (row == AscendingIds::kNone || ended_[row]) continue;
    ended_[row] = 1;
    rows.push_back(row);
    if (place) place->push_back(i);
  }
  size_ -= rows.size();
  const auto take = [&](auto& to, const auto& column) {
    to.resize(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) to[i] = column[rows[i]];
  };
  take(ended.id, ids_);
  take(ended.agent, agent_);
  take(ended.machine, machine_);
  take(ended.made_us, made_us_);
  ended.amount.resize(rows.size() * width_);
  for (size_t r = 0; r < width_; ++r)
    for (size_t i = 0; i < rows.size(); ++i)
      ended.amount[i * width_ + r] = amount_[rows[i] * width_ + r];
  return ended;
}

void OutstandingOffers::drop_ended() {
  if (ids_.size() <= 2 * size_) return;  // a pass is worth its while
  size_t kept = 0;
  each([&](size_t row) {
    ids_.move(row, kept);
    agent_[kept] = agent_[row];
    machine_[kept] = machine_[row];
    std::copy_n(amount(row), width_, amount_.data() + kept * width_);
    made_us_[kept++] = made_us_[row];
  });
  ids_.shorten(kept);
  agent_.resize(kept);
  machine_.resize(kept);
  amount_.resize(kept * width_);
  made_us_.resize(kept);
  ended_.assign(kept, 0);
}

// The participant.

OffersCellSide::OffersCellSide(Settings settings, OfferAllocator& allocator, const Cell& cell,
                               RowBuffer& records)
    : settings_(std::move(settings)),
      allocator_(allocator),
      cell_(cell),
      records_(records),
      epoch_(settings_.refuse_us.size(), kNever),
      offers_(allocator.width()),
      candidates_((cell.machines() + 63) / 64),
      rivals_use_(allocator.width()),
      counts_(kCounts * epoch_.size()) {
  if (allocator.machines() != cell.machines() || allocator.width() != cell.dimensions() ||
      settings_.request.width() != cell.dimensions())
    throw std::invalid_argument("allocator: expected that of the cell");
  if (settings_.is_own.size() != epoch_.size())
    throw std::invalid_argument("is_own: expected a value for each agent");
  if (settings_.sample_us < 1 || settings_.interval_us < 1)
    throw std::invalid_argument("sample_us, interval_us: expected times of 1 us or more");
  int64_t total = 0;
  for (size_t at = 0; at < cell.limit().size(); at += cell.dimensions()) total += cell.limit()[at];
  unit_ = std::max<int64_t>(1, total / kUnits);
  units_ = std::max<int64_t>(1, total / unit_);
}

size_t OffersCellSide::agent_row(int64_t agent) const {
  if (agent < 0 || static_cast<size_t>(agent) >= epoch_.size() ||
      !settings_.is_own[static_cast<size_t>(agent)])
    throw std::invalid_argument("agent " + std::to_string(agent) + ": there is none");
  return static_cast<size_t>(agent);
}

void OffersCellSide::handle(int64_t now_us, const EventPtr& event, Effects& effects) {
  switch (event->key()) {
    case TasksStarted::kType.key(): {
      const auto& started = as<TasksStarted>(event);
      return charge(started.task, started.owner, +1);
    }
    case AllocationsEnded::kType.key(): {
      const auto& ended = as<AllocationsEnded>(event);
      charge(ended.task, ended.owner, -1);
      if (settings_.freed_triggers) trigger(now_us, ended.machine.span(), effects);
      return;
    }
    case OffersAnswered::kType.key():
      return on_answered(now_us, as<OffersAnswered>(event), effects);
    case HoldReply::kType.key():
      return on_held(now_us, as<HoldReply>(event), effects);
    case HoldsEnded::kType.key():
      return on_holds_ended(now_us, as<HoldsEnded>(event), effects);
    case AllocationDue::kType.key():
      return allocate(now_us, effects);
    case IntervalDue::kType.key():
      add_all_candidates();
      effects.set_timer(next_interval_us(now_us), IntervalDue());
      // a run that is pending will take all machines
      if (is_pending_ && settings_.allocation_us > 0) return;
      return allocate(now_us, effects);
    case Subscribe::kType.key():
      return on_subscribed(now_us, as<Subscribe>(event), effects);
    case Suppress::kType.key(): {
      const auto& suppress = as<Suppress>(event);
      if (is_current(suppress)) allocator_.suppress(static_cast<int32_t>(suppress.agent));
      return;
    }
    case Revive::kType.key(): {
      const auto& revive = as<Revive>(event);
      if (!is_current(revive)) return;
      allocator_.revive(static_cast<int32_t>(revive.agent));
      return trigger_all(now_us, effects);
    }
    case TasksWanted::kType.key(): {
      const auto& wanted = as<TasksWanted>(event);
      if (!is_current(wanted)) return;
      check_table("TasksWanted", wanted.request, wanted.tasks.size(), width());
      allocator_.want(static_cast<int32_t>(wanted.agent),
                      {wanted.request.data(), wanted.request.count()}, wanted.tasks.span());
      return;
    }
    case MachinesChanged::kType.key():
      return on_machines_changed(now_us, as<MachinesChanged>(event), effects);
    case ExpiryDue::kType.key():
      return expire(now_us, effects);
    case SampleDue::kType.key():
      record(now_us);
      effects.hand_out();
      return set_sample_timer(now_us, effects);
    case Started::kType.key():
      return start(now_us, effects);
  }
  throw WrongEvent{"allocator", event};
}

// Sets the timers: those of an earlier epoch of the cell are gone.
void OffersCellSide::start(int64_t now_us, Effects& effects) {
  effects.set_timer(next_interval_us(now_us), IntervalDue());
  set_sample_timer(now_us, effects);
  if (is_pending_) effects.set_timer(now_us + settings_.allocation_us, AllocationDue());
  if (settings_.timeout_us && offers_.size() > 0) effects.set_timer(next_expiry_us(), ExpiryDue());
}

// An agent begins. What an earlier one was offered and did not answer ends.
void OffersCellSide::on_subscribed(int64_t now_us, const Subscribe& event, Effects& effects) {
  int64_t& epoch = epoch_[agent_row(event.agent)];
  if (event.epoch <= epoch) return;
  epoch = event.epoch;
  const auto agent = static_cast<int32_t>(event.agent);
  const EndedOffers own = offers_.end_if([&](size_t row) { return offers_.agent(row) == agent; });
  account_for_ended(now_us, own, kRescinded);
  release(own, effects);
  allocator_.deactivate(agent);  // forget filters, too
  allocator_.activate(agent);
  if (event.suppressed) return allocator_.suppress(agent);
  trigger_all(now_us, effects);
}

// Ends offers that were declined, or that claims rest on where they hold nothing.
void OffersCellSide::on_answered(int64_t now_us, const OffersAnswered& event, Effects& effects) {
  if (!is_current(event)) return;
  check_table("OffersAnswered", event.accepted_amount, event.accepted.size(), width());
  std::vector<size_t> place;
  const EndedOffers accepted = offers_.end(event.accepted.span(), &place);
  std::vector<int64_t> used, left = accepted.amount;
  for (const size_t at : place)
    used.insert(used.end(), event.accepted_amount.row(at), event.accepted_amount.row(at) + width());
  for (size_t i = 0; i < left.size(); ++i) left[i] -= used[i];
  account_for_ended(now_us, accepted, kAccepted, &used);
  refuse(now_us, accepted, left);
  const EndedOffers declined = offers_.end(event.declined.span());
  account_for_ended(now_us, declined, kDeclined);
  refuse(now_us, declined, declined.amount);
  release(declined, effects);
  if (settings_.freed_triggers && declined.size() > 0) trigger(now_us, declined.machine, effects);
}

// The cell has ended holds: a transaction named them, or their machine was lost.
void OffersCellSide::on_holds_ended(int64_t now_us, const HoldsEnded& event, Effects& effects) {
  check_table("HoldsEnded", event.remainder, event.hold.size(), width());
  std::vector<size_t> place;
  const EndedOffers ended = offers_.end(event.hold.span(), &place);
  if (event.cause == static_cast<int64_t>(HoldEnd::Lost)) {
    account_for_ended(now_us, ended, kRescinded);
    return tell(ended, effects);
  }
  std::vector<int64_t> left, used = ended.amount;
  for (const size_t at : place)
    left.insert(left.end(), event.remainder.row(at), event.remainder.row(at) + width());
  for (size_t i = 0; i < used.size(); ++i) used[i] -= left[i];
  account_for_ended(now_us, ended, kAccepted, &used);
  refuse(now_us, ended, left);
  if (settings_.freed_triggers) trigger(now_us, ended.machine, effects);
}

// What comes up is offered. Offers on what goes down end: those that hold room by the cell's
// message.
void OffersCellSide::on_machines_changed(int64_t now_us, const MachinesChanged& event,
                                         Effects& effects) {
  allocator_.on_machines_changed(event.machine.span(), event.up.span());
  std::vector<int32_t> up;
  std::vector<uint8_t> lost(machines());
  for (size_t i = 0; i < event.machine.size(); ++i) {
    if (event.up[i]) up.push_back(event.machine[i]);
    lost[static_cast<size_t>(event.machine[i])] = !event.up[i];
  }
  if (!settings_.locks) {
    const EndedOffers ended = offers_.end_if(
        [&](size_t row) { return lost[static_cast<size_t>(offers_.machine(row))] != 0; });
    account_for_ended(now_us, ended, kRescinded);
    tell(ended, effects);
  }
  if (!up.empty()) trigger(now_us, up, effects);
}

// Charges what tasks use to their agents, or to the rivals; sign -1: un-charges it.
void OffersCellSide::charge(const SharedColumn<int64_t>& task, const SharedColumn<int32_t>& owner,
                            int64_t sign) {
  check_rows("tasks", task.size(), owner);
  owner_.clear();
  amount_.clear();
  for (size_t i = 0; i < task.size(); ++i) {
    if (task[i] < 0 || static_cast<size_t>(task[i]) >= settings_.request.rows())
      throw std::invalid_argument("task " + std::to_string(task[i]) + ": there is none");
    const int64_t* const request = settings_.request.row(static_cast<size_t>(task[i]));
    const auto agent = static_cast<size_t>(owner[i]);
    if (owner[i] >= 0 && agent < epoch_.size() && settings_.is_own[agent]) {
      owner_.push_back(owner[i]);
      amount_.insert(amount_.end(), request, request + width());
      continue;
    }
    for (size_t r = 0; r < width(); ++r) rivals_use_[r] += sign * request[r];
    rivals_changed_ = true;
  }
  if (sign > 0)
    allocator_.on_allocated(owner_, amount_.data());
  else
    allocator_.on_freed(owner_, amount_.data());
}

// Offers are made.

// Asks for an allocation run over machines.
void OffersCellSide::trigger(int64_t now_us, std::span<const int32_t> machine, Effects& effects) {
  for (const int32_t one : machine) {
    const auto row = static_cast<size_t>(one);
    candidates_.at(row / 64) |= uint64_t{1} << (row % 64);
  }
  set_pending(now_us, effects);
}

void OffersCellSide::trigger_all(int64_t now_us, Effects& effects) {
  add_all_candidates();
  set_pending(now_us, effects);
}

void OffersCellSide::add_all_candidates() { std::ranges::fill(candidates_, ~uint64_t{0}); }

void OffersCellSide::set_pending(int64_t now_us, Effects& effects) {
  if (is_pending_) return;
  is_pending_ = true;
  effects.set_timer(now_us + settings_.allocation_us, AllocationDue());
}

// A run over the candidates of all triggers so far.
void OffersCellSide::allocate(int64_t now_us, Effects& effects) {
  is_pending_ = false;
  // what is free is known once the master has answered
  if (asked_.size() > 0) return set_pending(now_us, effects);
  ++runs_;
  std::vector<int32_t> candidates;  // those that may have something to offer
  for (size_t word = 0; word < candidates_.size(); ++word) {
    uint64_t rows = std::exchange(candidates_[word], 0);
    if (rows != 0) rows &= cell_.rows_with_room(word);
    for (; rows != 0; rows &= rows - 1)
      candidates.push_back(static_cast<int32_t>(word * 64) + std::countr_zero(rows));
  }
  std::vector<int64_t> announced;  // [machines, R]: offered without being held
  if (!settings_.locks) {
    announced.resize(machines() * width());
    offers_.each([&](size_t row) {
      for (size_t r = 0; r < width(); ++r)
        announced[static_cast<size_t>(offers_.machine(row)) * width() + r] +=
            offers_.amount(row)[r];
    });
  }
  const auto add_free = [&](std::vector<int64_t>& to, size_t m) {
    for (size_t r = 0; r < width(); ++r) {
      const size_t at = m * width() + r;
      to.push_back(cell_.limit()[at] - cell_.taken_at(m, r) -
                   (settings_.locks ? 0 : announced[at]));
    }
  };
  free_.clear();
  free_.reserve(candidates.size() * width());
  for (const int32_t one : candidates) add_free(free_, static_cast<size_t>(one));
  // guarantees may be met on any machine
  all_free_.clear();
  if (allocator_.any_guarantee())
    for (size_t m = 0; m < machines(); ++m) add_free(all_free_, m);
  if (rivals_changed_) {
    allocator_.set_rivals_use(rivals_use_);
    rivals_changed_ = false;
  }
  const OfferAllocator::Offers& found =
      allocator_.allocate(now_us, candidates, free_.data(), all_free_.data());
  const size_t count = found.framework.size();
  if (count == 0) return;
  auto [amount, amounts] = SharedTable<int64_t>::make(count, width());
  std::ranges::copy(found.amount, amounts);
  NewOffers made{copied_column(found.framework), copied_column(found.machine), amount, now_us};
  if (!settings_.locks) {
    std::vector<int64_t> ids(count);
    for (int64_t& id : ids) id = ++last_offer_;
    return make(now_us, made, ids, effects);
  }
  HoldRequest request;
  request.reply_to = settings_.address;
  request.sequence = ++requests_;
  request.holder = made.agent;
  request.machine = made.machine;
  request.amount = made.amount;
  asked_ = std::move(made);
  effects.send(kMaster, std::move(request));
}

// The cell holds what it was asked for, but for what is gone.
void OffersCellSide::on_held(int64_t now_us, const HoldReply& event, Effects& effects) {
  if (asked_.size() == 0 || event.sequence != requests_)
    throw std::invalid_argument("HoldReply: expected the answer to the last request");
  check_rows("HoldReply", asked_.size(), event.hold);
  const NewOffers asked = std::exchange(asked_, NewOffers{});
  if (std::ranges::all_of(event.hold, [](int64_t id) { return id >= 0; }))
    return make(now_us, asked, event.hold.span(), effects);
  std::vector<size_t> held, gone;
  for (size_t i = 0; i < asked.size(); ++i) (event.hold[i] >= 0 ? held : gone).push_back(i);
  const NewOffers lost = asked.at(gone);
  allocator_.on_offers_ended(lost.agent.span(), lost.amount.data());
  make(now_us, asked.at(held), rows_of(event.hold, held).span(), effects);
  if (!allocator_.is_task_sized()) return;
  // A task that was granted is no longer wanted. If its room is gone, the agent has to say so anew.
  for (const int32_t agent : std::set<int32_t>(lost.agent.begin(), lost.agent.end())) {
    OffersRescinded none;
    none.epoch = epoch_[static_cast<size_t>(agent)];
    effects.send(agent, std::move(none));
  }
}

// Sends offers to their agents.
void OffersCellSide::make(int64_t now_us, const NewOffers& made, std::span<const int64_t> ids,
                          Effects& effects) {
  const bool had_none = offers_.size() == 0;
  made_us_.assign(made.size(), made.made_us);
  offers_.add(ids, made.agent.span(), made.machine.span(), made.amount.data(), made_us_);
  std::vector<size_t> count_of(epoch_.size());
  for (const int32_t agent : made.agent) ++count_of[static_cast<size_t>(agent)];
  if (settings_.timeout_us && had_none && offers_.size() > 0)
    effects.set_timer(now_us + *settings_.timeout_us, ExpiryDue());
  struct Columns {
    Offers event;
    int64_t *offer, *amount;
    int32_t* machine;
  };
  std::vector<Columns> own(epoch_.size());
  for (size_t agent = 0; agent < own.size(); ++agent) {
    if (count_of[agent] == 0) continue;
    Columns& of = own[agent];
    of.event.epoch = epoch_[agent];
    of.event.made_us = now_us;
    std::tie(of.event.offer, of.offer) = SharedColumn<int64_t>::make(count_of[agent]);
    std::tie(of.event.machine, of.machine) = SharedColumn<int32_t>::make(count_of[agent]);
    std::tie(of.event.amount, of.amount) = SharedTable<int64_t>::make(count_of[agent], width());
    count(kMade, static_cast<int32_t>(agent)) += static_cast<int64_t>(count_of[agent]);
  }
  for (size_t i = 0; i < made.size(); ++i) {
    Columns& of = own[static_cast<size_t>(made.agent[i])];
    *of.offer++ = ids[i];
    *of.machine++ = made.machine[i];
    for (size_t r = 0; r < width(); ++r) *of.amount++ = made.amount.row(i)[r];
  }
  for (size_t agent = 0; agent < own.size(); ++agent)
    if (count_of[agent] > 0) effects.send(static_cast<int64_t>(agent), std::move(own[agent].event));
}

// Offers end.

// Counts how offers have ended, and takes them off what their agents are charged for. used: what
// was claimed of each; null: nothing.
void OffersCellSide::account_for_ended(int64_t now_us, const EndedOffers& ended, Count how,
                                       const std::vector<int64_t>* used) {
  for (size_t i = 0; i < ended.size(); ++i) {
    const int32_t agent = ended.agent[i];
    ++count(how, agent);
    count_held(now_us, agent, ended.amount[i * width()], ended.made_us[i]);
    if (!used) continue;
    // offers on the whole cell may be kept for days before they are accepted
    int64_t& sum = count(kUsed, agent);
    const __int128 room_us = __int128{units((*used)[i * width()])} * (now_us - ended.made_us[i]);
    sum = static_cast<int64_t>(
        std::min<__int128>(sum + room_us, std::numeric_limits<int64_t>::max()));
  }
  allocator_.on_offers_ended(ended.agent, ended.amount.data());
}

// Counts how long an offer has kept room since the last sample. amount: of the first resource.
void OffersCellSide::count_held(int64_t now_us, int32_t agent, int64_t amount, int64_t made_us) {
  count(kHeld, agent) += units(amount) * (now_us - std::max(made_us, counted_us_));
}

// Filters what agents did not want of offers.
void OffersCellSide::refuse(int64_t now_us, const EndedOffers& ended,
                            const std::vector<int64_t>& amount) {
  std::vector<int32_t> machine;
  for (const int32_t agent : ended.agents()) {
    const int64_t refuse_us = settings_.refuse_us[static_cast<size_t>(agent)];
    if (refuse_us == 0) continue;
    const auto is_refused = [&](size_t i) {
      return ended.agent[i] == agent && !is_zero(amount.data() + i * width(), width());
    };
    size_t first = 0;  // that is not
    while (first < ended.size() && is_refused(first)) ++first;
    if (first == ended.size()) {  // mostly
      allocator_.refuse(agent, ended.machine, amount.data(), now_us + refuse_us);
      continue;
    }
    machine.assign(ended.machine.begin(), ended.machine.begin() + static_cast<ptrdiff_t>(first));
    amount_.assign(amount.begin(), amount.begin() + static_cast<ptrdiff_t>(first * width()));
    for (size_t i = first; i < ended.size(); ++i) {
      if (!is_refused(i)) continue;
      machine.push_back(ended.machine[i]);
      const int64_t* const of = amount.data() + i * width();
      amount_.insert(amount_.end(), of, of + width());
    }
    allocator_.refuse(agent, machine, amount_.data(), now_us + refuse_us);
  }
}

// Gives back the room that ended offers held.
void OffersCellSide::release(const EndedOffers& ended, Effects& effects) {
  if (!settings_.locks || ended.size() == 0) return;
  HoldsReleased released;
  released.hold = copied_column(ended.id);
  effects.send(kMaster, std::move(released));
}

// Tells agents that their offers have ended.
void OffersCellSide::tell(const EndedOffers& ended, Effects& effects) {
  for (const int32_t agent : ended.agents()) {
    std::vector<int64_t> own;
    for (size_t i = 0; i < ended.size(); ++i)
      if (ended.agent[i] == agent) own.push_back(ended.id[i]);
    OffersRescinded rescinded;
    rescinded.epoch = epoch_[static_cast<size_t>(agent)];
    rescinded.offer = copied_column(own);
    effects.send(agent, std::move(rescinded));
  }
}

// Ends the offers that had no answer for too long.
void OffersCellSide::expire(int64_t now_us, Effects& effects) {
  if (!settings_.timeout_us) throw std::invalid_argument("ExpiryDue: offers do not expire");
  const int64_t last_us = now_us - *settings_.timeout_us;
  const EndedOffers old =
      offers_.end_if([&](size_t row) { return offers_.made_us(row) <= last_us; });
  account_for_ended(now_us, old, kExpired);
  release(old, effects);
  tell(old, effects);
  if (offers_.size() > 0) effects.set_timer(next_expiry_us(), ExpiryDue());
}

int64_t OffersCellSide::next_expiry_us() const {
  int64_t first_us = INT64_MAX;
  offers_.each([&](size_t row) { first_us = std::min(first_us, offers_.made_us(row)); });
  return first_us + *settings_.timeout_us;
}

// Measurements.

void OffersCellSide::record(int64_t now_us) {
  offers_.each([&](size_t row) {
    count_held(now_us, offers_.agent(row), *offers_.amount(row), offers_.made_us(row));
  });
  counted_us_ = now_us;
  const std::vector<int32_t> agents = allocator_.framework_numbers();
  const std::vector<int64_t> shares = allocator_.shares_ppm();
  const auto [least, most] = std::ranges::minmax(shares);
  const int32_t first = *std::ranges::min_element(agents);
  const auto ppm = [&](int64_t units) {  // room of the first resource times its time
    return static_cast<int64_t>(static_cast<__int128>(units) * kPpm / units_);
  };
  for (size_t i = 0; i < agents.size(); ++i) {
    const int32_t agent = agents[i];
    const bool is_first = agent == first;
    records_.add({now_us, agent, count(kMade, agent), count(kAccepted, agent),
                  count(kDeclined, agent), count(kRescinded, agent), count(kExpired, agent),
                  ppm(count(kHeld, agent)), ppm(count(kUsed, agent)), shares[i],
                  is_first ? most - least : 0, is_first, is_first ? runs_ : 0});
  }
  std::ranges::fill(counts_, 0);
  runs_ = 0;
}

void OffersCellSide::set_sample_timer(int64_t now_us, Effects& effects) const {
  SampleDue due;
  due.sample = now_us / settings_.sample_us + 1;
  effects.set_timer(due.sample * settings_.sample_us, due);
}

// Checkpoints.

OffersCellSide::State OffersCellSide::state() const {
  State state;
  state.epoch = epoch_;
  offers_.each([&](size_t row) {
    State::Offers& to = state.outstanding;
    to.offer.push_back(offers_.id(row));
    to.agent.push_back(offers_.agent(row));
    to.machine.push_back(offers_.machine(row));
    to.amount.insert(to.amount.end(), offers_.amount(row), offers_.amount(row) + width());
    to.made_us.push_back(offers_.made_us(row));
  });
  state.asked = {std::vector<int64_t>(asked_.size()),
                 {asked_.agent.begin(), asked_.agent.end()},
                 {asked_.machine.begin(), asked_.machine.end()},
                 {asked_.amount.data(), asked_.amount.data() + asked_.amount.count()},
                 std::vector<int64_t>(asked_.size(), asked_.made_us)};
  state.last_offer = last_offer_;
  state.requests = requests_;
  state.is_pending = is_pending_;
  state.runs = runs_;
  state.counted_us = counted_us_;
  for (size_t m = 0; m < machines(); ++m)
    state.candidates.push_back(candidates_[m / 64] >> (m % 64) & 1);
  state.rivals_use = rivals_use_;
  state.rivals_changed = rivals_changed_;
  state.counts = counts_;
  return state;
}

void OffersCellSide::restore(const State& state) {
  epoch_ = state.epoch;
  offers_ = OutstandingOffers(width());
  const State::Offers& of = state.outstanding;
  offers_.add(of.offer, of.agent, of.machine, of.amount.data(), of.made_us);
  const State::Offers& asked = state.asked;
  auto [amount, amounts] = SharedTable<int64_t>::make(asked.agent.size(), width());
  std::ranges::copy(asked.amount, amounts);
  asked_ = {copied_column(asked.agent), copied_column(asked.machine), amount,
            asked.made_us.empty() ? 0 : asked.made_us.front()};
  last_offer_ = state.last_offer;
  requests_ = state.requests;
  is_pending_ = state.is_pending;
  runs_ = state.runs;
  counted_us_ = state.counted_us;
  std::ranges::fill(candidates_, 0);
  for (size_t m = 0; m < machines(); ++m)
    candidates_[m / 64] |= uint64_t{state.candidates[m]} << (m % 64);
  rivals_use_ = state.rivals_use;
  rivals_changed_ = state.rivals_changed;
  counts_ = state.counts;
}

}  // namespace agora::offers
