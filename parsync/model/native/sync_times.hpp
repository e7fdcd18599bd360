// When schedulers synchronise, and what: the sync policies of the optimistic protocol
// (parsync/protocols/optimistic/sync/), with the same formulas.
//
// Events are numbered; the k-th time is computed from k, never accumulated. Staggered, event
// k N + i is the k-th of scheduler i alone; in all other modes event k is everybody's. Everybody
// has seen everything at time 0. Synchronisation takes no time and is not delayed by messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "slot_settings.hpp"

namespace agora::slots {

class SyncTimes {
 public:
  struct Range {
    size_t first;
    size_t end;
  };

  explicit SyncTimes(const SlotSettings& settings)
      : mode_(settings.sync),
        gap_ns_(settings.gap_ns),
        schedulers_(settings.schedulers()),
        partitions_(settings.partitions) {}

  bool one_by_one() const { return mode_ == SyncMode::StateStaggered; }
  bool refreshes_all() const {
    return mode_ == SyncMode::StateAligned || mode_ == SyncMode::StateStaggered;
  }
  int64_t first_event() const { return one_by_one() ? schedulers_ : 1; }
  // one_by_one(): whose event it is.
  size_t scheduler(int64_t event) const { return static_cast<size_t>(event % schedulers_); }

  int64_t due_ns(int64_t event) const {
    switch (mode_) {
      case SyncMode::StateAligned:
        return event * gap_ns_;
      case SyncMode::StateStaggered:
        return event / schedulers_ * gap_ns_ + event % schedulers_ * gap_ns_ / schedulers_;
      case SyncMode::DiffSingle:
        return event * gap_ns_ / partitions_;
      case SyncMode::DiffBlock:
      case SyncMode::SameBlock:
        return event * gap_ns_ / schedulers_;
    }
    return 0;
  }

  // When a scheduler that synchronises at this event does so again.
  int64_t following_ns(int64_t event) const {
    return due_ns(event + (one_by_one() ? schedulers_ : 1));
  }

  // What scheduler i refreshes at the event.
  Range partitions(int64_t event, int64_t i) const {
    switch (mode_) {
      case SyncMode::StateAligned:
      case SyncMode::StateStaggered:
        return {0, static_cast<size_t>(partitions_)};
      case SyncMode::DiffSingle: {
        const int64_t partition = (i * partitions_ / schedulers_ + event) % partitions_;
        return {static_cast<size_t>(partition), static_cast<size_t>(partition) + 1};
      }
      case SyncMode::DiffBlock:
        return block((i + event) % schedulers_);
      case SyncMode::SameBlock:
        return block(event % schedulers_);
    }
    return {0, 0};
  }

 private:
  Range block(int64_t number) const {
    return {static_cast<size_t>(number * partitions_ / schedulers_),
            static_cast<size_t>((number + 1) * partitions_ / schedulers_)};
  }

  SyncMode mode_;
  int64_t gap_ns_, schedulers_, partitions_;
};

}  // namespace agora::slots
