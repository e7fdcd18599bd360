// The least placement cost against the textbook's algorithm on a network with a node for every task
// and every machine, on random small cells; what does not go together is refused.
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "flowsolver/flowsolver.hpp"
#include "schedulers/native/objective.hpp"
#include "shared_state/native/free_amounts.hpp"

using namespace agora;

namespace {

using Ids = std::vector<int64_t>;
constexpr size_t kDimensions = 2;

bool is_refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

// A catalog of random sets, whose costs fall from elsewhere over the rack to the machine if
// `ordered`.
struct RandomCatalog {
  RandomCatalog(Draws& draw, size_t machines, size_t rack_size, bool ordered) {
    for (size_t m = 0; m < machines; ++m) rack_of.push_back(static_cast<int32_t>(m / rack_size));
    const auto cost = [&](int64_t least) {
      return static_cast<int64_t>(draw(3)) + (ordered ? least : 0);
    };
    for (size_t set = 0; set < 1 + draw(4); ++set) {
      for (size_t m = 0; m < machines; ++m)
        if (draw(3) == 0) {
          machine.push_back(static_cast<int32_t>(m));
          machine_cost.push_back(cost(0));
        }
      for (int32_t r = 0; r <= rack_of.back(); ++r)
        if (draw(3) == 0) {
          rack.push_back(r);
          rack_cost.push_back(cost(3));
        }
      machine_offsets.push_back(static_cast<int64_t>(machine.size()));
      rack_offsets.push_back(static_cast<int64_t>(rack.size()));
      elsewhere.push_back(cost(6));
      unscheduled.push_back(static_cast<int64_t>(draw(20)));
    }
  }

  PreferenceColumns columns() const {
    return {machine_offsets, machine,   machine_cost, rack_offsets, rack,
            rack_cost,       elsewhere, unscheduled,  rack_of};
  }

