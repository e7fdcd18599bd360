#include "priced_rows.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>
#include <string>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace agora {

[[gnu::always_inline]] inline int16_t PriceTree::lowest_of(const int16_t* ranks) {
  int16_t lowest = kNone;
  for (size_t i = 0; i < kChildren; ++i) lowest = std::min(lowest, ranks[i]);
  return lowest;
}

// The bits of those of 64 ranks that are equal to one.
[[gnu::always_inline]] inline uint64_t PriceTree::equal_to(const int16_t* ranks, int16_t rank) {
  uint64_t equal = 0;
#ifdef __SSE2__
  const __m128i wanted = _mm_set1_epi16(rank);
  for (size_t i = 0; i < kChildren; i += 16) {
    const __m128i* at = reinterpret_cast<const __m128i*>(ranks + i);
    const __m128i both = _mm_packs_epi16(_mm_cmpeq_epi16(_mm_loadu_si128(at), wanted),
                                         _mm_cmpeq_epi16(_mm_loadu_si128(at + 1), wanted));
    equal |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(both))) << i;
  }
#else
  for (size_t i = 0; i < kChildren; ++i) equal |= static_cast<uint64_t>(ranks[i] == rank) << i;
#endif
  return equal;
}

[[gnu::always_inline]] inline uint32_t PriceTree::count_equal(const int16_t* ranks, int16_t rank) {
  int16_t count = 0;
  for (size_t i = 0; i < kChildren; ++i) count = static_cast<int16_t>(count + (ranks[i] == rank));
  return static_cast<uint32_t>(count);
}

// Of those that are at most as high as one below kNone.
[[gnu::always_inline]] inline uint64_t PriceTree::at_most(const int16_t* ranks, int16_t rank) {
  uint64_t low = 0;
#ifdef __SSE2__
  const __m128i above = _mm_set1_epi16(static_cast<int16_t>(rank + 1));
  for (size_t i = 0; i < kChildren; i += 16) {
    const __m128i* at = reinterpret_cast<const __m128i*>(ranks + i);
    const __m128i both = _mm_packs_epi16(_mm_cmplt_epi16(_mm_loadu_si128(at), above),
                                         _mm_cmplt_epi16(_mm_loadu_si128(at + 1), above));
    low |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(both))) << i;
  }
#else
  for (size_t i = 0; i < kChildren; ++i) low |= static_cast<uint64_t>(ranks[i] <= rank) << i;
#endif
  return low;
}

[[gnu::always_inline]] inline uint64_t PriceTree::equal_in_leaf(size_t node, int16_t rank) const {
  const size_t first = node * kChildren;
  if (first + kChildren <= ranks_.size()) return equal_to(ranks_.data() + first, rank);
  uint64_t equal = 0;
  for (size_t i = first; i < ranks_.size(); ++i)
    equal |= static_cast<uint64_t>(ranks_[i] == rank) << (i - first);
  return equal;
}

[[gnu::always_inline]] inline uint64_t PriceTree::at_most_in_leaf(size_t node, int16_t rank) const {
  const size_t first = node * kChildren;
  if (first + kChildren <= ranks_.size()) return at_most(ranks_.data() + first, rank);
  uint64_t low = 0;
  for (size_t i = first; i < ranks_.size(); ++i)
    low |= static_cast<uint64_t>(ranks_[i] <= rank) << (i - first);
  return low;
}

// The 64 ranks at a node of the lowest tier, or fewer at the last one.
[[gnu::always_inline]] inline PriceTree::Lowest PriceTree::look_at(size_t node) const {
  const size_t first = node * kChildren;
  const int16_t* ranks = ranks_.data() + first;
  if (first + kChildren <= ranks_.size()) {
    const int16_t lowest = lowest_of(ranks);
    return {lowest, count_equal(ranks, lowest)};
  }
  const auto last = ranks_.subspan(first);
  const int16_t lowest = *std::min_element(last.begin(), last.end());
  return {lowest, static_cast<uint32_t>(std::count(last.begin(), last.end(), lowest))};
}

