#include "round_planner.hpp"

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

bool is_of_service(std::span<const int8_t> task_class, int64_t task) {
  if (task < 0 || static_cast<size_t>(task) >= task_class.size())
    throw std::invalid_argument("task " + std::to_string(task) + ": there is no such task");
  return task_class[static_cast<size_t>(task)] == kService;
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

RoundRankings::Shared RoundRankings::of(std::span<const int64_t> task) const {
  if (task.empty()) return {ranking_, 0};
  const bool first = is_of_service(task_class_, task[0]);
  size_t alike = 1;
  while (alike < task.size() && is_of_service(task_class_, task[alike]) == first) ++alike;
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

const ClaimedPlan& RoundPlanner::plan(ClusterView& view, const Round& round,
                                      std::span<const int32_t> partition_order) {
  never_.clear();
  if (units_ != nullptr) units_->among(round.offered, round.now_us, never_);
  const int64_t services = count_services(task_class_, round.offered);
  const uint64_t stream =
      stream_key(settings_.seed, settings_.name, static_cast<uint64_t>(round.number));
  const size_t in_flight = view.claims_in_flight();
  plan_ = planner_.plan_and_claim(
      view, round.offered,
      {stream, round.ranking, settings_.quality, partition_order, round.now_us}, never_);
  if (view.claims_in_flight() != in_flight + 1)
    throw std::logic_error("expected the claims of one plan in the view");

  seqnum_.clear();
  if (settings_.checks_seqnum)
    for (const int32_t row : plan_.machine)
      seqnum_.push_back(view.seqnum()[static_cast<size_t>(row)]);

  const size_t tasks = round.offered.size() - (settings_.charges_kept ? 0 : plan_.too_large);
  work_ = {static_cast<int64_t>(tasks),
           std::min(static_cast<int64_t>(tasks), services),
           plan_.partitions_scanned,
           plan_.operations,
           0,
           0};
  return plan_;
}

int64_t RoundPlanner::decision_us(int64_t elapsed_ns) const {
  if (!clock_) throw std::logic_error("no clock was given");
  DecisionWork work = work_;
  work.elapsed_ns = elapsed_ns;
  return duration_us(*clock_, work);
}

int64_t count_services(std::span<const int8_t> task_class, std::span<const int64_t> task) {
  int64_t services = 0;
  for (const int64_t id : task) services += is_of_service(task_class, id);
  return services;
}

std::optional<RoundWindow> round_window(int64_t now_us, std::optional<int64_t> end_us,
                                        std::optional<int64_t> longest_us, PartitionRanking ranking,
                                        size_t partitions) {
  if (!end_us && !longest_us) return std::nullopt;
  int64_t window_us = longest_us.value_or(INT64_MAX);
  if (end_us) window_us = std::min(window_us, *end_us > now_us ? *end_us - now_us : 0);
  const bool few =
      ranking == PartitionRanking::LatencyFirst || ranking == PartitionRanking::FreshestPreferred;
  return RoundWindow{window_us, few ? 1 : static_cast<int64_t>(partitions)};
}

}  // namespace agora
