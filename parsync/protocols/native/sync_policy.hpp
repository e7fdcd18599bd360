// Which partitions an agent refreshes, and when: the contract of a sync policy, as described in
// parsync/protocols/optimistic/sync/policy.py. The built-in ones are sync_policies.hpp; those of
// users are Python's (bound_sync_policy.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shared_state/native/shared_column.hpp"

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

}  // namespace agora
