// What an algorithm is, in order: a method, which solves from arrays; an engine, which keeps the
// state of a solve (a flow, prices and whatever its algorithm needs) while the network changes; the
// engine that any method gets by starting from the last answer; the proof that every kInfeasible
// comes with; and the registry.
//
// A new algorithm is a header and a source file that define a Method, and one row in solve.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

// What a solve may start from. A span is empty (zero flow, zero prices) or as long as the network's
// arrays. The flow satisfies 0 <= flow <= capacity; it need not balance, and the prices need not
// prove anything about it.
struct Start {
  std::span<const std::int64_t> flow;   // per arc
  std::span<const std::int64_t> price;  // per node

  std::int64_t flow_of(ArcId arc) const { return flow.empty() ? 0 : flow[arc]; }
  std::int64_t price_of(NodeId v) const { return price.empty() ? 0 : price[v]; }
};

// Solves the network from `start`.
//
// - kOptimal: flow (per arc), potential (per node) and cost certify each other (certificate.hpp).
// - kBudget: flow and potential are the best state reached. The flow is within capacities but need
//   not balance; cost is its cost, saturated at the ends of int64.
// - kInfeasible: the flow is within capacities and leaves an excess for which the method found no
//   path. solve_proven adds the cut.
// - kCancelled: only the status and the stats are meaningful.
// - kUnbalanced, kBadCostRange, kBadCapacityRange: as check_ranges reports, before any work.
//
// Deterministic, except for when a deadline or a cancellation takes effect. Throws nothing but
// std::bad_alloc.
using Method =
    std::function<Solution(const Network& network, const Start& start, const Control& control)>;

struct FlowBefore {
  ArcId arc;
  std::int64_t flow;
};

// IncrementalSolver (incremental_solver.hpp) owns the network and the engine. It checks ids and
// ranges, passes every change to the engine, and runs it at each resolve.
class Engine {
 public:
  virtual ~Engine() = default;

