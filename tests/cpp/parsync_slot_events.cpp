// The times of a slot simulation: ends of runs of slots, pending events, arrivals, averages,
// buckets.
#include <algorithm>
#include <map>
#include <vector>

#include "check.hpp"
#include "parsync/model/native/arrivals.hpp"
#include "parsync/model/native/delay_average.hpp"
#include "parsync/model/native/event_queue.hpp"
#include "parsync/model/native/measurements.hpp"
#include "parsync/model/native/running_slots.hpp"
#include "parsync/model/native/sync_times.hpp"

using namespace agora::slots;

namespace {

// Against a multimap, with ends out of order by up to `disorder_ns`.
void runs_end_in_order(int64_t disorder_ns) {
  Draws draw(11);
  RunningSlots running;
  struct Run {
    uint32_t owner;
    std::vector<uint32_t> ids;
    int64_t score;
  };
  std::multimap<int64_t, Run> expected;
  int64_t now_ns = 0, slots = 0, scores = 0;
  uint32_t number = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (draw(5) < (step < 10'000 ? 3 : 2)) {
      now_ns += static_cast<int64_t>(draw(3));
      const int64_t end_ns =
          now_ns + 1000 + static_cast<int64_t>(draw(static_cast<uint64_t>(disorder_ns) + 1));
      std::vector<Pick> picks(1 + draw(40));
      std::vector<uint32_t> ids;
      for (Pick& pick : picks) {
        pick = {number++, 0};
        ids.push_back(pick.slot);
      }
      const uint32_t owner = static_cast<uint32_t>(draw(9));
      const int64_t score = static_cast<int64_t>(draw(1000));
      running.add(end_ns, owner, picks, score);
      scores += score;
      expected.insert({end_ns, {owner, ids, score}});
      slots += static_cast<int64_t>(picks.size());
    } else if (!expected.empty()) {
      const auto next = expected.begin();
      CHECK(running.next_end_ns() == next->first);
      CHECK(running.next_owner() == next->second.owner);
      std::vector<uint32_t> ids;
      running.remove_next([&](std::span<const Pick> part) {
        for (const Pick pick : part) ids.push_back(pick.slot);
      });
      CHECK(ids == next->second.ids);
      scores -= next->second.score;
      slots -= static_cast<int64_t>(ids.size());
      expected.erase(next);
    }
    CHECK(running.count() == slots);
    CHECK(running.score() == scores);
    CHECK((running.next_end_ns() == RunningSlots::kNever) == expected.empty());
  }
}

void events_come_by_time_priority_and_order() {
  EventQueue queue;
  queue.push(5, EventKind::Decide, 1, 0);
  queue.push(5, EventKind::Commit, 2, 0);
  queue.push(4, EventKind::Decide, 3, 0);
  queue.push(5, EventKind::Commit, 4, 0);
  queue.push(5, EventKind::Answer, 5, 0);
  for (const uint32_t scheduler : {3u, 2u, 4u, 5u, 1u}) CHECK(queue.pop().scheduler == scheduler);
  CHECK(queue.next_key() == kNoEvent);
  CHECK(event_key(7, EventKind::Decide) < event_key(8, EventKind::Free));
  CHECK(event_key(7, EventKind::Free) < event_key(7, EventKind::Sync));
  CHECK(time_of(event_key(7, EventKind::Answer)) == 7);
  CHECK(kind_of(event_key(7, EventKind::Answer)) == EventKind::Answer);
}

void batches_arrive_at_the_rate() {
  SlotSettings settings;
  settings.groups = {{.schedulers = 3, .batch_tasks = 50}};
  settings.phases = {{.duration_ns = 10'000'000'000, .rate_per_ks = {300'000}},
                     {.duration_ns = 5'000'000'000, .rate_per_ks = {0}},
                     {.duration_ns = 10'000'000'000, .rate_per_ks = {600'000}}};
  for (const uint32_t offset : {0u, 1u << 31, ~0u}) {
    BatchArrivals arrivals(settings, 0, offset);
    std::vector<int64_t> times;
    for (; arrivals.next_ns() != BatchArrivals::kNever; arrivals.advance())
      times.push_back(arrivals.next_ns());
    CHECK(std::is_sorted(times.begin(), times.end()));
    // 300 tasks/s are 2 batches per second and scheduler; then none; then 4
    const auto before = [&](int64_t time_ns) {
      return std::lower_bound(times.begin(), times.end(), time_ns) - times.begin();
    };
    CHECK(before(10'000'000'000) == 20);
    CHECK(before(15'000'000'000) == 20);
    CHECK(times.size() == 60);
    CHECK(times[1] - times[0] == 500'000'000);
    CHECK(times[0] == static_cast<int64_t>(static_cast<uint64_t>(offset) * 500'000'000 >> 32));
  }
}

void the_average_moves_by_the_coefficient() {
  DelayAverage average(500);
  average.add(4'000'000'000, 4, 4);
  CHECK(average.ns() == 500'000'000);
  average.add(0, 2, 4);  // half a batch: half the weight
  CHECK(average.ns() == 375'000'000);
}

void buckets_grow_with_the_delay() {
  CHECK(delay_bucket(-5) == 0);
  CHECK(delay_bucket(255'999) == 255);
  CHECK(delay_bucket(256'000) == 256 && delay_bucket(257'999) == 256);
  CHECK(delay_bucket(int64_t{1} << 62) == kDelayBuckets - 1);
  for (int64_t us = 1; us < (int64_t{1} << 40); us = us * 9 / 8 + 1)
    CHECK(delay_bucket(us * 1000) <= delay_bucket(us * 9 / 8 * 1000));
}

void blocks_cover_all_partitions_once_per_gap() {
  SlotSettings settings;
  settings.groups = {{.schedulers = 4}};
  settings.partitions = 11;
  settings.gap_ns = 1'000'003;
  for (const SyncMode mode : {SyncMode::DiffBlock, SyncMode::DiffSingle, SyncMode::SameBlock}) {
    settings.sync = mode;
    const SyncTimes times(settings);
    const int64_t rounds = mode == SyncMode::DiffSingle ? 11 : 4;
    CHECK(times.due_ns(rounds) == settings.gap_ns);
    for (int64_t i = 0; i < 4; ++i) {
      std::vector<int> seen(11);
      for (int64_t event = 1; event <= rounds; ++event) {
        const SyncTimes::Range range = times.partitions(event, i);
        for (size_t p = range.first; p < range.end; ++p) ++seen[p];
      }
      CHECK(std::all_of(seen.begin(), seen.end(), [](int times_seen) { return times_seen == 1; }));
    }
  }
}

}  // namespace

int main() {
  runs_end_in_order(0);
  runs_end_in_order(50);
  runs_end_in_order(5000);
  events_come_by_time_priority_and_order();
  batches_arrive_at_the_rate();
  the_average_moves_by_the_coefficient();
  buckets_grow_with_the_delay();
  blocks_cover_all_partitions_once_per_gap();
}
