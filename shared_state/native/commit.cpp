// Deciding a transaction. Two paths with one outcome: claims on their own, in order; and groups
// with victims.
//
// Groups are decided in order of their first claim; each sees the state the accepted groups before
// it left. Within a group the claims are judged in order on top of one another. Under INCREMENTAL
// every claim is a group.
//
// Victims: all of the named allocations that may end are taken to end first, the groups are
// decided, and every victim that nothing accepted needs is dropped: one whose own task is claimed
// elsewhere but was not accepted there; else one on whose machine claims were made and none was
// accepted. With a victim dropped the groups are decided anew from the untouched state, so at most
// e + 1 times, and in the outcome no claim rests on a victim that stays. A claim rejected in the
// end is told the reason of the first round that rejected it: a move that did not fit is FULL,
// though its task, having stayed, is placed by then. A victim that is gone, or that may not end for
// this scheduler, never does: a claim on its machine that does not fit is EVICTED instead of FULL.
//
// Holds: those that the transaction names, of its scheduler, end before the first claim is judged,
// whatever becomes of the claims. A transaction that names holds claims only on their machines:
// elsewhere, and where a named hold has ended before, a claim is STALE. What others hold is taken
// like what runs: victims do not free it. A claim that does not fit, but would if nothing were
// held, is HELD.
//
// Who may evict whom: a scheduler its own tasks. Where the cell knows priorities, also a task of
// another scheduler for claims on its machine, all of which are of higher priority, unless the
// transaction claims that very task.
#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

#include "cell.hpp"