  // Changes. Each is passed on after the network was changed. The engine updates its state, which
  // is then a pseudoflow whose imbalances are known. `tail` and `head` are the ends of the arc.
  virtual void add_node(NodeId v, std::int64_t supply) = 0;
  virtual void remove_node(NodeId v) = 0;  // its arcs were removed before
  virtual void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
                       std::int64_t cost) = 0;
  virtual void remove_arc(ArcId arc, NodeId tail, NodeId head) = 0;
  virtual void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) = 0;
  virtual void set_cost(ArcId arc, NodeId tail, std::int64_t cost) = 0;
  virtual void change_supply(NodeId v, std::int64_t delta) = 0;

  // Re-optimises. Called when supplies sum to zero and all numbers are in range. Returns kOptimal,
  // kInfeasible, kCancelled or kBudget; after the last two, the next run continues from the state
  // reached. kBadCostRange: the prices do not fit this engine's arithmetic. The caller has
  // kInfeasible proven (run_proven).
  virtual Status run(const Control& control, Stats& stats) = 0;
  // After kInfeasible: the cut that proves it, if the engine has found one; else empty.
  virtual std::span<const NodeId> cut() const { return {}; }
  // After kInfeasible: nodes with an excess that could not be routed, if they are known. The search
  // for a cut begins at them.
  virtual std::vector<NodeId> unrouted_nodes() const { return {}; }
  // Whether every augmentation and every pivot is progress that later runs keep. Then finitely many
  // runs that make one step each reach the optimum, however small their budgets. An engine without
  // this property may lose at a budget what it had begun.
  virtual bool keeps_progress() const { return false; }

  // The state: optimal after kOptimal, else the one reached.
  virtual std::int64_t flow(ArcId arc, NodeId tail) const = 0;
  virtual std::int64_t price(NodeId v) const = 0;
  virtual __int128 cost() const = 0;
  // Another engine found the optimum of the same network. Its flow and prices may be copied as a
  // start of the next run.
  virtual void adopt(const Engine& winner) = 0;
  // Whether its state after `adopt` depends on the winner's answer and on the changes so far, but
  // not on how far its own runs came.
  virtual bool adopts_exactly() const { return false; }
  // Whether a run takes no more than about what a solve from scratch would, because it makes one
  // itself.
  virtual bool solves_from_scratch() const { return false; }

  // The engine is given no capacity, cost or supply beyond this: it is rebuilt instead.
  virtual std::uint64_t value_limit() const = 0;
  // Whether prices have drifted so far over many rounds that the next solve should start from zero.
  virtual bool prices_drifted() const = 0;

  // Whether the engine knows the arcs at each node and what a round touched, so that the work of a
  // round depends on its changes only. The calls below are made only if it does.
  virtual bool local() const = 0;
  // Appends the arcs at the nodes; some may occur twice. One call for many nodes is cheaper than
  // many calls: it may take a pass over all unassigned sources.
  virtual void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const = 0;
  // A change: removes the nodes with all arcs at them and appends those arcs, each once. An engine
  // implements it where that is cheaper than a call for every arc. Returns false if it has done
  // nothing; the caller then removes each arc and node.
  virtual bool remove_with_arcs(std::span<const NodeId>, std::vector<ArcId>&) { return false; }
  // Since `begin_round`: the arcs whose flow was touched, with their flow before, and the nodes
  // whose price moved. Nodes whose prices follow from others' may be missing among the latter.
  virtual const std::vector<FlowBefore>& touched_arcs() const = 0;
  virtual const std::vector<NodeId>& repriced_nodes() const = 0;
  virtual void begin_round() = 0;
  // Appends nodes whose price follows from v's price and which are not among the repriced ones.
  virtual void implicitly_priced_by(NodeId, std::vector<NodeId>&) const {}
  // v's price, unless it follows from that of another node, will be asked for soon.
  virtual void fetch_price(NodeId) const {}
  // The arcs out of v will be looked at soon, and its price has been fetched.
  virtual void fetch_arcs(NodeId) const {}
  // Whether v's price follows from that of another node.
  virtual bool is_implicitly_priced(NodeId) const { return false; }
  // Appends the arcs that may violate optimality when v's price rises: those out of v, those into v
  // that carry flow, and perhaps others at v. `risen`: by node; if it is not empty, arcs between v
  // and nodes that are marked there, or priced by v (implicitly_priced_by), may be left out.
  virtual void arcs_bound_by(NodeId v, std::span<const std::uint8_t> risen,
                             std::vector<ArcId>& arcs) const {
    static_cast<void>(risen);
    incident_arcs({&v, 1}, arcs);
  }
};

// An engine that passes every call on to another one: a base class for engines that change one
// thing about an engine that exists, such as how it runs.
//
// A derived class overrides what it changes. The inner engine may be replaced between calls.
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
  bool adopts_exactly() const override { return inner_->adopts_exactly(); }
  bool solves_from_scratch() const override { return inner_->solves_from_scratch(); }
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
  void fetch_price(NodeId v) const override { inner_->fetch_price(v); }
  void fetch_arcs(NodeId v) const override { inner_->fetch_arcs(v); }
  bool is_implicitly_priced(NodeId v) const override { return inner_->is_implicitly_priced(v); }
  void arcs_bound_by(NodeId v, std::span<const std::uint8_t> risen,
                     std::vector<ArcId>& arcs) const override {
    inner_->arcs_bound_by(v, risen, arcs);
  }

 protected:
  ForwardingEngine() = default;
  explicit ForwardingEngine(std::unique_ptr<Engine> inner) : inner_(std::move(inner)) {}

  Engine& inner() const { return *inner_; }
  void set_inner(std::unique_ptr<Engine> inner) { inner_ = std::move(inner); }

 private:
  std::unique_ptr<Engine> inner_;  // not null once the derived class is constructed
};

// What an engine is made from. Spans are as in Start. `network` and `alive` outlive
// the engine and follow the changes.
struct EngineStart {
  const Network& network;
  const std::vector<std::uint8_t>& alive;  // per arc
  NodeId root;                             // the largest sink
  std::span<const std::int64_t> flow;
  std::span<const std::int64_t> price;  // 0 at the root
};

