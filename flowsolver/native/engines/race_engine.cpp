#include "engines/race_engine.hpp"

#include <algorithm>
#include <utility>

#include "engines/proven_infeasibility.hpp"
#include "engines/warm_start.hpp"
#include "graph/start_state.hpp"

namespace flowsolver {

namespace {

class RaceEngine final : public WarmStartState {
 public:
  RaceEngine(const std::vector<const Algorithm*>& racers, WinnerRule winner_rule,
             const EngineStart& start, RaceReport& report)
      : WarmStartState(start), root_(start.root), winner_rule_(winner_rule), report_(report) {
    for (const Algorithm* algorithm : racers) racers_.push_back({algorithm, nullptr, {}});
  }

  void add_node(NodeId v, std::int64_t supply) override {
    WarmStartState::add_node(v, supply);
    apply_to_engines(&Engine::add_node, v, supply);
  }

  void remove_node(NodeId v) override {
    WarmStartState::remove_node(v);
    apply_to_engines(&Engine::remove_node, v);
  }

  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    WarmStartState::add_arc(arc, tail, head, capacity, cost);
    apply_to_engines(&Engine::add_arc, arc, tail, head, capacity, cost);
  }

  void remove_arc(ArcId arc, NodeId tail, NodeId head) override {
    WarmStartState::remove_arc(arc, tail, head);
    apply_to_engines(&Engine::remove_arc, arc, tail, head);
  }

  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override {
    WarmStartState::set_capacity(arc, tail, head, capacity);
    apply_to_engines(&Engine::set_capacity, arc, tail, head, capacity);
  }

  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    apply_to_engines(&Engine::set_cost, arc, tail, cost);
  }
  void change_supply(NodeId v, std::int64_t delta) override {
    apply_to_engines(&Engine::change_supply, v, delta);
  }
  Status run(const Control& control, Stats& stats) override {
    store_cut({});
    Outcome outcome;
    try {
      outcome = run_racers(racers_.size(), winner_rule_, control,
                           [&](std::size_t i, const Control& own, Stats& counted) {
                             Racer& racer = racers_[i];
                             try {
                               return run_racer(racer, control, own, counted);
                             } catch (...) {
                               racer.engine.reset();  // its state is undefined
                               throw;
                             }
                           });
    } catch (...) {
      conclude_round({});
      throw;
    }
    stats.add(outcome.stats);
    report_.stop_duration = outcome.stop_duration;
    conclude_round(outcome);
    return outcome.status;
  }

  // An engine whose state is the stored answer gives exact values.
  std::int64_t flow(ArcId arc, NodeId tail) const override {
    return synced_racer_ != nullptr ? synced_racer_->engine->flow(arc, tail)
                                    : WarmStartState::flow(arc, tail);
  }
  std::int64_t price(NodeId v) const override {
    return synced_racer_ != nullptr ? synced_racer_->engine->price(v) : WarmStartState::price(v);
  }
  __int128 cost() const override {
    return synced_racer_ != nullptr ? synced_racer_->engine->cost() : WarmStartState::cost();
  }
  std::uint64_t value_limit() const override {
    std::uint64_t limit = WarmStartState::value_limit();
    for (const Racer& racer : racers_) {
      if (racer.engine != nullptr) limit = std::min(limit, racer.engine->value_limit());
    }
    return limit;
  }

  bool prices_drifted() const override {
    return knows_touched_ ? synced_racer_->engine->prices_drifted()
                          : WarmStartState::prices_drifted();
  }

  bool local() const override { return knows_touched_; }
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override {
    synced_racer_->engine->incident_arcs(nodes, arcs);
  }
  const std::vector<FlowBefore>& touched_arcs() const override {
    return synced_racer_->engine->touched_arcs();
  }
  const std::vector<NodeId>& repriced_nodes() const override {
    return synced_racer_->engine->repriced_nodes();
  }
  void implicitly_priced_by(NodeId v, std::vector<NodeId>& nodes) const override {
    synced_racer_->engine->implicitly_priced_by(v, nodes);
  }
  void begin_round() override { synced_racer_->engine->begin_round(); }

 private:
  struct Racer {
    const Algorithm* algorithm;
    std::unique_ptr<Engine> engine;  // null: not made yet, or the algorithm has none
    Solution solution;      // without an engine: the solution of this round; with one, only a cut
    bool outdated = false;  // its engine must be made again from the stored answer
    bool rebuilt = false;   // its engine was made in this round
    bool lost_before_engine = false;  // it lost the last round before its engine was made
  };

