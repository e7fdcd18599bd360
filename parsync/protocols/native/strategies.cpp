#include "strategies.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "shared_state/native/random.hpp"

namespace agora {

namespace {

Int128 divided_down(Int128 value, Int128 by) {
  const Int128 quotient = value / by;
  return value % by < 0 ? quotient - 1 : quotient;
}

}  // namespace

PartitionRanking ranking_by(const Strategy& strategy, int64_t delay_average_us) {
  if (const auto* fixed = std::get_if<FixedStrategy>(&strategy)) return fixed->ranking;
  return delay_average_us >= std::get<AdaptiveStrategy>(strategy).tau_us
             ? PartitionRanking::LatencyFirst
             : PartitionRanking::QualityFirst;
}

RoundRankings::RoundRankings(Strategy strategy, std::optional<Strategy> long_strategy,
                             std::span<const int8_t> task_class)
    : strategy_(strategy), long_strategy_(long_strategy), task_class_(task_class) {
  begin_batch(0);
}

void RoundRankings::begin_batch(int64_t delay_average_us) {
  ranking_ = ranking_by(strategy_, delay_average_us);
  if (long_strategy_) long_ranking_ = ranking_by(*long_strategy_, delay_average_us);
}

bool RoundRankings::is_long(int64_t task) const {
  if (task < 0 || static_cast<size_t>(task) >= task_class_.size())
    throw std::invalid_argument("task " + std::to_string(task) + ": there is no such task");
  return task_class_[static_cast<size_t>(task)] == kService;
}

RoundRankings::Shared RoundRankings::of(std::span<const int64_t> task) const {
  if (task.empty()) return {ranking_, 0};
  const bool first = is_long(task[0]);
  size_t alike = 1;
  while (alike < task.size() && is_long(task[alike]) == first) ++alike;
  return {first ? long_ranking_ : ranking_, alike};
}

void DelayAverage::add(int64_t delay_sum_us, int64_t committed, int64_t batch_size) {
  if (committed <= 0) return;
  if (batch_size <= 0) throw std::invalid_argument("batch_size: expected more than 0");
  const Int128 mean = divided_down(Int128{delay_sum_us} * (Int128{1} << kFraction), committed);
  // of the same sign as scaled_ where it counts: the average stays between the two
  if (mean > INT64_MAX || mean < INT64_MIN)
    throw std::overflow_error("delay_sum_us: expected a mean delay below 2^47 us");
  const Int128 share = Int128{coefficient_permille_} * std::min(committed, batch_size);
  scaled_ +=
      static_cast<int64_t>(divided_down((mean - scaled_) * share, Int128{1000} * batch_size));
}

}  // namespace agora
