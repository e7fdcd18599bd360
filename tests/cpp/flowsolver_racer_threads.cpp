// Racer threads (race.hpp), also under ThreadSanitizer: which racer wins, and how the
// others end when racers throw, are stopped at a budget, or are cancelled by another thread.
#include <new>
#include <stdexcept>
#include <thread>

#include "check.hpp"
#include "race.hpp"

using namespace flowsolver;

namespace {

// Counts operations until its control stops it.
Status run_until_stopped(const Control& control, Stats& stats) {
  while (true) {
    ++stats.scanned;
    if (const Status status = control.check(stats); status != Status::kOptimal) return status;
  }
}

Status answer_after(std::int64_t operations, const Control& control, Stats& stats) {
  while (stats.scanned < operations) {
    ++stats.scanned;
    if (const Status status = control.check(stats); status != Status::kOptimal) return status;
  }
  return Status::kOptimal;
}

void first_answer_wins() {
  for (WinnerRule winner_rule : {WinnerRule::kFirst, WinnerRule::kFewestOperations}) {
    for (std::size_t quick = 0; quick < 3; ++quick) {
      const Outcome outcome = run_racers(3, winner_rule, Control(),
                                         [&](std::size_t i, const Control& control, Stats& stats) {
                                           return i == quick ? answer_after(5000, control, stats)
                                                             : run_until_stopped(control, stats);
                                         });
      CHECK(outcome.status == Status::kOptimal && outcome.leader == quick &&
            outcome.stats.scanned == 5000);
    }
  }
}

void racer_named_first_wins_at_equal_counts() {
  for (int k = 0; k < 50; ++k) {
    const Outcome outcome = run_racers(3, WinnerRule::kFewestOperations, Control(),
                                       [&](std::size_t i, const Control& control, Stats& stats) {
                                         return answer_after(i == 0 ? 301 : 300, control, stats);
                                       });
    CHECK(outcome.leader == 1 && outcome.stats.scanned == 300);
  }
}

// A racer that throws loses. If all throw, the exception of the one named first is rethrown.
void exceptions() {
  const Outcome outcome = run_racers(3, WinnerRule::kFirst, Control(),
                                     [&](std::size_t i, const Control& control, Stats& stats) {
                                       if (i != 1) throw std::bad_alloc();
                                       return answer_after(2000, control, stats);
                                     });
  CHECK(outcome.leader == 1 && outcome.status == Status::kOptimal);
  bool thrown = false;
  try {
    run_racers(3, WinnerRule::kFirst, Control(),
               [](std::size_t i, const Control&, Stats&) -> Status {
                 if (i == 0) throw std::runtime_error("first");
                 throw std::bad_alloc();
               });
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  CHECK(thrown);
}

// Each racer has the whole budget. Of those that are stopped at it, the one named first leads.
void budgets() {
  Control limited;
  limited.limit_operations(700);
  const Outcome stopped = run_racers(2, WinnerRule::kFirst, limited,
                                     [](std::size_t, const Control& control, Stats& stats) {
                                       return run_until_stopped(control, stats);
                                     });
  CHECK(stopped.status == Status::kBudget && stopped.leader == 0 && stopped.stats.scanned == 701);
}

// By another thread, and by the poll, also after the racer in the caller's thread has ended.
void cancellation() {
  Control cancelled;
  std::thread canceller([&cancelled] { cancelled.cancel(); });
  CHECK(run_racers(2, WinnerRule::kFirst, cancelled,
                   [](std::size_t, const Control& control, Stats& stats) {
                     return run_until_stopped(control, stats);
                   })
            .status == Status::kCancelled);
  canceller.join();
  Control polled;
  polled.poll([](const Stats&) { return true; });
  CHECK(run_racers(2, WinnerRule::kFirst, polled,
                   [](std::size_t i, const Control& control, Stats& stats) {
                     return i == 0 ? Status::kCancelled : run_until_stopped(control, stats);
                   })
            .status == Status::kCancelled);
}

}  // namespace

int main() {
  first_answer_wins();
  racer_named_first_wins_at_equal_counts();
  exceptions();
  budgets();
  cancellation();
  return 0;
}
