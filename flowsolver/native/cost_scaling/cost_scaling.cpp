// The parts of cost scaling, in order: arc fixing, the scaled graph, one phase over it, the method,
// and the engine that keeps its state under changes.
#include "cost_scaling/cost_scaling.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cost_scaling/local_scaling.hpp"
#include "cost_scaling/scaling_steps.hpp"
#include "graph/arc_graph.hpp"
#include "graph/imbalances.hpp"
#include "graph/dynamic_graph.hpp"
#include "graph/start_state.hpp"

namespace flowsolver {

namespace {

// Speculative arc fixing: half-edges whose reduced cost is far from zero are not scanned during a
// phase of cost scaling.
//
// Definitions. A fixed arc keeps its flow for a phase; the others are open. Both half-edges of an
// arc are fixed, or neither.
//
// Invariant. The half-edges of v are begin(v) .. end(v); those before open(v) are fixed. Their
// order within a node differs from that in which the graph was built; `finish` updates the graph's
// own index of arcs.
//
// Why. A flow that is eps-optimal differs from one for a smaller eps only on arcs with |rc| <= 2 n
// eps (Tardos; Goldberg and Tarjan), so the other arcs need not be scanned again. That bound is
// pessimistic. Fixing from much smaller |rc| on is speculative: the next phase, or price refine
// after the last one, scans all arcs again and repairs those that should not have been fixed. If
// too few arcs were open for any flow, the phase is repeated with all arcs open.
//
// Complexity. O(arcs of v) per node and phase; four bytes a half-edge.
//
// Reference. Goldberg (1997), section 5. Departure: Goldberg checks for violations from time to
// time within a phase and unfixes what is found. Here each phase starts from any pseudoflow anyway,
// so its start is the place for that.
//
// On graphs whose half-edges have a fixed order (dynamic_graph.hpp) all arcs are open.
template <class Graph>
class ArcFixing {
 public:
  // `reverse_residual`: per half-edge, kept in the graph's order; may be empty.
  ArcFixing(Graph& graph, LargeArray<std::uint8_t>& enterable)
      : graph_(graph), reverse_residual_(enterable), open_(graph.num_nodes()) {
    for (NodeId v = 0; v < graph.num_nodes(); ++v) open_[v] = graph.begin(v);
  }

  std::uint32_t open(NodeId v) const { return open_[v]; }

  // Opens the half-edges of v except those for which `fixed(half-edge)`. If stopped, all are open.
  template <class Fixed>
  Status partition(NodeId v, const Fixed& fixed, CancellationChecker& checker, const Stats& stats) {
    if (origin_.empty()) number();
    open_[v] = graph_.begin(v);
    std::uint32_t begin = graph_.begin(v), end = graph_.end(v);
    for (;; ++begin) {
      while (begin < end && fixed(graph_.edges[begin])) ++begin;
      while (begin < end && !fixed(graph_.edges[end - 1])) --end;
      if (begin == end) break;
      swap(begin, --end);
      if (const Status status = checker.step(stats); status != Status::kOptimal) return status;
    }
    open_[v] = begin;
    return Status::kOptimal;
  }
  void open_all(NodeId v) { open_[v] = graph_.begin(v); }

  void finish() {
    if (origin_.empty()) return;
    std::vector<std::uint32_t> place(origin_.size());
    for (std::uint32_t e = 0; e < origin_.size(); ++e) place[origin_[e]] = e;
    for (std::uint32_t& e : graph_.position) {
      if (e != kNone) e = place[e];
    }
    origin_.clear();
  }

 private:
  void number() {
    origin_.resize(graph_.edges.size());
    for (std::uint32_t e = 0; e < origin_.size(); ++e) origin_[e] = e;
  }

  // Swaps two half-edges of one node, which are never partners.
  void swap(std::uint32_t e, std::uint32_t f) {
    std::swap(graph_.edges[e], graph_.edges[f]);
    graph_.edges[graph_.edges[e].partner].partner = e;
    graph_.edges[graph_.edges[f].partner].partner = f;
    std::swap(graph_.forward[e], graph_.forward[f]);
    if (!reverse_residual_.empty()) std::swap(reverse_residual_[e], reverse_residual_[f]);
    std::swap(origin_[e], origin_[f]);
  }

