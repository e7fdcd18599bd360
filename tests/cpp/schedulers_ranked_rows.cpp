// Ranked rows against a sorted set: the same row first, whatever is built, pushed and dropped.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "schedulers/native/placer.hpp"
#include "tests/cpp/check.hpp"

using namespace agora;

namespace {

using Place = std::tuple<int16_t, int64_t, uint64_t, int32_t>;

// ranks: how many there are; few of them are had by many rows.
void rows_come_in_order(Draws& draws, size_t rows, uint64_t ranks, bool salted) {
  const std::optional<uint64_t> salt = salted ? std::optional<uint64_t>(draws(1000)) : std::nullopt;
  const auto any_row = [&](int32_t row) {
    return RankedRow{static_cast<int64_t>(draws(ranks)) - static_cast<int64_t>(ranks / 2), row,
                     static_cast<int16_t>(draws(4) == 0 ? draws(3) : 0)};
  };
  RankedRows ranked;
  std::multiset<Place> model;
  const auto place_of = [&](const RankedRow& row) {
    return Place{row.price, row.rank, salt ? hash64(row.row, *salt) : 0, row.row};
  };
  for (size_t i = 0; i < rows; ++i) {
    const RankedRow row = any_row(static_cast<int32_t>(i));
    ranked.add(row);
    model.insert(place_of(row));
  }
  ranked.build(salt);
  CHECK(ranked.built());
  for (size_t step = 0; step < 2 * rows + 20; ++step) {
    CHECK(ranked.empty() == model.empty());
    if (!model.empty()) CHECK(place_of(ranked.first()) == *model.begin());
    if (!model.empty() && draws(3) > 0) {
      RankedRow first = ranked.first();
      ranked.pop();
      model.erase(model.begin());
      if (draws(3) > 0) continue;
      first.rank += static_cast<int64_t>(draws(ranks));  // it lost some of its room
      ranked.push(first);
      model.insert(place_of(first));
    } else {
      const RankedRow row = any_row(static_cast<int32_t>(draws(rows + 1)));
      ranked.push(row);
      model.insert(place_of(row));
    }
  }
  ranked.clear();
  CHECK(!ranked.built() && ranked.empty());
}

}  // namespace

int main() {
  Draws draws(1);
  for (int round = 0; round < 300; ++round)
    for (const uint64_t ranks : {1, 3, 40, 1'000'000})
      rows_come_in_order(draws, draws(round % 10 == 0 ? 2'000 : 150), ranks, round % 2 == 0);
  return 0;
}
