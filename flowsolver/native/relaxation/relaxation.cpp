#include "relaxation/relaxation.hpp"

#include "graph/start_state.hpp"
#include "relaxation/dual_ascent.hpp"

namespace flowsolver {

namespace {

template <class V>
void solve(const Network& network, const Start& start, const Control& control, Solution& solution) {
  BalancedGraph<ArcGraph<V>> graph;
  std::vector<std::int64_t> price;
  if (!start.flow.empty() || !start.price.empty()) price = start_prices(network, start);
  solution.status = graph.build(network, start, price, control, solution.stats);
  if (solution.status != Status::kOptimal) return;
  IterationHistory past;
  if (!price.empty() && prices_too_far_apart(graph) && !close_gaps(graph)) {
    solution.status = Status::kInfeasible;
  } else {
    solution.status = DualAscent<ArcGraph<V>>(graph, past, control, solution.stats).run();
  }
  if (solution.status == Status::kCancelled) return;
  for (NodeId v = 0; v < network.num_nodes(); ++v) solution.potential[v] = graph.nodes[v].price;
  graph.arcs().write_flow(network, control, solution);
}

}  // namespace

Solution solve_relaxation(const Network& network, const Start& start, const Control& control) {
  return solve_by_width(network, start, control, [&]<class Value>(Solution& solution) {
    solve<Value>(network, start, control, solution);
  });
}

}  // namespace flowsolver