  Graph& graph_;
  LargeArray<std::uint8_t>& reverse_residual_;
  std::vector<std::uint32_t> open_;  // per node
  // per half-edge, its original position; empty until arcs are fixed
  LargeArray<std::uint32_t> origin_;
};

// A residual graph with prices of scaled costs, the View of phases over a whole graph
// (scaling_steps.hpp). For each half-edge it records whether its partner has residual capacity, so
// that backward searches read half-edges in order and do not read their partners.
template <class G, class P>
class ScaledGraph {
 public:
  using Graph = G;
  using Price = P;
  using HalfEdge = typename Graph::HalfEdge;
  using Node = ScaledNode<Price>;

  // `price`: per node, of scaled costs.
  ScaledGraph(Graph& graph, Price scale, const std::vector<Price>& price)
      : graph_(graph), scale_(scale), node_(graph.num_nodes()), fixing_(graph, reverse_residual_) {
    for (NodeId v = 0; v < graph.num_nodes(); ++v)
      node_[v] = {price[v], graph.begin(v), Node::kFar};
  }

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  ArcFixing<Graph>& fixing() { return fixing_; }
  Node& node(NodeId v) { return node_[v]; }
  const Node& node(NodeId v) const { return node_[v]; }
  std::uint32_t open(NodeId v) const { return fixing_.open(v); }

  void set_shift(int shift) {
    shift_ = shift;
    eps_ = Price{1} << shift;
  }
  int shift() const { return shift_; }
  Price eps() const { return eps_; }
  Price scale() const { return scale_; }
  Price reduced_cost(const HalfEdge& edge, Price price_here) const {
    return static_cast<Price>(edge.cost) * scale_ - price_here + node_[edge.to].price;
  }

  void push(NodeId u, std::uint32_t e, std::int64_t amount) {
    const std::uint32_t partner = graph_.edges[e].partner;
    graph_.push(u, e, amount);
    if (reverse_residual_.empty()) return;
    reverse_residual_[e] = 1;
    reverse_residual_[partner] = graph_.edges[e].residual > 0;
  }

  // Called before the price of v changes.
  void touch(NodeId) {}

  // Called before the first global update; a phase with little to do does not need it.
  bool knows_reverse_residual() const { return !reverse_residual_.empty(); }
  Status mark_reverse_residual(CancellationChecker& checker, Stats& stats) {
    reverse_residual_.resize(graph_.edges.size());
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      for (std::uint32_t e = graph_.begin(v); e < graph_.end(v); ++e) {
        reverse_residual_[e] = graph_.edges[graph_.edges[e].partner].residual > 0;
      }
      const std::int64_t scanned = graph_.end(v) - graph_.begin(v);
      stats.scanned += scanned;
      if (const Status status = checker.step(stats, scanned + 1); status != Status::kOptimal)
        return status;
    }
    return Status::kOptimal;
  }
  bool has_reverse_residual(std::uint32_t e) const { return reverse_residual_[e] != 0; }

 private:
  Graph& graph_;
  const Price scale_;
  int shift_ = 0;
  Price eps_ = 1;
  LargeArray<Node> node_;
  LargeArray<std::uint8_t> reverse_residual_;  // per half-edge, from the first global update on
  ArcFixing<Graph> fixing_;
};

// One phase of cost scaling: from any pseudoflow and prices to an eps-optimal flow, by partial
// augment-relabel.
//
// Definitions are scaling_steps.hpp's; statements about half-edges mean open ones (ArcFixing).
//
// Invariant. After `saturate` the pseudoflow is eps-optimal, and every step preserves that.
//
// Method.
// - saturate: fills every residual half-edge with rc < 0, so that no cycle is admissible, then or
//   later. Half-edges with |rc| beyond a given bound are fixed; all others are open.
// - discharge of active nodes (Discharge).
// - global update (GlobalUpdate): at the start if many nodes are active, and whenever the
//   half-edges scanned since the last update exceed eight times its own scans plus half of the open
//   half-edges.
//
// Stalls. A phase that starts from no feasible flow makes little or no progress when eps is small
// compared with how far prices must rise. It is ended when, after each node was relabelled once on
// average or each half-edge scanned eight times, the excess has fallen by less than a 24th of the
// initial one and by less than a third; or when an update after the first one still raises prices
// by a 16th of what the first did, and by more than 1024 eps.
//
// Infeasibility is proven, never guessed: by a discharge or an update.
//
// Termination, range. Let w be a deficit that active v reaches (if there is none, the update finds
// that). Adding up rc >= -eps over a path of at most n - 1 half-edges from v to w: P[v] <= P[w] +
// (n - 1)(scale * C + eps). So a node is relabelled O(n (scale C / eps + 1)) times while active;
// from a flow that was (eps * a)-optimal, O(n a) times (Goldberg and Tarjan). The tip of a path is
// at most kMaxPathArcs half-edges below an active node before it is raised. So each node is raised
// above that at most once more, by at most scale * C + eps above a neighbour: in all at most 2 n
// (scale * C + eps) above the deficits. Nodes that reach no deficit rise with every update. A phase
// that could leave the range, or does, reports so: 64 bits hold prices kMaxScaledPrice from zero
// and as much rise.
//
// Complexity. O(n^2 m) per phase in general.
//
// References. Goldberg (2008), Kovacs (2015): partial augmentation; Goldberg (1997): price updates,
// arc fixing. Departure: updates are due by work, not by relabels.
template <class Graph, class Price>
class PushRelabel {
 public:
  // `price`: per node, of scaled costs.
  PushRelabel(Graph& graph, Price scale, Price largest_cost, const std::vector<Price>& price,
              const Control& control, Stats& stats)
      : graph_(graph),
        largest_cost_(largest_cost),
        control_(control),
        stats_(stats),
        checker_(control),
        nodes_(graph.num_nodes()),
        view_(graph, scale, price),
        discharge_(view_, queue_, checker_, stats),
        global_update_(view_, stats) {
    queue_.resize(nodes_);
  }

