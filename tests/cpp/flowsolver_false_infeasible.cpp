// Methods, engines and racers that end INFEASIBLE for a feasible network: the missing cut reveals
// the error, and the network is solved again (solve.hpp).
#include <algorithm>
#include <memory>
#include <vector>

#include "solve.hpp"
#include "race.hpp"
#include "networks.hpp"
#include "shortest_path/incremental_ssp.hpp"

using namespace flowsolver;

namespace {

// How many more times the methods and engines below end INFEASIBLE whatever the network is.
int false_infeasibles_left = 0;

Solution faulty_method(const Network& network, const Start& start, const Control& control) {
  if (false_infeasibles_left <= 0) return solve_incremental_ssp(network, start, control);
  --false_infeasibles_left;
  Solution solution;
  solution.status = Status::kInfeasible;
  solution.flow.assign(network.num_arcs(), 0);
  solution.potential.assign(network.num_nodes(), 0);
  return solution;
}

class FaultyEngine final : public ForwardingEngine {
 public:
  explicit FaultyEngine(std::unique_ptr<Engine> correct) : ForwardingEngine(std::move(correct)) {}

  Status run(const Control& control, Stats& stats) override {
    const Status status = ForwardingEngine::run(control, stats);
    return false_infeasibles_left-- > 0 ? Status::kInfeasible : status;
  }
  // No cut is known: one is searched for, from any node.
  std::span<const NodeId> cut() const override { return {}; }
  std::vector<NodeId> unrouted_nodes() const override { return {0}; }
};

std::unique_ptr<Engine> make_faulty_engine(const EngineStart& start, const Control& control,
                                           Stats& stats) {
  auto correct = make_incremental_ssp(start, control, stats);
  return correct == nullptr ? nullptr : std::make_unique<FaultyEngine>(std::move(correct));
}

void faulty_methods_are_detected() {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Draws draw(seed * 0x9e3779b97f4a7c15ull);
    const Network network = random_network(draw);
    if (network.num_arcs() == 0) continue;  // every start is from scratch
    const Solution correct = from_scratch(network);
    // From scratch the method would repeat its error, so the reference solves the network at once.
    for (int false_infeasibles = 1; false_infeasibles <= 3; ++false_infeasibles) {
      false_infeasibles_left = false_infeasibles;
      Solution solution = solve_proven(faulty_method, network, {}, Control());
      CHECK(solution.status == correct.status && solution.cost == correct.cost);
      CHECK(solution.stats.disproved == (correct.status == Status::kInfeasible ? 0 : 1));
      solution.stats.disproved = 0;
      check_solution(network, solution);
      const std::vector<std::int64_t> flow(network.num_arcs(), 0);
      false_infeasibles_left = false_infeasibles;
      solution = solve_proven(faulty_method, network, {flow, {}}, Control());
      CHECK(solution.status == correct.status && solution.cost == correct.cost);
      CHECK(solution.stats.disproved ==
            (correct.status == Status::kInfeasible ? 0 : std::min(false_infeasibles, 2)));
      solution.stats.disproved = 0;
      check_solution(network, solution);
    }
  }
}

// Over a history of changes. The flow changes that are reported add up to the flow.
void faulty_engines_are_detected() {
  std::int64_t disproved = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Draws draw(seed * 0x9e3779b97f4a7c15ull);
    const Network network = random_network(draw);
    IncrementalSolver solver(network, make_faulty_engine,
                             [](const Network& live, const Control& control) {
                               return solve_proven(faulty_method, live, {}, control);
                             });
    std::vector<std::int64_t> known(network.num_arcs(), 0);
    for (int round = 0; round < 12; ++round) {
      false_infeasibles_left = static_cast<int>(draw(3));
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
      false_infeasibles_left = 0;
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

// A faulty algorithm does not win a race by a false answer.
void faulty_racers_are_detected() {
  const Algorithm faulty{"faulty", "", faulty_method, make_faulty_engine};
  for (WinnerRule winner_rule : {WinnerRule::kFirst, WinnerRule::kFewestOperations}) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      Draws draw(seed * 0x9e3779b97f4a7c15ull);
      const Network network = random_network(draw);
      const Solution correct = from_scratch(network);
      const std::vector<const Algorithm*> racers{&faulty, &algorithms()[2]};
      false_infeasibles_left = 1;
      const Solution solution = race(network, racers, {}, Control(), winner_rule).solution;
      CHECK(solution.status == correct.status && solution.cost == correct.cost);
      CHECK(certify_cut(network, solution.cut).ok() == (correct.status == Status::kInfeasible));
      RaceReport report;
      IncrementalSolver solver(
          network,
          [&](const EngineStart& start, const Control&, Stats&) {
            return make_race_engine(racers, winner_rule, start, report);
          },
          [&](const Network& live, const Control& control) {
            return race(live, racers, {}, control, winner_rule).solution;
          });
      for (int round = 0; round < 3; ++round) {
        false_infeasibles_left = 1;
        CHECK(solver.resolve() == correct.status);
        CHECK(solver.certify_cut().ok() == (correct.status == Status::kInfeasible));
        if (correct.status == Status::kOptimal)
          CHECK(solver.cost() == correct.cost && solver.certify().ok());
        solver.set_supply(0, solver.network().supply[0] + 1);
        CHECK(solver.resolve() == Status::kUnbalanced);
        solver.set_supply(0, solver.network().supply[0] - 1);
      }
    }
  }
}

}  // namespace

int main() {
  faulty_methods_are_detected();
  faulty_engines_are_detected();
  faulty_racers_are_detected();
  return 0;
}
