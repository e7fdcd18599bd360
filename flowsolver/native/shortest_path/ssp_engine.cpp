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
  SspEngine(const EngineStart& start, bool growing, std::int64_t patience, const Control& control);

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
  using LocalEngine<Value>::fresh_;
  using LocalEngine<Value>::dirty_;
  using LocalEngine<Value>::repriced_;
  using LocalEngine<Value>::kCancelCheckInterval;
  using LocalEngine<Value>::kFarShare;
  using LocalEngine<Value>::kFewLeft;
  using LocalEngine<Value>::soil;
  using LocalEngine<Value>::pending;
  using FlowMover<Value>::shift_imbalance;

  void start_from_estimate(const Network& network, const Control& control);
  template <bool kForward>
  Status drain(std::vector<NodeId>& sources, const Control& control, Stats& stats);
  template <bool kForward>
  Status drain_in_phases(std::vector<NodeId>& sources, const Control& control, Stats& stats);
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
  // Between searches.
  Status look(const Control& control, const Stats& stats) const {
    return stats.scanned > last_scan_ ? Status::kBudget : control.look(stats);
  }
  template <bool kForward>
  std::vector<NodeId> pending_nodes() const;
  static constexpr std::size_t kTraces = 4;  // per node
  void trace_deficits();
  void advertise_deficits();

  PathSearch<ResidualGraph<Value>, true> forward_;
  PathSearch<ResidualGraph<Value>, false> backward_;
  const std::int64_t patience_;
  std::int64_t last_scan_ = kInfinity;  // patience ends there in this run
};

