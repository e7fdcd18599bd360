// Races on threads, for ThreadSanitizer: from scratch, over long histories of changes,
// deterministic ones twice; racers that fail, that never end by themselves, and a contest that
// another thread cancels.
#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "certificate.hpp"
#include "check.hpp"
#include "engines/race_engine.hpp"
#include "incremental_solver.hpp"
#include "race.hpp"
#include "shortest_path/incremental_ssp.hpp"

using namespace flowsolver;

namespace {

void add_arc(Network& network, NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost) {
  network.tail.push_back(tail);
  network.head.push_back(head);
  network.capacity.push_back(capacity);
  network.cost.push_back(cost);
}

std::vector<const Algorithm*> all_algorithms() {
  std::vector<const Algorithm*> all;
  for (const Algorithm& algorithm : algorithms()) all.push_back(&algorithm);
  return all;
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

// Tasks come and go around the number of slots, arcs change cost and capacity.
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
  RacingSolver(std::vector<const Algorithm*> racers, Winning winning)
      : solver(
            empty_cell(),
            [racers, winning, this](const EngineStart& start, const Control&, Stats&) {
              return std::make_unique<RaceEngine>(racers, winning, start, report);
            },
            [racers, winning](const Network& network, const Control& control) {
              return race(network, racers, {}, control, winning).solution;
            }) {}
  RaceReport report;
  IncrementalSolver solver;
};

void histories(Winning winning, std::uint64_t seed) {
  RacingSolver racing(all_algorithms(), winning);
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
    CHECK(racing.report.winner != nullptr);
  }
}

// One engine wins every round, after another was stopped on its way, and hands its answer over:
// flow and prices are the winner's then, though only what may differ is looked at.
class Handover final : public Engine {
 public:
  Handover(std::unique_ptr<Engine> winner, std::unique_ptr<Engine> loser, const EngineStart& start)
      : network_(start.network),
        alive_(start.alive),
        winner_(std::move(winner)),
        loser_(std::move(loser)) {}

  static int handed_over;  // times

  void add_node(NodeId v, std::int64_t supply) override {
    winner_->add_node(v, supply);
    loser_->add_node(v, supply);
  }
  void remove_node(NodeId v) override {
    winner_->remove_node(v);
    loser_->remove_node(v);
  }
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    winner_->add_arc(arc, tail, head, capacity, cost);
    loser_->add_arc(arc, tail, head, capacity, cost);
  }
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override {
    winner_->remove_arc(arc, tail, head);
    loser_->remove_arc(arc, tail, head);
  }
  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override {
    winner_->set_capacity(arc, tail, head, capacity);
    loser_->set_capacity(arc, tail, head, capacity);
  }
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    winner_->set_cost(arc, tail, cost);
    loser_->set_cost(arc, tail, cost);
  }
  void change_supply(NodeId v, std::int64_t delta) override {
    winner_->change_supply(v, delta);
    loser_->change_supply(v, delta);
  }
  Status run(const Control& control, Stats& stats) override {
    Control little;
    little.limit_operations(++rounds_ % 5 * 50);
    Stats lost;
    loser_->run(little, lost);
    const Status status = winner_->run(control, stats);
    if (status == Status::kBudget) return status;  // from scratch it is quicker (cold_start.hpp)
    CHECK(status == Status::kOptimal);
    ++handed_over;
    loser_->adopt(*winner_);
    for (ArcId a = 0; a < network_.num_arcs(); ++a) {
      if (alive_[a] != 0)
        CHECK(loser_->flow(a, network_.tail[a]) == winner_->flow(a, network_.tail[a]));
      if (alive_[a] != 0)
        CHECK(loser_->price(network_.tail[a]) == winner_->price(network_.tail[a]));
      if (alive_[a] != 0)
        CHECK(loser_->price(network_.head[a]) == winner_->price(network_.head[a]));
    }
    return Status::kOptimal;
  }
  std::int64_t flow(ArcId arc, NodeId tail) const override { return winner_->flow(arc, tail); }
  std::int64_t price(NodeId v) const override { return winner_->price(v); }
  __int128 cost() const override { return winner_->cost(); }
  void adopt(const Engine&) override {}
  std::uint64_t value_limit() const override { return winner_->value_limit(); }
  bool prices_drifted() const override { return false; }
  bool local() const override { return true; }
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override {
    winner_->incident_arcs(nodes, arcs);
  }
  const std::vector<FlowBefore>& touched_arcs() const override { return winner_->touched_arcs(); }
  const std::vector<NodeId>& repriced_nodes() const override { return winner_->repriced_nodes(); }
  void begin_round() override { winner_->begin_round(); }
  void priced_by(NodeId v, std::vector<NodeId>& nodes) const override {
    winner_->priced_by(v, nodes);
  }

 private:
  const Network& network_;
  const std::vector<std::uint8_t>& alive_;
  std::unique_ptr<Engine> winner_, loser_;
  int rounds_ = 0;
};

