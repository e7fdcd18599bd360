// Cancelling a resolve: a request ends with the round it was sent in, however that ends, or with
// the next one when none was running; sent by any thread at any time, to one algorithm or to a
// race. For ThreadSanitizer, too.
#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "solve.hpp"
#include "race.hpp"
#include "networks.hpp"

using namespace flowsolver;

namespace {

constexpr NodeId kSink = 0;

// Sources of two units with two paths to the sink, the cheap one wide enough for half of them.
Network two_ways(NodeId sources) {
  Network network;
  network.supply.assign(sources + 3, 2);
  network.supply[kSink] = -2 * std::int64_t{sources};
  network.supply[1] = network.supply[2] = 0;
  add_arc(network, 1, kSink, sources, 1);
  add_arc(network, 2, kSink, 2 * std::int64_t{sources}, 50);
  for (NodeId v = 3; v < sources + 3; ++v) {
    add_arc(network, v, 1, 2, v % 17);
    add_arc(network, v, 2, 2, v % 13);
  }
  return network;
}

// An engine that calls `cancel` at the end of each run, after its last check for cancellation.
class CancelledTooLate final : public ForwardingEngine {
 public:
  CancelledTooLate(std::unique_ptr<Engine> engine, std::function<void()> cancel)
      : ForwardingEngine(std::move(engine)), cancel_(std::move(cancel)) {}

  Status run(const Control& control, Stats& stats) override {
    const Status status = ForwardingEngine::run(control, stats);
    cancel_();
    return status;
  }

 private:
  std::function<void()> cancel_;
};

void too_late_is_not_for_the_next(const Algorithm& algorithm) {
  bool armed = false;
  std::unique_ptr<IncrementalSolver> solver;
  const auto cancel = [&] {
    if (armed) solver->cancel();
  };
  solver = std::make_unique<IncrementalSolver>(
      two_ways(20),
      [&](const EngineStart& start, const Control& control, Stats& stats) {
        return std::make_unique<CancelledTooLate>(algorithm.make_engine(start, control, stats),
                                                  cancel);
      },
      [&](const Network& network, const Control& control) {
        return algorithm.solve(network, {}, control);
      });
  const auto round = [&](Status expected) {
    armed = true;
    const Status status = solver->resolve();
    // the search for a cut, after the engine's run, may still check
    CHECK(status == expected || (expected == Status::kInfeasible && status == Status::kCancelled));
    armed = false;
    CHECK(solver->resolve() == expected);
  };
  round(Status::kOptimal);
  solver->set_capacity(0, 7);
  round(Status::kOptimal);
  solver->set_capacity(1, 7);
  round(Status::kInfeasible);
  solver->set_capacity(1, 1000);
  round(Status::kOptimal);
  solver->set_cost(1, 3);
  solver->control().limit_operations(0);
  armed = true;
  const Status status = solver->resolve();
  CHECK(status == Status::kBudget || status == Status::kOptimal);
  armed = false;
  solver->control().limit_operations(kInfinity);
  CHECK(solver->resolve() == Status::kOptimal);
  CHECK(solver->certify().ok());
}

// Whatever it would have ended with.
void idle_is_for_the_next(IncrementalSolver& solver) {
  const auto cancelled = [&](Status then) {
    solver.cancel();
    solver.cancel();
    CHECK(solver.resolve() == Status::kCancelled);
    CHECK(solver.resolve() == then);
  };
  cancelled(Status::kOptimal);
  solver.set_supply(kSink, -1);
  cancelled(Status::kUnbalanced);
  solver.set_supply(kSink, solver.network().supply[kSink] + 1 - 2 * 20);
  cancelled(Status::kOptimal);
  solver.set_cost(0, std::int64_t{1} << 60);
  cancelled(Status::kBadCostRange);
  solver.set_cost(0, 1);
  solver.set_capacity(1, 0);
  cancelled(Status::kInfeasible);
  solver.set_capacity(1, 100);
  cancelled(Status::kOptimal);
}

// One request cancels one round at most, and none after the next.
void by_another_thread(IncrementalSolver& solver, std::int64_t sources) {
  const std::array<std::int64_t, 3> wants{-2 * sources, -2 * sources, -1};  // unbalanced
  std::size_t cancelled = 0;
  for (int round = 0; round < 60; ++round) {
    solver.set_cost(0, round % 7);
    solver.set_supply(kSink, wants[static_cast<std::size_t>(round) % wants.size()]);
    std::atomic<bool> begun = false;
    std::thread other([&] {
      while (!begun.load()) {
      }
      for (int wait = 0; wait < (round % 10) * 200; ++wait) begun.load();
      solver.cancel();
    });
    begun.store(true);
    const bool during = solver.resolve() == Status::kCancelled;
    other.join();
    const bool after = solver.resolve() == Status::kCancelled;
    CHECK(!during || !after);
    cancelled += during || after;
    solver.set_supply(kSink, -2 * sources);
    CHECK(solver.resolve() == Status::kOptimal);
  }
  CHECK(solver.certify().ok());
}

// Requests all the time.
void by_another_thread_all_the_time(IncrementalSolver& solver) {
  std::atomic<bool> attach_to = false;
  std::atomic<std::int64_t> requests = 0;
  std::thread other([&] {
    while (!attach_to.load()) {
      solver.cancel();
      requests.fetch_add(1);
      std::this_thread::yield();
    }
  });
  std::int64_t cancelled = 0;
  for (int round = 0; round < 200; ++round) {
    solver.set_cost(0, round % 5);
    const Status status = solver.resolve();
    CHECK(status == Status::kCancelled || status == Status::kOptimal);
    cancelled += status == Status::kCancelled;
  }
  attach_to.store(true);
  other.join();
  CHECK(cancelled <= requests.load());
  solver.resolve();
  CHECK(solver.resolve() == Status::kOptimal);
  CHECK(solver.certify().ok());
}

struct Race {
  Race(const Network& network, WinnerRule winner_rule)
      : solver(
            network,
            [this, winner_rule](const EngineStart& start, const Control&, Stats&) {
              return make_race_engine(racers, winner_rule, start, report);
            },
            [this, winner_rule](const Network& live, const Control& control) {
              return race(live, racers, {}, control, winner_rule).solution;
            }) {}
  std::vector<const Algorithm*> racers{find_algorithm("cost_scaling"),
                                       find_algorithm("network_simplex")};
  RaceReport report;
  IncrementalSolver solver;
};

}  // namespace

int main() {
  constexpr NodeId kFew = 20, kMany = 400;
  for (const Algorithm& algorithm : algorithms()) {
    too_late_is_not_for_the_next(algorithm);
    IncrementalSolver few(two_ways(kFew), algorithm);
    idle_is_for_the_next(few);
    IncrementalSolver many(two_ways(kMany), algorithm);
    by_another_thread(many, kMany);
    by_another_thread_all_the_time(many);
  }
  for (WinnerRule winner_rule : {WinnerRule::kFirst, WinnerRule::kFewestOperations}) {
    Race few(two_ways(kFew), winner_rule);
    idle_is_for_the_next(few.solver);
    Race many(two_ways(kMany), winner_rule);
    by_another_thread(many.solver, kMany);
    by_another_thread_all_the_time(many.solver);
  }
  return 0;
}
