#include "warm_engine.hpp"

#include <algorithm>

namespace flowsolver {

WarmEngine::WarmEngine(Method method, const EngineStart& start)
    : method_(method),
      network_(start.network),
      alive_(start.alive),
      flow_(start.flow.begin(), start.flow.end()),
      price_(start.price.begin(), start.price.end()) {
  flow_.resize(network_.num_arcs(), 0);
  price_.resize(network_.num_nodes(), 0);
}

void WarmEngine::add_node(NodeId v, std::int64_t) {
  if (v >= price_.size()) price_.resize(v + 1, 0);
  price_[v] = 0;
}

void WarmEngine::remove_node(NodeId v) { price_[v] = 0; }

void WarmEngine::add_arc(ArcId arc, NodeId, NodeId, std::int64_t, std::int64_t) {
  if (arc >= flow_.size()) flow_.resize(arc + 1, 0);
  flow_[arc] = 0;
}

void WarmEngine::remove_arc(ArcId arc, NodeId, NodeId) { flow_[arc] = 0; }

void WarmEngine::set_capacity(ArcId arc, NodeId, NodeId, std::int64_t capacity) {
  flow_[arc] = std::min(flow_[arc], capacity);
}

Status WarmEngine::run(const Control& control, Stats& stats) {
  Solution answer = method_(network_, {flow_, price_}, control);
  stats.add(answer.stats);
  if (answer.status == Status::kOptimal || answer.status == Status::kBudget) {
    flow_ = std::move(answer.flow);
    price_ = std::move(answer.potential);
  }
  return answer.status;
}

__int128 WarmEngine::cost() const {
  __int128 cost = 0;
  for (ArcId a = 0; a < flow_.size(); ++a) cost += static_cast<__int128>(network_.cost[a]) * flow_[a];
  return cost;
}

void WarmEngine::adopt(const Engine& winner) {
  for (ArcId a = 0; a < flow_.size(); ++a) flow_[a] = alive_[a] == 0 ? 0 : winner.flow(a, network_.tail[a]);
  for (NodeId v = 0; v < price_.size(); ++v) price_[v] = winner.price(v);
}

bool WarmEngine::prices_drifted() const {
  return std::any_of(price_.begin(), price_.end(), [](std::int64_t p) { return p > 2 * kMaxPathCost || p < -2 * kMaxPathCost; });
}

}  // namespace flowsolver
