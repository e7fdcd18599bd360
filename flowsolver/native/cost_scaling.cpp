#include "cost_scaling.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "arc_graph.hpp"
#include "deficit_drain.hpp"
#include "price_estimate.hpp"
#include "price_refine.hpp"
#include "push_relabel.hpp"
#include "start_state.hpp"

namespace flowsolver {

namespace {

constexpr int kShiftPerPhase = 4;          // eps is divided by 16
constexpr int kFinerThanUnit = 3;          // the first eps is at most an eighth of a unit of cost
constexpr int kMostFirstDistanceBits = 17;
constexpr int kMostRelabelsPerNode = 12;   // in a phase that starts from no feasible flow
constexpr std::int64_t kMostPrice = std::int64_t{1} << 60;

// Largest s >= 0 with 2^s <= value; 0 below 1.
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

// Whole prices of prices with `scale` > n to the unit, rounded where none lies (see the header).
template <class Price>
std::vector<std::int64_t> rounded(const std::vector<Price>& price, Price scale, const Control& control) {
  Pace pace(control);
  std::vector<std::uint8_t> taken(static_cast<std::size_t>(scale), 0);
  for (Price p : price) {
    pace.build_step({});
    taken[static_cast<std::size_t>(p - floor_divide(p, scale) * scale)] = 1;
  }
  const auto free = static_cast<Price>(std::find(taken.begin(), taken.end(), 0) - taken.begin());
  std::vector<std::int64_t> whole(price.size());
  for (std::size_t v = 0; v < price.size(); ++v) {
    pace.build_step({});
    const Price quotient = floor_divide<Price>(price[v] - free - 1, scale);
    whole[v] = static_cast<std::int64_t>(std::clamp<Price>(quotient, -kMostPrice, kMostPrice));
  }
  return whole;
}

template <class V, class Price>
class CostScaling {
 public:
  CostScaling(ArcGraph<V>& graph, std::vector<std::int64_t>& price, std::int64_t largest_cost, const Control& control,
              Stats& stats)
      : graph_(graph), price_(price), largest_cost_(largest_cost), control_(control), stats_(stats) {}

  Status run() {
    const Price scale = static_cast<Price>(graph_.num_nodes()) + 1;
    std::vector<Price> scaled(price_.size());
    for (std::size_t v = 0; v < price_.size(); ++v) scaled[v] = static_cast<Price>(price_[v]) * scale;
    PushRelabel<V, Price> phases(graph_, scale, std::move(scaled), control_, stats_);
    Status status = phases.prepare();
    const int most_shift = floor_log2(static_cast<Price>(largest_cost_) * scale);
    int shift = std::max(floor_log2(scale >> kFinerThanUnit), most_shift - kMostFirstDistanceBits);
    for (bool feasible = false; status == Status::kOptimal;) {
      bool stalled = false;
      const bool may_stall = !feasible && shift < most_shift;
      const std::int64_t most_relabels = kMostRelabelsPerNode * static_cast<std::int64_t>(graph_.num_nodes());
      status = phases.run(shift, may_stall ? most_relabels : kInfinity, stalled);
      if (status != Status::kOptimal) break;
      if (stalled) {
        shift = std::min(shift + kShiftPerPhase, most_shift);
        continue;
      }
      feasible = true;
      price_ = rounded(phases.price(), scale, control_);
      const std::int64_t most_scans = shift == 0 ? kInfinity : 2 * static_cast<std::int64_t>(graph_.edges.size());
      const Refined refined = refine_prices(graph_, price_, most_scans, control_, stats_);
      status = refined.status;
      if (refined.done) return Status::kOptimal;
      shift = std::max(0, shift - kShiftPerPhase);
    }
    price_ = rounded(phases.price(), scale, control_);
    return status;
  }

 private:
  ArcGraph<V>& graph_;
  std::vector<std::int64_t>& price_;  // per node, whole: the start's, then the answer's
  const std::int64_t largest_cost_;
  const Control& control_;
  Stats& stats_;
};

// Prices to start from that suit the graph's pseudoflow where that is possible; deficits are drained.
template <class V>
Status fit_start(ArcGraph<V>& graph, std::vector<std::int64_t>& price, const Control& control, Stats& stats) {
  std::vector<std::int64_t> refined = price;
  const Refined result = refine_prices(graph, refined, static_cast<std::int64_t>(graph.edges.size()), control, stats);
  if (result.status != Status::kOptimal) return result.status;
  if (result.done) price = std::move(refined);
  // A new source knows nothing yet: its price is that of its cheapest way.
  for (NodeId v = 0; v < graph.num_nodes(); ++v) {
    if (graph.excess[v] <= 0) continue;
    std::int64_t least = kInfinity;
    for (std::uint32_t e = graph.first[v]; e < graph.first[v + 1]; ++e) {
      const auto& edge = graph.edges[e];
      if (edge.residual > 0) least = std::min(least, edge.cost + price[edge.to]);
    }
    if (least != kInfinity) price[v] = std::max(price[v], least);
  }
  return drain_deficits(graph, price, control, stats);
}

template <class V>
Solution solve_with(const Network& network, const Start& start, const Control& control, Solution state) {
  ArcGraph<V> graph;
  state.status = graph.build(network, start, control, state.stats);
  if (state.status != Status::kOptimal) return state;
  std::uint64_t most = 0;
  state.status = sweep(network.num_arcs(), control, state.stats, [&](std::size_t begin, std::size_t end) {
    most = std::max(most, largest_magnitude(std::span(network.cost).subspan(begin, end - begin)));
  });
  if (state.status != Status::kOptimal) return state;
  const auto largest_cost = static_cast<std::int64_t>(most);
  const __int128 n = network.num_nodes();
  std::vector<std::int64_t> price = start_prices(network, start);
  if (largest_magnitude(price) > 4 * n * largest_cost) std::fill(price.begin(), price.end(), 0);
  if (start.flow.empty() && start.price.empty()) {
    const PriceEstimate estimate = estimate_price(network, largest_sink(network), control);
    for (NodeId v : estimate.nodes) price[v] = estimate.price;
  } else {
    state.status = fit_start(graph, price, control, state.stats);
  }
  if (state.status == Status::kOptimal) {
    const bool fits = 64 * n * (largest_cost + __int128{1}) * (n + 1) < __int128{1} << 62;
    state.status = fits ? CostScaling<V, std::int64_t>(graph, price, largest_cost, control, state.stats).run()
                        : CostScaling<V, __int128>(graph, price, largest_cost, control, state.stats).run();
  }
  state.potential = std::move(price);
  graph.give_flow(network, control, state);
  return state;
}

}  // namespace

Solution solve_cost_scaling(const Network& network, const Start& start, const Control& control) {
  return solve_by_width(network, start, control, [&]<class V>(Solution& solution) {
    solution = solve_with<V>(network, start, control, std::move(solution));
  });
}

}  // namespace flowsolver
