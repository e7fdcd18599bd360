// The slot simulator: draws follow weighted sampling without replacement, whose inclusion
// probabilities are worked out exactly; runs of slots end in order; and whole runs commit every
// task once. Its results are pinned by tests/golden/slot_simulator.json.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "parsync/model/native/slot_simulator.hpp"

using namespace agora::slots;

namespace {

SlotSettings settings_of(int64_t slots, int64_t partitions, double variance) {
  SlotSettings settings;
  settings.slots = slots;
  settings.partitions = partitions;
  settings.score_variance = variance;
  settings.groups = {{.strategy = Strategy::QualityFirst}};
  settings.quality = slots % 2 ? PartitionQuality::MeanScore : PartitionQuality::MeanWeight;
  settings.seed = 7;
  return settings;
}

void check_table(const SlotTable& table, size_t slots) {
  CHECK(table.slots() == slots);
  CHECK(table.groups() == table.partitions * table.groups_per_partition);
  CHECK(table.start.front() == 0 && table.start.back() == slots);
  for (uint32_t group = 0; group < table.groups(); ++group) {
    CHECK(table.start[group + 1] - table.start[group] <= 65'535);
    CHECK(table.partition[group] == group / table.groups_per_partition);
    for (uint32_t slot = table.start[group]; slot < table.start[group + 1]; ++slot) {
      CHECK(slot * table.partitions / slots <= table.partition[group]);
      const int64_t weight = table.weight(slot, group);
      CHECK(weight >= 1);
      CHECK(weight >> table.envelope_bits[group] == 0);
      CHECK(weight >> (table.envelope_bits[group] - 1) == 1);
      if (slot > table.start[group])
        CHECK(table.value[slot].weight <= table.value[slot - 1].weight);
    }
  }
}

void check_sums(const IdleSlots& idle) {
  const SlotTable& table = idle.table();
  int64_t all = 0;
  for (size_t p = 0; p < table.partitions; ++p) {
    PartitionSum sum;
    for (size_t g = 0; g < table.groups_per_partition; ++g) {
      const uint32_t group = static_cast<uint32_t>(p * table.groups_per_partition + g);
      for (uint32_t place = 0; place < idle.count(group); ++place) {
        const uint32_t slot = idle.slot_at(group, place);
        if (table.ranks_partitions) sum.quality += table.quality(slot, group);
        ++sum.count;
      }
      sum.envelope += idle.envelope(group);
    }
    CHECK(sum.envelope == idle.partition(p).envelope);
    CHECK(sum.quality == idle.partition(p).quality);
    CHECK(sum.count == idle.partition(p).count);
    all += sum.count;
  }
  CHECK(all == idle.count());
}

void tables_cover_every_slot() {
  for (const double variance : {0.0, 0.5, 8.0, 400.0})
    for (const SlotWeighting weighting : {SlotWeighting::Score, SlotWeighting::ExpScore})
      for (const auto& [slots, partitions] :
           {std::pair{1L, 1L}, {1000L, 1L}, {1000L, 7L}, {13L, 13L}, {150'000L, 1L}}) {
        SlotSettings settings = settings_of(slots, partitions, variance);
        settings.weighting = weighting;
        const SlotTable table(settings);
        check_table(table, static_cast<size_t>(slots));
      }
}

// Weighted draws one after the other without replacement: the probability of each set, hence of
// each slot to be in it.
std::vector<double> inclusion(const std::vector<double>& weight, int draws) {
  const size_t n = weight.size();
  std::vector<double> of_set(size_t{1} << n), included(n);
  of_set[0] = 1;
  const double all = std::accumulate(weight.begin(), weight.end(), 0.0);
  for (size_t set = 0; set < of_set.size(); ++set) {
    double left = all;
    int size = 0;
    for (size_t i = 0; i < n; ++i)
      if (set >> i & 1) {
        left -= weight[i];
        ++size;
      }
    for (size_t i = 0; i < n; ++i) {
      if (set >> i & 1) {
        if (size == draws) included[i] += of_set[set];
      } else if (size < draws) {
        of_set[set | size_t{1} << i] += of_set[set] * weight[i] / left;
      }
    }
  }
  return included;
}

// partitions 1: from_partition; otherwise from_all.
void draws_follow_the_weights(int64_t slots, int64_t partitions, double variance, int draws) {
  const SlotSettings settings = settings_of(slots, partitions, variance);
  const SlotTable table(settings);
  const CellMaster master(table, 0);
  std::vector<double> weight(table.slots());
  for (uint32_t group = 0; group < table.groups(); ++group)
    for (uint32_t slot = table.start[group]; slot < table.start[group + 1]; ++slot)
      weight[slot] = static_cast<double>(table.weight(slot, group));
  const std::vector<double> expected = inclusion(weight, draws);
  constexpr int kTrials = 40'000;
  std::vector<int> times(table.slots());
  SlotDraws sampler(table.partitions);
  agora::Stream stream(agora::stream_key(3, "test", static_cast<uint64_t>(draws)));
  for (int trial = 0; trial < kTrials; ++trial) {
    IdleSlots view = master.idle();
    std::vector<Pick> picks;
    sampler.from_all(view, draws, stream, picks);
    CHECK(picks.size() == static_cast<size_t>(draws));
    CHECK(view.count() == slots - draws);
    for (const Pick pick : picks) ++times[pick.slot];
    if (trial % 1000 == 0) check_sums(view);
  }
  for (size_t slot = 0; slot < times.size(); ++slot) {
    const double p = expected[slot];
    const double deviation = std::sqrt(p * (1 - p) / kTrials);
    CHECK(std::abs(times[slot] / double{kTrials} - p) <= 5 * deviation + 1e-4);
  }
}

void draws_empty_a_partition() {
  const SlotTable table(settings_of(500, 5, 8.0));
  const CellMaster master(table, 0);
  IdleSlots view = master.idle();
  SlotDraws sampler(table.partitions);
  agora::Stream stream(1);
  std::vector<Pick> picks;
  sampler.from_partition(view, 2, 100, stream, picks);
  CHECK(view.partition(2).count == 0 && view.partition(2).envelope == 0);
  std::vector<bool> seen(500);
  for (const Pick pick : picks) {
    CHECK(pick.slot >= 200 && pick.slot < 300 && !seen[pick.slot]);
    seen[pick.slot] = true;
  }
  view.copy_partition(master.idle(), 2);
  CHECK(view.count() == 500);
  check_sums(view);
}

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

constexpr int64_t kSecond = 1'000'000'000;

// 2,000 slots at 90 % load, two groups of three schedulers that could decide twice as much.
SlotSettings small() {
  SlotSettings settings;
  settings.slots = 2'000;
  settings.partitions = 8;
  settings.score_variance = 2;
  settings.task_ns = kSecond;
  GroupSettings group;
  group.schedulers = 3;
  group.batch_tasks = 40;
  group.decision_ns = 1'666'667;
  group.tau_ns = kSecond / 5;
  settings.groups = {group, group};
  settings.phases = {{kSecond, {900'000, 900'000}}, {kSecond / 2, {900'000, 300'000}}};
  settings.gap_ns = kSecond / 10;
  settings.horizon_ns = 20 * kSecond;
  settings.bin_ns = kSecond / 2;
  settings.requeue_ns = kSecond / 20;
  return settings;
}

// What the tests in Python check in every golden run, here under the sanitizers, too.
void check_run(const SlotSettings& settings) {
  CHECK(!check(settings).refused());
  SlotSimulator simulator(settings);
  while (simulator.run(1000) == Ending::Running) {
  }
  CHECK(simulator.ending() == Ending::Committed);
  int64_t arrived = 0, claims = 0, conflicts = 0, commits = 0;
  for (const Bin& bin : simulator.measurements().bins()) {
    CHECK(bin.cell.busy + bin.cell.idle == settings.slots);
    CHECK(bin.cell.score_ms >= 0 && bin.cell.score_ms <= bin.cell.best_score_ms);
    for (const GroupCounts& counts : bin.groups) {
      CHECK(counts.causes.same_tick + counts.causes.quality + counts.causes.stale ==
            counts.conflicts);
      arrived += counts.arrived;
      claims += counts.claims;
      conflicts += counts.conflicts;
      commits += counts.commits;
    }
  }
  CHECK(arrived > 2000 && commits == arrived);
  CHECK(claims == simulator.decisions() && claims == conflicts + commits);
}

void every_combination_of_choices_commits_every_task() {
  for (const SyncMode sync : {SyncMode::StateAligned, SyncMode::StateStaggered, SyncMode::DiffBlock,
                              SyncMode::DiffSingle, SyncMode::SameBlock})
    for (const Strategy strategy :
         {Strategy::Optimistic, Strategy::QualityFirst, Strategy::LatencyFirst, Strategy::Adaptive})
      for (int choices = 0; choices < 64; ++choices) {
        SlotSettings settings = small();
        settings.sync = sync;
        settings.groups[0].strategy = strategy;
        settings.cut_at_sync = choices & 1;
        settings.freed_at_once = choices & 2;
        settings.losers = choices & 4 ? LoserPolicy::Requeue : LoserPolicy::Block;
        settings.commit_pipelining = choices & 8;
        settings.latency_ns = choices & 16 ? kSecond / 500 : 0;
        settings.service_ns = choices & 32 ? kSecond / 20'000 : 0;
        settings.quality = choices & 1 ? PartitionQuality::MeanScore : PartitionQuality::MeanWeight;
        settings.seed = static_cast<uint64_t>(choices);
        check_run(settings);
      }
}

}  // namespace

int main() {
  tables_cover_every_slot();
  for (const int draws : {1, 3, 8}) {
    draws_follow_the_weights(12, 1, 2.0, draws);
    draws_follow_the_weights(12, 3, 2.0, draws);
  }
  draws_follow_the_weights(12, 1, 30.0, 6);  // one slot has most of the weight
  draws_follow_the_weights(12, 1, 0.0, 5);
  draws_empty_a_partition();
  for (const int64_t disorder_ns : {0, 50, 5000}) runs_end_in_order(disorder_ns);
  every_combination_of_choices_commits_every_task();
}
