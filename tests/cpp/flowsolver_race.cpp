// Races on threads, also under ThreadSanitizer: which racer wins, and how the others end when
// racers throw, are stopped at a budget, or are cancelled by another thread; races of algorithms
// over histories of changes; deterministic ones twice; losers that adopt the winner's answer.
#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "solve.hpp"
#include "race.hpp"
#include "networks.hpp"
#include "shortest_path/incremental_ssp.hpp"

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

std::vector<const Algorithm*> all_algorithms() {
  std::vector<const Algorithm*> all;
  for (const Algorithm& algorithm : algorithms()) all.push_back(&algorithm);
  return all;
}

// The paper's race: relaxation from scratch against incremental cost scaling.
std::vector<const Algorithm*> firmament() {
  static const Algorithm relaxation =
      configured(*find_algorithm("relaxation"), {.from_scratch = true});
  return {&relaxation, find_algorithm("cost_scaling")};
}

constexpr NodeId kSink = 0, kCluster = 1, kWaiting = 2, kFirstMachine = 3;
constexpr std::int64_t kMachines = 20, kSlots = 3;

Network empty_cell() {
  Network network;
  network.supply.assign(kFirstMachine + kMachines, 0);
  for (NodeId m = 0; m < kMachines; ++m) {
    add_arc(network, kCluster, kFirstMachine + m, kSlots, 0);
    add_arc(network, kFirstMachine + m, kSink, kSlots, 0);
  }
  add_arc(network, kWaiting, kSink, 1000, 0);
  return network;
}

// Tasks come and go around the number of slots, and arcs change cost and capacity.
class History {
 public:
  History(IncrementalSolver& solver, std::uint64_t seed) : solver_(solver), draw_(seed) {}

  void change() {
    std::vector<NodeId> leaving;
    for (std::uint64_t k = draw_(8); k > 0 && !tasks_.empty(); --k) {
      std::swap(tasks_[draw_(tasks_.size())], tasks_.back());
      leaving.push_back(tasks_.back());
      tasks_.pop_back();
    }
    solver_.remove_nodes(leaving);
    while (tasks_.size() < kMachines * kSlots + 10 && draw_(12) != 0) arrive();
    solver_.set_supply(kSink, -static_cast<std::int64_t>(tasks_.size()));
    for (std::uint64_t k = draw_(6); k > 0; --k) {
      const auto arc = static_cast<ArcId>(draw_(solver_.network().num_arcs()));
      if (!solver_.live_arc(arc) || arc <= 2 * kMachines) continue;
      solver_.set_cost(arc, static_cast<std::int64_t>(draw_(90)));
    }
    solver_.set_capacity(static_cast<ArcId>(2 * draw_(kMachines) + 1),
                         static_cast<std::int64_t>(draw_(kSlots + 1)));
  }

 private:
  void arrive() {
    const NodeId task = solver_.add_node(1);
    tasks_.push_back(task);
    for (int p = 0; p < 3; ++p) {
      const auto machine = static_cast<NodeId>(kFirstMachine + draw_(kMachines));
      solver_.add_arc(task, machine, 1, static_cast<std::int64_t>(draw_(40)));
    }
    solver_.add_arc(task, kCluster, 1, 50);
    solver_.add_arc(task, kWaiting, 1, static_cast<std::int64_t>(60 + draw_(200)));
  }

  IncrementalSolver& solver_;
  Draws draw_;
  std::vector<NodeId> tasks_;
};

struct RacingSolver {
  RacingSolver(std::vector<const Algorithm*> racers, WinnerRule winner_rule)
      : solver(
            empty_cell(),
            [racers, winner_rule, this](const EngineStart& start, const Control&, Stats&) {
              return make_race_engine(racers, winner_rule, start, report);
            },
            [racers, winner_rule](const Network& network, const Control& control) {
              return race(network, racers, {}, control, winner_rule).solution;
            }) {}
  RaceReport report;
  IncrementalSolver solver;
};

