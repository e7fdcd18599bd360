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
// The lists hold rows by their place in the partition, in two bytes each where every partition is
// small enough for that.
//
// insert, erase: O(1). Draws: O(P / 8 + 8 + 32). next_open: a bitmap scan. Undoing insertions and
// erasures in the reverse order restores the very same lists, and so the very same later draws.
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
    weight_class.resize(weight.size());
    start.assign(partitions * kWeightClasses + 1, 0);
    heaviest.assign(partitions * kWeightClasses, 1);
    for (size_t p = 0; p < partitions; ++p) {
      for (int64_t row = offsets[p]; row < offsets[p + 1]; ++row) {
        const size_t i = static_cast<size_t>(row);
        const int below_top = top - (std::bit_width(static_cast<uint64_t>(weight[i])) - 1);
        weight_class[i] = static_cast<uint8_t>(std::min<int>(below_top, kWeightClasses - 1));
        const size_t g = p * kWeightClasses + weight_class[i];
        heaviest[g] = std::max(heaviest[g], weight[i]);
        ++start[g + 1];
      }
    }
    for (size_t g = 0; g + 1 < start.size(); ++g) start[g + 1] += start[g];
    find_even_groups();
    find_partitions();
  }

  size_t rows() const { return weight.size(); }
  size_t partitions() const { return offsets.size() - 1; }
  size_t partition_of(int32_t row) const {
    size_t p = partition_at_[static_cast<size_t>(row) >> block_bits_];
    while (row >= offsets[p + 1]) ++p;
    return p;
  }
  int64_t largest_partition() const { return largest_partition_; }

  std::vector<int64_t> weight;           // [M]
  std::vector<int64_t> offsets;          // [P+1]
  HugePageVector<uint8_t> weight_class;  // [M]
  std::vector<uint32_t> start;           // [P*32+1]: where the group's list begins
  std::vector<int64_t> heaviest;         // [P*32]

  // A change of a row reads less memory where these need not be looked up by row.
  static constexpr uint32_t kSeveral = ~uint32_t{0};
  std::vector<int64_t> even_weight;  // [P*32]: of all rows of the group; 0 if they differ
  std::vector<uint32_t> only_group;  // [P]: of all rows of the partition, or kSeveral

  uint32_t group_of(size_t row, size_t its_partition) const {
    const uint32_t g = only_group[its_partition];
    return g != kSeveral ? g : group(row, its_partition);
  }
  int64_t weight_of(size_t row, uint32_t its_group) const {
    const int64_t w = even_weight[its_group];
    return w != 0 ? w : weight[row];
  }

 private:
  uint32_t group(size_t row, size_t its_partition) const {
    return static_cast<uint32_t>(its_partition * kWeightClasses) + weight_class[row];
  }

  void find_even_groups() {
    even_weight = heaviest;
    only_group.assign(partitions(), kSeveral);
    for (size_t p = 0; p < partitions(); ++p) {
      const size_t first = static_cast<size_t>(offsets[p]),
                   end = static_cast<size_t>(offsets[p + 1]);
      bool one = first < end;
      for (size_t i = first; i < end; ++i) {
        const uint32_t g = group(i, p);
        if (weight[i] != heaviest[g]) even_weight[g] = 0;
        one = one && weight_class[i] == weight_class[first];
      }
      if (one) only_group[p] = group(first, p);
    }
  }

  // No partition is smaller than a block, so each block is of one partition, or of two.
  void find_partitions() {
    int64_t smallest = std::max<int64_t>(static_cast<int64_t>(rows()), 1);
    for (size_t p = 0; p < partitions(); ++p) {
      const int64_t size = offsets[p + 1] - offsets[p];
      largest_partition_ = std::max(largest_partition_, size);
      if (size > 0) smallest = std::min(smallest, size);
    }
    block_bits_ = std::bit_width(static_cast<uint64_t>(smallest)) - 1;
    size_t p = 0;
    for (size_t row = 0; row < rows(); row += size_t{1} << block_bits_) {
      while (static_cast<int64_t>(row) >= offsets[p + 1]) ++p;
      partition_at_.push_back(static_cast<uint32_t>(p));
    }
  }

  int64_t largest_partition_ = 0;
  int block_bits_ = 0;                  // of the rows of a block: 2^block_bits_
  std::vector<uint32_t> partition_at_;  // by block: that of its first row
};

// Whole numbers from 0, as wide as the highest needs.
class Numbers {
 public:
  // All lie below `bound`, which is at most 2^31.
  Numbers(size_t count, int64_t bound)
      : are_short_(bound <= int64_t{1} << 16),
        short_(are_short_ ? count : 0),
        long_(are_short_ ? 0 : count) {}

