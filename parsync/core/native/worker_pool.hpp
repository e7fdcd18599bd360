// The worker pool, the tasks that it runs, and the wheel of their ends.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "events.hpp"
#include "participant.hpp"
#include "schedulers/native/objective.hpp"
#include "shared_state/native/random.hpp"

namespace agora {

// Timer wheel: millions of pending task ends, taken out in batches, one per tick.
//
// Definitions. A tick is a multiple of tick_us; an entry that ends at end_us belongs to tick
// ceil(end_us / tick_us). The wheel has SLOTS slots; tick t lives in slot t mod SLOTS. An entry is
// (end_us, id, task, owner, machine). Invariant. All entries of a slot are kept together with their
// tick, in order of insertion, and those that end at the same time are in one slot; take(now)
// removes exactly the entries whose tick time is at most now, in order of (end_us, order of
// insertion), so the outcome does not depend on the wheel's layout. Complexity. O(1) per
// insertion; take is O(entries taken * log + slots passed), plus entries of later laps found in a
// passed slot. next_tick() is exact; it walks occupied slots through a bitmap, and falls back to
// one pass over the entries when all lie a lap or more ahead.
class TimerWheel {
 public:
  struct Entry {
    int64_t end_us;
    int64_t id;
    int64_t task;
    int32_t owner;
    int32_t machine;
  };

  explicit TimerWheel(int64_t tick_us)
      : tick_us_(tick_us), slots_(SLOTS), occupied_(SLOTS / 64, 0) {
    if (tick_us <= 0) throw std::invalid_argument("tick_us must be positive");
  }

  int64_t size() const { return size_; }

  void add(const Entry& entry) {
    if (entry.end_us < 0) throw std::invalid_argument("end_us must not be negative");
    const int64_t tick = std::max(tick_of(entry.end_us), next_);
    const auto slot = static_cast<size_t>(tick % SLOTS);
    slots_[slot].push_back(entry);
    occupied_[slot / 64] |= uint64_t{1} << (slot % 64);
    ++size_;
  }

  // Its end no longer counts. Ids unknown to the wheel are the caller's mistake and would be kept
  // forever, so callers cancel only what they added.
  void cancel(int64_t id) { cancelled_.insert(id); }

  // Entries whose tick time is at most now_us, ordered by (end_us, insertion); cancelled ones are
  // dropped.
  std::vector<Entry> take(int64_t now_us) {
    std::vector<Entry> taken;
    if (now_us < 0) return taken;
    const int64_t last = now_us / tick_us_;
    // at most one lap, however far the jump
    const int64_t passed = std::min<int64_t>(last - next_ + 1, SLOTS);
    for (int64_t k = 0; k < passed; ++k) {
      const auto slot = static_cast<size_t>((next_ + k) % SLOTS);
      if (!(occupied_[slot / 64] >> (slot % 64) & 1)) continue;
      auto& entries = slots_[slot];
      size_t kept = 0;
      for (Entry& entry : entries) {
        if (tick_of(entry.end_us) <= last)
          taken.push_back(entry);
        else
          entries[kept++] = entry;
      }
      entries.resize(kept);
      if (kept == 0) occupied_[slot / 64] &= ~(uint64_t{1} << (slot % 64));
    }
    next_ = std::max(next_, last + 1);
    size_ -= static_cast<int64_t>(taken.size());
    std::ranges::stable_sort(taken, {}, &Entry::end_us);
    if (!cancelled_.empty())
      std::erase_if(taken, [this](const Entry& entry) { return cancelled_.erase(entry.id) > 0; });
    return taken;
  }

  // Time in us of the earliest tick that holds an entry; -1 if there is none.
  int64_t next_us() const {
    if (size_ == 0) return -1;
    for (int64_t k = 0; k < SLOTS;) {
      const auto slot = static_cast<size_t>((next_ + k) % SLOTS);
      const uint64_t word = occupied_[slot / 64] >> (slot % 64);
      if (word == 0) {
        k += 64 - static_cast<int64_t>(slot % 64);
        continue;
      }
      const int skip = std::countr_zero(word);
      k += skip;
      if (k >= SLOTS) break;
      for (const Entry& entry : slots_[static_cast<size_t>((next_ + k) % SLOTS)])
        if (std::max(tick_of(entry.end_us), next_) == next_ + k) return (next_ + k) * tick_us_;
      ++k;
    }
    int64_t earliest = std::numeric_limits<int64_t>::max();
    for (const auto& entries : slots_)
      for (const Entry& entry : entries) earliest = std::min(earliest, tick_of(entry.end_us));
    return earliest * tick_us_;
  }

 private:
  static constexpr int64_t SLOTS = 1 << 14;

  int64_t tick_of(int64_t end_us) const { return end_us / tick_us_ + (end_us % tick_us_ != 0); }

  int64_t tick_us_;
  int64_t next_ = 0;  // first tick not yet taken
  int64_t size_ = 0;
  std::vector<std::vector<Entry>> slots_;
  std::vector<uint64_t> occupied_;
  std::unordered_set<int64_t> cancelled_;
};

// What the worker pool runs: every task's true duration, and a timer wheel of ends.
class RunningTasks {
 public:
  // duration_us: [tasks], -1 = never ends. preference: [tasks], sets of the catalog.
  // preferred_permille: of its duration a task takes on one of its preferred machines. Columns are
  // borrowed. With `indexed`, the allocation of every running task is kept, for forget(). Throws
  // std::invalid_argument for lengths that differ or a share that is negative.
  RunningTasks(int64_t tick_us, std::span<const int64_t> duration_us,
               std::span<const int32_t> preference, const PreferenceColumns& catalog,
               int64_t preferred_permille, bool indexed)
      : wheel(tick_us),
        duration_us_(duration_us),
        preference_(preference),
        catalog_(catalog),
        preferred_permille_(preferred_permille),
        allocation_of_(indexed ? duration_us.size() : 0, kNone) {
    check_lengths(catalog);
    if (duration_us.size() != preference.size())
      throw std::invalid_argument("duration_us and preference differ in length");
    if (preferred_permille < 0)
      throw std::invalid_argument("preferred_permille must not be negative");
  }