  Ids machine_offsets{0}, machine_cost, rack_offsets{0}, rack_cost, elsewhere, unscheduled;
  std::vector<int32_t> machine, rack, rack_of;
};

// How many of the tasks fit, whichever they are: as many of the smallest in each dimension.
int64_t slots_of(const Ids& request, const int64_t* room) {
  const size_t n = request.size() / kDimensions;
  size_t most = n;
  for (size_t r = 0; r < kDimensions; ++r) {
    Ids asked;
    for (size_t i = 0; i < n; ++i) asked.push_back(request[i * kDimensions + r]);
    std::ranges::sort(asked);
    size_t fit = 0;
    for (int64_t left = std::max<int64_t>(room[r], 0); fit < n && asked[fit] <= left; ++fit)
      left -= asked[fit];
    most = std::min(most, fit);
  }
  return room[0] > 0 || room[1] > 0 ? static_cast<int64_t>(most) : 0;
}

int64_t least_cost(const PreferenceColumns& catalog, const Ids& room,
                   const std::vector<int32_t>& preference, const Ids& request) {
  const size_t tasks = preference.size(), machines = catalog.rack_of.size();
  const auto sink = static_cast<flowsolver::NodeId>(tasks + machines);
  flowsolver::Network network;
  network.supply.assign(tasks + machines + 1, 0);
  const auto add_arc = [&](size_t tail, size_t head, int64_t capacity, int64_t cost) {
    network.tail.push_back(static_cast<flowsolver::NodeId>(tail));
    network.head.push_back(static_cast<flowsolver::NodeId>(head));
    network.capacity.push_back(capacity);
    network.cost.push_back(cost);
  };
  for (size_t m = 0; m < machines; ++m)
    add_arc(tasks + m, sink, slots_of(request, &room[m * kDimensions]), 0);
  for (size_t i = 0; i < tasks; ++i) {
    const auto set = static_cast<size_t>(preference[i]);
    const int64_t* const asked = &request[i * kDimensions];
    network.supply[i] = 1;
    --network.supply[sink];
    add_arc(i, sink, 1, catalog.unscheduled_cost[set]);
    bool has_place = false;
    for (size_t m = 0; m < machines; ++m)
      has_place |= fits_in(asked, &room[m * kDimensions], kDimensions);
    const auto column = [](std::span<const int64_t> offsets, size_t at) {
      return std::pair{static_cast<size_t>(offsets[at]), static_cast<size_t>(offsets[at + 1])};
    };
    for (size_t m = 0; m < machines && has_place; ++m) {
      add_arc(i, tasks + m, 1, catalog.elsewhere_cost[set]);
      const auto [first, last] = column(catalog.rack_offsets, set);
      for (size_t at = first; at < last; ++at)
        if (catalog.rack[at] == catalog.rack_of[m]) add_arc(i, tasks + m, 1, catalog.rack_cost[at]);
    }
    const auto [begin, end] = column(catalog.machine_offsets, set);
    for (size_t at = begin; at < end; ++at) {
      const auto m = static_cast<size_t>(catalog.machine[at]);
      if (fits_in(asked, &room[m * kDimensions], kDimensions))
        add_arc(i, tasks + m, 1, catalog.machine_cost[at]);
    }
  }
  const flowsolver::Solution solution = flowsolver::find_algorithm("successive_shortest_path")
                                            ->solve(network, {}, flowsolver::Control());
  CHECK(solution.status == flowsolver::Status::kOptimal);
  CHECK(flowsolver::certify(network, solution.flow, solution.potential, solution.cost).ok());
  return solution.cost;
}

// Returns whether the answer was exact.
bool the_optimum_is_the_textbooks(Draws& draw) {
  const size_t machines = 1 + draw(9);
  const bool ordered = draw(2) == 0, alike = draw(2) == 0;
  const RandomCatalog catalog(draw, machines, 1 + draw(4), ordered);
  Ids room, request;
  std::vector<int32_t> preference;
  for (size_t at = 0; at < machines * kDimensions; ++at)
    room.push_back(static_cast<int64_t>(draw(9)) - 2);
  for (size_t i = 0; i < 1 + draw(12); ++i) {
    preference.push_back(static_cast<int32_t>(draw(catalog.elsewhere.size())));
    for (size_t r = 0; r < kDimensions; ++r)
      request.push_back(alike && i > 0 ? request[r] : static_cast<int64_t>(r + draw(3)));
  }
  BestPlacement best(catalog.columns());
  const Optimum found = best.cost(room, kDimensions, preference, request);
  CHECK(found.cost == least_cost(catalog.columns(), room, preference, request));
  CHECK(!ordered || !alike || found.exact);
  return found.exact;
}

void what_does_not_go_together_is_refused(Draws& draw) {
  RandomCatalog catalog(draw, 4, 2, true);
  BestPlacement best(catalog.columns());
  const Ids room(4 * kDimensions, 1), one(kDimensions, 1);
  const std::vector<int32_t> first{0}, unknown{9}, negative{-1};
  CHECK(!is_refused([&] { best.cost(room, kDimensions, first, one); }));
  CHECK(is_refused([&] { best.cost(one, kDimensions, first, one); }));
  CHECK(is_refused([&] { best.cost(room, kDimensions, first, room); }));
  CHECK(is_refused([&] { best.cost({}, 0, first, {}); }));
  CHECK(is_refused([&] { best.cost(room, kDimensions, unknown, one); }));
  CHECK(is_refused([&] { best.cost(room, kDimensions, negative, one); }));
  const auto malformed = [&](auto change) {
    RandomCatalog changed = catalog;
    change(changed);
    return is_refused([&] { BestPlacement{changed.columns()}; });
  };
  CHECK(malformed([](RandomCatalog& c) { c.machine_offsets[0] = -1; }));
  CHECK(malformed([](RandomCatalog& c) { c.rack_offsets.back() = 99; }));
  CHECK(malformed([](RandomCatalog& c) { c.elsewhere.pop_back(); }));
  CHECK(malformed([](RandomCatalog& c) {
    c.machine.push_back(4);
    c.machine_cost.push_back(0);
  }));
  CHECK(malformed([](RandomCatalog& c) {
    c.rack.push_back(-1);
    c.rack_cost.push_back(0);
  }));
  CHECK(malformed([](RandomCatalog& c) { std::ranges::reverse(c.rack_of); }));
}

}  // namespace

int main() {
  Draws draw(36);
  int exact = 0;
  constexpr int kRounds = 3000;
  for (int round = 0; round < kRounds; ++round) exact += the_optimum_is_the_textbooks(draw);
  CHECK(exact > kRounds / 4 && exact < kRounds * 3 / 4);
  what_does_not_go_together_is_refused(draw);
}
