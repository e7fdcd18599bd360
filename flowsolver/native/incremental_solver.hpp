// Re-optimisation after changes, whatever the method: owns the network, hands out ids, checks
// ranges, tells the engine (engine.hpp) of every change, and finds out what flow changed from one
// optimum to the next.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "certificate.hpp"
#include "control.hpp"
#include "engine.hpp"
#include "id_pool.hpp"
#include "network.hpp"
#include "solve.hpp"

namespace flowsolver {

struct ChangedFlow {
  std::vector<ArcId> arcs;  // ascending
  std::vector<std::int64_t> flow;
};

// Ids. Nodes and arcs keep their id for life. Ids of removed ones are handed out again, last
// removed first. One that was live at the last kOptimal resolve, so that `flow` and `changed_flow`
// may tell of it, means one thing until the next kOptimal. Any other comes back after the next
// resolve, whatever its status, so that rounds without an answer do not use up ids. Between two
// resolves no id changes its meaning.
//
// Preconditions (checked by the caller, see `live_node`, `live_arc`): ids given are live,
// capacities are >= 0, a removed id occurs once. Not thread-safe, except that `cancel` may be
// called from any thread.
class IncrementalSolver {
 public:
  using MakeEngine = flowsolver::MakeEngine;
  using SolveCold = std::function<Solution(const Network& network, const Control& control)>;

  // Both copy the network.
  IncrementalSolver(const Network& network, const Algorithm& algorithm);
  // Any engine, such as a RaceEngine; and how the same is solved from scratch.
  IncrementalSolver(const Network& network, MakeEngine make_engine, SolveCold solve_cold);

  NodeId add_node(std::int64_t supply);
  ArcId add_arc(NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost);
  void remove_nodes(std::span<const NodeId> nodes);  // and the arcs at them
  void remove_arc(ArcId arc);
  void set_capacity(ArcId arc, std::int64_t capacity);
  void set_cost(ArcId arc, std::int64_t cost);
  void set_supply(NodeId node, std::int64_t supply);

  // Re-optimises. The work is that of the changes since the last call. After any status but
  // kOptimal the changes made so far remain, and flow and cost are still those of the last
  // kOptimal.
  Status resolve();
  // For a budget: set before resolve, which then ends with kBudget; the next one goes on from
  // there. When kStopsInARow have been stopped there, each of those that follow makes at least one
  // step that lasts (Engine::steps_last), however small its budget. What the engine of a method
  // without such steps has got to is handed to shortest paths then, up to the next kOptimal. So
  // finitely many resolves end, whatever the algorithm and the budget.
  Control& control() { return control_; }
  // The running resolve ends with kCancelled, unless it is past its last look at the flag and ends
  // as it would have; if none is running, the next one does. In either case no other one does.
  void cancel() { control_.cancel(); }

  bool live_node(std::int64_t node) const;
  bool live_arc(std::int64_t arc) const;
  // with gaps at removed ids (capacity and supply 0)
  const Network& network() const { return network_; }
  std::span<const std::uint8_t> live_nodes() const { return node_alive_; }
  std::span<const std::uint8_t> live_arcs() const { return arc_alive_; }

  std::int64_t cost() const { return cost_; }
  std::span<const std::int64_t> flow() const { return flow_; }
  // Flow reached so far, per arc id: the optimum, or after kBudget and kCancelled whatever there
  // is, balanced or not.
  std::vector<std::int64_t> flow_reached() const;
  bool solved() const { return solved_; }  // no change since the last resolve, which ended kOptimal
  std::vector<std::int64_t> potential() const;   // prices; optimal duals when solved()
  const Stats& stats() const { return stats_; }  // of the last resolve
  // Live arcs whose flow differs between the last two kOptimal resolves (new arcs had none).
  const ChangedFlow& changed_flow() const { return changed_; }
  // The proof of the last resolve, if that ended kInfeasible, else empty: the nodes whose supply
  // cannot leave, ascending.
  std::span<const NodeId> cut() const { return cut_; }
  // Whether `cut` proves the network infeasible as it is now.
  CutCertificate certify_cut() const;
  // Precondition: solved(). Checks the state: all of it, or all arcs and balances at nodes that
  // the last resolve touched.
  Certificate certify() const;
  Certificate certify_touched() const;

 private:
  static constexpr int kStopsInARow = 8;

  std::int64_t flow_now(ArcId arc) const;
  std::int64_t price_now(NodeId v) const;
  bool engine_takes(std::int64_t magnitude) const;
  void drop_engine();
  bool should_change_engines() const;
  void ensure_engine();  // none when cancelled while it was made
  Status solve();
  Status run_engine();
  Status solve_cold();
  Status check_numbers();
  bool ids_fit_costs();
  void adopt_flow();
  void note_touched();
  void forget_arc(ArcId arc);  // the engine has been told, or there is none

  Network network_;
  std::vector<std::uint8_t> node_alive_, arc_alive_;
  std::size_t live_nodes_ = 0, live_arcs_ = 0;
  IdPool node_ids_, arc_ids_;
  __int128 supply_sum_ = 0, supply_magnitudes_ = 0, capacity_sum_ = 0;
  std::uint64_t cost_bound_ = 0;  // >= every |cost|

  // null: to be built by the next resolve, from the flow and prices below
  std::unique_ptr<Engine> engine_;
  NodeId root_ = kNone;
  std::vector<std::int64_t> warm_flow_, warm_price_;
  bool prices_drifted_ = false;
  int stops_ = 0;          // resolves in a row that ended kBudget
  bool stepping_ = false;  // engine_ was made to end a row of them
  bool solved_ = false;    // the last call of interest was a resolve that ended kOptimal
  // the engine's list of touched arcs does not cover the time since the last kOptimal
  bool compare_all_ = true;

  std::int64_t cost_ = 0;
  std::vector<std::int64_t> flow_;
  ChangedFlow changed_;
  std::vector<NodeId> cut_;
  Stats stats_;
  bool touched_all_ = false;  // the last resolve may have touched any node
  // else: nodes at touched arcs, and nodes whose price moved; may repeat
  std::vector<NodeId> touched_, repriced_;
  MakeEngine make_engine_;
  SolveCold solve_cold_;
  Control control_;
};

}  // namespace flowsolver
