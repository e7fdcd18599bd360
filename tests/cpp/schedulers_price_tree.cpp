// The tree of prices against a plain column of ranks: the lowest rank, how many rows have it, and
// draws that are uniform among them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "schedulers/native/price_tree.hpp"

using namespace agora;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::exit(1);
}

void compare(const PriceTree& tree, const std::vector<int16_t>& ranks, Stream& stream) {
  const int16_t lowest =
      ranks.empty() ? PriceTree::kNone : *std::min_element(ranks.begin(), ranks.end());
  require(tree.lowest() == lowest, "the lowest rank");
  if (lowest == PriceTree::kNone) return;
  require(tree.count() == std::count(ranks.begin(), ranks.end(), lowest), "how many have it");
  require(ranks[tree.draw(stream)] == lowest, "a draw of the lowest rank");
  require(tree.first() ==
              static_cast<size_t>(std::find(ranks.begin(), ranks.end(), lowest) - ranks.begin()),
          "the first of the lowest rank");
}

void follow_changes(Stream& stream, size_t rows, uint64_t distinct) {
  const auto any = [&] {
    return stream.below(3) == 0
               ? PriceTree::kNone
               : static_cast<int16_t>(stream.below(distinct) * (30'000 / distinct));
  };
  std::vector<int16_t> ranks(rows);
  for (int16_t& rank : ranks) rank = any();
  std::vector<int16_t> in_tree = ranks;
  PriceTree tree;
  tree.build(in_tree);
  compare(tree, ranks, stream);
  if (rows == 0) return;
  for (int change = 0; change < 600; ++change) {
    // rows of the lowest rank as often as any: they are what plans change
    const size_t row = stream.below(2) == 0 || tree.lowest() == PriceTree::kNone
                           ? stream.below(rows)
                           : tree.draw(stream);
    ranks[row] = any();
    tree.set(row, ranks[row]);
    if (change % 16 == 0 || rows < 200) compare(tree, ranks, stream);
  }
  compare(tree, ranks, stream);
  for (size_t row = 0; row < rows; ++row) tree.set(row, PriceTree::kNone);
  require(tree.lowest() == PriceTree::kNone && tree.count() == 0, "an empty tree");
}

// 99.99 % of the draws of a uniform distribution over 40 rows lie within 5 standard deviations.
void draw_uniformly(Stream& stream) {
  constexpr size_t kRows = 5'000, kCheap = 40, kDraws = 40'000;
  std::vector<int16_t> ranks(kRows, 7);
  for (size_t i = 0; i < kCheap; ++i) ranks[i < 20 ? i : i * i * 3] = 2;
  std::vector<int16_t> in_tree = ranks;
  PriceTree tree;
  tree.build(in_tree);
  std::vector<int> drawn(kRows);
  for (size_t i = 0; i < kDraws; ++i) ++drawn[tree.draw(stream)];
  for (size_t row = 0; row < kRows; ++row) {
    if (ranks[row] == 2) {
      require(std::abs(drawn[row] - static_cast<int>(kDraws / kCheap)) < 160, "uniform draws");
    } else {
      require(drawn[row] == 0, "only of the lowest rank");
    }
  }
}

}  // namespace

int main() {
  Stream stream(1);
  for (const size_t rows : {0, 1, 63, 64, 65, 127, 128, 1'000, 4'096, 4'097, 300'000})
    for (const uint64_t distinct : {1, 2, 30, 30'000}) follow_changes(stream, rows, distinct);
  draw_uniformly(stream);
  return 0;
}
