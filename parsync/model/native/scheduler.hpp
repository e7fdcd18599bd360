// One scheduler of a slot simulation: when its batches arrive, when it synchronises and what, and
// its state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "cell_master.hpp"
#include "shared_state/native/random.hpp"
#include "slot_settings.hpp"

namespace agora::slots {

// When the batches of one scheduler arrive.
//
// Within a phase a scheduler's batches are evenly spaced: the k-th, from 0, arrives after k + u
// intervals, u being the scheduler's own random offset in [0, 1). Times are computed from k in
// integers, so nothing accumulates. (Without offsets all schedulers' batches would arrive at the
// same instants, and fixed tie orders would favour some of them.)
class BatchArrivals {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // offset: u in units of 2^-32.
  BatchArrivals(const SlotSettings& settings, size_t group, uint32_t offset)
      : settings_(&settings), group_(group), offset_(offset) {
    find_next();
  }

  int64_t next_ns() const { return next_ns_; }  // kNever: there are no more
  void advance() {
    ++k_;
    find_next();
  }

 private:
  void find_next() {
    for (; phase_ < settings_->phases.size(); ++phase_) {
      const PhaseSettings& phase = settings_->phases[phase_];
      next_ns_ = in_phase(phase.rate_per_ks[group_], phase.duration_ns);
      if (next_ns_ != kNever) {
        next_ns_ += begin_ns_;
        return;
      }
      begin_ns_ += phase.duration_ns;
      k_ = 0;
    }
    next_ns_ = kNever;
  }

  // From the start of the phase.
  int64_t in_phase(int64_t rate_per_ks, int64_t duration_ns) const {
    if (rate_per_ks == 0) return kNever;
    const GroupSettings& group = settings_->groups[group_];
    // intervals of batch_tasks x schedulers / rate seconds, in units of 2^-32
    const Int128 intervals = (static_cast<Int128>(k_) << 32) + offset_;
    const Int128 tasks = intervals * (group.batch_tasks * group.schedulers);
    const Int128 at_ns = (tasks * Int128{1'000'000'000'000} / rate_per_ks) >> 32;
    return at_ns < duration_ns ? static_cast<int64_t>(at_ns) : kNever;
  }

  const SlotSettings* settings_;
  size_t group_;
  uint32_t offset_;
  size_t phase_ = 0;
  int64_t begin_ns_ = 0;  // of the phase
  int64_t k_ = 0;
  int64_t next_ns_ = kNever;
};

// When schedulers synchronise, and what: the sync policies of the optimistic protocol
// (parsync/protocols/native/sync.hpp), with the same formulas.
//
// Events are numbered; the k-th time is computed from k, never accumulated. Staggered, event
// k N + i is the k-th of scheduler i alone; in all other modes event k is everybody's. Everybody
// has seen everything at time 0. Synchronisation takes no time and is not delayed by messages.
class SyncTimes {
 public:
  struct Range {
    size_t first;
    size_t end;
  };

  explicit SyncTimes(const SlotSettings& settings)
      : mode_(settings.sync),
        gap_ns_(settings.gap_ns),
        schedulers_(settings.schedulers()),
        partitions_(settings.partitions) {}

  bool one_by_one() const { return mode_ == SyncMode::StateStaggered; }
  bool refreshes_all() const {
    return mode_ == SyncMode::StateAligned || mode_ == SyncMode::StateStaggered;
  }
  int64_t first_event() const { return one_by_one() ? schedulers_ : 1; }
  // one_by_one(): whose event it is.
  size_t scheduler(int64_t event) const { return static_cast<size_t>(event % schedulers_); }

  int64_t due_ns(int64_t event) const {
    switch (mode_) {
      case SyncMode::StateAligned:
        return event * gap_ns_;
      case SyncMode::StateStaggered:
        return event / schedulers_ * gap_ns_ + event % schedulers_ * gap_ns_ / schedulers_;
      case SyncMode::DiffSingle:
        return event * gap_ns_ / partitions_;
      case SyncMode::DiffBlock:
      case SyncMode::SameBlock:
        return event * gap_ns_ / schedulers_;
    }
    return 0;
  }

  // When a scheduler that synchronises at this event does so again.
  int64_t following_ns(int64_t event) const {
    return due_ns(event + (one_by_one() ? schedulers_ : 1));
  }

  // What scheduler i refreshes at the event.
  Range partitions(int64_t event, int64_t i) const {
    switch (mode_) {
      case SyncMode::StateAligned:
      case SyncMode::StateStaggered:
        return {0, static_cast<size_t>(partitions_)};
      case SyncMode::DiffSingle: {
        const int64_t partition = (i * partitions_ / schedulers_ + event) % partitions_;
        return {static_cast<size_t>(partition), static_cast<size_t>(partition) + 1};
      }
      case SyncMode::DiffBlock:
        return block((i + event) % schedulers_);
      case SyncMode::SameBlock:
        return block(event % schedulers_);
    }
    return {0, 0};
  }

 private:
  Range block(int64_t number) const {
    return {static_cast<size_t>(number * partitions_ / schedulers_),
            static_cast<size_t>((number + 1) * partitions_ / schedulers_)};
  }

