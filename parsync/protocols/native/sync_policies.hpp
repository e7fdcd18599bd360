// Which partitions an agent refreshes, and when: the contract of a sync policy, as described in
// parsync/protocols/optimistic/sync/policy.py, and the built-in ones. Those of users are Python's
// (bound_parts.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shared_state/native/fields.hpp"

namespace agora {

// What an agent has seen since its last periodic synchronisation. Vectors are by partition.
struct SyncFeedback {
  int64_t now_us;
  std::vector<int64_t> claims;         // whose outcome it learned
  std::vector<int64_t> conflicts;      // those of them that were rejected as conflicts
  std::vector<int64_t> rows_changed;   // machines that had changed when a partition was refreshed
  int64_t delay_us;                    // the moving average of its scheduling delay
  int64_t queued;                      // tasks that wait with it
  std::vector<int64_t> used_permille;  // how much of the first resource is in use
};

class SyncPolicy {
 public:
  SyncPolicy() = default;
  virtual ~SyncPolicy() = default;
  SyncPolicy(const SyncPolicy&) = delete;
  SyncPolicy& operator=(const SyncPolicy&) = delete;

  // Whether the agent also refreshes everything before each decision round.
  virtual bool at_every_attempt() const = 0;
  // How long an agent that found no room waits before it looks again, at least 1; none: its
  // periodic synchronisations wake it.
  virtual std::optional<int64_t> retry_us() const = 0;
  // Whether observe() is to be called.
  virtual bool wants_feedback() const = 0;

  // When the k-th synchronisation is due, later than the one before it; none: there are no more.
  virtual std::optional<int64_t> due_us(int64_t k) = 0;
  // The partitions that it refreshes, each once, in the order of refreshing.
  virtual SharedColumn<int32_t> partitions(int64_t k) = 0;
  // The number of the last synchronisation that is due by now_us; none: only asking for each tells.
  virtual std::optional<int64_t> latest(int64_t now_us) = 0;

  // Called when a synchronisation is due, before it is asked for; once for all that are due
  // together.
  virtual void observe(const SyncFeedback& feedback) = 0;
};

// The built-in sync policies. Their Python makers (parsync/protocols/optimistic/sync/built_in.py)
// check that the gap and the partitions suit them, and give them their names.
//
//   StateSync             everything once in a gap G         state_aligned, state_staggered
//   BlockSync             P/N partitions every G/N           diff_block, same_block
//   SinglePartitionSync   one partition every G/P            diff_single
//   EveryAttemptSync      everything before each round       every_attempt
//
// How stale views are on average under each: parsync/model/staleness.py. Times are computed from k,
// never accumulated, so that integer division loses nothing over a run; for times of more than 64
// bits, due_us() and latest() throw std::overflow_error.

// What a policy is made for: the agent `index` of the `agents` (N) of its sync set, with the gap G
// and the number of partitions P. G leaves a microsecond for each agent and partition.
struct SyncContext {
  int64_t gap_us;
  int64_t partitions;
  int64_t index;
  int64_t agents;
};

// The usual answers of a policy with periodic synchronisations and nothing else.
class PeriodicSync : public SyncPolicy {
 public:
  bool at_every_attempt() const override { return false; }
  std::optional<int64_t> retry_us() const override { return std::nullopt; }
  bool wants_feedback() const override { return false; }
  void observe(const SyncFeedback&) override {}
};

// ParSync section 4.3: all agents refresh everything at multiples of G, or agent i at k G + i G / N
// when staggered.
class StateSync final : public PeriodicSync {
 public:
  // Throws std::invalid_argument if the context is none of an agent, or its gap is too short; so do
  // the others.
  StateSync(const SyncContext& context, bool staggered);

  std::optional<int64_t> due_us(int64_t k) override;
  SharedColumn<int32_t> partitions(int64_t) override { return all_; }
  std::optional<int64_t> latest(int64_t now_us) override;

 private:
  const int64_t gap_us_;
  const int64_t offset_us_;
  const SharedColumn<int32_t> all_;
};

// ParSync sections 5.1 and 5.2: in round r agent i refreshes block (i + r) mod N (DiffSyn), or
// everybody block r mod N (SameSyn).
class BlockSync final : public PeriodicSync {
 public:
  BlockSync(const SyncContext& context, bool same_block);

  std::optional<int64_t> due_us(int64_t k) override;
  SharedColumn<int32_t> partitions(int64_t k) override;
  std::optional<int64_t> latest(int64_t now_us) override;

 private:
  const SyncContext of_;
  const int64_t first_block_;
};

// DiffSyn one partition at a time (ParSync supplement A.3): agents start evenly spread over the
// partitions.
class SinglePartitionSync final : public PeriodicSync {
 public:
  explicit SinglePartitionSync(const SyncContext& context);

  std::optional<int64_t> due_us(int64_t k) override;
  SharedColumn<int32_t> partitions(int64_t k) override;
  std::optional<int64_t> latest(int64_t now_us) override;

 private:
  const SyncContext of_;
  const int64_t first_;
};

// Omega's synchronisation (ParSync section 1): everything before each decision round, and never
// otherwise. Nothing tells the agent of what changes in between: if it found no room, it tries
// again after the gap, or when it gets a new task.
class EveryAttemptSync final : public SyncPolicy {
 public:
  explicit EveryAttemptSync(const SyncContext& context);

  bool at_every_attempt() const override { return true; }
  std::optional<int64_t> retry_us() const override { return gap_us_; }
  bool wants_feedback() const override { return false; }
  void observe(const SyncFeedback&) override {}

  std::optional<int64_t> due_us(int64_t) override { return std::nullopt; }
  SharedColumn<int32_t> partitions(int64_t) override { return all_; }
  std::optional<int64_t> latest(int64_t) override { return std::nullopt; }

 private:
  const int64_t gap_us_;
  const SharedColumn<int32_t> all_;
};

}  // namespace agora