  // Runs a phase with eps = 2^shift. `may_stall`: end it when it stalls. Arcs with |rc| >
  // fix_beyond keep their flow; 0: none.
  Phase run(int shift, bool may_stall, Price fix_beyond) {
    view_.set_shift(shift);
    ++stats_.phases;
    may_stall_ = may_stall;
    first_distance_ = 0;
    Phase phase;
    phase.out_of_range = !apply_global_rise();
    if (phase.out_of_range) return phase;
    phase.status = saturate(fix_beyond);
    return phase.status == Status::kOptimal ? discharge_all() : phase;
  }

  std::vector<Price> price() const {
    CancellationChecker checker(control_);
    std::vector<Price> price(nodes_);
    for (NodeId v = 0; v < nodes_; ++v) {
      checker.step_until_cancelled(stats_);
      price[v] = view_.node(v).price + global_rise_;
    }
    return price;
  }

  // Must be called before the graph's own index of arcs is used again.
  void finish() { view_.fixing().finish(); }

 private:
  using View = ScaledGraph<Graph, Price>;
  using HalfEdge = typename Graph::HalfEdge;
  // if fewer than 1 / kFewActive of the nodes are active, an update costs more than it saves
  static constexpr std::size_t kFewActive = 64;
  // the scans of an update are slower than others
  static constexpr std::int64_t kScansPerUpdate = 8;
  static constexpr std::int64_t kScansPerCheck = 8, kMinProgress = 24;
  static constexpr std::uint32_t kFewSteps = 1024, kMinApproach = 16;

  // Adds the common rise to all prices. False: they leave no room for what a phase adds.
  bool apply_global_rise() {
    Price furthest = 0;
    for (NodeId v = 0; v < nodes_; ++v) {
      Price& price = view_.node(v).price;
      price += global_rise_;
      furthest = std::max(furthest, price < 0 ? -price : price);
    }
    global_rise_ = 0;
    return phase_fits(furthest, nodes_, view_.scale(), largest_cost_, view_.eps());
  }

  Status saturate(Price fix_beyond) {
    num_open_ = 0;
    for (NodeId u = 0; u < nodes_; ++u) {
      const Price price_u = view_.node(u).price;
      const std::uint32_t first = graph_.begin(u), last = graph_.end(u);
      for (std::uint32_t e = first; e < last; ++e) {
        const HalfEdge& edge = graph_.edges[e];
        if (edge.residual == 0 || view_.reduced_cost(edge, price_u) >= 0) continue;
        view_.push(u, e, edge.residual);
        ++stats_.pushes;
      }
      Status status = checker_.step(stats_, last - first + 1);
      if constexpr (Graph::kMayReorder) {
        if (fix_beyond == 0) {
          view_.fixing().open_all(u);
        } else if (status == Status::kOptimal) {
          const auto far = [&](const HalfEdge& edge) {
            const Price rc = view_.reduced_cost(edge, price_u);
            return rc > fix_beyond || rc < -fix_beyond;
          };
          status = view_.fixing().partition(u, far, checker_, stats_);
        }
      }
      view_.node(u).current = view_.open(u);
      num_open_ += last - view_.open(u);
      stats_.scanned += last - first;
      if (status != Status::kOptimal) return status;
    }
    queue_.clear();
    deficits_.clear();
    active_ = 0;
    for (NodeId u = 0; u < nodes_; ++u) {
      if (graph_.excess[u] > 0) {
        queue_.push(u);
        ++active_;
      } else if (graph_.excess[u] < 0) {
        deficits_.push_back(u);
      }
    }
    return Status::kOptimal;
  }

