#include "price_tree.hpp"

#include <algorithm>
#include <bit>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace agora {

[[gnu::always_inline]] inline int16_t PriceTree::lowest_of(const int16_t* ranks) {
  int16_t lowest = kNone;
  for (size_t i = 0; i < kChildren; ++i) lowest = std::min(lowest, ranks[i]);
  return lowest;
}

// The bits of those of 64 ranks that are equal to one.
[[gnu::always_inline]] inline uint64_t PriceTree::equal_to(const int16_t* ranks, int16_t rank) {
  uint64_t equal = 0;
#ifdef __SSE2__
  const __m128i wanted = _mm_set1_epi16(rank);
  for (size_t i = 0; i < kChildren; i += 16) {
    const __m128i* at = reinterpret_cast<const __m128i*>(ranks + i);
    const __m128i both = _mm_packs_epi16(_mm_cmpeq_epi16(_mm_loadu_si128(at), wanted),
                                         _mm_cmpeq_epi16(_mm_loadu_si128(at + 1), wanted));
    equal |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(both))) << i;
  }
#else
  for (size_t i = 0; i < kChildren; ++i) equal |= static_cast<uint64_t>(ranks[i] == rank) << i;
#endif
  return equal;
}

[[gnu::always_inline]] inline uint32_t PriceTree::count_equal(const int16_t* ranks, int16_t rank) {
  int16_t count = 0;
  for (size_t i = 0; i < kChildren; ++i) count = static_cast<int16_t>(count + (ranks[i] == rank));
  return static_cast<uint32_t>(count);
}

// Of those that are at most as high as one below kNone.
[[gnu::always_inline]] inline uint64_t PriceTree::at_most(const int16_t* ranks, int16_t rank) {
  uint64_t low = 0;
#ifdef __SSE2__
  const __m128i above = _mm_set1_epi16(static_cast<int16_t>(rank + 1));
  for (size_t i = 0; i < kChildren; i += 16) {
    const __m128i* at = reinterpret_cast<const __m128i*>(ranks + i);
    const __m128i both = _mm_packs_epi16(_mm_cmplt_epi16(_mm_loadu_si128(at), above),
                                         _mm_cmplt_epi16(_mm_loadu_si128(at + 1), above));
    low |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(both))) << i;
  }
#else
  for (size_t i = 0; i < kChildren; ++i) low |= static_cast<uint64_t>(ranks[i] <= rank) << i;
#endif
  return low;
}

[[gnu::always_inline]] inline uint64_t PriceTree::equal_in_leaf(size_t node, int16_t rank) const {
  const size_t first = node * kChildren;
  if (first + kChildren <= ranks_.size()) return equal_to(ranks_.data() + first, rank);
  uint64_t equal = 0;
  for (size_t i = first; i < ranks_.size(); ++i)
    equal |= static_cast<uint64_t>(ranks_[i] == rank) << (i - first);
  return equal;
}

[[gnu::always_inline]] inline uint64_t PriceTree::at_most_in_leaf(size_t node, int16_t rank) const {
  const size_t first = node * kChildren;
  if (first + kChildren <= ranks_.size()) return at_most(ranks_.data() + first, rank);
  uint64_t low = 0;
  for (size_t i = first; i < ranks_.size(); ++i)
    low |= static_cast<uint64_t>(ranks_[i] <= rank) << (i - first);
  return low;
}

// The 64 ranks at a node of the lowest tier, or fewer at the last one.
[[gnu::always_inline]] inline PriceTree::Lowest PriceTree::look_at(size_t node) const {
  const size_t first = node * kChildren;
  const int16_t* ranks = ranks_.data() + first;
  if (first + kChildren <= ranks_.size()) {
    const int16_t lowest = lowest_of(ranks);
    return {lowest, count_equal(ranks, lowest)};
  }
  const auto last = ranks_.subspan(first);
  const int16_t lowest = *std::min_element(last.begin(), last.end());
  return {lowest, static_cast<uint32_t>(std::count(last.begin(), last.end(), lowest))};
}

