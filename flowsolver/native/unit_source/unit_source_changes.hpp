// The construction of a unit source engine (unit_source_engine.hpp), and how it handles each change
// to the network: O(degree) each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "unit_source/unit_source_engine.hpp"
#include "graph/price_estimate.hpp"

namespace flowsolver {

// Per node: whether it is a unit source (unit_sources.hpp).
inline std::vector<std::uint8_t> find_unit_sources(const EngineStart& start,
                                                   const Control& control) {
  CancellationChecker checker(control);
  const Network& network = start.network;
  std::vector<std::uint8_t> is_source(network.num_nodes());
  for (NodeId v = 0; v < is_source.size(); ++v)
    is_source[v] = network.supply[v] == 1 && v != start.root;
  for (ArcId a = 0; a < network.num_arcs(); ++a) {
    checker.step_until_cancelled({});
    if (!start.alive.empty() && start.alive[a] == 0) continue;
    is_source[network.head[a]] = 0;
    if (network.capacity[a] == 0) is_source[network.tail[a]] = 0;
  }
  return is_source;
}

// Per arc: whether it is alive and its tail is not a unit source.
inline std::vector<std::uint8_t> core_arcs(const EngineStart& start,
                                           const std::vector<std::uint8_t>& is_source,
                                           const Control& control) {
  CancellationChecker checker(control);
  std::vector<std::uint8_t> core(start.network.num_arcs());
  for (ArcId a = 0; a < core.size(); ++a) {
    checker.step_until_cancelled({});
    core[a] = (start.alive.empty() || start.alive[a] != 0) && is_source[start.network.tail[a]] == 0;
  }
  return core;
}

template <class Value>
UnitSourceEngine<Value>::UnitSourceEngine(const EngineStart& start, const Control& control)
    : UnitSourceEngine(start, find_unit_sources(start, control), control) {}

template <class Value>
UnitSourceEngine<Value>::UnitSourceEngine(const EngineStart& start,
                                          const std::vector<std::uint8_t>& is_source,
                                          const Control& control)
    : LocalEngine<Value>(
          ResidualGraph<Value>(start.network, start.flow, core_arcs(start, is_source, control),
                               start.root, true, control),
          start.network),
      sources_(graph_, start.network) {
  const auto is_live = [&](ArcId a) { return start.alive.empty() || start.alive[a] != 0; };
  CancellationChecker checker(control);
  for (NodeId v = 0; v < network_.num_nodes(); ++v) {
    checker.step_until_cancelled({});
    if (is_source[v] != 0) {
      sources_.add_source(v);
      continue;
    }
    core_nodes_.push_back(v);
    // no hops are known yet
    graph_.nodes[v].hops[0] = graph_.nodes[v].hops[1] = HopBuckets::kLevels - 2;
    if (!start.price.empty()) graph_.nodes[v].price = start.price[v];
    if (network_.supply[v] != 0) shift_imbalance(v, network_.supply[v]);
  }
  if (start.flow.empty() && start.price.empty()) {
    const PriceEstimate estimate = estimate_price(network_, start.root, control);
    for (NodeId v : estimate.nodes) graph_.nodes[v].price = estimate.price;
  }
  graph_.nodes[start.root].price = 0;
  std::vector<std::uint32_t> degree(network_.num_nodes(), 0);
  for (ArcId a = 0; a < network_.num_arcs(); ++a) {
    checker.step_until_cancelled({});
    degree[network_.tail[a]] += is_live(a);
  }
  for (ArcId a = 0; a < network_.num_arcs(); ++a) {
    checker.step_until_cancelled({});
    if (!is_live(a)) continue;
    const NodeId u = network_.tail[a], v = network_.head[a];
    if (is_source[u] != 0) {
      if (degree[u] != 0) sources_.reserve_arcs(u, std::exchange(degree[u], 0));
      sources_.add_arc(u, a, v, static_cast<Value>(network_.cost[a]));
      if (!start.flow.empty() && start.flow[a] > 0)
        sources_.preassign(u, sources_.position_of(a, u));
      continue;
    }
    graph_.nodes[u].flags |= kInterior;
    if (graph_.root_arc(u) == a) root_tails_.push_back(u);
    if (!start.flow.empty() && start.flow[a] != 0) {
      shift_imbalance(u, -start.flow[a]);
      shift_imbalance(v, start.flow[a]);
      cost_ += static_cast<__int128>(network_.cost[a]) * start.flow[a];
    }
    mark_dirty(a);
  }
  constexpr std::int64_t kStepsPerSource = 8;
  // A source stays on its arc of the start if it is the best one; else a search assigns it.
  for (NodeId v = 0; v < network_.num_nodes(); ++v) {
    if (is_source[v] == 0) continue;
    checker.step_until_cancelled({}, kStepsPerSource);
    const std::uint32_t at = sources_.current_arc(v);
    if (at != kNone && sources_.is_on_best_arc(v)) {
      cost_ += sources_.source_arcs[at].cost;
      shift_imbalance(sources_.source_arcs[at].head, 1);
    } else {
      sources_.preassign(v, kNone);
      unassigned_.push_back(v);
    }
  }
}

template <class Value>
void UnitSourceEngine<Value>::add_node(NodeId v, std::int64_t supply) {
  ensure_lists();
  graph_.grow_to_node(v);
  sources_.extend(graph_.num_nodes());
  if (supply == 1 && v != graph_.root()) {
    sources_.add_source(v);
    unassigned_.push_back(v);
    return;
  }
  core_nodes_.push_back(v);
  graph_.nodes[v].flags |= kNewNode;
  new_nodes_.push_back(v);
  if (supply != 0) shift_imbalance(v, supply);
}

template <class Value>
void UnitSourceEngine<Value>::remove_node(NodeId v) {
  ensure_lists();
  if (sources_.is_source(v)) {
    sources_.remove_source(v);
  } else {
    graph_.clear_node(v);
  }
}

template <class Value>
void UnitSourceEngine<Value>::add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
                                      std::int64_t cost) {
  ensure_lists();
  if (sources_.is_source(head)) make_core_node(head);
  if (sources_.is_source(tail) && capacity == 0) make_core_node(tail);
  if (sources_.is_source(tail)) {
    sources_.add_arc(tail, arc, head, static_cast<Value>(cost));
    if (sources_.current_arc(tail) != kNone) note_changed(tail);
    return;
  }
  graph_.attach(arc, tail, head, static_cast<Value>(capacity), static_cast<Value>(cost));
  graph_.nodes[tail].flags |= kInterior;
  if (graph_.root_arc(tail) == arc) root_tails_.push_back(tail);
  mark_dirty(arc);
}