  // Runs in the racer's thread. Meanwhile nothing changes in what the racers share: the network and
  // the stored answer. `control` is the racer's, `round` that of all.
  Status run_racer(Racer& racer, const Control& round, const Control& control, Stats& stats) const {
    if (racer.algorithm->make_own_engine == nullptr) {
      racer.solution = racer.algorithm->solve(network_, start(), control);
      stats = racer.solution.stats;
      const Status status = racer.solution.status;
      // freed in the racer's thread, not by the waiting one
      if (!is_answer(status) && status != Status::kBudget) racer.solution = {};
      return status;
    }
    if (racer.outdated) racer.engine.reset();
    racer.outdated = false;
    if (racer.engine == nullptr) {
      const Start from = start();
      const std::vector<std::int64_t> price = relative_to_root(from.price, root_);
      const Control cancellation_from_round(round);
      const Control& making = racer.lost_before_engine ? cancellation_from_round : control;
      racer.engine = racer.algorithm->make_own_engine({network_, alive_, root_, from.flow, price},
                                                      making, stats);
      racer.rebuilt = true;
      if (racer.engine == nullptr) return Status::kCancelled;
    }
    ProvenRun run = run_proven(racer.engine, {network_, alive_, root_, {}, {}},
                               racer.algorithm->make_own_engine, control, stats);
    racer.rebuilt |= run.rebuilt;
    racer.solution.cut = std::move(run.cut);
    return run.status;
  }

  void conclude_round(const Outcome& outcome) {
    Racer& leader = racers_[outcome.leader];
    knows_touched_ = false;
    for (Racer& racer : racers_) {
      if (!racer.rebuilt && racer.engine != nullptr) continue;
      if (synced_racer_ == &racer) synced_racer_ = nullptr;
      if (last_to_answer_ == &racer) last_to_answer_ = nullptr;
      racer.rebuilt = false;
    }
    const bool has_optimum =
        // so that the engine is made from an optimum, not by a solve
        outcome.status == Status::kOptimal;
    for (Racer& racer : racers_)
      racer.lost_before_engine =
          racer.engine == nullptr && has_optimum && winner_rule_ == WinnerRule::kFirst;
    const bool answered = is_answer(outcome.status);
    if (outcome.status == Status::kOptimal || outcome.status == Status::kBudget)
      store_state_of(leader, answered);
    if (answered) {
      store_cut(std::move(leader.solution.cut));
      report_.winner = leader.algorithm;
      sync_losers(leader, outcome.status);
    }
    for (Racer& racer : racers_) racer.solution = {};
  }

  void sync_losers(const Racer& winner, Status status) {
    for (Racer& racer : racers_) {
      if (&racer == &winner || racer.engine == nullptr) continue;
      if (winner_rule_ == WinnerRule::kFewestOperations) {
        racer.outdated = true;
        if (synced_racer_ == &racer) synced_racer_ = nullptr;
      } else if (status == Status::kOptimal) {
        racer.engine->adopt(*this);
        // if it wins the next round, everything is compared
        if (racer.engine->local()) racer.engine->begin_round();
      }
    }
  }

  void store_state_of(Racer& leader, bool answered) {
    if (leader.engine == nullptr) {
      store(std::move(leader.solution));
      synced_racer_ = nullptr;
    } else if (&leader == synced_racer_) {
      adopt_touched(*leader.engine);
    } else {
      adopt(*leader.engine);
      synced_racer_ = leader.engine->local() ? &leader : nullptr;
    }
    if (!answered) return;
    knows_touched_ = synced_racer_ == &leader && last_to_answer_ == &leader;
    // nothing else needs what it touched
    if (synced_racer_ == &leader && !knows_touched_) leader.engine->begin_round();
    last_to_answer_ = &leader;
  }

  template <class... What>
  void apply_to_engines(void (Engine::*change)(What...), What... what) {
    for (Racer& racer : racers_) {
      if (racer.engine != nullptr && !racer.outdated) (racer.engine.get()->*change)(what...);
    }
  }

  const NodeId root_;
  const WinnerRule winner_rule_;
  std::vector<Racer> racers_;
  RaceReport& report_;
  // The racer with a local engine whose state differs from the stored answer only in what the
  // engine has touched.
  Racer* synced_racer_ = nullptr;
  const Racer* last_to_answer_ = nullptr;
  bool knows_touched_ = false;  // synced_racer_ gave the last two answers
};

}  // namespace

std::unique_ptr<Engine> make_race_engine(const std::vector<const Algorithm*>& racers,
                                         WinnerRule winner_rule, const EngineStart& start,
                                         RaceReport& report) {
  return std::make_unique<RaceEngine>(racers, winner_rule, start, report);
}

}  // namespace flowsolver