void histories(const std::vector<const Algorithm*>& racers, WinnerRule winner_rule,
               std::uint64_t seed) {
  RacingSolver racing(racers, winner_rule);
  IncrementalSolver alone(empty_cell(), algorithms()[0]);
  History changes(racing.solver, seed), same_changes(alone, seed);
  for (int round = 0; round < 25; ++round) {
    changes.change();
    same_changes.change();
    if (round % 5 == 4) {
      racing.solver.control().limit_operations(round * 40);
      const Status status = racing.solver.resolve();
      CHECK(status == Status::kBudget || status == Status::kOptimal);
      racing.solver.control().limit_operations(kInfinity);
    }
    if (round % 5 == 2) {
      racing.solver.cancel();
      CHECK(racing.solver.resolve() == Status::kCancelled);
    }
    CHECK(racing.solver.resolve() == Status::kOptimal);
    CHECK(alone.resolve() == Status::kOptimal);
    CHECK(racing.solver.cost() == alone.cost());
    CHECK(racing.solver.certify().ok());
    CHECK(racing.solver.certify_touched().ok());
    CHECK(racing.solver.certify_changes(0).ok());
    CHECK(racing.report.winner != nullptr);
    CHECK(racing.report.operations.size() == racers.size());
  }
}

// Two engines of one network. The first one answers every round, after the second one was stopped
// on its way; the second one then adopts the answer. Its flow and prices must be those of the first
// one everywhere, though it only looks at what may differ.
class AdoptingPair final : public ForwardingEngine {
 public:
  AdoptingPair(std::unique_ptr<Engine> winner, std::unique_ptr<Engine> loser,
               const EngineStart& start)
      : ForwardingEngine(std::move(winner)),
        network_(start.network),
        alive_(start.alive),
        loser_(std::move(loser)) {}

  static int adoptions;

  void add_node(NodeId v, std::int64_t supply) override {
    ForwardingEngine::add_node(v, supply);
    loser_->add_node(v, supply);
  }
  void remove_node(NodeId v) override {
    ForwardingEngine::remove_node(v);
    loser_->remove_node(v);
  }
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    ForwardingEngine::add_arc(arc, tail, head, capacity, cost);
    loser_->add_arc(arc, tail, head, capacity, cost);
  }
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override {
    ForwardingEngine::remove_arc(arc, tail, head);
    loser_->remove_arc(arc, tail, head);
  }
  bool remove_with_arcs(std::span<const NodeId>, std::vector<ArcId>&) override { return false; }
  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override {
    ForwardingEngine::set_capacity(arc, tail, head, capacity);
    loser_->set_capacity(arc, tail, head, capacity);
  }
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    ForwardingEngine::set_cost(arc, tail, cost);
    loser_->set_cost(arc, tail, cost);
  }
  void change_supply(NodeId v, std::int64_t delta) override {
    ForwardingEngine::change_supply(v, delta);
    loser_->change_supply(v, delta);
  }
  Status run(const Control& control, Stats& stats) override {
    Control limited;
    limited.limit_operations(++rounds_ % 5 * 50);
    Stats unused;
    loser_->run(limited, unused);
    const Status status = inner().run(control, stats);
    // A budget here means that a solve from scratch is cheaper (ColdStartRule).
    if (status == Status::kBudget) return status;
    CHECK(status == Status::kOptimal);
    ++adoptions;
    loser_->adopt(inner());
    for (ArcId a = 0; a < network_.num_arcs(); ++a) {
      if (alive_[a] == 0) continue;
      const NodeId tail = network_.tail[a], head = network_.head[a];
      CHECK(loser_->flow(a, tail) == inner().flow(a, tail));
      CHECK(loser_->price(tail) == inner().price(tail));
      CHECK(loser_->price(head) == inner().price(head));
    }
    return Status::kOptimal;
  }
  void adopt(const Engine&) override {}
  bool prices_drifted() const override { return false; }
  bool local() const override { return true; }

 private:
  const Network& network_;
  const std::vector<std::uint8_t>& alive_;
  std::unique_ptr<Engine> loser_;
  int rounds_ = 0;
};

