// The open rows of a cell, drawable by weight or uniformly, over everything or within a partition;
// lowest first as well.
//
// Rows are grouped by (partition, weight class), a class being floor(log2 weight) counted from the
// heaviest: 32 classes, what is lighter than 2^-31 of the heaviest shares the last. Each group
// keeps its open rows in a list (swap-remove), their number and integer weight sum.
//
// A weighted draw picks partition, then class by weight sum, then a uniform position accepted with
// probability w / heaviest of the group: exactly proportional to weight, in fewer than two tries on
// average but for the lightest class. Erasing what was drawn and drawing again is sampling without
// replacement. Weights are integers, so the sums never drift.
//
// A weight w stands for a score of ln w. An index that is asked to also keeps the sum of scores of
// each partition, in fixed point, so that it never drifts either.
//
// insert, erase: O(1). Draws: O(P / 8 + 8 + 32). next_open: a bitmap scan. Undoing insertions and
// erasures in the reverse order restores the very same lists, and so the very same later draws.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "huge_pages.hpp"
#include "random.hpp"

namespace agora {

constexpr size_t kWeightClasses = 32;
constexpr double kScoreOne = 0x1p20;  // the unit of fixed-point scores

// ln(weight) in units of 1 / kScoreOne. Requires: weight >= 1. A sum over 2^31 rows fits 58 bits.
inline int64_t score_of(int64_t weight) {
  return static_cast<int64_t>(portable_log(static_cast<double>(weight)) * kScoreOne + 0.5);
}

// What never changes about the rows; shared by all indexes over them.
struct IndexLayout {
  // offsets: P+1 ascending row numbers from 0 to M. weight: M values >= 1 whose sum fits 63 bits.
  IndexLayout(std::vector<int64_t> row_weight, std::vector<int64_t> partition_offsets)
      : weight(std::move(row_weight)), offsets(std::move(partition_offsets)) {
    if (offsets.size() < 2 || offsets.front() != 0 ||
        offsets.back() != static_cast<int64_t>(weight.size()))
      throw std::invalid_argument("partition offsets must run from 0 to the number of machines");
    if (weight.size() >= (size_t{1} << 31))
      throw std::invalid_argument("more than 2^31 - 1 machines");
    for (size_t p = 0; p + 1 < offsets.size(); ++p)
      if (offsets[p] > offsets[p + 1]) throw std::invalid_argument("partition offsets must ascend");
    int64_t heaviest_weight = 1, sum = 0;
    for (const int64_t w : weight) {
      if (w < 1) throw std::invalid_argument("weights must be at least 1");
      if (__builtin_add_overflow(sum, w, &sum))
        throw std::invalid_argument("the sum of all weights exceeds 2^63 - 1");
      heaviest_weight = std::max(heaviest_weight, w);
    }
    const int top = std::bit_width(static_cast<uint64_t>(heaviest_weight)) - 1;
    const size_t partitions = offsets.size() - 1;
    group.resize(weight.size());
    partition.resize(weight.size());
    start.assign(partitions * kWeightClasses + 1, 0);
    heaviest.assign(partitions * kWeightClasses, 1);
    for (size_t p = 0; p < partitions; ++p) {
      for (int64_t row = offsets[p]; row < offsets[p + 1]; ++row) {
        const size_t i = static_cast<size_t>(row);
        const int below_top = top - (std::bit_width(static_cast<uint64_t>(weight[i])) - 1);
        const size_t g = p * kWeightClasses + static_cast<size_t>(std::min(
                                                  below_top, static_cast<int>(kWeightClasses) - 1));
        partition[i] = static_cast<int32_t>(p);
        group[i] = static_cast<uint32_t>(g);
        heaviest[g] = std::max(heaviest[g], weight[i]);
        ++start[g + 1];
      }
    }
    for (size_t g = 0; g + 1 < start.size(); ++g) start[g + 1] += start[g];
    find_even_groups();
  }

  size_t rows() const { return weight.size(); }
  size_t partitions() const { return offsets.size() - 1; }
  size_t partition_of(int32_t row) const {
    return static_cast<size_t>(partition[static_cast<size_t>(row)]);
  }

  std::vector<int64_t> weight;        // [M]
  std::vector<int64_t> offsets;       // [P+1]
  HugePageVector<int32_t> partition;  // [M]
  HugePageVector<uint32_t> group;     // [M]: partition * 32 + class
  std::vector<uint32_t> start;        // [P*32+1]: where the group's list begins
  std::vector<int64_t> heaviest;      // [P*32]

  // A change of a row reads less memory where these need not be looked up by row.
  static constexpr uint32_t kSeveral = ~uint32_t{0};
  std::vector<int64_t> even_weight;  // [P*32]: of all rows of the group; 0 if they differ
  std::vector<uint32_t> only_group;  // [P]: of all rows of the partition, or kSeveral

