// Methods and engines whose kInfeasible is proven: it comes with a cut (certificate.hpp), whatever
// algorithm found it.
//
// A method that ends with kInfeasible has found no path for some excess. Then a cut is searched for
// in the residual graph of its pseudoflow; the search finds one if there is any. If there is none,
// the method was wrong. This is counted in Stats::disproved, and the method solves the network
// again from scratch. If it is wrong again, cycle cancelling solves it, which finds a feasible flow
// first.
//
// All answers pass through here: those from scratch, those of racers before they count as answers
// (race.hpp), and those of engines.
#pragma once

#include <memory>
#include <vector>

#include "engine.hpp"
#include "method.hpp"

namespace flowsolver {

// Calls method(network, start, control); after kInfeasible the solution has the cut.
Solution solve_proven(Method method, const Network& network, const Start& start,
                      const Control& control);

struct ProvenRun {
  Status status = Status::kCancelled;
  std::vector<NodeId> cut;  // after kInfeasible
  // the engine was replaced: what it has touched since begin_round is unknown
  bool rebuilt = false;
};

// Runs `engine`. `cold_start`: the start of an engine without flow and prices; `make` makes one.
// `engine` is null in the end if it was cancelled while being made again.
ProvenRun run_proven(std::unique_ptr<Engine>& engine, const EngineStart& cold_start,
                     const MakeEngine& make, const Control& control, Stats& stats);

}  // namespace flowsolver
