// Placements by price.
#include <algorithm>

#include "placer.hpp"

namespace agora {

namespace {

constexpr int64_t kPermille = 1000;
// rows whose memory is asked for together
constexpr size_t kAhead = 16;
// Of the rows drawn at once, from one time to the next.
constexpr size_t kGrowth = 4;

}  // namespace

int32_t Placer::cheapest(int32_t set, const Pool& pool, Search search) {
  const bool elsewhere = search == Search::Anywhere && !catalog_.is_constraint(set);
  if (catalog_.first_level(set) == catalog_.end_level(set))
    return elsewhere ? choose_elsewhere(pool) : kNone;
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
    consider(of_level(number, pool, priced), level.cost, priced);
  }
  if (elsewhere && may_beat(catalog_.elsewhere_cost(set), best))
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
  if (pool.partition == everything_.partition && !spreading)
    if (PriceTree* tree = prices_->level(number))
      return cheapest_of_tree(*tree, rows.members, candidates_[key_of(number, pool)].ahead);
  const bool few = rows.count <= PricedRows::kScanned && !freshest_preferred();
  if (few && !spreading) return cheapest_of_few(rows, pool);
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

template <typename RowOf>
void Placer::draw(std::span<PriceTree> trees, size_t wanted, const RowOf& row_of,
                  std::vector<DrawnRow>& out) {
  size_t drawn = out.size();
  draws_->draw(trees, wanted, out);
  for (; drawn < out.size(); ++drawn) out[drawn].row = row_of(*out[drawn].tree, out[drawn].place);
}

template <typename RowOf>
int32_t Placer::next_cheapest(DrawnAhead& ahead, std::span<PriceTree> trees, const RowOf& row_of) {
  std::vector<DrawnRow>& rows = ahead.rows;
  if (ahead.epoch != epoch_) {
    rows.clear();
    ahead.epoch = epoch_;
    ahead.next = 0;
    ahead.at_once = 0;
  }
  for (;;) {
    // What was put back may be cheaper than what was drawn.
    if (ahead.next < rows.size() && ahead.put_back != put_back_) {
      int16_t lowest = PriceTree::kNone;
      for (const PriceTree& tree : trees) lowest = std::min(lowest, tree.lowest());
      if (lowest < rows[ahead.next].rank) {
        one_.clear();
        draw(trees, 1, row_of, one_);
        rows[--ahead.next] = one_.front();
      }
    }
    if (ahead.next == rows.size()) {
      rows.clear();
      ahead.next = ahead.ready = ahead.end = 0;
      ahead.put_back = put_back_;
      ahead.at_once = rows_to_draw(ahead);
      draw(trees, ahead.at_once, row_of, rows);
      if (rows.empty()) return kNone;
    }
    make_ready(ahead);
    const DrawnRow drawn = rows[ahead.next++];
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

// As many as tasks with the same preferences follow each other, if they are many: they will look
// here, too. Else few at first, and more from time to time.
size_t Placer::rows_to_draw(const DrawnAhead& ahead) {
  // It takes the first row of the lowest price again, if that was put back.
  if (input_.kind == PlacementKind::FirstFit) return 1;
  if (task_ < alike_first_ || task_ >= alike_end_) {
    alike_first_ = task_;
    alike_end_ = task_ + 1;
    while (alike_end_ < input_.count && input_.preference[alike_end_] == input_.preference[task_])
      ++alike_end_;
  }
  const size_t more = std::min(kGrowth * ahead.at_once, input_.count - task_);
  return std::max(alike_end_ - task_, more);
}

// Rows of the same rank come in random order, or as they were drawn.
void Placer::make_ready(DrawnAhead& ahead) {
  std::vector<DrawnRow>& rows = ahead.rows;
  const size_t wanted = std::min(ahead.next + kAhead, rows.size());
  for (; ahead.ready < wanted; ++ahead.ready) {
    DrawnRow& row = rows[ahead.ready];
    if (ahead.ready >= ahead.end && input_.kind != PlacementKind::FirstFit)
      while (ahead.end < rows.size() && rows[ahead.end].rank == row.rank) ++ahead.end;
    if (ahead.ready + 1 < ahead.end)
      std::swap(row, rows[ahead.ready + stream_.below(ahead.end - ahead.ready)]);
    view_.prefetch(row.row);
  }
}

// With the rank that the row has now.
void Placer::put_back(const DrawnRow& drawn) {
  if (drawn.tree == nullptr) return;
  prices_->correct(*drawn.tree, drawn.place, price_rank(drawn.row));
  ++put_back_;
}

int32_t Placer::cheapest_of_tree(PriceTree& tree, std::span<const int32_t> rows,
                                 DrawnAhead& ahead) {
  return next_cheapest(ahead, {&tree, 1},
                       [&](const PriceTree&, size_t place) { return rows[place]; });
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
  const std::span<PriceTree> trees = prices_->partitions();
  const bool all = pool.partition == everything_.partition;
  return next_cheapest(ahead_[pool.partition], all ? trees : trees.subspan(pool.partition, 1),
                       [&](const PriceTree& tree, size_t place) {
                         const size_t p = static_cast<size_t>(&tree - trees.data());
                         return static_cast<int32_t>(view_.static_state().index.offsets[p] +
                                                     static_cast<int64_t>(place));
                       });
}

}  // namespace agora
