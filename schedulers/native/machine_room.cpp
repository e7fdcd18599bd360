#include "machine_room.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <tuple>

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

void fit_together(const Placed& placed, std::span<const int64_t> free, size_t dimensions,
                  std::span<bool> fits) {
  const size_t n = placed.task.size();
  require(placed.priority.size() == n && placed.machine.size() == n && fits.size() == n &&
              placed.request.size() == n * dimensions,
          "tasks: expected columns of one length, and a column of request per dimension");
  for (const int64_t m : placed.machine)
    require(m >= 0 && (static_cast<size_t>(m) + 1) * dimensions <= free.size(),
            "machine: expected rows of the view");
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(placed.machine[a], -int64_t{placed.priority[a]}, placed.task[a]) <
           std::tuple(placed.machine[b], -int64_t{placed.priority[b]}, placed.task[b]);
  });
  std::vector<int64_t> total(dimensions);
  for (size_t k = 0; k < n; ++k) {
    const size_t i = order[k];
    if (k == 0 || placed.machine[order[k - 1]] != placed.machine[i])
      std::fill(total.begin(), total.end(), 0);
    const int64_t* const request = placed.request.data() + i * dimensions;
    const int64_t* const left = free.data() + static_cast<size_t>(placed.machine[i]) * dimensions;
    fits[i] = true;
    for (size_t r = 0; r < dimensions; ++r) {
      total[r] += request[r];
      if (request[r] != 0 && total[r] > left[r]) fits[i] = false;
    }
  }
}

}  // namespace agora
