// How soon a solve stops, counted instead of timed: every algorithm, from scratch and incremental,
// on networks large enough for hundreds of cancellation checks. Between two checks there is little
// work. A solve that is cancelled, or reaches its budget, at any of its checks ends there; an
// incremental one continues from there to the optimum.
#include <vector>

#include "check.hpp"
#include "incremental_solver.hpp"
#include "networks.hpp"
#include "solve.hpp"
#include "check_observer.hpp"

using namespace flowsolver;

namespace {

// Operations are not the steps between checks: a pivot is one step and 32 operations, and the
// half-edges of a node may be scanned at once.
constexpr std::int64_t kMaxBetweenChecks = 12 * Control::kCheckInterval;

// Tasks that prefer some machines, may go to any over the cluster, or wait.
Network cell(std::int64_t tasks, std::int64_t machines, std::int64_t slots, std::uint64_t seed) {
  Draws draw(seed);
  Network network;
  network.supply.assign(static_cast<std::size_t>(3 + machines + tasks), 0);
  const NodeId sink = 0, cluster = 1, waiting = 2, first_machine = 3;
  for (NodeId m = first_machine; m < first_machine + machines; ++m) {
    add_arc(network, cluster, m, slots, 0);
    add_arc(network, m, sink, slots, 0);
  }
  add_arc(network, waiting, sink, tasks, 0);
  for (auto task = static_cast<NodeId>(first_machine + machines); task < network.num_nodes();
       ++task) {
    network.supply[task] = 1;
    for (int p = 0; p < 6; ++p) {
      const auto machine =
          static_cast<NodeId>(first_machine + draw(static_cast<std::uint64_t>(machines)));
      add_arc(network, task, machine, 1, static_cast<std::int64_t>(draw(40)));
    }
    add_arc(network, task, cluster, 1, 50);
    add_arc(network, task, waiting, 1, static_cast<std::int64_t>(60 + draw(200)));
  }
  network.supply[sink] = -tasks;
  return network;
}

// Several sources and sinks of many units; some costs are negative. Of so many arcs one is full.
Network general(NodeId nodes, std::int64_t arcs, std::uint64_t seed, std::int64_t full = 16) {
  Draws draw(seed);
  Network network;
  network.supply.assign(nodes, 0);
  for (std::int64_t a = 0; a < arcs; ++a) {
    const auto tail = static_cast<NodeId>(draw(nodes)), head = static_cast<NodeId>(draw(nodes));
    const auto capacity = static_cast<std::int64_t>(draw(20));
    add_arc(network, tail, head, capacity,
            static_cast<std::int64_t>(draw(100)) - (a % 50 == 0 ? 20 : 0));
    const std::int64_t sent = a % full == 0 ? capacity : 0;
    network.supply[tail] += sent;
    network.supply[head] -= sent;
  }
  return network;
}

// Costs of both signs, so that the optimum fills many cycles, and a hub with wide arcs from and to
// every node.
Network mixed_signs(NodeId nodes, std::int64_t arcs, std::uint64_t seed) {
  Draws draw(seed);
  Network network;
  network.supply.assign(nodes + 1, 0);
  for (std::int64_t a = 0; a < arcs; ++a) {
    add_arc(network, static_cast<NodeId>(draw(nodes)), static_cast<NodeId>(draw(nodes)),
            static_cast<std::int64_t>(draw(21)), static_cast<std::int64_t>(draw(2001)) - 1000);
  }
  for (NodeId v = 0; v < nodes; ++v) {
    add_arc(network, v, nodes, 1'000'000, 200);
    add_arc(network, nodes, v, 1'000'000, 200);
  }
  return network;
}

// Wide arcs in both directions between neighbours, supplies everywhere: excess travels far.
Network long_path(NodeId nodes, std::uint64_t seed) {
  Draws draw(seed);
  Network network;
  network.supply.assign(nodes, 0);
  for (NodeId v = 0; v + 1 < nodes; ++v) {
    const std::int64_t supply = static_cast<std::int64_t>(draw(11)) - 5;
    network.supply[v] += supply;
    network.supply[nodes - 1] -= supply;
    add_arc(network, v, v + 1, 1'000'000, static_cast<std::int64_t>(draw(100)));
    add_arc(network, v + 1, v, 1'000'000, static_cast<std::int64_t>(draw(100)));
  }
  return network;
}

std::vector<Network> families() {
  // the second is oversubscribed
  return {cell(1000, 100, 11, 1), cell(1000, 75, 12, 2), general(250, 6'000, 3),
          mixed_signs(160, 2'000, 4), long_path(600, 5)};
}

// All of the first checks, then fewer and fewer.
template <class Visit>
void some_checks(std::int64_t checks, Visit visit) {
  for (std::int64_t k = 1; k <= checks; k += 1 + k / 2) visit(k);
}

void from_scratch_stops_at_any_check(const Network& network, const Algorithm& algorithm) {
  Control whole;
  CheckObserver observer;
  observer.attach_to(whole);
  CHECK(algorithm.solve(network, {}, whole).status == Status::kOptimal);
  const std::int64_t checks = observer.checks();
  CHECK(observer.max_between() <= kMaxBetweenChecks);
  some_checks(checks, [&](std::int64_t k) {
    Control cancelled;
    observer.attach_to(cancelled, CheckObserver::Stop::kCancel, k);
    CHECK(algorithm.solve(network, {}, cancelled).status == Status::kCancelled);
    CHECK(observer.checks() == k);
    Control limited;
    observer.attach_to(limited, CheckObserver::Stop::kBudget, k);
    const Solution reached = algorithm.solve(network, {}, limited);
    CHECK(reached.status == Status::kBudget || reached.status == Status::kOptimal);
    CHECK(reached.flow.size() == network.num_arcs() &&
          reached.potential.size() == network.num_nodes());
    for (ArcId a = 0; a < network.num_arcs(); ++a)
      CHECK(reached.flow[a] >= 0 && reached.flow[a] <= network.capacity[a]);
    CHECK(flow_cost(network, reached.flow) == reached.cost);
  });
}

// A round's changes: costs, capacities, supplies.
void change(IncrementalSolver& solver, Draws& draw) {
  const Network& network = solver.network();
  for (int k = 0; k < 60; ++k) {
    const auto arc = static_cast<ArcId>(draw(network.num_arcs()));
    solver.set_cost(arc, network.cost[arc] + static_cast<std::int64_t>(draw(9)) - 4);
  }
  for (int k = 0; k < 4; ++k) {
    const auto arc = static_cast<ArcId>(draw(network.num_arcs()));
    solver.set_capacity(arc, network.capacity[arc] + 1);
    solver.set_capacity(static_cast<ArcId>(draw(200)), static_cast<std::int64_t>(9 + draw(4)));
  }
}

void incremental_continues_from_any_check(const Network& network, const Algorithm& algorithm) {
  CheckObserver observer;
  std::int64_t first_checks = 0;
  {
    IncrementalSolver solver(network, algorithm);
    observer.attach_to(solver.control());
    CHECK(solver.resolve() == Status::kOptimal);
    CHECK(observer.max_between() <= kMaxBetweenChecks);
    first_checks = observer.checks();
  }
  // While the engine is made, and after it has been: several stops in one solver, the later ones in
  // a round of changes.
  Draws draw(7);
  some_checks(first_checks, [&](std::int64_t k) {
    IncrementalSolver solver(network, algorithm);
    for (int round = 0; round < 2; ++round) {
      const Solution fresh = from_scratch(solver.network());
      observer.attach_to(solver.control(),
                         k % 2 == 0 ? CheckObserver::Stop::kCancel : CheckObserver::Stop::kBudget,
                         k);
      const Status stopped = solver.resolve();
      CHECK(stopped == Status::kCancelled || stopped == Status::kBudget || stopped == fresh.status);
      CHECK(stopped != Status::kCancelled || observer.checks() == k);
      observer.attach_to(solver.control());
      check_resolve(solver, fresh);
      change(solver, draw);
    }
  });
}

// Machines fail right after a first resolve that was cancelled, at any check.
void nodes_go_after_a_stop(const Algorithm& algorithm) {
  const Network network = cell(400, 40, 11, 3);
  Status status = Status::kCancelled;
  for (std::int64_t k = 1; status == Status::kCancelled; k += 1 + k / 8) {
    IncrementalSolver solver(network, algorithm);
    CheckObserver observer;
    observer.attach_to(solver.control(), CheckObserver::Stop::kCancel, k);
    status = solver.resolve();
    const NodeId gone[] = {5, 6};
    solver.remove_nodes(gone);
    observer.attach_to(solver.control());
    check_resolve(solver, from_scratch(live_part(solver)));
  }
}

// A first solve that was stopped continues up to the limit of the fallback; it is cancelled at the
// very check at which that limit is reached.
void cancelled_at_the_fallback(const Algorithm& algorithm) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Network network = general(8, seed % 2 == 0 ? 16 : 24, seed, 1);
    Status status = Status::kCancelled;
    for (std::int64_t k = 1; status == Status::kCancelled; ++k) {
      IncrementalSolver solver(network, algorithm);
      CheckObserver observer;
      observer.attach_to(solver.control(), CheckObserver::Stop::kBudget, 1);
      solver.resolve();
      observer.attach_to(solver.control(), CheckObserver::Stop::kCancel, k);
      status = solver.resolve();
      CHECK(status == Status::kOptimal || status == Status::kCancelled);
    }
  }
}

}  // namespace

int main() {
  for (const Algorithm& algorithm : algorithms()) {
    cancelled_at_the_fallback(algorithm);
    nodes_go_after_a_stop(algorithm);
  }
  for (const Network& network : families()) {
    for (const Algorithm& algorithm : algorithms()) {
      from_scratch_stops_at_any_check(network, algorithm);
      incremental_continues_from_any_check(network, algorithm);
    }
  }
  return 0;
}
