// Capacities beyond range: the level they are lowered to, and races over all algorithms at the ends
// of int64.
#include "graph/start_state.hpp"

#include <limits>
#include <vector>

#include "networks.hpp"
#include "race.hpp"

using namespace flowsolver;

namespace {

Network chain(std::int64_t supply, std::int64_t capacity, std::int64_t cost) {
  Network network;
  network.supply = {supply, 0, -supply};
  for (int k = 0; k < 3; ++k) {
    add_arc(network, 0, 1, capacity, cost);
    add_arc(network, 1, 2, capacity, cost);
  }
  return network;
}

void levels() {
  CHECK(capacity_level(chain(5, kInfinity, 1)) == kNarrowLimit);
  // Costs of both signs: the highest at which three arcs at a node stay in range.
  CHECK(capacity_level(chain(5, kInfinity, -1)) == (std::int64_t{1} << 58) - 1);
  CHECK(capacity_level(chain(std::int64_t{1} << 50, kInfinity, 1)) == (std::int64_t{1} << 51) - 1);
  // a level in use stays right until the supplies outgrow it
  CHECK(is_right_level(chain(5, kInfinity, 1), (std::int64_t{1} << 40) - 1));
  CHECK(!is_right_level(chain(std::int64_t{1} << 45, kInfinity, 1), (std::int64_t{1} << 40) - 1));
  CHECK(!capacity_level(chain(std::int64_t{1} << 59, std::int64_t{1} << 60, 1)));
  CHECK(!capacity_level(chain(kInfinity, kInfinity, 1)));
}

void all_algorithms_at_the_ends_of_int64() {
  std::vector<const Algorithm*> all;
  for (const Algorithm& each : algorithms()) all.push_back(&each);
  Network network = chain(std::int64_t{1} << 40, kInfinity, 1);
  add_arc(network, 2, 0, kInfinity, -2);
  for (const Algorithm* algorithm : all) {
    for (const std::int64_t back : {-2, -3, -(1 << 30)}) {
      network.cost.back() = back;
      const Solution solution =
          race(network, {&algorithm, 1}, {}, Control(), WinnerRule::kFirst).solution;
      CHECK(solution.status == (back == -2 ? Status::kOptimal : Status::kUnbounded));
      if (back == -2)
        CHECK(certify(network, solution.flow, solution.potential, solution.cost).ok());
    }
  }
  network.cost.back() = -3;
  const RaceAnswer raced = race(network, all, {}, Control(), WinnerRule::kFewestOperations);
  CHECK(raced.solution.status == Status::kUnbounded);
}

// Of costs, supplies and capacities between rounds.
void extremes_come_and_go() {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                         most = std::numeric_limits<std::int64_t>::max();
  Network network;
  network.supply = {1, -1};
  add_arc(network, 0, 1, 1, 1);
  IncrementalSolver solver(network, algorithms()[0]);
  CHECK(solver.resolve() == Status::kOptimal);
  for (std::int64_t extreme : {least, most}) {
    solver.set_cost(0, extreme);
    CHECK(solver.resolve() == Status::kBadCostRange);
    solver.set_cost(0, 1);
    CHECK(solver.resolve() == Status::kOptimal);
    solver.set_supply(0, extreme);
    CHECK(solver.resolve() == Status::kBadCapacityRange);
    solver.set_supply(0, 1);
    CHECK(solver.resolve() == Status::kOptimal);
  }
  solver.set_capacity(0, most);
  CHECK(solver.resolve() == Status::kOptimal);
  CHECK(solver.certify().ok());
  solver.set_capacity(0, 0);
  CHECK(solver.resolve() == Status::kInfeasible);
  solver.set_capacity(0, 1);
  CHECK(solver.resolve() == Status::kOptimal);
  CHECK(solver.cost() == 1);
}

// A certificate of the largest legal values: exact sums do not overflow.
void wide_certificate() {
  Network network;
  network.supply = {std::int64_t{1} << 59, -(std::int64_t{1} << 59)};
  add_arc(network, 0, 1, std::int64_t{1} << 59, 7);
  const Solution solution = from_scratch(network);
  CHECK(solution.status == Status::kOptimal);
  CHECK(certify(network, solution.flow, solution.potential, solution.cost).ok());
  const std::vector<std::int64_t> wild{std::numeric_limits<std::int64_t>::min(),
                                       std::numeric_limits<std::int64_t>::max()};
  CHECK(!certify(network, solution.flow, wild, solution.cost).ok());
}

}  // namespace

int main() {
  levels();
  all_algorithms_at_the_ends_of_int64();
  extremes_come_and_go();
  wide_certificate();
  return 0;
}
