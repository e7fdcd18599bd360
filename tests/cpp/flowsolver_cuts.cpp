// INFEASIBLE and its proof: which cuts are proofs, by a count of their own; methods and engines
// that say INFEASIBLE of what is not, and are found out; searches for a cut that are stopped.
#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "engines/proven_infeasibility.hpp"
#include "ensemble.hpp"
#include "race.hpp"
#include "shortest_path/incremental_ssp.hpp"

using namespace flowsolver;

namespace {

// Feasible or not, balanced.
Network random_network(Draws& draw) {
  Network network;
  const NodeId nodes = static_cast<NodeId>(2 + draw(9));
  network.supply.assign(nodes, 0);
  for (std::uint64_t k = draw(6); k > 0; --k) {
    const std::int64_t amount = static_cast<std::int64_t>(draw(5));
    network.supply[draw(nodes)] += amount;
    network.supply[draw(nodes)] -= amount;
  }
  for (std::uint64_t arcs = draw(25); arcs > 0; --arcs) {
    add_arc(network, static_cast<NodeId>(draw(nodes)), static_cast<NodeId>(draw(nodes)),
            static_cast<std::int64_t>(draw(6)), static_cast<std::int64_t>(draw(12)) - 3);
  }
  return network;
}

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

// Sums beyond 64 bits are exact.
void wide_cuts() {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  Network network;
  network.supply = {most, most, most, -most, -most, -most};
  for (NodeId v = 0; v < 3; ++v) add_arc(network, v, v + 3, most, 0);
  const std::vector<NodeId> cut{0, 1, 2};
  CHECK(!certify_cut(network, cut).ok());
  CHECK(certify_cut(network, cut).supply == 3 * static_cast<__int128>(most));
  CHECK(certify_cut(network, cut).capacity == 3 * static_cast<__int128>(most));
  --network.capacity[1];
  CHECK(certify_cut(network, cut).ok());
}

// A cut names live nodes only, and is that of the last resolve.
void cuts_between_changes() {
  Network network;
  network.supply = {2, 0, 0, -2};
  add_arc(network, 0, 1, 5, 1);
  add_arc(network, 1, 3, 1, 1);
  add_arc(network, 0, 2, 5, 1);
  for (const Algorithm& algorithm : algorithms()) {
    IncrementalSolver solver(network, algorithm);
    CHECK(solver.resolve() == Status::kInfeasible);
    CHECK(solver.certify_cut().ok());
    const NodeId gone[] = {2};
    solver.remove_nodes(gone);
    CHECK(solver.resolve() == Status::kInfeasible);
    CHECK(solver.certify_cut().ok() && solver.certify_cut().nodes == 2);
    const NodeId also_gone[] = {1};
    solver.remove_nodes(also_gone);
    CHECK(!solver.certify_cut().ok());  // it names one that is gone
    CHECK(solver.resolve() == Status::kInfeasible);
    CHECK(solver.cut().size() == 1 && solver.cut()[0] == 0);
    solver.add_arc(0, 3, 1, 9);
    CHECK(solver.certify_cut().ok());  // still too little
    solver.add_arc(0, 3, 1, 9);
    CHECK(!solver.certify_cut().ok());
    CHECK(solver.resolve() == Status::kOptimal);
    CHECK(solver.cut().empty());
  }
}

// Liars: methods and engines that end INFEASIBLE, with or without having done anything, so many
// times.
int lies_left = 0;

Solution lying_method(const Network& network, const Start& start, const Control& control) {
  if (lies_left <= 0) return solve_incremental_ssp(network, start, control);
  --lies_left;
  Solution solution;
  solution.status = Status::kInfeasible;
  solution.flow.assign(network.num_arcs(), 0);
  solution.potential.assign(network.num_nodes(), 0);
  return solution;
}

class LyingEngine final : public Engine {
 public:
  explicit LyingEngine(std::unique_ptr<Engine> honest) : honest_(std::move(honest)) {}