  std::int64_t total_excess() const {
    std::int64_t total = 0;
    for (std::int64_t excess : graph_.excess) total += std::max<std::int64_t>(0, excess);
    return total;
  }

  void begin_check() {
    check_at_relabels_ = stats_.relabels + nodes_;
    check_at_scanned_ = stats_.scanned + kScansPerCheck * num_half_edges();
  }
  std::int64_t num_half_edges() const { return static_cast<std::int64_t>(graph_.edges.size()); }

  bool makes_progress() {
    if (stats_.relabels <= check_at_relabels_ && stats_.scanned <= check_at_scanned_) return true;
    const std::int64_t excess = total_excess(), fallen = last_excess_ - excess;
    if (fallen < first_excess_ / kMinProgress && fallen < last_excess_ / 3) return false;
    last_excess_ = excess;
    begin_check();
    return true;
  }

  Phase update(std::size_t active) {
    const std::int64_t scanned = stats_.scanned;
    std::uint32_t distance = 0;
    Phase phase;
    phase.status = global_update_.run(deficits_, active, checker_, distance);
    global_rise_ += static_cast<Price>(distance) << view_.shift();
    phase.out_of_range = global_rise_ > kMaxScaledPrice<Price>;
    if (first_distance_ == 0) {
      first_distance_ = distance;
    } else if (may_stall_ && distance > std::max(kFewSteps, first_distance_ / kMinApproach)) {
      phase.stalled = true;
    }
    discharge_.set_next_update(stats_.scanned + kScansPerUpdate * (stats_.scanned - scanned) +
                               num_open_ / 2);
    return phase;
  }

  Phase discharge_all() {
    first_excess_ = last_excess_ = total_excess();
    begin_check();
    discharge_.set_next_update(stats_.scanned + num_open_);
    if (active_ > nodes_ / kFewActive) {
      const Phase phase = update(active_);
      if (!phase.succeeded()) return phase;
    }
    return discharge_.run(active_, [this](std::size_t active) {
      if (!may_stall_ || makes_progress()) return update(active);
      Phase stalled;
      stalled.stalled = true;
      return stalled;
    });
  }

  Graph& graph_;
  const Price largest_cost_;
  const Control& control_;
  Stats& stats_;
  CancellationChecker checker_;
  const NodeId nodes_;
  View view_;
  Price global_rise_ = 0;  // the common rise of all prices by global updates
  std::int64_t num_open_ = 0;
  ActiveQueue queue_;
  std::size_t active_ = 0;
  std::vector<NodeId> deficits_;
  Discharge<View> discharge_;
  GlobalUpdate<View> global_update_;
  bool may_stall_ = false;
  std::int64_t first_excess_ = 0, last_excess_ = 0, check_at_relabels_ = 0, check_at_scanned_ = 0;
  std::uint32_t first_distance_ = 0;  // of the first update
};

constexpr std::int64_t kAlpha = 16;      // eps is divided by this
constexpr int kFinerThanUnit = 3;        // the first eps is at most an eighth of a unit of cost
constexpr int kMaxFirstShiftBelow = 17;  // and at least the largest cost by 2^17
// after a stall, eps is 16 times as large, and at least a 32nd of the largest cost
constexpr int kShiftMoreAfterStall = 4;
constexpr int kShiftBelowAfterStall = 5;
constexpr int kFixBeyondShift = 2;  // arcs are fixed from 4 sqrt(n) eps on
constexpr std::int64_t kMaxPrice = std::int64_t{1} << 60;

// The largest s >= 0 with 2^s <= value; 0 for values below 1.
int floor_log2(__int128 value) {
  int shift = 0;
  while (value >> (shift + 1) > 0) ++shift;
  return shift;
}

template <class Price>
Price floor_divide(Price value, Price by) {
  const Price quotient = value / by;
  return value % by < 0 ? quotient - 1 : quotient;
}

// Rounds prices of costs scaled by `scale` > n to whole ones, at a residue that no price has (see
// the header).
template <class Price>
std::vector<std::int64_t> rounded(const std::vector<Price>& price, Price scale,
                                  const Control& control) {
  CancellationChecker checker(control);
  std::vector<std::uint8_t> taken(static_cast<std::size_t>(scale), 0);
  for (Price p : price) {
    checker.step_until_cancelled({});
    taken[static_cast<std::size_t>(p - floor_divide(p, scale) * scale)] = 1;
  }
  const auto free = static_cast<Price>(std::find(taken.begin(), taken.end(), 0) - taken.begin());
  std::vector<std::int64_t> whole(price.size());
  for (std::size_t v = 0; v < price.size(); ++v) {
    checker.step_until_cancelled({});
    const Price quotient = floor_divide<Price>(price[v] - free - 1, scale);
    whole[v] = static_cast<std::int64_t>(std::clamp<Price>(quotient, -kMaxPrice, kMaxPrice));
  }
  return whole;
}

template <class Graph, class Price>
class CostScaling {
 public:
  CostScaling(Graph& graph, std::vector<std::int64_t>& price, std::int64_t largest_cost,
              const AlgorithmSettings& settings, const Control& control, Stats& stats)
      : graph_(graph),
        price_(price),
        largest_cost_(largest_cost),
        settings_(settings),
        control_(control),
        stats_(stats) {}

