// Incremental successive shortest paths in plain C++, for the sanitizers: long random histories on
// small general networks and on scheduling-like ones, every optimum certified and equal to the cost
// from scratch, and the extremes of the ranges.
#include <cstdint>
#include <limits>

#include "changing_network.hpp"
#include "check.hpp"
#include "incremental_solver.hpp"
#include "solve.hpp"

using namespace flowsolver;

namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return low +
           static_cast<std::int64_t>((z ^ (z >> 31)) % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t state_;
};

void add_arc(Network& network, NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost) {
  network.tail.push_back(tail);
  network.head.push_back(head);
  network.capacity.push_back(capacity);
  network.cost.push_back(cost);
}

Network live_part(const IncrementalSolver& solver) {
  return live_network(solver.network(), solver.live_nodes(), solver.live_arcs(), Control()).network;
}

Solution from_scratch(const Network& network) {
  return algorithms()[0].solve(network, {}, Control());
}

void check_against_scratch(IncrementalSolver& solver) {
  const Status status = solver.resolve();
  const Network live = live_part(solver);
  const Solution fresh = from_scratch(live);
  CHECK(status == fresh.status);
  if (status != Status::kOptimal) return;
  CHECK(solver.cost() == fresh.cost);
  CHECK(certify(live, fresh.flow, fresh.potential, fresh.cost).ok());
  CHECK(solver.certify().ok());
  CHECK(solver.certify_touched().ok());
}

template <class Test>
std::int64_t pick(Random& random, std::size_t size, Test live) {
  for (int tries = 0; tries < 50 && size > 0; ++tries) {
    const std::int64_t id = random.between(0, static_cast<std::int64_t>(size) - 1);
    if (live(id)) return id;
  }
  return -1;
}

void change_something(IncrementalSolver& solver, Random& random) {
  const Network& network = solver.network();
  const auto node = [&] {
    return pick(random, network.num_nodes(), [&](std::int64_t v) { return solver.live_node(v); });
  };
  const std::int64_t arc =
      pick(random, network.num_arcs(), [&](std::int64_t a) { return solver.live_arc(a); });
  const std::int64_t u = node(), v = node();
  const std::int64_t scale = random.between(0, 30) == 0 ? std::int64_t{1} << 34 : 1;
  switch (random.between(0, 7)) {
    case 0:
      solver.add_node(0);
      break;
    case 1:
      if (u >= 0 && random.between(0, 2) == 0) {
        const NodeId gone[] = {static_cast<NodeId>(u)};
        solver.remove_nodes(gone);
      }
      break;
    case 2:
      if (arc >= 0) solver.remove_arc(static_cast<ArcId>(arc));
      break;
    case 3:
      if (arc >= 0) solver.set_cost(static_cast<ArcId>(arc), scale * random.between(-5, 9));
      break;
    case 4:
      if (arc >= 0) solver.set_capacity(static_cast<ArcId>(arc), scale * random.between(0, 6));
      break;
    case 5:
      if (u >= 0 && v >= 0 && u != v) {
        solver.set_supply(static_cast<NodeId>(u), network.supply[static_cast<std::size_t>(u)] + 1);
        solver.set_supply(static_cast<NodeId>(v), network.supply[static_cast<std::size_t>(v)] - 1);
      }
      break;
    default:
      if (u >= 0 && v >= 0) {
        solver.add_arc(static_cast<NodeId>(u), static_cast<NodeId>(v), random.between(0, 6),
                       random.between(-5, 9));
      }
  }
}

void balance(IncrementalSolver& solver) {
  std::int64_t sum = 0, least = -1;
  for (NodeId v = 0; v < solver.network().num_nodes(); ++v) {
    sum += solver.network().supply[v];
    if (solver.live_node(v) &&
        (least < 0 ||
         solver.network().supply[v] < solver.network().supply[static_cast<std::size_t>(least)])) {
      least = v;
    }
  }
  if (least >= 0) {
    solver.set_supply(static_cast<NodeId>(least),
                      solver.network().supply[static_cast<std::size_t>(least)] - sum);
  }
}

