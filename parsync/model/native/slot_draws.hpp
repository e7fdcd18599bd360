// How a scheduler picks slots: SlotDraws draws them by weight; BestPartition says where
// quality-first draws.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shared_state/native/random.hpp"
#include "slot_table.hpp"

namespace agora::slots {

// Draws slots from a set by weight, without replacement.
//
// The pool is a partition or the whole set. A candidate is a uniform number below the pool's
// envelope: it falls into a partition, a group of it, and there a place of the group's list and a
// number below 2^bits. The candidate counts if that number is below the slot's weight. So a slot is
// drawn exactly in proportion to its weight, and at least every second candidate counts.
//
// Between draws the slots drawn have to leave the pool. They do so by sessions: within one, sums
// and lists stay as they are, and candidates that were drawn before do not count. What counts is
// distributed as if each slot had left at once, wherever a session ends; and since candidates of a
// session do not depend on each other, their memory can be asked for together, which nearly halves
// the time of a draw from views larger than the caches.
//
// A session ends after kLongestSession draws or a quarter of the pool, so that few candidates are
// repeated, and after kMostRepeats that were (one slot may have most of the pool's weight).
// Complexity: O(groups per partition) per draw, with O(P) per session of the whole set.
class SlotDraws {
 public:
  explicit SlotDraws(size_t partitions)
      : partitions_(partitions), blocks_((partitions + kBlock - 1) / kBlock) {}

  // Moves `tasks` slots of the partition from the view to the end of `picks`. Requires: it has
  // so many.
  void from_partition(IdleSlots& view, size_t p, int64_t tasks, Stream& stream,
                      std::vector<Pick>& picks) {
    while (tasks > 0) {
      const int64_t envelope = view.partition(p).envelope;
      tasks -= session(view, std::min(tasks, longest(view.partition(p).count)), picks,
                       [&](Candidate& candidate) {
                         candidate.partition = static_cast<uint32_t>(p);
                         candidate.rest = below(envelope, stream);
                       });
    }
  }

  // The same for the whole view.
  void from_all(IdleSlots& view, int64_t tasks, Stream& stream, std::vector<Pick>& picks) {
    if (partitions_ == 1) return from_partition(view, 0, tasks, stream, picks);
    while (tasks > 0) {
      const int64_t envelope = sum_blocks(view);
      tasks -=
          session(view, std::min(tasks, longest(view.count())), picks, [&](Candidate& candidate) {
            candidate.rest = below(envelope, stream);
            find_partition(view, candidate);
            view.prefetch_counts(candidate.partition);
          });
    }
  }

 private:
  static constexpr int64_t kLongestSession = 32;
  static constexpr int64_t kAtOnce = 16;  // candidates whose memory is asked for together
  static constexpr int64_t kMostRepeats = 4;
  static constexpr size_t kBlock = 8;  // partitions: two short scans instead of one long one

  struct Candidate {
    int64_t rest;  // a unit of the pool's envelope, counted in the partition, in the group
    uint32_t partition;
    uint32_t group;
    uint32_t place;
    int64_t number;  // below 2^bits
    uint32_t slot;
  };

  static int64_t longest(int64_t pool) { return std::clamp<int64_t>(pool / 4, 1, kLongestSession); }
  static int64_t below(int64_t bound, Stream& stream) {
    return static_cast<int64_t>(stream.below(static_cast<uint64_t>(bound)));
  }

  int64_t sum_blocks(const IdleSlots& view) {
    int64_t all = 0;
    for (size_t block = 0; block < blocks_.size(); ++block) {
      int64_t sum = 0;
      for (size_t p = block * kBlock; p < std::min(partitions_, (block + 1) * kBlock); ++p)
        sum += view.partition(p).envelope;
      blocks_[block] = sum;
      all += sum;
    }
    return all;
  }

  void find_partition(const IdleSlots& view, Candidate& candidate) const {
    int64_t rest = candidate.rest;
    size_t block = 0;
    while (rest >= blocks_[block]) rest -= blocks_[block++];
    size_t p = block * kBlock;
    while (rest >= view.partition(p).envelope) rest -= view.partition(p++).envelope;
    candidate.rest = rest;
    candidate.partition = static_cast<uint32_t>(p);
  }

