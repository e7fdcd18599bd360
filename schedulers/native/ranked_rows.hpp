// Open rows by room: for best fit and load spreading, whose plans take the extreme row again and
// again.
//
//   heap   the first rows in order, with their ties; rows up to a limit
//   rest   the other rows, beyond the limit and in no order; most plans never come to them
//
// Building is O(open rows). Afterwards a pick is O(log): a row whose room changed is pushed again
// with its new rank, and what lies there with an old rank, or of a row no longer open, is dropped
// when it comes first. When the heap is empty, the first of the rest move into it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "shared_state/native/random.hpp"

namespace agora {

struct RankedRow {
  int64_t rank;  // lowest first
  int32_t row;
  int16_t price = 0;  // before all, lowest first: a rank (priced_rows.hpp), 0 without prices

  bool same_place(const RankedRow& other) const {
    return rank == other.rank && price == other.price;
  }
  std::pair<int16_t, int64_t> place() const { return {price, rank}; }
};

class RankedRows {
 public:
  bool built() const { return built_; }
  void clear() {
    heap_.clear();
    rest_.clear();
    built_ = false;
  }
  // Filling: add() each row, then build().
  void add(const RankedRow& row) { rest_.push_back(row); }
  // Rows of the same price and rank come in the order of their hashes; without a salt, lowest
  // first.
  void build(std::optional<uint64_t> salt) {
    salt_ = salt;
    built_ = true;
    refill();
  }
  void push(const RankedRow& row) {
    if (row.place() > limit_) return rest_.push_back(row);
    heap_.push_back(with_tie(row));
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }
  bool empty() const { return heap_.empty(); }  // the rest is then, too
  const RankedRow& first() const { return heap_.front(); }
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    heap_.pop_back();
    if (heap_.empty()) refill();
  }

 private:
  static constexpr size_t kFewest = 32;  // rows that are worth a pass over the rest
  static constexpr size_t kShare = 16;
  static constexpr std::pair<int16_t, int64_t> kNoLimit{INT16_MAX, INT64_MAX};

  struct Tied : RankedRow {
    uint64_t tie;
  };
  // (an object, so that the heap's loops compare without a call)
  struct Later {
    bool operator()(const Tied& a, const Tied& b) const {
      if (a.price != b.price) return a.price > b.price;
      if (a.rank != b.rank) return a.rank > b.rank;
      if (a.tie != b.tie) return a.tie > b.tie;
      return a.row > b.row;
    }
  };

  Tied with_tie(const RankedRow& row) const {
    return {row, salt_ ? hash64(row.row, *salt_) : uint64_t{0}};
  }

  // Requires: the heap is empty.
  void refill() {
    limit_ = next_limit();
    const auto end = std::partition(rest_.begin(), rest_.end(),
                                    [this](const RankedRow& row) { return row.place() > limit_; });
    for (auto row = end; row != rest_.end(); ++row) heap_.push_back(with_tie(*row));
    std::make_heap(heap_.begin(), heap_.end(), Later{});
    rest_.erase(end, rest_.end());
  }

  // The first place, if enough rows have it; else one that a sixteenth of the rows come up to.
  std::pair<int16_t, int64_t> next_limit() {
    const auto earlier = [](const RankedRow& a, const RankedRow& b) {
      return a.place() < b.place();
    };
    const size_t wanted = std::max(kFewest, rest_.size() / kShare);
    if (rest_.size() <= 2 * wanted) return kNoLimit;
    const auto first = std::min_element(rest_.begin(), rest_.end(), earlier)->place();
    const auto have_it = std::count_if(rest_.begin(), rest_.end(),
                                       [&](const RankedRow& row) { return row.place() == first; });
    if (static_cast<size_t>(have_it) >= kFewest) return first;
    const auto last = rest_.begin() + static_cast<std::ptrdiff_t>(wanted) - 1;
    std::nth_element(rest_.begin(), last, rest_.end(), earlier);
    return last->place();
  }

  std::vector<Tied> heap_;
  std::vector<RankedRow> rest_;
  std::pair<int16_t, int64_t> limit_ = kNoLimit;  // of the heap's rows; the rest's lie beyond it
  std::optional<uint64_t> salt_;
  bool built_ = false;
};

}  // namespace agora
