// What a view shows free of R resources on M machines, which machines are up, and whether a request
// fits.
//
//   wide    int64[M, R] and a byte per machine. -1 in every dimension where the machine is down.
//   narrow  int8[M], for one resource: the amount; kDown where the machine is down; kOutside where
//           the amount is not in kLowest..kHighest. Such amounts lie in a table beside the column.
//
// Narrow, a view of many machines stays in the cache. What is shown is the same either way. widen()
// makes a narrow one wide, once and for all, for readers of whole columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "huge_pages.hpp"
#include "row_bits.hpp"

namespace agora {

// Whether a request fits: the one rule of the cell, its views, the placers, and of what is written
// in Python. A resource that is requested at 0 is not checked, and takes nothing. So a task that
// wants none of it fits a machine that is overdrawn in it. request: 0 or more, [dimensions].
inline bool fits_in(const int64_t* request, const int64_t* free, size_t dimensions) {
  for (size_t r = 0; r < dimensions; ++r)
    if (request[r] > std::max<int64_t>(free[r], 0)) return false;
  return true;
}

// Whether one request, [dimensions], fits each of the rows of `free`, [fit.size(), dimensions].
inline void fits_rows(const int64_t* request, const int64_t* free, size_t dimensions,
                      std::span<bool> fit) {
  if (dimensions == 1 && request[0] > 0) {  // a third of the time of the loop below
    const int64_t wanted = request[0];
    for (size_t m = 0; m < fit.size(); ++m) fit[m] = wanted <= free[m];
    return;
  }
  for (size_t m = 0; m < fit.size(); ++m)
    fit[m] = fits_in(request, free + m * dimensions, dimensions);
}

// What one machine has free, [R]: good until the view changes, and as long as this object lives.
class FreeAmount {
 public:
  explicit FreeAmount(int64_t narrow) : narrow_(narrow) {}
  explicit FreeAmount(const int64_t* wide) : wide_(wide) {}
  operator const int64_t*() const { return wide_ != nullptr ? wide_ : &narrow_; }  // NOLINT

 private:
  int64_t narrow_ = 0;
  const int64_t* wide_ = nullptr;
};

class FreeAmounts {
 public:
  static constexpr int8_t kDown = -128;
  static constexpr int8_t kOutside = -127;
  static constexpr int64_t kLowest = -126, kHighest = 127;

  // All are down. narrow: only with one dimension.
  FreeAmounts(size_t machines, size_t dimensions, bool narrow)
      : machines_(machines), dimensions_(dimensions), is_narrow_(narrow) {
    if (narrow) {
      narrow_.assign((machines + 63) / 64 * 64, kDown);
    } else {
      make_wide();
    }
  }

  bool is_narrow() const { return is_narrow_; }
  void widen() {
    if (!is_narrow_) return;
    make_wide();
    for (size_t m = 0; m < machines_; ++m) {
      up_[m] = narrow_[m] != kDown;
      if (up_[m]) wide_[m] = narrow_amount(m);
    }
    is_narrow_ = false;
    narrow_ = {};
    outside_ = {};
  }

  FreeAmount of(int32_t row) const {
    const size_t m = index(row);
    return is_narrow() ? FreeAmount(narrow_amount(m)) : FreeAmount(wide_.data() + m * dimensions_);
  }
  bool is_up(int32_t row) const {
    return is_narrow() ? narrow_[index(row)] != kDown : up_[index(row)] != 0;
  }
  // Is some of it free, in some dimension? Nothing is where the machine is down.
  bool has_room(int32_t row) const {
    const size_t m = index(row);
    if (is_narrow()) return narrow_[m] > 0 || (narrow_[m] == kOutside && outside_.at(row) > 0);
    return has_room(wide_.data() + m * dimensions_, dimensions_);
  }
  static bool has_room(const int64_t* room, size_t dimensions) {
    int64_t highest = room[0];
    for (size_t r = 1; r < dimensions; ++r) highest = room[r] > highest ? room[r] : highest;
    return highest > 0;
  }
  bool fits(int32_t row, const int64_t* request) const {
    const size_t m = index(row);
    if (!is_narrow()) return fits_in(request, wide_.data() + m * dimensions_, dimensions_);
    const int64_t amount = narrow_amount(m);
    return fits_in(request, &amount, 1);
  }
  void prefetch(int32_t row) const {
    if (is_narrow()) return __builtin_prefetch(&narrow_[index(row)], 1);
    __builtin_prefetch(&wide_[index(row) * dimensions_], 1);
    __builtin_prefetch(&up_[index(row)]);
  }

