#include "price_draws.hpp"

#include <algorithm>
#include <numeric>

namespace agora {

namespace {

// Where so many rows are wanted, or more, those of several ranks are taken at once...
constexpr size_t kMany = 8;
// ... but at most so many times as many as wanted.
constexpr size_t kAtMostTimes = 4;
// Of a tree of so few rows not many are drawn at once.
constexpr size_t kFew = 256;
// Groups of rows as large as possible are looked at, but at least so many per row wanted.
constexpr size_t kCoarsest = 2;
constexpr size_t kGroupsPerRow = 2;
constexpr size_t kDigitBits = 11;
constexpr size_t kDigits = size_t{1} << kDigitBits;

size_t count_up_to(std::span<const PriceTree> trees, int16_t rank) {
  size_t count = 0;
  for (const PriceTree& tree : trees) count += tree.count_up_to(rank);
  return count;
}

size_t groups_up_to(std::span<const PriceTree> trees, int16_t rank, size_t coarse) {
  size_t count = 0;
  for (const PriceTree& tree : trees)
    if (tree.lowest() <= rank) count += tree.groups_up_to(rank, coarse);
  return count;
}

// A rank up to which there are about as many rows as wanted, if there are. The lowest rank has
// fewer.
//
// Only the lowest rows of groups are looked at, which is fast. Where prices are in no order, w rows
// lie in n (1 - exp(-w/n)) of n groups; that is about n x / (1 + x/2) with x = w/n.
int16_t guess_rank(std::span<const PriceTree> trees, int16_t lowest, size_t wanted) {
  constexpr int16_t kHighest = PriceTree::kNone - 1;
  size_t coarse = kCoarsest, groups = 0;
  for (;; --coarse) {
    groups = groups_up_to(trees, kHighest, coarse);
    if (groups >= kGroupsPerRow * wanted || coarse == 0) break;
  }
  const size_t enough = std::min(2 * groups * wanted / (2 * groups + wanted), groups - groups / 4);
  int low = lowest, high = lowest;  // up to `low` there are too few
  for (int step = 1; high < kHighest; step *= 2) {
    high = std::min<int>(high + step, kHighest);
    if (groups_up_to(trees, static_cast<int16_t>(high), coarse) >= enough) break;
    low = high;
  }
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    const bool few = groups_up_to(trees, static_cast<int16_t>(middle), coarse) < enough;
    (few ? low : high) = middle;
  }
  return static_cast<int16_t>(high);
}

// A rank below the highest one up to which there are at least as many rows as wanted, but not more
// than `most`; else the highest rank with fewer. Up to the lowest rank there are not more.
int16_t find_rank(std::span<const PriceTree> trees, int16_t lowest, int16_t highest, size_t wanted,
                  size_t most) {
  int low = lowest, high = highest;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    const size_t count = count_up_to(trees, static_cast<int16_t>(middle));
    (count > most ? high : low) = middle;
    if (count >= wanted && count <= most) break;
  }
  return static_cast<int16_t>(low);
}

}  // namespace

PriceDraws::Lowest PriceDraws::lowest_of(std::span<const PriceTree> trees) {
  Lowest lowest{PriceTree::kNone, 0};
  for (const PriceTree& tree : trees) {
    if (tree.lowest() > lowest.rank) continue;
    if (tree.lowest() < lowest.rank) lowest.count = 0;
    lowest.rank = tree.lowest();
    lowest.count += tree.count();
  }
  return lowest;
}

void PriceDraws::draw(std::span<PriceTree> trees, size_t wanted, std::vector<DrawnRow>& out) {
  if (wanted >= kMany) return draw_many(trees, wanted, out);
  draw_few(trees, wanted, out);
}

void PriceDraws::draw_few(std::span<PriceTree> trees, size_t wanted, std::vector<DrawnRow>& out) {
  while (wanted > 0) {
    const Lowest lowest = lowest_of(trees);
    if (lowest.rank == PriceTree::kNone) return;
    if (lowest.count > wanted) return draw_some(trees, lowest.rank, wanted, out);
    take_up_to(trees, lowest.rank, lowest.count, out);
    wanted -= lowest.count;
  }
}

