// What the next free slots of machines are worth to other tasks (schedulers/prices/interface.py).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace agora {

// How prices enter a placement (schedulers/prices/options.py).
struct PriceRule {
  bool paid = false;            // cost + weight x price; else the price decides between equal costs
  int64_t weight_permille = 0;  // of prices that are paid
  bool elsewhere_only = false;  // placements on listed machines have no price
};

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

}  // namespace agora
