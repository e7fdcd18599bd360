#include "solve.hpp"

#include <array>

#include "cost_scaling/cost_scaling.hpp"
#include "engines/proven_infeasibility.hpp"
#include "engines/warm_start.hpp"
#include "reference/cycle_cancelling.hpp"
#include "reference/successive_shortest_path.hpp"
#include "relaxation/relaxation.hpp"
#include "shortest_path/incremental_ssp.hpp"
#include "simplex/network_simplex.hpp"

namespace flowsolver {

namespace {

constexpr std::array kAlgorithms{
    Algorithm{"incremental_ssp", "successive shortest paths with persistent prices",
              solve_incremental_ssp, make_incremental_ssp},
    Algorithm{"successive_shortest_path",
              "textbook successive shortest paths, one excess after another",
              solve_successive_shortest_path, nullptr, true},
    Algorithm{"cost_scaling",
              "cost scaling: push-relabel with partial augmentation and price refine",
              solve_cost_scaling, make_cost_scaling_engine},
    Algorithm{"network_simplex", "primal network simplex, from any flow", solve_network_simplex,
              make_simplex_engine},
    Algorithm{"cycle_cancelling",
              "a feasible flow, then negative cycles cancelled (slow on large networks)",
              solve_cycle_cancelling, nullptr, true},
    Algorithm{"relaxation", "dual ascent along balanced arcs, arcs towards demand first",
              solve_relaxation, make_relaxation_engine},
};

}  // namespace

Solution Algorithm::solve(const Network& network, const Start& start,
                          const Control& control) const {
  return solve_proven(method, network, start, control);
}

std::unique_ptr<Engine> Algorithm::make_engine(const EngineStart& start, const Control& control,
                                               Stats& stats) const {
  if (make_own_engine != nullptr) return make_own_engine(start, control, stats);
  return std::make_unique<WarmStartEngine>(method, start, keeps_progress);
}

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm* find_algorithm(std::string_view name) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

}  // namespace flowsolver
