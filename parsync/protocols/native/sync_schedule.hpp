// When an agent synchronises next, and what it has seen since the last time.
//
//   start() ──> timer of k ──> on_due(k) ──> timer of the next one that is still to come ──> ...
//
// A runtime may deliver a timer late. Synchronisations that have become due meanwhile are done
// together. Of more than kMostTogether, which a runtime leaves out where nothing happens for long,
// the policy is not asked for each if it can tell the last: every partition is refreshed then.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "parsync/core/native/participant.hpp"
#include "sync_policies.hpp"

namespace agora {

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
