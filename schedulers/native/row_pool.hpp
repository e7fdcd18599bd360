// RowPool: hands out the rows of a table, and takes them back to hand them out again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace agora {

// Rows given back last are taken first. A table that is full at least doubles. Of new rows the
// lowest is taken first, after those that were given back.
class RowPool {
 public:
  // at_least: by how many rows a table grows.
  explicit RowPool(size_t at_least) : at_least_(at_least) {}

  size_t rows() const { return rows_; }

  // Makes sure that n rows can be taken. Returns whether the table has to grow to rows() for it.
  bool reserve(size_t n) {
    if (n <= free_.size()) return false;
    const size_t more = std::max({n - free_.size(), rows_, at_least_});
    std::vector<int64_t> free;
    free.reserve(more + free_.size());
    for (size_t row = rows_ + more; row > rows_; --row)
      free.push_back(static_cast<int64_t>(row) - 1);
    free.insert(free.end(), free_.begin(), free_.end());
    free_ = std::move(free);
    rows_ += more;
    return true;
  }

  // One of the rows reserved.
  int64_t take() {
    const int64_t row = free_.back();
    free_.pop_back();
    return row;
  }

  void give_back(int64_t row) { free_.push_back(row); }

 private:
  size_t at_least_;
  size_t rows_ = 0;
  std::vector<int64_t> free_;  // a stack
};

}  // namespace agora
