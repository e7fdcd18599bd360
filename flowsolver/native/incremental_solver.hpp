// Re-optimisation of a changing network, with any algorithm. IncrementalSolver owns the network,
// passes every change to the engine (solve.hpp), solves from scratch where that is cheaper
// (ColdStartRule), and reports which flow changed from one optimum to the next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "certificate.hpp"
#include "changing_network.hpp"
#include "control.hpp"
#include "solve.hpp"
#include "network.hpp"

namespace flowsolver {

// The changes since the last answer.
struct RoundChanges {
  std::int64_t values = 0;        // capacities, costs and supplies
  std::int64_t structure = 0;     // nodes and arcs added or removed
  std::int64_t displaced = 0;     // nodes and arcs whose flow cannot stay as it is (estimate)
  std::int64_t sign_changes = 0;  // nodes that changed from source to sink or back

  std::int64_t all() const { return values + structure; }
};

// The rule that decides whether a round is solved from scratch (a cold start) or by the engine,
// which gets all changes and continues from the last answer (a warm start).
//
// Both are estimated in counted operations, never timed, so that the same history is solved in the
// same way in every run. The estimate of a cold start is what the last one counted, and reading the
// network, in proportion to the network's size. The estimate of a warm start is a lower bound from
// the changes: applying them, and rerouting the displaced flow. If that exceeds a cold start, or if
// most sources have become sinks, the engine does not even get the changes. Otherwise it runs. In a
// round of many changes it gives up once it has counted as much as a cold start, or expects to
// (Control::give_up_when_slower_than), so that a round takes at most twice as long. If much flow is
// displaced it gives up much earlier, because most engines do not know how far they are from the
// end.
class ColdStartRule {
 public:
  // Called after a solve from scratch of a network of `size` nodes and arcs.
  void note_cold_start(const Stats& stats, std::size_t size) {
    by_searches_ = stats.pushes + stats.relabels + stats.ascents + stats.pivots == 0;
    const bool is_hybrid = !by_searches_ && stats.searches > 0;
    size_ = std::max<std::size_t>(size, 1);
    operations_ = stats.operations() / (is_hybrid ? kOperationsPerSearchStep : 1) +
                  kReadings * static_cast<std::int64_t>(size_);
  }

  bool is_known() const { return size_ > 0; }
  // The operations expected of a solve from scratch; kInfinity before the first one.
  std::int64_t expected(std::size_t size) const {
    if (!is_known()) return kInfinity;
    return static_cast<std::int64_t>(static_cast<double>(operations_) * static_cast<double>(size) /
                                     static_cast<double>(size_)) +
           1;
  }

  // Whether a cold start is cheaper than even applying the changes. `sources`: nodes with supply.
  bool is_cheaper(const RoundChanges& round, std::size_t size, std::size_t sources) const {
    return min_warm_operations(round) > expected(size) / kDropFactor ||
           round.sign_changes > static_cast<std::int64_t>(sources / kMostSourcesShare);
  }

  // Whether it is the same for this rule if so many more arcs are displaced.
  bool ignores_displaced(RoundChanges round, std::int64_t arcs, std::size_t size,
                         std::size_t sources) const {
    round.displaced += arcs;
    return !is_cheaper(round, size, sources) &&
           !displaces_much(round, std::max(kMinOperations, expected(size)), sources);
  }

  // Limits a warm start: see Control::give_up_when_slower_than.
  void limit_warm_start(Control& control, const RoundChanges& round, std::size_t size,
                        std::size_t sources, const Stats& now) const {
    const std::int64_t cold = std::max(kMinOperations, expected(size));
    const bool much = displaces_much(round, cold, sources);
    control.give_up_when_slower_than(
        cold, much ? std::max(kMinOperations, cold / kEarlyGiveUpFactor) : cold, now);
  }

 private:
  // Counted operations per unit of search work, for the algorithms that shortest paths fall back on
  // (incremental_ssp.hpp): theirs take less time.
  static constexpr std::int64_t kOperationsPerSearchStep = 3;
  // A cold start reads the whole network twice, however little there is to solve: to solve it, and
  // to make the engine of the next round from the answer.
  static constexpr std::int64_t kReadings = 2;
  static constexpr std::int64_t kPerValue = 1, kPerStructure = 8, kPerDisplaced = 8;
  static constexpr std::int64_t kStepsPerSearchStep = 2;
  static constexpr std::int64_t kDropFactor = 1, kManyDisplacedFactor = 8, kEarlyGiveUpFactor = 20;
  static constexpr std::size_t kManySourcesShare = 4, kMostSourcesShare = 2;
  static constexpr std::int64_t kMinOperations = std::int64_t{1} << 14;