  // Adds sign * amount, [R]; not where the machine is down.
  void add(int32_t row, const int64_t* amount, int64_t sign) {
    const size_t m = index(row);
    if (!is_narrow()) {
      if (up_[m] == 0) return;
      for (size_t r = 0; r < dimensions_; ++r) wide_[m * dimensions_ + r] += sign * amount[r];
    } else if (narrow_[m] != kDown) {
      set_narrow(row, narrow_amount(m) + sign * amount[0]);
    }
  }
  // [R]
  void set(int32_t row, const int64_t* amount) {
    if (is_narrow()) return set_narrow(row, amount[0]);
    std::copy_n(amount, dimensions_, wide_.data() + index(row) * dimensions_);
    up_[index(row)] = 1;
  }
  void set_down(int32_t row) {
    if (!is_narrow()) {
      std::fill_n(wide_.data() + index(row) * dimensions_, dimensions_, -1);
      up_[index(row)] = 0;
      return;
    }
    int8_t& byte = narrow_[index(row)];
    if (byte == kOutside) outside_.erase(row);
    byte = kDown;
  }
  void set_all_down() {
    std::fill(narrow_.begin(), narrow_.end(), kDown);
    outside_.clear();
    std::fill(wide_.begin(), wide_.end(), -1);
    std::fill(up_.begin(), up_.end(), uint8_t{0});
  }

  // Of the rows from 64 * word on, those that have room. Requires: narrow. O(amounts outside):
  // there are few.
  uint64_t rows_with_room(size_t word) const {
    uint64_t rows = rows_above(narrow_.data() + word * 64, int8_t{0});
    for (const auto& [row, amount] : outside_)
      if (amount > 0 && index(row) / 64 == word) rows |= uint64_t{1} << (index(row) % 64);
    return rows;
  }

  // Rows [first, first + used.size()) have limit - used, each 0 or more; those with a bit in `down`
  // (64 to a word; empty: none) are down. Requires: narrow.
  void show_narrow(size_t first, const int8_t* limit, std::span<const int8_t> used,
                   std::span<const uint64_t> down) {
    const size_t count = used.size();
    std::erase_if(outside_, [&](const auto& entry) { return index(entry.first) - first < count; });
    int8_t* amount = narrow_.data() + first;
    for (size_t i = 0; i < count; ++i) amount[i] = static_cast<int8_t>(limit[i] - used[i]);
    for (size_t i = 0; i < count && !down.empty(); ++i)
      if (down[i / 64] >> (i % 64) & 1) amount[i] = kDown;
  }

  // The columns, once widen() was called.
  int64_t* wide() { return wide_.data(); }
  uint8_t* up() { return up_.data(); }
  std::span<const int64_t> wide() const { return wide_; }
  std::span<const uint8_t> up() const { return up_; }

 private:
  static size_t index(int32_t row) { return static_cast<size_t>(row); }
  void set_narrow(int32_t row, int64_t amount) {
    int8_t& byte = narrow_[index(row)];
    const bool inside = amount >= kLowest && amount <= kHighest;
    if (!inside) {
      outside_[row] = amount;
    } else if (byte == kOutside) {
      outside_.erase(row);
    }
    byte = inside ? static_cast<int8_t>(amount) : kOutside;
  }
  void make_wide() {
    wide_.assign(machines_ * dimensions_, -1);
    up_.assign(machines_, 0);
  }
  int64_t narrow_amount(size_t m) const {
    const int8_t byte = narrow_[m];
    if (byte > kOutside) return byte;
    return byte == kDown ? -1 : outside_.at(static_cast<int32_t>(m));
  }

  size_t machines_;
  size_t dimensions_;
  bool is_narrow_;
  HugePageVector<int8_t> narrow_;                 // [M] and down to a multiple of 64, or empty
  std::unordered_map<int32_t, int64_t> outside_;  // by row
  HugePageVector<int64_t> wide_;                  // [M, R], or empty
  HugePageVector<uint8_t> up_;                    // [M] bools, or empty
};

}  // namespace agora