  // Draws at most `most` slots, at least one. choose(candidate) sets partition and rest.
  template <class Choose>
  int64_t session(IdleSlots& view, int64_t most, std::vector<Pick>& picks, Choose choose) {
    drawn_ = 0;
    int64_t repeats = 0;
    while (drawn_ < most && (repeats <= kMostRepeats || drawn_ == 0)) {
      const int64_t count = std::min(kAtOnce, most - drawn_);
      for (int64_t i = 0; i < count; ++i) choose(candidates_[static_cast<size_t>(i)]);
      for (int64_t i = 0; i < count; ++i) find_place(view, candidates_[static_cast<size_t>(i)]);
      for (int64_t i = 0; i < count; ++i) {
        Candidate& candidate = candidates_[static_cast<size_t>(i)];
        candidate.slot = view.slot_at(candidate.group, candidate.place);
        if (!surely_counts(view, candidate))
          __builtin_prefetch(&view.table().value[candidate.slot]);
      }
      for (int64_t i = 0; i < count; ++i) {
        const Candidate& candidate = candidates_[static_cast<size_t>(i)];
        if (!surely_counts(view, candidate) &&
            candidate.number >= view.table().weight(candidate.slot, candidate.group))
          continue;
        if (was_drawn(candidate.slot))
          ++repeats;
        else
          insert(candidate);
      }
    }
    for (size_t i = 0; i < static_cast<size_t>(drawn_); ++i) {
      const Pick pick{slots_[i], static_cast<uint32_t>(places_[i] >> 32)};
      picks.push_back(pick);
    }
    remove_drawn(view);
    return drawn_;
  }

  static void find_place(const IdleSlots& view, Candidate& candidate) {
    const SlotTable& table = view.table();
    int64_t rest = candidate.rest;
    uint32_t group = static_cast<uint32_t>(candidate.partition * table.groups_per_partition);
    while (rest >= view.envelope(group)) rest -= view.envelope(group++);
    const int bits = table.envelope_bits[group];
    candidate.group = group;
    candidate.place = static_cast<uint32_t>(rest >> bits);
    candidate.number = rest & ((int64_t{1} << bits) - 1);
    view.prefetch(group, candidate.place);
  }

  // All weights of a group are at least half of 2^bits, so every second candidate needs no look.
  static bool surely_counts(const IdleSlots& view, const Candidate& candidate) {
    return candidate.number >> (view.table().envelope_bits[candidate.group] - 1) == 0;
  }

  bool was_drawn(uint32_t slot) const {
    bool any = false;
    for (size_t i = 0; i < static_cast<size_t>(drawn_); ++i) any |= slots_[i] == slot;
    return any;
  }

  void insert(const Candidate& candidate) {
    slots_[static_cast<size_t>(drawn_)] = candidate.slot;
    places_[static_cast<size_t>(drawn_)] =
        static_cast<uint64_t>(candidate.group) << 32 | candidate.place;
    ++drawn_;
  }

  // From the last place of a list to the first, so that what takes a removed place is never itself
  // to be removed.
  void remove_drawn(IdleSlots& view) {
    std::sort(places_.begin(), places_.begin() + drawn_, std::greater<>());
    for (size_t i = 0; i < static_cast<size_t>(drawn_); ++i) {
      const uint32_t group = static_cast<uint32_t>(places_[i] >> 32);
      const uint32_t place = static_cast<uint32_t>(places_[i]);
      view.remove_at(place, {view.slot_at(group, place), group});
    }
  }

  size_t partitions_;
  std::vector<int64_t> blocks_;  // envelopes, of the session
  std::array<Candidate, kAtOnce> candidates_;
  int64_t drawn_ = 0;  // in the session
  std::array<uint32_t, kLongestSession> slots_;
  std::array<uint64_t, kLongestSession> places_;  // group << 32 | place
};

// Which partition quality-first picks the next slot from: that with the highest mean over its idle
// slots, as the view stands after the picks before it; ties go to the lowest number.
//
// A tournament tree over the means: O(P) to begin a round, O(log P) per pick. Means are single
// divisions of IEEE doubles, the same on any machine.
class BestPartition {
 public:
  explicit BestPartition(size_t partitions)
      : partitions_(partitions),
        leaves_(std::bit_ceil(partitions)),
        mean_(leaves_, kEmpty),
        best_(2 * leaves_) {}

  void begin(const IdleSlots& view) {
    for (size_t p = 0; p < partitions_; ++p) mean_[p] = mean(view, p);
    for (size_t p = 0; p < leaves_; ++p) best_[leaves_ + p] = static_cast<uint32_t>(p);
    for (size_t node = leaves_; node-- > 1;) play(node);
  }

  size_t best() const { return best_[1]; }
  // To be told of every change of the best partition.
  void best_has_changed(const IdleSlots& view) {
    const size_t p = best_[1];
    mean_[p] = mean(view, p);
    for (size_t node = (leaves_ + p) / 2; node >= 1; node /= 2) play(node);
  }

 private:
  static constexpr double kEmpty = -1e300;

  double mean(const IdleSlots& view, size_t p) const {
    const PartitionSum& sum = view.partition(p);
    if (sum.count == 0) return kEmpty;
    return static_cast<double>(sum.quality) / static_cast<double>(sum.count);
  }
  void play(size_t node) {
    const uint32_t left = best_[2 * node], right = best_[2 * node + 1];
    best_[node] = mean_[right] > mean_[left] ? right : left;
  }

  size_t partitions_, leaves_;
  std::vector<double> mean_;
  std::vector<uint32_t> best_;  // of the subtree; the root is 1
};

}  // namespace agora::slots