  // The answer's flow is in the graph, its prices replace the start's. No status: Price is too
  // narrow; the flow is then any pseudoflow, and the start's prices are unchanged.
  std::optional<Status> run() {
    const Price scale = static_cast<Price>(graph_.num_nodes()) + 1;
    if (static_cast<Price>(largest_magnitude(price_)) > kMaxScaledPrice<Price> / scale)
      return std::nullopt;
    std::vector<Price> scaled(price_.size());
    for (std::size_t v = 0; v < price_.size(); ++v)
      scaled[v] = static_cast<Price>(price_[v]) * scale;
    PushRelabel<Graph, Price> phases(graph_, scale, static_cast<Price>(largest_cost_), scaled,
                                     control_, stats_);
    const std::optional<Status> status = run(phases, scale);
    if (status != Status::kCancelled) phases.finish();
    if (status == Status::kBudget) price_ = rounded(phases.price(), scale, control_);
    return status;
  }

 private:
  std::optional<Status> run(PushRelabel<Graph, Price>& phases, Price scale) {
    const int unit_shift = floor_log2(scale),
              max_shift = floor_log2(static_cast<Price>(largest_cost_) * scale);
    const int root_shift = floor_log2(graph_.num_nodes()) / 2 + 1;  // about log2(sqrt(n))
    EpsSequence eps(std::max({0, unit_shift - kFinerThanUnit, max_shift - kMaxFirstShiftBelow}),
                    settings_.alpha == 0 ? kAlpha : settings_.alpha);
    Price fix_beyond = 0;
    for (bool feasible = false;;) {
      const int shift = eps.shift();
      const Phase phase = phases.run(shift, !feasible && shift < max_shift, fix_beyond);
      if (phase.out_of_range) return std::nullopt;
      if (phase.stalled) {
        eps.begin_at(std::min(
            std::max(shift + kShiftMoreAfterStall, max_shift - kShiftBelowAfterStall), max_shift));
        continue;
      }
      if (phase.status == Status::kInfeasible && fix_beyond > 0) {
        fix_beyond = 0;
        continue;
      }
      if (phase.status != Status::kOptimal) return phase.status;
      feasible = true;
      const bool is_exact = shift == 0 && fix_beyond == 0;
      if (is_exact || (settings_.price_refine && shift <= unit_shift)) {
        const RefineResult refined = refine(phases, scale, is_exact);
        if (refined.status != Status::kOptimal || refined.done) return refined.status;
      }
      fix_beyond = shift == 0 || !Graph::kMayReorder
                       ? 0
                       : Price{1} << (shift + root_shift + kFixBeyondShift);
      eps.divide();
    }
  }

  RefineResult refine(const PushRelabel<Graph, Price>& phases, Price scale, bool is_exact) {
    std::vector<std::int64_t> refined = rounded(phases.price(), scale, control_);
    const std::int64_t max_scans =
        is_exact ? kInfinity : 2 * static_cast<std::int64_t>(graph_.edges.size());
    const RefineResult result = refine_prices(graph_, refined, max_scans, control_, stats_);
    if (result.done) price_ = std::move(refined);
    return result;
  }

