// What a slot simulation measures, by time bin and group of schedulers.
//
// A claim counts where the master handles it: accepted (a commit) or a conflict. Delays of a task
// end when the master has answered, and begin
//   delay            at the arrival of its batch;
//   conflict delay   at the start of its batch, and count only what exceeds the time to decide each
//                    task of the batch once and to send the claims: deciding losers again, waiting
//                    for the next synchronisation with an empty view, queueing at the master.
// Slices divide the time between two synchronisations of a scheduler into equal parts; a claim
// counts in that of its handling.
//
// Histograms of delays have the layout of parsync/metrics/histogram.py (microseconds, 128 buckets
// per power of two); those of scores divide the range of all slots' scores into equal buckets.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "cell_master.hpp"
#include "shared_state/native/random.hpp"

namespace agora::slots {

constexpr int kDelaySubBits = 7;
constexpr uint64_t kLongestDelayUs = uint64_t{1} << 40;

// The bucket of a delay.
constexpr size_t delay_bucket(int64_t delay_ns) {
  const uint64_t us =
      std::min(static_cast<uint64_t>(std::max<int64_t>(delay_ns, 0)) / 1000, kLongestDelayUs);
  const int shift = std::max(static_cast<int>(std::bit_width(us)) - (kDelaySubBits + 1), 0);
  return (static_cast<size_t>(shift) << kDelaySubBits) + static_cast<size_t>(us >> shift);
}
constexpr size_t kDelayBuckets = delay_bucket(static_cast<int64_t>(kLongestDelayUs) * 1000) + 1;

constexpr size_t kScoreBuckets = 1024;
constexpr size_t score_bucket(uint16_t score) { return score / (65536 / kScoreBuckets); }

// Counts of one bin and group. A column each in the results.
struct GroupCounts {
  int64_t claims = 0;
  int64_t conflicts = 0;
  ConflictCauses causes;
  int64_t commits = 0;
  int64_t transactions = 0;
  int64_t arrived = 0;
  int64_t delay_ns = 0;           // sum over commits
  int64_t conflict_delay_ns = 0;  // sum over commits
  int64_t score = 0;              // sum over commits, in steps (SlotTable)
};

// Counts of one bin, group and slice.
struct SliceCounts {
  int64_t claims = 0;
  int64_t conflicts = 0;
  int64_t commits = 0;
  int64_t conflict_delay_ns = 0;
};

// Slots in use, and their scores in steps (SlotTable).
struct SlotsInUse {
  int64_t slots = 0;
  int64_t score = 0;  // summed over them
  int64_t best = 0;   // the highest sum that so many slots of the cell can have
};

// State of the cell over the time of a bin, and at its end.
struct CellCounts {
  int64_t busy_ns = 0;  // slots in use, summed over time
  // the sum of their scores, summed over time and rounded down to 1 step x ms
  int64_t score_ms = 0;
  int64_t best_score_ms = 0;  // the same of the highest sum
  int64_t busy = 0;           // slots, at the bin's end
  int64_t idle = 0;
};

// Counts that grow to the largest bucket in use.
class Histogram {
 public:
  void add(size_t bucket, uint32_t count) {
    if (bucket >= counts_.size()) counts_.resize(bucket + 1);
    counts_[bucket] += count;
  }
  const std::vector<uint32_t>& counts() const { return counts_; }

 private:
  std::vector<uint32_t> counts_;
};

struct Bin {
  int64_t end_ns = 0;
  CellCounts cell;
  std::vector<GroupCounts> groups;
  std::vector<int64_t> backlog;     // [groups]: arrived and not committed, at the bin's end
  std::vector<SliceCounts> slices;  // [groups x slices]
  std::vector<Histogram> delay, conflict_delay, score;  // [groups]