  int64_t operator[](size_t at) const {
    return are_short_ ? int64_t{short_[at]} : int64_t{long_[at]};
  }
  void set(size_t at, int64_t number) {
    if (are_short_) {
      short_[at] = static_cast<uint16_t>(number);
    } else {
      long_[at] = static_cast<uint32_t>(number);
    }
  }
  bool are_short() const { return are_short_; }
  // The numbers themselves: uint16_t if they are short, else uint32_t.
  template <class T>
  T* as() {
    if constexpr (sizeof(T) == sizeof(uint16_t)) {
      return short_.data();
    } else {
      return long_.data();
    }
  }
  void prefetch(size_t at) const {
    __builtin_prefetch(are_short_ ? static_cast<const void*>(&short_[at]) : &long_[at], 1);
  }

 private:
  bool are_short_;
  HugePageVector<uint16_t> short_;
  HugePageVector<uint32_t> long_;
};

class WeightedIndex {
 public:
  static constexpr int32_t kNone = -1;

  explicit WeightedIndex(const IndexLayout& layout)
      : layout_(&layout),
        list_(layout.rows(), layout.largest_partition()),
        position_(layout.rows(), layout.largest_partition()),
        open_((layout.rows() + 63) / 64),
        groups_(layout.partitions() * kWeightClasses),
        partitions_(layout.partitions()),
        blocks_((layout.partitions() + kBlock - 1) / kBlock) {}

