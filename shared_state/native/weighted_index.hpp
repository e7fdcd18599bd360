// The open rows of a cell, drawable by weight or uniformly, over everything or within a partition;
// lowest first as well.
//
//   open rows      a bit per row
//   uniform draws  open rows per partition, and per block of 512 rows of it: a draw picks the n-th
//   weighted       the rows of a partition are in weight classes, floor(log2 weight) counted from
//   draws          the heaviest: 32 of them, what is lighter than 2^-31 of the heaviest shares the
//                  last. A draw picks a class with probability proportional to (open rows) x
//                  (heaviest weight of the class), one of its open rows uniformly, and accepts it
//                  with probability weight / heaviest; else it begins anew. So rows are drawn
//                  exactly in proportion to their weights (von Neumann's rejection), in fewer than
//                  two tries on average but for the lightest class. Erasing what was drawn and
//                  drawing again is sampling without replacement.
//
// What only some readers need is kept from when it is first asked for: keep_classes() for weighted
// draws, sum_weights() and sum_scores() for the sums of the weights, and of the scores, of each
// partition's open rows. A weight w stands for a score of ln w, in fixed point. All sums are of
// integers and never drift.
//
// The index is a function of which rows are open: however they came to be, later draws are the
// same.
//
// insert, erase: O(1). Uniform draws: O(P / 8 + rows of the partition / 512). Weighted ones: O(P /
// 8 + 32 + rows of the partition / 64). next_open: a scan of the bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "huge_pages.hpp"
#include "partition_lookup.hpp"
#include "random.hpp"
#include "row_bits.hpp"

namespace agora {

constexpr size_t kWeightClasses = 32;
constexpr double kScoreOne = 0x1p20;  // the unit of fixed-point scores

// ln(weight) in units of 1 / kScoreOne. Requires: weight >= 1. A sum over 2^31 rows fits 58 bits.
inline int64_t score_of(int64_t weight) {
  return static_cast<int64_t>(portable_log(static_cast<double>(weight)) * kScoreOne + 0.5);
}

// What never changes about the rows; shared by all indexes over them.
struct IndexLayout {
  static constexpr size_t kBlockWords = 8;  // of the rows of a block

  // A weight class that has rows in a partition.
  struct Group {
    int64_t heaviest;
    size_t mask;  // where in `masks` the bits of its rows begin: of the words of its partition
  };

  // offsets: P+1 ascending row numbers from 0 to M. weight: M values >= 1 whose sum fits 62 bits.
  IndexLayout(std::vector<int64_t> row_weight, std::vector<int64_t> partition_offsets)
      : weight(std::move(row_weight)), offsets(std::move(partition_offsets)) {
    if (offsets.size() < 2 || offsets.front() != 0 ||
        offsets.back() != static_cast<int64_t>(weight.size()))
      throw std::invalid_argument("partition offsets must run from 0 to the number of machines");
    if (weight.size() >= (size_t{1} << 31))
      throw std::invalid_argument("more than 2^31 - 1 machines");
    for (size_t p = 0; p + 1 < offsets.size(); ++p)
      if (offsets[p] > offsets[p + 1]) throw std::invalid_argument("partition offsets must ascend");
    int64_t heaviest = 1, sum = 0;
    for (const int64_t w : weight) {
      if (w < 1) throw std::invalid_argument("weights must be at least 1");
      if (__builtin_add_overflow(sum, w, &sum) || sum >> 62 != 0)
        throw std::invalid_argument("the sum of all weights exceeds 2^62 - 1");
      heaviest = std::max(heaviest, w);
    }
    find_blocks();
    make_groups(std::bit_width(static_cast<uint64_t>(heaviest)) - 1);
  }

  size_t rows() const { return weight.size(); }
  size_t partitions() const { return offsets.size() - 1; }
  size_t partition_of(int32_t row) const { return lookup_(static_cast<size_t>(row)); }

  // The words that hold rows of a partition: [first, end). Its first and its last one may hold
  // others' as well.
  size_t first_word(size_t partition) const { return static_cast<size_t>(offsets[partition]) / 64; }
  size_t end_word(size_t partition) const {
    const auto end = static_cast<size_t>(offsets[partition + 1]);
    return end > static_cast<size_t>(offsets[partition]) ? (end + 63) / 64 : first_word(partition);
  }
  // The bits of a word that are rows of the partition.
  uint64_t rows_in(size_t word, size_t partition) const {
    const auto first = static_cast<size_t>(offsets[partition]),
               end = static_cast<size_t>(offsets[partition + 1]);
    uint64_t rows = ~uint64_t{0};
    if (word * 64 < first) rows &= ~uint64_t{0} << (first % 64);
    if ((word + 1) * 64 > end) rows &= (uint64_t{1} << (end % 64)) - 1;
    return rows;
  }

