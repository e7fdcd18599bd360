// Placements by price.
#include <algorithm>

#include "placer.hpp"

namespace agora {

namespace {

constexpr int64_t kPermille = 1000;

}  // namespace

int32_t Placer::cheapest(int32_t set, const Pool& pool, Search search) {
  Offer best;
  for (uint32_t number = catalog_.first_level(set); number < catalog_.end_level(set); ++number) {
    const Catalog::Level& level = catalog_.level(number);
    if (search == Search::ListedMachines && level.racks) break;
    if (!may_beat(level.cost, best)) continue;
    const bool priced = level.racks || !prices_->rule().elsewhere_only;
    const int32_t row = priced ? cheapest_of_level(number, pool) : prefer_level(number, pool);
    const Offer found = offer(row, level.cost, priced);
    if (found < best) best = found;
  }
  if (search == Search::ListedMachines) return best.row;
  const int64_t elsewhere_cost = catalog_.elsewhere_cost(set);
  if (best.row == kNone) return choose_elsewhere(pool);
  if (!may_beat(elsewhere_cost, best)) return best.row;
  const Offer found = offer(choose_elsewhere(pool), elsewhere_cost, true);
  return found < best ? found.row : best.row;
}

// Prices are 0 or more.
bool Placer::may_beat(int64_t cost, const Offer& best) const {
  if (best.row == kNone) return true;
  if (prices_->rule().paid) return static_cast<Int128>(cost) * kPermille < best.cost;
  return cost < best.cost || (cost == best.cost && best.price > 0);
}

Placer::Offer Placer::offer(int32_t row, int64_t cost, bool priced) const {
  if (row == kNone) return {};
  const int64_t price = priced ? prices_->prices().price(row, view_.free(row)) : 0;
  if (!prices_->rule().paid) return {row, cost, price};
  return {row,
          static_cast<Int128>(cost) * kPermille +
              static_cast<Int128>(prices_->rule().weight_permille) * price,
          0};
}

int32_t Placer::cheapest_of_level(uint32_t number, const Pool& pool) {
  const LevelRows rows = rows_of(catalog_.level(number), pool);
  if (rows.count == 0) return kNone;
  const bool spreading = input_.kind == PlacementKind::LoadSpreading;
  if (rows.count <= PricedRows::kScanned && !spreading) return cheapest_of_few(rows, pool);
  if (pool.partition == everything_.partition && !spreading)
    if (PriceTree* tree = prices_->level(number)) return cheapest_of_tree(*tree, rows.members);
  Candidates& candidates = candidates_[key_of(number, pool)];
  if (candidates.epoch != epoch_) {
    gather(rows, pool, candidates.rows);
    if (spreading) {
      rank(candidates.rows, true, candidates.ranked);
    } else {
      candidates.ranks.clear();
      for (const int32_t row : candidates.rows) candidates.ranks.push_back(price_rank(row));
      candidates.by_price.build(candidates.ranks);
    }
    candidates.epoch = epoch_;
  }
  return spreading ? emptiest_candidate(candidates.ranked, true)
                   : cheapest_of_tree(candidates.by_price, candidates.rows);
}

// The rows of a tree of a level. Within an epoch rows only get busier, so no rank in the tree is
// above that of its row, and a row that has the rank it has in the tree is the cheapest.
int32_t Placer::cheapest_of_tree(PriceTree& tree, std::span<const int32_t> rows) {
  while (tree.lowest() != PriceTree::kNone) {
    const size_t place = tree.draw(stream_);
    const int32_t row = rows[place];
    ++work_.looked_at;
    if (price_rank(row) == tree.rank(place)) {
      if (fits(row)) return row;
      exclude(row);
    }
    prices_->correct(tree, place, row);
  }
  return kNone;
}

int32_t Placer::cheapest_of_few(const LevelRows& rows, const Pool& pool) {
  for (;;) {
    int16_t lowest = PriceTree::kNone;
    scratch_.clear();
    const auto look_at = [&](int32_t row) {
      const int16_t rank = price_rank(row);
      if (rank > lowest) return;
      if (rank < lowest) scratch_.clear();
      lowest = rank;
      scratch_.push_back(row);
    };
    for (const int32_t row : rows.members) look_at(row);
    for (const Catalog::RowRange& range : rows.racks) {
      const int64_t end = std::min<int64_t>(range.end, pool.end);
      for (int64_t row = std::max<int64_t>(range.first, pool.first); row < end; ++row)
        look_at(static_cast<int32_t>(row));
    }
    work_.looked_at += static_cast<int64_t>(rows.count);
    if (lowest == PriceTree::kNone) return kNone;
    const size_t several = scratch_.size();
    const int32_t row = scratch_[several == 1 ? 0 : stream_.below(several)];
    if (fits(row)) return row;
    exclude(row);
  }
}

int32_t Placer::cheapest_of_pool(const Pool& pool) {
  const bool all = pool.partition == everything_.partition;
  const size_t begin = all ? 0 : pool.partition, end = all ? everything_.partition : begin + 1;
  for (;;) {
    int16_t lowest = PriceTree::kNone;
    uint64_t count = 0;
    for (size_t p = begin; p < end; ++p) {
      const PriceTree& tree = prices_->partition(p);
      if (tree.lowest() > lowest) continue;
      if (tree.lowest() < lowest) count = 0;
      lowest = tree.lowest();
      count += tree.count();
    }
    if (lowest == PriceTree::kNone) return kNone;
    const bool first_fit = input_.kind == PlacementKind::FirstFit;
    uint64_t rest = first_fit || !all ? 0 : stream_.below(count);
    size_t p = begin;
    for (;; ++p) {
      const PriceTree& tree = prices_->partition(p);
      if (tree.lowest() != lowest) continue;
      if (rest < tree.count()) break;
      rest -= tree.count();
    }
    const PriceTree& tree = prices_->partition(p);
    const size_t place = first_fit ? tree.first() : tree.draw(stream_);
    const int32_t row =
        static_cast<int32_t>(view_.static_state().index.offsets[p] + static_cast<int64_t>(place));
    ++work_.looked_at;
    if (fits(row)) return row;
    exclude(row);
  }
}

}  // namespace agora
