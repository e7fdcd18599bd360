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
#include "engines/warm_start.hpp"
#include "solve.hpp"

namespace flowsolver {

// What a race reports beside its answer.
struct RaceReport {
  const Algorithm* winner = nullptr;  // the winner of the last round that ended with an answer
  // how long the losers of the last round took to stop (race.hpp)
  Control::Clock::duration stop_duration{};
};

class RaceEngine final : public WarmStartState {
 public:
  // `racers`: two or more. `report` is kept up to date.
  RaceEngine(const std::vector<const Algorithm*>& racers, WinnerRule winner_rule,
             const EngineStart& start, RaceReport& report);

  void add_node(NodeId v, std::int64_t supply) override;
  void remove_node(NodeId v) override;
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override;
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override;
  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override;
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override;
  void change_supply(NodeId v, std::int64_t delta) override;
  Status run(const Control& control, Stats& stats) override;

  // An engine whose state is the stored answer gives exact values.
  std::int64_t flow(ArcId arc, NodeId tail) const override {
    return synced_racer_ != nullptr ? synced_racer_->engine->flow(arc, tail)
                                    : WarmStartState::flow(arc, tail);
  }
  std::int64_t price(NodeId v) const override {
    return synced_racer_ != nullptr ? synced_racer_->engine->price(v) : WarmStartState::price(v);
  }
  __int128 cost() const override;
  std::uint64_t value_limit() const override;
  bool prices_drifted() const override;

  bool local() const override { return knows_touched_; }
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override {
    synced_racer_->engine->incident_arcs(nodes, arcs);
  }
  const std::vector<FlowBefore>& touched_arcs() const override;
  const std::vector<NodeId>& repriced_nodes() const override;
  void implicitly_priced_by(NodeId v, std::vector<NodeId>& nodes) const override {
    synced_racer_->engine->implicitly_priced_by(v, nodes);
  }
  void begin_round() override;

 private:
  struct Racer {
    const Algorithm* algorithm;
    std::unique_ptr<Engine> engine;  // null: not made yet, or the algorithm has none
    Solution solution;      // without an engine: the solution of this round; with one, only a cut
    bool outdated = false;  // its engine must be made again from the stored answer
    bool rebuilt = false;   // its engine was made in this round
    bool lost_before_engine = false;  // it lost the last round before its engine was made
  };

  Status run_racer(Racer& racer, const Control& round, const Control& control, Stats& stats) const;
  void conclude_round(const Outcome& outcome);
  void sync_losers(const Racer& winner, Status status);
  void store_state_of(Racer& leader, bool answered);
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

}  // namespace flowsolver