  std::vector<int64_t> weight;   // [M]
  std::vector<int64_t> offsets;  // [P+1]

  std::vector<size_t> block_start;   // [P+1]: of the partition's blocks, of all of them
  std::vector<Group> groups;         // [G]: those of a partition follow each other, heaviest first
  std::vector<uint32_t> group_from;  // [P+1]: the partition's groups
  HugePageVector<uint8_t> group_at;  // [M]: of the row, counted from its partition's first
  std::vector<uint64_t> masks;

 private:
  void find_blocks() {
    lookup_ = PartitionLookup(offsets);
    block_start.push_back(0);
    for (size_t p = 0; p < partitions(); ++p) {
      const size_t words = end_word(p) - first_word(p);
      block_start.push_back(block_start.back() + (words + kBlockWords - 1) / kBlockWords);
    }
  }

  // top: floor(log2) of the heaviest weight.
  void make_groups(int top) {
    const auto class_of = [&](size_t row) {
      const int below_top = top - (std::bit_width(static_cast<uint64_t>(weight[row])) - 1);
      return static_cast<size_t>(std::min<int>(below_top, kWeightClasses - 1));
    };
    group_at.resize(rows());
    group_from.push_back(0);
    for (size_t p = 0; p < partitions(); ++p) {
      const auto first = static_cast<size_t>(offsets[p]), end = static_cast<size_t>(offsets[p + 1]);
      int64_t heaviest[kWeightClasses] = {};
      for (size_t row = first; row < end; ++row) {
        int64_t& most = heaviest[class_of(row)];
        most = std::max(most, weight[row]);
      }
      uint8_t group[kWeightClasses] = {};
      for (size_t c = 0; c < kWeightClasses; ++c) {
        if (heaviest[c] == 0) continue;
        group[c] = static_cast<uint8_t>(groups.size() - group_from[p]);
        groups.push_back({heaviest[c], masks.size()});
        masks.resize(masks.size() + end_word(p) - first_word(p));
      }
      for (size_t row = first; row < end; ++row) {
        group_at[row] = group[class_of(row)];
        masks[groups[group_from[p] + group_at[row]].mask + row / 64 - first_word(p)] |=
            uint64_t{1} << (row % 64);
      }
      group_from.push_back(static_cast<uint32_t>(groups.size()));
    }
  }

  PartitionLookup lookup_;
};

class WeightedIndex {
 public:
  static constexpr int32_t kNone = -1;

  explicit WeightedIndex(const IndexLayout& layout)
      : layout_(&layout),
        open_((layout.rows() + 63) / 64),
        in_block_(layout.block_start.back()),
        partitions_(layout.partitions()),
        stretches_((layout.partitions() + kStretch - 1) / kStretch) {}

  bool contains(int32_t row) const { return open_[index(row) / 64] >> (index(row) % 64) & 1; }
  int64_t count() const { return static_cast<int64_t>(total_.count); }
  int64_t count(size_t partition) const {
    return static_cast<int64_t>(partitions_[partition].count);
  }
  // The sum of the weights of open rows. Requires: sum_weights().
  int64_t weight(size_t partition) const { return weights_[partition]; }
  // The sum of the scores of open rows, in units of 1 / kScoreOne. Requires: sum_scores().
  int64_t score(size_t partition) const { return scores_[partition]; }

  // Each is kept from now on. The first call looks at all rows.
  void keep_classes() {
    if (!in_group_.empty()) return;
    in_group_.resize(std::max<size_t>(layout_->groups.size(), 1));
    for (size_t p = 0; p < partitions_.size(); ++p) recount(p, partitions_[p].count);
  }
  void sum_weights() {
    if (weights_.empty()) sum_open_rows(weights_, [](int64_t weight) { return weight; });
  }
  void sum_scores() {
    if (scores_.empty()) sum_open_rows(scores_, score_of);
  }

  // Requires: not contained.
  void insert(int32_t row) { toggle(row, +1); }
  // Requires: contained.
  void erase(int32_t row) { toggle(row, -1); }

