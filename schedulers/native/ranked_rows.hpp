// A lazily kept heap of open rows by room: for best fit and load spreading, whose plans take the
// extreme row again and again.
//
// Building is O(open rows). Afterwards a pick is O(log): a row whose room changed is pushed again
// with its new rank, and what lies in the heap with an old rank, or of a row no longer open, is
// dropped when it surfaces.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace agora {

struct RankedRow {
  int64_t rank;  // lowest first
  uint64_t tie;  // then lowest first
  int32_t row;
  int16_t price = 0;  // before all, lowest first: a rank (slot_prices.hpp), 0 without prices

  bool same_place(const RankedRow& other) const {
    return rank == other.rank && price == other.price;
  }
};

inline bool before(const RankedRow& a, const RankedRow& b) {
  if (a.price != b.price) return a.price < b.price;
  if (a.rank != b.rank) return a.rank < b.rank;
  if (a.tie != b.tie) return a.tie < b.tie;
  return a.row < b.row;
}

class RankedRows {
 public:
  bool built() const { return built_; }
  void clear() {
    rows_.clear();
    built_ = false;
  }
  // Filling: add() each row, then build().
  void add(const RankedRow& row) { rows_.push_back(row); }
  void build() {
    std::make_heap(rows_.begin(), rows_.end(), Later{});
    built_ = true;
  }
  void push(const RankedRow& row) {
    rows_.push_back(row);
    std::push_heap(rows_.begin(), rows_.end(), Later{});
  }
  bool empty() const { return rows_.empty(); }
  const RankedRow& first() const { return rows_.front(); }
  void pop() {
    std::pop_heap(rows_.begin(), rows_.end(), Later{});
    rows_.pop_back();
  }

 private:
  // (an object, so that the heap's loops compare without a call)
  struct Later {
    bool operator()(const RankedRow& a, const RankedRow& b) const { return before(b, a); }
  };

  std::vector<RankedRow> rows_;
  bool built_ = false;
};

}  // namespace agora