  SyncMode mode_;
  int64_t gap_ns_, schedulers_, partitions_;
};

// Exponential moving average of the scheduling delay, as the agent of the optimistic protocol keeps
// it (parsync/protocols/optimistic/options.py): integers only. A fully committed batch weighs
// the coefficient, a part of it its share.
class DelayAverage {
 public:
  explicit DelayAverage(int64_t coefficient_permille)
      : coefficient_permille_(coefficient_permille) {}

  int64_t ns() const { return scaled_ >> kFraction; }

  // `committed` > 0 tasks of a batch had delays that sum to delay_sum_ns.
  void add(int64_t delay_sum_ns, int64_t committed, int64_t batch_tasks) {
    const Int128 mean = (static_cast<Int128>(delay_sum_ns) << kFraction) / committed;
    const Int128 change =
        (mean - scaled_) * (coefficient_permille_ * std::min(committed, batch_tasks));
    scaled_ += static_cast<int64_t>(floor_divide(change, 1000 * batch_tasks));
  }

 private:
  static constexpr int kFraction = 8;  // units of 2^-8 ns

  static Int128 floor_divide(Int128 value, Int128 by) {
    return value >= 0 ? value / by : -((by - 1 - value) / by);
  }

  int64_t coefficient_permille_;
  int64_t scaled_ = 0;
};

// Tasks of one batch.
struct BatchPart {
  int64_t arrived_ns;
  // when the batch would be committed if each task were decided once, and answered at once
  int64_t earliest_ns;
  int64_t tasks;
};

// What a scheduler decides in one go, and commits as one transaction.
struct Round {
  std::vector<Pick> picks;
  std::vector<uint8_t> in_use;   // for each pick, whether its slot was in use when it was made
  std::vector<BatchPart> parts;  // of which batches, in the order of the picks
  int64_t batch_tasks = 1;       // the size of the batch begun last
  // Once the master has handled it; then `parts` count losers.
  int64_t committed = 0;
  int64_t delay_sum_ns = 0;
};

enum class Activity {
  Busy,     // deciding, or waiting for the answer to a commit
  Idle,     // nothing to decide before a batch arrives
  Starved,  // its view is empty: waiting for a synchronisation, or for a slot of its own
};

class Scheduler {
 public:
  Scheduler(const SlotSettings& of, const SlotTable& table, const CellMaster& master, size_t number,
            size_t its_group)
      : index(static_cast<uint32_t>(number)),
        group(its_group),
        settings(&of),
        settings_of_group(&of.groups[its_group]),
        view(master.idle()),
        picks(stream_key(of.seed, "slot_simulator/picks", number)),
        arrivals(of, its_group, offset(of.seed, number)),
        arrivals_counted(arrivals),
        average(settings_of_group->average_permille),
        first_partition(number * table.partitions / static_cast<size_t>(of.schedulers())) {}

  bool has_room() const { return view.count() > 0; }

  // The time at which the next batch of the queue is there: BatchArrivals::kNever for none.
  int64_t next_batch_ns() const {
    return requeued.empty() ? arrivals.next_ns()
                            : std::min(arrivals.next_ns(), requeued.front().rejoins_ns);
  }

  // Takes up the batch that has waited longest. Requires: next_batch_ns() <= now_ns, and no work.
  void begin_batch(int64_t now_ns) {
    const Strategy strategy = settings_of_group->strategy;
    latency_first = strategy == Strategy::LatencyFirst ||
                    (strategy == Strategy::Adaptive && average.ns() >= settings_of_group->tau_ns);
    if (!requeued.empty() && requeued.front().rejoins_ns <= arrivals.next_ns()) {
      work.push_back(requeued.front().part);
      requeued.pop_front();
    } else {
      const int64_t tasks = settings_of_group->batch_tasks;
      const int64_t decision_ns = settings->decision_ns(*settings_of_group, latency_first);
      work.push_back({.arrived_ns = arrivals.next_ns(),
                      .earliest_ns = now_ns + tasks * decision_ns + settings->latency_ns,
                      .tasks = tasks});
      arrivals.advance();
    }
    batch_tasks = work.back().tasks;
  }

  struct Requeued {
    int64_t rejoins_ns;
    BatchPart part;
  };

  uint32_t index;
  size_t group;
  const SlotSettings* settings;
  const GroupSettings* settings_of_group;
  IdleSlots view;
  Stream picks;
  BatchArrivals arrivals, arrivals_counted;
  DelayAverage average;
  Activity activity = Activity::Idle;
  bool latency_first = false;
  int64_t batch_tasks = 1;          // of the batch begun last
  std::vector<BatchPart> work;      // undecided tasks of batches begun; the last is the next
  std::deque<Requeued> requeued;    // batches that pause, in the order in which they rejoin
  std::vector<uint32_t> in_flight;  // rounds decided that have not reached the master
  uint64_t wake = 0;                // the number of its valid Decide event
  int64_t rounds = 0;
  size_t first_partition;
  size_t freshest = 0;
  int64_t synced_ns = 0, next_sync_ns = 0;

 private:
  static uint32_t offset(uint64_t seed, size_t number) {
    Stream stream(stream_key(seed, "slot_simulator/arrivals", number));
    return static_cast<uint32_t>(stream.next() >> 32);
  }
};

}  // namespace agora::slots
