// Placing by price: rows by the rank of their price (PriceTree), what the next free slots of
// machines are worth to other tasks (SlotPrices), the rows of a view by that price, kept in step
// with view and prices from plan to plan (PricedRows), in one plan on trial (PriceTrial), and drawn
// the cheapest first (PriceDraws).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "objective.hpp"
#include "shared_state/native/random.hpp"
#include "shared_state/native/view.hpp"

namespace agora {

// Rows by the rank of their price: the lowest one of them, drawn uniformly where several are.
//
// A tree of 64 children per node, each node with the lowest rank below it and how many rows have
// it. Drawing is a look at one node per tier; a change looks at a node again only where its last
// row of the lowest rank left.
class PriceTree {
 public:
  static constexpr int16_t kNone = std::numeric_limits<int16_t>::max();  // of a row not offered

  // Builds the tree over ranks, which are the caller's: they stay where they are, and change by
  // set() alone.
  void build(std::span<int16_t> ranks);

  size_t rows() const { return ranks_.size(); }
  int16_t rank(size_t row) const { return ranks_[row]; }
  int16_t lowest() const { return root_.rank; }
  uint32_t count() const { return root_.count; }  // of rows of the lowest rank
  // A row of the lowest rank, of which there is one: any, each as likely; or the first.
  size_t draw(Stream& stream) const;
  size_t first() const;
  void set(size_t row, int16_t rank);

  // A row, and the rank that it had.
  struct Taken {
    uint32_t row;
    int16_t rank;
  };
  // Sets all rows of at most this rank, which is below kNone, to kNone, and appends them by
  // ascending row. Stops soon after `limit` of them, and then returns false.
  bool take_up_to(int16_t rank, size_t limit, std::vector<Taken>& taken);
  // How many rows have at most this rank, which is below kNone.
  size_t count_up_to(int16_t rank) const;
  // The same, but at most one of each group of rows is counted: fast. Groups are of 64 rows, or of
  // 64 times as many per step of `coarse`.
  size_t groups_up_to(int16_t rank, size_t coarse) const;

  // Keeps the tree, ranks apart, as it is now, until restore(). To take many rows out and put them
  // back: ranks may be put back by write(), which leaves the rest of the tree wrong till then.
  void save();
  void restore();
  bool saved() const { return saved_; }
  void write(size_t row, int16_t rank) { ranks_[row] = rank; }

 private:
  static constexpr size_t kBitsOfChild = 6;
  static constexpr size_t kChildren = size_t{1} << kBitsOfChild;

  // The nodes of a tier, padded to a multiple of 64.
  struct Tier {
    std::vector<int16_t> lowest;
    std::vector<uint32_t> count;
  };

  struct Lowest {
    int16_t rank;
    uint32_t count;
  };

  static int16_t lowest_of(const int16_t* ranks);
  static uint32_t count_equal(const int16_t* ranks, int16_t rank);
  static uint64_t equal_to(const int16_t* ranks, int16_t rank);
  static uint64_t at_most(const int16_t* ranks, int16_t rank);
  uint64_t equal_in_leaf(size_t node, int16_t rank) const;
  uint64_t at_most_in_leaf(size_t node, int16_t rank) const;
  Lowest look_at(size_t node) const;
  void prefetch_leaf(size_t node) const;
  bool take_up_to(int16_t rank, size_t tier, size_t node, size_t end, std::vector<Taken>& taken);
  size_t count_up_to(int16_t rank, size_t tier, size_t node) const;
  void look_again(size_t tier, size_t node);

  std::span<int16_t> ranks_;
  std::vector<Tier> tiers_;  // the last one has one node
  Lowest root_{kNone, 0};    // that node
  std::vector<Tier> tiers_before_;
  bool saved_ = false;
};

// How prices enter a placement (schedulers/prices/registry.py).
struct PriceRule {
  bool paid = false;            // cost + weight x price; else the price decides between equal costs
  int64_t weight_permille = 0;  // of prices that are paid
  bool elsewhere_only = false;  // placements on listed machines have no price
};

// What the next free slots of machines are worth to other tasks (schedulers/prices/interface.py).
class SlotPrices {
 public:
  // A rank is a price in 15 bits: the price itself if all are below 2^15 - 1, else the price
  // without its lowest bits.
  static constexpr int16_t kNoRank = std::numeric_limits<int16_t>::max();

  // price: [slots.size(), levels], non-decreasing within a row, from 0; unit: [R]. Throws
  // std::invalid_argument otherwise.
  SlotPrices(std::span<const int64_t> price, size_t levels, std::span<const int64_t> slots,
             std::span<const int64_t> unit);