void PriceTree::build(std::span<int16_t> ranks) {
  ranks_ = ranks;
  size_t nodes = ranks.size();
  size_t tier = 0;
  for (; tier == 0 || nodes > 1; ++tier) {
    nodes = std::max<size_t>((nodes + kChildren - 1) / kChildren, 1);
    if (tier == tiers_.size()) tiers_.emplace_back();
    const size_t padded = (nodes + kChildren - 1) / kChildren * kChildren;
    tiers_[tier].lowest.assign(padded, kNone);
    tiers_[tier].count.assign(padded, 0);
    for (size_t node = 0; node < nodes; ++node) look_again(tier, node);
  }
  tiers_.resize(tier);  // it may have been built over more rows before
  root_ = {tiers_.back().lowest[0], tiers_.back().count[0]};
}

void PriceTree::look_again(size_t tier, size_t node) {
  Lowest found{kNone, 0};
  if (tier > 0) {
    const Tier& below = tiers_[tier - 1];
    const size_t first = node * kChildren;
    found.rank = lowest_of(below.lowest.data() + first);
    for (uint64_t equal = equal_to(below.lowest.data() + first, found.rank); equal != 0;
         equal &= equal - 1)
      found.count += below.count[first + static_cast<size_t>(std::countr_zero(equal))];
  } else if (!ranks_.empty()) {
    found = look_at(node);
  }
  tiers_[tier].lowest[node] = found.rank;
  tiers_[tier].count[node] = found.rank == kNone ? 0 : found.count;
}

void PriceTree::set(size_t row, int16_t rank) {
  int16_t before = ranks_[row];
  if (before == rank) return;
  ranks_[row] = rank;
  // How many rows of the rank `before` the child at hand had, and how many of `rank` it has now.
  uint32_t had = 1, has = 1;
  size_t child = row;
  for (size_t tier = 0; tier < tiers_.size(); ++tier) {
    const size_t node = child / kChildren;
    int16_t& lowest = tiers_[tier].lowest[node];
    uint32_t& count = tiers_[tier].count[node];
    const int16_t lowest_before = lowest;
    const uint32_t count_before = count;
    const uint32_t left = before == lowest && before != kNone ? count - had : count;
    if (rank < lowest) {
      lowest = rank;
      count = has;
    } else if (rank == lowest && rank != kNone) {
      count = left + has;
    } else if (left > 0 || before != lowest) {
      count = left;
    } else {
      look_again(tier, node);
    }
    if (lowest == lowest_before && count == count_before) return;
    before = lowest_before;
    had = count_before;
    rank = lowest;
    has = count;
    child = node;
  }
  root_ = {rank, has};
}

bool PriceTree::take_up_to(int16_t rank, size_t limit, std::vector<Taken>& taken) {
  const bool all = take_up_to(rank, tiers_.size() - 1, 0, taken.size() + limit, taken);
  root_ = {tiers_.back().lowest[0], tiers_.back().count[0]};
  return all;
}

bool PriceTree::take_up_to(int16_t rank, size_t tier, size_t node, size_t end,
                           std::vector<Taken>& taken) {
  const size_t first = node * kChildren;
  bool all = true;
  if (tier == 0) {
    for (uint64_t low = at_most_in_leaf(node, rank); low != 0; low &= low - 1) {
      const size_t row = first + static_cast<size_t>(std::countr_zero(low));
      taken.push_back({static_cast<uint32_t>(row), ranks_[row]});
      ranks_[row] = kNone;
    }
    all = taken.size() <= end;
  } else {
    uint64_t low = at_most(tiers_[tier - 1].lowest.data() + first, rank);
    if (tier == 1)
      for (uint64_t next = low; next != 0; next &= next - 1)
        prefetch_leaf(first + static_cast<size_t>(std::countr_zero(next)));
    for (; low != 0 && all; low &= low - 1)
      all = take_up_to(rank, tier - 1, first + static_cast<size_t>(std::countr_zero(low)), end,
                       taken);
  }
  look_again(tier, node);
  return all;
}

void PriceTree::prefetch_leaf(size_t node) const {
  constexpr size_t kRanksPerLine = 32;
  const int16_t* ranks = ranks_.data() + node * kChildren;
  __builtin_prefetch(ranks, 1);
  __builtin_prefetch(ranks + kRanksPerLine, 1);
}

size_t PriceTree::count_up_to(int16_t rank) const {
  return root_.rank > rank ? 0 : count_up_to(rank, tiers_.size() - 1, 0);
}

size_t PriceTree::count_up_to(int16_t rank, size_t tier, size_t node) const {
  if (tier == 0) return static_cast<size_t>(std::popcount(at_most_in_leaf(node, rank)));
  const size_t first = node * kChildren;
  size_t count = 0;
  for (uint64_t low = at_most(tiers_[tier - 1].lowest.data() + first, rank); low != 0;
       low &= low - 1)
    count += count_up_to(rank, tier - 1, first + static_cast<size_t>(std::countr_zero(low)));
  return count;
}

