// The engine of a first solve that was stopped at a budget, until it is done (incremental_ssp.hpp,
// "Start").
//
// It goes on from where the solve was stopped: by shortest paths, with as much patience as a first
// solve has, then by cost scaling from nothing; or by cost scaling from its own flow and prices, if
// that had taken over already. So what is counted until the end is at most a few times that of a
// solve that is not stopped. From then on it is the engine it has made.
//
// Termination. Cost scaling need not get on in resolves whose budgets are less than its phases
// take. After a few that were stopped in it, shortest paths go on from its flow and prices, and
// stay: each augmentation is progress that lasts.
#pragma once

#include <memory>
#include <vector>

#include "engine.hpp"

namespace flowsolver {

class FirstSolve final : public Engine {
 public:
  using MakeEngine = std::unique_ptr<Engine> (*)(const EngineStart& start, const Control& control);

  // `start`: where the solve was stopped. `scaling`: by cost scaling. `make`: the engine for later;
  // throws Stopped.
  FirstSolve(const EngineStart& start, bool scaling, std::int64_t patience, MakeEngine make,
             const Control& control);

  void add_node(NodeId v, std::int64_t supply) override { engine_->add_node(v, supply); }
  void remove_node(NodeId v) override { engine_->remove_node(v); }
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    engine_->add_arc(arc, tail, head, capacity, cost);
  }
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override {
    engine_->remove_arc(arc, tail, head);
  }
  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override {
    engine_->set_capacity(arc, tail, head, capacity);
  }
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    engine_->set_cost(arc, tail, cost);
  }
  void change_supply(NodeId v, std::int64_t delta) override { engine_->change_supply(v, delta); }

  Status run(const Control& control, Stats& stats) override;
  bool steps_last() const override { return !scaling_; }

  std::span<const NodeId> cut() const override { return engine_->cut(); }
  std::vector<NodeId> unsent_nodes() const override { return engine_->unsent_nodes(); }
  std::int64_t flow(ArcId arc, NodeId tail) const override { return engine_->flow(arc, tail); }
  std::int64_t price(NodeId v) const override { return engine_->price(v); }
  __int128 cost() const override { return engine_->cost(); }
  void adopt(const Engine& winner) override { engine_->adopt(winner); }
  std::uint64_t value_limit() const override { return engine_->value_limit(); }
  bool prices_drifted() const override { return engine_->prices_drifted(); }

  // before, engines are exchanged
  bool local() const override { return settled_ && engine_->local(); }
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override {
    engine_->incident_arcs(nodes, arcs);
  }
  bool remove_with_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) override {
    return engine_->remove_with_arcs(nodes, arcs);
  }
  const std::vector<FlowBefore>& touched_arcs() const override { return engine_->touched_arcs(); }
  const std::vector<NodeId>& repriced_nodes() const override { return engine_->repriced_nodes(); }
  void begin_round() override { engine_->begin_round(); }
  void priced_by(NodeId v, std::vector<NodeId>& nodes) const override {
    engine_->priced_by(v, nodes);
  }

 private:
  static constexpr int kTries = 2;  // of cost scaling

  Status run_with_patience(const Control& control, Stats& stats);
  Status run_scaling(const Control& control, Stats& stats);
  void settle(const Control& control, Stats& stats);

  const Network& network_;
  const std::vector<std::uint8_t>& alive_;
  const NodeId root_;
  const std::int64_t patience_;  // operations
  const MakeEngine make_;
  std::unique_ptr<Engine> engine_;
  bool scaling_;  // engine_ is cost scaling's, not one of make_
  int tries_ = 0;
  bool settled_ = false;  // engine_ is the one that stays
};

}  // namespace flowsolver
