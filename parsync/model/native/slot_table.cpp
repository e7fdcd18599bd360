#include "slot_table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "shared_state/native/random.hpp"

namespace agora::slots {

namespace {

constexpr uint32_t kHeaviest = 0x7fffffff;
constexpr int kWeightBits = 16;
constexpr uint32_t kMostInGroup = 0xffff;

std::vector<double> draw_scores(const SlotSettings& settings) {
  Stream stream(stream_key(settings.seed, "slot_simulator/scores", 0));
  const double deviation = std::sqrt(settings.score_variance);
  std::vector<double> scores(static_cast<size_t>(settings.slots), kMeanScore);
  if (deviation > 0)
    for (double& score : scores) score += deviation * stream.normal();
  return scores;
}

bool ranks(const SlotSettings& settings) {
  return settings.partitions > 1 && std::any_of(settings.groups.begin(), settings.groups.end(),
                                                [](const GroupSettings& group) {
                                                  return group.strategy == Strategy::QualityFirst ||
                                                         group.strategy == Strategy::Adaptive;
                                                });
}

// Relative to that of the highest score.
uint32_t weight_of(double score, double highest, SlotWeighting weighting) {
  const double share = weighting == SlotWeighting::ExpScore ? portable_exp(score - highest)
                       : highest > 0                        ? score / highest
                                                            : 0.0;
  return static_cast<uint32_t>(std::max(1.0, share * kHeaviest));
}

// The number of bits of the weight that the 16 significant ones leave out.
int shift_of(uint32_t weight) {
  return std::max(0, static_cast<int>(std::bit_width(weight)) - kWeightBits);
}

// Where the groups of weights in descending order end.
std::vector<uint32_t> group_ends(const std::vector<uint32_t>& weights, size_t begin, size_t end) {
  std::vector<uint32_t> ends;
  size_t first = begin;
  for (size_t i = begin + 1; i <= end; ++i) {
    const bool same = i < end && i - first < kMostInGroup &&
                      std::bit_width(weights[i]) == std::bit_width(weights[first]);
    if (same) continue;
    ends.push_back(static_cast<uint32_t>(i));
    first = i;
  }
  return ends;
}

// For each group, the first slot that weighs no more than the mean of all slots, or the group's
// end.
std::vector<uint32_t> preferred_ends(const SlotTable& table) {
  const auto for_each_group = [&](auto action) {
    for (uint32_t group = 0; group < table.groups(); ++group)
      action(group, table.start[group], table.start[group + 1]);
  };
  int64_t all = 0;  // at most 10^8 slots of 2^31
  for_each_group([&](uint32_t group, uint32_t begin, uint32_t end) {
    int64_t units = 0;
    for (uint32_t slot = begin; slot < end; ++slot) units += table.value[slot].weight;
    all += units << table.shift[group];
  });
  const int64_t mean = all / static_cast<int64_t>(table.slots());  // whole weights: floor is enough
  std::vector<uint32_t> ends(table.groups());
  for_each_group([&](uint32_t group, uint32_t begin, uint32_t end) {
    const auto first = table.value.begin() + begin, last = table.value.begin() + end;
    const auto found = std::partition_point(first, last, [&](const SlotValue& value) {
      return int64_t{value.weight} << table.shift[group] > mean;
    });
    ends[group] = begin + static_cast<uint32_t>(found - first);
  });
  return ends;
}

}  // namespace

SlotTable::SlotTable(const SlotSettings& settings)
    : partitions(static_cast<size_t>(settings.partitions)),
      value(static_cast<size_t>(settings.slots)),
      ranks_partitions(ranks(settings)),
      ranks_by(settings.quality) {
  std::vector<double> scores = draw_scores(settings);
  const auto [lowest, highest] = std::minmax_element(scores.begin(), scores.end());
  const double highest_score = *highest;
  lowest_score = *lowest;
  score_step = (highest_score - lowest_score) / 65535;
  std::vector<uint32_t> weights(scores.size());
  std::vector<std::vector<uint32_t>> ends(partitions);
  for (size_t p = 0; p < partitions; ++p) {
    const size_t begin = p * slots() / partitions, end = (p + 1) * slots() / partitions;
    std::sort(scores.begin() + static_cast<ptrdiff_t>(begin),
              scores.begin() + static_cast<ptrdiff_t>(end), std::greater<>());
    for (size_t i = begin; i < end; ++i) {
      weights[i] = weight_of(scores[i], highest_score, settings.weighting);
      const double steps = score_step > 0 ? (scores[i] - lowest_score) / score_step : 0.0;
      value[i] = {static_cast<uint16_t>(weights[i] >> shift_of(weights[i])),
                  static_cast<uint16_t>(std::min(65535.0, steps + 0.5))};
    }
    ends[p] = group_ends(weights, begin, end);
    groups_per_partition = std::max(groups_per_partition, ends[p].size());
  }
  start.push_back(0);
  for (size_t p = 0; p < partitions; ++p) {
    for (size_t g = 0; g < groups_per_partition; ++g) {
      const uint32_t first = start.back();
      const uint32_t end = g < ends[p].size() ? ends[p][g] : first;
      start.push_back(end);
      partition.push_back(static_cast<uint32_t>(p));
      shift.push_back(static_cast<uint8_t>(end > first ? shift_of(weights[first]) : 0));
      envelope_bits.push_back(
          static_cast<uint8_t>(end > first ? std::bit_width(weights[first]) : 0));
    }
  }
  preferred_end = preferred_ends(*this);
}

}  // namespace agora::slots