void random_histories() {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    Network network;
    network.supply.assign(static_cast<std::size_t>(random.between(1, 12)), 0);
    const auto last = static_cast<std::int64_t>(network.num_nodes()) - 1;
    for (std::int64_t arcs = random.between(0, 40); arcs > 0; --arcs) {
      const auto tail = static_cast<NodeId>(random.between(0, last)),
                 head = static_cast<NodeId>(random.between(0, last));
      const std::int64_t capacity = random.between(0, 6), sent = random.between(0, capacity);
      add_arc(network, tail, head, capacity, random.between(-3, 9));
      network.supply[tail] += sent;
      network.supply[head] -= sent;
    }
    IncrementalSolver solver(network, algorithms()[0]);
    for (int round = 0; round < 20; ++round) {
      check_against_scratch(solver);
      for (std::int64_t changes = random.between(1, 8); changes > 0; --changes)
        change_something(solver, random);
      if (random.between(0, 4) > 0) balance(solver);
    }
  }
}

// A round's ageing: arcs that tasks wait over dearer by one, those that they run over cheaper by
// one, or only the former.
void age(IncrementalSolver& solver, NodeId waiting, const std::vector<NodeId>& tasks,
         bool running) {
  std::vector<std::uint8_t> is_task(solver.network().num_nodes(), 0);
  for (NodeId task : tasks) is_task[task] = 1;
  for (ArcId a = 0; a < solver.network().num_arcs(); ++a) {
    if (!solver.live_arc(a) || is_task[solver.network().tail[a]] == 0 || solver.flow()[a] == 0)
      continue;
    const bool waits = solver.network().head[a] == waiting;
    if (waits || running) solver.set_cost(a, solver.network().cost[a] + (waits ? 1 : -1));
  }
}

// Tasks -> machines and an aggregator -> sink, at a load around the number of slots: tasks come, go
// and age, machines fail.
void cell_histories() {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Random random(seed);
    const NodeId sink = 0, cluster = 1, waiting = 2, first_machine = 3;
    const std::int64_t machines = 25, slots = 4;
    Network network;
    network.supply.assign(static_cast<std::size_t>(first_machine + machines), 0);
    for (std::int64_t m = 0; m < machines; ++m) {
      add_arc(network, cluster, static_cast<NodeId>(first_machine + m), slots, 0);
      add_arc(network, static_cast<NodeId>(first_machine + m), sink, slots, 0);
    }
    add_arc(network, waiting, sink, 10'000, 0);
    IncrementalSolver solver(network, algorithms()[0]);
    std::vector<NodeId> tasks;
    const std::int64_t target = machines * slots + 5 * static_cast<std::int64_t>(seed) - 15;
    for (int round = 0; round < 60; ++round) {
      if (round % 2 == 1) age(solver, waiting, tasks, round % 4 == 1);
      std::vector<NodeId> leaving;
      for (std::int64_t k = random.between(0, 8); k > 0 && !tasks.empty(); --k) {
        const auto at = static_cast<std::size_t>(
            random.between(0, static_cast<std::int64_t>(tasks.size()) - 1));
        leaving.push_back(tasks[at]);
        tasks[at] = tasks.back();
        tasks.pop_back();
      }
      solver.remove_nodes(leaving);
      for (std::int64_t k = 0; k < 12 && static_cast<std::int64_t>(tasks.size()) < target; ++k) {
        const NodeId task = solver.add_node(1);
        tasks.push_back(task);
        for (int p = 0; p < 3; ++p) {
          solver.add_arc(task, static_cast<NodeId>(first_machine + random.between(0, machines - 1)),
                         1, random.between(0, 40));
        }
        solver.add_arc(task, cluster, 1, 50);
        solver.add_arc(task, waiting, 1, random.between(60, 300));
      }
      solver.set_supply(sink, -static_cast<std::int64_t>(tasks.size()));
      check_against_scratch(solver);
      if (round % 10 != 5) continue;
      // A machine fails; one without data replaces it.
      const auto failed = static_cast<NodeId>(first_machine + random.between(0, machines - 1));
      const NodeId gone[] = {failed};
      solver.remove_nodes(gone);
      check_against_scratch(solver);
      CHECK(solver.add_node(0) == failed);
      solver.add_arc(cluster, failed, slots, 0);
      solver.add_arc(failed, sink, slots, 0);
      check_against_scratch(solver);
    }
  }
}

void extremes() {
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
  random_histories();
  cell_histories();
  extremes();
  wide_certificate();
  return 0;
}
