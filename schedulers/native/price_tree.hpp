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

  int16_t rank(size_t row) const { return ranks_[row]; }
  int16_t lowest() const { return root_.rank; }
  uint32_t count() const { return root_.count; }  // of rows of the lowest rank
  // A row of the lowest rank, of which there is one: any, each as likely; or the first.
  size_t draw(Stream& stream) const;
  size_t first() const;
  void set(size_t row, int16_t rank);
  // Sets all rows of the lowest rank, of which there is one, to kNone, and appends them, ascending.
  void take_lowest(std::vector<size_t>& rows);

 private:
  static constexpr size_t kChildren = 64;

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
  static uint64_t equal_to(const int16_t* ranks, int16_t rank);
  uint64_t equal_in_leaf(size_t node, int16_t rank) const;
  Lowest look_at(size_t node) const;
  void take_lowest(size_t tier, size_t node, std::vector<size_t>& rows);
  void look_again(size_t tier, size_t node);

  std::span<int16_t> ranks_;
  std::vector<Tier> tiers_;  // the last one has one node
  Lowest root_{kNone, 0};    // that node
};

}  // namespace agora
