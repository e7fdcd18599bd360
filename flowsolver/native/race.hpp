// A race of several algorithms on one network, from scratch or from a start, or on a changing
// network, round by round. The answer of the winner counts.
//
// Racers only read the network. The call ends when the last loser has stopped, which it does at its
// next check of its control; nothing runs on. Stopping includes freeing the loser's graph: 0.2 ms
// at a million arcs, since large arrays lie on huge pages (large_array.hpp).
//
// Reference. Gog et al., Firmament, OSDI 2016, section 6.1. Departures: any algorithms, any number
// of them; losers are stopped; there is a deterministic mode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "control.hpp"
#include "network.hpp"
#include "solve.hpp"

namespace flowsolver {

// Which answer wins (run_racers).
enum class WinnerRule : std::uint8_t { kFirst, kFewestOperations };

inline bool is_answer(Status status) {
  return status == Status::kOptimal || status == Status::kInfeasible;
}

struct Outcome {
  std::size_t leader = 0;  // the winner when `status` is an answer
  Status status = Status::kCancelled;
  Stats stats;  // the leader's
  Control::Clock::duration
      stop_duration{};  // from the end of the leader to the end of the last racer
  // Per racer, what it had counted when it ended or was stopped (Stats::operations). Of the losers
  // of a deterministic race no more than the winner's: what is beyond depends on timing.
  std::vector<std::int64_t> operations;
};

// Runs racer i until it has an answer or its control stops it. Racers run concurrently.
using Racer = std::function<Status(std::size_t i, const Control& control, Stats& stats)>;

// Runs several racers on threads: which racer's answer counts, and how the others are stopped.
//
// Answer. A racer answers when it ends with kOptimal or kInfeasible. Both are proven, so all racers
// would give the same status and cost.
//
// WinnerRule::kFirst. The first answer wins. The other racers are cancelled through their Control.
//
// WinnerRule::kFewestOperations (deterministic). The answer that took the fewest counted operations
// (Stats::operations) wins; of equal ones, that of the racer named first. All racers run at once.
// When racer j has answered after o operations, every other racer i learns that its answer is
// useless beyond o operations (i < j) or beyond o - 1 (i > j), and is cancelled when it counts more
// (Control::cancel_after_operations). Why timing cannot change the winner: let w be the racer that
// wins when each runs to its end undisturbed, so that (o_w, w) is the least pair. Every limit that
// w is given comes from a racer j with (o_j, j) > (o_w, w), so it is at least o_w. The count of w
// never decreases and ends at o_w. So w is never cancelled, whenever the limits arrive, and it
// answers. Which other racers answer before their limit reaches them depends on timing, but none of
// them has a smaller pair than (o_w, w). A racer's count does not depend on the others: limits only
// end it. Deadlines, cancellation from outside and failed allocations do depend on timing. The
// budget of operations does not: each racer has the whole budget.
//
// Without an answer, the leader is the racer named first among those stopped at their budget, else
// among those that ended by themselves. An exception ends the racer that throws it, not the race.
// If all racers throw, the exception of the one named first is rethrown.
//
// Threads. The caller's thread runs the first racer, then waits and polls the control (see
// Control). Each other racer has a thread of its own, started and joined here. That takes about 20
// microseconds when the cores are awake and 60 when they are not. Waking waiting threads takes half
// of that, too small a gain to keep a pool. The race is over when all racers have stopped and freed
// their memory. If the system gives no thread, the caller's thread runs that racer after its own.
//
// `least_operations`: what racer i counts at least if it ends with an answer; empty: nothing is
// known. A racer that cannot win any more need not count so far before it is stopped. It is
// reported as having counted what the winner did, as it would have.
Outcome run_racers(std::size_t racers, WinnerRule winner_rule, const Control& control,
                   const Racer& racer, std::span<const std::int64_t> least_operations = {});

struct RaceAnswer {
  // the winner's; without an answer, the leader's (Outcome)
  Solution solution;
  const Algorithm* winner = nullptr;         // the racer that the solution is from
  Control::Clock::duration stop_duration{};  // how long the losers took to stop (Outcome)
  std::vector<std::int64_t> operations;      // per racer (Outcome)
};

// `racers`: one or more. Capacities may be up to int64's maximum. Those beyond the range of the
// algorithms count as unbounded (graph/start_state.hpp), and a cycle of negative cost over such
// arcs gives kUnbounded. Throws nothing but std::bad_alloc.
RaceAnswer race(const Network& network, std::span<const Algorithm* const> racers,
                const Start& start, const Control& control, WinnerRule winner_rule);

// What a race reports beside its answer.
struct RaceReport {
  const Algorithm* winner = nullptr;  // the winner of the last round that ended with an answer
  // how long the losers of the last round took to stop
  Control::Clock::duration stop_duration{};
  std::vector<std::int64_t> operations;  // per racer, in the last round (Outcome)
};

// A race on a changing network: the answer of a round is that of its winner, and all racers start
// the next round from it.
//
// State. The last answer is stored once for all racers (WarmStartState). Racers without an engine
// of their own only read it, so passing the winner's answer on costs nothing, and a loser need not
// restore anything. Racers from scratch (Algorithm::from_scratch) do not even read it. Racers with
// an engine make it in their own thread in the first round, and get every change. A racer that
// loses before its engine is made would lose every round in that way, so the next round waits until
// the engine was made from the stored answer.
//
// After a round. If the winner is local (it knows what it touched) and also won the round before,
// what it touched is copied into the stored answer: work proportional to the round's. If another
// racer won the round before, everything is copied: O(n + m). A loser with an engine keeps its
// state, continues from where it was stopped, and may use the winner's answer (Engine::adopt). In a
// deterministic race, where it was stopped depends on timing: so its state becomes the winner's
// answer. An engine that cannot tell that this leaves nothing of its own (Engine::adopts_exactly)
// is made again, in its own thread of the next round. Engines are made to the end in the first
// round, because a graph that is made later has its arcs in another order. At a budget
// (Status::kBudget) the leader's state is stored like an answer.
//
// Reference. Gog et al., Firmament, OSDI 2016, sections 6.1 and 6.2. In the paper, relaxation runs
// from scratch in every round and only cost scaling is incremental, starting from relaxation's
// state after price refine. Departures: here every racer may be either, and price refine is part of
// cost scaling (cost_scaling.hpp).
//
// `racers`: two or more. `report` is kept up to date.
std::unique_ptr<Engine> make_race_engine(const std::vector<const Algorithm*>& racers,
                                         WinnerRule winner_rule, const EngineStart& start,
                                         RaceReport& report);

}  // namespace flowsolver