  Graph& graph_;
  std::vector<std::int64_t>& price_;  // per node, whole: the start's, then the answer's
  const std::int64_t largest_cost_;
  const AlgorithmSettings& settings_;
  const Control& control_;
  Stats& stats_;
};

// Computes start prices that prove the graph's pseudoflow optimal where possible; cancels deficits.
template <class Graph>
Status prepare_start(Graph& graph, std::vector<std::int64_t>& price,
                     const AlgorithmSettings& settings, const Control& control, Stats& stats) {
  if (settings.price_refine) {
    std::vector<std::int64_t> refined = price;
    const RefineResult result = refine_prices(
        graph, refined, static_cast<std::int64_t>(graph.edges.size()), control, stats);
    if (result.status != Status::kOptimal) return result.status;
    if (result.done) price = std::move(refined);
  }
  // A new source gets the price of its cheapest path.
  for (NodeId v = 0; v < graph.num_nodes(); ++v) {
    if (graph.excess[v] <= 0) continue;
    std::int64_t least = kInfinity;
    for (std::uint32_t e = graph.begin(v); e < graph.end(v); ++e) {
      const auto& edge = graph.edges[e];
      if (edge.residual > 0) least = std::min(least, edge.cost + price[edge.to]);
    }
    if (least != kInfinity) price[v] = std::max(price[v], least);
  }
  return settings.task_removal ? cancel_deficits(graph, price, control, stats) : Status::kOptimal;
}

template <class Graph>
Status run_phases(Graph& graph, std::vector<std::int64_t>& price, std::int64_t largest_cost,
                  const AlgorithmSettings& settings, const Control& control, Stats& stats) {
  const auto run = [&]<class Price> {
    return CostScaling<Graph, Price>(graph, price, largest_cost, settings, control, stats).run();
  };
  const std::optional<Status> status = run.template operator()<std::int64_t>();
  return status ? *status : *run.template operator()<__int128>();
}

// Start prices that are too far apart for phases are not used.
void limit_prices(std::vector<std::int64_t>& price, std::int64_t largest_cost) {
  const __int128 n = static_cast<__int128>(price.size());
  if (largest_magnitude(price) > 4 * n * largest_cost) std::fill(price.begin(), price.end(), 0);
}

template <class V>
Solution solve_with(const Network& network, const Start& start, const AlgorithmSettings& settings,
                    const Control& control, Solution state) {
  ArcGraph<V> graph;
  state.status = graph.build(network, start, control, state.stats);
  if (state.status != Status::kOptimal) return state;
  std::uint64_t most = 0;
  state.status = for_each_block(
      network.num_arcs(), control, state.stats, [&](std::size_t begin, std::size_t end) {
        most =
            std::max(most, largest_magnitude(std::span(network.cost).subspan(begin, end - begin)));
      });
  if (state.status != Status::kOptimal) return state;
  const auto largest_cost = static_cast<std::int64_t>(most);
  std::vector<std::int64_t> price = start_prices(network, start);
  limit_prices(price, largest_cost);
  if (start.flow.empty() && start.price.empty()) {
    const PriceEstimate estimate = estimate_price(network, largest_sink(network), control);
    for (NodeId v : estimate.nodes) price[v] = estimate.price;
  } else {
    state.status = prepare_start(graph, price, settings, control, state.stats);
  }
  if (state.status == Status::kOptimal)
    state.status = run_phases(graph, price, largest_cost, settings, control, state.stats);
  state.potential = std::move(price);
  graph.write_flow(network, control, state);
  return state;
}

// The method on a graph that persists (dynamic_graph.hpp). Its flow and `price` (per node, within
// 2^61) are the start and become the answer, or after kBudget the state reached. With other
// statuses they are any pseudoflow and prices. `is_near_optimal`: the start is an earlier answer
// with changes since, not from scratch. Arcs are not fixed. Throws Stopped.
template <class V>
Status scale_costs(DynamicGraph<V>& graph, std::vector<std::int64_t>& price, bool is_near_optimal,
                   std::int64_t largest_cost, const AlgorithmSettings& settings,
                   const Control& control, Stats& stats) {
  limit_prices(price, largest_cost);
  const Status status =
      is_near_optimal ? prepare_start(graph, price, settings, control, stats) : Status::kOptimal;
  return status == Status::kOptimal
             ? run_phases(graph, price, largest_cost, settings, control, stats)
             : status;
}

template <class V>
class CostScalingEngine final : public Engine {
 public:
  CostScalingEngine(const EngineStart& start, const AlgorithmSettings& settings,
                    const Control& control)
      : network_(start.network),
        alive_(start.alive),
        root_(start.root),
        settings_(settings),
        graph_(start.network, start.flow, start.alive, control),
        scaling_(graph_, start.network, settings),
        has_answer_(!start.flow.empty() || !start.price.empty()),
        largest_cost_(costliest()) {
    std::vector<std::int64_t> price(start.price.begin(), start.price.end());
    price.resize(network_.num_nodes(), 0);
    scaling_.prices().assign(price, control);
    scaling_.note_all();
    begin_round();
  }