void PriceTree::build(std::span<int16_t> ranks) {
  ranks_ = ranks;
  size_t nodes = ranks.size();
  size_t tier = 0;
  for (; tier == 0 || nodes > 1; ++tier) {
    nodes = std::max<size_t>((nodes + kChildren - 1) / kChildren, 1);
    if (tier == tiers_.size()) tiers_.emplace_back();
    const size_t padded = (nodes + kChildren - 1) / kChildren * kChildren;
    tiers_[tier].lowest.assign(padded, kNone);
    tiers_[tier].count.assign(padded, 0);
    for (size_t node = 0; node < nodes; ++node) look_again(tier, node);
  }
  tiers_.resize(tier);  // it may have been built over more rows before
  root_ = {tiers_.back().lowest[0], tiers_.back().count[0]};
}

void PriceTree::look_again(size_t tier, size_t node) {
  Lowest found{kNone, 0};
  if (tier > 0) {
    const Tier& below = tiers_[tier - 1];
    const size_t first = node * kChildren;
    found.rank = lowest_of(below.lowest.data() + first);
    for (uint64_t equal = equal_to(below.lowest.data() + first, found.rank); equal != 0;
         equal &= equal - 1)
      found.count += below.count[first + static_cast<size_t>(std::countr_zero(equal))];
  } else if (!ranks_.empty()) {
    found = look_at(node);
  }
  tiers_[tier].lowest[node] = found.rank;
  tiers_[tier].count[node] = found.rank == kNone ? 0 : found.count;
}

void PriceTree::set(size_t row, int16_t rank) {
  int16_t before = ranks_[row];
  if (before == rank) return;
  ranks_[row] = rank;
  // How many rows of the rank `before` the child at hand had, and how many of `rank` it has now.
  uint32_t had = 1, has = 1;
  size_t child = row;
  for (size_t tier = 0; tier < tiers_.size(); ++tier) {
    const size_t node = child / kChildren;
    int16_t& lowest = tiers_[tier].lowest[node];
    uint32_t& count = tiers_[tier].count[node];
    const int16_t lowest_before = lowest;
    const uint32_t count_before = count;
    const uint32_t left = before == lowest && before != kNone ? count - had : count;
    if (rank < lowest) {
      lowest = rank;
      count = has;
    } else if (rank == lowest && rank != kNone) {
      count = left + has;
    } else if (left > 0 || before != lowest) {
      count = left;
    } else {
      look_again(tier, node);
    }
    if (lowest == lowest_before && count == count_before) return;
    before = lowest_before;
    had = count_before;
    rank = lowest;
    has = count;
    child = node;
  }
  root_ = {rank, has};
}

bool PriceTree::take_up_to(int16_t rank, size_t limit, std::vector<Taken>& taken) {
  const bool all = take_up_to(rank, tiers_.size() - 1, 0, taken.size() + limit, taken);
  root_ = {tiers_.back().lowest[0], tiers_.back().count[0]};
  return all;
}

bool PriceTree::take_up_to(int16_t rank, size_t tier, size_t node, size_t end,
                           std::vector<Taken>& taken) {
  const size_t first = node * kChildren;
  bool all = true;
  if (tier == 0) {
    for (uint64_t low = at_most_in_leaf(node, rank); low != 0; low &= low - 1) {
      const size_t row = first + static_cast<size_t>(std::countr_zero(low));
      taken.push_back({static_cast<uint32_t>(row), ranks_[row]});
      ranks_[row] = kNone;
    }
    all = taken.size() <= end;
  } else {
    uint64_t low = at_most(tiers_[tier - 1].lowest.data() + first, rank);
    if (tier == 1)
      for (uint64_t next = low; next != 0; next &= next - 1)
        prefetch_leaf(first + static_cast<size_t>(std::countr_zero(next)));
    for (; low != 0 && all; low &= low - 1)
      all = take_up_to(rank, tier - 1, first + static_cast<size_t>(std::countr_zero(low)), end,
                       taken);
  }
  look_again(tier, node);
  return all;
}