namespace agora {

namespace {

constexpr size_t kPrefetchSlots = 4;
constexpr size_t kPrefetchRows = 12;

[[noreturn]] void refuse(const char* field, size_t row, const char* expected) {
  throw std::invalid_argument("transaction." + std::string(field) + "[" + std::to_string(row) +
                              "]: expected " + expected);
}

}  // namespace

template <size_t R>
bool Cell::fits(size_t row, const int64_t* request) const {
  const size_t n = R ? R : dimensions_;
  const int64_t* limit = limit_.data() + row * limit_stride_;
  bool fit = true;
  for (size_t r = 0; r < n; ++r)
    fit &= request[r] <= std::max<int64_t>(limit[r] - taken_[row * n + r], 0);
  return fit;
}

template <size_t R>
void Cell::take(size_t row, const int64_t* request) {
  const size_t n = R ? R : dimensions_;
  for (size_t r = 0; r < n; ++r) taken_.add(row * n + r, request[r]);
}

template <size_t R>
void Cell::give(size_t row, const int64_t* request) {
  const size_t n = R ? R : dimensions_;
  for (size_t r = 0; r < n; ++r) taken_.add(row * n + r, -request[r]);
}

bool Cell::fits_without_holds(size_t row, const int64_t* request) const {
  const int64_t* limit = limit_.data() + row * limit_stride_;
  bool fit = true;
  for (size_t r = 0; r < dimensions_; ++r)
    fit &= request[r] <= std::max<int64_t>(limit[r] - used_at(row, r), 0);
  return fit;
}

void Cell::hold(size_t count, const int32_t* holder, const int32_t* machine, const int64_t* amount,
                int64_t* ids) {
  for (size_t i = 0; i < count; ++i) {
    if (holder[i] < 0) refuse("hold.holder", i, "a number from 0");
    if (machine[i] < 0 || static_cast<size_t>(machine[i]) >= machines())
      refuse("hold.machine", i, "a machine of the cell");
    for (size_t r = 0; r < dimensions_; ++r) {
      const int64_t held = amount[i * dimensions_ + r];
      if (held < 0 || held > kMaxAmount) refuse("hold.amount", i, "amounts in 0..2^50");
    }
  }
  begin_change();
  holds_.reserve(count);
  if (dimensions_ == 1) return hold_sized<1>(count, holder, machine, amount, ids);
  hold_sized<0>(count, holder, machine, amount, ids);
}

template <size_t R>
void Cell::hold_sized(size_t count, const int32_t* holder, const int32_t* machine,
                      const int64_t* amount, int64_t* ids) {
  for (size_t i = 0; i < count; ++i) {
    if (i + kPrefetchRows < count) prefetch(static_cast<size_t>(machine[i + kPrefetchRows]));
    const auto row = static_cast<size_t>(machine[i]);
    const int64_t* const held = amount + i * dimensions_;
    ids[i] = -1;
    if ((down_ > 0 && !rows_[row].up()) || !fits<R>(row, held)) continue;
    take<R>(row, held);
    touch(row);
    ids[i] = holds_.begin(holder[i], machine[i], held);
  }
}

size_t Cell::end_holds(std::span<const int64_t> ids, const HoldColumns& out) {
  begin_change();
  return dimensions_ == 1 ? end_holds_sized<1>(ids, out) : end_holds_sized<0>(ids, out);
}

template <size_t R>
size_t Cell::end_holds_sized(std::span<const int64_t> ids, const HoldColumns& out) {
  size_t ended = 0;
  for (const int64_t id : ids) ended += holds_.end(id, ended, out);
  for (size_t i = 0; i < ended; ++i) {
    if (i + kPrefetchRows < ended) prefetch(static_cast<size_t>(out.machine[i + kPrefetchRows]));
    const auto row = static_cast<size_t>(out.machine[i]);
    give<R>(row, out.amount + i * (R ? R : dimensions_));
    touch(row);
  }
  return ended;
}

// Requires: the hold has not ended.
void Cell::end_hold(int64_t id, std::vector<Hold>& ended) {
  Hold& hold = ended.emplace_back();
  holds_.end(id, 0, {&hold.id, &hold.holder, &hold.machine, hold.amount.data()});
  const auto row = static_cast<size_t>(hold.machine);
  give<0>(row, hold.amount.data());
  touch(row);
}

// named_holds_: the holds that the transaction names, of its scheduler, that have not ended, each
// once.
void Cell::find_named_holds(const Claims& claims) {
  named_holds_.clear();
  for (const uint32_t row : rows_of_holds_) has_named_hold_[row / 64] = 0;
  rows_of_holds_.clear();
  if (claims.holds.empty()) return;
  has_named_hold_.resize((machines() + 63) / 64);
  for (const int64_t id : claims.holds) {
    const std::optional<Hold> hold = holds_.find(id);
    if (hold && hold->holder == claims.scheduler) {
      named_holds_.push_back(id);
      rows_of_holds_.push_back(static_cast<uint32_t>(hold->machine));
    }
  }
  for (const uint32_t row : rows_of_holds_) has_named_hold_[row / 64] |= uint64_t{1} << (row % 64);
  if (!std::ranges::is_sorted(named_holds_)) std::ranges::sort(named_holds_);
  named_holds_.erase(std::unique(named_holds_.begin(), named_holds_.end()), named_holds_.end());
}

// Whether the machine's sequence number has moved, or the transaction names holds and none of them
// was left on the machine.
bool Cell::is_stale(const Claims& claims, size_t i) const {
  const auto row = static_cast<size_t>(claims.machine[i]);
  if (claims.seqnum && claims.seqnum[i] != rows_[row].seqnum) return true;
  return !claims.holds.empty() && (has_named_hold_[row / 64] >> (row % 64) & 1) == 0;
}

size_t Cell::commit(const Claims& claims, const Answer& answer) {
  switch (dimensions_) {
    case 1:
      return commit_sized<1>(claims, answer);
    case 2:
      return commit_sized<2>(claims, answer);
    default:
      return commit_sized<0>(claims, answer);
  }
}

template <size_t R>
size_t Cell::commit_sized(const Claims& claims, const Answer& answer) {
  validate<R>(claims, answer);
  slab_.reserve(claims.count);
  begin_change();
  ended_holds_.clear();
  for (const int64_t id : named_holds_) end_hold(id, ended_holds_);
  size_t evicted = 0;
  if (!claims.all_or_nothing && claims.evict.empty()) {
    commit_each<R>(claims, answer);
  } else {
    evicted = commit_grouped<R>(claims, answer);
  }
  for (size_t i = 0; i < claims.count; ++i) {
    answer.version[i] = versions_[rows_[static_cast<size_t>(claims.machine[i])].partition()];
  }
  return evicted;
}

// Checks every field, makes room for the tasks, and marks in answer.reason which claims are stale:
// sequence numbers and holds are those before the transaction. Also brings the rows into the cache.
template <size_t R>
void Cell::validate(const Claims& claims, const Answer& answer) {
  const size_t n = R ? R : dimensions_;
  if (claims.scheduler < 0)
    throw std::invalid_argument("transaction.scheduler: expected a number from 0");
  const auto rows = static_cast<uint32_t>(machines());
  int64_t last_task = -1;
  for (size_t i = 0; i < claims.count; ++i) {
    const auto row = static_cast<uint32_t>(claims.machine[i]);
    if (row >= rows) refuse("machine", i, "a machine of the cell");
    taken_.prefetch(row * n);
    __builtin_prefetch(limit_.data() + row * limit_stride_);
    __builtin_prefetch(rows_.data() + row, 1);
    changed_.prefetch(row);
    const int64_t task = claims.task[i];
    if (task < 0 || task >= kMaxTasks) refuse("task", i, "a task id in 0..2^32-1");
    last_task = std::max(last_task, task);
    for (size_t r = 0; r < n; ++r) {
      const int64_t amount = claims.request[i * n + r];
      if (amount < 0 || amount > kMaxAmount) refuse("request", i, "amounts in 0..2^50");
    }
  }
  make_room_for_task(last_task);
  find_named_holds(claims);
  const bool may_be_stale = claims.seqnum || !claims.holds.empty();
  for (size_t i = 0; i < claims.count; ++i) {
    __builtin_prefetch(placed_.data() + (static_cast<size_t>(claims.task[i]) >> 6), 1);
    const bool stale = may_be_stale && is_stale(claims, i);
    answer.reason[i] = static_cast<int8_t>(stale ? Reason::Stale : Reason::Accepted);
    answer.allocation[i] = -1;
    answer.rival[i] = -1;
    answer.age_us[i] = static_cast<int64_t>(static_cast<uint64_t>(claims.now_us) -
                                            static_cast<uint64_t>(claims.synced_us[i]));
  }
}

template <size_t R>
Reason Cell::judge(size_t row, int64_t task, const int64_t* request, bool stale) const {
  if (!rows_[row].up()) return Reason::MachineDown;
  if (placed(task)) return Reason::Duplicate;
  if (stale) return Reason::Stale;
  return fits<R>(row, request) ? Reason::Accepted : why_no_room(row, request);
}

// Out of the way of claims that fit.
Reason Cell::why_no_room(size_t row, const int64_t* request) const {
  return !holds_.empty() && fits_without_holds(row, request) ? Reason::Held : Reason::Full;
}

// What an accepted claim leaves behind besides the row's use, its task's bit and the claimant;
// returns the allocation's id.
int64_t Cell::record(const Claims& claims, size_t i) {
  const auto row = static_cast<size_t>(claims.machine[i]);
  ++rows_[row].seqnum;
  touch(row);
  slab_.prefetch_next(kPrefetchSlots);
  return slab_.begin(claims.task[i], claims.machine[i], claims.scheduler,
                     claims.request + i * dimensions_);
}

template <size_t R>
void Cell::commit_each(const Claims& claims, const Answer& answer) {
  const size_t n = R ? R : dimensions_;
  for (size_t i = 0; i < claims.count; ++i) {
    const auto row = static_cast<size_t>(claims.machine[i]);
    const int64_t task = claims.task[i];
    const int64_t* request = claims.request + i * n;
    const Reason reason = judge<R>(row, task, request, answer.reason[i] != 0);
    answer.reason[i] = static_cast<int8_t>(reason);
    if (reason == Reason::Accepted) {
      take<R>(row, request);
      set_placed(task);
      rows_[row].claimed_by(claims.scheduler);
      answer.allocation[i] = record(claims, i);
    } else if (reason == Reason::Stale || reason == Reason::Full) {
      answer.rival[i] = rows_[row].rival_of(claims.scheduler);
    } else if (reason == Reason::Held) {
      answer.rival[i] = holds_.rival_of(claims.machine[i], claims.scheduler);
    }
  }
}

template <size_t R>
size_t Cell::commit_grouped(const Claims& claims, const Answer& answer) {
  order_by_group(claims);
  find_victims(claims);
  placed_now_.reserve(claims.count);
  struct Rejection {
    int8_t reason;
    int32_t rival;
  };
  std::vector<Rejection> first(victims_.empty() ? 0 : claims.count, Rejection{0, -1});
  for (;;) {
    for (const Victim& victim : victims_) {
      if (!victim.chosen) continue;
      give<R>(static_cast<size_t>(victim.row), slab_.request(victim.slot));
      clear_placed(victim.task);
    }
    placed_now_.clear();
    decide_groups<R>(claims, answer, placed_now_);
    for (size_t i = 0; i < first.size(); ++i) {
      if (first[i].reason == 0) first[i] = {answer.reason[i], answer.rival[i]};
    }
    if (!drop_unneeded_victims(claims, answer)) break;
    undo<R>(claims, placed_now_, 0);
    for (Victim& victim : victims_) {
      if (victim.row < 0) continue;
      take<R>(static_cast<size_t>(victim.row), slab_.request(victim.slot));
      set_placed(victim.task);
      if (!victim.chosen) victim.row = -1;  // dropped now: stays as it is from here on
    }
  }
  for (size_t i = 0; i < first.size(); ++i) {
    // A duplicate may be one of a claim that found no room once the victims were fewer.
    const bool duplicate = first[i].reason == static_cast<int8_t>(Reason::Duplicate);
    if (answer.reason[i] == 0 || duplicate) continue;
    answer.reason[i] = first[i].reason;
    answer.rival[i] = first[i].rival;
  }
  for (const Taken& taken : placed_now_)
    answer.allocation[taken.claim] = record(claims, taken.claim);
  size_t evicted = 0;
  // after the claims, so that the victims' records can still be described
  for (const Victim& victim : victims_) {
    if (!victim.chosen) continue;
    answer.evicted[evicted++] = slab_.id_of(victim.slot);
    touch(static_cast<size_t>(victim.row));
    slab_.end(victim.slot);
  }
  return evicted;
}

template <size_t R>
void Cell::decide_groups(const Claims& claims, const Answer& answer, std::vector<Taken>& taken) {
  const size_t n = R ? R : dimensions_;
  for (size_t group = 0; group + 1 < group_start_.size(); ++group) {
    const size_t kept = taken.size();
    const std::span<const uint32_t> members(order_.data() + group_start_[group],
                                            group_start_[group + 1] - group_start_[group]);
    for (const uint32_t i : members) {
      const auto row = static_cast<size_t>(claims.machine[i]);
      Reason reason = judge<R>(row, claims.task[i], claims.request + i * n, is_stale(claims, i));
      answer.rival[i] =
          reason == Reason::Stale || reason == Reason::Full ? rows_[row].rival_of(claims.scheduler)
          : reason == Reason::Held ? holds_.rival_of(claims.machine[i], claims.scheduler)
                                   : -1;
      if (reason == Reason::Full &&
          std::binary_search(lost_rows_.begin(), lost_rows_.end(), claims.machine[i])) {
        reason = Reason::Evicted;
        answer.rival[i] = -1;
      }
      answer.reason[i] = static_cast<int8_t>(reason);
      if (reason != Reason::Accepted) continue;
      take<R>(row, claims.request + i * n);
      set_placed(claims.task[i]);
      taken.push_back({i, rows_[row].claimant, rows_[row].previous_claimant});
      rows_[row].claimed_by(claims.scheduler);
    }
    if (taken.size() - kept == members.size()) continue;
    for (size_t t = kept; t < taken.size(); ++t)
      answer.reason[taken[t].claim] = static_cast<int8_t>(Reason::Gang);
    undo<R>(claims, taken, kept);
  }
}

template <size_t R>
void Cell::undo(const Claims& claims, std::vector<Taken>& taken, size_t keep) {
  while (taken.size() > keep) {
    const auto [i, claimant, previous_claimant] = taken.back();
    taken.pop_back();
    const auto row = static_cast<size_t>(claims.machine[i]);
    give<R>(row, claims.request + i * (R ? R : dimensions_));
    clear_placed(claims.task[i]);
    rows_[row].claimant = claimant;
    rows_[row].previous_claimant = previous_claimant;
  }
}

// order_ lists the claims group by group, groups by their first claim, claims in order;
// group_start_ bounds the groups.
void Cell::order_by_group(const Claims& claims) {
  order_.resize(claims.count);
  std::iota(order_.begin(), order_.end(), 0U);
  group_start_.assign(1, 0);
  if (claims.count == 0) return;
  if (!claims.all_or_nothing) {
    for (size_t i = 0; i < claims.count; ++i) group_start_.push_back(static_cast<uint32_t>(i + 1));
    return;
  }
  if (claims.gang) {
    std::unordered_map<int64_t, uint32_t> first;
    std::vector<uint32_t> group(claims.count);
    for (size_t i = 0; i < claims.count; ++i)
      group[i] = first.try_emplace(claims.gang[i], static_cast<uint32_t>(i)).first->second;
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return group[a] < group[b]; });
    for (size_t i = 1; i < claims.count; ++i) {
      if (group[order_[i]] != group[order_[i - 1]])
        group_start_.push_back(static_cast<uint32_t>(i));
    }
  }
  group_start_.push_back(static_cast<uint32_t>(claims.count));
}

