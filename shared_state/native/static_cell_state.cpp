#include "static_cell_state.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

#include "cell.hpp"

namespace agora {

namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

std::vector<int64_t> weights_of(const std::vector<int64_t>& score) {
  std::vector<int64_t> weight(score.size());
  std::transform(score.begin(), score.end(), weight.begin(),
                 [](int64_t s) { return std::max<int64_t>(s, 1); });
  return weight;
}

bool covers(const int64_t* limit, const int64_t* request, size_t dimensions) {
  for (size_t r = 0; r < dimensions; ++r)
    if (limit[r] < request[r]) return false;
  return true;
}

// The rows of limit [M, R] that no other row covers: sorted descending, a row can only be covered
// by an earlier one.
std::vector<int64_t> largest_machines(const std::vector<int64_t>& limit, size_t dimensions) {
  const size_t machines = limit.size() / dimensions;
  std::vector<const int64_t*> row(machines);
  for (size_t m = 0; m < machines; ++m) row[m] = limit.data() + m * dimensions;
  const auto before = [dimensions](const int64_t* a, const int64_t* b) {
    return std::lexicographical_compare(b, b + dimensions, a, a + dimensions);
  };
  const auto same = [dimensions](const int64_t* a, const int64_t* b) {
    return std::equal(a, a + dimensions, b);
  };
  if (std::all_of(row.begin(), row.end(), [&](const int64_t* m) { return same(m, row.front()); }))
    row.resize(std::min<size_t>(machines, 1));
  std::sort(row.begin(), row.end(), before);
  std::vector<int64_t> largest;
  for (const int64_t* candidate : row) {
    bool covered = false;
    for (size_t k = 0; k < largest.size() && !covered; k += dimensions)
      covered = covers(largest.data() + k, candidate, dimensions);
    if (!covered) largest.insert(largest.end(), candidate, candidate + dimensions);
  }
  return largest;
}

}  // namespace

StaticCellState::StaticCellState(size_t dimensions, std::vector<int64_t> limits,
                                 const std::vector<int64_t>& score, std::vector<int64_t> offsets)
    : index(weights_of(score), std::move(offsets)),
      limit(std::move(limits)),
      dimensions_(dimensions),
      scale_(dimensions, 0) {
  if (dimensions < 1 || dimensions > kMaxDimensions) refuse("dimensions: expected 1 to 8");
  if (limit.size() != score.size() * dimensions)
    refuse("limit: expected one row per score and a column per dimension");
  for (size_t i = 0; i < limit.size(); ++i) {
    if (limit[i] < 0 || limit[i] > kMaxAmount)
      refuse("limit of machine " + std::to_string(i / dimensions) + ": expected 0 to 2^50");
    int64_t& most = scale_[i % dimensions];
    most = std::max(most, limit[i]);
  }
  const std::vector<int64_t> most = scale_;
  for (int64_t& scale : scale_) scale = scale > 0 ? (int64_t{1} << 60) / scale : 0;
  most_room_ = normalised(most.data());
  scored_ = std::adjacent_find(index.weight.begin(), index.weight.end(), std::not_equal_to<>()) !=
            index.weight.end();
  same_limits_ = std::equal(limit.begin() + static_cast<std::ptrdiff_t>(dimensions), limit.end(),
                            limit.begin());
  largest_ = largest_machines(limit, dimensions);
  if (dimensions == 1 && most[0] <= std::numeric_limits<int8_t>::max()) {
    limit_bytes_.resize(limit.size());
    std::transform(limit.begin(), limit.end(), limit_bytes_.begin(),
                   [](int64_t l) { return static_cast<int8_t>(l); });
  }
}

bool StaticCellState::fits_some_machine(const int64_t* request) const {
  for (size_t k = 0; k < largest_.size(); k += dimensions_)
    if (covers(largest_.data() + k, request, dimensions_)) return true;
  return false;
}

}  // namespace agora