  size_t machines() const { return slots_.size(); }
  size_t dimensions() const { return unit_.size(); }
  // Whether as many slots are busy, by these prices and by others, whatever is free.
  bool has_slots_of(const SlotPrices& other) const {
    return levels_ == other.levels_ && slots_ == other.slots_ && unit_ == other.unit_;
  }
  // Whether a machine's prices have the ranks that they have in others of as many levels.
  bool has_ranks_of(const SlotPrices& other, size_t machine) const {
    const auto first = rank_.begin() + static_cast<std::ptrdiff_t>(machine * levels_);
    return std::equal(first, first + last_level_ + 1,
                      other.rank_.begin() + static_cast<std::ptrdiff_t>(machine * levels_));
  }

  // Of the next slot of a machine with so much free: [R].
  int64_t price(int32_t row, const int64_t* free) const { return price_[at(row, free)]; }
  // The lowest price that has a rank.
  int64_t lowest_of_rank(int16_t rank) const { return static_cast<int64_t>(rank) << dropped_bits_; }
  int16_t rank(int32_t row, const int64_t* free) const { return rank_[at(row, free)]; }

 private:
  // A unit of which nothing is asked fits so often (schedulers.units.MAX_UNITS).
  static constexpr int64_t kMaxUnits = int64_t{1} << 20;

  size_t at(int32_t row, const int64_t* free) const {
    const size_t machine = static_cast<size_t>(row);
    const int64_t busy = levels_ == 1 ? 0 : slots_[machine] - units_in(free);
    return machine * levels_ + static_cast<size_t>(std::clamp<int64_t>(busy, 0, last_level_));
  }
  int64_t units_in(const int64_t* free) const {
    int64_t units = kMaxUnits;
    for (size_t r = 0; r < unit_.size(); ++r) {
      if (unit_[r] == 0) continue;
      units = std::min(units, unit_[r] == 1 ? free[r] : free[r] / unit_[r]);
    }
    return std::max<int64_t>(units, 0);
  }

  size_t levels_;
  int64_t last_level_;
  std::vector<int64_t> price_;  // [M, L]
  std::vector<int16_t> rank_;   // [M, L]
  int dropped_bits_ = 0;        // of prices, to make ranks
  std::vector<int64_t> slots_;  // [M]
  std::vector<int64_t> unit_;   // [R]
};

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

// A row that is out of its tree, where it had a rank and a place.
struct DrawnRow {
  PriceTree* tree = nullptr;
  uint32_t place = 0;
  int16_t rank = PriceTree::kNone;
  int32_t row = -1;
};

// Which of several rows of the same price comes first.
enum class Ties { Random, First };

// Rows out of trees of prices, the cheapest first, as many at a time as a plan wants.
class PriceDraws {
 public:
  PriceDraws(PriceTrial& trial, Stream& stream, Ties ties)
      : trial_(trial), stream_(stream), ties_(ties) {}

  // Takes the cheapest rows out of the trees and appends them by ascending rank, without their
  // `row`: about as many as wanted, which is one or more; none if there is none. None that stays in
  // a tree is cheaper. Rows of the same rank come by tree and place: they may be put in random
  // order, since all of a rank are taken or those taken are random.
  void draw(std::span<PriceTree> trees, size_t wanted, std::vector<DrawnRow>& out);

 private:
  struct Lowest {
    int16_t rank;
    size_t count;
  };

  static Lowest lowest_of(std::span<const PriceTree> trees);
  void draw_few(std::span<PriceTree> trees, size_t wanted, std::vector<DrawnRow>& out);
  void draw_many(std::span<PriceTree> trees, size_t wanted, std::vector<DrawnRow>& out);
  void draw_some(std::span<PriceTree> trees, int16_t rank, size_t wanted,
                 std::vector<DrawnRow>& out);
  bool take_up_to(std::span<PriceTree> trees, int16_t rank, size_t most,
                  std::vector<DrawnRow>& out);
  void append_sorted(std::span<PriceTree> trees, int16_t lowest, int16_t highest,
                     std::vector<DrawnRow>& out);

  PriceTrial& trial_;
  Stream& stream_;
  Ties ties_;
  std::vector<PriceTree::Taken> taken_;
  std::vector<size_t> ends_;  // of each tree's in taken_
  std::vector<DrawnRow> by_low_digit_;
  std::vector<uint32_t> place_of_;
};

}  // namespace agora