  uint32_t group_of(size_t row, size_t its_partition) const {
    const uint32_t g = only_group[its_partition];
    return g != kSeveral ? g : group[row];
  }
  int64_t weight_of(size_t row, uint32_t its_group) const {
    const int64_t w = even_weight[its_group];
    return w != 0 ? w : weight[row];
  }

 private:
  void find_even_groups() {
    even_weight = heaviest;
    only_group.assign(partitions(), kSeveral);
    for (size_t i = 0; i < weight.size(); ++i)
      if (weight[i] != heaviest[group[i]]) even_weight[group[i]] = 0;
    for (size_t p = 0; p < partitions(); ++p) {
      const auto begin = group.begin() + offsets[p], end = group.begin() + offsets[p + 1];
      if (begin != end && std::all_of(begin, end, [&](uint32_t g) { return g == *begin; }))
        only_group[p] = *begin;
    }
  }
};

class WeightedIndex {
 public:
  static constexpr int32_t kNone = -1;

  explicit WeightedIndex(const IndexLayout& layout)
      : layout_(&layout),
        list_(layout.rows()),
        position_(layout.rows()),
        open_((layout.rows() + 63) / 64),
        groups_(layout.partitions() * kWeightClasses),
        partitions_(layout.partitions()),
        blocks_((layout.partitions() + kBlock - 1) / kBlock) {}

  bool contains(int32_t row) const { return open_[index(row) / 64] >> (index(row) % 64) & 1; }
  int64_t count() const { return total_.count; }
  int64_t count(size_t partition) const { return partitions_[partition].count; }
  int64_t weight(size_t partition) const { return partitions_[partition].weight; }
  // The sum of the scores of open rows, in units of 1 / kScoreOne. Requires: sum_scores().
  int64_t score(size_t partition) const { return scores_[partition]; }

  // Keeps the sums of scores from now on. The first call looks at all rows.
  void sum_scores() {
    if (!scores_.empty()) return;
    scores_.resize(layout_->partitions());
    const int64_t end = static_cast<int64_t>(layout_->rows());
    for (int32_t row = next_open(0, end); row != kNone; row = next_open(row + 1, end))
      scores_[partition_of(row)] += score_of(layout_->weight[index(row)]);
  }

  // Requires: not contained.
  void insert(int32_t row) {
    insert_unsummed(row, partition_of(row));
    add(index(row), +1);
  }

  // Requires: contained. Returns the place it had in its group's list.
  int32_t erase(int32_t row) {
    add(index(row), -1);
    return erase_unsummed(row, partition_of(row));
  }

  // For many changes to one partition, that of the row: the same, but counts and weights beyond the
  // group's are wrong until resum(partition).
  void insert_unsummed(int32_t row, size_t partition) {
    const size_t i = index(row);
    const uint32_t g = layout_->group_of(i, partition);
    const int64_t at = groups_[g].count;
    list_[layout_->start[g] + static_cast<size_t>(at)] = row;
    position_[i] = static_cast<int32_t>(at);
    add_to_group(i, g, +1);
  }
  int32_t erase_unsummed(int32_t row, size_t partition) {
    const size_t i = index(row);
    const uint32_t g = layout_->group_of(i, partition);
    int32_t* list = list_.data() + layout_->start[g];
    const int32_t at = position_[i];
    const int32_t last = list[groups_[g].count - 1];
    list[at] = last;
    position_[index(last)] = at;
    add_to_group(i, g, -1);
    return at;
  }
  void resum(size_t partition) {
    Sum sum;
    for (size_t g = partition * kWeightClasses; g < (partition + 1) * kWeightClasses; ++g) {
      sum.count += groups_[g].count;
      sum.weight += groups_[g].weight;
    }
    const Sum before = partitions_[partition];
    partitions_[partition] = sum;
    for (Sum* total : {&blocks_[partition / kBlock], &total_}) {
      total->count += sum.count - before.count;
      total->weight += sum.weight - before.weight;
    }
  }

  // Requires: the latest change not undone was insert(row), or erase(row) returning `at`.
  void undo_insert(int32_t row) { erase(row); }
  void undo_erase(int32_t row, int32_t at) {
    const size_t i = index(row);
    const uint32_t g = layout_->group_of(i, partition_of(row));
    int32_t* list = list_.data() + layout_->start[g];
    const int64_t end = groups_[g].count;
    if (at < end) {
      list[end] = list[at];
      position_[index(list[at])] = static_cast<int32_t>(end);
    }
    list[at] = row;
    position_[i] = at;
    add_to_group(i, g, +1);
    add(i, +1);
  }

  void clear() {
    open_.assign(open_.size(), 0);
    groups_.assign(groups_.size(), Sum{});
    partitions_.assign(partitions_.size(), Sum{});
    blocks_.assign(blocks_.size(), Sum{});
    scores_.assign(scores_.size(), 0);
    total_ = Sum{};
  }