int AdoptingPair::adoptions = 0;

void losers_adopt_all_of_the_answer(std::string_view winner, std::uint64_t seed) {
  const auto make = [=](const EngineStart& start, const Control& control, Stats& stats) {
    return std::make_unique<AdoptingPair>(
        find_algorithm(winner)->make_engine(start, control, stats),
        find_algorithm("cost_scaling")->make_engine(start, control, stats), start);
  };
  IncrementalSolver solver(empty_cell(), make, [=](const Network& network, const Control& control) {
    return find_algorithm(winner)->solve(network, {}, control);
  });
  History changes(solver, seed);
  AdoptingPair::adoptions = 0;
  for (int round = 0; round < 60; ++round) {
    changes.change();
    CHECK(solver.resolve() == Status::kOptimal);
  }
  CHECK(AdoptingPair::adoptions > 40);
}

// A racer that loses every round before its engine is made gets time to make it.
int engines_begun = 0, engines_made = 0;

std::unique_ptr<Engine> make_late(const EngineStart& start, const Control& control, Stats& stats) {
  ++engines_begun;
  const auto late = Control::Clock::now() + std::chrono::milliseconds(100);
  while (Control::Clock::now() < late || engines_begun == 1) {
    if (control.check(stats) == Status::kCancelled) return nullptr;
  }
  std::unique_ptr<Engine> engine = make_incremental_ssp(start, control, stats);
  engines_made += engine != nullptr;
  return engine;
}

void lost_before_engine_was_made() {
  const Algorithm slow{"slow", "", solve_incremental_ssp, make_late};
  RacingSolver racing({find_algorithm("cost_scaling"), &slow}, WinnerRule::kFirst);
  History changes(racing.solver, 4);
  for (int round = 0; round < 4; ++round) {
    changes.change();
    CHECK(racing.solver.resolve() == Status::kOptimal);
    CHECK(racing.solver.certify().ok());
    CHECK(engines_begun == std::min(round + 1, 2));
    CHECK(engines_made == std::min(round, 1));
  }
}

// Winner, flow and counts of every round are the same at every run.
void deterministic_twice(const std::vector<const Algorithm*>& racers) {
  RacingSolver one(racers, WinnerRule::kFewestOperations),
      other(racers, WinnerRule::kFewestOperations);
  History changes(one.solver, 5), same_changes(other.solver, 5);
  for (int round = 0; round < 25; ++round) {
    changes.change();
    same_changes.change();
    CHECK(one.solver.resolve() == other.solver.resolve());
    CHECK(one.report.winner == other.report.winner);
    CHECK(std::ranges::equal(one.solver.flow(), other.solver.flow()));
    CHECK(one.solver.stats().operations() == other.solver.stats().operations());
    CHECK(one.report.operations == other.report.operations);
    CHECK(std::ranges::max(one.report.operations) == one.solver.stats().operations());
  }
}

int solves_without_start = 0;

Solution solve_without_start(const Network& network, const Start& start, const Control& control) {
  CHECK(start.flow.empty() && start.price.empty());
  ++solves_without_start;
  return solve_incremental_ssp(network, start, control);
}

// In each round, also after another racer has won, and alone.
void a_racer_from_scratch_gets_no_start() {
  Algorithm blank{"blank", "", solve_without_start};
  blank.from_scratch = true;
  constexpr int kRounds = 12;
  for (const WinnerRule winner_rule : {WinnerRule::kFirst, WinnerRule::kFewestOperations}) {
    solves_without_start = 0;
    RacingSolver racing({find_algorithm("incremental_ssp"), &blank}, winner_rule);
    History changes(racing.solver, 7);
    for (int round = 0; round < kRounds; ++round) {
      changes.change();
      CHECK(racing.solver.resolve() == Status::kOptimal);
      CHECK(racing.solver.certify().ok());
    }
    CHECK(solves_without_start == kRounds);
  }
  solves_without_start = 0;
  IncrementalSolver alone(empty_cell(), blank);
  History changes(alone, 7);
  for (int round = 0; round < kRounds; ++round) {
    changes.change();
    CHECK(alone.resolve() == Status::kOptimal);
    CHECK(alone.certify().ok());
    CHECK(alone.certify_touched().ok());
  }
  CHECK(solves_without_start == kRounds);
}

