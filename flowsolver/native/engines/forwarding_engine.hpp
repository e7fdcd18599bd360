// An engine that passes every call on to another one: a base class for engines that change one
// thing about an engine that exists, such as how it runs.
//
// A derived class overrides what it changes. The inner engine may be replaced between calls.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine.hpp"

namespace flowsolver {

class ForwardingEngine : public Engine {
 public:
  void add_node(NodeId v, std::int64_t supply) override { inner_->add_node(v, supply); }
  void remove_node(NodeId v) override { inner_->remove_node(v); }
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    inner_->add_arc(arc, tail, head, capacity, cost);
  }
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override {
    inner_->remove_arc(arc, tail, head);
  }
  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override {
    inner_->set_capacity(arc, tail, head, capacity);
  }
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    inner_->set_cost(arc, tail, cost);
  }
  void change_supply(NodeId v, std::int64_t delta) override { inner_->change_supply(v, delta); }

  Status run(const Control& control, Stats& stats) override { return inner_->run(control, stats); }
  std::span<const NodeId> cut() const override { return inner_->cut(); }
  std::vector<NodeId> unrouted_nodes() const override { return inner_->unrouted_nodes(); }
  bool keeps_progress() const override { return inner_->keeps_progress(); }

  std::int64_t flow(ArcId arc, NodeId tail) const override { return inner_->flow(arc, tail); }
  std::int64_t price(NodeId v) const override { return inner_->price(v); }
  __int128 cost() const override { return inner_->cost(); }
  void adopt(const Engine& winner) override { inner_->adopt(winner); }
  std::uint64_t value_limit() const override { return inner_->value_limit(); }
  bool prices_drifted() const override { return inner_->prices_drifted(); }

  bool local() const override { return inner_->local(); }
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override {
    inner_->incident_arcs(nodes, arcs);
  }
  bool remove_with_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) override {
    return inner_->remove_with_arcs(nodes, arcs);
  }
  const std::vector<FlowBefore>& touched_arcs() const override { return inner_->touched_arcs(); }
  const std::vector<NodeId>& repriced_nodes() const override { return inner_->repriced_nodes(); }
  void begin_round() override { inner_->begin_round(); }
  void implicitly_priced_by(NodeId v, std::vector<NodeId>& nodes) const override {
    inner_->implicitly_priced_by(v, nodes);
  }

 protected:
  ForwardingEngine() = default;
  explicit ForwardingEngine(std::unique_ptr<Engine> inner) : inner_(std::move(inner)) {}

  Engine& inner() const { return *inner_; }
  void set_inner(std::unique_ptr<Engine> inner) { inner_ = std::move(inner); }

 private:
  std::unique_ptr<Engine> inner_;  // not null once the derived class is constructed
};

}  // namespace flowsolver
