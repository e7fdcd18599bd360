#include "slot_prices.hpp"

#include <stdexcept>
#include <string>

namespace agora {

SlotPrices::SlotPrices(std::span<const int64_t> price, size_t levels,
                       std::span<const int64_t> slots, std::span<const int64_t> unit)
    : levels_(levels),
      last_level_(static_cast<int64_t>(levels) - 1),
      price_(price.begin(), price.end()),
      rank_(price.size()),
      slots_(slots.begin(), slots.end()),
      unit_(unit.begin(), unit.end()) {
  if (levels == 0 || price.size() != slots.size() * levels)
    throw std::invalid_argument("prices: expected one row per machine, and a level or more");
  for (const int64_t u : unit)
    if (u < 0) throw std::invalid_argument("prices: expected a unit of 0 or more");
  int64_t dearest = 0;
  for (size_t machine = 0; machine < slots.size(); ++machine) {
    int64_t before = 0;
    for (size_t level = 0; level < levels; ++level) {
      const int64_t p = price[machine * levels + level];
      if (p < before)
        throw std::invalid_argument("price of machine " + std::to_string(machine) + " with " +
                                    std::to_string(level) + " busy slots: expected " +
                                    std::to_string(before) + " or more, got " + std::to_string(p));
      before = p;
    }
    dearest = std::max(dearest, before);
  }
  int dropped_bits = 0;
  while (dearest >> dropped_bits >= kNoRank) ++dropped_bits;
  for (size_t i = 0; i < price.size(); ++i)
    rank_[i] = static_cast<int16_t>(price[i] >> dropped_bits);
}

}  // namespace agora
