// The library as other C++ code uses it: a small network solved by every algorithm and by a race,
// changed and solved again, stopped at a budget, written and read back.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <flowsolver/flowsolver.hpp>

using namespace flowsolver;

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(1);
}

// Four tasks, two machines of one and two slots, and a place to wait.
Network small_cell() {
  Network network;
  network.supply = {-4, 0, 0, 0, 1, 1, 1, 1};  // the sink, machines 1 and 2, waiting, tasks
  const auto arc = [&](NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost) {
    network.tail.push_back(tail);
    network.head.push_back(head);
    network.capacity.push_back(capacity);
    network.cost.push_back(cost);
  };
  for (NodeId task = 4; task < 8; ++task) {
    arc(task, 1, 1, 2);
    arc(task, 2, 1, task);
    arc(task, 3, 1, 20);
  }
  arc(1, 0, 1, 0);
  arc(2, 0, 2, 0);
  arc(3, 0, 4, 0);
  return network;
}

}  // namespace

int main() {
  const Network network = small_cell();
  // the two cheapest on machine 2, one on machine 1, one waits
  const std::int64_t best = 2 + 4 + 5 + 20;
  std::vector<const Algorithm*> all;
  for (const Algorithm& algorithm : algorithms()) {
    const Solution answer = algorithm.solve(network, {}, Control());
    require(answer.status == Status::kOptimal && answer.cost == best,
            "every algorithm finds the optimum");
    require(certify(network, answer.flow, answer.potential, answer.cost).ok(),
            "every answer is certified");
    all.push_back(&algorithm);
  }
  const RaceAnswer raced = race(network, all, {}, Control(), WinnerRule::kFewestOperations);
  require(raced.winner != nullptr && raced.solution.cost == best, "a race finds the optimum");

  Control hurried;
  hurried.cancel();
  require(all.front()->solve(network, {}, hurried).status == Status::kCancelled,
          "a cancelled solve says so");

  IncrementalSolver solver(network, *all.front());
  require(solver.resolve() == Status::kOptimal && solver.cost() == best,
          "the first resolve solves");
  const NodeId leaving = 4;
  solver.remove_nodes({&leaving, 1});
  solver.set_supply(0, -3);
  require(solver.resolve() == Status::kOptimal && solver.cost() == 2 + 5 + 6,
          "a slot is free for the one that waited");
  require(solver.certify().ok(), "the changed answer is certified");

  const DimacsProblem read = parse_dimacs(write_dimacs(network));
  require(read.network.cost == network.cost && read.network.supply == network.supply,
          "what is written reads back");
  return 0;
}
