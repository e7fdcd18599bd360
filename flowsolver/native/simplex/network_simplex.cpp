#include "simplex/network_simplex.hpp"

#include <algorithm>
#include <vector>

#include "graph/start_state.hpp"
#include "simplex/simplex_pivots.hpp"
#include "simplex/simplex_start.hpp"
#include "simplex/spanning_tree.hpp"

namespace flowsolver {

namespace {

struct NoObserver {
  static constexpr bool kObserves = false;
  void flow_moves(ArcId, std::int64_t, std::int64_t) {}
  void prices_moved(NodeId) {}
};

// Whether artificial arcs carry flow.
bool infeasible(const SpanningTree& tree, NodeId sink) {
  for (NodeId v = 0; v < tree.root(); ++v) {
    const SpanningTree::TreeArc arc = tree.arc(v);
    if (v != sink && arc.arc == kNone && arc.up != 0 && arc.down != 0) return true;
  }
  return false;
}

// The flow of tree arcs.
void write_flow(const Network& network, const SpanningTree& tree, const Control& control,
                Solution& solution) {
  CancellationChecker checker(control);
  for (NodeId v = 0; v < tree.root(); ++v) {
    checker.step_until_cancelled(solution.stats);
    const SpanningTree::TreeArc arc = tree.arc(v);
    if (arc.arc != kNone) solution.flow[arc.arc] = network.tail[arc.arc] == v ? arc.down : arc.up;
  }
}

// What is to be known before there is a tree.
struct Survey {
  std::int64_t artificial_cost = 1;  // more than any path's
  std::vector<std::uint8_t> outer;   // nodes without an arc into them that could carry flow
};

Status take_survey(const Network& network, const Control& control, Survey& survey) {
  std::uint64_t most = 0;
  survey.outer.assign(network.num_nodes(), 1);
  const Status status =
      for_each_block(network.num_arcs(), control, {}, [&](std::size_t begin, std::size_t end) {
        most =
            std::max(most, largest_magnitude(std::span(network.cost).subspan(begin, end - begin)));
        for (std::size_t a = begin; a < end; ++a) {
          if (network.capacity[a] > 0 && network.tail[a] != network.head[a])
            survey.outer[network.head[a]] = 0;
        }
      });
  survey.artificial_cost += static_cast<std::int64_t>(most * network.num_nodes());
  return status;
}

void solve(const Network& network, const Start& start, const Control& control, Solution& solution) {
  Survey survey;
  solution.status = take_survey(network, control, survey);
  if (solution.status != Status::kOptimal) return;
  SpanningTree tree(std::move(survey.outer), control);
  const std::vector<std::int64_t> hint = start_prices(network, start);
  const NodeId sink = largest_sink(network);
  SimplexStart begin(network, solution.flow, hint, control, control, solution.stats);
  solution.status = begin.run(tree, sink, survey.artificial_cost);
  if (solution.status == Status::kOptimal) {
    SimplexPivots<NoObserver> pivots(network, solution.flow, tree, {});
    PivotWork work(control, solution.stats);
    solution.status = pivots.classify(work);
    if (solution.status == Status::kOptimal) solution.status = pivots.run(work);
    if (solution.status == Status::kCancelled) return;
    write_flow(network, tree, control, solution);
    if (solution.status == Status::kOptimal && infeasible(tree, sink))
      solution.status = Status::kInfeasible;
    const std::int64_t base = tree.price(sink);
    CancellationChecker checker(control);
    for (NodeId v = 0; v < network.num_nodes(); ++v) {
      checker.step_until_cancelled(solution.stats);
      solution.potential[v] = tree.price(v) - base;
    }
  }
  if (solution.status == Status::kCancelled) return;
  __int128 cost = 0;
  if (add_up_cost(network, solution.flow, control, cost) != Status::kOptimal)
    throw Stopped{Status::kCancelled};
  if (!as_int64(cost, solution.cost) && solution.status == Status::kOptimal)
    solution.status = Status::kBadCostRange;
}

}  // namespace

Solution solve_network_simplex(const Network& network, const Start& start, const Control& control) {
  Solution solution = start_state(network, start, control).solution;
  if (solution.status != Status::kOptimal || network.num_nodes() == 0) return solution;
  try {
    solve(network, start, control, solution);
  } catch (const Stopped& stopped) {
    solution.status = stopped.status;
  }
  return solution;
}

}  // namespace flowsolver
