#include "claimable.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <unordered_map>

namespace agora {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace

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

void in_whole_gangs(std::span<const int64_t> gang, std::span<const int64_t> waiting_gang,
                    std::span<bool> whole) {
  require(whole.size() == gang.size(), "whole: expected one per placement");
  std::unordered_map<int64_t, int64_t> without_place;  // by gang
  for (const int64_t each : gang)
    if (each >= 0) --without_place[each];
  for (const int64_t each : waiting_gang) {
    if (without_place.empty()) break;
    const auto found = without_place.find(each);
    if (found != without_place.end()) ++found->second;
  }
  for (size_t i = 0; i < gang.size(); ++i)
    whole[i] = gang[i] < 0 || without_place.find(gang[i])->second == 0;
}

}  // namespace agora
