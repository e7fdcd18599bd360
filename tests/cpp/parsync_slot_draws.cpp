// Slots and draws: groups cover every slot once, sums are those of the slots, and draws follow
// weighted sampling without replacement, whose inclusion probabilities are worked out exactly.
#include <cmath>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "parsync/model/native/cell_master.hpp"
#include "parsync/model/native/slot_draws.hpp"

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

void the_master_grants_idle_slots_only() {
  const SlotTable table(settings_of(300, 3, 2.0));
  CellMaster master(table, 0);
  IdleSlots first = master.idle(), second = master.idle();
  SlotDraws sampler(table.partitions);
  agora::Stream stream(5);
  std::vector<Pick> a, b;
  sampler.from_all(first, 120, stream, a);
  sampler.from_all(second, 120, stream, b);
  std::vector<uint8_t> in_use;
  master.note_in_use(b, in_use);
  CHECK(master.grant(0, a, in_use).winners.size() == 120);
  const CellMaster::Outcome outcome = master.grant(0, b, in_use);
  const std::vector<Pick> won(outcome.winners.begin(), outcome.winners.end());
  const size_t granted = won.size();
  CHECK(granted < 120);
  size_t winners = 0;
  for (size_t i = 0; i < b.size(); ++i)
    if (outcome.accepted[i]) CHECK(won[winners++].slot == b[i].slot);
  CHECK(winners == granted);
  CHECK(master.idle().count() == 300 - 120 - static_cast<int64_t>(granted));
  check_sums(master.idle());
  master.free(a);
  master.free(won);
  CHECK(master.idle().count() == 300);
  check_sums(master.idle());
}

void claims_are_served_one_after_the_other() {
  const SlotTable table(settings_of(100, 2, 0.0));
  CellMaster master(table, 10);
  const uint32_t other = static_cast<uint32_t>(table.groups_per_partition);
  const std::vector<Pick> claims{{0, 0}, {1, 0}, {50, other}};
  CHECK(master.answered_ns(1000, claims) == 1020);
  CHECK(master.answered_ns(1005, std::vector<Pick>{{51, other}}) == 1020);
  CHECK(master.answered_ns(1005, std::vector<Pick>{{2, 0}}) == 1030);
  CHECK(master.answered_ns(2000, std::vector<Pick>{{3, 0}}) == 2010);
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
  the_master_grants_idle_slots_only();
  claims_are_served_one_after_the_other();
}
