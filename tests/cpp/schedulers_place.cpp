// The placement kernel under any kind, ranking and mix of tasks: what it claims fits, gangs are
// whole, and the view is left as it was.
#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "check.hpp"
#include "schedulers/native/placer.hpp"

using namespace agora;

namespace {

struct World {
  std::shared_ptr<const StaticCellState> static_state;
  std::vector<int64_t> machine_offsets, machine_cost, rack_offsets, rack_cost, elsewhere,
      unscheduled;
  std::vector<int32_t> machine, rack, rack_of;
};

World make_world(Stream& stream, size_t rows, size_t dimensions) {
  World world;
  std::vector<int64_t> limit(rows * dimensions), score(rows);
  for (int64_t& l : limit) l = static_cast<int64_t>(stream.below(6));
  const bool scored = stream.below(2) == 0;
  for (int64_t& s : score) s = scored ? static_cast<int64_t>(stream.below(1000)) : 0;
  const int64_t size = static_cast<int64_t>(rows);
  world.static_state = std::make_shared<const StaticCellState>(
      dimensions, limit, score, std::vector<int64_t>{0, size / 5, size / 2, size});
  for (size_t row = 0; row < rows; ++row) world.rack_of.push_back(static_cast<int32_t>(row / 7));
  world.machine_offsets = world.rack_offsets = {0, 0};
  world.elsewhere = world.unscheduled = {0};
  for (int set = 0; set < 3; ++set) {
    for (size_t row = 0; row < rows; ++row)
      if (stream.below(static_cast<uint64_t>(set) + 1) == 0)
        world.machine.push_back(static_cast<int32_t>(row)),
            world.machine_cost.push_back(static_cast<int64_t>(stream.below(2)));
    for (int32_t rack = 0; rack <= world.rack_of.back(); ++rack)
      if (stream.below(4) == 0)
        world.rack.push_back(rack),
            world.rack_cost.push_back(static_cast<int64_t>(2 + stream.below(2)));
    world.machine_offsets.push_back(static_cast<int64_t>(world.machine.size()));
    world.rack_offsets.push_back(static_cast<int64_t>(world.rack.size()));
    world.elsewhere.push_back(9);
    world.unscheduled.push_back(99);
  }
  return world;
}

void sync_all(ClusterView& view, const StaticCellState& static_state, Stream& stream) {
  for (size_t p = 0; p < static_state.partitions(); ++p) {
    const size_t count =
        static_cast<size_t>(static_state.index.offsets[p + 1] - static_state.index.offsets[p]);
    std::vector<uint16_t> row(count);
    std::vector<int8_t> used(count * static_state.dimensions());
    const auto up = std::make_unique<bool[]>(count);
    for (size_t i = 0; i < count; ++i)
      row[i] = static_cast<uint16_t>(i), up[i] = stream.below(10) > 0;
    for (int8_t& u : used) u = static_cast<int8_t>(stream.below(4));
    view.apply({static_cast<int32_t>(p), 0, 1, 1, count, row.data(), 2, used.data(), 1, up.get(),
                nullptr});
  }
}

void plan_and_check(Stream& stream, size_t rows, size_t dimensions) {
  const World world = make_world(stream, rows, dimensions);
  const Catalog catalog(PreferenceColumns{world.machine_offsets, world.machine, world.machine_cost,
                                          world.rack_offsets, world.rack, world.rack_cost,
                                          world.elsewhere, world.unscheduled, world.rack_of});
  ClusterView view(world.static_state, false);
  sync_all(view, *world.static_state, stream);
  const std::vector<int32_t> order{2, 0, 1};
  const size_t levels = 1 + stream.below(4);
  std::vector<int64_t> price(rows * levels), slots(rows), unit(dimensions);
  for (size_t row = 0; row < rows; ++row) {
    slots[row] = static_cast<int64_t>(stream.below(7));
    for (size_t i = row * levels; i < (row + 1) * levels; ++i)
      price[i] = static_cast<int64_t>(stream.below(5)) + (i % levels == 0 ? 0 : price[i - 1]);
  }
  for (int64_t& u : unit) u = static_cast<int64_t>(stream.below(3));
  const auto prices = std::make_shared<SlotPrices>(price, levels, slots, unit);
  for (int kind = 0; kind < 6; ++kind) {
    for (int ranking = 0; ranking < static_cast<int>(kRankingNames.size()); ++ranking) {
      const size_t count = 1 + stream.below(3 * rows);
      std::vector<int64_t> request(count * dimensions), gang(count);
      std::vector<int32_t> preference(count), machine(count), again(count);
      const uint64_t largest = 1 + stream.below(7);
      for (int64_t& r : request) r = static_cast<int64_t>(stream.below(largest));
      for (int32_t& p : preference) p = static_cast<int32_t>(stream.below(4));
      for (int64_t& g : gang) g = static_cast<int64_t>(stream.below(12)) - 8;
      const std::unique_ptr<bool[]> waits(new bool[count]), kept(new bool[count]);
      for (size_t i = 0; i < count; ++i) {
        waits[i] = stream.below(3) == 0;
        kept[i] = stream.below(2) == 0;
      }
      PricedRows by_price(catalog, {stream.below(2) == 0, 700, stream.below(2) == 0});
      by_price.set_prices(prices);
      const bool priced = kind != static_cast<int>(PlacementKind::WeightedSampling);
      const PlaceRequest in{count,
                            request.data(),
                            preference,
                            gang,
                            order,
                            static_cast<PartitionRanking>(ranking),
                            static_cast<PlacementKind>(kind),
                            stream.next(),
                            stream.below(2) == 0,
                            {waits.get(), stream.below(2) * count},
                            {kept.get(), stream.below(2) * count},
                            priced && stream.below(2) == 0 ? &by_price : nullptr};
      const std::vector<int64_t> before(view.all_free().begin(), view.all_free().end());
      const PlaceWork work = place(view, catalog, in, machine.data());
      CHECK(std::equal(before.begin(), before.end(),
                       view.all_free().begin()));  // the view is left as it was
      std::vector<int64_t> free = before;
      std::map<int64_t, std::pair<int, int>> gangs;  // placed, waiting
      for (size_t i = 0; i < count; ++i) {
        if (gang[i] >= 0) ++(machine[i] < 0 ? gangs[gang[i]].second : gangs[gang[i]].first);
        if (machine[i] < 0) continue;
        CHECK(machine[i] < static_cast<int32_t>(rows));  // a machine of the cell
        const auto listed = catalog.listed_machines(preference[i]);
        CHECK(in.waits.empty() || !waits[i] ||
              std::find(listed.begin(), listed.end(), machine[i]) !=
                  listed.end());  // a task that waits takes a listed machine
        for (size_t r = 0; r < dimensions; ++r) {
          const int64_t asked = request[i * dimensions + r];
          int64_t& left = free[static_cast<size_t>(machine[i]) * dimensions + r];
          CHECK((left -= asked) >= 0 || asked == 0);  // claims fit
        }
      }
      for (const auto& [id, members] : gangs)
        CHECK(members.first == 0 || members.second == 0);  // a gang is whole
      const std::unique_ptr<bool[]> may(new bool[count]);
      may_be_placed(view, catalog, {count, request.data(), preference, {waits.get(), count}},
                    may.get());
      for (size_t i = 0; i < count; ++i) {
        if (in.waits.empty() || may[i]) continue;
        CHECK(machine[i] < 0);  // only tasks that may be placed are
      }
      const PlaceWork repeated = place(view, catalog, in, again.data());
      CHECK(again == machine && repeated.looked_at == work.looked_at &&
            repeated.ranked == work.ranked &&
            repeated.partitions_scanned == work.partitions_scanned);  // the same plan again
    }
  }
}

}  // namespace

int main() {
  Stream stream(1);
  const uint64_t rounds = tries(60);
  for (uint64_t round = 0; round < rounds; ++round) {
    const uint64_t most = round % 10 == 0 ? 400 : 100;
    plan_and_check(stream, 10 + stream.below(most), 1 + stream.below(3));
  }
  return 0;
}
