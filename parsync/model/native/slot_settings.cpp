#include "slot_settings.hpp"

#include <algorithm>
#include <cstdio>

#include "shared_state/native/random.hpp"

namespace agora::slots {

namespace {

constexpr int64_t kLongestNs = 100'000'000'000'000;  // of any time: a day
constexpr int64_t kMostSlots = 100'000'000;          // 900 MB
constexpr int64_t kMostSchedulers = 10'000;
constexpr int64_t kMostPartitions = 65'536;
constexpr int64_t kMostViewedSlots = int64_t{1} << 31;  // over all schedulers: 4 GB
constexpr int64_t kMostViewedSums = int64_t{1} << 23;   // partitions x schedulers: 4 GB
constexpr int64_t kMostTasks = int64_t{1} << 40;
constexpr int64_t kMostBins = 1'000'000;
constexpr double kLargestVariance = 1e4;

std::string text(Int128 value) {
  std::string digits;
  for (; value > 9; value /= 10) digits.insert(digits.begin(), static_cast<char>('0' + value % 10));
  digits.insert(digits.begin(), static_cast<char>('0' + value));
  return digits;
}

std::string seconds(int64_t ns) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.9g s", static_cast<double>(ns) * 1e-9);
  return digits;
}

// Collects the first refusal.
class Check {
 public:
  void require(bool holds, const std::string& field, const std::string& reason) {
    if (!holds && !refusal_.refused()) refusal_ = {field, reason};
  }
  void within(int64_t value, int64_t least, int64_t most, const std::string& field) {
    require(value >= least && value <= most, field,
            "expected " + std::to_string(least) + " to " + std::to_string(most) + ", got " +
                std::to_string(value));
  }
  void within_ns(int64_t value, int64_t least, int64_t most, const std::string& field) {
    require(value >= least && value <= most, field,
            "expected " + seconds(least) + " to " + seconds(most) + ", got " + seconds(value));
  }
  bool failed() const { return refusal_.refused(); }
  const Refusal& refusal() const { return refusal_; }