void PriceTree::prefetch_leaf(size_t node) const {
  constexpr size_t kRanksPerLine = 32;
  const int16_t* ranks = ranks_.data() + node * kChildren;
  __builtin_prefetch(ranks, 1);
  __builtin_prefetch(ranks + kRanksPerLine, 1);
}

size_t PriceTree::count_up_to(int16_t rank) const {
  return root_.rank > rank ? 0 : count_up_to(rank, tiers_.size() - 1, 0);
}

size_t PriceTree::count_up_to(int16_t rank, size_t tier, size_t node) const {
  if (tier == 0) return static_cast<size_t>(std::popcount(at_most_in_leaf(node, rank)));
  const size_t first = node * kChildren;
  size_t count = 0;
  for (uint64_t low = at_most(tiers_[tier - 1].lowest.data() + first, rank); low != 0;
       low &= low - 1)
    count += count_up_to(rank, tier - 1, first + static_cast<size_t>(std::countr_zero(low)));
  return count;
}

size_t PriceTree::groups_up_to(int16_t rank, size_t coarse) const {
  const std::vector<int16_t>& lowest = tiers_[std::min(coarse, tiers_.size() - 1)].lowest;
  size_t count = 0;
  for (size_t node = 0; node < lowest.size(); node += kChildren)
    count += static_cast<size_t>(std::popcount(at_most(lowest.data() + node, rank)));
  return count;
}

void PriceTree::save() {
  tiers_before_ = tiers_;
  saved_ = true;
}

void PriceTree::restore() {
  std::swap(tiers_, tiers_before_);
  root_ = {tiers_.back().lowest[0], tiers_.back().count[0]};
  saved_ = false;
}

// Where a node is so full that a try or two at random hit a row of the lowest rank,
// the counts of its children need not be summed.
size_t PriceTree::draw(Stream& stream) const {
  constexpr uint64_t kTries = 8, kFlatTries = 4;
  const int16_t rank = lowest();
  if (count() * kFlatTries >= ranks_.size()) {
    for (;;) {
      const size_t row = stream.below(ranks_.size());
      if (ranks_[row] == rank) return row;
    }
  }
  uint64_t nth = count() == 1 ? 0 : stream.below(count());
  size_t node = 0;
  for (size_t tier = tiers_.size() - 1; tier > 0; --tier) {
    const size_t bits_of_child = kBitsOfChild * tier;
    const int16_t* ranks = tiers_[tier - 1].lowest.data() + node * kChildren;
    const uint32_t* counts = tiers_[tier - 1].count.data() + node * kChildren;
    size_t child = 0;
    if (tiers_[tier].count[node] * kTries >= kChildren << bits_of_child) {
      do {
        nth = stream.below(kChildren << bits_of_child);
        child = nth >> bits_of_child;
        nth &= (uint64_t{1} << bits_of_child) - 1;
      } while (ranks[child] != rank || nth >= counts[child]);
    } else {
      uint64_t equal = equal_to(ranks, rank);
      for (;; equal &= equal - 1) {
        child = static_cast<size_t>(std::countr_zero(equal));
        if (nth < counts[child]) break;
        nth -= counts[child];
      }
    }
    node = node * kChildren + child;
  }
  uint64_t equal = equal_in_leaf(node, rank);
  for (; nth > 0; --nth) equal &= equal - 1;
  return node * kChildren + static_cast<size_t>(std::countr_zero(equal));
}

size_t PriceTree::first() const {
  size_t node = 0;
  for (size_t tier = tiers_.size() - 1; tier > 0; --tier)
    node = node * kChildren + static_cast<size_t>(std::countr_zero(equal_to(
                                  tiers_[tier - 1].lowest.data() + node * kChildren, lowest())));
  return node * kChildren + static_cast<size_t>(std::countr_zero(equal_in_leaf(node, lowest())));
}

}  // namespace agora
