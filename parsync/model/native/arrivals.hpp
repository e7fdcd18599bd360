// When the batches of one scheduler arrive.
//
// Within a phase a scheduler's batches are evenly spaced: the k-th, from 0, arrives after k + u
// intervals, u being the scheduler's own random offset in [0, 1). Times are computed from k in
// integers, so nothing accumulates. (Without offsets all schedulers' batches would arrive at the
// same instants, and fixed tie orders would favour some of them.)
#pragma once

#include <cstdint>
#include <limits>

#include "shared_state/native/random.hpp"
#include "slot_settings.hpp"

namespace agora::slots {

class BatchArrivals {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // offset: u in units of 2^-32.
  BatchArrivals(const SlotSettings& settings, size_t group, uint32_t offset)
      : settings_(&settings), group_(group), offset_(offset) {
    find_next();
  }

  int64_t next_ns() const { return next_ns_; }  // kNever: there are no more
  void advance() {
    ++k_;
    find_next();
  }

 private:
  void find_next() {
    for (; phase_ < settings_->phases.size(); ++phase_) {
      const PhaseSettings& phase = settings_->phases[phase_];
      next_ns_ = in_phase(phase.rate_per_ks[group_], phase.duration_ns);
      if (next_ns_ != kNever) {
        next_ns_ += begin_ns_;
        return;
      }
      begin_ns_ += phase.duration_ns;
      k_ = 0;
    }
    next_ns_ = kNever;
  }

  // From the start of the phase.
  int64_t in_phase(int64_t rate_per_ks, int64_t duration_ns) const {
    if (rate_per_ks == 0) return kNever;
    const GroupSettings& group = settings_->groups[group_];
    // intervals of batch_tasks x schedulers / rate seconds, in units of 2^-32
    const Int128 intervals = (static_cast<Int128>(k_) << 32) + offset_;
    const Int128 tasks = intervals * (group.batch_tasks * group.schedulers);
    const Int128 at_ns = (tasks * Int128{1'000'000'000'000} / rate_per_ks) >> 32;
    return at_ns < duration_ns ? static_cast<int64_t>(at_ns) : kNever;
  }

  const SlotSettings* settings_;
  size_t group_;
  uint32_t offset_;
  size_t phase_ = 0;
  int64_t begin_ns_ = 0;  // of the phase
  int64_t k_ = 0;
  int64_t next_ns_ = kNever;
};

}  // namespace agora::slots