  std::int64_t min_warm_operations(const RoundChanges& round) const {
    return (by_searches_ ? 1 : kStepsPerSearchStep) *
           (kPerValue * round.values + kPerStructure * round.structure +
            kPerDisplaced * round.displaced);
  }

  bool displaces_much(const RoundChanges& round, std::int64_t cold, std::size_t sources) const {
    return min_warm_operations(round) > cold / kManyDisplacedFactor ||
           round.displaced > static_cast<std::int64_t>(sources / kManySourcesShare);
  }

  std::int64_t operations_ = 0;
  std::size_t size_ = 0;  // 0: no cold start yet
  bool by_searches_ = true;
};

// What one round needs to be proved optimal from the proof of the round before: what has changed
// since, and the prices that were proved then.
class ProofOfRounds {
 public:
  // Changes since the last answer. Of a node: it is new, or its supply changed.
  void change_arc(ArcId a) { next_arcs_.push_back(a); }
  void change_node(NodeId v) { next_nodes_.push_back(v); }
  // Flow balanced where it was proved, and does so still if these add up to nothing at each node.
  void change_supply(NodeId v, std::int64_t before, std::int64_t after) {
    if (after != before) next_balance_.emplace_back(v, __int128{before} - after);
  }
  void change_flow(NodeId tail, NodeId head, std::int64_t by) {
    next_balance_.emplace_back(tail, by);
    next_balance_.emplace_back(head, -__int128{by});
  }
  // An arc without flow got dearer by so much.
  void raise_arc(ArcId a, std::int64_t by) { next_raised_.emplace_back(a, by); }
  // There is a new answer. `comparable`: the engine says what it has touched since the last one.
  void begin_answer(bool comparable) {
    arcs_.swap(next_arcs_);
    nodes_.swap(next_nodes_);
    raised_.swap(next_raised_);
    balance_.swap(next_balance_);
    next_balance_.clear();
    next_arcs_.clear();
    next_nodes_.clear();
    next_raised_.clear();
    continues_ = comparable && proved_;
    proved_ = false;
  }

  // Whether the answer before the last one was proved.
  bool continues() const { return continues_; }
  const std::vector<ArcId>& arcs() const { return arcs_; }
  const std::vector<NodeId>& nodes() const { return nodes_; }
  const std::vector<std::pair<ArcId, std::int64_t>>& raised() const { return raised_; }
  // Changes of outflow less supply; a node may be there several times.
  const std::vector<std::pair<NodeId, __int128>>& balance() const { return balance_; }
  // kInfinity: not known. The prices of nodes that follow from others' are not kept.
  std::int64_t price_before(NodeId v) const { return v < price_.size() ? price_[v] : kInfinity; }

  // The last answer was proved, with this price of the node.
  void set_price(NodeId v, std::int64_t price) {
    if (v >= price_.size()) price_.resize(v + 1 + v / 4, kInfinity);
    price_[v] = price;
  }
  void conclude(Certificate certificate) {
    continues_ = false;
    proved_ = certificate.ok();
    certificate_ = certificate;
  }
  bool proved() const { return proved_; }
  Certificate certificate() const { return certificate_; }

 private:
  std::vector<ArcId> arcs_, next_arcs_;
  std::vector<NodeId> nodes_, next_nodes_;
  std::vector<std::pair<ArcId, std::int64_t>> raised_, next_raised_;
  std::vector<std::pair<NodeId, __int128>> balance_, next_balance_;
  std::vector<std::int64_t> price_;  // by node
  bool continues_ = false, proved_ = false;
  Certificate certificate_;
};

struct ChangedFlow {
  std::vector<ArcId> arcs;  // ascending
  std::vector<std::int64_t> flow;
};

// Ids. A node or an arc keeps its id until it is removed. Ids of removed ones are reused, last
// removed first. An id that was live at the last kOptimal resolve, so that `flow` and
// `changed_flow` may refer to it, keeps its meaning until the next kOptimal one. Any other id may
// be reused after the next resolve, whatever its status, so that rounds without an answer do not
// use up ids. Between two resolves no id changes its meaning.
//
// Preconditions, checked by the caller (see `live_node`, `live_arc`): the ids are live, capacities
// are >= 0, and no id is removed twice. Not thread-safe, except that any thread may call `cancel`.
class IncrementalSolver {
 public:
  using MakeEngine = flowsolver::MakeEngine;
  using SolveCold = std::function<Solution(const Network& network, const Control& control)>;

