// The registry of algorithms. A new one is a header and a source that define a Method (method.hpp),
// and one row in solve.cpp.
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
  // What keeps its state under changes (incremental_solver.hpp). Null: the method's own start is
  // the last answer (warm_start_engine.hpp).
  std::unique_ptr<Engine> (*make_own_engine)(const EngineStart& start, const Control& control,
                                             Stats& stats) = nullptr;
  bool makes_lasting_progress = false;  // without one: as Engine::makes_lasting_progress

  // As the method, and kInfeasible is proven (proven_infeasibility.hpp).
  Solution solve(const Network& network, const Start& start, const Control& control) const;
  std::unique_ptr<Engine> make_engine(const EngineStart& start, const Control& control,
                                      Stats& stats) const;
};

std::span<const Algorithm> algorithms();                 // the first is the default
const Algorithm* find_algorithm(std::string_view name);  // null if there is none of that name

}  // namespace flowsolver
