#include "shortest_path/ssp_engine.hpp"

#include <algorithm>
#include <array>

#include "graph/price_estimate.hpp"
#include "graph/residual_graph.hpp"
#include "shortest_path/deficit_hints.hpp"
#include "shortest_path/local_engine.hpp"
#include "shortest_path/path_search.hpp"
#include "shortest_path/price_repair.hpp"

namespace flowsolver {

namespace {

template <class Value>
class SspEngine final : public LocalEngine<Value> {
 public:
  SspEngine(const EngineStart& start, bool has_spare_room, std::int64_t max_scans,
            const Control& control);

  void add_node(NodeId v, std::int64_t supply) override;
  void remove_node(NodeId v) override;
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override;
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override;
  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override;
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override;
  void change_supply(NodeId v, std::int64_t delta) override { shift_imbalance(v, delta); }
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override;
  Status run(const Control& control, Stats& stats) override;
  std::int64_t flow(ArcId arc, NodeId tail) const override { return graph_.flow_at(arc, tail); }
  std::int64_t price(NodeId v) const override { return graph_.nodes[v].price; }

 private:
  using LocalEngine<Value>::graph_;
  using LocalEngine<Value>::cost_;
  using LocalEngine<Value>::unbalanced_;
  using LocalEngine<Value>::new_nodes_;
  using LocalEngine<Value>::dirty_;
  using LocalEngine<Value>::repriced_;
  using LocalEngine<Value>::kCancelCheckInterval;
  using LocalEngine<Value>::kFarShare;
  using LocalEngine<Value>::kFewLeft;
  using LocalEngine<Value>::mark_dirty;
  using LocalEngine<Value>::needs_flow;
  using Pseudoflow<Value>::shift_imbalance;

  void start_from_estimate(const Network& network, const Control& control);
  template <bool kForward>
  Status route_imbalances(std::vector<NodeId>& sources, const Control& control, Stats& stats);
  template <bool kForward>
  Status route_in_phases(std::vector<NodeId>& sources, const Control& control, Stats& stats);
  template <bool kForward>
  void augment(const Target& target, Stats& stats);
  template <bool kForward>
  PathSearch<ResidualGraph<Value>, kForward>& search() {
    if constexpr (kForward) {
      return forward_;
    } else {
      return backward_;
    }
  }
  // The check between two searches.
  Status check(const Control& control, const Stats& stats) const {
    return stats.scanned > last_scan_ ? Status::kBudget : control.check(stats);
  }
  template <bool kForward>
  std::vector<NodeId> unbalanced_nodes() const;
  static constexpr std::size_t kMaxMovesPerNode = 4;  // per node
  void move_deficits_along_flow();
  void hint_at_deficits();

