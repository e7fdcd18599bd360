// What keeps the state of an incremental solve (a flow, prices, and whatever its method needs)
// under changes to the network. incremental_solver.hpp owns the network, checks ranges and ids,
// tells an engine of every change, and runs it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

struct FlowBefore {
  ArcId arc;
  std::int64_t flow;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Changes, each told after the network has it. Every one leaves a pseudoflow whose imbalances are
  // known. `tail` and `head` are the arc's.
  virtual void add_node(NodeId v, std::int64_t supply) = 0;
  virtual void remove_node(NodeId v) = 0;  // its arcs are removed already
  virtual void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
                       std::int64_t cost) = 0;
  virtual void remove_arc(ArcId arc, NodeId tail, NodeId head) = 0;
  virtual void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) = 0;
  virtual void set_cost(ArcId arc, NodeId tail, std::int64_t cost) = 0;
  virtual void change_supply(NodeId v, std::int64_t delta) = 0;

  // kOptimal, kInfeasible, kCancelled or kBudget; after the last two the next run goes on from what
  // was reached. Supplies balance and numbers are in range. kBadCostRange: the prices do not fit
  // this engine. Whoever runs it has kInfeasible proven (proven_infeasibility.hpp).
  virtual Status run(const Control& control, Stats& stats) = 0;
  // After kInfeasible: the cut that proves it, where it has been found already.
  virtual std::span<const NodeId> cut() const { return {}; }
  // After kInfeasible: nodes with excess that it found no way for, where those are known. The
  // search for a cut begins there.
  virtual std::vector<NodeId> unrouted_nodes() const { return {}; }
  // Whether every augmentation and every pivot brings it nearer to the end for good: of runs that
  // make one each, however small their budgets, finitely many get there. Others lose at a budget
  // what they were about.
  virtual bool makes_lasting_progress() const { return false; }

  // The state: optimal after kOptimal, else what was reached.
  virtual std::int64_t flow(ArcId arc, NodeId tail) const = 0;
  virtual std::int64_t price(NodeId v) const = 0;
  virtual __int128 cost() const = 0;
  // Another engine found the optimum of the same network: its flow and prices may be had as a start
  // of the next run.
  virtual void adopt(const Engine& winner) = 0;

  // Values beyond this are not given to it: it is made anew.
  virtual std::uint64_t value_limit() const = 0;
  // Prices have wandered so far (over very many rounds) that the next solve should start from zero.
  virtual bool prices_drifted() const = 0;

  // Whether it knows the arcs at a node and what a round touched, so that a round's work is that of
  // its changes. Only then may the following be called.
  virtual bool local() const = 0;
  // Appends the arcs at the nodes, some twice. At once for many: it may take a pass over what has
  // no place yet.
  virtual void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const = 0;
  // A change: removes the nodes with all arcs at them, and appends those, each once; where that is
  // less work than to be told of every arc. False: it has done nothing, and is to be told.
  virtual bool remove_with_arcs(std::span<const NodeId>, std::vector<ArcId>&) { return false; }
  // Arcs whose flow was touched, with their flow before, and nodes whose price moved, since
  // `begin_round`. Among the latter need not be tails of arcs that were touched or changed.
  virtual const std::vector<FlowBefore>& touched_arcs() const = 0;
  virtual const std::vector<NodeId>& repriced_nodes() const = 0;
  virtual void begin_round() = 0;
  // Further nodes whose price follows v's: they are not among the repriced ones.
  virtual void implicitly_priced_by(NodeId, std::vector<NodeId>&) const {}
};

// Spans as in method.hpp's Start. `network` and `alive` stay valid as long as the engine lives and
// follow the changes.
struct EngineStart {
  const Network& network;
  const std::vector<std::uint8_t>& alive;  // per arc
  NodeId root;                             // the largest sink
  std::span<const std::int64_t> flow;
  std::span<const std::int64_t> price;  // 0 at the root
};

// Null when cancelled meanwhile.
using MakeEngine = std::function<std::unique_ptr<Engine>(const EngineStart& start,
                                                         const Control& control, Stats& stats)>;

}  // namespace flowsolver
