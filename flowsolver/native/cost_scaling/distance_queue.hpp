// A priority queue of nodes by integer distance for searches whose distances never decrease:
// multi-level buckets.
//
// Definitions. `last` is the distance taken last; inserted distances are not below it. A distance
// is written in four digits of eight bits. Level l has a bucket for every value of digit l. A
// distance is kept at the level of its highest digit that differs from `last`'s (level 0 if none
// does).
//
// Method. The nearest node is in the first nonempty bucket of the lowest nonempty level. At level 0
// all entries of a bucket have the same distance; a bucket of another level is distributed to the
// levels below it once `last` has reached it. A node whose distance falls is inserted again; the
// outdated entry is recognised when it is taken, by comparing it with the node's distance.
//
// Complexity. Each entry moves at most three times, and not at all beyond the distance at which the
// search ends: unlike with one bucket per distance, the range of distances costs nothing. Equal
// distances: last in, first out.
//
// References. Denardo and Fox, Shortest-route methods: 1 (1979); Cherkassky, Goldberg, Silverstein,
// Buckets, heaps, lists, and monotone priority queues (1999).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "network.hpp"

namespace flowsolver {

class DistanceQueue {
 public:
  DistanceQueue() { head_.fill(kNone); }

  void clear() {
    for (int word = 0; word < kWords; ++word) {
      // bounded: by the bits of a word
      for (std::uint64_t used = used_[word]; used != 0; used &= used - 1)
        head_[64 * word + std::countr_zero(used)] = kNone;
      used_[word] = 0;
    }
    entries_.clear();
    last_ = 0;
  }

  void insert(NodeId v, std::uint32_t distance) {
    entries_.push_back({v, distance, kNone});
    link(static_cast<std::uint32_t>(entries_.size() - 1));
  }

  // Takes the nearest node v whose entry has the distance distance_of(v); kNone if the queue is
  // empty.
  template <class DistanceOf>
  NodeId take(const DistanceOf& distance_of) {
    // bounded: each entry is taken or goes to a lower level
    for (int level = 0; level < kLevels;) {
      const int bucket = first_used(level);
      if (bucket == kNoBucket) {
        ++level;
        continue;
      }
      std::uint32_t entry = head_[bucket];
      if (level == 0) {
        const Entry taken = entries_[entry];
        head_[bucket] = taken.after;
        if (taken.after == kNone) used_[bucket / 64] &= ~(std::uint64_t{1} << bucket % 64);
        last_ = taken.distance;
        if (distance_of(taken.node) == taken.distance) return taken.node;
        continue;
      }
      head_[bucket] = kNone;
      used_[bucket / 64] &= ~(std::uint64_t{1} << bucket % 64);
      last_ = entries_[entry].distance >> (kDigitBits * level) << (kDigitBits * level);
      while (entry != kNone) {  // bounded: by the entries of a bucket
        const std::uint32_t after = entries_[entry].after;
        if (distance_of(entries_[entry].node) == entries_[entry].distance) link(entry);
        entry = after;
      }
      level = 0;
    }
    return kNone;
  }

 private:
  struct Entry {
    NodeId node;
    std::uint32_t distance, after;
  };
  static constexpr int kDigitBits = 8, kLevels = 4, kDigits = 1 << kDigitBits,
                       kWords = kLevels * kDigits / 64;
  static constexpr int kNoBucket = -1;

  void link(std::uint32_t entry) {
    const std::uint32_t distance = entries_[entry].distance;
    const int level = distance == last_ ? 0 : (std::bit_width(distance ^ last_) - 1) / kDigitBits;
    const int bucket =
        level * kDigits + static_cast<int>(distance >> (kDigitBits * level) & (kDigits - 1));
    entries_[entry].after = head_[bucket];
    head_[bucket] = entry;
    used_[bucket / 64] |= std::uint64_t{1} << bucket % 64;
  }

  int first_used(int level) const {
    for (int word = level * kDigits / 64; word < (level + 1) * kDigits / 64; ++word) {
      if (used_[word] != 0) return 64 * word + std::countr_zero(used_[word]);
    }
    return kNoBucket;
  }

  std::array<std::uint32_t, kLevels * kDigits> head_;
  std::array<std::uint64_t, kWords> used_{};
  std::vector<Entry> entries_;
  std::uint32_t last_ = 0;
};

}  // namespace flowsolver
