// The state of one scheduler of the slot simulation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "arrivals.hpp"
#include "cell_master.hpp"
#include "delay_average.hpp"
#include "idle_slots.hpp"

namespace agora::slots {

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
      : index(number),
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

  size_t index;
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