Cell::ClaimOrder Cell::order_for_preemption(const Claims& claims) const {
  ClaimOrder order;
  for (size_t i = 0; i < claims.count; ++i)
    order.machine_priority.emplace_back(claims.machine[i], priority_of(claims.task[i]));
  order.task.assign(claims.task, claims.task + claims.count);
  std::sort(order.machine_priority.begin(), order.machine_priority.end());
  std::sort(order.task.begin(), order.task.end());
  return order;
}

// Whether a task of another scheduler may end for the claims.
bool Cell::may_preempt(const ClaimOrder& claims, const Allocation& victim) const {
  const auto& order = claims.machine_priority;
  // the claim of lowest priority on the victim's machine
  const auto lowest = std::lower_bound(
      order.begin(), order.end(), std::pair{victim.machine, std::numeric_limits<int32_t>::min()});
  return lowest != order.end() && lowest->first == victim.machine &&
         lowest->second > priority_of(victim.task) &&
         !std::binary_search(claims.task.begin(), claims.task.end(), victim.task);
}

// victims_: the live allocations among those named that may end, each once, in the order named.
// lost_rows_: machines of the others, as far as known (a slot used again has forgotten where its
// last allocation was).
void Cell::find_victims(const Claims& claims) {
  victims_.clear();
  lost_rows_.clear();
  std::vector<std::pair<uint32_t, size_t>> by_slot;
  const bool preempts = !priority_.empty() && !claims.evict.empty();
  const ClaimOrder order = preempts ? order_for_preemption(claims) : ClaimOrder{};
  for (const int64_t id : claims.evict) {
    const uint32_t slot = slab_.find_recorded(id);
    if (slot == AllocationSlab::kNoSlot) continue;
    const Allocation& record = slab_[slot];
    const bool may_end =
        record.owner == claims.scheduler || (preempts && may_preempt(order, record));
    if (record.live && may_end) {
      by_slot.emplace_back(slot, victims_.size());
      victims_.push_back({slot, record.machine, record.task, true});
    } else {
      lost_rows_.push_back(record.machine);
    }
  }
  std::sort(lost_rows_.begin(), lost_rows_.end());
  std::sort(by_slot.begin(), by_slot.end());
  std::vector<bool> repeated(victims_.size());
  for (size_t v = 1; v < by_slot.size(); ++v)
    repeated[by_slot[v].second] = by_slot[v].first == by_slot[v - 1].first;
  size_t kept = 0;
  for (size_t v = 0; v < victims_.size(); ++v) {
    if (!repeated[v]) victims_[kept++] = victims_[v];
  }
  victims_.resize(kept);
}