// Makes an engine; null when cancelled meanwhile.
using MakeEngine = std::function<std::unique_ptr<Engine>(const EngineStart& start,
                                                         const Control& control, Stats& stats)>;

// The state of a warm start: the flow and prices of the last answer, kept up to date while the
// network changes. A method without an engine of its own starts from it (WarmStartEngine), and so
// do the racers of a race (race.hpp).
//
// Each change costs O(1). The flow stays within the capacities. It need not balance, and the prices
// need not prove anything about it.
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
      : WarmStartState(start), method_(std::move(method)), keeps_progress_(keeps_progress) {}

  Status run(const Control& control, Stats& stats) override;
  bool keeps_progress() const override { return keeps_progress_; }

 private:
  Method method_;
  bool keeps_progress_;
};

// Proven infeasibility: kInfeasible comes with a cut (certificate.hpp), whatever algorithm found
// it.
//
// A method that ends with kInfeasible has found no path for some excess. Then a cut is searched for
// in the residual graph of its pseudoflow; the search finds one if there is any. If there is none,
// the method was wrong. This is counted in Stats::disproved, and the method solves the network
// again from scratch. If it is wrong again, cycle cancelling solves it, which finds a feasible flow
// first.
//
// All answers pass through here: those from scratch, those of racers before they count as answers
// (race.hpp), and those of engines.

// Calls method(network, start, control); after kInfeasible the solution has the cut.
Solution solve_proven(const Method& method, const Network& network, const Start& start,
                      const Control& control);

struct ProvenRun {
  Status status = Status::kCancelled;
  std::vector<NodeId> cut;  // after kInfeasible
  // the engine was replaced: what it has touched since begin_round is unknown
  bool rebuilt = false;
};

// Runs `engine`. `cold_start`: the start of an engine without flow and prices; `make` makes one.
// `engine` is null in the end if it was cancelled while being made again.
ProvenRun run_proven(std::unique_ptr<Engine>& engine, const EngineStart& cold_start,
                     const MakeEngine& make, const Control& control, Stats& stats);

// Settings of algorithms: which of a paper's techniques are used, for ablations. Those of one
// algorithm mean nothing to another (Algorithm::settings).
struct AlgorithmSettings {
  // Any algorithm: every round of a changing network is solved without flow and prices of earlier
  // ones (race.hpp, IncrementalSolver).
  bool from_scratch = false;
  // Cost scaling: by what eps is divided from phase to phase, at least 2; 0: the algorithm's own.
  std::int64_t alpha = 0;
  bool task_removal = true;        // cost scaling (cost_scaling.hpp)
  bool price_refine = true;        // cost scaling
  bool arc_prioritisation = true;  // relaxation (relaxation.hpp)
};

struct Algorithm {
  std::string_view name;
  std::string_view summary;
  Method method;
  // Makes the engine that keeps the algorithm's state under changes (incremental_solver.hpp). Null:
  // the method starts from the last answer (WarmStartEngine).
  MakeEngine make_own_engine = nullptr;
  // for a method without an engine: as Engine::keeps_progress
  bool keeps_progress = false;
  // The names of the settings that it has beside from_scratch, and what gives it others than the
  // defaults; null: it has none.
  std::span<const std::string_view> settings{};
  void (*configure)(const AlgorithmSettings& settings, Algorithm& algorithm) = nullptr;
  // a solve that ends with an answer has counted each arc as scanned (ArcGraph::build)
  bool counts_every_arc = false;
  // each round of a changing network is solved without the flow and prices of earlier ones
  bool from_scratch = false;

  // Calls the method; kInfeasible is proven.
  Solution solve(const Network& network, const Start& start, const Control& control) const;
  std::unique_ptr<Engine> make_engine(const EngineStart& start, const Control& control,
                                      Stats& stats) const;
};

std::span<const Algorithm> algorithms();                 // the first is the default
const Algorithm* find_algorithm(std::string_view name);  // null if there is none of that name
// The algorithm with these settings.
Algorithm configured(const Algorithm& algorithm, const AlgorithmSettings& settings);

}  // namespace flowsolver