  int64_t backlog_all() const {
    return std::accumulate(backlog.begin(), backlog.end(), int64_t{0});
  }
  int64_t commits() const {
    int64_t sum = 0;
    for (const GroupCounts& group : groups) sum += group.commits;
    return sum;
  }
};

class Measurements {
 public:
  Measurements(size_t groups, size_t slices, int64_t bin_ns)
      : groups_(groups), slices_(slices), bin_ns_(bin_ns), backlog_(groups) {
    open();
  }

  const std::vector<Bin>& bins() const { return bins_; }  // those that are over
  size_t slices() const { return slices_; }
  int64_t bin_start_ns() const { return current_.end_ns - bin_ns_; }
  int64_t bin_end_ns() const { return current_.end_ns; }

  void arrived(size_t group, int64_t tasks) {
    current_.groups[group].arrived += tasks;
    backlog_[group] += tasks;
  }

  // From now on these are in use.
  void in_use_from(int64_t now_ns, const SlotsInUse& in_use) {
    const int64_t for_ns = now_ns - in_use_since_ns_;
    current_.cell.busy_ns += in_use_.slots * for_ns;
    score_ns_ += static_cast<Int128>(in_use_.score) * for_ns;
    best_score_ns_ += static_cast<Int128>(in_use_.best) * for_ns;
    in_use_since_ns_ = now_ns;
    in_use_ = in_use;
  }

  void transaction(size_t group, size_t slice, int64_t claims, int64_t commits,
                   const ConflictCauses& causes) {
    GroupCounts& counts = current_.groups[group];
    ++counts.transactions;
    counts.claims += claims;
    counts.conflicts += claims - commits;
    counts.causes += causes;
    counts.commits += commits;
    SliceCounts& part = current_.slices[group * slices_ + slice];
    part.claims += claims;
    part.conflicts += claims - commits;
    part.commits += commits;
    backlog_[group] -= commits;
  }

  // Of some commits of the transaction.
  void delays(size_t group, size_t slice, int64_t commits, int64_t delay_ns,
              int64_t conflict_delay_ns) {
    GroupCounts& counts = current_.groups[group];
    counts.delay_ns += commits * delay_ns;
    counts.conflict_delay_ns += commits * conflict_delay_ns;
    current_.slices[group * slices_ + slice].conflict_delay_ns += commits * conflict_delay_ns;
    current_.delay[group].add(delay_bucket(delay_ns), static_cast<uint32_t>(commits));
    current_.conflict_delay[group].add(delay_bucket(conflict_delay_ns),
                                       static_cast<uint32_t>(commits));
  }

  void score(size_t group, uint16_t score) {
    current_.groups[group].score += score;
    current_.score[group].add(score_bucket(score), 1);
  }

  // Ends the current bin, at its end or before (the last one).
  void close(int64_t now_ns, int64_t idle) {
    in_use_from(now_ns, in_use_);
    current_.end_ns = now_ns;
    current_.cell.busy = in_use_.slots;
    current_.cell.score_ms = static_cast<int64_t>(score_ns_ / 1'000'000);
    current_.cell.best_score_ms = static_cast<int64_t>(best_score_ns_ / 1'000'000);
    current_.cell.idle = idle;
    current_.backlog = backlog_;
    bins_.push_back(std::move(current_));
    open();
  }

 private:
  void open() {
    current_ = Bin{};
    score_ns_ = best_score_ns_ = 0;
    current_.end_ns = static_cast<int64_t>(bins_.size() + 1) * bin_ns_;
    current_.groups.resize(groups_);
    current_.slices.resize(groups_ * slices_);
    current_.delay.resize(groups_);
    current_.conflict_delay.resize(groups_);
    current_.score.resize(groups_);
  }

  size_t groups_, slices_;
  int64_t bin_ns_;
  std::vector<int64_t> backlog_;
  SlotsInUse in_use_;
  int64_t in_use_since_ns_ = 0;
  Int128 score_ns_ = 0, best_score_ns_ = 0;  // in this bin
  Bin current_;
  std::vector<Bin> bins_;
};

}  // namespace agora::slots
