// Columns of the cell that are as narrow as what they hold: what transactions touch, and syncs
// scan, then stays in the cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "huge_pages.hpp"
#include "row_bits.hpp"

namespace agora {

// What is used of R resources on M machines: int64[M, R]; of one resource with small limits a byte
// per machine, until an amount does not fit or somebody reads the whole column.
class UsedAmounts {
 public:
  static constexpr int64_t kHighestNarrow = 126;  // see free_amounts.hpp

  UsedAmounts(size_t size, bool narrow)
      : is_narrow_(narrow), narrow_(narrow ? size : 0), wide_(narrow ? 0 : size) {}

  size_t size() const { return is_narrow_ ? narrow_.size() : wide_.size(); }
  bool is_narrow() const { return is_narrow_; }
  void widen() {
    if (!is_narrow_) return;
    wide_.assign(narrow_.begin(), narrow_.end());
    narrow_ = {};
    is_narrow_ = false;
  }

  // at: machine * R + resource.
  int64_t operator[](size_t at) const { return is_narrow_ ? narrow_[at] : wide_[at]; }
  void add(size_t at, int64_t amount) {
    if (is_narrow_) {
      const int64_t sum = narrow_[at] + amount;
      if (sum >= 0 && sum <= kHighestNarrow) {
        narrow_[at] = static_cast<int8_t>(sum);
        return;
      }
      widen();
    }
    wide_[at] += amount;
  }
  void prefetch(size_t at) const {
    __builtin_prefetch(is_narrow_ ? static_cast<const void*>(&narrow_[at]) : &wide_[at], 1);
  }

  // Of every stride-th amount from the first on. A narrow column has but one resource.
  int64_t sum(size_t stride) const {
    int64_t sum = 0;
    for (const int8_t amount : narrow_) sum += amount;
    for (size_t at = 0; at < wide_.size(); at += stride) sum += wide_[at];
    return sum;
  }

  const int8_t* narrow() const { return narrow_.data(); }
  const HugePageVector<int64_t>& wide() const { return wide_; }
  std::vector<int64_t> all() const {
    return is_narrow_ ? std::vector<int64_t>(narrow_.begin(), narrow_.end())
                      : std::vector<int64_t>(wide_.begin(), wide_.end());
  }
  // Requires: as many amounts as there are. Columns once wide stay so, where they lie.
  void assign(const std::vector<int64_t>& amounts) {
    const bool fit = std::all_of(amounts.begin(), amounts.end(),
                                 [](int64_t a) { return a >= 0 && a <= kHighestNarrow; });
    if (!fit) widen();
    if (is_narrow_) {
      std::transform(amounts.begin(), amounts.end(), narrow_.begin(),
                     [](int64_t a) { return static_cast<int8_t>(a); });
    } else {
      std::copy(amounts.begin(), amounts.end(), wide_.begin());
    }
  }

 private:
  bool is_narrow_;
  HugePageVector<int8_t> narrow_;
  HugePageVector<int64_t> wide_;
};

// The version of its partition at each row's last change: in four bytes until one needs more.
class RowVersions {
 public:
  explicit RowVersions(size_t rows) : rows_(rows), short_(rows + kSpare) {}

  size_t size() const { return rows_; }
  int64_t operator[](size_t row) const { return are_short_ ? short_[row] : long_[row]; }
  void set(size_t row, int64_t version) {
    if (are_short_ && version <= kHighestShort) {
      short_[row] = static_cast<int32_t>(version);
      return;
    }
    lengthen();
    long_[row] = version;
  }
  void prefetch(size_t row) const {
    __builtin_prefetch(are_short_ ? static_cast<const void*>(&short_[row]) : &long_[row], 1);
  }

  // Of the 64 rows from `first` on, those that changed after a version, as bits (row_bits.hpp).
  // There may be fewer: the bits of others say nothing.
  uint64_t changed_after(int64_t version, size_t first) const {
    if (!are_short_) return plain_rows_above(long_.data() + first, version);
    return version < kHighestShort
               ? rows_above(short_.data() + first, static_cast<int32_t>(version))
               : 0;
  }

  std::vector<int64_t> all() const {
    std::vector<int64_t> versions(rows_);
    for (size_t row = 0; row < rows_; ++row) versions[row] = (*this)[row];
    return versions;
  }

 private:
  static constexpr int64_t kHighestShort = std::numeric_limits<int32_t>::max();
  static constexpr size_t kSpare = 63;  // so that 64 can be read from any row on

  void lengthen() {
    if (!are_short_) return;
    long_.assign(short_.begin(), short_.end());
    short_ = {};
    are_short_ = false;
  }

  size_t rows_;
  bool are_short_ = true;
  HugePageVector<int32_t> short_;
  HugePageVector<int64_t> long_;
};

}  // namespace agora
