// A race of several algorithms on one network, from scratch or from a start. The answer of the
// winner counts (racer_threads.hpp).
//
// Racers only read the network. The call ends when the last loser has stopped, which it does at its
// next check of its control; nothing runs on. Stopping includes freeing the loser's graph: 0.2 ms
// at a million arcs, since large arrays lie on huge pages (large_array.hpp).
//
// Reference. Gog et al., Firmament, OSDI 2016, section 6.1. Departures: any algorithms, any number
// of them; losers are stopped; there is a deterministic mode.
#pragma once

#include <span>

#include "racer_threads.hpp"
#include "method.hpp"
#include "solve.hpp"

namespace flowsolver {

struct RaceAnswer {
  // the winner's; without an answer, the leader's (racer_threads.hpp)
  Solution solution;
  const Algorithm* winner = nullptr;         // the racer that the solution is from
  Control::Clock::duration stop_duration{};  // how long the losers took to stop (racer_threads.hpp)
};

// `racers`: one or more. Capacities may be up to int64's maximum. Those beyond the range of the
// algorithms count as unbounded (graph/capacity_level.hpp), and a cycle of negative cost over such
// arcs gives kUnbounded. Throws nothing but std::bad_alloc.
RaceAnswer race(const Network& network, std::span<const Algorithm* const> racers,
                const Start& start, const Control& control, WinnerRule winner_rule);

}  // namespace flowsolver