  PathSearch<ResidualGraph<Value>, true> forward_;
  PathSearch<ResidualGraph<Value>, false> backward_;
  const std::int64_t max_scans_;
  std::int64_t last_scan_ = kInfinity;  // the run ends when it has scanned so much
};

template <class Value>
SspEngine<Value>::SspEngine(const EngineStart& start, bool has_spare_room, std::int64_t max_scans,
                            const Control& control)
    : LocalEngine<Value>(ResidualGraph<Value>(start.network, start.flow, start.alive, start.root,
                                              has_spare_room, control),
                         start.network),
      max_scans_(max_scans) {
  CancellationChecker checker(control);
  const Network& network = start.network;
  const bool cold = start.flow.empty() && start.price.empty();
  for (NodeId v = 0; v < network.num_nodes(); ++v) {
    checker.step_until_cancelled({});
    if (!start.price.empty()) graph_.nodes[v].price = start.price[v];
    if (network.supply[v] != 0) shift_imbalance(v, network.supply[v]);
  }
  graph_.nodes[start.root].price = 0;
  if (cold) start_from_estimate(network, control);
  for (ArcId a = 0; a < network.num_arcs(); ++a) {
    checker.step_until_cancelled({});
    if (!start.alive.empty() && start.alive[a] == 0) continue;
    if (!start.flow.empty() && start.flow[a] != 0) {
      shift_imbalance(network.tail[a], -start.flow[a]);
      shift_imbalance(network.head[a], start.flow[a]);
      cost_ += static_cast<__int128>(network.cost[a]) * start.flow[a];
    }
    // Only arcs that violate the invariant. In a cold start, sources get the price of their best
    // arc first.
    const std::int64_t rc =
        network.cost[a] - graph_.nodes[network.tail[a]].price + graph_.nodes[network.head[a]].price;
    const std::int64_t used = start.flow.empty() ? 0 : start.flow[a];
    if ((rc < 0 && used < network.capacity[a]) || (rc > 0 && used > 0)) {
      mark_dirty(a);
    }
  }
  if (cold) {
    for (NodeId v = 0; v < network.num_nodes(); ++v) {
      if (network.supply[v] > 0 && v != start.root && (graph_.nodes[v].flags & kInterior) == 0) {
        graph_.nodes[v].flags |= kNewNode;
        new_nodes_.push_back(v);
      }
    }
  }
}

template <class Value>
void SspEngine<Value>::start_from_estimate(const Network& network, const Control& control) {
  const PriceEstimate estimate = estimate_price(network, graph_.root(), control);
  for (NodeId v : estimate.nodes) graph_.nodes[v].price = estimate.price;
}

template <class Value>
void SspEngine<Value>::add_node(NodeId v, std::int64_t supply) {
  graph_.grow_to_node(v);
  graph_.nodes[v].flags |= kNewNode;
  new_nodes_.push_back(v);
  if (supply != 0) shift_imbalance(v, supply);
}

template <class Value>
void SspEngine<Value>::remove_node(NodeId v) {
  graph_.clear_node(v);
}

template <class Value>
void SspEngine<Value>::add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
                               std::int64_t cost) {
  graph_.attach(arc, tail, head, static_cast<Value>(capacity), static_cast<Value>(cost));
  mark_dirty(arc);
}

template <class Value>
void SspEngine<Value>::remove_arc(ArcId arc, NodeId tail, NodeId head) {
  this->add_flow(arc, tail, head, -graph_.flow_at(arc, tail));
  graph_.detach(arc, tail);
}

template <class Value>
void SspEngine<Value>::set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) {
  const std::int64_t flow = graph_.flow_at(arc, tail);
  if (flow > capacity) this->add_flow(arc, tail, head, capacity - flow);
  graph_.set_capacity(arc, tail, static_cast<Value>(capacity));
  mark_dirty(arc);
}

template <class Value>
void SspEngine<Value>::set_cost(ArcId arc, NodeId tail, std::int64_t cost) {
  const std::int64_t flow = graph_.flow_at(arc, tail);
  cost_ += static_cast<__int128>(flow) * (static_cast<__int128>(cost) - graph_.cost_at(arc, tail));
  graph_.set_cost(arc, tail, static_cast<Value>(cost));
  mark_dirty(arc);
}

template <class Value>
void SspEngine<Value>::incident_arcs(std::span<const NodeId> of, std::vector<ArcId>& arcs) const {
  for (NodeId v : of) {
    const Node<Value>& node = graph_.nodes[v];
    if (graph_.root_arc(v) != kNone) arcs.push_back(graph_.root_arc(v));
    for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
      const auto& edge = graph_.edges[i];
      // a self-loop once
      if (edge.to != v || graph_.is_forward(edge)) arcs.push_back(edge.id >> 1);
    }
  }
}