// Any algorithm goes on from the answer of any other, from scratch or not, changes being made
// before and after it is named.
void algorithms_take_turns(std::uint64_t seed) {
  IncrementalSolver turning(empty_cell(), algorithms()[0]), alone(empty_cell(), algorithms()[0]);
  History changes(turning, seed), same_changes(alone, seed);
  Draws draw(seed);
  for (int round = 0; round < 40; ++round) {
    changes.change();
    same_changes.change();
    const std::size_t next = draw(algorithms().size() + variants().size());
    const Algorithm& algorithm =
        next < algorithms().size() ? algorithms()[next] : variants()[next - algorithms().size()];
    turning.switch_to(
        [&algorithm](const EngineStart& start, const Control& control, Stats& stats) {
          return algorithm.make_engine(start, control, stats);
        },
        [&algorithm](const Network& network, const Control& control) {
          return algorithm.solve(network, {}, control);
        },
        algorithm.from_scratch);
    for (int again = 0; again < 2; ++again) {
      changes.change();
      same_changes.change();
      if (draw(4) == 0) {
        turning.control().limit_operations(static_cast<std::int64_t>(draw(400)));
        turning.resolve();
        turning.control().limit_operations(kInfinity);
      }
      CHECK(turning.resolve() == Status::kOptimal);
      CHECK(alone.resolve() == Status::kOptimal);
      CHECK(turning.cost() == alone.cost());
      CHECK(turning.certify().ok());
      CHECK(turning.certify_touched().ok());
    }
  }
}

// In two rounds of three, waiting tasks have no capacity to the sink. The winner's cut is a proof.
void infeasible_rounds(WinnerRule winner_rule) {
  RacingSolver one(all_algorithms(), winner_rule), other(all_algorithms(), winner_rule);
  History changes(one.solver, 6), same_changes(other.solver, 6);
  constexpr ArcId kWaitingToSink = 2 * kMachines;
  int infeasible = 0;
  for (int round = 0; round < 30; ++round) {
    changes.change();
    same_changes.change();
    for (IncrementalSolver* solver : {&one.solver, &other.solver}) {
      solver->set_capacity(kWaitingToSink, round % 3 == 0 ? 1000 : 0);
      const Status status = solver->resolve();
      CHECK(status == Status::kOptimal || status == Status::kInfeasible);
      CHECK(solver->certify_cut().ok() == (status == Status::kInfeasible));
      CHECK(solver->stats().disproved == 0);
      infeasible += status == Status::kInfeasible;
    }
    if (winner_rule == WinnerRule::kFirst) continue;
    CHECK(std::ranges::equal(one.solver.cut(), other.solver.cut()));
  }
  CHECK(infeasible > 10);
}

}  // namespace

int main() {
  first_answer_wins();
  racer_named_first_wins_at_equal_counts();
  exceptions();
  budgets();
  cancellation();
  infeasible_rounds(WinnerRule::kFirst);
  infeasible_rounds(WinnerRule::kFewestOperations);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    for (const auto& racers : {all_algorithms(), firmament()}) {
      histories(racers, WinnerRule::kFirst, seed);
      histories(racers, WinnerRule::kFewestOperations, seed);
    }
    algorithms_take_turns(seed);
  }
  deterministic_twice(all_algorithms());
  deterministic_twice(firmament());
  a_racer_from_scratch_gets_no_start();
  lost_before_engine_was_made();
  for (const std::string_view winner : {"incremental_ssp", "relaxation", "network_simplex"}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) losers_adopt_all_of_the_answer(winner, seed);
  }
  return 0;
}