// Unchooses the victims no accepted claim needs (see the head of this file); true if there were
// any.
bool Cell::drop_unneeded_victims(const Claims& claims, const Answer& answer) {
  struct Need {
    bool moves = false, moved = false, shared = false, used = false;
  };
  std::vector<Need> need(victims_.size());
  std::vector<std::pair<int64_t, size_t>> by_row, by_task;
  for (size_t v = 0; v < victims_.size(); ++v) {
    if (!victims_[v].chosen) continue;
    by_row.emplace_back(victims_[v].row, v);
    by_task.emplace_back(victims_[v].task, v);
  }
  std::sort(by_row.begin(), by_row.end());
  std::sort(by_task.begin(), by_task.end());
  const auto from = [](const auto& list, int64_t key) {
    return std::lower_bound(list.begin(), list.end(), std::pair{key, size_t{0}});
  };
  for (size_t i = 0; i < claims.count; ++i) {
    const bool accepted = answer.reason[i] == 0;
    for (auto at = from(by_row, claims.machine[i]);
         at != by_row.end() && at->first == claims.machine[i]; ++at) {
      need[at->second].shared = true;
      need[at->second].used |= accepted;
    }
    for (auto at = from(by_task, claims.task[i]);
         at != by_task.end() && at->first == claims.task[i]; ++at) {
      need[at->second].moves = true;
      need[at->second].moved |= accepted;
    }
  }
  bool dropped = false;
  for (size_t v = 0; v < victims_.size(); ++v) {
    const Need& n = need[v];
    if (!victims_[v].chosen || (n.moves ? n.moved : n.used || !n.shared)) continue;
    victims_[v].chosen = false;
    dropped = true;
  }
  return dropped;
}

}  // namespace agora