  // n tasks start at start_us; those that end go into the wheel. Throws std::invalid_argument, with
  // nothing added, for a task or machine that does not exist.
  void start(int64_t start_us, std::span<const int64_t> task, const int64_t* allocation,
             std::span<const int32_t> machine, const int32_t* owner) {
    const size_t count = task.size();
    for (size_t i = 0; i < count; ++i)
      if (task[i] < 0 || static_cast<size_t>(task[i]) >= duration_us_.size())
        throw std::invalid_argument("task[" + std::to_string(i) + "]: there is no task " +
                                    std::to_string(task[i]));
    preferred_.assign(count, 0);
    if (catalog_.sets() > 1 && preferred_permille_ != 1000) {
      set_.resize(count);
      cost_.resize(count);
      for (size_t i = 0; i < count; ++i) set_[i] = preference_[static_cast<size_t>(task[i])];
      placement_cost(catalog_, set_, machine, cost_.data(),
                     reinterpret_cast<bool*>(preferred_.data()));
    }
    if (!allocation_of_.empty())
      for (size_t i = 0; i < count; ++i)
        allocation_of_[static_cast<size_t>(task[i])] = allocation[i];
    for (size_t i = 0; i < count; ++i) {
      int64_t duration_us = duration_us_[static_cast<size_t>(task[i])];
      if (duration_us < 0) continue;
      if (preferred_[i])
        duration_us = static_cast<int64_t>(Int128{duration_us} * preferred_permille_ / 1000);
      const int64_t end_us =
          duration_us < kLatestEnd - start_us ? start_us + duration_us : kLatestEnd;
      wheel.add({end_us, allocation[i], task[i], owner[i], machine[i]});
    }
  }

  // Forgets the allocation of a task, which ends. Returns whether it ran and had not been forgotten
  // before.
  bool forget(int64_t task, int64_t allocation) {
    if (static_cast<uint64_t>(task) >= allocation_of_.size()) return false;
    int64_t& known = allocation_of_[static_cast<size_t>(task)];
    if (known != allocation || allocation == kNone) return false;
    known = kNone;
    return true;
  }

  TimerWheel wheel;

 private:
  // Of a task that ends later: no run lasts so long, and sums of times stay within 63 bits.
  static constexpr int64_t kLatestEnd = int64_t{1} << 61;
  static constexpr int64_t kNone = -1;

  std::span<const int64_t> duration_us_;
  std::span<const int32_t> preference_;
  PreferenceColumns catalog_;
  int64_t preferred_permille_;
  // Of every task, or kNone; the cell never has two of one. Empty if they are not kept.
  std::vector<int64_t> allocation_of_;
  std::vector<int32_t> set_;
  std::vector<int64_t> cost_;
  std::vector<uint8_t> preferred_;
};

// The worker pool: runs tasks by waiting for their ends, and reports those once per heartbeat.
//
//   TasksStarted   -> the tasks' ends go into the timer wheel; a timer at the earliest heartbeat
//   HeartbeatDue   -> TasksFinished of all ends that are due; a timer at the next one with ends
//   TasksCancelled -> these ends no longer count
//
// A task takes t, or preferred_permille/1000 of t on a preferred machine (ParSync section 6.4). The
// pool is the only holder of true durations. Queues at the machines that protocols have (node
// sides) are part of it: see parsync/core/participant.py for what they are notified of.
class WorkerPool : public Participant {
 public:
  // protocol_of: of each agent. Node sides are asked in the order given. Throws as RunningTasks.
  struct NodeSide {
    std::string protocol;
    std::unique_ptr<Participant> queues;
  };
  WorkerPool(int64_t heartbeat_us, std::span<const int64_t> duration_us,
             std::span<const int32_t> preference, const PreferenceColumns& catalog,
             int64_t preferred_permille, std::vector<NodeSide> node_sides,
             std::vector<std::string> protocol_of);

  void handle(int64_t now_us, const EventPtr& event, Effects& effects) override;

  // Starts or cancels tasks without notifying the queues at the machines.
  void start(const TasksStarted& started);
  void cancel(const TasksCancelled& cancelled);

  // Tasks whose end is still to come.
  int64_t pending_ends() const { return tasks_.wheel.size(); }
  // Empties the pool at the end of a run: what still runs, as it would have ended.
  std::vector<TimerWheel::Entry> due_ends();

 private:
  void notify(int64_t now_us, const EventPtr& event, Effects& effects);
  void notify_ended(int64_t now_us, const AllocationsEnded& ended, Effects& effects);
  void heartbeat(int64_t now_us, Effects& effects);
  void arm(int64_t now_us, Effects& effects);
  Participant* queues_of(std::string_view protocol);

  RunningTasks tasks_;
  std::vector<NodeSide> node_sides_;
  std::vector<std::string> protocol_of_;
  std::set<int64_t> armed_us_;  // when heartbeat timers that are set will fire
};

}  // namespace agora
