// Integer histograms with logarithmic buckets; parsync/metrics/histogram.py has what is made of
// them.
//
// A value v >= 0 falls into a bucket of width 1 while v < 256, and above that into one of 128 equal
// buckets per power of two. (The layout is that of HdrHistogram by Gil Tene.) Only shifts are used,
// so equal values share a bucket on every machine.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace agora {

constexpr int kSubBits = 7;
constexpr int64_t kLargestValue = int64_t{1} << 40;  // larger values share the last bucket

// The bucket of a value; negative values count as 0.
constexpr int64_t bucket_of(int64_t value) {
  const auto bounded = static_cast<uint64_t>(std::clamp<int64_t>(value, 0, kLargestValue));
  const int shift = std::max(static_cast<int>(std::bit_width(bounded)) - (kSubBits + 1), 0);
  return (int64_t{shift} << kSubBits) + static_cast<int64_t>(bounded >> shift);
}

constexpr int64_t kBuckets = bucket_of(kLargestValue) + 1;

}  // namespace agora