void PriceDraws::draw_many(std::span<PriceTree> trees, size_t wanted, std::vector<DrawnRow>& out) {
  const Lowest lowest = lowest_of(trees);
  if (lowest.rank == PriceTree::kNone) return;
  for (PriceTree& tree : trees) trial_.expect_many(tree);
  if (trees.size() == 1 && trees[0].rows() <= kFew) return draw_few(trees, kMany, out);
  const size_t most = kAtMostTimes * wanted;
  if (lowest.count > most) return draw_some(trees, lowest.rank, wanted, out);
  int16_t rank = lowest.rank;
  if (lowest.count < wanted) rank = guess_rank(trees, lowest.rank, wanted);
  if (take_up_to(trees, rank, most, out)) return;
  take_up_to(trees, find_rank(trees, lowest.rank, rank, wanted, most), most, out);
}

// Of the lowest rank, of which there are more.
void PriceDraws::draw_some(std::span<PriceTree> trees, int16_t rank, size_t wanted,
                           std::vector<DrawnRow>& out) {
  for (; wanted > 0; --wanted) {
    size_t at = 0;
    if (ties_ == Ties::First) {
      while (trees[at].lowest() != rank) ++at;
    } else if (trees.size() > 1) {
      uint64_t rest = stream_.below(lowest_of(trees).count);
      for (; trees[at].lowest() != rank || rest >= trees[at].count(); ++at)
        if (trees[at].lowest() == rank) rest -= trees[at].count();
    }
    PriceTree& tree = trees[at];
    const size_t place = ties_ == Ties::First ? tree.first() : tree.draw(stream_);
    trial_.correct(tree, place, PriceTree::kNone);
    out.push_back({&tree, static_cast<uint32_t>(place), rank});
  }
}

// All rows up to a rank; none if they are more than `most`: false.
bool PriceDraws::take_up_to(std::span<PriceTree> trees, int16_t rank, size_t most,
                            std::vector<DrawnRow>& out) {
  taken_.clear();
  ends_.clear();
  int16_t lowest = rank;
  for (PriceTree& tree : trees) {
    if (tree.lowest() <= rank) {
      lowest = std::min(lowest, tree.lowest());
      if (!trial_.take_up_to(tree, rank, most - taken_.size(), taken_)) {
        trial_.undo_last(taken_.size());
        return false;
      }
    }
    ends_.push_back(taken_.size());
  }
  append_sorted(trees, lowest, rank, out);
  return true;
}

// Appends the rows taken by rank, those of equal rank as they stand: a radix sort.
void PriceDraws::append_sorted(std::span<PriceTree> trees, int16_t lowest, int16_t highest,
                               std::vector<DrawnRow>& out) {
  const size_t first = out.size(), range = static_cast<size_t>(highest - lowest);
  out.resize(first + taken_.size());
  const auto low_digit = [&](int16_t rank) {
    return static_cast<size_t>(rank - lowest) & (kDigits - 1);
  };
  const auto high_digit = [&](int16_t rank) {
    return static_cast<size_t>(rank - lowest) >> kDigitBits;
  };
  const bool one_digit = range < kDigits;
  if (!one_digit) by_low_digit_.resize(taken_.size());
  DrawnRow* to = one_digit ? out.data() + first : by_low_digit_.data();
  place_of_.assign(std::min(range + 1, kDigits), 0);
  for (const PriceTree::Taken& one : taken_) ++place_of_[low_digit(one.rank)];
  std::exclusive_scan(place_of_.begin(), place_of_.end(), place_of_.begin(), uint32_t{0});
  size_t i = 0;
  for (size_t t = 0; t < trees.size(); ++t)
    for (; i < ends_[t]; ++i)
      to[place_of_[low_digit(taken_[i].rank)]++] = {&trees[t], taken_[i].row, taken_[i].rank};
  if (one_digit) return;
  place_of_.assign(high_digit(highest) + 1, 0);
  for (const DrawnRow& row : by_low_digit_) ++place_of_[high_digit(row.rank)];
  std::exclusive_scan(place_of_.begin(), place_of_.end(), place_of_.begin(), uint32_t{0});
  for (const DrawnRow& row : by_low_digit_) out[first + place_of_[high_digit(row.rank)]++] = row;
}

}  // namespace agora
