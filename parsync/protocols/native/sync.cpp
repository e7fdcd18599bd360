#include "sync.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "optimistic_events.hpp"
#include "shared_state/native/random.hpp"

namespace agora {

namespace {

// All numbers are below 2^63 and divisors positive, so that products and sums fit into 128 bits.

Int128 floor_divide(Int128 value, int64_t by) { return value / by - (value % by < 0 ? 1 : 0); }

int64_t modulo(Int128 value, int64_t by) {
  return static_cast<int64_t>(value - floor_divide(value, by) * by);
}

// As 64 bits: times of an agent, and the numbers of its synchronisations.
int64_t narrow(Int128 value) {
  if (value < std::numeric_limits<int64_t>::min() || value > std::numeric_limits<int64_t>::max())
    throw std::overflow_error("sync policy: a time of more than 64 bits");
  return static_cast<int64_t>(value);
}

// When the k-th of `each` synchronisations in a gap is due, and the last that is due by now_us: the
// greatest k with floor(k G / each) <= now_us.
int64_t due_of_each(int64_t k, int64_t gap_us, int64_t each) {
  return narrow(floor_divide(Int128{k} * gap_us, each));
}
int64_t latest_of_each(int64_t now_us, int64_t gap_us, int64_t each) {
  return narrow(floor_divide((Int128{now_us} + 1) * each - 1, gap_us));
}

// Where the i-th of n equal shares of `whole` begins.
int64_t share_start(int64_t i, int64_t whole, int64_t n) {
  return static_cast<int64_t>(Int128{i} * whole / n);
}

SharedColumn<int32_t> partitions_from(int64_t first, int64_t end) {
  auto [column, numbers] = SharedColumn<int32_t>::make(static_cast<size_t>(end - first));
  std::iota(numbers, numbers + (end - first), static_cast<int32_t>(first));
  return column;
}

const SyncContext& of_agent(const SyncContext& context) {
  if (context.gap_us < 1 || context.partitions < 1 ||
      context.partitions > std::numeric_limits<int32_t>::max() || context.index < 0 ||
      context.index >= context.agents)
    throw std::invalid_argument("sync policy: its context is none of an agent");
  return context;
}

const SyncContext& periodic(const SyncContext& context) {
  if (of_agent(context).gap_us < std::max(context.agents, context.partitions))
    throw std::invalid_argument("sync policy: the gap leaves no time between synchronisations");
  return context;
}

// The number of the synchronisation after the k-th.
int64_t after(int64_t k) {
  if (k == std::numeric_limits<int64_t>::max())
    throw std::overflow_error("sync schedule: a synchronisation's number has more than 64 bits");
  return k + 1;
}

}  // namespace

StateSync::StateSync(const SyncContext& context, bool staggered)
    : gap_us_(periodic(context).gap_us),
      offset_us_(staggered ? share_start(context.index, gap_us_, context.agents) : 0),
      all_(partitions_from(0, context.partitions)) {}

std::optional<int64_t> StateSync::due_us(int64_t k) {
  return narrow(Int128{k} * gap_us_ + offset_us_);
}

std::optional<int64_t> StateSync::latest(int64_t now_us) {
  return narrow(floor_divide(Int128{now_us} - offset_us_, gap_us_));
}

BlockSync::BlockSync(const SyncContext& context, bool same_block)
    : of_(periodic(context)), first_block_(same_block ? 0 : of_.index) {}

std::optional<int64_t> BlockSync::due_us(int64_t k) {
  return due_of_each(k, of_.gap_us, of_.agents);
}

SharedColumn<int32_t> BlockSync::partitions(int64_t k) {
  const int64_t block = modulo(Int128{first_block_} + k, of_.agents);
  return partitions_from(share_start(block, of_.partitions, of_.agents),
                         share_start(block + 1, of_.partitions, of_.agents));
}

std::optional<int64_t> BlockSync::latest(int64_t now_us) {
  return latest_of_each(now_us, of_.gap_us, of_.agents);
}

SinglePartitionSync::SinglePartitionSync(const SyncContext& context)
    : of_(periodic(context)), first_(share_start(of_.index, of_.partitions, of_.agents)) {}

std::optional<int64_t> SinglePartitionSync::due_us(int64_t k) {
  return due_of_each(k, of_.gap_us, of_.partitions);
}

SharedColumn<int32_t> SinglePartitionSync::partitions(int64_t k) {
  const int64_t partition = modulo(Int128{first_} + k, of_.partitions);
  return partitions_from(partition, partition + 1);
}

std::optional<int64_t> SinglePartitionSync::latest(int64_t now_us) {
  return latest_of_each(now_us, of_.gap_us, of_.partitions);
}

EveryAttemptSync::EveryAttemptSync(const SyncContext& context)
    : gap_us_(of_agent(context).gap_us), all_(partitions_from(0, context.partitions)) {}

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
