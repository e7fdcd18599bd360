#include "sync_schedule.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "optimistic_events.hpp"

namespace agora {
namespace {

// The number of the synchronisation after the k-th.
int64_t after(int64_t k) {
  if (k == std::numeric_limits<int64_t>::max())
    throw std::overflow_error("sync schedule: a synchronisation's number has more than 64 bits");
  return k + 1;
}

}  // namespace

SyncSchedule::SyncSchedule(SyncPolicy& policy, size_t partitions)
    : policy_(policy), claims_(partitions), conflicts_(partitions), rows_changed_(partitions) {}

void SyncSchedule::start(int64_t now_us, Effects& effects) {
  int64_t k = 1;
  std::optional<int64_t> due_us = policy_.due_us(k);
  while (due_us && *due_us <= now_us) {
    k = after(k);
    due_us = policy_.due_us(k);
  }
  set_timer(due_us, k, effects);
}

SharedColumn<int32_t> SyncSchedule::on_due(int64_t now_us, int64_t k, int64_t delay_us,
                                           int64_t queued,
                                           const std::function<std::vector<int64_t>()>& load,
                                           Effects& effects) {
  if (k < 1) throw std::invalid_argument("sync schedule: synchronisations count from 1");
  if (policy_.wants_feedback()) policy_.observe(take_feedback(now_us, delay_us, queued, load()));
  SharedColumn<int32_t> partitions = policy_.partitions(k);

  const int64_t next = after(k);
  int64_t following = next;
  std::vector<int32_t> together;  // of all that are due, if k is not the only one
  const std::optional<int64_t> latest = policy_.latest(now_us);
  if (latest && *latest > k && *latest - k > kMostTogether) {
    together.resize(rows_changed_.size());
    std::iota(together.begin(), together.end(), 0);
    following = after(*latest);
  }
  std::optional<int64_t> due_us = policy_.due_us(following);
  while (due_us && *due_us <= now_us) {
    const SharedColumn<int32_t> more = policy_.partitions(following);
    together.insert(together.end(), more.begin(), more.end());
    following = after(following);
    due_us = policy_.due_us(following);
  }
  set_timer(due_us, following, effects);

  if (following == next) return partitions;  // in the policy's own order
  together.insert(together.end(), partitions.begin(), partitions.end());
  std::ranges::sort(together);
  const auto repeated = std::ranges::unique(together);
  together.erase(repeated.begin(), repeated.end());
  return SharedColumn<int32_t>(together);
}

void SyncSchedule::on_committed(std::span<const int32_t> partition,
                                std::span<const uint8_t> conflict) {
  if (!policy_.wants_feedback()) return;
  if (partition.size() != conflict.size())
    throw std::invalid_argument("on_committed: partition and conflict differ in length");
  const auto exists = [&](int32_t p) { return p >= 0 && static_cast<size_t>(p) < claims_.size(); };
  if (!std::ranges::all_of(partition, exists))
    throw std::invalid_argument("on_committed: a partition does not exist");
  for (size_t i = 0; i < partition.size(); ++i) {
    const auto p = static_cast<size_t>(partition[i]);
    ++claims_[p];
    if (conflict[i]) ++conflicts_[p];
  }
}

void SyncSchedule::set_timer(std::optional<int64_t> due_us, int64_t k, Effects& effects) {
  next_us_ = due_us;
  if (!due_us) return;
  optimistic::SyncDue timer;
  timer.k = k;
  effects.set_timer(*due_us, std::move(timer));
}

SyncFeedback SyncSchedule::take_feedback(int64_t now_us, int64_t delay_us, int64_t queued,
                                         std::vector<int64_t> used_permille) {
  SyncFeedback feedback{
      now_us, claims_, conflicts_, rows_changed_, delay_us, queued, std::move(used_permille)};
  for (std::vector<int64_t>* const count : {&claims_, &conflicts_, &rows_changed_})
    std::ranges::fill(*count, 0);  // in place: rows_changed() stays where it is
  return feedback;
}

}  // namespace agora
