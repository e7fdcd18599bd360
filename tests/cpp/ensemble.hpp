// Solvers of one network that all get the same changes: one for every algorithm, some with other
// settings, and races. Each
// resolve must end as a certified solve from scratch does.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "check_observer.hpp"
#include "race.hpp"
#include "networks.hpp"

namespace flowsolver {

class Ensemble {
 public:
  explicit Ensemble(const Network& network) {
    for (const Algorithm& algorithm : algorithms())
      solvers_.push_back(std::make_unique<IncrementalSolver>(network, algorithm));
    for (const Algorithm& algorithm : variants())
      solvers_.push_back(std::make_unique<IncrementalSolver>(network, algorithm));
    add_race({&variants().back(), find_algorithm("cost_scaling")}, WinnerRule::kFewestOperations);
  }

  void add_race(const std::vector<const Algorithm*>& racers, WinnerRule winner_rule) {
    reports_.push_back(std::make_unique<RaceReport>());
    solvers_.push_back(std::make_unique<IncrementalSolver>(
        first().network(),
        [racers, winner_rule, report = reports_.back().get()](const EngineStart& start,
                                                              const Control&, Stats&) {
          return make_race_engine(racers, winner_rule, start, *report);
        },
        [racers, winner_rule](const Network& network, const Control& control) {
          return race(network, racers, {}, control, winner_rule).solution;
        }));
  }

  const IncrementalSolver& first() const { return *solvers_[0]; }
  // Of each solver: all that were not stopped, or those that ended so.
  std::int64_t resolves() const { return resolves_; }
  std::int64_t ended(Status status) const { return ended_[static_cast<std::size_t>(status)]; }

  // All must hand out the same ids.
  template <class Change>
  std::uint32_t add(Change change) {
    const std::uint32_t id = change(*solvers_[0]);
    for (std::size_t k = 1; k < solvers_.size(); ++k) CHECK(change(*solvers_[k]) == id);
    return id;
  }
  template <class Change>
  void apply(Change change) {
    for (const auto& solver : solvers_) change(*solver);
  }

  void resolve() {
    const Solution fresh = fresh_solution();
    ++resolves_;
    ++ended_[static_cast<std::size_t>(fresh.status)];
    for (const auto& solver : solvers_) {
      solver->control().limit_operations(kEndless);
      check_resolve(*solver, fresh);
    }
  }

  void resolve_within(std::int64_t operations) {
    const Solution fresh = fresh_solution();
    bool all_done = true;
    for (const auto& solver : solvers_) {
      solver->control().limit_operations(operations);
      const Status status = solver->resolve();
      CHECK(status == Status::kBudget || status == fresh.status);
      all_done = all_done && status != Status::kBudget;
      const std::vector<std::int64_t> flow = solver->flow_reached();
      for (ArcId a = 0; a < flow.size(); ++a)
        CHECK(flow[a] >= 0 && flow[a] <= solver->network().capacity[a]);
    }
    if (!all_done) resolve();  // ids are free again in all or in none
  }

  // Each solver is cancelled, or reaches its budget, at its k-th check, several times in a row.
  void resolve_stopped(CheckObserver::Stop how, std::int64_t at_check, std::int64_t times = 1) {
    const Solution fresh = fresh_solution();
    const Status stopped =
        how == CheckObserver::Stop::kCancel ? Status::kCancelled : Status::kBudget;
    for (const auto& solver : solvers_) {
      Status status = stopped;
      for (std::int64_t k = 0; k < times && status == stopped; ++k) {
        CheckObserver observer;
        observer.attach_to(solver->control(), how, at_check);
        status = solver->resolve();
        CHECK(status == stopped || status == fresh.status);
        CHECK(status != Status::kCancelled || observer.checks() == at_check);
      }
      solver->control().poll({});
      solver->control().limit_operations(kInfinity);
    }
    resolve();
  }

  void resolve_cancelled() {
    for (const auto& solver : solvers_) {
      solver->cancel();
      CHECK(solver->resolve() == Status::kCancelled);
    }
    resolve();
  }

 private:
  static constexpr std::int64_t kEndless = 300'000'000;

  // By one algorithm after the other.
  Solution fresh_solution() {
    const auto all = algorithms();
    return from_scratch(live_part(first()), all[fresh_++ % all.size()]);
  }

  std::vector<std::unique_ptr<RaceReport>> reports_;
  std::vector<std::unique_ptr<IncrementalSolver>> solvers_;
  std::size_t fresh_ = 0;
  std::int64_t resolves_ = 0;
  std::array<std::int64_t, static_cast<std::size_t>(Status::kUnbounded) + 1> ended_{};
};

}  // namespace flowsolver