  void add_node(NodeId v, std::int64_t supply) override { honest_->add_node(v, supply); }
  void remove_node(NodeId v) override { honest_->remove_node(v); }
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    honest_->add_arc(arc, tail, head, capacity, cost);
  }
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override {
    honest_->remove_arc(arc, tail, head);
  }
  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override {
    honest_->set_capacity(arc, tail, head, capacity);
  }
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    honest_->set_cost(arc, tail, cost);
  }
  void change_supply(NodeId v, std::int64_t delta) override { honest_->change_supply(v, delta); }
  Status run(const Control& control, Stats& stats) override {
    const Status status = honest_->run(control, stats);
    return lies_left-- > 0 ? Status::kInfeasible : status;
  }
  // any nodes will do
  std::vector<NodeId> unsent_nodes() const override { return {0}; }
  std::int64_t flow(ArcId arc, NodeId tail) const override { return honest_->flow(arc, tail); }
  std::int64_t price(NodeId v) const override { return honest_->price(v); }
  __int128 cost() const override { return honest_->cost(); }
  void adopt(const Engine& winner) override { honest_->adopt(winner); }
  std::uint64_t value_limit() const override { return honest_->value_limit(); }
  bool prices_drifted() const override { return honest_->prices_drifted(); }
  bool local() const override { return honest_->local(); }
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override {
    honest_->incident_arcs(nodes, arcs);
  }
  const std::vector<FlowBefore>& touched_arcs() const override { return honest_->touched_arcs(); }
  const std::vector<NodeId>& repriced_nodes() const override { return honest_->repriced_nodes(); }
  void begin_round() override { honest_->begin_round(); }
  void priced_by(NodeId v, std::vector<NodeId>& nodes) const override {
    honest_->priced_by(v, nodes);
  }

 private:
  std::unique_ptr<Engine> honest_;
};

std::unique_ptr<Engine> make_lying_engine(const EngineStart& start, const Control& control,
                                          Stats& stats) {
  auto honest = make_incremental_ssp(start, control, stats);
  return honest == nullptr ? nullptr : std::make_unique<LyingEngine>(std::move(honest));
}

void lying_methods_are_found_out() {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Draws draw(seed * 0x9e3779b97f4a7c15ull);
    const Network network = random_network(draw);
    if (network.num_arcs() == 0) continue;  // every start is from nothing
    const Solution honest = from_scratch(network);
    // from nothing the same lie would be told again, so the reference solves it at once
    for (int lies = 1; lies <= 3; ++lies) {
      lies_left = lies;
      Solution solution = solve_proven(lying_method, network, {}, Control());
      CHECK(solution.status == honest.status && solution.cost == honest.cost);
      CHECK(solution.stats.disproved == (honest.status == Status::kInfeasible ? 0 : 1));
      solution.stats.disproved = 0;
      check_solution(network, solution);
      const std::vector<std::int64_t> flow(network.num_arcs(), 0);
      lies_left = lies;
      solution = solve_proven(lying_method, network, {flow, {}}, Control());
      CHECK(solution.status == honest.status && solution.cost == honest.cost);
      CHECK(solution.stats.disproved ==
            (honest.status == Status::kInfeasible ? 0 : std::min(lies, 2)));
      solution.stats.disproved = 0;
      check_solution(network, solution);
    }
  }
}

// In a history; what flow is said to have changed adds up.
void lying_engines_are_found_out() {
  std::int64_t disproved = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Draws draw(seed * 0x9e3779b97f4a7c15ull);
    const Network network = random_network(draw);
    IncrementalSolver solver(network, make_lying_engine,
                             [](const Network& live, const Control& control) {
                               return solve_proven(lying_method, live, {}, control);
                             });
    std::vector<std::int64_t> known(network.num_arcs(), 0);
    for (int round = 0; round < 12; ++round) {
      lies_left = static_cast<int>(draw(3));
      const Status status = solver.resolve();
      disproved += solver.stats().disproved;
      const Solution fresh = from_scratch(live_part(solver));
      CHECK(status == fresh.status);
      CHECK(solver.certify_cut().ok() == (status == Status::kInfeasible));
      if (status == Status::kOptimal) {
        CHECK(solver.cost() == fresh.cost && solver.certify().ok());
        CHECK(solver.certify_touched().ok());
        known.resize(solver.network().num_arcs(), 0);
        const ChangedFlow& changed = solver.changed_flow();
        for (std::size_t k = 0; k < changed.arcs.size(); ++k)
          known[changed.arcs[k]] = changed.flow[k];
        CHECK(std::equal(known.begin(), known.end(), solver.flow().begin()));
      }
      lies_left = 0;
      const auto arc = static_cast<ArcId>(draw(network.num_arcs() + 1));
      if (arc < network.num_arcs()) {
        solver.set_capacity(arc, static_cast<std::int64_t>(draw(7)));
        solver.set_cost(arc, static_cast<std::int64_t>(draw(9)) - 2);
      }
      const auto u = static_cast<NodeId>(draw(network.num_nodes())),
                 v = static_cast<NodeId>(draw(network.num_nodes()));
      solver.set_supply(u, solver.network().supply[u] + 1);
      solver.set_supply(v, solver.network().supply[v] - 1);
    }
  }
  CHECK(disproved > 100);
}

