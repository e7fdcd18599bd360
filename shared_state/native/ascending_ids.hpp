// Ids that ascend, in rows: those of holds and of offers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace agora {

// A search begins where the last one ended. It takes constant time for the ids that come after that
// one without gaps, and for ids that ascend.
class AscendingIds {
 public:
  static constexpr size_t kNone = ~size_t{0};

  size_t size() const { return ids_.size(); }
  int64_t operator[](size_t row) const { return ids_[row]; }
  const std::vector<int64_t>& all() const { return ids_; }

  // Requires: ids that ascend, above all that there are.
  void push_back(int64_t id) { ids_.push_back(id); }
  void append(std::span<const int64_t> ids) { ids_.insert(ids_.end(), ids.begin(), ids.end()); }
  // The row of an id, or kNone.
  size_t find(int64_t id) const {
    if (found_ >= ids_.size()) found_ = 0;
    if (ids_.empty()) return kNone;
    // Mostly no ids are missing between the two. (Unsigned: anybody may name any id.)
    const size_t guess = found_ + (static_cast<size_t>(id) - static_cast<size_t>(ids_[found_]));
    if (guess < ids_.size() && ids_[guess] == id) return found_ = guess;
    size_t first = 0, end = ids_.size();  // the row is in [first, end)
    if (ids_[found_] <= id) {
      first = found_;
      for (size_t step = 1; first + step < end; step *= 2) {
        if (ids_[first + step] > id) {
          end = first + step;
          break;
        }
        first += step;
      }
    } else {
      end = found_;
    }
    const auto from = ids_.begin();
    const auto at = std::lower_bound(from + static_cast<ptrdiff_t>(first),
                                     from + static_cast<ptrdiff_t>(end), id);
    if (at == ids_.end() || *at != id) return kNone;
    return found_ = static_cast<size_t>(at - from);
  }
  // Moves the id of a row to an earlier one. Then shorten() is due.
  void move(size_t row, size_t to) { ids_[to] = ids_[row]; }
  void shorten(size_t rows) { ids_.resize(rows); }

 private:
  std::vector<int64_t> ids_;
  mutable size_t found_ = 0;  // the row that was found last
};

}  // namespace agora
