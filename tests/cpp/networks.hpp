// Shared by the C++ tests of flowsolver: small networks, and checks that every answer must pass.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "certificate.hpp"
#include "changing_network.hpp"
#include "check.hpp"
#include "incremental_solver.hpp"
#include "race.hpp"
#include "solve.hpp"

namespace flowsolver {

inline void add_arc(Network& network, NodeId tail, NodeId head, std::int64_t capacity,
                    std::int64_t cost) {
  network.tail.push_back(tail);
  network.head.push_back(head);
  network.capacity.push_back(capacity);
  network.cost.push_back(cost);
}

// Algorithms with other settings than the defaults.
inline std::span<const Algorithm> variants() {
  static const std::vector<Algorithm> all = [] {
    const Algorithm &scaling = *find_algorithm("cost_scaling"),
                    &relaxation = *find_algorithm("relaxation");
    return std::vector<Algorithm>{
        configured(scaling, {.alpha = 9, .task_removal = false}),
        configured(scaling, {.alpha = 2, .price_refine = false}),
        configured(relaxation, {.arc_prioritisation = false}),
        configured(relaxation, {.from_scratch = true}),
    };
  }();
  return all;
}

// A small network whose supplies sum to zero, feasible or not.
inline Network random_network(Draws& draw) {
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

// The live part of the solver's network, with the capacities that it was given.
inline Network live_part(const IncrementalSolver& solver) {
  LiveNetwork live =
      live_network(solver.network(), solver.live_nodes(), solver.live_arcs(), Control());
  for (ArcId a = 0; a < live.network.num_arcs(); ++a)
    live.network.capacity[a] = solver.given_capacity(live.arcs[a]);
  return std::move(live.network);
}

// An optimum passes its certificate. There is a cut if and only if the network is infeasible.
inline void check_solution(const Network& network, const Solution& solution) {
  CHECK(solution.stats.disproved == 0);
  CHECK(certify_cut(network, solution.cut).ok() == (solution.status == Status::kInfeasible));
  if (solution.status != Status::kOptimal) return;
  CHECK(certify(network, solution.flow, solution.potential, solution.cost).ok());
}

inline Solution from_scratch(const Network& network, const Algorithm& algorithm = algorithms()[0]) {
  const Algorithm* const racers[] = {&algorithm};
  Solution solution = race(network, racers, {}, Control(), WinnerRule::kFirst).solution;
  check_solution(network, solution);
  return solution;
}

// A resolve must end as `fresh`, a solve from scratch, did, and pass its certificates.
inline void check_resolve(IncrementalSolver& solver, const Solution& fresh) {
  CHECK(solver.resolve() == fresh.status);
  CHECK(solver.stats().disproved == 0);
  CHECK(solver.certify_cut().ok() == (fresh.status == Status::kInfeasible));
  if (fresh.status != Status::kOptimal) return;
  CHECK(solver.cost() == fresh.cost);
  CHECK(solver.certify().ok());
  CHECK(solver.certify_touched().ok());
  CHECK(solver.certify_changes(0).ok());
}

}  // namespace flowsolver
