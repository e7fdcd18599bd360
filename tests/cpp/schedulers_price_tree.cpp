// The tree of prices against a plain column of ranks: the lowest rank, how many rows have it, draws
// that are uniform among them, and many rows taken out at once and put back.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "schedulers/native/priced_rows.hpp"

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

void take_and_put_back(Stream& stream, PriceTree& tree, std::vector<int16_t>& ranks) {
  const auto rank = static_cast<int16_t>(stream.below(30'000));
  const size_t limit = stream.below(4) == 0 ? stream.below(100) : ranks.size();
  const auto low = [&](int16_t r) { return r <= rank; };
  const auto count = static_cast<size_t>(std::count_if(ranks.begin(), ranks.end(), low));
  require(tree.count_up_to(rank) == count, "how many have at most a rank");
  for (const size_t coarse : {0, 1, 2, 9}) {
    const size_t groups = tree.groups_up_to(rank, coarse);
    require(groups <= count && (groups > 0) == (count > 0), "groups with such rows");
  }
  const std::vector<int16_t> before = ranks;
  tree.save();
  std::vector<PriceTree::Taken> taken;
  const bool all = tree.take_up_to(rank, limit, taken);
  require(all == (taken.size() <= limit), "whether all of them were taken");
  require(!all || taken.size() == count, "all of them");
  for (size_t i = 0; i < taken.size(); ++i) {
    require(i == 0 || taken[i - 1].row < taken[i].row, "in ascending order");
    require(low(taken[i].rank) && taken[i].rank == before[taken[i].row], "with their ranks");
    ranks[taken[i].row] = PriceTree::kNone;
  }
  compare(tree, ranks, stream);
  if (stream.below(2) == 0) {
    for (const PriceTree::Taken& one : taken) tree.set(one.row, one.rank);
    ranks = before;
    compare(tree, ranks, stream);
  }
  for (const PriceTree::Taken& one : taken) tree.write(one.row, one.rank);
  tree.restore();
  ranks = before;
  compare(tree, ranks, stream);
}

void take_many(Stream& stream, size_t rows, uint64_t distinct) {
  std::vector<int16_t> ranks(rows);
  for (int16_t& rank : ranks)
    rank = stream.below(3) == 0
               ? PriceTree::kNone
               : static_cast<int16_t>(stream.below(distinct) * (30'000 / distinct));
  std::vector<int16_t> in_tree = ranks;
  PriceTree tree;
  tree.build(in_tree);
  for (int i = 0; i < 10; ++i) take_and_put_back(stream, tree, ranks);
}

// 99.99 % of the draws of a uniform distribution lie within 5 standard deviations.
void draw_uniformly(Stream& stream, size_t cheap) {
  constexpr size_t kRows = 5'000, kDrawsPerRow = 1'000;
  std::vector<int16_t> ranks(kRows, 7);
  for (size_t i = 0; i < cheap; ++i) ranks[cheap < 100 && i >= 20 ? i * i * 3 : i] = 2;
  std::vector<int16_t> in_tree = ranks;
  PriceTree tree;
  tree.build(in_tree);
  std::vector<int> drawn(kRows);
  for (size_t i = 0; i < cheap * kDrawsPerRow; ++i) ++drawn[tree.draw(stream)];
  for (size_t row = 0; row < kRows; ++row) {
    if (ranks[row] == 2) {
      require(std::abs(drawn[row] - static_cast<int>(kDrawsPerRow)) < 160, "uniform draws");
    } else {
      require(drawn[row] == 0, "only of the lowest rank");
    }
  }
}

// As a plan does with the open machines of a level, which become fewer.
void build_again(Stream& stream) {
  PriceTree tree;
  for (const size_t rows : {5'000, 100, 4'097, 4'096, 65, 64, 1, 200, 0}) {
    std::vector<int16_t> ranks(rows);
    for (int16_t& rank : ranks) rank = static_cast<int16_t>(100 + rows + stream.below(50));
    std::vector<int16_t> in_tree = ranks;
    tree.build(in_tree);
    compare(tree, ranks, stream);
    for (size_t row = 0; row < rows; ++row) {
      ranks[row] = PriceTree::kNone;
      tree.set(row, PriceTree::kNone);
      if (row % 16 == 0) compare(tree, ranks, stream);
    }
  }
}

}  // namespace

int main() {
  Stream stream(1);
  build_again(stream);
  for (const size_t rows : {0, 1, 63, 64, 65, 127, 128, 1'000, 4'096, 4'097, 300'000})
    for (const uint64_t distinct : {1, 2, 30, 30'000}) {
      follow_changes(stream, rows, distinct);
      take_many(stream, rows, distinct);
    }
  draw_uniformly(stream, 40);
  draw_uniformly(stream, 1'500);  // so many that any row is tried
  return 0;
}
