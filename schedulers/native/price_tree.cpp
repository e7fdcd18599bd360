#include "price_tree.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace agora {

void PriceTree::resize(size_t rows) {
  rows_ = rows;
  size_t nodes = std::max<size_t>((rows + kChildren - 1) / kChildren, 1);
  ranks_.assign(nodes * kChildren, kNone);
  tiers_.clear();
  for (;;) {
    const size_t above = (nodes + kChildren - 1) / kChildren;
    const size_t padded = nodes == 1 ? 1 : above * kChildren;
    tiers_.push_back({std::vector<int16_t>(padded, kNone), std::vector<uint32_t>(padded)});
    if (nodes == 1) return;
    nodes = above;
  }
}

void PriceTree::build() {
  size_t nodes = ranks_.size() / kChildren;
  for (size_t tier = 0; tier < tiers_.size(); ++tier) {
    for (size_t node = 0; node < nodes; ++node) look_again(tier, node);
    nodes = (nodes + kChildren - 1) / kChildren;
  }
}

void PriceTree::look_again(size_t tier, size_t node) {
  const int16_t* ranks = tier == 0 ? ranks_.data() : tiers_[tier - 1].lowest.data();
  ranks += node * kChildren;
  int16_t lowest = kNone;
  for (size_t i = 0; i < kChildren; ++i) lowest = std::min(lowest, ranks[i]);
  uint32_t count = 0;
  if (lowest == kNone) {
  } else if (tier == 0) {
    uint16_t equal = 0;
    for (size_t i = 0; i < kChildren; ++i)
      equal = static_cast<uint16_t>(equal + (ranks[i] == lowest));
    count = equal;
  } else {
    const uint32_t* counts = tiers_[tier - 1].count.data() + node * kChildren;
    for (size_t i = 0; i < kChildren; ++i) count += ranks[i] == lowest ? counts[i] : 0;
  }
  tiers_[tier].lowest[node] = lowest;
  tiers_[tier].count[node] = count;
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

// The bits of those of 64 ranks that are equal to one, four at a time.
uint64_t PriceTree::equal_to(const int16_t* ranks, int16_t rank) {
  constexpr uint64_t kLow = 0x7fff7fff7fff7fffULL, kHigh = ~kLow;
  const uint64_t pattern = 0x0001000100010001ULL * static_cast<uint16_t>(rank);
  uint64_t equal = 0;
  for (size_t word = 0; word < kChildren / 4; ++word) {
    uint64_t lanes = 0;
    // little or big endian alike: lane i is in bits [16 i, 16 i + 16)
    for (size_t i = 0; i < 4; ++i)
      lanes |= static_cast<uint64_t>(static_cast<uint16_t>(ranks[word * 4 + i])) << (16 * i);
    lanes ^= pattern;
    const uint64_t zero = ~(((lanes & kLow) + kLow) | lanes) & kHigh;
    equal |= ((zero >> 15) * 0x1000200040008ULL >> 48 & 15) << (4 * word);
  }
  return equal;
}

size_t PriceTree::descend(uint32_t nth) const {
  const int16_t rank = lowest();
  size_t node = 0;
  for (size_t tier = tiers_.size() - 1; tier > 0; --tier) {
    const Tier& below = tiers_[tier - 1];
    uint64_t equal = equal_to(below.lowest.data() + node * kChildren, rank);
    for (;; equal &= equal - 1) {
      const size_t child = node * kChildren + static_cast<size_t>(std::countr_zero(equal));
      if (nth < below.count[child]) {
        node = child;
        break;
      }
      nth -= below.count[child];
    }
  }
  uint64_t equal = equal_to(ranks_.data() + node * kChildren, rank);
  for (; nth > 0; --nth) equal &= equal - 1;
  return node * kChildren + static_cast<size_t>(std::countr_zero(equal));
}

size_t PriceTree::draw(Stream& stream) const {
  const uint32_t several = count();
  return descend(several == 1 ? 0 : static_cast<uint32_t>(stream.below(several)));
}

size_t PriceTree::first() const { return descend(0); }

}  // namespace agora
