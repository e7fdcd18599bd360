#include "implied_cost.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace agora {

namespace {

using Wide = __int128;

constexpr int kFraction = 62;  // ratios and probabilities: 1 is 2^62
constexpr int64_t kOne = int64_t{1} << kFraction;
constexpr int64_t kMaxLoad = int64_t{1} << 62;
constexpr int64_t kMaxGain = int64_t{1} << 32;

int64_t times(int64_t value, int64_t fraction) {
  return static_cast<int64_t>(Wide{value} * fraction >> kFraction);
}

bool moved(int64_t before, int64_t now) { return std::abs(now - before) > before / 256; }

void check(const char* field, size_t row, int64_t value, int64_t highest) {
  if (value < 0 || value > highest)
    throw std::invalid_argument(std::string(field) + "[" + std::to_string(row) +
                                "]: expected 0 to " + std::to_string(highest) + ", got " +
                                std::to_string(value));
}

}  // namespace

void implied_cost(int64_t load, int64_t slots, int64_t gain, std::span<int64_t> price) {
  std::array<int64_t, kMaxLevels + 1> step;  // step[n] = E(n) / E(n - 1)
  int64_t loss = kOne;
  for (int64_t n = 1; n <= slots; ++n) {
    const int64_t rate = (n << 32) + times(load, loss);
    const Wide ratio = (Wide{load} << kFraction) / rate;
    step[static_cast<size_t>(n)] = static_cast<int64_t>(std::min<Wide>(ratio, kOne));
    loss = times(loss, step[static_cast<size_t>(n)]);
  }
  const auto full = std::min(static_cast<size_t>(slots), price.size());
  std::fill(price.begin() + static_cast<std::ptrdiff_t>(full), price.end(), gain);
  int64_t ratio = kOne;
  for (auto b = static_cast<size_t>(slots); b-- > 0;) {
    ratio = times(ratio, step[b + 1]);
    if (b < price.size())
      price[b] = static_cast<int64_t>((Wide{gain} * ratio + kOne / 2) >> kFraction);
  }
}

PriceChanges update_implied_prices(const ImpliedPrices& prices, std::span<const int64_t> load,
                                   std::span<const int64_t> slots, std::span<const int64_t> gain) {
  for (size_t m = 0; m < load.size(); ++m) {
    check("load", m, load[m], kMaxLoad);
    check("slots", m, slots[m], kMaxLevels);
    check("gain", m, gain[m], kMaxGain);
  }
  PriceChanges changes{0, 0};
  std::array<int64_t, kMaxLevels + 1> row;
  if (prices.levels == 0 || prices.levels > row.size())
    throw std::invalid_argument("price: expected 1 to 257 levels");
  const auto now = std::span(row).first(prices.levels);
  for (size_t m = 0; m < load.size(); ++m) {
    const bool is_new = prices.load[m] < 0;
    if (!is_new && !moved(prices.load[m], load[m]) && !moved(prices.gain[m], gain[m])) continue;
    implied_cost(load[m], slots[m], gain[m], now);
    prices.load[m] = load[m];
    prices.gain[m] = gain[m];
    ++changes.computed;
    const auto held = prices.price.subspan(m * prices.levels, prices.levels);
    const int64_t least = gain[m] / 64;
    bool changes_row = is_new;
    for (size_t b = 0; b < held.size() && !changes_row; ++b)
      changes_row = std::abs(now[b] - held[b]) > least;
    if (!changes_row) continue;
    std::copy(now.begin(), now.end(), held.begin());
    ++changes.changed;
  }
  return changes;
}

}  // namespace agora
