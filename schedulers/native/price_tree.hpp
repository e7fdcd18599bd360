// Rows by the rank of their price: the lowest one of them, drawn uniformly where several are.
//
// A tree of 64 children per node, each node with the lowest rank below it and how many rows have
// it. Drawing is a look at one node per tier; a change looks at a node again only where its last
// row of the lowest rank left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "shared_state/native/random.hpp"

namespace agora {

class PriceTree {
 public:
  static constexpr int16_t kNone = std::numeric_limits<int16_t>::max();  // of a row not offered

  // Builds the tree over ranks, which are the caller's: they stay where they are, and change by
  // set() alone.
  void build(std::span<int16_t> ranks);

  size_t rows() const { return ranks_.size(); }
  int16_t rank(size_t row) const { return ranks_[row]; }
  int16_t lowest() const { return root_.rank; }
  uint32_t count() const { return root_.count; }  // of rows of the lowest rank
  // A row of the lowest rank, of which there is one: any, each as likely; or the first.
  size_t draw(Stream& stream) const;
  size_t first() const;
  void set(size_t row, int16_t rank);

  // A row, and the rank that it had.
  struct Taken {
    uint32_t row;
    int16_t rank;
  };
  // Sets all rows of at most this rank, which is below kNone, to kNone, and appends them by
  // ascending row. Stops soon after `limit` of them, and then returns false.
  bool take_up_to(int16_t rank, size_t limit, std::vector<Taken>& taken);
  // How many rows have at most this rank, which is below kNone.
  size_t count_up_to(int16_t rank) const;
  // The same, but at most one of each group of rows is counted: fast. Groups are of 64 rows, or of
  // 64 times as many per step of `coarse`.
  size_t groups_up_to(int16_t rank, size_t coarse) const;

  // Keeps the tree, ranks apart, as it is now, until restore(). To take many rows out and put them
  // back: ranks may be put back by write(), which leaves the rest of the tree wrong till then.
  void save();
  void restore();
  bool saved() const { return saved_; }
  void write(size_t row, int16_t rank) { ranks_[row] = rank; }

 private:
  static constexpr size_t kBitsOfChild = 6;
  static constexpr size_t kChildren = size_t{1} << kBitsOfChild;

  // The nodes of a tier, padded to a multiple of 64.
  struct Tier {
    std::vector<int16_t> lowest;
    std::vector<uint32_t> count;
  };

  struct Lowest {
    int16_t rank;
    uint32_t count;
  };

  static int16_t lowest_of(const int16_t* ranks);
  static uint32_t count_equal(const int16_t* ranks, int16_t rank);
  static uint64_t equal_to(const int16_t* ranks, int16_t rank);
  static uint64_t at_most(const int16_t* ranks, int16_t rank);
  uint64_t equal_in_leaf(size_t node, int16_t rank) const;
  uint64_t at_most_in_leaf(size_t node, int16_t rank) const;
  Lowest look_at(size_t node) const;
  void prefetch_leaf(size_t node) const;
  bool take_up_to(int16_t rank, size_t tier, size_t node, size_t end, std::vector<Taken>& taken);
  size_t count_up_to(int16_t rank, size_t tier, size_t node) const;
  void look_again(size_t tier, size_t node);

  std::span<int16_t> ranks_;
  std::vector<Tier> tiers_;  // the last one has one node
  Lowest root_{kNone, 0};    // that node
  std::vector<Tier> tiers_before_;
  bool saved_ = false;
};

}  // namespace agora