int Handover::handed_over = 0;

void losers_adopt_all_of_the_answer(std::string_view winner, std::uint64_t seed) {
  const auto make = [=](const EngineStart& start, const Control& control, Stats& stats) {
    return std::make_unique<Handover>(
        find_algorithm(winner)->make_engine(start, control, stats),
        find_algorithm("cost_scaling")->make_engine(start, control, stats), start);
  };
  IncrementalSolver solver(empty_cell(), make, [=](const Network& network, const Control& control) {
    return find_algorithm(winner)->solve(network, {}, control);
  });
  History changes(solver, seed);
  Handover::handed_over = 0;
  for (int round = 0; round < 60; ++round) {
    changes.change();
    CHECK(solver.resolve() == Status::kOptimal);
  }
  CHECK(Handover::handed_over > 40);
}

// A racer that is overtaken while its engine is made, round after round. Its engine is to be ready
// all the same.
int engines_begun = 0, engines_made = 0;

std::unique_ptr<Engine> make_late(const EngineStart& start, const Control& control, Stats& stats) {
  ++engines_begun;
  const auto late = Control::Clock::now() + std::chrono::milliseconds(100);
  while (Control::Clock::now() < late || engines_begun == 1) {
    if (control.look(stats) == Status::kCancelled) return nullptr;
  }
  std::unique_ptr<Engine> engine = make_incremental_ssp(start, control, stats);
  engines_made += engine != nullptr;
  return engine;
}

void overtaken_while_made() {
  const Algorithm slow{"slow", "", solve_incremental_ssp, make_late};
  RacingSolver racing({find_algorithm("cost_scaling"), &slow}, Winning::kFirst);
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
void deterministic_twice() {
  RacingSolver one(all_algorithms(), Winning::kFewestOperations),
      other(all_algorithms(), Winning::kFewestOperations);
  History changes(one.solver, 5), same_changes(other.solver, 5);
  for (int round = 0; round < 25; ++round) {
    changes.change();
    same_changes.change();
    CHECK(one.solver.resolve() == other.solver.resolve());
    CHECK(one.report.winner == other.report.winner);
    CHECK(std::ranges::equal(one.solver.flow(), other.solver.flow()));
    CHECK(one.solver.stats().operations() == other.solver.stats().operations());
  }
}

// Only the winner answers within fewer operations than any other needs alone.
// There is no room to wait in, and then there is. The winner's cut is a proof.
void infeasible_rounds(Winning winning) {
  RacingSolver one(all_algorithms(), winning), other(all_algorithms(), winning);
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
    if (winning == Winning::kFirst) continue;
    CHECK(std::ranges::equal(one.solver.cut(), other.solver.cut()));
  }
  CHECK(infeasible > 10);
}

void deterministic_winner_has_fewest_operations() {
  RacingSolver grown(all_algorithms(), Winning::kFirst);
  History(grown.solver, 3).change();
  Network network = grown.solver.network();
  const std::vector<const Algorithm*> racers = all_algorithms();
  const RaceAnswer answer = race(network, racers, {}, Control(), Winning::kFewestOperations);
  CHECK(answer.solution.status == Status::kOptimal);
  // than the winner: they need more, those named after it as much or more
  bool named_before = true;
  for (const Algorithm* racer : racers) {
    const Solution alone = racer->solve(network, {}, Control());
    CHECK(alone.cost == answer.solution.cost);
    if (racer == answer.winner) named_before = false;
    CHECK(alone.stats.operations() >= answer.solution.stats.operations() + (named_before ? 1 : 0));
  }
  const RaceAnswer first = race(network, racers, {}, Control(), Winning::kFirst);
  CHECK(first.solution.cost == answer.solution.cost);
  CHECK(certify(network, first.solution.flow, first.solution.potential, first.solution.cost).ok());
}

