// Rows by the rank of their price: the lowest one of them, drawn uniformly where several are.
//
// A tree of 64 children per node, each node with the lowest rank below it and how many rows have
// it. Drawing is a look at one node per tier; a change looks at a node again only where its last
// row of the lowest rank left.
#pragma once

#include <array>
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

  // Filling: resize(), write ranks(), then build().
  void resize(size_t rows);
  std::span<int16_t> ranks() { return {ranks_.data(), rows_}; }
  void build();

  size_t rows() const { return rows_; }
  int16_t rank(size_t row) const { return ranks_[row]; }
  int16_t lowest() const { return tiers_.back().lowest[0]; }
  uint32_t count() const { return tiers_.back().count[0]; }  // of rows of the lowest rank
  // A row of the lowest rank, of which there is one: any, each as likely; or the first.
  size_t draw(Stream& stream) const;
  size_t first() const;
  void set(size_t row, int16_t rank);

 private:
  static constexpr size_t kChildren = 64;

  // Of the nodes of a tier, padded to a multiple of 64.
  struct Tier {
    std::vector<int16_t> lowest;
    std::vector<uint32_t> count;
  };

  static uint64_t equal_to(const int16_t* ranks, int16_t rank);
  size_t descend(uint32_t nth) const;
  void look_again(size_t tier, size_t node);

  size_t rows_ = 0;
  std::vector<int16_t> ranks_;  // padded to a multiple of 64
  std::vector<Tier> tiers_;     // the last one has one node
};

}  // namespace agora