template <class Value>
SspEngine<Value>::SspEngine(const EngineStart& start, bool growing, std::int64_t patience,
                            const Control& control)
    : LocalEngine<Value>(ResidualGraph<Value>(start.network, start.flow, start.alive, start.root,
                                              growing, control),
                         start.network),
      patience_(patience) {
  Pace pace(control);
  const Network& network = start.network;
  const bool cold = start.flow.empty() && start.price.empty();
  for (NodeId v = 0; v < network.num_nodes(); ++v) {
    pace.build_step({});
    if (!start.price.empty()) graph_.nodes[v].price = start.price[v];
    if (network.supply[v] != 0) shift_imbalance(v, network.supply[v]);
  }
  graph_.nodes[start.root].price = 0;
  if (cold) start_from_estimate(network, control);
  for (ArcId a = 0; a < network.num_arcs(); ++a) {
    pace.build_step({});
    if (!start.alive.empty() && start.alive[a] == 0) continue;
    if (!start.flow.empty() && start.flow[a] != 0) {
      shift_imbalance(network.tail[a], -start.flow[a]);
      shift_imbalance(network.head[a], start.flow[a]);
      cost_ += static_cast<__int128>(network.cost[a]) * start.flow[a];
    }
    // Only arcs that break the invariant. From a cold start sources get the price of their best arc
    // first.
    const std::int64_t rc =
        network.cost[a] - graph_.nodes[network.tail[a]].price + graph_.nodes[network.head[a]].price;
    const std::int64_t used = start.flow.empty() ? 0 : start.flow[a];
    if ((rc < 0 && used < network.capacity[a]) || (rc > 0 && used > 0)) {
      soil(a);
    }
  }
  if (cold) {
    for (NodeId v = 0; v < network.num_nodes(); ++v) {
      if (network.supply[v] > 0 && v != start.root && (graph_.nodes[v].flags & kInterior) == 0) {
        graph_.nodes[v].flags |= kFresh;
        fresh_.push_back(v);
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
  graph_.nodes[v].flags |= kFresh;
  fresh_.push_back(v);
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
  soil(arc);
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
  soil(arc);
}

template <class Value>
void SspEngine<Value>::set_cost(ArcId arc, NodeId tail, std::int64_t cost) {
  const std::int64_t flow = graph_.flow_at(arc, tail);
  const std::int64_t before = graph_.at_root(arc) ? graph_.nodes[tail].root_cost
                                                  : graph_.edges[graph_.position[2 * arc]].cost;
  cost_ += static_cast<__int128>(flow) * (static_cast<__int128>(cost) - before);
  graph_.set_cost(arc, tail, static_cast<Value>(cost));
  soil(arc);
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

// A deficit left at an aggregator by a removed task is moved over flow with rc = 0 to where room
// came free (X -> rack -> machine), which a backward search would find only after looking at all
// the aggregator's arcs in.
template <class Value>
void SspEngine<Value>::trace_deficits() {
  constexpr std::uint32_t kLook = 600;
  // A deficit could go round a cycle of flow as often as that has units.
  std::size_t left = kTraces * (graph_.nodes.size() + unbalanced_.size());
  for (std::size_t k = 0; k < unbalanced_.size(); ++k) {  // grows while we go
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
void SspEngine<Value>::advertise_deficits() {
  for (NodeId v : unbalanced_) {
    if (pending(v, false))
      point_at_deficit(graph_, v,
                       [](const Node<Value>& node) { return (node.flags & kInterior) != 0; });
  }
}

template <class Value>
template <bool kForward>
std::vector<NodeId> SspEngine<Value>::pending_nodes() const {
  std::vector<NodeId> nodes;
  for (NodeId v : unbalanced_) {
    if (pending(v, kForward)) nodes.push_back(v);
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
Status SspEngine<Value>::drain_in_phases(std::vector<NodeId>& sources, const Control& control,
                                         Stats& stats) {
  auto& paths = search<kForward>();
  const std::int64_t before = stats.operations();
  std::size_t all = 0;
  std::int64_t until_check = kCancelCheckInterval;
  while (true) {
    std::erase_if(sources, [this](NodeId v) { return !pending(v, kForward); });
    if (sources.empty()) return Status::kOptimal;
    all = std::max(all, sources.size());
    Status status = look(control, stats);
    if (status == Status::kOptimal)
      status = control.report_progress(stats, before, all - sources.size(), sources.size());
    if (status != Status::kOptimal) return status;
    ++stats.phases;
    const Target nearest = paths.run(graph_, sources, kInfinity, repriced_, stats);
    if (!nearest.found()) return this->no_way(sources.front(), kForward);
    augment<kForward>(nearest, stats);
    // All paths of length zero, as in Dinic's blocking flows: what cannot reach a target now cannot
    // before prices move.
    paths.relabel(graph_, stats);
    for (NodeId source : sources) {
      while (status == Status::kOptimal && pending(source, kForward) &&
             paths.within_reach(graph_.nodes[source])) {
        if (until_check-- == 0) {
          status = look(control, stats);
          until_check = kCancelCheckInterval;
        }
        const Target target = paths.run(graph_, std::array{source}, 0, repriced_, stats);
        if (!target.found()) {
          paths.bury_settled(graph_);
          break;
        }
        augment<kForward>(target, stats);
      }
    }
    paths.revive(graph_);
    if (status != Status::kOptimal) return status;
  }
}

template <class Value>
template <bool kForward>
Status SspEngine<Value>::drain(std::vector<NodeId>& sources, const Control& control, Stats& stats) {
  auto& paths = search<kForward>();
  std::int64_t until_check = 0;
  const std::int64_t before = stats.operations();
  const auto half_edges = static_cast<std::int64_t>(graph_.edges.size());
  const std::int64_t far_scan = half_edges / kFarShare;
  std::int64_t far_budget = half_edges;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const NodeId source = sources[k];
    while (pending(source, kForward)) {
      if (until_check-- == 0) {
        if (const Status status = look(control, stats); status != Status::kOptimal) return status;
        until_check = kCancelCheckInterval;
      }
      const std::int64_t scanned_before = stats.scanned;
      const Target target = paths.run(graph_, std::array{source}, kInfinity, repriced_, stats);
      if (!target.found()) return this->no_way(source, kForward);
      augment<kForward>(target, stats);
      const std::int64_t scanned = stats.scanned - scanned_before;
      if (scanned > far_scan) {
        far_budget -= scanned;
        until_check = 0;
      }
      if (far_budget < 0 && sources.size() - k > kFewLeft) {
        sources.erase(sources.begin(), sources.begin() + static_cast<std::ptrdiff_t>(k));
        return drain_in_phases<kForward>(sources, control, stats);
      }
    }
    const Status status = this->report(control, stats, before, k + 1, sources.size());
    if (status != Status::kOptimal) return status;
  }
  return Status::kOptimal;
}

template <class Value>
Status SspEngine<Value>::run(const Control& control, Stats& stats) {
  PriceRepair<Value>(*this, this->network_, repriced_, stats).run(fresh_, dirty_);
  trace_deficits();
  advertise_deficits();
  forward_.watch(control);
  backward_.watch(control);
  last_scan_ = patience_ == kInfinity ? kInfinity : stats.scanned + patience_;
  Status status;
  try {
    std::vector<NodeId> sources = pending_nodes<true>();
    status = drain<true>(sources, control, stats);
    if (status == Status::kOptimal) {
      sources = pending_nodes<false>();
      status = drain<false>(sources, control, stats);
    }
  } catch (const Stopped& stopped) {
    status = stopped.status;
    forward_.revive(graph_);
    backward_.revive(graph_);
  }
  this->forget_balanced();
  return status;
}

}  // namespace

std::unique_ptr<Engine> make_ssp_engine(const EngineStart& start, bool growing,
                                        std::int64_t patience, const Control& control) {
  if (fits_narrow(start.network, control)) {
    return std::make_unique<SspEngine<std::int32_t>>(start, growing, patience, control);
  }
  return std::make_unique<SspEngine<std::int64_t>>(start, growing, patience, control);
}

}  // namespace flowsolver