  // Makes the open rows of a partition those whose bits are set in is_open(word). Bits of rows of
  // other partitions are ignored.
  template <typename IsOpen>
  void replace(size_t partition, const IsOpen& is_open) {
    const size_t first = layout_->first_word(partition), end = layout_->end_word(partition);
    uint64_t count = 0;
    for (size_t block = first; block < end; block += IndexLayout::kBlockWords) {
      const size_t last = std::min(block + IndexLayout::kBlockWords, end);
      for (size_t word = block; word < last; ++word) {
        const uint64_t rows = layout_->rows_in(word, partition);
        const uint64_t changed = (is_open(word) ^ open_[word]) & rows;
        if (!weights_.empty() || !scores_.empty()) add_to_sums(partition, word, changed);
        open_[word] ^= changed;
      }
      size_t open = count_bits(open_.data() + block, last - block);
      if (block == first) open -= of_others(first, partition);
      if (last == end && end - 1 != first) open -= of_others(end - 1, partition);
      in_block_[layout_->block_start[partition] + (block - first) / IndexLayout::kBlockWords] =
          static_cast<uint16_t>(open);
      count += open;
    }
    recount(partition, count);
  }

  void clear() {
    open_.assign(open_.size(), 0);
    in_block_.assign(in_block_.size(), 0);
    in_group_.assign(in_group_.size(), 0);
    partitions_.assign(partitions_.size(), Sum{});
    stretches_.assign(stretches_.size(), Sum{});
    weights_.assign(weights_.size(), 0);
    scores_.assign(scores_.size(), 0);
    total_ = Sum{};
  }

  // Draws need an open row (in the partition); weighted ones keep_classes() as well.
  int32_t draw_weighted(Stream& stream) const {
    for (;;) {
      uint64_t rest = stream.below(total_.bound);
      const size_t partition = find_partition(rest, &Sum::bound);
      const int32_t row = accepted(partition, rest);
      if (row != kNone) return row;
    }
  }
  int32_t draw_weighted(size_t partition, Stream& stream) const {
    for (;;) {
      const int32_t row = accepted(partition, stream.below(partitions_[partition].bound));
      if (row != kNone) return row;
    }
  }
  int32_t draw_uniform(Stream& stream) const {
    uint64_t rest = stream.below(total_.count);
    const size_t partition = find_partition(rest, &Sum::count);
    return open_row(partition, rest);
  }
  int32_t draw_uniform(size_t partition, Stream& stream) const {
    return open_row(partition, stream.below(partitions_[partition].count));
  }

  // The lowest open row in [from, to), or kNone.
  int32_t next_open(int64_t from, int64_t to) const {
    if (from >= to) return kNone;
    size_t word = index(from) / 64;
    const size_t end = index(to - 1) / 64 + 1;
    uint64_t bits = open_[word] & (~uint64_t{0} << (index(from) % 64));
    while (bits == 0) {
      if (++word == end) return kNone;
      bits = open_[word];
    }
    const int64_t row = static_cast<int64_t>(word * 64) + std::countr_zero(bits);
    return row < to ? static_cast<int32_t>(row) : kNone;
  }

 private:
  // partitions per stretch of sums: two short scans instead of one long one
  static constexpr size_t kStretch = 8;

  struct Sum {
    uint64_t count = 0;  // open rows
    uint64_t bound = 0;  // of each group, (open rows) x (heaviest weight), if classes are kept
  };

  static size_t index(int64_t number) { return static_cast<size_t>(number); }

  // Open rows of a word that are of other partitions.
  size_t of_others(size_t word, size_t partition) const {
    return static_cast<size_t>(std::popcount(open_[word] & ~layout_->rows_in(word, partition)));
  }

  template <typename Value>
  void sum_open_rows(std::vector<int64_t>& sums, const Value& value) {
    sums.resize(layout_->partitions());
    const int64_t end = static_cast<int64_t>(layout_->rows());
    for (int32_t row = next_open(0, end); row != kNone; row = next_open(row + 1, end))
      sums[layout_->partition_of(row)] += value(layout_->weight[index(row)]);
  }

  void add_to_sums(size_t partition, int64_t weight, int64_t sign) {
    if (!weights_.empty()) weights_[partition] += sign * weight;
    if (!scores_.empty()) scores_[partition] += sign * score_of(weight);
  }
  // The rows of a word that are about to open or to close.
  void add_to_sums(size_t partition, size_t word, uint64_t changed) {
    for (; changed != 0; changed &= changed - 1) {
      const size_t bit = static_cast<size_t>(std::countr_zero(changed));
      add_to_sums(partition, layout_->weight[word * 64 + bit],
                  open_[word] >> bit & 1 ? int64_t{-1} : int64_t{+1});
    }
  }