size_t PriceTree::groups_up_to(int16_t rank, size_t coarse) const {
  const std::vector<int16_t>& lowest = tiers_[std::min(coarse, tiers_.size() - 1)].lowest;
  size_t count = 0;
  for (size_t node = 0; node < lowest.size(); node += kChildren)
    count += static_cast<size_t>(std::popcount(at_most(lowest.data() + node, rank)));
  return count;
}

void PriceTree::save() {
  tiers_before_ = tiers_;
  saved_ = true;
}

void PriceTree::restore() {
  std::swap(tiers_, tiers_before_);
  root_ = {tiers_.back().lowest[0], tiers_.back().count[0]};
  saved_ = false;
}

// Where a node is so full that a try or two at random hit a row of the lowest rank,
// the counts of its children need not be summed.
size_t PriceTree::draw(Stream& stream) const {
  constexpr uint64_t kTries = 8, kFlatTries = 4;
  const int16_t rank = lowest();
  if (count() * kFlatTries >= ranks_.size()) {
    for (;;) {
      const size_t row = stream.below(ranks_.size());
      if (ranks_[row] == rank) return row;
    }
  }
  uint64_t nth = count() == 1 ? 0 : stream.below(count());
  size_t node = 0;
  for (size_t tier = tiers_.size() - 1; tier > 0; --tier) {
    const size_t bits_of_child = kBitsOfChild * tier;
    const int16_t* ranks = tiers_[tier - 1].lowest.data() + node * kChildren;
    const uint32_t* counts = tiers_[tier - 1].count.data() + node * kChildren;
    size_t child = 0;
    if (tiers_[tier].count[node] * kTries >= kChildren << bits_of_child) {
      do {
        nth = stream.below(kChildren << bits_of_child);
        child = nth >> bits_of_child;
        nth &= (uint64_t{1} << bits_of_child) - 1;
      } while (ranks[child] != rank || nth >= counts[child]);
    } else {
      uint64_t equal = equal_to(ranks, rank);
      for (;; equal &= equal - 1) {
        child = static_cast<size_t>(std::countr_zero(equal));
        if (nth < counts[child]) break;
        nth -= counts[child];
      }
    }
    node = node * kChildren + child;
  }
  uint64_t equal = equal_in_leaf(node, rank);
  for (; nth > 0; --nth) equal &= equal - 1;
  return node * kChildren + static_cast<size_t>(std::countr_zero(equal));
}

size_t PriceTree::first() const {
  size_t node = 0;
  for (size_t tier = tiers_.size() - 1; tier > 0; --tier)
    node = node * kChildren + static_cast<size_t>(std::countr_zero(equal_to(
                                  tiers_[tier - 1].lowest.data() + node * kChildren, lowest())));
  return node * kChildren + static_cast<size_t>(std::countr_zero(equal_in_leaf(node, lowest())));
}

SlotPrices::SlotPrices(std::span<const int64_t> price, size_t levels,
                       std::span<const int64_t> slots, std::span<const int64_t> unit)
    : levels_(levels),
      last_level_(static_cast<int64_t>(levels) - 1),
      price_(price.begin(), price.end()),
      rank_(price.size()),
      slots_(slots.begin(), slots.end()),
      unit_(unit.begin(), unit.end()) {
  if (levels == 0 || price.size() != slots.size() * levels)
    throw std::invalid_argument("prices: expected one row per machine, and a level or more");
  for (const int64_t u : unit)
    if (u < 0) throw std::invalid_argument("prices: expected a unit of 0 or more");
  int64_t dearest = 0;
  for (size_t machine = 0; machine < slots.size(); ++machine) {
    int64_t before = 0;
    for (size_t level = 0; level < levels; ++level) {
      const int64_t p = price[machine * levels + level];
      if (p < before)
        throw std::invalid_argument("price of machine " + std::to_string(machine) + " with " +
                                    std::to_string(level) + " busy slots: expected " +
                                    std::to_string(before) + " or more, got " + std::to_string(p));
      before = p;
    }
    dearest = std::max(dearest, before);
  }
  while (dearest >> dropped_bits_ >= kNoRank) ++dropped_bits_;
  for (size_t i = 0; i < price.size(); ++i)
    rank_[i] = static_cast<int16_t>(price[i] >> dropped_bits_);
}

