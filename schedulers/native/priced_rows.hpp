// The rows of a view by the price of their next slot, kept in step with view and prices from plan
// to plan: what placing by price looks at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "catalog.hpp"
#include "price_tree.hpp"
#include "shared_state/native/row_log.hpp"
#include "shared_state/native/view.hpp"
#include "slot_prices.hpp"

namespace agora {

// The open rows by the rank of their price, as trees: one per partition, and one per level of
// machines that is not small. A level's tree is made when it is first asked for.
//
// What it holds is a function of view and prices, not of their history.
class PricedRows {
 public:
  // A level of at most so many rows that has no tree is scanned for each task.
  static constexpr size_t kScanned = 128;

  // The catalog is borrowed.
  PricedRows(const Catalog& catalog, PriceRule rule);

  // New prices: std::invalid_argument, and the ones before stay, if they are of another cell than
  // the catalog.
  void set_prices(std::shared_ptr<const SlotPrices> prices);

  // Of the next slot of any open row, without the bits that ranks lack; 0 if there is none.
  int64_t lowest_price(ClusterView& view);

  const SlotPrices* prices() const { return prices_.get(); }  // null: none yet
  const PriceRule& rule() const { return rule_; }

 private:
  friend class PriceTrial;

  // A place in the tree of a level.
  struct Place {
    uint32_t tree;
    uint32_t place;
  };
  struct LevelTree {
    uint32_t level;
    bool built = false;
    std::vector<int16_t> ranks;
    PriceTree tree;
  };

  void choose_levels();
  void find_places();
  void refresh(ClusterView& view);
  void rank_all(const ClusterView& view);
  void rank_changed(const ClusterView& view);
  int16_t rank_of(const ClusterView& view, int32_t row) const {
    return view.index().contains(row) ? prices_->rank(row, view.free(row)) : PriceTree::kNone;
  }
  std::span<int16_t> ranks_of_partition(const ClusterView& view, size_t partition);
  // What a tree was before: of one row, or, without a place, of all but the ranks.
  struct Correction {
    static constexpr uint32_t kNoPlace = ~uint32_t{0};
    PriceTree* tree;
    uint32_t place;
    int16_t rank;
  };

  std::span<const Place> places_of(int32_t row) const {
    const size_t at = static_cast<size_t>(row);
    return std::span(places_).subspan(place_offsets_[at],
                                      place_offsets_[at + 1] - place_offsets_[at]);
  }
  LevelTree* find_level(uint32_t level);
  void build(LevelTree& level);

  const Catalog& catalog_;
  PriceRule rule_;
  std::shared_ptr<const SlotPrices> prices_;
  std::shared_ptr<RowLog> log_;
  std::vector<int32_t> repriced_;        // rows whose prices changed since the last refresh
  std::vector<int16_t> rank_;            // [M]
  std::vector<int16_t> in_tree_;         // [M]: the same, but for corrections by the plan under way
  std::vector<PriceTree> partitions_;    // [P], over in_tree_
  std::vector<LevelTree> levels_;        // by level, ascending
  std::vector<uint32_t> place_offsets_;  // [M+1], into places_; empty until a level has a tree
  std::vector<Place> places_;

  // Of the plan under way: what it has corrected, and which rows it has changed.
  std::vector<Correction> corrections_;
  std::vector<int32_t> changed_;
  std::vector<bool> has_changed_;  // [M]
};

// The rows of one plan, which takes them out of the view one after the other.
//
// The trees show the rows as they were before the plan, but for what was corrected. While rows only
// get busier no rank in a tree is above that of its row, so the lowest of a tree is the lowest of
// its rows if it is right. Corrections are undone when the plan ends.
class PriceTrial {
 public:
  // Brings the rows up to date with the view.
  PriceTrial(PricedRows& rows, ClusterView& view);
  ~PriceTrial();
  PriceTrial(const PriceTrial&) = delete;
  PriceTrial& operator=(const PriceTrial&) = delete;

  const SlotPrices& prices() const { return *rows_.prices_; }
  const PriceRule& rule() const { return rows_.rule_; }

  // The rank of a row, PriceTree::kNone where it is not open: now, and before the plan.
  int16_t rank(int32_t row) const {
    return has_changed(row) ? rows_.rank_of(view_, row) : rank_before(row);
  }
  int16_t rank_before(int32_t row) const { return rows_.rank_[static_cast<size_t>(row)]; }
  bool has_changed(int32_t row) const { return rows_.has_changed_[static_cast<size_t>(row)]; }

  std::span<PriceTree> partitions() { return rows_.partitions_; }
  // Null if the level has no tree. Places are those in the level's members.
  PriceTree* level(uint32_t level);

  // After the plan has changed what the view shows of a row.
  void changed(int32_t row) {
    if (has_changed(row)) return;
    rows_.has_changed_[static_cast<size_t>(row)] = true;
    rows_.changed_.push_back(row);
  }
  void correct(PriceTree& tree, size_t place, int16_t rank);
  // As PriceTree::take_up_to.
  bool take_up_to(PriceTree& tree, int16_t rank, size_t limit,
                  std::vector<PriceTree::Taken>& taken);
  // The last so many corrections of rows.
  void undo_last(size_t corrections);
  // Many corrections of the tree will follow: they are then undone faster.
  void expect_many(PriceTree& tree);
  // Rows may have got less busy.
  void undo_corrections();

 private:
  PricedRows& rows_;
  const ClusterView& view_;
};

}  // namespace agora