  // Both constructors copy the network.
  IncrementalSolver(const Network& network, const Algorithm& algorithm);
  // With any engine, such as that of a race, and a function that solves the same from scratch.
  // `always_cold`: the function solves every round, and there is no engine.
  IncrementalSolver(const Network& network, MakeEngine make_engine, SolveCold solve_cold,
                    bool always_cold = false);

  // The next resolve, and those after it, use these: as in the constructor. They begin with the
  // flow and the prices reached so far, whichever algorithm reached them.
  void switch_to(MakeEngine make_engine, SolveCold solve_cold, bool always_cold);

  // Announces so many changes. A large round is then treated as one from its first change.
  void expect_changes(std::size_t changes);
  NodeId add_node(std::int64_t supply);
  ArcId add_arc(NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost);
  void remove_nodes(std::span<const NodeId> nodes);  // with the arcs at them
  void remove_arc(ArcId arc);
  void set_capacity(ArcId arc, std::int64_t capacity);
  void set_cost(ArcId arc, std::int64_t cost);
  void set_supply(NodeId node, std::int64_t supply);

  // Re-optimises. The work depends on the changes since the last call; with many changes it is at
  // most about that of a solve from scratch (ColdStartRule). After any status but kOptimal the
  // changes remain, and flow and cost are still those of the last kOptimal resolve.
  Status resolve();
  // For budgets: set one before `resolve`, which may then end with kBudget; the next call continues
  // from there. After kMaxBudgetStops such ends in a row, each further resolve makes at least one
  // step of lasting progress (Engine::keeps_progress), however small its budget. If the algorithm
  // makes no such steps, its state is given to shortest paths until the next kOptimal. So finitely
  // many resolves reach the end, whatever the algorithm and the budget, unless each round is solved
  // from scratch: then a budget that is too small always is.
  Control& control() { return control_; }
  // Cancels the running resolve, which ends with kCancelled unless it is past its last check and
  // ends as it would have. If none is running, the next one is cancelled. In either case at most
  // one.
  void cancel() { control_.cancel(); }

  bool live_node(std::int64_t node) const { return network_.live_node(node); }
  bool live_arc(std::int64_t arc) const { return network_.live_arc(arc); }
  // The network, with gaps at removed ids (capacity and supply 0). Capacities too large for sums
  // are lowered (graph/start_state.hpp).
  const Network& network() const { return network_.network(); }
  std::int64_t given_capacity(ArcId arc) const { return lowered_.given(arc, net().capacity[arc]); }
  std::span<const std::uint8_t> live_nodes() const { return network_.node_alive(); }
  std::span<const std::uint8_t> live_arcs() const { return network_.arc_alive(); }
  std::size_t num_live_nodes() const { return network_.live_nodes(); }
  std::size_t num_live_arcs() const { return network_.live_arcs(); }

