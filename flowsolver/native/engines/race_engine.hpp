// A race of several algorithms on a changing network. The answer of a round is that of its winner
// (race.hpp), and all racers start the next round from it.
//
// State. The last answer is stored once for all racers (warm_start.hpp). Racers without an engine
// of their own only read it, so passing the winner's answer on costs nothing, and a loser need not
// restore anything. Racers with an engine make it in their own thread in the first round, and get
// every change. A racer that loses before its engine is made would lose every round in that way, so
// the next round waits until the engine was made from the stored answer.
//
// After a round. If the winner is local (it knows what it touched) and also won the round before,
// what it touched is copied into the stored answer: work proportional to the round's. If another
// racer won the round before, everything is copied: O(n + m). A loser with an engine keeps its
// state, continues from where it was stopped, and may use the winner's answer (Engine::adopt). In a
// deterministic race, where it was stopped depends on timing: so its state is dropped, in its own
// thread of the next round, and it starts again from the winner's answer. At a budget
// (Status::kBudget) the leader's state is stored like an answer.
//
// Reference. Gog et al., Firmament, OSDI 2016, sections 6.1 and 6.2. Departures: in the paper,
// relaxation runs from scratch in every round and only cost scaling is incremental, starting from
// relaxation's state after price refine. Here every racer may be incremental, and price refine is
// part of the method that needs it.
#pragma once

#include <memory>
#include <vector>

#include "race.hpp"
#include "solve.hpp"

namespace flowsolver {

// What a race reports beside its answer.
struct RaceReport {
  const Algorithm* winner = nullptr;  // the winner of the last round that ended with an answer
  // how long the losers of the last round took to stop (race.hpp)
  Control::Clock::duration stop_duration{};
};

// `racers`: two or more. `report` is kept up to date.
std::unique_ptr<Engine> make_race_engine(const std::vector<const Algorithm*>& racers,
                                         WinnerRule winner_rule, const EngineStart& start,
                                         RaceReport& report);

}  // namespace flowsolver