  // Draws need an open row (in the partition).
  int32_t draw_weighted(Stream& stream) const {
    int64_t rest = static_cast<int64_t>(stream.below(static_cast<uint64_t>(total_.weight)));
    const size_t partition = find_partition(rest, &Sum::weight);
    return weighted_in(partition, rest, stream);
  }
  int32_t draw_weighted(size_t partition, Stream& stream) const {
    return weighted_in(
        partition,
        static_cast<int64_t>(stream.below(static_cast<uint64_t>(partitions_[partition].weight))),
        stream);
  }
  int32_t draw_uniform(Stream& stream) const {
    int64_t rest = static_cast<int64_t>(stream.below(static_cast<uint64_t>(total_.count)));
    const size_t partition = find_partition(rest, &Sum::count);
    return uniform_in(partition, rest);
  }
  int32_t draw_uniform(size_t partition, Stream& stream) const {
    return uniform_in(
        partition,
        static_cast<int64_t>(stream.below(static_cast<uint64_t>(partitions_[partition].count))));
  }

  // Asks for the memory that erasing the row reads.
  void prefetch(int32_t row) const {
    __builtin_prefetch(&position_[index(row)], 1);
    __builtin_prefetch(&layout_->partition[index(row)]);
  }

  // The lowest open row in [from, to), or kNone.
  int32_t next_open(int64_t from, int64_t to) const {
    if (from >= to) return kNone;
    size_t word = static_cast<size_t>(from) / 64;
    const size_t end = static_cast<size_t>(to - 1) / 64 + 1;
    uint64_t bits = open_[word] & (~uint64_t{0} << (static_cast<size_t>(from) % 64));
    while (bits == 0) {
      if (++word == end) return kNone;
      bits = open_[word];
    }
    const int64_t row = static_cast<int64_t>(word * 64) + std::countr_zero(bits);
    return row < to ? static_cast<int32_t>(row) : kNone;
  }

 private:
  // partitions per block of sums: two short scans instead of one long one
  static constexpr size_t kBlock = 8;

  struct Sum {
    int64_t count = 0;
    int64_t weight = 0;
  };

  static size_t index(int32_t row) { return static_cast<size_t>(row); }
  size_t partition_of(int32_t row) const {
    return static_cast<size_t>(layout_->partition[index(row)]);
  }

  void add_to_group(size_t i, uint32_t g, int64_t sign) {
    Sum& group = groups_[g];
    const int64_t weight = layout_->weight_of(i, g);
    group.count += sign;
    group.weight += sign * weight;
    open_[i / 64] ^= uint64_t{1} << (i % 64);
    if (!scores_.empty()) scores_[g / kWeightClasses] += sign * score_of(weight);
  }

  void add(size_t i, int64_t sign) {
    const size_t p = static_cast<size_t>(layout_->partition[i]);
    const int64_t w = sign * layout_->weight_of(i, layout_->group_of(i, p));
    for (Sum* sum : {&partitions_[p], &blocks_[p / kBlock], &total_}) {
      sum->count += sign;
      sum->weight += w;
    }
  }

  // The partition in which the rest-th unit lies; rest becomes its place within that partition.
  size_t find_partition(int64_t& rest, int64_t Sum::* unit) const {
    size_t block = 0;
    while (rest >= blocks_[block].*unit) rest -= blocks_[block++].*unit;
    size_t p = block * kBlock;
    while (rest >= partitions_[p].*unit) rest -= partitions_[p++].*unit;
    return p;
  }

  int32_t weighted_in(size_t partition, int64_t rest, Stream& stream) const {
    size_t g = partition * kWeightClasses;
    while (rest >= groups_[g].weight) rest -= groups_[g++].weight;
    const int32_t* list = list_.data() + layout_->start[g];
    const uint64_t count = static_cast<uint64_t>(groups_[g].count);
    const int64_t heaviest = layout_->heaviest[g];
    // All of the heaviest weight: every position is accepted. (Int128: the product of two large
    // weights.)
    const bool even = static_cast<Int128>(heaviest) * groups_[g].count == groups_[g].weight;
    for (;;) {
      const int32_t row = list[stream.below(count)];
      if (even || static_cast<int64_t>(stream.below(static_cast<uint64_t>(heaviest))) <
                      layout_->weight[index(row)])
        return row;
    }
  }

  int32_t uniform_in(size_t partition, int64_t rest) const {
    size_t g = partition * kWeightClasses;
    while (rest >= groups_[g].count) rest -= groups_[g++].count;
    return list_[layout_->start[g] + static_cast<size_t>(rest)];
  }

  const IndexLayout* layout_;
  HugePageVector<int32_t> list_;      // [M]: open rows, group by group
  HugePageVector<int32_t> position_;  // [M]: place in the group's list, where open
  std::vector<uint64_t> open_;        // bitmap of M rows
  std::vector<Sum> groups_;           // [P*32]
  std::vector<Sum> partitions_;       // [P]
  std::vector<Sum> blocks_;           // [P/8]
  std::vector<int64_t> scores_;       // [P], or empty unless they are kept
  Sum total_;
};

}  // namespace agora
