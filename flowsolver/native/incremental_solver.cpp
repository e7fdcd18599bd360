#include "incremental_solver.hpp"

#include <algorithm>
#include <limits>

namespace flowsolver {

IncrementalSolver::IncrementalSolver(const Network& network, const Algorithm& algorithm)
    : IncrementalSolver(
          network,
          [&algorithm](const EngineStart& start, const Control& control, Stats& stats) {
            return algorithm.make_engine(start, control, stats);
          },
          [&algorithm](const Network& live, const Control& control) {
            return algorithm.solve(live, {}, control);
          }) {}

IncrementalSolver::IncrementalSolver(const Network& network, MakeEngine make_engine,
                                     SolveCold solve_cold)
    : network_(network),
      value_limit_(std::numeric_limits<std::uint64_t>::max()),
      make_engine_(std::move(make_engine)),
      solve_cold_(std::move(solve_cold)) {
  flow_.reserve(network.num_arcs() + network.num_arcs() / 4);
  flow_.assign(network.num_arcs(), 0);
}

// Drops the engine if a value does not fit its width, or is so large that its arithmetic could
// overflow before the next range check. The next resolve makes one that fits.
void IncrementalSolver::keep_within_range(std::int64_t value) {
  if (magnitude(value) > value_limit_) drop_engine();
}

// Small rounds: each change is applied to the engine as it is made. Large rounds: changes are
// logged and applied when the engine is about to run, unless it is given up for a cold start.
// Without an engine nothing need be done: the next one is made from the network.
template <class Apply, class Log>
void IncrementalSolver::apply_change(Apply apply, Log log_change) {
  solved_ = false;
  if (round_.all() >= next_review_) review_round(0);
  if (change_policy_ != ChangePolicy::kApply) {
    log_change(log_);
  } else if (engine_ != nullptr) {
    warm_is_optimum_ = false;
    apply(*engine_);
  }
}

// Called when there are many changes, or when many are announced.
void IncrementalSolver::review_round(std::int64_t expected) {
  constexpr std::int64_t kInterval = 1024;
  constexpr std::size_t kLongLog = 4;  // times the network's size
  if (change_policy_ == ChangePolicy::kApply && round_.all() + expected > kFewChanges)
    change_policy_ = ChangePolicy::kLog;
  next_review_ = std::max(round_.all(), kFewChanges) + kInterval;
  if (change_policy_ != ChangePolicy::kLog) return;
  RoundChanges round = round_;
  round.values += expected;  // at least
  if (cold_operations_ < 0 &&
      cold_start_.is_cheaper(round, network_.live_size(), network_.num_sources())) {
    change_policy_ = ChangePolicy::kDiscard;
    log_.stop_recording();
  } else if (log_.size() > kLongLog * (net().num_nodes() + net().num_arcs())) {
    apply_log();
  }
}

void IncrementalSolver::expect_changes(std::size_t changes) {
  review_round(static_cast<std::int64_t>(changes));
}

NodeId IncrementalSolver::add_node(std::int64_t supply) {
  keep_within_range(supply);
  const NodeId v = network_.add_node(supply);
  ++round_.structure;
  round_.displaced += supply != 0;
  apply_change([=](Engine& engine) { engine.add_node(v, supply); },
               [=](ChangeLog& log) { log.add_node(v); });
  return v;
}

ArcId IncrementalSolver::add_arc(NodeId tail, NodeId head, std::int64_t capacity,
                                 std::int64_t cost) {
  keep_within_range(std::min(capacity, lowered_.level()));
  keep_within_range(cost);
  const ArcId a = network_.add_arc(tail, head, std::min(capacity, lowered_.level()), cost);
  capacity = lowered_.lower(a, capacity);
  if (a == flow_.size()) flow_.push_back(0);
  ++round_.structure;
  apply_change([=](Engine& engine) { engine.add_arc(a, tail, head, capacity, cost); },
               [=](ChangeLog& log) { log.add_arc(a); });
  return a;
}

void IncrementalSolver::remove_arc(ArcId arc) {
  ++round_.structure;
  apply_change(
      [=, this](Engine& engine) { engine.remove_arc(arc, net().tail[arc], net().head[arc]); },
      [=](ChangeLog& log) { log.remove_arc(arc); });
  remove_arcs({&arc, 1});
}

// The engine has these changes, or will get them.
void IncrementalSolver::remove_arcs(std::span<const ArcId> arcs) {
  for (ArcId a : arcs) {
    network_.remove_arc(a);
    lowered_.forget(a);
    round_.displaced += flow_[a] != 0;
    flow_[a] = 0;
    if (a < warm_flow_.size()) warm_flow_[a] = 0;
  }
}

void IncrementalSolver::remove_nodes(std::span<const NodeId> nodes) {
  expect_changes(nodes.size());
  const bool removes_root = std::find(nodes.begin(), nodes.end(), root_) != nodes.end();
  if (removes_root) drop_engine();
  for (NodeId v : nodes) {
    network_.remove_node(v);
    if (v < warm_price_.size()) warm_price_[v] = 0;
  }
  round_.structure += static_cast<std::int64_t>(nodes.size());
  const bool engine_is_local = engine_ != nullptr && engine_->local();
  std::vector<ArcId> arcs;
  bool applied = false;
  if (change_policy_ == ChangePolicy::kApply && engine_is_local)
    applied = engine_->remove_with_arcs(nodes, arcs);
  if (applied) {
    warm_is_optimum_ = false;
    if (!std::is_sorted(arcs.begin(), arcs.end())) std::sort(arcs.begin(), arcs.end());
  } else {
    const auto find = [this](std::span<const NodeId> removed, std::vector<ArcId>& found) {
      std::vector<NodeId> known(removed.begin(), removed.end());
      std::erase_if(known, [this](NodeId v) { return log_.is_new_node(v); });
      engine_->incident_arcs(known, found);
      for (ArcId a : log_.new_arcs()) {
        if (!network_.live_node(net().tail[a]) || !network_.live_node(net().head[a]))
          found.push_back(a);
      }
    };
    const bool finds = engine_is_local && change_policy_ != ChangePolicy::kDiscard;
    arcs = network_.arcs_at_removed(nodes, finds ? find : ChangingNetwork::FindArcs{},
                                    log_.new_arcs().size());
    expect_changes(arcs.size());
    apply_change(
        [&](Engine& engine) {
          for (ArcId a : arcs) engine.remove_arc(a, net().tail[a], net().head[a]);
          for (NodeId v : nodes) engine.remove_node(v);
        },
        [&](ChangeLog& log) { log.remove_nodes(nodes, arcs); });
  }
  solved_ = false;
  round_.structure += static_cast<std::int64_t>(arcs.size());
  remove_arcs(arcs);
}

void IncrementalSolver::set_capacity(ArcId arc, std::int64_t capacity) {
  change_capacity(arc, lowered_.lower(arc, capacity));
}

void IncrementalSolver::change_capacity(ArcId arc, std::int64_t capacity) {
  if (net().capacity[arc] == capacity) return;
  keep_within_range(capacity);
  network_.set_capacity(arc, capacity);
  ++round_.values;
  round_.displaced += flow_[arc] > capacity;
  apply_change(
      [=, this](Engine& engine) {
        engine.set_capacity(arc, net().tail[arc], net().head[arc], capacity);
      },
      [=](ChangeLog& log) { log.set_capacity(arc); });
}

void IncrementalSolver::set_cost(ArcId arc, std::int64_t cost) {
  if (net().cost[arc] == cost) return;
  keep_within_range(cost);
  network_.set_cost(arc, cost);
  ++round_.values;
  apply_change([=, this](Engine& engine) { engine.set_cost(arc, net().tail[arc], cost); },
               [=](ChangeLog& log) { log.set_cost(arc); });
}

void IncrementalSolver::set_supply(NodeId node, std::int64_t supply) {
  const std::int64_t before = net().supply[node];
  if (before == supply) return;
  keep_within_range(supply);
  network_.set_supply(node, supply);
  ++round_.values;
  ++round_.displaced;
  round_.sign_changes += (before > 0 && supply < 0) || (before < 0 && supply > 0);
  apply_change([=](Engine& engine) { engine.change_supply(node, supply - before); },
               [=](ChangeLog& log) { log.change_supply(node, supply - before); });
}

// For live ids: the state that the last resolve reached.
std::int64_t IncrementalSolver::flow_now(ArcId arc) const {
  if (engine_ != nullptr) return log_.is_new_arc(arc) ? 0 : engine_->flow(arc, net().tail[arc]);
  if (warm_is_optimum_) return flow_[arc];
  return arc < warm_flow_.size() ? warm_flow_[arc] : 0;
}

std::int64_t IncrementalSolver::price_now(NodeId v) const {
  if (engine_ != nullptr) return log_.is_new_node(v) ? 0 : engine_->price(v);
  return v < warm_price_.size() ? warm_price_[v] : 0;
}

std::vector<std::int64_t> IncrementalSolver::flow_reached() const {
  std::vector<std::int64_t> flow(net().num_arcs(), 0);
  for (ArcId a = 0; a < net().num_arcs(); ++a) {
    if (network_.arc_alive()[a] != 0) flow[a] = std::min(flow_now(a), net().capacity[a]);
  }
  return flow;
}

std::vector<std::int64_t> IncrementalSolver::potential() const {
  std::vector<std::int64_t> potential(net().num_nodes(), 0);
  for (NodeId v = 0; v < net().num_nodes(); ++v) {
    if (network_.node_alive()[v] != 0) potential[v] = price_now(v);
  }
  return potential;
}

CutCertificate IncrementalSolver::certify_cut() const {
  if (lowered_.any()) return flowsolver::certify_cut(given_network(), cut_, network_.node_alive());
  return flowsolver::certify_cut(net(), cut_, network_.node_alive());
}

Certificate IncrementalSolver::certify() const {
  if (lowered_.any())
    return flowsolver::certify(given_network(), flow_, potential(), cost_, network_.arc_alive());
  return flowsolver::certify(net(), flow_, potential(), cost_, network_.arc_alive());
}

Certificate IncrementalSolver::certify_touched() const {
  if (touched_all_ || lowered_.any()) return certify();
  Certificate certificate;
  certificate.costs_agree = true;
  if (engine_ == nullptr) return certificate;
  std::vector<NodeId> nodes = touched_;
  for (NodeId v : repriced_) {
    nodes.push_back(v);
    engine_->implicitly_priced_by(v, nodes);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  // the root balances if all other nodes do
  std::erase_if(nodes, [this](NodeId v) { return network_.node_alive()[v] == 0 || v == root_; });
  std::vector<ArcId> arcs;
  std::vector<std::size_t> end;  // of the arcs at each node
  for (NodeId v : nodes) {
    engine_->incident_arcs({&v, 1}, arcs);
    end.push_back(arcs.size());
  }
  const auto fetch = [this](ArcId a) {  // arcs are scattered in memory
    __builtin_prefetch(&net().tail[a]);
    __builtin_prefetch(&net().head[a]);
    __builtin_prefetch(&net().capacity[a]);
    __builtin_prefetch(&net().cost[a]);
    __builtin_prefetch(&flow_[a]);
  };
  constexpr std::size_t kAhead = 16;
  std::size_t at = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeId v = nodes[i];
    __int128 outflow = 0;
    for (; at < end[i]; ++at) {
      if (at + kAhead < arcs.size()) fetch(arcs[at + kAhead]);
      const ArcId a = arcs[at];
      const NodeId tail = net().tail[a], head = net().head[a];
      check_arc(net(), a, flow_[a], engine_->price(tail), engine_->price(head), certificate);
      if (tail != head) outflow += tail == v ? flow_[a] : -flow_[a];
    }
    ++certificate.nodes_checked;
    certificate.balance_violations += outflow != net().supply[v];
  }
  return certificate;
}

}  // namespace flowsolver