template <class Value>
void UnitSourceEngine<Value>::remove_arc(ArcId arc, NodeId tail, NodeId head) {
  ensure_lists();
  if (sources_.is_source(tail)) {
    if (sources_.is_assigned_over(tail, arc)) unassign(tail);
    sources_.remove_arc(tail, sources_.position_of(arc, tail));
    return;
  }
  this->add_flow(arc, tail, head, -graph_.flow_at(arc, tail));
  graph_.detach(arc, tail);
  graph_.nodes[tail].flags |= kInterior;  // even if only sources lead to it
}

template <class Value>
void UnitSourceEngine<Value>::set_capacity(ArcId arc, NodeId tail, NodeId head,
                                           std::int64_t capacity) {
  ensure_lists();
  if (sources_.is_source(tail)) {
    if (capacity > 0) return;
    make_core_node(tail);
  }
  const std::int64_t flow = graph_.flow_at(arc, tail);
  if (flow > capacity) this->add_flow(arc, tail, head, capacity - flow);
  graph_.set_capacity(arc, tail, static_cast<Value>(capacity));
  mark_dirty(arc);
}

template <class Value>
void UnitSourceEngine<Value>::set_cost(ArcId arc, NodeId tail, std::int64_t cost) {
  ensure_lists();
  if (sources_.is_source(tail)) {
    const std::uint32_t assign = sources_.position_of(arc, tail);
    const std::int64_t dearer = cost - sources_.source_arcs[assign].cost;
    const std::uint32_t now = sources_.current_arc(tail);
    if (now == assign) cost_ += dearer;
    sources_.set_cost(assign, static_cast<Value>(cost));
    // If the current arc gets cheaper or another one more expensive, the lower bounds and the
    // invariant still hold.
    if (now != kNone && (now == assign) == (dearer > 0)) note_changed(tail);
    return;
  }
  const std::int64_t flow = graph_.flow_at(arc, tail);
  cost_ += static_cast<__int128>(flow) * (static_cast<__int128>(cost) - graph_.cost_at(arc, tail));
  graph_.set_cost(arc, tail, static_cast<Value>(cost));
  mark_dirty(arc);
}

template <class Value>
void UnitSourceEngine<Value>::change_supply(NodeId v, std::int64_t delta) {
  ensure_lists();
  if (sources_.is_source(v)) make_core_node(v);
  shift_imbalance(v, delta);
}

template <class Value>
void UnitSourceEngine<Value>::incident_arcs(std::span<const NodeId> of,
                                            std::vector<ArcId>& arcs) const {
  for (NodeId v : of) arcs_at(v, arcs);
  if (unassigned_.empty()) return;
  std::vector<NodeId> heads;
  std::copy_if(of.begin(), of.end(), std::back_inserter(heads),
               [this](NodeId v) { return !sources_.is_source(v); });
  if (heads.empty()) return;
  std::sort(heads.begin(), heads.end());
  for (NodeId source : unassigned_) {
    if (!sources_.is_source(source) || sources_.listed(source)) continue;
    const auto [begin, end] = sources_.arcs_of(source);
    for (std::uint32_t i = begin; i < end; ++i) {
      const auto& arc = sources_.source_arcs[i];
      if (std::binary_search(heads.begin(), heads.end(), arc.head)) arcs.push_back(arc.id);
    }
  }
}

