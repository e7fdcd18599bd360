#include "priced_rows.hpp"

#include <algorithm>
#include <stdexcept>

namespace agora {

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

}  // namespace agora
