#include "flow_units.hpp"

#include <algorithm>
#include <stdexcept>

namespace agora {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace

void units_in(std::span<const int64_t> resources, std::span<const int64_t> unit, int64_t most,
              std::span<int64_t> units) {
  const size_t dimensions = unit.size();
  require(resources.size() == units.size() * dimensions,
          "resources: expected a row of each resource per machine");
  const bool counts = std::any_of(unit.begin(), unit.end(), [](int64_t u) { return u != 0; });
  for (size_t m = 0; m < units.size(); ++m) {
    const int64_t* const row = resources.data() + m * dimensions;
    if (!counts) {
      units[m] = std::any_of(row, row + dimensions, [](int64_t r) { return r > 0; }) ? most : 0;
      continue;
    }
    int64_t held = most;
    for (size_t r = 0; r < dimensions; ++r)
      if (unit[r] != 0 && row[r] <= 0)
        held = 0;
      else if (unit[r] != 0)
        held = std::min(held, unit[r] == 1 ? row[r] : row[r] / unit[r]);
    units[m] = held;
  }
}

std::vector<int64_t> ranges(std::span<const int64_t> begin, std::span<const int64_t> size) {
  require(begin.size() == size.size(), "begin, size: expected columns of one length");
  size_t total = 0;
  for (const int64_t each : size) {
    require(each >= 0, "size: expected 0 or more");
    total += static_cast<size_t>(each);
  }
  std::vector<int64_t> entries;
  entries.reserve(total);
  for (size_t i = 0; i < begin.size(); ++i)
    for (int64_t k = 0; k < size[i]; ++k) entries.push_back(begin[i] + k);
  return entries;
}

std::vector<int64_t> differing(std::span<const int64_t> a, std::span<const int64_t> b) {
  require(a.size() == b.size(), "expected columns of one length");
  std::vector<int64_t> places;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) places.push_back(static_cast<int64_t>(i));
  return places;
}

int64_t first_outside(std::span<const int64_t> column, int64_t lowest, int64_t highest) {
  for (size_t i = 0; i < column.size(); ++i)
    if (column[i] < lowest || column[i] > highest) return static_cast<int64_t>(i);
  return -1;
}

}  // namespace agora
