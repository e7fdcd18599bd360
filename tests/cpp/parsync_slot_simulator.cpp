// Whole runs of the slot simulator: every task is committed once, slots are idle or busy, equal
// seeds give equal runs, and every run ends.
#include <cmath>
#include <vector>

#include "check.hpp"
#include "parsync/model/native/slot_simulator.hpp"

using namespace agora::slots;

namespace {

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

struct Totals {
  int64_t arrived = 0, claims = 0, conflicts = 0, commits = 0, delay_ns = 0;
  bool operator==(const Totals&) const = default;
};

Totals run(const SlotSettings& settings, Ending expected = Ending::Committed) {
  CHECK(!check(settings).refused());
  SlotSimulator simulator(settings);
  while (simulator.run(1000) == Ending::Running) {
  }
  CHECK(simulator.ending() == expected);
  CHECK(simulator.idle() + simulator.busy() == settings.slots);
  Totals totals;
  int64_t end_ns = 0;
  for (const Bin& bin : simulator.measurements().bins()) {
    CHECK(bin.end_ns > end_ns && bin.end_ns <= settings.horizon_ns);
    end_ns = bin.end_ns;
    CHECK(bin.cell.busy + bin.cell.idle == settings.slots);
    CHECK(bin.cell.busy_ns >= 0 && bin.cell.busy_ns <= settings.bin_ns * settings.slots);
    CHECK(bin.cell.score_ms >= 0 && bin.cell.score_ms <= bin.cell.best_score_ms);
    CHECK(bin.cell.best_score_ms <= bin.cell.busy_ns / 1000 * 65535 / 1000 + 1);
    Totals slices;
    for (const SliceCounts& slice : bin.slices) {
      slices.claims += slice.claims;
      slices.conflicts += slice.conflicts;
    }
    int64_t claims = 0, backlog = 0;
    for (size_t group = 0; group < bin.groups.size(); ++group) {
      const GroupCounts& counts = bin.groups[group];
      CHECK(counts.claims == counts.conflicts + counts.commits);
      const ConflictCauses& causes = counts.causes;
      CHECK(causes.same_tick >= 0 && causes.quality >= 0 && causes.stale >= 0);
      CHECK(causes.same_tick + causes.quality + causes.stale == counts.conflicts);
      CHECK(causes.visible >= 0 && causes.visible <= counts.conflicts);
      CHECK(counts.conflict_delay_ns <= counts.delay_ns);
      uint64_t delays = 0, scores = 0;
      for (const uint32_t count : bin.delay[group].counts()) delays += count;
      for (const uint32_t count : bin.score[group].counts()) scores += count;
      CHECK(delays == static_cast<uint64_t>(counts.commits) && scores == delays);
      totals.arrived += counts.arrived;
      totals.claims += counts.claims;
      totals.conflicts += counts.conflicts;
      totals.commits += counts.commits;
      totals.delay_ns += counts.delay_ns;
      claims += counts.claims;
      CHECK(bin.backlog[group] >= 0);
      backlog += bin.backlog[group];
    }
    CHECK(slices.claims == claims);
    CHECK(backlog == totals.arrived - totals.commits);
  }
  CHECK(totals.claims <= simulator.decisions());
  if (expected == Ending::Committed) {
    CHECK(totals.commits == totals.arrived);
    CHECK(totals.claims == simulator.decisions());
  }
  return totals;
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
        const Totals totals = run(settings);
        CHECK(totals.arrived > 2000);
      }
}

void equal_seeds_give_equal_runs() {
  SlotSettings settings = small();
  const Totals once = run(settings);
  CHECK(run(settings) == once);
  settings.seed = 2;
  CHECK(!(run(settings) == once));
}

void a_lone_scheduler_has_no_conflicts() {
  for (const bool freed_at_once : {false, true})
    for (const bool commit_pipelining : {false, true}) {
      SlotSettings settings = small();
      settings.groups.resize(1);
      settings.groups[0].schedulers = 1;
      settings.groups[0].decision_ns = 500'000;
      settings.phases = {{4 * kSecond, {1'200'000}}};
      settings.freed_at_once = freed_at_once;
      settings.commit_pipelining = commit_pipelining;
      settings.cut_at_sync = false;
      settings.latency_ns = kSecond / 50;
      const Totals totals = run(settings);
      CHECK(totals.conflicts == 0);
      CHECK(totals.arrived == 4800);
    }
}

void a_run_ends_at_its_horizon() {
  SlotSettings settings = small();
  settings.groups.resize(1);
  settings.groups[0].decision_ns = 1'000'000;
  // 1.7 times what the slots can run
  settings.phases = {{4 * kSecond, {3'400'000}}};
  settings.horizon_ns = 6 * kSecond;
  const Totals totals = run(settings, Ending::Horizon);
  CHECK(totals.commits < totals.arrived);
  settings.growing_bins = 3;
  settings.finish_by_ns = 4'100'000'000;
  const Totals stopped = run(settings, Ending::GrowingBacklog);
  CHECK(stopped.commits < totals.commits);
}

void wrong_settings_are_refused() {
  const auto field = [](auto change) {
    SlotSettings settings = small();
    change(settings);
    return check(settings).field;
  };
  CHECK(field([](SlotSettings&) {}).empty());
  CHECK(field([](SlotSettings& of) { of.partitions = 5; }).empty());
  CHECK(field([](SlotSettings& of) {
          of.partitions = 5;
          of.sync = SyncMode::DiffBlock;
        }) == "partitions");
  CHECK(field([](SlotSettings& of) { of.partitions = 2001; }) == "partitions");
  CHECK(field([](SlotSettings& of) { of.score_variance = -1; }) == "score_variance");
  CHECK(field([](SlotSettings& of) { of.score_variance = std::nan(""); }) == "score_variance");
  CHECK(field([](SlotSettings& of) { of.slots = 0; }) == "slots");
  CHECK(field([](SlotSettings& of) { of.slots = 100; }) == "phases: rate_per_s");
  CHECK(field([](SlotSettings& of) { of.groups[1].decision_ns = 100'000'000; }) ==
        "phases: rate_per_s");
  CHECK(field([](SlotSettings& of) { of.groups[0].schedulers = 0; }) == "schedulers");
  CHECK(field([](SlotSettings& of) { of.groups[0].decision_ns = 0; }) == "decision_s");
  CHECK(field([](SlotSettings& of) { of.gap_ns = 0; }) == "gap_s");
  CHECK(field([](SlotSettings& of) { of.horizon_ns = kSecond; }) == "horizon_s");
  CHECK(field([](SlotSettings& of) { of.bin_ns = 1; }) == "bin_s");
  CHECK(field([](SlotSettings& of) { of.phases[0].rate_per_ks.pop_back(); }) == "phases");
  CHECK(field([](SlotSettings& of) { of.phases[0].rate_per_ks[0] = -1; }) == "phases: rate_per_s");
  CHECK(field([](SlotSettings& of) {
          for (PhaseSettings& phase : of.phases) phase.rate_per_ks = {0, 0};
        }) == "phases: rate_per_s");
}

}  // namespace

int main() {
  every_combination_of_choices_commits_every_task();
  equal_seeds_give_equal_runs();
  a_lone_scheduler_has_no_conflicts();
  a_run_ends_at_its_horizon();
  wrong_settings_are_refused();
}
