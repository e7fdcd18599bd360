// Placements by price.
#include <algorithm>

#include "placer.hpp"

namespace agora {

namespace {

constexpr int64_t kPermille = 1000;

}  // namespace

int32_t Placer::cheapest(int32_t set, const Pool& pool, Search search) {
  Offer best;
  const auto consider = [&](int32_t row, int64_t cost, bool priced) {
    const Offer found{row, cost, priced, drawn_};
    if (row != kNone && beats(found, best)) best = found;
    drawn_ = {};
  };
  for (uint32_t number = catalog_.first_level(set); number < catalog_.end_level(set); ++number) {
    const Catalog::Level& level = catalog_.level(number);
    if (search == Search::ListedMachines && level.racks) break;
    if (!may_beat(level.cost, best)) continue;
    const bool priced = level.racks || !prices_->rule().elsewhere_only;
    consider(priced ? cheapest_of_level(number, pool) : prefer_level(number, pool), level.cost,
             priced);
  }
  if (search == Search::Anywhere && may_beat(catalog_.elsewhere_cost(set), best))
    consider(choose_elsewhere(pool), catalog_.elsewhere_cost(set), true);
  drawn_ = best.in_tree;
  return best.row;
}

// Prices are 0 or more. Of equally good places the first one found is taken.
bool Placer::may_beat(int64_t cost, const Offer& best) const {
  if (best.row == kNone) return true;
  return prices_->rule().paid ? static_cast<Int128>(cost) * kPermille < paid_for(best)
                              : cost <= best.cost;
}

bool Placer::beats(const Offer& one, const Offer& best) const {
  if (best.row == kNone) return true;
  if (prices_->rule().paid) return paid_for(one) < paid_for(best);
  return one.cost != best.cost ? one.cost < best.cost : price_of(one) < price_of(best);
}

int64_t Placer::price_of(const Offer& offer) const {
  return offer.priced ? prices_->prices().price(offer.row, view_.free(offer.row)) : 0;
}

// In thousandths.
Int128 Placer::paid_for(const Offer& offer) const {
  return static_cast<Int128>(offer.cost) * kPermille +
         static_cast<Int128>(prices_->rule().weight_permille) * price_of(offer);
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

// A row with the lowest rank that a tree shows: whether it has it, and the request fits it. If not,
// the tree is put right.
bool Placer::still_cheapest(PriceTree& tree, size_t place, int32_t row) {
  ++work_.looked_at;
  if (!prices_->is_shown(row) && prices_->rank_now(row) != tree.rank(place)) {
    prices_->correct(tree, place, prices_->rank_now(row));
    return false;
  }
  if (fits(row)) {
    drawn_ = {&tree, place};
    return true;
  }
  exclude(row);
  prices_->correct(tree, place, PriceTree::kNone);
  return false;
}

int32_t Placer::cheapest_of_tree(PriceTree& tree, std::span<const int32_t> rows) {
  while (tree.lowest() != PriceTree::kNone) {
    const size_t place = tree.draw(stream_);
    if (still_cheapest(tree, place, rows[place])) return rows[place];
  }
  return kNone;
}

int32_t Placer::cheapest_of_few(const LevelRows& rows, const Pool& pool) {
  for (;;) {
    int16_t lowest = PriceTree::kNone;
    scratch_.clear();
    const auto look_at = [&](int32_t row) {
      if (prices_->shown(row) > lowest) return;
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
    PriceTree& tree = prices_->partition(p);
    const size_t place = first_fit ? tree.first() : tree.draw(stream_);
    const int32_t row =
        static_cast<int32_t>(view_.static_state().index.offsets[p] + static_cast<int64_t>(place));
    if (still_cheapest(tree, place, row)) return row;
  }
}

}  // namespace agora
