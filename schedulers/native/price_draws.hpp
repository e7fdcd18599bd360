// Rows out of trees of prices, the cheapest first, as many at a time as a plan wants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "price_tree.hpp"
#include "priced_rows.hpp"
#include "shared_state/native/random.hpp"

namespace agora {

// A row that is out of its tree, where it had a rank and a place.
struct DrawnRow {
  PriceTree* tree = nullptr;
  uint32_t place = 0;
  int16_t rank = PriceTree::kNone;
  int32_t row = -1;
};

// Which of several rows of the same price comes first.
enum class Ties { Random, First };

class PriceDraws {
 public:
  PriceDraws(PriceTrial& trial, Stream& stream, Ties ties)
      : trial_(trial), stream_(stream), ties_(ties) {}

  // Takes the cheapest rows out of the trees and appends them by ascending rank, without their
  // `row`: about as many as wanted, which is one or more; none if there is none. None that stays in
  // a tree is cheaper. Rows of the same rank come by tree and place: they may be put in random
  // order, since all of a rank are taken or those taken are random.
  void draw(std::span<PriceTree> trees, size_t wanted, std::vector<DrawnRow>& out);

 private:
  struct Lowest {
    int16_t rank;
    size_t count;
  };

  static Lowest lowest_of(std::span<const PriceTree> trees);
  void draw_few(std::span<PriceTree> trees, size_t wanted, std::vector<DrawnRow>& out);
  void draw_many(std::span<PriceTree> trees, size_t wanted, std::vector<DrawnRow>& out);
  void draw_some(std::span<PriceTree> trees, int16_t rank, size_t wanted,
                 std::vector<DrawnRow>& out);
  bool take_up_to(std::span<PriceTree> trees, int16_t rank, size_t most,
                  std::vector<DrawnRow>& out);
  void append_sorted(std::span<PriceTree> trees, int16_t lowest, int16_t highest,
                     std::vector<DrawnRow>& out);

  PriceTrial& trial_;
  Stream& stream_;
  Ties ties_;
  std::vector<PriceTree::Taken> taken_;
  std::vector<size_t> ends_;  // of each tree's in taken_
  std::vector<DrawnRow> by_low_digit_;
  std::vector<uint32_t> place_of_;
};

}  // namespace agora