  void toggle(int32_t row, int64_t sign) {
    const size_t i = index(row), p = layout_->partition_of(row);
    Sum change{static_cast<uint64_t>(sign), 0};
    open_[i / 64] ^= uint64_t{1} << (i % 64);
    uint16_t& in_block = in_block_[layout_->block_start[p] +
                                   (i / 64 - layout_->first_word(p)) / IndexLayout::kBlockWords];
    in_block = static_cast<uint16_t>(in_block + sign);
    if (!in_group_.empty()) {
      const size_t g = layout_->group_from[p] + layout_->group_at[i];
      in_group_[g] += static_cast<uint64_t>(sign);
      change.bound = static_cast<uint64_t>(sign * layout_->groups[g].heaviest);
    }
    add_to_sums(p, layout_->weight[i], sign);
    add(p, change);
  }

  // Counts a partition's groups, and takes its count over.
  void recount(size_t partition, uint64_t count) {
    const Sum before = partitions_[partition];
    Sum now{count, 0};
    if (!in_group_.empty()) {
      const size_t first = layout_->first_word(partition),
                   words = layout_->end_word(partition) - first;
      const size_t from = layout_->group_from[partition], to = layout_->group_from[partition + 1];
      for (size_t g = from; g < to; ++g) {
        in_group_[g] = to - from == 1
                           ? count
                           : count_bits(open_.data() + first,
                                        layout_->masks.data() + layout_->groups[g].mask, words);
        now.bound += in_group_[g] * static_cast<uint64_t>(layout_->groups[g].heaviest);
      }
    }
    // differences of unsigned numbers, which may wrap on the way
    add(partition, {now.count - before.count, now.bound - before.bound});
  }

  void add(size_t partition, const Sum& change) {
    for (Sum* sum : {&partitions_[partition], &stretches_[partition / kStretch], &total_}) {
      sum->count += change.count;
      sum->bound += change.bound;
    }
  }

  // The partition in which the rest-th unit lies; rest becomes its place within that partition.
  size_t find_partition(uint64_t& rest, uint64_t Sum::* unit) const {
    size_t stretch = 0;
    while (rest >= stretches_[stretch].*unit) rest -= stretches_[stretch++].*unit;
    size_t p = stretch * kStretch;
    while (rest >= partitions_[p].*unit) rest -= partitions_[p++].*unit;
    return p;
  }

  // rest: uniform below the partition's bound. Its quotient by the heaviest weight of the group in
  // which it lies is a row, uniformly, and its remainder decides, independently, if that is
  // accepted.
  int32_t accepted(size_t partition, uint64_t rest) const {
    size_t g = layout_->group_from[partition];
    const IndexLayout::Group* group = layout_->groups.data() + g;
    for (;; ++g, ++group) {
      const uint64_t bound = in_group_[g] * static_cast<uint64_t>(group->heaviest);
      if (rest < bound) break;
      rest -= bound;
    }
    const auto heaviest = static_cast<uint64_t>(group->heaviest);
    const size_t first = layout_->first_word(partition);
    const size_t row =
        first * 64 +
        select_bit(open_.data() + first, layout_->masks.data() + group->mask, rest / heaviest);
    return rest % heaviest < static_cast<uint64_t>(layout_->weight[row]) ? static_cast<int32_t>(row)
                                                                         : kNone;
  }

  // The open row of the partition that has `rank` others before it.
  int32_t open_row(size_t partition, uint64_t rank) const {
    size_t block = layout_->block_start[partition];
    size_t word = layout_->first_word(partition);
    if (rank < in_block_[block]) {
      const size_t first = index(layout_->offsets[partition]) % 64;
      rank += static_cast<size_t>(std::popcount(open_[word] & ~(~uint64_t{0} << first)));
    } else {
      while (rank >= in_block_[block]) {
        rank -= in_block_[block++];
        word += IndexLayout::kBlockWords;
      }
    }
    return static_cast<int32_t>(word * 64 + select_bit(open_.data() + word, rank));
  }

  const IndexLayout* layout_;
  std::vector<uint64_t> open_;      // a bit per row
  std::vector<uint16_t> in_block_;  // open rows of each block
  std::vector<uint64_t> in_group_;  // [G]: open rows; empty unless classes are kept
  std::vector<Sum> partitions_;     // [P]
  std::vector<Sum> stretches_;      // [P/8]
  std::vector<int64_t> weights_;    // [P], or empty unless they are kept
  std::vector<int64_t> scores_;     // [P], likewise
  Sum total_;
};

}  // namespace agora