 private:
  Refusal refusal_;
};

void check_groups(const SlotSettings& of, Check& check) {
  check.require(!of.groups.empty(), "groups", "expected at least one");
  for (const GroupSettings& group : of.groups) {
    check.within(group.schedulers, 1, kMostSchedulers, "schedulers");
    check.within(group.batch_tasks, 1, 1'000'000, "batch_tasks");
    check.within_ns(group.decision_ns, 1, kLongestNs / 1'000'000, "decision_s");
    check.within(group.average_permille, 1, 1000, "average_permille");
    if (group.strategy == Strategy::Adaptive) check.within_ns(group.tau_ns, 1, kLongestNs, "tau_s");
  }
  if (!check.failed()) check.within(of.schedulers(), 1, kMostSchedulers, "schedulers");
}

void check_cell(const SlotSettings& of, Check& check) {
  check.within(of.slots, 1, kMostSlots, "slots");
  check.within(of.partitions, 1, kMostPartitions, "partitions");
  if (check.failed()) return;
  check.require(of.partitions <= of.slots, "partitions",
                "expected at most one per slot (" + std::to_string(of.slots) + "), got " +
                    std::to_string(of.partitions));
  check.require(of.score_variance >= 0 && of.score_variance <= kLargestVariance, "score_variance",
                "expected 0 to 10000, got " + std::to_string(of.score_variance));
  check.within_ns(of.task_ns, 1, kLongestNs, "task_s");
  const int64_t schedulers = of.schedulers();
  check.require(
      of.slots * schedulers <= kMostViewedSlots && of.partitions * schedulers <= kMostViewedSums,
      "schedulers",
      std::to_string(schedulers) + " views of " + std::to_string(of.slots) + " slots in " +
          std::to_string(of.partitions) + " partitions do not fit in 4 GB");
}

void check_sync(const SlotSettings& of, Check& check) {
  check.within_ns(of.gap_ns, 1, kLongestNs, "gap_s");
  if (check.failed()) return;
  const int64_t schedulers = of.schedulers();
  const bool by_partition = of.sync == SyncMode::DiffBlock || of.sync == SyncMode::DiffSingle ||
                            of.sync == SyncMode::SameBlock;
  check.require(!by_partition || of.partitions >= schedulers, "partitions",
                "expected at least " + std::to_string(schedulers) +
                    ", one for each scheduler, when blocks or partitions are synchronised by "
                    "turns (ParSync section 5.1), got " +
                    std::to_string(of.partitions));
  const int64_t least_ns = 1000 * std::max(schedulers, of.partitions);
  check.require(of.gap_ns >= least_ns, "gap_s",
                "expected at least " + seconds(least_ns) +
                    ", a microsecond for each scheduler and partition, got " + seconds(of.gap_ns));
}

void check_times(const SlotSettings& of, Check& check) {
  check.within_ns(of.latency_ns, 0, kLongestNs, "latency_s");
  check.within_ns(of.service_ns, 0, kLongestNs / 1'000'000, "service_s");
  check.within(of.scan_permille, 0, 1'000'000, "scan_permille");
  if (of.losers == LoserPolicy::Requeue) check.within_ns(of.requeue_ns, 1, kLongestNs, "requeue_s");
  check.within_ns(of.horizon_ns, 1, kLongestNs, "horizon_s");
  check.within_ns(of.bin_ns, 1, kLongestNs, "bin_s");
  check.within(of.gap_slices, 1, 1000, "gap_slices");
  check.within(of.growing_bins, 0, kMostBins, "growing_bins");
  if (of.growing_bins > 0) check.within_ns(of.finish_by_ns, 1, kLongestNs, "finish_by_s");
  if (check.failed()) return;
  check.require(of.horizon_ns / of.bin_ns < kMostBins, "bin_s",
                "expected fewer than " + std::to_string(kMostBins) + " bins up to the horizon");
}

// No run that must leave tasks behind is begun: its delays would be lower bounds.
void check_rates(const SlotSettings& of, Check& check) {
  check.require(!of.phases.empty(), "phases", "expected at least one");
  for (const PhaseSettings& phase : of.phases) {
    check.within_ns(phase.duration_ns, 1, kLongestNs, "phases: duration_s");
    check.require(phase.rate_per_ks.size() == of.groups.size(), "phases",
                  "expected a rate for each of the " + std::to_string(of.groups.size()) +
                      " groups, got " + std::to_string(phase.rate_per_ks.size()));
    for (const int64_t rate : phase.rate_per_ks)
      check.require(rate >= 0 && rate <= kLongestNs, "phases: rate_per_s",
                    "expected 0 to 10^11, got " + std::to_string(rate / 1000));
  }
  if (check.failed()) return;
  check.require(of.submission_ns() <= of.horizon_ns, "horizon_s",
                "expected at least the length of all phases, " + seconds(of.submission_ns()) +
                    ", got " + seconds(of.horizon_ns));
  Int128 all = 0;
  for (size_t group = 0; group < of.groups.size(); ++group) {
    const GroupSettings& members = of.groups[group];
    Int128 tasks = 0;
    for (const PhaseSettings& phase : of.phases)
      tasks += static_cast<Int128>(phase.rate_per_ks[group]) * phase.duration_ns;
    tasks /= Int128{1'000'000'000'000};
    all += tasks;
    const Int128 decided =
        static_cast<Int128>(members.schedulers) * (of.horizon_ns / members.decision_ns + 1);
    check.require(tasks <= decided, "phases: rate_per_s",
                  "group " + std::to_string(group) + " gets " + text(tasks) + " tasks, but its " +
                      std::to_string(members.schedulers) + " schedulers can decide no more than " +
                      text(decided) + " before the horizon");
  }
  check.require(all > 0, "phases: rate_per_s", "no task would arrive");
  check.require(all <= kMostTasks, "phases: rate_per_s",
                "expected at most " + text(kMostTasks) + " tasks in all, got " + text(all));
  const Int128 run = static_cast<Int128>(of.slots) * (of.horizon_ns / of.task_ns + 1);
  check.require(all <= run, "phases: rate_per_s",
                text(all) + " tasks arrive, but " + std::to_string(of.slots) +
                    " slots can run no more than " + text(run) + " before the horizon");
}

}  // namespace

int64_t SlotSettings::schedulers() const {
  int64_t sum = 0;
  for (const GroupSettings& group : groups) sum += group.schedulers;
  return sum;
}

int64_t SlotSettings::submission_ns() const {
  int64_t sum = 0;
  for (const PhaseSettings& phase : phases) sum += phase.duration_ns;
  return sum;
}

Refusal check(const SlotSettings& settings) {
  Check check;
  check_groups(settings, check);
  if (!check.failed()) check_cell(settings, check);
  if (!check.failed()) check_sync(settings, check);
  if (!check.failed()) check_times(settings, check);
  if (!check.failed()) check_rates(settings, check);
  return check.refusal();
}

}  // namespace agora::slots