  bool contains(int32_t row) const { return open_[index(row) / 64] >> (index(row) % 64) & 1; }
  // Of the rows from 64 * word on, those that are contained: the lowest bit is the first row.
  uint64_t open_rows(size_t word) const { return open_[word]; }
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
      scores_[layout_->partition_of(row)] += score_of(layout_->weight[index(row)]);
  }

  // Requires: not contained.
  void insert(int32_t row) {
    const size_t partition = layout_->partition_of(row);
    insert_unsummed(row, partition);
    add(index(row), partition, +1);
  }

  // Requires: contained. Returns the place it had in its group's list.
  int32_t erase(int32_t row) {
    const size_t partition = layout_->partition_of(row);
    add(index(row), partition, -1);
    return erase_unsummed(row, partition);
  }

  // Inserts those of the rows that are not contained, and erases the others, in the order given;
  // all are of the partition, and none is named twice. Counts and weights beyond the groups' are
  // wrong until resum(partition).
  void toggle_unsummed(std::span<const int32_t> rows, size_t partition) {
    const bool one_weight = layout_->only_group[partition] != IndexLayout::kSeveral &&
                            layout_->even_weight[layout_->only_group[partition]] != 0;
    if (!scores_.empty()) {
      for (const int32_t row : rows) toggle(row, partition);
    } else if (list_.are_short()) {
      one_weight ? toggle_of_one_weight<uint16_t>(rows, partition)
                 : toggle_of_many_weights<uint16_t>(rows, partition);
    } else {
      one_weight ? toggle_of_one_weight<uint32_t>(rows, partition)
                 : toggle_of_many_weights<uint32_t>(rows, partition);
    }
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
    const size_t i = index(row), partition = layout_->partition_of(row);
    const size_t first = index(layout_->offsets[partition]);
    const uint32_t g = layout_->group_of(i, partition);
    const size_t list = layout_->start[g];
    const int64_t end = groups_[g].count;
    if (at < end) {
      const int64_t moved = list_[list + index(at)];
      list_.set(list + index(end), moved);
      position_.set(first + index(moved), end);
    }
    list_.set(list + index(at), static_cast<int64_t>(i - first));
    position_.set(i, at);
    add_to_group(i, g, +1);
    add(i, partition, +1);
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
  void prefetch(int32_t row) const { position_.prefetch(index(row)); }

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

  static size_t index(int64_t number) { return static_cast<size_t>(number); }

  void insert_unsummed(int32_t row, size_t partition) {
    const size_t i = index(row);
    const uint32_t g = layout_->group_of(i, partition);
    const int64_t at = groups_[g].count;
    list_.set(layout_->start[g] + index(at), row - layout_->offsets[partition]);
    position_.set(i, at);
    add_to_group(i, g, +1);
  }
  int32_t erase_unsummed(int32_t row, size_t partition) {
    const size_t i = index(row), first = index(layout_->offsets[partition]);
    const uint32_t g = layout_->group_of(i, partition);
    const size_t list = layout_->start[g];
    const int64_t at = position_[i];
    const int64_t last = list_[list + index(groups_[g].count - 1)];
    list_.set(list + index(at), last);
    position_.set(first + index(last), at);
    add_to_group(i, g, -1);
    return static_cast<int32_t>(at);
  }
  void toggle(int32_t row, size_t partition) {
    if (contains(row)) {
      erase_unsummed(row, partition);
    } else {
      insert_unsummed(row, partition);
    }
  }

  // toggle() of each row, where the sums of scores are not kept.
  template <class T>
  void toggle_of_many_weights(std::span<const int32_t> rows, size_t partition) {
    const int64_t first = layout_->offsets[partition];
    T* position = position_.as<T>() + first;
    const uint8_t* weight_class = layout_->weight_class.data() + first;
    const int64_t* weight = layout_->weight.data() + first;
    Sum* groups = groups_.data() + partition * kWeightClasses;
    const uint32_t* start = layout_->start.data() + partition * kWeightClasses;
    for (const int32_t row : rows) {
      const size_t at = index(row - first), its_class = weight_class[at];
      T* list = list_.as<T>() + start[its_class];
      Sum& group = groups[its_class];
      uint64_t& word = open_[index(row) / 64];
      const uint64_t bit = uint64_t{1} << (index(row) % 64);
      if ((word & bit) == 0) {
        list[group.count] = static_cast<T>(at);
        position[at] = static_cast<T>(group.count++);
        group.weight += weight[at];
      } else {
        const T last = list[--group.count];
        list[position[at]] = last;
        position[last] = position[at];
        group.weight -= weight[at];
      }
      word ^= bit;
    }
  }

  // toggle() of each row, where one group holds the partition's rows and all weigh the same: its
  // list and sums are looked up once.
  template <class T>
  void toggle_of_one_weight(std::span<const int32_t> rows, size_t partition) {
    const int64_t first = layout_->offsets[partition];
    const uint32_t g = layout_->only_group[partition];
    T* list = list_.as<T>() + layout_->start[g];
    T* position = position_.as<T>() + first;
    int64_t count = groups_[g].count;
    for (const int32_t row : rows) {
      const size_t at = index(row - first);
      uint64_t& word = open_[index(row) / 64];
      const uint64_t bit = uint64_t{1} << (index(row) % 64);
      if ((word & bit) == 0) {
        list[count] = static_cast<T>(at);
        position[at] = static_cast<T>(count++);
      } else {
        const T last = list[--count];
        list[position[at]] = last;
        position[last] = position[at];
      }
      word ^= bit;
    }
    groups_[g] = {count, count * layout_->even_weight[g]};
  }

  void add_to_group(size_t i, uint32_t g, int64_t sign) {
    Sum& group = groups_[g];
    const int64_t weight = layout_->weight_of(i, g);
    group.count += sign;
    group.weight += sign * weight;
    open_[i / 64] ^= uint64_t{1} << (i % 64);
    if (!scores_.empty()) scores_[g / kWeightClasses] += sign * score_of(weight);
  }

  void add(size_t i, size_t p, int64_t sign) {
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
    const size_t list = layout_->start[g], first = index(layout_->offsets[partition]);
    const uint64_t count = static_cast<uint64_t>(groups_[g].count);
    const int64_t heaviest = layout_->heaviest[g];
    // All of the heaviest weight: every position is accepted. (Int128: the product of two large
    // weights.)
    const bool even = static_cast<Int128>(heaviest) * groups_[g].count == groups_[g].weight;
    for (;;) {
      const size_t row = first + index(list_[list + stream.below(count)]);
      if (even || static_cast<int64_t>(stream.below(static_cast<uint64_t>(heaviest))) <
                      layout_->weight[row])
        return static_cast<int32_t>(row);
    }
  }

  int32_t uniform_in(size_t partition, int64_t rest) const {
    size_t g = partition * kWeightClasses;
    while (rest >= groups_[g].count) rest -= groups_[g++].count;
    return static_cast<int32_t>(layout_->offsets[partition] +
                                list_[layout_->start[g] + index(rest)]);
  }

  const IndexLayout* layout_;
  Numbers list_;                 // [M]: open rows by their place in the partition, group by group
  Numbers position_;             // [M]: place in the group's list, where open
  std::vector<uint64_t> open_;   // bitmap of M rows
  std::vector<Sum> groups_;      // [P*32]
  std::vector<Sum> partitions_;  // [P]
  std::vector<Sum> blocks_;      // [P/8]
  std::vector<int64_t> scores_;  // [P], or empty unless they are kept
  Sum total_;
};

}  // namespace agora
