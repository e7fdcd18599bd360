// An agent's view of the cell: how it is refreshed, and how fresh each partition of it is.
//
//              start()                       on_reply()
//   unsynced ───────────> everything asked for ──────────> synced
//                                  ^                          │ a reply of another epoch:
//                                  └──────────────────────────┘ the master was restarted
//   synced or not ── forget() ──> unsynced
//
// Partitions that the agent's group may not use are never synchronised, so that their machines stay
// closed to it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parsync/core/native/events.hpp"
#include "parsync/metrics/native/agent_log.hpp"
#include "shared_state/native/view.hpp"

namespace agora {

class AgentView {
 public:
  // cell: what the agent believes about the cell. visible: the partitions that it may use,
  // ascending, at least one. first_turn: agents turn to equally fresh partitions from different
  // places. Throws std::invalid_argument for a partition that does not exist.
  AgentView(ClusterView& cell, std::vector<int32_t> visible, int64_t first_turn);

  // Nothing is known before the agent's start.
  void start(int64_t now_us);

  // Applies the master's answer, and logs each partition that it refreshes.
  //
  // rounds: decision rounds of the agent so far. rows_changed: the number of machines that had
  // changed is added to the entry of each partition.
  // Returns false if the view was of another epoch than the reply: it is then empty, and every
  // partition has to be requested again.
  // Throws std::invalid_argument for a delta that does not follow the state held
  // (ClusterView::apply); the deltas before it are applied.
  bool on_reply(int64_t now_us, const SyncReply& reply, int64_t rounds, AgentLog& log,
                std::span<int64_t> rows_changed);

  // Shows nothing any more, until the next reply, which may be of any epoch.
  void forget();

  bool is_synced() const { return epoch_ >= 0; }
  std::span<const int32_t> visible() const { return visible_; }
  // The partitions from the freshest to the stalest; in their order before the first
  // synchronisation.
  std::span<const int32_t> order() const { return order_; }

  // The partition of a machine that exists.
  int32_t partition_of(int32_t machine) const {
    return static_cast<int32_t>(cell_.static_state().index.partition_of(machine));
  }

  // The mean age of the partitions that the agent may use.
  int64_t staleness_us(int64_t now_us) const;
  // How much of the first resource is in use in each partition, in thousandths: machines that are
  // down, or were never synchronised, count as empty and without capacity.
  std::vector<int64_t> used_permille() const;

  // Whether the view has changed since the agent last set this to false.
  bool changed = false;

 private:
  int64_t age_us(const PartitionDelta& delta) const;

  ClusterView& cell_;
  const std::vector<int32_t> visible_;
  const int64_t first_turn_;
  std::vector<int32_t> order_;
  // as of when a partition that is not synced was known last; the agent's start if never
  std::vector<int64_t> known_us_;
  int64_t epoch_ = -1;  // the master's epoch that this view is of; -1: never synced
};

// Sorts the partitions by the time of their last sync, latest first. Those with the same time
// descend from `latest`, and after 0 from the last partition. Throws std::invalid_argument if there
// is no partition `latest`.
void freshness_order(std::span<const int64_t> synced_us, int64_t latest,
                     std::vector<int32_t>& order);

// Mean over n > 0 partitions of the time since each was synced (ParSync section 5.1): the mean time
// of the syncs is floored.
int64_t average_staleness_us(std::span<const int64_t> synced_us, int64_t now_us);

}  // namespace agora