// Moves a deficit that a removed task left at an aggregator along flow with rc = 0 to where
// capacity was freed (X -> rack -> machine). A backward search would find that only after scanning
// all arcs into the aggregator.
template <class Value>
void SspEngine<Value>::move_deficits_along_flow() {
  constexpr std::uint32_t kLook = 600;
  // Limited, because a deficit could circulate on a cycle of flow.
  std::size_t left = kMaxMovesPerNode * (graph_.nodes.size() + unbalanced_.size());
  for (std::size_t k = 0; k < unbalanced_.size(); ++k) {  // grows meanwhile
    NodeId v = unbalanced_[k];
    // bounded: by `left`
    while (graph_.nodes[v].imbalance < 0 && v != graph_.root() &&
           (graph_.nodes[v].flags & kInterior) != 0 && left > 0) {
      --left;
      const Node<Value>& node = graph_.nodes[v];
      std::uint32_t found = kNone;
      const std::uint32_t end = node.begin + std::min(node.residual_degree, kLook);
      for (std::uint32_t i = node.begin; i < end && found == kNone; ++i) {
        const auto& edge = graph_.edges[i];
        if (graph_.is_forward(edge) && edge.reverse_residual > 0 && edge.to != v &&
            edge.cost - node.price + graph_.nodes[edge.to].price == 0) {
          found = i;
        }
      }
      if (found == kNone) break;
      const auto edge = graph_.edges[found];
      const std::int64_t amount = std::min<std::int64_t>(-node.imbalance, edge.reverse_residual);
      this->add_flow(edge.id >> 1, v, edge.to, -amount);
    }
  }
}

template <class Value>
void SspEngine<Value>::hint_at_deficits() {
  for (NodeId v : unbalanced_) {
    if (needs_flow(v, false))
      hint_at_deficit(graph_, v,
                      [](const Node<Value>& node) { return (node.flags & kInterior) != 0; });
  }
}

template <class Value>
template <bool kForward>
std::vector<NodeId> SspEngine<Value>::unbalanced_nodes() const {
  std::vector<NodeId> nodes;
  for (NodeId v : unbalanced_) {
    if (needs_flow(v, kForward)) nodes.push_back(v);
  }
  return nodes;
}

template <class Value>
template <bool kForward>
void SspEngine<Value>::augment(const Target& target, Stats& stats) {
  ++stats.augmentations;
  auto& nodes = graph_.nodes;
  Node<Value>& last = nodes[target.node];
  std::int64_t amount = kInfinity;
  if (target.through_root_arc) {
    amount = kForward ? last.root_residual : last.root_flow;
  } else if (target.node != graph_.root()) {
    amount = kForward ? -last.imbalance : last.imbalance;
  }
  NodeId source = target.node;
  while (nodes[source].parent != kNone) {  // bounded: by the length of a path
    const auto& edge = graph_.edges[nodes[source].parent];
    amount = std::min<std::int64_t>(amount, kForward ? edge.residual : edge.reverse_residual);
    source = graph_.owner(nodes[source].parent);
  }
  amount = std::min(amount, kForward ? nodes[source].imbalance : -nodes[source].imbalance);
  for (NodeId v = target.node; v != source;) {  // bounded: by the length of a path
    const std::uint32_t index = nodes[v].parent;
    const NodeId u = graph_.owner(index);
    if constexpr (kForward) {
      this->move_flow(u, index, static_cast<Value>(amount));
    } else {
      this->move_flow(v, graph_.position[graph_.edges[index].id ^ 1], static_cast<Value>(amount));
    }
    if ((nodes[u].flags & kInterior) != 0) nodes[u].current = index;
    v = u;
  }
  const std::int64_t sent = kForward ? amount : -amount;
  shift_imbalance(source, -sent);
  if (target.through_root_arc) {
    this->move_root_flow(target.node, sent);
  } else {
    shift_imbalance(target.node, sent);
  }
}

