// Sync policies: which partitions an agent refreshes, and when; and the schedule of one agent,
// which asks its policy.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "parsync/core/native/participant.hpp"
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

// Which partitions an agent refreshes, and when: the contract of a sync policy, as described in
// parsync/protocols/optimistic/sync.py, and the built-in ones. Those of users are Python's
// (bound_parts.hpp).
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

// What a policy is made for: the agent `index` of the `agents` (N) of its sync set, with the gap G
// and the number of partitions P. G leaves a microsecond for each agent and partition.
struct SyncContext {
  int64_t gap_us;
  int64_t partitions;
  int64_t index;
  int64_t agents;
};

// The built-in sync policies. Their Python makers (parsync/protocols/optimistic/sync.py)
// check that the gap and the partitions suit them, and give them their names.
//
//   StateSync             everything once in a gap G         state_aligned, state_staggered
//   BlockSync             P/N partitions every G/N           diff_block, same_block
//   SinglePartitionSync   one partition every G/P            diff_single
//   EveryAttemptSync      everything before each round       every_attempt
//
// How stale views are on average under each: parsync/model/equations.py. Times are computed from k,
// never accumulated, so that integer division loses nothing over a run; for times of more than 64
// bits, due_us() and latest() throw std::overflow_error.

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

// When an agent synchronises next, and what it has seen since the last time.
//
//   start() ──> timer of k ──> on_due(k) ──> timer of the next one that is still to come ──> ...
//
// A runtime may deliver a timer late. Synchronisations that have become due meanwhile are done
// together. Of more than kMostTogether, which a runtime leaves out where nothing happens for long,
// the policy is not asked for each if it can tell the last: every partition is refreshed then.
class SyncSchedule {
 public:
  static constexpr int64_t kMostTogether = 256;  // synchronisations that are asked for one by one

  // policy: outlives the schedule. partitions: their number.
  SyncSchedule(SyncPolicy& policy, size_t partitions);

  SyncPolicy& policy() { return policy_; }
  // When the next one is due; none: there is none, or the agent has not started.
  std::optional<int64_t> next_us() const { return next_us_; }
  // By partition, the machines that had changed in those refreshed since the policy was last given
  // feedback. Whoever refreshes one adds to it.
  std::span<int64_t> rows_changed() { return rows_changed_; }

  // Sets the timer of the first synchronisation that is still to come.
  void start(int64_t now_us, Effects& effects);

  // The partitions to refresh at the k-th synchronisation and at all later ones that are due;
  // appends the timer of the next.
  //
  // delay_us, queued, load: for SyncFeedback; load() gives used_permille, and is asked only if the
  // policy wants feedback.
  SharedColumn<int32_t> on_due(int64_t now_us, int64_t k, int64_t delay_us, int64_t queued,
                               const std::function<std::vector<int64_t>()>& load, Effects& effects);

  // Notes a transaction's outcome: the partition of each of its claims, and whether the claim was a
  // conflict. Throws std::invalid_argument if these differ in length, or for a partition that does
  // not exist.
  void on_committed(std::span<const int32_t> partition, std::span<const uint8_t> conflict);

 private:
  void set_timer(std::optional<int64_t> due_us, int64_t k, Effects& effects);
  SyncFeedback take_feedback(int64_t now_us, int64_t delay_us, int64_t queued,
                             std::vector<int64_t> used_permille);

  SyncPolicy& policy_;
  std::optional<int64_t> next_us_;

  // since the policy was last given feedback, by partition
  std::vector<int64_t> claims_;
  std::vector<int64_t> conflicts_;
  std::vector<int64_t> rows_changed_;
};

}  // namespace agora
