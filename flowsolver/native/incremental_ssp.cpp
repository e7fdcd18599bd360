#include "incremental_ssp.hpp"

#include "carrier_engine.hpp"
#include "source_placement.hpp"
#include "ssp_engine.hpp"

namespace flowsolver {

namespace {

bool stopped(Status status) { return status == Status::kCancelled || status == Status::kBudget; }

// Prices relative to the root's.
std::vector<std::int64_t> grounded(std::span<const std::int64_t> price, NodeId root) {
  std::vector<std::int64_t> grounded(price.begin(), price.end());
  for (std::int64_t& p : grounded) p -= price[root];
  return grounded;
}

std::unique_ptr<Engine> make_growing_engine(const EngineStart& start) {
  return mostly_unit_sources(start) ? make_carrier_engine(start) : make_ssp_engine(start, true);
}

}  // namespace

Solution solve_incremental_ssp(const Network& network, const Start& start, const Control& control) {
  Solution solution;
  solution.status = check_ranges(network);
  solution.flow.assign(network.num_arcs(), 0);
  solution.potential.assign(network.num_nodes(), 0);
  if (solution.status != Status::kOptimal || network.num_nodes() == 0) return solution;
  const NodeId root = largest_sink(network);
  Placement placed;
  if (start.flow.empty() && start.price.empty()) {
    placed = place_sources(network, root, control, solution.stats);
    solution.status = placed.status;
    if (placed.status != Status::kOptimal || placed.complete) {
      if (!as_int64(placed.cost, solution.cost) && placed.complete) solution.status = Status::kBadCostRange;
      if (!placed.flow.empty()) {
        solution.flow = std::move(placed.flow);
        solution.potential = std::move(placed.price);
      }
      return solution;
    }
  } else {
    placed.flow.assign(start.flow.begin(), start.flow.end());
    if (!start.price.empty()) placed.price = grounded(start.price, root);
  }
  const auto engine = make_ssp_engine({network, {}, root, placed.flow, placed.price}, false);
  if (!placed.flow.empty()) solution.flow = std::move(placed.flow);
  ++solution.stats.rebuilds;
  solution.status = engine->run(control, solution.stats);
  if (solution.status != Status::kOptimal && !stopped(solution.status)) return solution;
  for (const FlowBefore& before : engine->touched_arcs()) {
    solution.flow[before.arc] = engine->flow(before.arc, network.tail[before.arc]);
  }
  for (NodeId v = 0; v < network.num_nodes(); ++v) solution.potential[v] = engine->price(v);
  if (!as_int64(engine->cost(), solution.cost) && solution.status == Status::kOptimal) solution.status = Status::kBadCostRange;
  return solution;
}

std::unique_ptr<Engine> make_incremental_ssp(const EngineStart& start, const Control& control, Stats& stats) {
  ++stats.rebuilds;
  if (!start.flow.empty() || !start.price.empty()) return make_growing_engine(start);
  const Placement placed = place_sources(start.network, start.root, control, stats);
  if (placed.status == Status::kCancelled) return nullptr;
  // Stopped or without a way for some source: the engine goes on from zero, and finds out itself.
  if (placed.status != Status::kOptimal || placed.flow.empty()) return make_growing_engine(start);
  const std::vector<std::int64_t> price = grounded(placed.price, start.root);
  return make_growing_engine({start.network, start.alive, start.root, placed.flow, price});
}

}  // namespace flowsolver
