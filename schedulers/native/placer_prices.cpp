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
  if (catalog_.first_level(set) == catalog_.end_level(set))
    return search == Search::Anywhere ? choose_elsewhere(pool) : kNone;
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

// Takes rows of the lowest price of all trees, at most as many as wanted. Where no more have that
// price, all of them at once, in random order. Returns whether there was one.
template <typename RowOf>
bool Placer::draw(std::span<PriceTree> trees, size_t wanted, const RowOf& row_of,
                  std::vector<Drawn>& out) {
  int16_t lowest = PriceTree::kNone;
  uint64_t count = 0;
  for (const PriceTree& tree : trees) {
    if (tree.lowest() > lowest) continue;
    if (tree.lowest() < lowest) count = 0;
    lowest = tree.lowest();
    count += tree.count();
  }
  if (lowest == PriceTree::kNone) return false;
  const bool first_fit = input_.kind == PlacementKind::FirstFit;
  if (count <= wanted) {
    const size_t first = out.size();
    for (PriceTree& tree : trees) {
      if (tree.lowest() != lowest) continue;
      places_.clear();
      prices_->take_lowest(tree, places_);
      for (const size_t place : places_) out.push_back({&tree, place, row_of(tree, place), lowest});
    }
    for (size_t i = out.size() - first; i > 1 && !first_fit; --i)
      std::swap(out[first + i - 1], out[first + stream_.below(i)]);
    return true;
  }
  uint64_t rest = first_fit || trees.size() == 1 ? 0 : stream_.below(count);
  size_t at = 0;
  for (; trees[at].lowest() != lowest || rest >= trees[at].count(); ++at)
    if (trees[at].lowest() == lowest) rest -= trees[at].count();
  PriceTree& tree = trees[at];
  const size_t place = first_fit ? tree.first() : tree.draw(stream_);
  prices_->correct(tree, place, PriceTree::kNone);
  out.push_back({&tree, place, row_of(tree, place), lowest});
  return true;
}

template <typename RowOf>
int32_t Placer::next_cheapest(DrawnAhead& ahead, std::span<PriceTree> trees, const RowOf& row_of) {
  if (ahead.epoch != epoch_) ahead = {epoch_, {}, 0, 1, 0};
  for (;;) {
    // What was put back may be cheaper than what was drawn.
    if (ahead.next < ahead.rows.size() && ahead.put_back != put_back_) {
      int16_t lowest = PriceTree::kNone;
      for (const PriceTree& tree : trees) lowest = std::min(lowest, tree.lowest());
      if (lowest < ahead.rows[ahead.next].rank) {
        std::vector<Drawn>& rows = ahead.rows;
        rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(ahead.next));
        ahead.next = 0;
        const std::vector<Drawn> dearer(rows);
        rows.clear();
        draw(trees, 1, row_of, rows);
        rows.insert(rows.end(), dearer.begin(), dearer.end());
      }
    }
    if (ahead.next == ahead.rows.size()) {
      const size_t wanted = std::min(ahead.at_once, tasks_left_);
      // First fit takes the first row of the lowest price again, if that was put back.
      if (input_.kind != PlacementKind::FirstFit)
        ahead.at_once = std::min(2 * ahead.at_once, kAhead);
      ahead.rows.clear();
      ahead.next = 0;
      ahead.put_back = put_back_;
      while (ahead.rows.size() < wanted &&
             draw(trees, wanted - ahead.rows.size(), row_of, ahead.rows))
        continue;
      for (const Drawn& drawn : ahead.rows) view_.prefetch(drawn.row);
      if (ahead.rows.empty()) return kNone;
    }
    const Drawn drawn = ahead.rows[ahead.next++];
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