  void add_node(NodeId v, std::int64_t supply) override {
    graph_.add_node(v, supply);
    scaling_.prices().grow();
    scaling_.note_new_node(v);
    changed_since_answer_.push_back(v);
    scaling_.note_change();
  }
  void remove_node(NodeId v) override { graph_.remove_node(v); }
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    graph_.add_arc(arc, tail, head, capacity, cost);
    scaling_.note_block(tail);
    scaling_.note_block(head);
    note_cost(arc, tail, cost);
  }
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override {
    graph_.remove_arc(arc, tail);
    scaling_.note_block(tail);
    scaling_.note_block(head);
    changed_since_answer_.push_back(tail);
    scaling_.note_change();
  }
  void set_capacity(ArcId arc, NodeId tail, NodeId, std::int64_t capacity) override {
    graph_.set_capacity(arc, tail, capacity);
    note_arc(arc, tail);
  }
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    graph_.set_cost(arc, tail, cost);
    note_cost(arc, tail, cost);
  }
  void change_supply(NodeId v, std::int64_t delta) override {
    graph_.change_supply(v, delta);
    scaling_.note_change();
  }

  Status run(const Control& control, Stats& stats) override {
    try {
      if (const Status status = control.check(stats); status != Status::kOptimal) return status;
      if (graph_.is_sparse()) {
        graph_.compact(control);
        scaling_.note_all_blocks();
      }
      if (is_local_work() && scaling_.prices().fits(largest_cost_)) {
        const auto outcome = scaling_.run(largest_cost_, control, stats);
        if (!outcome.given_up) return outcome.status;
      }
      return run_whole(control, stats);
    } catch (const Stopped& stopped) {
      return stopped.status;
    }
  }

  std::vector<NodeId> unrouted_nodes() const override {
    std::vector<NodeId> nodes;
    for (NodeId v : graph_.unbalanced()) {
      if (graph_.excess[v] > 0) nodes.push_back(v);
    }
    return nodes;
  }

  std::int64_t flow(ArcId arc, NodeId tail) const override { return graph_.flow(arc, tail); }
  std::int64_t price(NodeId v) const override { return scaling_.prices().whole(v); }
  __int128 cost() const override { return graph_.cost(); }
  void adopt(const Engine& winner) override {
    ScaledPrices<V>& prices = scaling_.prices();
    scaling_.forget();
    bool local = is_in_sync_ && winner.local();
    if (local) {
      std::vector<ArcId> arcs;
      for (const FlowBefore& before : graph_.touched_arcs()) arcs.push_back(before.arc);
      for (const FlowBefore& before : winner.touched_arcs()) arcs.push_back(before.arc);
      for (ArcId arc : arcs) adopt_flow(arc, winner);
      std::vector<NodeId> nodes = prices.repriced();
      nodes.insert(nodes.end(), prices.moved().begin(), prices.moved().end());
      nodes.insert(nodes.end(), changed_since_answer_.begin(), changed_since_answer_.end());
      // The price of a source may be implied by its arcs, and move with its arcs alone.
      for (const FlowBefore& before : winner.touched_arcs()) {
        if (alive_[before.arc] != 0) nodes.push_back(network_.tail[before.arc]);
      }
      for (NodeId v : winner.repriced_nodes()) {
        nodes.push_back(v);
        winner.implicitly_priced_by(v, nodes);
      }
      local = prices.assign_some(nodes, [&winner](NodeId v) { return winner.price(v); });
    } else {
      for (ArcId arc = 0; arc < network_.num_arcs(); ++arc) adopt_flow(arc, winner);
    }
    if (!local) {
      std::vector<std::int64_t> price(graph_.num_nodes());
      for (NodeId v = 0; v < graph_.num_nodes(); ++v) price[v] = winner.price(v);
      prices.assign(price, Control());
    } else {
      prices.forget_run();
    }
    graph_.drop_balanced();
    begin_round();
    has_answer_ = is_in_sync_ = true;
  }

  bool adopts_exactly() const override { return true; }
  std::uint64_t value_limit() const override { return width_limit<V>(); }
  // a solve over the whole graph starts from prices relative to the root's
  bool prices_drifted() const override { return false; }

  bool local() const override { return true; }
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override {
    for (NodeId v : nodes) graph_.incident_arcs(v, arcs);
  }
  // If nothing flows into the node, no arc into it carries flow.
  void arcs_bound_by(NodeId v, std::span<const std::uint8_t>,
                     std::vector<ArcId>& arcs) const override {
    std::int64_t out = 0;
    for (std::uint32_t e = graph_.begin(v); e < graph_.middle(v); ++e) {
      out += graph_.edges[graph_.edges[e].partner].residual;
      arcs.push_back(graph_.arc(e));
    }
    if (graph_.excess[v] - network_.supply[v] + out == 0) return;
    for (std::uint32_t e = graph_.middle(v); e < graph_.end(v); ++e) {
      if (graph_.edges[e].residual > 0) arcs.push_back(graph_.arc(e));
    }
  }
  const std::vector<FlowBefore>& touched_arcs() const override { return graph_.touched_arcs(); }
  const std::vector<NodeId>& repriced_nodes() const override {
    return scaling_.prices().repriced();
  }
  void begin_round() override {
    graph_.begin_round();
    scaling_.prices().begin_round();
    changed_since_answer_.clear();
    is_in_sync_ = false;
  }

 private:
  // a few, and 1 / kManyChanges of the nodes and arcs
  static constexpr std::size_t kFewChanges = 64, kManyChanges = 16;

  std::int64_t costliest() const {
    return static_cast<std::int64_t>(largest_magnitude(network_.cost));
  }
  void note_arc(ArcId arc, NodeId tail) {
    scaling_.note_arc(arc);
    changed_since_answer_.push_back(tail);
    scaling_.note_change();
  }
  void note_cost(ArcId arc, NodeId tail, std::int64_t cost) {
    largest_cost_ = std::max(largest_cost_, cost < 0 ? -cost : cost);
    note_arc(arc, tail);
  }
  bool is_local_work() const {
    return has_answer_ &&
           scaling_.num_changes() <=
               kFewChanges + (graph_.num_nodes() + network_.num_arcs()) / kManyChanges;
  }
  Status run_whole(const Control& control, Stats& stats) {
    largest_cost_ = costliest();
    std::vector<std::int64_t> price(graph_.num_nodes());
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) price[v] = scaling_.prices().whole(v);
    scaling_.forget();
    scaling_.note_all();  // in case it is stopped
    if (!has_answer_) {
      const PriceEstimate estimate = estimate_price(network_, root_, control);
      for (NodeId v : estimate.nodes) price[v] = estimate.price;
    }
    Status status;
    try {
      status = scale_costs(graph_, price, has_answer_, largest_cost_, settings_, control, stats);
    } catch (const Stopped& stopped) {
      status = stopped.status;
    }
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      if (graph_.excess[v] != 0) graph_.note_unbalanced(v);
    }
    graph_.drop_balanced();
    scaling_.prices().assign(relative_to_root(price, root_), control);
    if (status == Status::kOptimal) scaling_.forget();
    has_answer_ = has_answer_ || status == Status::kOptimal || status == Status::kBudget;
    return status;
  }

  void adopt_flow(ArcId arc, const Engine& winner) {
    const std::uint32_t there = arc < graph_.position.size() ? graph_.position[arc] : kNone;
    if (there == kNone) return;  // the flow of a loop is the same already
    const std::uint32_t back = graph_.edges[there].partner;
    const NodeId tail = graph_.edges[back].to, head = graph_.edges[there].to;
    const std::int64_t more = winner.flow(arc, tail) - graph_.edges[back].residual;
    if (more > 0) graph_.push(tail, there, more);
    if (more < 0) graph_.push(head, back, -more);
  }

  const Network& network_;
  const std::vector<std::uint8_t>& alive_;
  const NodeId root_;
  const AlgorithmSettings settings_;
  DynamicGraph<V> graph_;
  LocalScaling<V> scaling_;
  bool has_answer_;  // flow and prices are an earlier answer with changes since
  // in step with a race (race.hpp) since the last answer it gave
  bool is_in_sync_ = false;
  std::vector<NodeId>
      changed_since_answer_;   // since the last answer: new nodes, and tails of arcs that changed
  std::int64_t largest_cost_;  // an upper bound
};

}  // namespace

Solution solve_cost_scaling(const Network& network, const Start& start, const Control& control,
                            const AlgorithmSettings& settings) {
  return solve_by_width(network, start, control, [&]<class V>(Solution& solution) {
    solution = solve_with<V>(network, start, settings, control, std::move(solution));
  });
}

std::unique_ptr<Engine> make_cost_scaling_engine(const EngineStart& start, const Control& control,
                                                 Stats& stats, const AlgorithmSettings& settings) {
  ++stats.rebuilds;
  return make_by_width(start.network, control, [&]<class V> {
    return std::unique_ptr<Engine>(
        std::make_unique<CostScalingEngine<V>>(start, settings, control));
  });
}

}  // namespace flowsolver
