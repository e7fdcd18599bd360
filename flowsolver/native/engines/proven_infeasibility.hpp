// Methods and engines whose kInfeasible is proven: it comes with a cut (certificate.hpp), whatever
// they found it by.
//
// A method that ends kInfeasible has found no way for some excess. A cut is then looked for in the
// residual graph it ended with (cut_search.hpp), which finds one if there is any. If there is none,
// the method was wrong: that counts as Stats::disproved, and it solves the network anew, from
// nothing; if it is wrong again, cycle cancelling does, which finds a feasible flow first.
//
// All answers go through here: from scratch, of each racer before it counts as an answer
// (racer_threads.hpp), and of engines.
#pragma once

#include <memory>
#include <vector>

#include "engine.hpp"
#include "method.hpp"

namespace flowsolver {

// method(network, start, control), and after kInfeasible the cut.
Solution solve_proven(Method method, const Network& network, const Start& start,
                      const Control& control);

struct ProvenRun {
  Status status = Status::kCancelled;
  std::vector<NodeId> cut;  // after kInfeasible
  bool rebuilt = false;     // the engine is another one now: not what it was told to have touched
};

// Runs `engine`. `cold_start`: what an engine starts from that knows no flow and no prices; `make`
// makes one. Null in the end: cancelled while it was made anew.
ProvenRun run_proven(std::unique_ptr<Engine>& engine, const EngineStart& cold_start,
                     const MakeEngine& make, const Control& control, Stats& stats);

}  // namespace flowsolver
