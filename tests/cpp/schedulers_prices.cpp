// The demand of offered tasks and the implied costs made of it, at the ends of their ranges and
// over random histories: nothing overflows, shares are whole, prices never fall.
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "schedulers/native/estimators.hpp"

using namespace agora;

namespace {

struct Sets {
  std::vector<int64_t> machine_offsets{0, 0}, machine_cost, rack_offsets{0, 0}, rack_cost,
      elsewhere{0}, unscheduled{0};
  std::vector<int32_t> machine, rack, rack_of;

  PreferenceColumns columns() const {
    return {machine_offsets, machine,   machine_cost, rack_offsets, rack,
            rack_cost,       elsewhere, unscheduled,  rack_of};
  }
  void add(const std::vector<int32_t>& listed, int64_t cost, int64_t elsewhere_cost) {
    for (const int32_t m : listed) machine.push_back(m), machine_cost.push_back(cost);
    machine_offsets.push_back(static_cast<int64_t>(machine.size()));
    rack_offsets.push_back(0);
    elsewhere.push_back(elsewhere_cost);
    unscheduled.push_back(elsewhere_cost);
  }
};

template <typename Call>
bool refuses(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

void check_extremes() {
  const std::vector<int64_t> ends{0, 1, int64_t{1} << 31, int64_t{1} << 32, int64_t{1} << 62};
  for (const int64_t load : ends)
    for (const int64_t gain : {int64_t{0}, int64_t{1}, int64_t{1} << 32})
      for (const int64_t slots : {int64_t{0}, int64_t{1}, int64_t{17}, kMaxLevels}) {
        std::vector<int64_t> price(static_cast<size_t>(kMaxLevels) + 1, -1);
        implied_cost(load, slots, gain, price);
        CHECK(price.front() >= 0 && price.back() == gain);
        CHECK(std::is_sorted(price.begin(), price.end()));
        std::vector<int64_t> short_row(1, -1);
        implied_cost(load, slots, gain, short_row);
        CHECK(short_row[0] == price[0]);
      }
}

void check_refusals() {
  Sets sets;
  sets.rack_of = {0, 0};
  sets.add({0, 1}, 0, 5);
  OfferedDemand demand(sets.columns(), 1, 4);
  const std::vector<int64_t> request{1, 1};
  const auto offer = [&](std::vector<int64_t> task, std::vector<int32_t> set) {
    return refuses([&] { demand.offered(task, set, request.data()); });
  };
  CHECK(offer({0, -1}, {1, 1}) && offer({0, OfferedDemand::kMaxTask}, {1, 1}));
  CHECK(offer({0, 1}, {1, 2}) && offer({0, 1}, {1, -1}));
  const auto learn = [&](int32_t set, int64_t tasks, int64_t squares) {
    return refuses([&] {
      demand.learn(std::vector<int32_t>{1, set}, std::vector<int64_t>{1, tasks},
                   std::vector<int64_t>{1, squares});
    });
  };
  const int64_t most = OfferedDemand::kMaxTask, most_squares = int64_t{1} << 60;
  CHECK(learn(2, 1, 1) && learn(-1, 1, 1) && learn(1, most + 1, 1) && learn(1, -most - 1, 1));
  CHECK(learn(1, 1, most_squares + 1) && learn(1, 1, -most_squares - 1));
  CHECK(demand.tasks() == 0 && demand.advance(OfferedDemand::kKeepAll) == 0);
  CHECK(refuses([&] { demand.advance(-1); }));
  CHECK(refuses([&] { demand.advance(OfferedDemand::kKeepAll + 1); }));
  std::vector<int64_t> load(2);
  CHECK(refuses([&] { demand.load(-1, load); }));
  CHECK(refuses([&] { demand.load(OfferedDemand::kMaxSlots + 1, load); }));
  Sets outside = sets, backwards = sets, dear = sets;
  outside.machine.back() = 2;
  backwards.machine_offsets[1] = 3;
  dear.elsewhere.back() = OfferedDemand::kMaxGain + 1;
  for (const Sets* wrong : {&outside, &backwards, &dear})
    CHECK(refuses([&] { OfferedDemand(wrong->columns(), 1, 4); }));
}

void check_history(Draws& draws, bool shares) {
  constexpr size_t kMachines = 9;
  Sets sets;
  for (size_t m = 0; m < kMachines; ++m) sets.rack_of.push_back(static_cast<int32_t>(m / 3));
  for (int set = 0; set < 5; ++set) {
    std::vector<int32_t> listed;
    for (size_t m = 0; m < kMachines; ++m)
      if (draws(3) == 0) listed.push_back(static_cast<int32_t>(m));
    const bool wide = draws(4) == 0;
    sets.add(listed, wide ? -(int64_t{1} << 31) : 3, wide ? int64_t{1} << 31 : 100);
  }
  OfferedDemand demand(sets.columns(), 2, 16);
  std::vector<int64_t> load(kMachines), gain(kMachines), slots(kMachines);
  for (int64_t& s : slots) s = static_cast<int64_t>(draws(20));
  constexpr size_t kLevels = 20;
  std::vector<int64_t> price(kMachines * kLevels), load_at(kMachines, -1), gain_at(kMachines);
  int64_t next = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<int64_t> task, request;
    std::vector<int32_t> set;
    for (uint64_t n = draws(30); n-- > 0;) {
      // an old one, or the next; sometimes far ahead
      const bool again = next > 0 && draws(3) == 0;
      if (!again) next += draws(50) == 0 ? 1'000'000 : 1;
      task.push_back(again ? static_cast<int64_t>(draws(static_cast<uint64_t>(next))) : next);
      set.push_back(static_cast<int32_t>(draws(6)));
      request.push_back(1), request.push_back(static_cast<int64_t>(draws(5)));
    }
    demand.offered(task, set, request.data());
    const int64_t before = demand.tasks();
    demand.offered(task, set, request.data());
    CHECK(demand.tasks() == before);
    if (shares &&
        draws(3) == 0) {  // others share theirs: some of it wrong, or as much as there can be
      const int64_t most = draws(4) == 0 ? OfferedDemand::kMaxTask : 20;
      std::vector<int32_t> learnt;
      std::vector<int64_t> tasks, squares;
      for (uint64_t n = draws(4); n-- > 0;) {
        learnt.push_back(static_cast<int32_t>(draws(6)));
        tasks.push_back(static_cast<int64_t>(draws(2 * static_cast<uint64_t>(most))) - most);
        squares.push_back(tasks.back() * most);
      }
      demand.learn(learnt, tasks, squares);
      CHECK(demand.tasks() == before);
    }
    const auto keep = draws(4) == 0 ? 0 : static_cast<int64_t>(draws(OfferedDemand::kKeepAll + 1));
    demand.advance(keep);
    if (draws(2) == 0) demand.pool();
    int64_t sum = 0;
    for (const int64_t d : demand.demand()) {
      CHECK(d >= 0);
      sum += d;
    }
    CHECK(shares || sum <= demand.total());
    const auto busy = static_cast<int64_t>(draws(3) == 0 ? OfferedDemand::kMaxSlots : draws(100));
    demand.load(busy, load);
    demand.gain(gain);
    for (size_t m = 0; m < kMachines; ++m) {
      CHECK(load[m] >= 0 && load[m] <= busy << 32);
      CHECK(gain[m] >= 0 && gain[m] <= demand.kMaxGain);
    }
    CHECK(demand.mean_gain() >= 0 && demand.mean_gain() <= demand.kMaxGain);
    const ImpliedPrices held{price, kLevels, load_at, gain_at};
    const PriceChanges changes = update_implied_prices(held, load, slots, gain);
    CHECK(changes.changed <= changes.computed);
    for (size_t m = 0; m < kMachines; ++m)
      CHECK(std::is_sorted(price.begin() + static_cast<std::ptrdiff_t>(m * kLevels),
                           price.begin() + static_cast<std::ptrdiff_t>((m + 1) * kLevels)));
    CHECK(update_implied_prices(held, load, slots, gain).computed == 0);
  }
}

}  // namespace

int main() {
  check_extremes();
  check_refusals();
  Draws draws(7);
  for (int seed = 0; seed < 100; ++seed) check_history(draws, seed % 2 != 0);
}
