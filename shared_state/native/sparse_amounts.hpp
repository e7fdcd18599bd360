// Amounts of R resources for a few of many rows; the others have none.
//
// A bit per row tells whether it has an amount, a hash table with linear probing (Knuth, "The Art
// of Computer Programming", vol. 3, section 6.4, algorithms L and R) holds the amounts. So the
// memory that is touched grows with the rows that have one, and stays in the cache.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace agora {

class SparseAmounts {
 public:
  SparseAmounts(size_t rows, size_t dimensions)
      : dimensions_(dimensions), present_((rows + 63) / 64) {
    resize(kFewestPlaces);
  }

  bool has(int32_t row) const { return present_[index(row) / 64] >> (index(row) % 64) & 1; }
  // Of the rows from 64 * word on, those that have one: the lowest bit is the first row.
  uint64_t rows(size_t word) const { return present_[word]; }
  // The amount of the row, [R]; null where it is zero in every dimension. Valid until add().
  const int64_t* find(int32_t row) const {
    return has(row) ? amount_.data() + place_of(row) * dimensions_ : nullptr;
  }

  // Adds sign * amount. Returns by how much the number of rows that have an amount has changed.
  int add(int32_t row, const int64_t* amount, int64_t sign) {
    const bool had = has(row);
    if (!had && 2 * (count_ + 1) > row_.size()) resize(2 * row_.size());
    const size_t place = place_of(row);
    int64_t* sum = amount_.data() + place * dimensions_;
    bool zero = true;
    for (size_t r = 0; r < dimensions_; ++r) {
      sum[r] = (had ? sum[r] : 0) + sign * amount[r];
      zero = zero && sum[r] == 0;
    }
    if (had != zero) {
      row_[place] = had ? row : kNone;  // where it had none and has none, its place stays empty
      return 0;
    }
    present_[index(row) / 64] ^= uint64_t{1} << (index(row) % 64);
    if (had) {
      --count_;
      vacate(place);
      return -1;
    }
    ++count_;
    row_[place] = row;
    return +1;
  }

 private:
  static constexpr int32_t kNone = -1;
  static constexpr size_t kFewestPlaces = 64;

  static size_t index(int32_t row) { return static_cast<size_t>(row); }
  // Where the search for a row begins: the leading bits of its product with 2^32 / the golden
  // ratio, modulo 2^32 (Knuth, section 6.4), which scatter neighbours.
  size_t home(int32_t row) const {
    return static_cast<uint32_t>(row) * uint32_t{2654435769} >> shift_;
  }
  // The place that holds the row, or the empty one where it belongs.
  size_t place_of(int32_t row) const {
    size_t place = home(row);
    while (row_[place] != row && row_[place] != kNone) place = next(place);
    return place;
  }
  size_t next(size_t place) const { return (place + 1) & (row_.size() - 1); }

  // Empties a place; rows whose search would end there move up.
  void vacate(size_t hole) {
    const size_t mask = row_.size() - 1;
    for (size_t place = next(hole); row_[place] != kNone; place = next(place)) {
      const size_t from_home = (place - home(row_[place])) & mask;
      if (from_home < ((place - hole) & mask)) continue;
      row_[hole] = row_[place];
      std::copy_n(amount_.data() + place * dimensions_, dimensions_,
                  amount_.data() + hole * dimensions_);
      hole = place;
    }
    row_[hole] = kNone;
  }

  // places: a power of two, more than twice the rows that have an amount.
  void resize(size_t places) {
    std::vector<int32_t> rows(places, kNone);
    std::vector<int64_t> amounts(places * dimensions_);
    rows.swap(row_);
    amounts.swap(amount_);
    shift_ = 32 - std::countr_zero(places);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == kNone) continue;
      const size_t place = place_of(rows[i]);
      row_[place] = rows[i];
      std::copy_n(amounts.data() + i * dimensions_, dimensions_,
                  amount_.data() + place * dimensions_);
    }
  }

  size_t dimensions_;
  std::vector<uint64_t> present_;  // bitmap of the rows that have an amount
  std::vector<int32_t> row_;       // by place, kNone where empty; at least half of them are
  std::vector<int64_t> amount_;    // [places, R]
  size_t count_ = 0;               // rows that have an amount
  int shift_ = 0;                  // of home(): leaves as many values as there are places
};

}  // namespace agora