namespace {

// Levels of more machines than this have trees, if that makes few places per machine; else those of
// more than PricedRows::kScanned; else none.
constexpr size_t kSmallLevel = 16;
constexpr size_t kMostPlacesPerMachine = 16;
// Where more than one of so many rows changed, trees are built anew.
constexpr size_t kFewChanges = 64;

}  // namespace

PricedRows::PricedRows(const Catalog& catalog, PriceRule rule) : catalog_(catalog), rule_(rule) {
  choose_levels();
}

void PricedRows::choose_levels() {
  for (const size_t small : {kSmallLevel, kScanned}) {
    size_t places = 0;
    for (size_t set = 0; set < catalog_.sets(); ++set) {
      const int32_t number = static_cast<int32_t>(set);
      for (uint32_t level = catalog_.first_level(number); level < catalog_.end_level(number);
           ++level) {
        const Catalog::Level& rows = catalog_.level(level);
        if (rows.racks || rows.end - rows.begin <= small) continue;
        levels_.push_back({level, false, {}, {}});
        places += rows.end - rows.begin;
      }
    }
    if (places <= kMostPlacesPerMachine * catalog_.machines()) return;
    levels_.clear();
  }
}

// In which trees each row is, and where.
void PricedRows::find_places() {
  place_offsets_.assign(catalog_.machines() + 1, 0);
  for (const LevelTree& one : levels_)
    for (const int32_t row : catalog_.members(catalog_.level(one.level)))
      ++place_offsets_[static_cast<size_t>(row) + 1];
  for (size_t row = 0; row < catalog_.machines(); ++row)
    place_offsets_[row + 1] += place_offsets_[row];
  places_.resize(place_offsets_.back());
  std::vector<uint32_t> next(place_offsets_.begin(), place_offsets_.end() - 1);
  for (uint32_t tree = 0; tree < levels_.size(); ++tree) {
    uint32_t place = 0;
    for (const int32_t row : catalog_.members(catalog_.level(levels_[tree].level)))
      places_[next[static_cast<size_t>(row)]++] = {tree, place++};
  }
}

void PricedRows::set_prices(std::shared_ptr<const SlotPrices> prices) {
  if (prices->machines() != catalog_.machines())
    throw std::invalid_argument("the prices are of another cell than the view");
  if (prices_ == nullptr || !prices->has_slots_of(*prices_)) {
    log_ = nullptr;
  } else if (log_ != nullptr) {
    for (size_t machine = 0; machine < prices->machines(); ++machine)
      if (!prices->has_ranks_of(*prices_, machine))
        repriced_.push_back(static_cast<int32_t>(machine));
    if (repriced_.size() > prices->machines()) log_ = nullptr;
  }
  prices_ = std::move(prices);
}

int64_t PricedRows::lowest_price(ClusterView& view) {
  if (prices_ == nullptr || view.static_state().machines() != prices_->machines() ||
      view.static_state().dimensions() != prices_->dimensions())
    throw std::invalid_argument("the prices are of another cell than the view");
  refresh(view);
  int16_t lowest = PriceTree::kNone;
  for (const PriceTree& tree : partitions_) lowest = std::min(lowest, tree.lowest());
  return lowest == PriceTree::kNone ? 0 : prices_->lowest_of_rank(lowest);
}

void PricedRows::refresh(ClusterView& view) {
  if (log_ == nullptr || !view.writes(log_)) log_ = view.log_rows();
  if (log_->all) {
    rank_all(view);
  } else {
    rank_changed(view);
  }
  log_->clear();
  repriced_.clear();
}

std::span<int16_t> PricedRows::ranks_of_partition(const ClusterView& view, size_t partition) {
  const std::vector<int64_t>& offsets = view.static_state().index.offsets;
  return std::span(in_tree_).subspan(
      static_cast<size_t>(offsets[partition]),
      static_cast<size_t>(offsets[partition + 1] - offsets[partition]));
}

void PricedRows::rank_all(const ClusterView& view) {
  rank_.resize(view.static_state().machines());
  has_changed_.resize(rank_.size());
  for (size_t row = 0; row < rank_.size(); ++row)
    rank_[row] = rank_of(view, static_cast<int32_t>(row));
  in_tree_ = rank_;
  partitions_.resize(view.static_state().partitions());
  for (size_t p = 0; p < partitions_.size(); ++p) partitions_[p].build(ranks_of_partition(view, p));
  for (LevelTree& one : levels_) one.built = false;
}

