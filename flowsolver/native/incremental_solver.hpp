// Re-optimisation after changes, whatever the method: owns the network, tells the engine
// (engine.hpp) of every change, solves anew where that is quicker (cold_start.hpp), and finds out
// what flow changed from one optimum to the next.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "certificate.hpp"
#include "change_log.hpp"
#include "changing_network.hpp"
#include "cold_start.hpp"
#include "control.hpp"
#include "engine.hpp"
#include "live_network.hpp"
#include "lowered_capacities.hpp"
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

  // So many changes are about to be made: a round of many is handled as such from its first one.
  void expect_changes(std::size_t changes);
  NodeId add_node(std::int64_t supply);
  ArcId add_arc(NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost);
  void remove_nodes(std::span<const NodeId> nodes);  // and the arcs at them
  void remove_arc(ArcId arc);
  void set_capacity(ArcId arc, std::int64_t capacity);
  void set_cost(ArcId arc, std::int64_t cost);
  void set_supply(NodeId node, std::int64_t supply);

  // Re-optimises. The work is that of the changes since the last call, and where these are many no
  // more than that of a solve from scratch, about (cold_start.hpp). After any status but
  // kOptimal the changes made so far remain, and flow and cost are still those of the last
  // kOptimal.
  Status resolve();
  // For a budget: set before resolve, which then ends with kBudget; the next one goes on from
  // there. When kMaxBudgetStops have been stopped there, each of those that follow makes at least
  // one step that lasts (Engine::makes_lasting_progress), however small its budget. What the engine
  // of a method without such steps has got to is handed to shortest paths then, up to the next
  // kOptimal. So finitely many resolves end, whatever the algorithm and the budget.
  Control& control() { return control_; }
  // The running resolve ends with kCancelled, unless it is past its last look at the flag and ends
  // as it would have; if none is running, the next one does. In either case no other one does.
  void cancel() { control_.cancel(); }

  bool live_node(std::int64_t node) const { return network_.live_node(node); }
  bool live_arc(std::int64_t arc) const { return network_.live_arc(arc); }
  // With gaps at removed ids (capacity and supply 0), and with capacities lowered that are too
  // large for sums (graph/capacity_level.hpp).
  const Network& network() const { return network_.network(); }
  std::int64_t given_capacity(ArcId arc) const { return lowered_.given(arc, net().capacity[arc]); }
  std::span<const std::uint8_t> live_nodes() const { return network_.node_alive(); }
  std::span<const std::uint8_t> live_arcs() const { return network_.arc_alive(); }
  std::size_t num_live_nodes() const { return network_.live_nodes(); }
  std::size_t num_live_arcs() const { return network_.live_arcs(); }

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
  static constexpr int kMaxBudgetStops = 8;
  // Rounds of more changes than this are noted, and told to the engine at once or not at all.
  static constexpr std::int64_t kFewChanges = 2048;
  enum class ChangePolicy : std::uint8_t { kApply, kLog, kDiscard };

  const Network& net() const { return network_.network(); }
  std::int64_t flow_now(ArcId arc) const;
  std::int64_t price_now(NodeId v) const;
  template <class Apply, class Log>
  void apply_change(Apply apply, Log log);
  void review_round(std::int64_t expected);
  void keep_within_range(std::int64_t value);
  void change_capacity(ArcId arc, std::int64_t capacity);
  Network given_network() const;
  Status check_numbers();
  bool level_is_high_enough() const;
  bool choose_level(std::int64_t in_use);
  Status solve_within_range();
  void remove_arcs(std::span<const ArcId> arcs);
  void apply_log();
  void drop_engine();
  bool should_switch_engines() const;
  void ensure_engine();  // none when cancelled while it was made
  Status solve();
  Status run_engine();
  Status solve_cold();
  bool may_start_cold() const;
  bool should_start_cold();
  bool is_unbounded(ArcId arc, std::int64_t flow, std::int64_t tail_price,
                    std::int64_t head_price) const;
  Status report_unbounded_cycle();
  void check_bounds(Solution& solution, const LiveNetwork* live);
  void note_cold_start(const Stats& stats);
  void adopt_flow(ArcId arc, std::int64_t now);
  void adopt_flow();
  void adopt_cold(Solution solution, const LiveNetwork* live);
  void note_touched();
  void end_round();

  ChangingNetwork network_;
  LoweredCapacities lowered_;
  // null: to be built by the next resolve, from the flow and prices below
  std::unique_ptr<Engine> engine_;
  NodeId root_ = kNone;
  std::uint64_t value_limit_;  // the engine's
  // What the next engine is built from; empty: from scratch.
  std::vector<std::int64_t> warm_flow_, warm_price_;
  bool warm_is_optimum_ = false;  // flow_ in place of warm_flow_
  bool prices_drifted_ = false;
  int budget_stops_ = 0;        // resolves in a row that ended kBudget
  bool uses_fallback_ = false;  // engine_ was made to end a row of them

  ChangePolicy change_policy_ = ChangePolicy::kApply;
  std::int64_t next_review_ = kFewChanges + 1;  // at the round, when it has so many changes
  ChangeLog log_;                               // what the engine has not been told yet
  RoundChanges round_;                          // since the last answer
  ColdStartRule cold_start_;
  // An engine built from scratch has no answer yet: counted by then. Less than zero: it has.
  std::int64_t cold_operations_ = -1;

  bool solved_ = false;  // the last call of interest was a resolve that ended kOptimal
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