template <class Value>
template <bool kForward>
Status SspEngine<Value>::route_in_phases(std::vector<NodeId>& sources, const Control& control,
                                         Stats& stats) {
  auto& paths = search<kForward>();
  const std::int64_t before = stats.operations();
  std::size_t all = 0;
  std::int64_t until_check = kCancelCheckInterval;
  while (true) {
    std::erase_if(sources, [this](NodeId v) { return !needs_flow(v, kForward); });
    if (sources.empty()) return Status::kOptimal;
    all = std::max(all, sources.size());
    Status status = check(control, stats);
    if (status == Status::kOptimal)
      status = control.report_progress(stats, before, all - sources.size(), sources.size());
    if (status != Status::kOptimal) return status;
    ++stats.phases;
    const Target nearest = paths.run(graph_, sources, kInfinity, repriced_, stats);
    if (!nearest.found()) return this->report_no_path(sources.front(), kForward);
    augment<kForward>(nearest, stats);
    // All paths of length zero, as in Dinic's blocking flows: what cannot reach a target now cannot
    // before prices change.
    paths.relabel(graph_, stats);
    for (NodeId source : sources) {
      while (status == Status::kOptimal && needs_flow(source, kForward) &&
             paths.reaches_target(graph_.nodes[source])) {
        if (until_check-- == 0) {
          status = check(control, stats);
          until_check = kCancelCheckInterval;
        }
        const Target target = paths.run(graph_, std::array{source}, 0, repriced_, stats);
        if (!target.found()) {
          paths.mark_settled_dead(graph_);
          break;
        }
        augment<kForward>(target, stats);
      }
    }
    paths.clear_dead(graph_);
    if (status != Status::kOptimal) return status;
  }
}

template <class Value>
template <bool kForward>
Status SspEngine<Value>::route_imbalances(std::vector<NodeId>& sources, const Control& control,
                                          Stats& stats) {
  auto& paths = search<kForward>();
  std::int64_t until_check = 0;
  const std::int64_t before = stats.operations();
  const auto half_edges = static_cast<std::int64_t>(graph_.edges.size());
  const std::int64_t far_scan = half_edges / kFarShare;
  std::int64_t far_budget = half_edges;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const NodeId source = sources[k];
    while (needs_flow(source, kForward)) {
      if (until_check-- == 0) {
        if (const Status status = check(control, stats); status != Status::kOptimal) return status;
        until_check = kCancelCheckInterval;
      }
      const std::int64_t scanned_before = stats.scanned;
      const Target target = paths.run(graph_, std::array{source}, kInfinity, repriced_, stats);
      if (!target.found()) return this->report_no_path(source, kForward);
      augment<kForward>(target, stats);
      const std::int64_t scanned = stats.scanned - scanned_before;
      if (scanned > far_scan) {
        far_budget -= scanned;
        until_check = 0;
      }
      if (far_budget < 0 && sources.size() - k > kFewLeft) {
        sources.erase(sources.begin(), sources.begin() + static_cast<std::ptrdiff_t>(k));
        return route_in_phases<kForward>(sources, control, stats);
      }
    }
    const Status status = this->report(control, stats, before, k + 1, sources.size());
    if (status != Status::kOptimal) return status;
  }
  return Status::kOptimal;
}

template <class Value>
Status SspEngine<Value>::run(const Control& control, Stats& stats) {
  PriceRepair<Value>(*this, this->network_, repriced_, stats).run(new_nodes_, dirty_);
  move_deficits_along_flow();
  hint_at_deficits();
  forward_.set_control(control);
  backward_.set_control(control);
  last_scan_ = max_scans_ == kInfinity ? kInfinity : stats.scanned + max_scans_;
  Status status;
  try {
    std::vector<NodeId> sources = unbalanced_nodes<true>();
    status = route_imbalances<true>(sources, control, stats);
    if (status == Status::kOptimal) {
      sources = unbalanced_nodes<false>();
      status = route_imbalances<false>(sources, control, stats);
    }
  } catch (const Stopped& stopped) {
    status = stopped.status;
    forward_.clear_dead(graph_);
    backward_.clear_dead(graph_);
  }
  this->drop_balanced();
  return status;
}

}  // namespace

std::unique_ptr<Engine> make_ssp_engine(const EngineStart& start, bool has_spare_room,
                                        std::int64_t max_scans, const Control& control) {
  if (fits_narrow(start.network, control)) {
    return std::make_unique<SspEngine<std::int32_t>>(start, has_spare_room, max_scans, control);
  }
  return std::make_unique<SspEngine<std::int64_t>>(start, has_spare_room, max_scans, control);
}

}  // namespace flowsolver