void PricedRows::rank_changed(const ClusterView& view) {
  const IndexLayout& layout = view.static_state().index;
  const bool few = (log_->rows.size() + repriced_.size()) * kFewChanges < rank_.size();
  std::vector<bool> touched(few ? 0 : partitions_.size());
  for (const std::span<const int32_t> rows :
       {std::span<const int32_t>(log_->rows), std::span<const int32_t>(repriced_)}) {
    for (const int32_t row : rows) {
      const size_t at = static_cast<size_t>(row);
      const int16_t rank = rank_of(view, row);
      if (rank == rank_[at]) continue;
      const size_t p = layout.partition_of(row);
      rank_[at] = rank;
      if (few) {
        partitions_[p].set(at - static_cast<size_t>(layout.offsets[p]), rank);
      } else {
        in_tree_[at] = rank;
        touched[p] = true;
      }
      if (place_offsets_.empty()) continue;
      for (const Place& in_level : places_of(row)) {
        LevelTree& one = levels_[in_level.tree];
        if (one.built) one.tree.set(in_level.place, rank);
      }
    }
  }
  for (size_t p = 0; p < touched.size(); ++p)
    if (touched[p]) partitions_[p].build(ranks_of_partition(view, p));
}

PricedRows::LevelTree* PricedRows::find_level(uint32_t level) {
  const auto found =
      std::lower_bound(levels_.begin(), levels_.end(), level,
                       [](const LevelTree& one, uint32_t number) { return one.level < number; });
  return found == levels_.end() || found->level != level ? nullptr : &*found;
}

void PricedRows::build(LevelTree& level) {
  if (place_offsets_.empty()) find_places();
  const std::span<const int32_t> members = catalog_.members(catalog_.level(level.level));
  level.ranks.resize(members.size());
  for (size_t i = 0; i < members.size(); ++i)
    level.ranks[i] = rank_[static_cast<size_t>(members[i])];
  level.tree.build(level.ranks);
  level.built = true;
}

// --- one plan ---

PriceTrial::PriceTrial(PricedRows& rows, ClusterView& view) : rows_(rows), view_(view) {
  rows_.refresh(view);
}

PriceTrial::~PriceTrial() {
  undo_corrections();
  for (const int32_t row : rows_.changed_) rows_.has_changed_[static_cast<size_t>(row)] = false;
  rows_.changed_.clear();
}

PriceTree* PriceTrial::level(uint32_t level) {
  PricedRows::LevelTree* found = rows_.find_level(level);
  if (found == nullptr) return nullptr;
  if (!found->built) rows_.build(*found);
  return &found->tree;
}

void PriceTrial::correct(PriceTree& tree, size_t place, int16_t rank) {
  rows_.corrections_.push_back({&tree, static_cast<uint32_t>(place), tree.rank(place)});
  tree.set(place, rank);
}

bool PriceTrial::take_up_to(PriceTree& tree, int16_t rank, size_t limit,
                            std::vector<PriceTree::Taken>& taken) {
  const size_t first = taken.size();
  const bool all = tree.take_up_to(rank, limit, taken);
  for (size_t i = first; i < taken.size(); ++i)
    rows_.corrections_.push_back({&tree, taken[i].row, taken[i].rank});
  return all;
}

void PriceTrial::undo_last(size_t corrections) {
  for (; corrections > 0; --corrections, rows_.corrections_.pop_back()) {
    const PricedRows::Correction& last = rows_.corrections_.back();
    last.tree->set(last.place, last.rank);
  }
}

void PriceTrial::expect_many(PriceTree& tree) {
  if (tree.saved()) return;
  rows_.corrections_.push_back({&tree, PricedRows::Correction::kNoPlace, PriceTree::kNone});
  tree.save();
}

void PriceTrial::undo_corrections() {
  std::vector<PricedRows::Correction>& corrections = rows_.corrections_;
  for (; !corrections.empty(); corrections.pop_back()) {
    const auto& [tree, place, rank] = corrections.back();
    if (place == PricedRows::Correction::kNoPlace) {
      tree->restore();
    } else if (tree->saved()) {
      tree->write(place, rank);
    } else {
      tree->set(place, rank);
    }
  }
}

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
