// Placements by price.
#include <algorithm>

#include "placer.hpp"

namespace agora {

namespace {

constexpr int64_t kPermille = 1000;
// a level of at most so many rows is looked at per task: nothing is kept
constexpr size_t kLookAtOnce = 128;

}  // namespace

int32_t Placer::cheapest(int32_t set, const Pool& pool, Search search) {
  Offer best;
  for (uint32_t number = catalog_.first_level(set); number < catalog_.end_level(set); ++number) {
    const Catalog::Level& level = catalog_.level(number);
    if (search == Search::ListedMachines && level.racks) break;
    if (!may_beat(level.cost, best)) continue;
    const bool priced = level.racks || !input_.price_rule.elsewhere_only;
    drawn_ = {};
    const int32_t row = priced ? cheapest_of_level(number, pool) : prefer_level(number, pool);
    offer(row, level.cost, priced, best);
  }
  if (search == Search::Anywhere && may_beat(catalog_.elsewhere_cost(set), best)) {
    drawn_ = {};
    offer(choose_elsewhere(pool), catalog_.elsewhere_cost(set), true, best);
  }
  drawn_ = best.in_tree;
  return best.row;
}

// Prices are 0 or more.
bool Placer::may_beat(int64_t cost, const Offer& best) const {
  if (best.row == kNone) return true;
  if (input_.price_rule.paid) return static_cast<Int128>(cost) * kPermille < best.cost;
  return cost < best.cost || (cost == best.cost && best.price > 0);
}

void Placer::offer(int32_t row, int64_t cost, bool priced, Offer& best) const {
  if (row == kNone) return;
  const int64_t price = priced ? input_.prices->price(row, view_.free(row)) : 0;
  Offer found{row, cost, price, drawn_};
  if (input_.price_rule.paid) {
    found.cost = static_cast<Int128>(cost) * kPermille +
                 static_cast<Int128>(input_.price_rule.weight_permille) * price;
    found.price = 0;
  }
  if (best.row == kNone || found.cost < best.cost ||
      (found.cost == best.cost && found.price < best.price))
    best = found;
}

int32_t Placer::cheapest_of_level(uint32_t number, const Pool& pool) {
  const LevelRows rows = rows_of(catalog_.level(number), pool);
  if (rows.count == 0) return kNone;
  const bool spreading = input_.kind == PlacementKind::LoadSpreading;
  if (rows.count <= kLookAtOnce && !spreading) return cheapest_of_few(rows, pool);
  Candidates& candidates = candidates_[key_of(number, pool)];
  if (candidates.epoch != epoch_) {
    gather(rows, pool, candidates.rows);
    if (spreading) {
      rank(candidates.rows, true, candidates.ranked);
    } else {
      candidates.by_price.resize(candidates.rows.size());
      for (size_t i = 0; i < candidates.rows.size(); ++i)
        candidates.by_price.ranks()[i] = price_rank(candidates.rows[i]);
      candidates.by_price.build();
    }
    candidates.epoch = epoch_;
  }
  if (spreading) return emptiest_candidate(candidates.ranked, true);
  PriceTree& tree = candidates.by_price;
  while (tree.lowest() != PriceTree::kNone) {
    const size_t place = tree.draw(stream_);
    const int32_t row = draw_cheapest(tree, place, candidates.rows[place]);
    if (row != kNone) return row;
  }
  return kNone;
}

int32_t Placer::cheapest_of_few(const LevelRows& rows, const Pool& pool) {
  gather(rows, pool, scratch_);
  int16_t lowest = PriceTree::kNone;
  size_t kept = 0;
  for (const int32_t row : scratch_) {
    if (!fits(row)) continue;
    const int16_t rank = price_rank(row);
    if (rank > lowest) continue;
    if (rank < lowest) kept = 0;
    lowest = rank;
    scratch_[kept++] = row;
  }
  return kept == 0 ? kNone : scratch_[kept == 1 ? 0 : stream_.below(kept)];
}

// The row at a place of a tree if the tree knows its rank and the request fits; else the tree is
// put right.
int32_t Placer::draw_cheapest(PriceTree& tree, size_t place, int32_t row) {
  ++work_.looked_at;
  const int16_t now = open(row) ? price_rank(row) : PriceTree::kNone;
  if (now == tree.rank(place)) {
    if (fits(row)) {
      drawn_ = {&tree, place};
      return row;
    }
    exclude(row);
    tree.set(place, PriceTree::kNone);
  } else {
    tree.set(place, now);
  }
  return kNone;
}

PriceTree& Placer::priced_partition(size_t partition) {
  PricedPartition& priced = priced_[partition];
  if (priced.epoch == epoch_) return priced.by_price;
  priced.epoch = epoch_;
  const Pool rows = pool(partition);
  priced.by_price.resize(static_cast<size_t>(rows.end - rows.first));
  const std::span<int16_t> ranks = priced.by_price.ranks();
  int32_t row = view_.index().next_open(rows.first, rows.end);
  for (; row != kNone; row = view_.index().next_open(row + 1, rows.end)) {
    ranks[static_cast<size_t>(row - rows.first)] = price_rank(row);
    ++work_.ranked;
  }
  priced.by_price.build();
  return priced.by_price;
}

int32_t Placer::cheapest_of_pool(const Pool& pool) {
  const bool all = pool.partition == everything_.partition;
  const size_t begin = all ? 0 : pool.partition, end = all ? everything_.partition : begin + 1;
  for (;;) {
    int16_t lowest = PriceTree::kNone;
    uint64_t count = 0;
    for (size_t p = begin; p < end; ++p) {
      if (view_.index().count(p) == 0) continue;
      const PriceTree& tree = priced_partition(p);
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
      if (view_.index().count(p) == 0) continue;
      const PriceTree& tree = priced_[p].by_price;
      if (tree.lowest() != lowest) continue;
      if (rest < tree.count()) break;
      rest -= tree.count();
    }
    PriceTree& tree = priced_[p].by_price;
    const size_t place = first_fit ? tree.first() : tree.draw(stream_);
    const int32_t row = draw_cheapest(
        tree, place,
        static_cast<int32_t>(view_.static_state().index.offsets[p] + static_cast<int64_t>(place)));
    if (row != kNone) return row;
  }
}

}  // namespace agora
