// Proofs of infeasibility: which cuts are accepted, checked against a count of the test's own;
// cuts while the network changes; searches for a cut that are stopped or given small budgets.
#include <algorithm>
#include <memory>
#include <vector>

#include "ensemble.hpp"

using namespace flowsolver;

namespace {

// By definition, arc after arc and node after node.
bool proves(const Network& network, const std::vector<NodeId>& cut) {
  for (std::size_t k = 0; k < cut.size(); ++k) {
    if (cut[k] >= network.num_nodes()) return false;
    for (std::size_t other = 0; other < k; ++other) {
      if (cut[other] == cut[k]) return false;
    }
  }
  const auto inside = [&](NodeId v) { return std::find(cut.begin(), cut.end(), v) != cut.end(); };
  std::int64_t left = 0;
  for (NodeId v : cut) left += network.supply[v];
  for (ArcId a = 0; a < network.num_arcs(); ++a)
    left -= inside(network.tail[a]) && !inside(network.head[a]) ? network.capacity[a] : 0;
  return left > 0;
}

// A network is infeasible when and only when some set of its nodes is a cut.
bool some_set_proves(const Network& network) {
  for (std::uint32_t set = 0; set < 1u << network.num_nodes(); ++set) {
    std::vector<NodeId> cut;
    for (NodeId v = 0; v < network.num_nodes(); ++v) {
      if ((set >> v & 1) != 0) cut.push_back(v);
    }
    if (proves(network, cut)) return true;
  }
  return false;
}

void infeasible_with_a_cut_or_optimal() {
  int infeasible = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Draws draw(seed * 0x9e3779b97f4a7c15ull);
    const Network network = random_network(draw);
    const bool expected = some_set_proves(network);
    infeasible += expected;
    for (const Algorithm& algorithm : algorithms()) {
      const Solution solution = algorithm.solve(network, {}, Control());
      check_solution(network, solution);
      CHECK((solution.status == Status::kInfeasible) == expected);
      CHECK(solution.cut.empty() != expected);
      CHECK(std::is_sorted(solution.cut.begin(), solution.cut.end()));
    }
  }
  CHECK(infeasible > 100 && infeasible < 350);
}

// What is changed in a cut is seen when it matters, and only then.
void mutated_cuts() {
  int spoilt = 0, still_cuts = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Draws draw(seed * 0x9e3779b97f4a7c15ull);
    const Network network = random_network(draw);
    std::vector<NodeId> cut = algorithms()[0].solve(network, {}, Control()).cut;
    if (cut.empty()) continue;
    CHECK(certify_cut(network, cut).ok() && proves(network, cut));
    switch (draw(5)) {
      case 0:
        cut.erase(cut.begin() + static_cast<std::ptrdiff_t>(draw(cut.size())));
        break;
      case 1:
        cut.push_back(static_cast<NodeId>(draw(network.num_nodes())));
        break;
      case 2:
        cut[draw(cut.size())] = static_cast<NodeId>(draw(network.num_nodes()));
        break;
      case 3:
        cut.push_back(static_cast<NodeId>(network.num_nodes() + draw(3)));
        break;
      default:
        cut.push_back(kNone);
    }
    CHECK(certify_cut(network, cut).ok() == proves(network, cut));
    (certify_cut(network, cut).ok() ? still_cuts : spoilt) += 1;
  }
  CHECK(spoilt > 50 && still_cuts > 5);
  Draws draw(1);
  CHECK(!certify_cut(random_network(draw), {}).ok());
}

// A source at one end of a long path, a sink at the other, and an arc in between that is too narrow
// by one. Costs do not matter.
Network long_path(NodeId length, NodeId narrow) {
  Network network;
  network.supply.assign(length, 0);
  network.supply.front() = 3;
  network.supply.back() = -3;
  for (NodeId v = 0; v + 1 < length; ++v) {
    add_arc(network, v, v + 1, v == narrow ? 2 : 3, 1);
    add_arc(network, v + 1, v, 3, 1);
  }
  return network;
}

// Stopped at any check, also during the search for the cut; the next resolve reaches the end.
void stopped_at_any_check() {
  const Network network = long_path(9'000, 8'500);
  for (const Algorithm& algorithm : algorithms()) {
    Control whole;
    CheckObserver observer;
    observer.attach_to(whole);
    check_solution(network, algorithm.solve(network, {}, whole));
    const std::int64_t checks = observer.checks();
    for (std::int64_t k = 1; k <= checks; k += 1 + k / 2) {
      Control cancelled;
      observer.attach_to(cancelled, CheckObserver::Stop::kCancel, k);
      CHECK(algorithm.solve(network, {}, cancelled).status == Status::kCancelled);
      CHECK(observer.checks() == k);
      Control limited;
      observer.attach_to(limited, CheckObserver::Stop::kBudget, k);
      const Solution reached = algorithm.solve(network, {}, limited);
      CHECK(reached.status == Status::kBudget || reached.status == Status::kInfeasible);
      CHECK(reached.flow.size() == network.num_arcs() &&
            reached.potential.size() == network.num_nodes());
      CHECK(reached.status != Status::kBudget || flow_cost(network, reached.flow) == reached.cost);
      IncrementalSolver solver(network, algorithm);
      observer.attach_to(solver.control(),
                         k % 2 == 0 ? CheckObserver::Stop::kCancel : CheckObserver::Stop::kBudget,
                         k);
      const Status status = solver.resolve();
      CHECK(status == Status::kCancelled || status == Status::kBudget ||
            status == Status::kInfeasible);
      observer.attach_to(solver.control());
      CHECK(solver.resolve() == Status::kInfeasible && solver.certify_cut().ok());
    }
  }
}

// In a large network, a task without a path is found without scanning the others, round by round.
void local_work() {
  constexpr NodeId kMachines = 200, kTasks = 4'000;
  Draws draw(3);
  Network network;
  network.supply.assign(1 + kMachines + kTasks, 0);
  network.supply[0] = -static_cast<std::int64_t>(kTasks);
  for (NodeId m = 1; m <= kMachines; ++m) add_arc(network, m, 0, 30, 0);
  for (NodeId task = kMachines + 1; task < network.num_nodes(); ++task) {
    network.supply[task] = 1;
    for (int p = 0; p < 5; ++p) {
      add_arc(network, task, static_cast<NodeId>(1 + draw(kMachines)), 1,
              static_cast<std::int64_t>(draw(40)));
    }
  }
  for (std::string_view name : {"incremental_ssp", "cost_scaling", "relaxation"}) {
    IncrementalSolver solver(network, *find_algorithm(name));
    CHECK(solver.resolve() == Status::kOptimal);
    for (int round = 0; round < 3; ++round) {
      solver.add_node(1);
      solver.set_supply(0, solver.network().supply[0] - 1);
      CHECK(solver.resolve() == Status::kInfeasible);
      CHECK(solver.certify_cut().ok());
      CHECK(solver.cut().size() <= 3);
      CHECK(solver.stats().operations() < static_cast<std::int64_t>(network.num_arcs()) / 20);
    }
  }
}

}  // namespace

int main() {
  infeasible_with_a_cut_or_optimal();
  mutated_cuts();
  stopped_at_any_check();
  local_work();
  return 0;
}
