#include "cost_scaling/cost_scaling.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cost_scaling/push_relabel.hpp"
#include "graph/arc_graph.hpp"
#include "graph/deficit_cancelling.hpp"
#include "graph/dynamic_graph.hpp"
#include "graph/price_estimate.hpp"
#include "graph/price_refine.hpp"
#include "graph/start_state.hpp"

namespace flowsolver {

namespace {

constexpr int kShiftPerPhase = 4;        // eps is divided by 16
constexpr int kFinerThanUnit = 3;        // the first eps is at most an eighth of a unit of cost
constexpr int kMaxFirstShiftBelow = 17;  // and at least the largest cost by 2^17
// after a stall, eps is at least a 32nd of the largest cost
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
              const Control& control, Stats& stats)
      : graph_(graph),
        price_(price),
        largest_cost_(largest_cost),
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
    int shift = std::max({0, unit_shift - kFinerThanUnit, max_shift - kMaxFirstShiftBelow});
    Price fix_beyond = 0;
    for (bool feasible = false;;) {
      const Phase phase = phases.run(shift, !feasible && shift < max_shift, fix_beyond);
      if (phase.out_of_range) return std::nullopt;
      if (phase.stalled) {
        shift = std::min(std::max(shift + kShiftPerPhase, max_shift - kShiftBelowAfterStall),
                         max_shift);
        continue;
      }
      if (phase.status == Status::kInfeasible && fix_beyond > 0) {
        fix_beyond = 0;
        continue;
      }
      if (phase.status != Status::kOptimal) return phase.status;
      feasible = true;
      if (shift <= unit_shift) {
        const bool is_exact = shift == 0 && fix_beyond == 0;
        const RefineResult refined = refine(phases, scale, is_exact);
        if (refined.status != Status::kOptimal || refined.done) return refined.status;
      }
      fix_beyond = shift == 0 || !Graph::kMayReorder
                       ? 0
                       : Price{1} << (shift + root_shift + kFixBeyondShift);
      shift = std::max(0, shift - kShiftPerPhase);
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
  const Control& control_;
  Stats& stats_;
};

// Computes start prices that prove the graph's pseudoflow optimal where possible; cancels deficits.
template <class Graph>
Status prepare_start(Graph& graph, std::vector<std::int64_t>& price, bool refine,
                     const Control& control, Stats& stats) {
  if (refine) {
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
  return cancel_deficits(graph, price, control, stats);
}

template <class Graph>
Status run_phases(Graph& graph, std::vector<std::int64_t>& price, std::int64_t largest_cost,
                  const Control& control, Stats& stats) {
  const std::optional<Status> status =
      CostScaling<Graph, std::int64_t>(graph, price, largest_cost, control, stats).run();
  return status ? *status
                : *CostScaling<Graph, __int128>(graph, price, largest_cost, control, stats).run();
}

// Start prices that are too far apart for phases are not used.
void limit_prices(std::vector<std::int64_t>& price, std::int64_t largest_cost) {
  const __int128 n = static_cast<__int128>(price.size());
  if (largest_magnitude(price) > 4 * n * largest_cost) std::fill(price.begin(), price.end(), 0);
}

template <class V>
Solution solve_with(const Network& network, const Start& start, bool refine, const Control& control,
                    Solution state) {
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
    state.status = prepare_start(graph, price, refine, control, state.stats);
  }
  if (state.status == Status::kOptimal)
    state.status = run_phases(graph, price, largest_cost, control, state.stats);
  state.potential = std::move(price);
  graph.write_flow(network, control, state);
  return state;
}

Solution solve_from(const Network& network, const Start& start, bool refine,
                    const Control& control) {
  return solve_by_width(network, start, control, [&]<class V>(Solution& solution) {
    solution = solve_with<V>(network, start, refine, control, std::move(solution));
  });
}

}  // namespace

template <class V>
Status scale_costs(DynamicGraph<V>& graph, std::vector<std::int64_t>& price, bool is_near_optimal,
                   std::int64_t largest_cost, const Control& control, Stats& stats) {
  limit_prices(price, largest_cost);
  const Status status =
      is_near_optimal ? prepare_start(graph, price, true, control, stats) : Status::kOptimal;
  return status == Status::kOptimal ? run_phases(graph, price, largest_cost, control, stats)
                                    : status;
}

template Status scale_costs(DynamicGraph<std::int32_t>&, std::vector<std::int64_t>&, bool,
                            std::int64_t, const Control&, Stats&);
template Status scale_costs(DynamicGraph<std::int64_t>&, std::vector<std::int64_t>&, bool,
                            std::int64_t, const Control&, Stats&);

Solution solve_cost_scaling(const Network& network, const Start& start, const Control& control) {
  return solve_from(network, start, true, control);
}

Solution solve_cost_scaling_unrefined(const Network& network, const Start& start,
                                      const Control& control) {
  return solve_from(network, start, false, control);
}

}  // namespace flowsolver
