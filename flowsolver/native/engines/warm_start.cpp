#include "engines/warm_start.hpp"

#include <algorithm>
#include <utility>

#include "engines/proven_infeasibility.hpp"

namespace flowsolver {

WarmStartState::WarmStartState(const EngineStart& start)
    : network_(start.network),
      alive_(start.alive),
      has_solution_(!start.flow.empty() || !start.price.empty()),
      flow_(start.flow.begin(), start.flow.end()),
      price_(start.price.begin(), start.price.end()) {
  flow_.resize(network_.num_arcs(), 0);
  price_.resize(network_.num_nodes(), 0);
}

void WarmStartState::add_node(NodeId v, std::int64_t) {
  if (v >= price_.size()) price_.resize(v + 1, 0);
  price_[v] = 0;
}

void WarmStartState::remove_node(NodeId v) { price_[v] = 0; }

void WarmStartState::add_arc(ArcId arc, NodeId, NodeId, std::int64_t, std::int64_t) {
  if (arc >= flow_.size()) flow_.resize(arc + 1, 0);
  flow_[arc] = 0;
}

void WarmStartState::remove_arc(ArcId arc, NodeId, NodeId) { flow_[arc] = 0; }

void WarmStartState::set_capacity(ArcId arc, NodeId, NodeId, std::int64_t capacity) {
  flow_[arc] = std::min(flow_[arc], capacity);
}

__int128 WarmStartState::cost() const { return flow_cost(network_, flow_); }

void WarmStartState::store(Solution&& answer) {
  flow_ = std::move(answer.flow);
  price_ = std::move(answer.potential);
  has_solution_ = true;
}

void WarmStartState::adopt(const Engine& winner) {
  for (ArcId a = 0; a < flow_.size(); ++a)
    flow_[a] = alive_[a] == 0 ? 0 : winner.flow(a, network_.tail[a]);
  for (NodeId v = 0; v < price_.size(); ++v) price_[v] = winner.price(v);
  has_solution_ = true;
}

void WarmStartState::adopt_touched(const Engine& winner) {
  for (const auto& [arc, before] : winner.touched_arcs()) {
    if (alive_[arc] != 0) flow_[arc] = winner.flow(arc, network_.tail[arc]);
  }
  for (NodeId v : winner.repriced_nodes()) price_[v] = winner.price(v);
}

bool WarmStartState::prices_drifted() const {
  return std::any_of(price_.begin(), price_.end(),
                     [](std::int64_t p) { return p > 2 * kMaxPathCost || p < -2 * kMaxPathCost; });
}

Status WarmStartEngine::run(const Control& control, Stats& stats) {
  store_cut({});
  if (const Status status = control.check(stats); status != Status::kOptimal) return status;
  Solution answer = solve_proven(method_, network_, start(), control);
  stats.add(answer.stats);
  store_cut(std::move(answer.cut));
  const Status status = answer.status;
  if (status == Status::kOptimal || status == Status::kBudget) store(std::move(answer));
  return status;
}

}  // namespace flowsolver