// Done only if all nodes are unit sources, whose arcs are adjacent in memory.
template <class Value>
bool UnitSourceEngine<Value>::remove_with_arcs(std::span<const NodeId> of,
                                               std::vector<ArcId>& arcs) {
  ensure_lists();  // also for `incident_arcs`, for which it does nothing
  if (!std::all_of(of.begin(), of.end(), [this](NodeId v) { return sources_.is_source(v); }))
    return false;
  for (NodeId source : of) {
    arcs_at(source, arcs);
    if (const std::uint32_t now = sources_.current_arc(source); now != kNone) {
      cost_ -= sources_.source_arcs[now].cost;
      shift_imbalance(sources_.source_arcs[now].head, -1);
    }
    sources_.remove_source(source);
  }
  return true;
}

// The arcs at v, except those of unassigned sources into v.
template <class Value>
void UnitSourceEngine<Value>::arcs_at(NodeId v, std::vector<ArcId>& arcs) const {
  const auto& source_arcs = sources_.source_arcs;
  if (sources_.is_source(v)) {
    const auto [begin, end] = sources_.arcs_of(v);
    std::size_t next = arcs.size();
    arcs.resize(next + end - begin);
    for (std::uint32_t i = begin; i < end; ++i) arcs[next++] = source_arcs[i].id;
    return;
  }
  const Node<Value>& node = graph_.nodes[v];
  if (graph_.root_arc(v) != kNone) arcs.push_back(graph_.root_arc(v));
  for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
    const auto& edge = graph_.edges[i];
    if (edge.to != v || graph_.is_forward(edge)) arcs.push_back(edge.id >> 1);  // a self-loop once
  }
  sources_.for_each_assigned(
      v, [&](NodeId source) { arcs.push_back(source_arcs[sources_.current_arc(source)].id); });
  sources_.for_each_incoming(v, [&](std::uint32_t arc) { arcs.push_back(source_arcs[arc].id); });
}

template <class Value>
std::int64_t UnitSourceEngine<Value>::flow(ArcId arc, NodeId tail) const {
  if (!sources_.is_source(tail)) return graph_.flow_at(arc, tail);
  return sources_.is_assigned_over(tail, arc) ? 1 : 0;
}

// Assigns an unassigned source. The caller adjusts imbalances.
template <class Value>
void UnitSourceEngine<Value>::assign_over(NodeId source, std::uint32_t arc) {
  sources_.assign(source, arc);
  this->touch(sources_.source_arcs[arc].id, 0);
  cost_ += sources_.source_arcs[arc].cost;
}

template <class Value>
void UnitSourceEngine<Value>::unassign(NodeId source) {
  const auto arc = sources_.source_arcs[sources_.current_arc(source)];
  sources_.unassign(source);
  this->touch(arc.id, 1);
  cost_ -= arc.cost;
  shift_imbalance(arc.head, -1);
  unassigned_.push_back(source);
}

// Records the source once, however many of its arcs change.
template <class Value>
void UnitSourceEngine<Value>::note_changed(NodeId source) {
  std::uint8_t& flags = graph_.nodes[source].flags;
  if ((flags & kChanged) != 0) return;
  flags |= kChanged;
  changed_.push_back(source);
}

template <class Value>
void UnitSourceEngine<Value>::make_core_node(NodeId source) {
  const std::uint32_t now = sources_.current_arc(source);
  const std::int64_t price = sources_.price(source);
  std::vector<typename Sources::SourceArc> arcs;
  ArcId used = kNone;
  const auto [begin, end] = sources_.arcs_of(source);
  for (std::uint32_t i = begin; i < end; ++i) {
    if (i == now) used = sources_.source_arcs[i].id;
    arcs.push_back(sources_.source_arcs[i]);
  }
  if (now != kNone) sources_.unassign(source);
  sources_.remove_source(source);
  core_nodes_.push_back(source);
  for (const auto& arc : arcs) {
    const auto capacity = static_cast<Value>(std::max<std::int64_t>(1, network_.capacity[arc.id]));
    graph_.attach(arc.id, source, arc.head, capacity, arc.cost);
    graph_.nodes[source].flags |= kInterior;
    if (graph_.is_root_arc(arc.id)) root_tails_.push_back(source);
    if (arc.id == used) {
      if (graph_.is_root_arc(arc.id)) {
        --graph_.nodes[source].root_residual;
        ++graph_.nodes[source].root_flow;
      } else {
        graph_.push(source, graph_.position[2 * arc.id], 1);
      }
    }
    mark_dirty(arc.id);
  }
  graph_.nodes[source].price = price;
  if (used == kNone) shift_imbalance(source, 1);
}

}  // namespace flowsolver