// A liar in a race does not win by it.
void lying_racers_are_found_out() {
  const Algorithm liar{"liar", "", lying_method, make_lying_engine};
  for (Winning winning : {Winning::kFirst, Winning::kFewestOperations}) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      Draws draw(seed * 0x9e3779b97f4a7c15ull);
      const Network network = random_network(draw);
      const Solution honest = from_scratch(network);
      const std::vector<const Algorithm*> racers{&liar, &algorithms()[2]};
      lies_left = 1;
      const Solution solution = race(network, racers, {}, Control(), winning).solution;
      CHECK(solution.status == honest.status && solution.cost == honest.cost);
      CHECK(certify_cut(network, solution.cut).ok() == (honest.status == Status::kInfeasible));
      RaceReport report;
      IncrementalSolver solver(
          network,
          [&](const EngineStart& start, const Control&, Stats&) {
            return std::make_unique<RaceEngine>(racers, winning, start, report);
          },
          [&](const Network& live, const Control& control) {
            return race(live, racers, {}, control, winning).solution;
          });
      for (int round = 0; round < 3; ++round) {
        lies_left = 1;
        CHECK(solver.resolve() == honest.status);
        CHECK(solver.certify_cut().ok() == (honest.status == Status::kInfeasible));
        if (honest.status == Status::kOptimal)
          CHECK(solver.cost() == honest.cost && solver.certify().ok());
        solver.set_supply(0, solver.network().supply[0] + 1);
        CHECK(solver.resolve() == Status::kUnbalanced);
        solver.set_supply(0, solver.network().supply[0] - 1);
      }
    }
  }
}

// A source at the one end of a long path, a sink at the other, and a way between that is too narrow
// by one; costs of no interest.
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

// At any look, also such of the search for the cut; the next resolve ends.
void stopped_at_any_look() {
  const Network network = long_path(9'000, 8'500);
  for (const Algorithm& algorithm : algorithms()) {
    Control whole;
    Watch watch;
    watch.over(whole);
    check_solution(network, algorithm.solve(network, {}, whole));
    const std::int64_t looks = watch.looks();
    for (std::int64_t k = 1; k <= looks; k += 1 + k / 2) {
      Control cancelled;
      watch.over(cancelled, Watch::Stop::kCancel, k);
      CHECK(algorithm.solve(network, {}, cancelled).status == Status::kCancelled);
      CHECK(watch.looks() == k);
      Control limited;
      watch.over(limited, Watch::Stop::kBudget, k);
      const Solution reached = algorithm.solve(network, {}, limited);
      CHECK(reached.status == Status::kBudget || reached.status == Status::kInfeasible);
      CHECK(reached.flow.size() == network.num_arcs() &&
            reached.potential.size() == network.num_nodes());
      CHECK(reached.status != Status::kBudget || flow_cost(network, reached.flow) == reached.cost);
      IncrementalSolver solver(network, algorithm);
      watch.over(solver.control(), k % 2 == 0 ? Watch::Stop::kCancel : Watch::Stop::kBudget, k);
      const Status status = solver.resolve();
      CHECK(status == Status::kCancelled || status == Status::kBudget ||
            status == Status::kInfeasible);
      watch.over(solver.control());
      CHECK(solver.resolve() == Status::kInfeasible && solver.certify_cut().ok());
    }
  }
}

// The smallest budget, again and again.
void ends_however_small_the_budget() {
  const Network network = long_path(3'000, 2'500);
  for (const Algorithm& algorithm : algorithms()) {
    IncrementalSolver solver(network, algorithm);
    solver.control().limit_operations(0);
    Status status = Status::kBudget;
    for (int resolves = 0; status == Status::kBudget; ++resolves) {
      CHECK(resolves < 1'000);
      status = solver.resolve();
    }
    CHECK(status == Status::kInfeasible && solver.certify_cut().ok());
  }
}

// In a large network, a task that has nowhere to go is found without a look at the others, round by
// round.
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
  wide_cuts();
  cuts_between_changes();
  lying_methods_are_found_out();
  lying_engines_are_found_out();
  lying_racers_are_found_out();
  stopped_at_any_look();
  ends_however_small_the_budget();
  local_work();
  return 0;
}
