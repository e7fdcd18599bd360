// Several racers on threads: whose answer counts, and how the others are stopped.
//
// Answer. A racer answers when it ends with kOptimal or kInfeasible; both are proven, so all racers
// would answer the same.
//
// First: the answer that comes first wins. The other racers are cancelled through their Control.
//
// Deterministic: the answer that took the fewest counted operations (Stats::operations) wins; of
// equal ones, that of the racer named first. All run at once. When racer j has answered after o
// operations, every other racer i is told that its answer is useless beyond o operations (i < j) or
// beyond o - 1 (i > j), and is cancelled where it counts more (Control::cancel_after_operations).
//   Why timing cannot change the winner: let w be the racer that wins when each runs to its end
//   undisturbed, (o_w, w) being
// least. Any limit that w is ever given stems from a racer j with (o_j, j) > (o_w, w), so it is at
// least o_w; w's count never decreases and ends at o_w; hence w is never cancelled, whenever the
// limits arrive, and answers. Which other racers answer before their limit reaches them is a matter
// of timing, but none of them is less than (o_w, w): the least of those that answered is w. A
// racer's count does not depend on the others, as limits only end it.
//   A deadline, a cancellation from outside and a failed allocation are matters of timing. The
//   budget of operations is not:
// each racer has it to itself.
//
// Without an answer the leader is the first-named racer that was stopped at its budget, else the
// first that ended by itself. An exception ends the racer it strikes, not the contest; only if
// every racer met one, the first-named one's is rethrown.
//
// Threads. The caller's runs the first racer, then waits, asking the control (for a poll, see
// Control) meanwhile; each other racer has one, started and joined here. That takes about 20
// microseconds when the cores are awake, 60 when not; waking a thread that waits takes half, too
// little a gain to keep any. The contest is over when all racers have stopped, with what they free.
// Where the system gives no thread, the caller's runs that racer after its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

// Which answer wins: see above.
enum class WinnerRule : std::uint8_t { kFirst, kFewestOperations };

inline bool is_answer(Status status) {
  return status == Status::kOptimal || status == Status::kInfeasible;
}

struct Outcome {
  std::size_t leader = 0;  // the winner when `status` is an answer
  Status status = Status::kCancelled;
  Stats stats;  // the leader's
  Control::Clock::duration
      stop_duration{};  // from the leader's end until the last racer had stopped
};

// What racer i does, until it has an answer or its control says stop. Runs at the same time as the
// others.
using Racer = std::function<Status(std::size_t i, const Control& control, Stats& stats)>;

Outcome run_racers(std::size_t racers, WinnerRule winner_rule, const Control& control,
                   const Racer& racer);

}  // namespace flowsolver
