// The state of a warm start: the flow and prices of the last answer, kept up to date while the
// network changes. A method without an engine of its own starts from it (WarmStartEngine), and so
// do the racers of a race (race_engine.hpp).
//
// Each change costs O(1). The flow stays within the capacities. It need not balance, and the prices
// need not prove anything about it.
#pragma once

#include <utility>
#include <vector>

#include "engine.hpp"
#include "method.hpp"

namespace flowsolver {

class WarmStartState : public Engine {
 public:
  explicit WarmStartState(const EngineStart& start);

  void add_node(NodeId v, std::int64_t supply) override;
  void remove_node(NodeId v) override;
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override;
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override;
  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override;
  void set_cost(ArcId, NodeId, std::int64_t) override {}
  void change_supply(NodeId, std::int64_t) override {}

  std::span<const NodeId> cut() const override { return cut_; }
  std::int64_t flow(ArcId arc, NodeId) const override { return flow_[arc]; }
  std::int64_t price(NodeId v) const override { return price_[v]; }
  __int128 cost() const override;
  void adopt(const Engine& winner) override;
  // differences of such values fit as well
  std::uint64_t value_limit() const override { return std::uint64_t{1} << 61; }
  bool prices_drifted() const override;

  bool local() const override { return false; }
  void incident_arcs(std::span<const NodeId>, std::vector<ArcId>&) const override {}
  const std::vector<FlowBefore>& touched_arcs() const override { return no_touched_arcs_; }
  const std::vector<NodeId>& repriced_nodes() const override { return no_repriced_nodes_; }
  void begin_round() override {}

 protected:
  // The start of the next solve: empty, that is from scratch, until there was an answer.
  Start start() const { return has_solution_ ? Start{flow_, price_} : Start{}; }
  void store(Solution&& answer);
  void store_cut(std::vector<NodeId> cut) { cut_ = std::move(cut); }  // the cut of the last run
  // Copies what the engine touched since its last begin_round; everything else is equal already.
  // Prices that follow others' (Engine::implicitly_priced_by) are not updated, which a start
  // allows.
  void adopt_touched(const Engine& winner);

  const Network& network_;
  const std::vector<std::uint8_t>& alive_;

 private:
  bool has_solution_;
  std::vector<std::int64_t> flow_, price_;
  std::vector<NodeId> cut_;
  std::vector<FlowBefore> no_touched_arcs_;
  std::vector<NodeId> no_repriced_nodes_;
};

// An engine for any method: the flow and prices of the last answer are the start of the next solve.
//
// A change costs O(1). A resolve reads the whole network, O(n + m), before the method does
// anything. That is little compared with what the plain references take; the other algorithms have
// engines of their own.
class WarmStartEngine final : public WarmStartState {
 public:
  WarmStartEngine(Method method, const EngineStart& start, bool keeps_progress = false)
      : WarmStartState(start), method_(method), keeps_progress_(keeps_progress) {}

  Status run(const Control& control, Stats& stats) override;
  bool keeps_progress() const override { return keeps_progress_; }

 private:
  Method method_;
  bool keeps_progress_;
};

}  // namespace flowsolver