  std::int64_t cost() const { return cost_; }
  std::span<const std::int64_t> flow() const { return flow_; }
  // The flow reached so far, per arc id: the optimum; after kBudget or kCancelled the state
  // reached, balanced or not.
  std::vector<std::int64_t> flow_reached() const;
  // Whether shortest paths took the last round over, after kMaxBudgetStops stops in a row.
  bool fell_back() const { return uses_fallback_; }
  // no change since the last resolve, which ended with kOptimal
  bool solved() const { return solved_; }
  std::vector<std::int64_t> potential() const;   // prices; optimal duals when solved()
  const Stats& stats() const { return stats_; }  // of the last resolve
  // Live arcs whose flow differs between the last two kOptimal resolves (new arcs had none).
  const ChangedFlow& changed_flow() const { return changed_; }
  // After a resolve that ended with kInfeasible, its proof: the nodes whose supply cannot leave,
  // ascending. Else empty.
  std::span<const NodeId> cut() const { return cut_; }
  // Whether `cut` proves the network infeasible as it is now.
  CutCertificate certify_cut() const;
  // Precondition: solved(). `certify` checks the whole state; `certify_touched` checks all arcs and
  // balances at nodes that the last resolve touched.
  Certificate certify() const;
  Certificate certify_touched() const;
  // Precondition: solved(). Proves the whole state, as `certify` does, but from what changed since
  // the last answer if that was proved in this way, too (else by `certify`). `others`: looks at so
  // many more nodes, in turn, so that nothing is taken for granted for ever.
  //
  // Prices enter each condition of optimality with one sign, so that the arcs which no change has
  // made worse need no look: where a price rose, those into the node that carry no flow; where one
  // fell, those out of it that carry none. A round that makes everybody's waiting dearer is proved
  // without a look at the arcs over which nobody waits. Nor do those between two nodes whose prices
  // rose alike, and those without flow that got dearer by as much as the price of their tail rose.
  Certificate certify_changes(std::size_t others);

 private:
  static constexpr int kMaxBudgetStops = 8;
  // The changes of larger rounds are logged and applied to the engine at once, or not at all.
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
  void ensure_engine();  // there is none when its making was cancelled
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
  void check_arc_ahead(std::span<const ArcId> arcs, std::size_t at,
                       std::pair<NodeId, std::int64_t> known, Certificate& certificate) const;
  void check_nodes(std::span<const NodeId> nodes, std::span<const std::size_t> end,
                   std::span<const ArcId> arcs, std::size_t at, Certificate& certificate) const;
  struct Repriced {
    NodeId node;
    std::int64_t before, now;
  };
  std::vector<Repriced> repriced_since_proof() const;
  void check_balance_from_last(Certificate& certificate) const;
  Certificate certify_from_last(std::span<const Repriced> repriced, std::size_t others);
  void check_others(std::size_t others, Certificate& certificate);
  static std::int64_t most_common_rise(std::span<const Repriced> repriced);
  void append_bound_by_rise(std::span<const NodeId> nodes, std::int64_t rise,
                            std::span<const std::uint8_t> risen, std::vector<ArcId>& arcs) const;
  void note_proved_price(NodeId v);
  void end_round();

  ChangingNetwork network_;
  LoweredCapacities lowered_;
  // null: the next resolve makes one from the flow and prices below
  std::unique_ptr<Engine> engine_;
  NodeId root_ = kNone;
  std::uint64_t value_limit_;  // the engine's
  // The start of the next engine; empty: from scratch.
  std::vector<std::int64_t> warm_flow_, warm_price_;
  bool warm_is_optimum_ = false;  // use flow_ instead of warm_flow_
  bool prices_drifted_ = false;
  int budget_stops_ = 0;        // resolves in a row that ended with kBudget
  bool uses_fallback_ = false;  // engine_ is shortest paths, after such a row

  ChangePolicy change_policy_ = ChangePolicy::kApply;
  std::int64_t next_review_ = kFewChanges + 1;  // review the round when it has so many changes
  ChangeLog log_;                               // changes not yet applied to the engine
  RoundChanges round_;                          // since the last answer
  ColdStartRule cold_start_;
  // While an engine made from scratch has no answer: its operations so far. Negative: it has one.
  std::int64_t cold_operations_ = -1;

  bool solved_ = false;  // the last relevant call was a resolve that ended with kOptimal
  // the engine's touched arcs do not cover the whole time since the last kOptimal
  bool compare_all_ = true;
  std::int64_t cost_ = 0;
  std::vector<std::int64_t> flow_;
  ChangedFlow changed_;
  std::vector<NodeId> cut_;
  Stats stats_;
  bool touched_all_ = false;  // the last resolve may have touched any node
  // else: nodes at touched arcs, and repriced nodes; may repeat
  std::vector<NodeId> touched_, repriced_;
  ProofOfRounds proof_;
  NodeId next_other_ = 0;  // of certify_changes
  MakeEngine make_engine_;
  SolveCold solve_cold_;
  bool always_cold_;
  Control control_;
};

}  // namespace flowsolver
