// The registry of algorithms. A new algorithm is a header and a source file that define a Method
// (method.hpp), and one row in solve.cpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "engine.hpp"
#include "method.hpp"

namespace flowsolver {

struct Algorithm {
  std::string_view name;
  std::string_view summary;
  Method method;
  // Makes the engine that keeps the algorithm's state under changes (incremental_solver.hpp). Null:
  // the method starts from the last answer (warm_start.hpp).
  std::unique_ptr<Engine> (*make_own_engine)(const EngineStart& start, const Control& control,
                                             Stats& stats) = nullptr;
  // for a method without an engine: as Engine::keeps_progress
  bool keeps_progress = false;

  // Calls the method; kInfeasible is proven (proven_infeasibility.hpp).
  Solution solve(const Network& network, const Start& start, const Control& control) const;
  std::unique_ptr<Engine> make_engine(const EngineStart& start, const Control& control,
                                      Stats& stats) const;
};

std::span<const Algorithm> algorithms();                 // the first is the default
const Algorithm* find_algorithm(std::string_view name);  // null if there is none of that name

}  // namespace flowsolver
