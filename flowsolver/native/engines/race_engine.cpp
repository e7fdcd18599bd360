#include "engines/race_engine.hpp"

#include <algorithm>
#include <utility>

#include "engines/proven_infeasibility.hpp"
#include "graph/start_state.hpp"

namespace flowsolver {

RaceEngine::RaceEngine(const std::vector<const Algorithm*>& racers, Winning winning,
                       const EngineStart& start, RaceReport& report)
    : KeptAnswer(start), root_(start.root), winning_(winning), report_(report) {
  for (const Algorithm* algorithm : racers) racers_.push_back({algorithm, nullptr, {}});
}

void RaceEngine::add_node(NodeId v, std::int64_t supply) {
  KeptAnswer::add_node(v, supply);
  tell_engines(&Engine::add_node, v, supply);
}

void RaceEngine::remove_node(NodeId v) {
  KeptAnswer::remove_node(v);
  tell_engines(&Engine::remove_node, v);
}

void RaceEngine::add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
                         std::int64_t cost) {
  KeptAnswer::add_arc(arc, tail, head, capacity, cost);
  tell_engines(&Engine::add_arc, arc, tail, head, capacity, cost);
}

void RaceEngine::remove_arc(ArcId arc, NodeId tail, NodeId head) {
  KeptAnswer::remove_arc(arc, tail, head);
  tell_engines(&Engine::remove_arc, arc, tail, head);
}

void RaceEngine::set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) {
  KeptAnswer::set_capacity(arc, tail, head, capacity);
  tell_engines(&Engine::set_capacity, arc, tail, head, capacity);
}

void RaceEngine::set_cost(ArcId arc, NodeId tail, std::int64_t cost) {
  tell_engines(&Engine::set_cost, arc, tail, cost);
}

void RaceEngine::change_supply(NodeId v, std::int64_t delta) {
  tell_engines(&Engine::change_supply, v, delta);
}

// In the racer's thread. Of what the racers share, the network and the kept answer, nothing changes
// meanwhile. `control` is the racer's, `round` that of all.
Status RaceEngine::run_racer(Racer& racer, const Control& round, const Control& control,
                             Stats& stats) const {
  if (racer.algorithm->make_own_engine == nullptr) {
    racer.solution = racer.algorithm->solve(network_, start(), control);
    stats = racer.solution.stats;
    const Status status = racer.solution.status;
    // freed here, not by who waits
    if (!is_answer(status) && status != Status::kBudget) racer.solution = {};
    return status;
  }
  if (racer.outdated) racer.engine.reset();
  racer.outdated = false;
  if (racer.engine == nullptr) {
    const Start from = start();
    const std::vector<std::int64_t> price = grounded(from.price, root_);
    const Control patient(round);
    const Control& making = racer.overtaken ? patient : control;
    racer.engine = racer.algorithm->make_own_engine({network_, alive_, root_, from.flow, price},
                                                    making, stats);
    racer.built_anew = true;
    if (racer.engine == nullptr) return Status::kCancelled;
  }
  ProvenRun run = run_proven(racer.engine, {network_, alive_, root_, {}, {}},
                             racer.algorithm->make_own_engine, control, stats);
  racer.built_anew |= run.made_anew;
  racer.solution.cut = std::move(run.cut);
  return run.status;
}

Status RaceEngine::run(const Control& control, Stats& stats) {
  keep_cut({});
  Outcome outcome;
  try {
    outcome = run_contest(racers_.size(), winning_, control,
                          [&](std::size_t i, const Control& own, Stats& counted) {
                            Racer& racer = racers_[i];
                            try {
                              return run_racer(racer, control, own, counted);
                            } catch (...) {
                              racer.engine.reset();  // in no state to go on from
                              throw;
                            }
                          });
  } catch (...) {
    settle({});
    throw;
  }
  stats.add(outcome.stats);
  report_.stopping = outcome.stopping;
  settle(outcome);
  return outcome.status;
}

void RaceEngine::settle(const Outcome& outcome) {
  Racer& leader = racers_[outcome.leader];
  touches_known_ = false;
  for (Racer& racer : racers_) {
    if (!racer.built_anew && racer.engine != nullptr) continue;
    if (in_step_ == &racer) in_step_ = nullptr;
    if (last_to_answer_ == &racer) last_to_answer_ = nullptr;
    racer.built_anew = false;
  }
  const bool known = outcome.status == Status::kOptimal;  // so that making an engine is no solve
  for (Racer& racer : racers_)
    racer.overtaken = racer.engine == nullptr && known && winning_ == Winning::kFirst;
  const bool answered = is_answer(outcome.status);
  if (outcome.status == Status::kOptimal || outcome.status == Status::kBudget)
    keep_state_of(leader, answered);
  if (answered) {
    keep_cut(std::move(leader.solution.cut));
    report_.winner = leader.algorithm;
    hand_to_losers(leader, outcome.status);
  }
  for (Racer& racer : racers_) racer.solution = {};
}

void RaceEngine::hand_to_losers(const Racer& winner, Status status) {
  for (Racer& racer : racers_) {
    if (&racer == &winner || racer.engine == nullptr) continue;
    if (winning_ == Winning::kFewestOperations) {
      racer.outdated = true;
      if (in_step_ == &racer) in_step_ = nullptr;
    } else if (status == Status::kOptimal) {
      racer.engine->adopt(*this);
      // when it wins, everything is compared
      if (racer.engine->local()) racer.engine->begin_round();
    }
  }
}

void RaceEngine::keep_state_of(Racer& leader, bool answered) {
  if (leader.engine == nullptr) {
    keep(std::move(leader.solution));
    in_step_ = nullptr;
  } else if (&leader == in_step_) {
    adopt_touched(*leader.engine);
  } else {
    adopt(*leader.engine);
    in_step_ = leader.engine->local() ? &leader : nullptr;
  }
  if (!answered) return;
  touches_known_ = in_step_ == &leader && last_to_answer_ == &leader;
  // no one else can make use of what it touched
  if (in_step_ == &leader && !touches_known_) leader.engine->begin_round();
  last_to_answer_ = &leader;
}

__int128 RaceEngine::cost() const {
  return in_step_ != nullptr ? in_step_->engine->cost() : KeptAnswer::cost();
}

std::uint64_t RaceEngine::value_limit() const {
  std::uint64_t limit = KeptAnswer::value_limit();
  for (const Racer& racer : racers_) {
    if (racer.engine != nullptr) limit = std::min(limit, racer.engine->value_limit());
  }
  return limit;
}

bool RaceEngine::prices_drifted() const {
  return touches_known_ ? in_step_->engine->prices_drifted() : KeptAnswer::prices_drifted();
}

const std::vector<FlowBefore>& RaceEngine::touched_arcs() const {
  return in_step_->engine->touched_arcs();
}

const std::vector<NodeId>& RaceEngine::repriced_nodes() const {
  return in_step_->engine->repriced_nodes();
}

void RaceEngine::begin_round() { in_step_->engine->begin_round(); }

}  // namespace flowsolver
