#include "price_tree.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace agora {

void PriceTree::build(std::span<int16_t> ranks) {
  ranks_ = ranks;
  size_t nodes = ranks.size();
  for (size_t tier = 0; tier == 0 || nodes > 1; ++tier) {
    nodes = std::max<size_t>((nodes + kChildren - 1) / kChildren, 1);
    if (tier == tiers_.size()) tiers_.emplace_back();
    tiers_[tier].lowest.resize(nodes);
    tiers_[tier].count.resize(nodes);
    for (size_t node = 0; node < nodes; ++node) look_again(tier, node);
  }
}

std::span<const int16_t> PriceTree::children(std::span<const int16_t> all, size_t node) {
  const size_t first = node * kChildren;
  return all.subspan(first, std::min(kChildren, all.size() - first));
}

void PriceTree::look_again(size_t tier, size_t node) {
  const std::span<const int16_t> below =
      children(tier == 0 ? ranks_ : std::span<const int16_t>(tiers_[tier - 1].lowest), node);
  int16_t lowest = kNone;
  for (const int16_t rank : below) lowest = std::min(lowest, rank);
  uint32_t count = 0;
  if (tier == 0) {
    uint16_t equal = 0;
    for (const int16_t rank : below) equal = static_cast<uint16_t>(equal + (rank == lowest));
    count = equal;
  } else {
    const uint32_t* counts = tiers_[tier - 1].count.data() + node * kChildren;
    for (size_t i = 0; i < below.size(); ++i) count += below[i] == lowest ? counts[i] : 0;
  }
  tiers_[tier].lowest[node] = lowest;
  tiers_[tier].count[node] = lowest == kNone ? 0 : count;
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
}

// The bits of those of at most 64 ranks that are equal to one.
uint64_t PriceTree::equal_to(std::span<const int16_t> ranks, int16_t rank) {
  constexpr size_t kLanes = 4;
  constexpr uint64_t kLow = 0x7fff7fff7fff7fffULL, kHigh = ~kLow;
  static_assert(std::endian::native == std::endian::little);  // lane 0 is the lowest of a word
  const uint64_t pattern = 0x0001000100010001ULL * static_cast<uint16_t>(rank);
  uint64_t equal = 0;
  size_t i = 0;
  for (; i + kLanes <= ranks.size(); i += kLanes) {
    uint64_t lanes;
    std::memcpy(&lanes, ranks.data() + i, sizeof lanes);
    lanes ^= pattern;
    const uint64_t zero = ~(((lanes & kLow) + kLow) | lanes) & kHigh;
    equal |= ((zero >> 15) * 0x1000200040008ULL >> 48 & 15) << i;
  }
  for (; i < ranks.size(); ++i) equal |= static_cast<uint64_t>(ranks[i] == rank) << i;
  return equal;
}

size_t PriceTree::descend(uint32_t nth) const {
  const int16_t rank = lowest();
  size_t node = 0;
  for (size_t tier = tiers_.size() - 1; tier > 0; --tier) {
    const Tier& below = tiers_[tier - 1];
    uint64_t equal = equal_to(children(below.lowest, node), rank);
    for (;; equal &= equal - 1) {
      const size_t child = node * kChildren + static_cast<size_t>(std::countr_zero(equal));
      if (nth < below.count[child]) {
        node = child;
        break;
      }
      nth -= below.count[child];
    }
  }
  uint64_t equal = equal_to(children(ranks_, node), rank);
  for (; nth > 0; --nth) equal &= equal - 1;
  return node * kChildren + static_cast<size_t>(std::countr_zero(equal));
}

// Where many rows have the lowest rank, a try or two find one sooner than the tree.
size_t PriceTree::draw(Stream& stream) const {
  constexpr uint64_t kDense = 4, kTries = 4;
  const uint32_t several = count();
  if (several == 1) return descend(0);
  if (several * kDense >= ranks_.size())
    for (uint64_t i = 0; i < kTries; ++i) {
      const size_t row = stream.below(ranks_.size());
      if (ranks_[row] == lowest()) return row;
    }
  return descend(static_cast<uint32_t>(stream.below(several)));
}

}  // namespace agora