// Counts until its control stops it.
Status run_for_ever(const Control& control, Stats& stats) {
  while (true) {
    ++stats.scanned;
    if (const Status status = control.look(stats); status != Status::kOptimal) return status;
  }
}

void contests() {
  const auto answer_after = [](std::int64_t operations, const Control& control, Stats& stats) {
    while (stats.scanned < operations) {
      ++stats.scanned;
      if (const Status status = control.look(stats); status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  };
  for (Winning winning : {Winning::kFirst, Winning::kFewestOperations}) {
    for (std::size_t quick = 0; quick < 3; ++quick) {
      const Outcome outcome = run_contest(
          3, winning, Control(), [&](std::size_t i, const Control& control, Stats& stats) {
            return i == quick ? answer_after(5000, control, stats) : run_for_ever(control, stats);
          });
      CHECK(outcome.status == Status::kOptimal && outcome.leader == quick &&
            outcome.stats.scanned == 5000);
    }
  }
  // Equal counts: the first-named.
  for (int k = 0; k < 50; ++k) {
    const Outcome outcome = run_contest(3, Winning::kFewestOperations, Control(),
                                        [&](std::size_t i, const Control& control, Stats& stats) {
                                          return answer_after(i == 0 ? 301 : 300, control, stats);
                                        });
    CHECK(outcome.leader == 1 && outcome.stats.scanned == 300);
  }
  // A racer that throws loses; if all do, the first-named one's exception comes out.
  const Outcome outcome = run_contest(3, Winning::kFirst, Control(),
                                      [&](std::size_t i, const Control& control, Stats& stats) {
                                        if (i != 1) throw std::bad_alloc();
                                        return answer_after(2000, control, stats);
                                      });
  CHECK(outcome.leader == 1 && outcome.status == Status::kOptimal);
  bool thrown = false;
  try {
    run_contest(3, Winning::kFirst, Control(), [](std::size_t i, const Control&, Stats&) -> Status {
      if (i == 0) throw std::runtime_error("first");
      throw std::bad_alloc();
    });
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  CHECK(thrown);
  // Budgets are each racer's own; of those stopped, the first-named leads.
  Control limited;
  limited.limit_operations(700);
  const Outcome stopped = run_contest(2, Winning::kFirst, limited,
                                      [](std::size_t, const Control& control, Stats& stats) {
                                        return run_for_ever(control, stats);
                                      });
  CHECK(stopped.status == Status::kBudget && stopped.leader == 0 && stopped.stats.scanned == 701);
  // Cancelled by another thread, and by the poll: also while the racer in the caller's thread has
  // ended.
  Control cancelled;
  std::thread canceller([&cancelled] { cancelled.cancel(); });
  CHECK(run_contest(2, Winning::kFirst, cancelled,
                    [](std::size_t, const Control& control, Stats& stats) {
                      return run_for_ever(control, stats);
                    })
            .status == Status::kCancelled);
  canceller.join();
  Control polled;
  polled.poll([](const Stats&) { return true; });
  CHECK(run_contest(2, Winning::kFirst, polled,
                    [](std::size_t i, const Control& control, Stats& stats) {
                      return i == 0 ? Status::kCancelled : run_for_ever(control, stats);
                    })
            .status == Status::kCancelled);
}

}  // namespace

int main() {
  contests();
  infeasible_rounds(Winning::kFirst);
  infeasible_rounds(Winning::kFewestOperations);
  deterministic_winner_has_fewest_operations();
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    histories(Winning::kFirst, seed);
    histories(Winning::kFewestOperations, seed);
  }
  deterministic_twice();
  overtaken_while_made();
  for (const std::string_view winner : {"incremental_ssp", "relaxation", "network_simplex"}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) losers_adopt_all_of_the_answer(winner, seed);
  }
  return 0;
}
