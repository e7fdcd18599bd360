#include "round_planner.hpp"

#include <algorithm>
#include <stdexcept>

#include "shared_state/native/random.hpp"
#include "strategies.hpp"

namespace agora {

const ClaimedPlan& RoundPlanner::plan(ClusterView& view, const Round& round,
                                      std::span<const int32_t> partition_order) {
  never_.clear();
  if (units_ != nullptr) units_->among(round.offered, round.now_us, never_);
  const int64_t services = count_services(task_class_, round.offered);
  const uint64_t stream =
      stream_key(settings_.seed, settings_.name, static_cast<uint64_t>(round.number));
  const size_t in_flight = view.claims_in_flight();
  plan_ = planner_.plan_and_claim(
      view, round.offered, {stream, round.ranking, settings_.quality, partition_order}, never_);
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
  for (const int64_t id : task) {
    if (id < 0 || static_cast<size_t>(id) >= task_class.size())
      throw std::invalid_argument("task " + std::to_string(id) + ": there is no such task");
    services += task_class[static_cast<size_t>(id)] == kService;
  }
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
