// Placements by price.
#include <algorithm>

#include "placer.hpp"

namespace agora {

namespace {

constexpr int64_t kPermille = 1000;
// rows drawn ahead at most
constexpr size_t kAhead = 32;

}  // namespace

int32_t Placer::cheapest(int32_t set, const Pool& pool, Search search) {
  Offer best;
  const auto consider = [&](int32_t row, int64_t cost, bool priced) {
    Offer found{row, cost, priced, drawn_};
    drawn_ = {};
    if (row == kNone) return;
    if (beats(found, best)) std::swap(found, best);
    put_back(found.drawn);
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
  drawn_ = best.drawn;
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
    if (PriceTree* tree = prices_->level(number))
      return cheapest_of_tree(*tree, rows.members, candidates_[key_of(number, pool)].ahead);
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
                   : cheapest_of_tree(candidates.by_price, candidates.rows, candidates.ahead);
}

// draw() takes a row of the lowest price of all that are left, lowest() says what that price is.
template <typename Draw>
void Placer::draw_ahead(DrawnAhead& ahead, const Draw& draw) {
  ahead.rows.clear();
  ahead.next = 0;
  const size_t wanted = std::min(ahead.at_once, tasks_left_);
  ahead.at_once = std::min(2 * ahead.at_once, kAhead);
  while (ahead.rows.size() < wanted) {
    const Drawn drawn = draw();
    if (drawn.tree == nullptr) return;
    prices_->correct(*drawn.tree, drawn.place, PriceTree::kNone);
    view_.prefetch(drawn.row);
    ahead.rows.push_back(drawn);
  }
}

template <typename Lowest, typename Draw>
int32_t Placer::next_cheapest(DrawnAhead& ahead, const Lowest& lowest, const Draw& draw) {
  if (ahead.epoch != epoch_) ahead = {epoch_, {}, 0, 1};
  for (;;) {
    if (ahead.next == ahead.rows.size()) draw_ahead(ahead, draw);
    if (ahead.rows.empty()) return kNone;
    Drawn drawn = ahead.rows[ahead.next];
    if (lowest() < drawn.rank) {  // a row that was put back
      drawn = draw();
      prices_->correct(*drawn.tree, drawn.place, PriceTree::kNone);
    } else {
      ++ahead.next;
    }
    ++work_.looked_at;
    if (prices_->has_changed(drawn.row) && price_rank(drawn.row) != drawn.rank) {
      put_back(drawn);
    } else if (fits(drawn.row)) {
      drawn_ = drawn;
      return drawn.row;
    } else {
      exclude(drawn.row);
    }
  }
}

// With the rank that the row has now.
void Placer::put_back(const Drawn& drawn) {
  if (drawn.tree != nullptr) prices_->correct(*drawn.tree, drawn.place, price_rank(drawn.row));
}

int32_t Placer::cheapest_of_tree(PriceTree& tree, std::span<const int32_t> rows,
                                 DrawnAhead& ahead) {
  return next_cheapest(
      ahead, [&] { return tree.lowest(); },
      [&]() -> Drawn {
        if (tree.lowest() == PriceTree::kNone) return {};
        const size_t place = tree.draw(stream_);
        return {&tree, place, rows[place], tree.lowest()};
      });
}

int32_t Placer::cheapest_of_few(const LevelRows& rows, const Pool& pool) {
  for (;;) {
    int16_t lowest = PriceTree::kNone;
    scratch_.clear();
    const auto look_at = [&](int32_t row) {
      if (prices_->rank_before(row) > lowest) return;
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
  return next_cheapest(
      ahead_[pool.partition], [&] { return lowest_in(pool); }, [&] { return draw_from(pool); });
}

int16_t Placer::lowest_in(const Pool& pool) {
  if (pool.partition != everything_.partition) return prices_->partition(pool.partition).lowest();
  int16_t lowest = PriceTree::kNone;
  for (size_t p = 0; p < everything_.partition; ++p)
    lowest = std::min(lowest, prices_->partition(p).lowest());
  return lowest;
}

Placer::Drawn Placer::draw_from(const Pool& pool) {
  const int16_t lowest = lowest_in(pool);
  if (lowest == PriceTree::kNone) return {};
  const bool first_fit = input_.kind == PlacementKind::FirstFit;
  size_t p = pool.partition;
  if (p == everything_.partition) {
    uint64_t count = 0;
    for (p = 0; p < everything_.partition; ++p)
      if (prices_->partition(p).lowest() == lowest) count += prices_->partition(p).count();
    uint64_t rest = first_fit ? 0 : stream_.below(count);
    for (p = 0;; ++p) {
      const PriceTree& tree = prices_->partition(p);
      if (tree.lowest() != lowest) continue;
      if (rest < tree.count()) break;
      rest -= tree.count();
    }
  }
  PriceTree& tree = prices_->partition(p);
  const size_t place = first_fit ? tree.first() : tree.draw(stream_);
  const int64_t row = view_.static_state().index.offsets[p] + static_cast<int64_t>(place);
  return {&tree, place, static_cast<int32_t>(row), lowest};
}

}  // namespace agora
