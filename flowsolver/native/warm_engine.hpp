// An engine for any method: the flow and prices of the last answer are the start of the next.
//
// A change costs O(1); a resolve reads the whole network, O(n + m), before its method does anything. That is little beside what
// these methods take, and why only the local engine of incremental_ssp.hpp answers a small change in a fraction of a millisecond.
#pragma once

#include <vector>

#include "engine.hpp"
#include "method.hpp"

namespace flowsolver {

class WarmEngine final : public Engine {
 public:
  WarmEngine(Method method, const EngineStart& start);

  void add_node(NodeId v, std::int64_t supply) override;
  void remove_node(NodeId v) override;
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost) override;
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override;
  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override;
  void set_cost(ArcId, NodeId, std::int64_t) override {}
  void change_supply(NodeId, std::int64_t) override {}
  Status run(const Control& control, Stats& stats) override;

  std::int64_t flow(ArcId arc, NodeId) const override { return flow_[arc]; }
  std::int64_t price(NodeId v) const override { return price_[v]; }
  __int128 cost() const override;
  void adopt(const Engine& winner) override;
  std::uint64_t value_limit() const override { return static_cast<std::uint64_t>(kInfinity); }
  bool prices_drifted() const override;

  bool local() const override { return false; }
  void incident_arcs(NodeId, std::vector<ArcId>&) const override {}
  const std::vector<FlowBefore>& touched_arcs() const override { return nothing_touched_; }
  const std::vector<NodeId>& repriced_nodes() const override { return nothing_repriced_; }
  void begin_round() override {}

 private:
  Method method_;
  const Network& network_;
  const std::vector<std::uint8_t>& alive_;
  std::vector<std::int64_t> flow_, price_;
  std::vector<FlowBefore> nothing_touched_;
  std::vector<NodeId> nothing_repriced_;
};

}  // namespace flowsolver
