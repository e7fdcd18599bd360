#include "changing_network.hpp"

#include <algorithm>
#include <stdexcept>

#include "graph/dynamic_graph.hpp"

namespace flowsolver {

ChangingNetwork::ChangingNetwork(const Network& network)
    : live_nodes_(network.num_nodes()),
      live_arcs_(network.num_arcs()),
      node_ids_(live_nodes_),
      arc_ids_(live_arcs_) {
  // Copied into vectors with reserved room (address space only), so that the first added arc does
  // not copy everything again.
  const auto fill = [](auto& values, const auto& from) {
    values.reserve(from.size() + from.size() / 4);
    values.assign(from.begin(), from.end());
  };
  const auto all_live = [](auto& alive, std::size_t size) {
    alive.reserve(size + size / 4);
    alive.assign(size, 1);
  };
  fill(network_.tail, network.tail);
  fill(network_.head, network.head);
  fill(network_.capacity, network.capacity);
  fill(network_.cost, network.cost);
  fill(network_.supply, network.supply);
  all_live(node_alive_, live_nodes_);
  all_live(arc_alive_, live_arcs_);
  for (std::int64_t supply : network_.supply) {
    supply_sum_ += supply;
    supply_magnitudes_ += magnitude(supply);
    num_sources_ += supply > 0;
  }
  for (std::int64_t capacity : network_.capacity) capacity_sum_ += capacity;
  cost_bound_ = largest_magnitude(network_.cost);
}

ChangingNetwork::~ChangingNetwork() = default;

NodeId ChangingNetwork::add_node(std::int64_t supply) {
  const NodeId v = node_ids_.next();
  if (v >= kMaxNodes) throw std::length_error("flowsolver: too many nodes");
  node_ids_.take();
  if (v == network_.num_nodes()) {
    network_.supply.push_back(supply);
    node_alive_.push_back(1);
  } else {
    network_.supply[v] = supply;
    node_alive_[v] = 1;
  }
  ++live_nodes_;
  supply_sum_ += supply;
  supply_magnitudes_ += magnitude(supply);
  num_sources_ += supply > 0;
  if (arcs_at_) arcs_at_->extend(v + std::size_t{1}, 0);
  return v;
}

ArcId ChangingNetwork::add_arc(NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost) {
  const ArcId a = arc_ids_.next();
  if (a >= kMaxArcs) throw std::length_error("flowsolver: too many arcs");
  arc_ids_.take();
  if (a == network_.num_arcs()) {
    network_.tail.push_back(tail);
    network_.head.push_back(head);
    network_.capacity.push_back(capacity);
    network_.cost.push_back(cost);
    arc_alive_.push_back(1);
  } else {
    network_.tail[a] = tail;
    network_.head[a] = head;
    network_.capacity[a] = capacity;
    network_.cost[a] = cost;
    arc_alive_[a] = 1;
  }
  ++live_arcs_;
  capacity_sum_ += capacity;
  cost_bound_ = std::max(cost_bound_, magnitude(cost));
  if (arcs_at_) {
    arcs_at_->extend(0, a + std::size_t{1});
    arcs_at_->add(a, tail, head);
  }
  return a;
}

void ChangingNetwork::remove_node(NodeId v) {
  set_supply(v, 0);
  node_alive_[v] = 0;
  --live_nodes_;
  node_ids_.remove(v);
}

void ChangingNetwork::remove_arc(ArcId arc) {
  capacity_sum_ -= network_.capacity[arc];
  network_.capacity[arc] = 0;
  network_.cost[arc] = 0;
  arc_alive_[arc] = 0;
  --live_arcs_;
  arc_ids_.remove(arc);
  if (arcs_at_) arcs_at_->remove(arc, network_.tail[arc], network_.head[arc]);
}

void ChangingNetwork::set_capacity(ArcId arc, std::int64_t capacity) {
  capacity_sum_ += static_cast<__int128>(capacity) - network_.capacity[arc];
  network_.capacity[arc] = capacity;
}

void ChangingNetwork::set_cost(ArcId arc, std::int64_t cost) {
  cost_bound_ = std::max(cost_bound_, magnitude(cost));
  network_.cost[arc] = cost;
}

void ChangingNetwork::set_supply(NodeId v, std::int64_t supply) {
  const std::int64_t before = network_.supply[v];
  supply_sum_ += static_cast<__int128>(supply) - before;
  supply_magnitudes_ += static_cast<__int128>(magnitude(supply)) - magnitude(before);
  num_sources_ += static_cast<std::size_t>(supply > 0) - static_cast<std::size_t>(before > 0);
  network_.supply[v] = supply;
}

void ChangingNetwork::index_arcs() {
  arcs_at_ = std::make_unique<ArcLists>();
  arcs_at_->extend(network_.num_nodes(), network_.num_arcs());
  for (ArcId a = 0; a < network_.num_arcs(); ++a) {
    if (arc_alive_[a] != 0) arcs_at_->add(a, network_.tail[a], network_.head[a]);
  }
}

std::vector<ArcId> ChangingNetwork::arcs_at_removed(std::span<const NodeId> nodes,
                                                    const FindArcs& find, std::size_t find_passes) {
  constexpr std::size_t kLargeShare = 32;  // of all nodes; worth a pass over all arcs
  std::vector<ArcId> arcs;
  if (nodes.empty()) return arcs;
  const bool many = nodes.size() > network_.num_nodes() / kLargeShare;
  if (!many && !arcs_at_) {
    scanned_arcs_ += find ? find_passes : network_.num_arcs();
    if (scanned_arcs_ > network_.num_nodes() + network_.num_arcs()) index_arcs();
  }
  if (many || (!arcs_at_ && !find)) {
    for (ArcId a = 0; a < network_.num_arcs(); ++a) {
      if (is_at_removed(a)) arcs.push_back(a);
    }
    return arcs;
  }
  if (arcs_at_) {
    for (NodeId v : nodes) {
      arcs_at_->for_each_out(v, [&](ArcId a) { arcs.push_back(a); });
      arcs_at_->for_each_in(v, [&](ArcId a) { arcs.push_back(a); });
    }
  } else {
    find(nodes, arcs);
    std::erase_if(arcs, [this](ArcId a) { return arc_alive_[a] == 0; });
  }
  if (!std::is_sorted(arcs.begin(), arcs.end())) std::sort(arcs.begin(), arcs.end());
  arcs.erase(std::unique(arcs.begin(), arcs.end()), arcs.end());
  return arcs;
}

// The running sums nearly always decide. Only when they exceed a bound are all numbers checked.
Status ChangingNetwork::check_numbers() {
  const __int128 longest =
      static_cast<__int128>(cost_bound_) * static_cast<__int128>(live_nodes_ + 1);
  if (longest <= kMaxPathCost && 2 * capacity_sum_ + supply_magnitudes_ <= kMaxNodeSum)
    return supply_sum_ == 0 ? Status::kOptimal : Status::kUnbalanced;
  cost_bound_ = largest_magnitude(network_.cost);
  return check_live_ranges(network_, live_nodes_);
}

bool ChangingNetwork::ids_fit_costs() {
  const auto nodes = static_cast<__int128>(network_.num_nodes() + 1);
  if (static_cast<__int128>(cost_bound_) * nodes <= kMaxPathCost) return true;
  cost_bound_ = largest_magnitude(network_.cost);
  return static_cast<__int128>(cost_bound_) * nodes <= kMaxPathCost;
}

void ChangingNetwork::end_round(bool optimal) {
  node_ids_.end_round(optimal);
  arc_ids_.end_round(optimal);
  arcs_at_.reset();
  scanned_arcs_ = 0;
}

LiveNetwork live_network(const Network& all, std::span<const std::uint8_t> node_alive,
                         std::span<const std::uint8_t> arc_alive, const Control& control) {
  LiveNetwork live;
  std::vector<NodeId> number(all.num_nodes());
  const auto is_alive = [](std::uint8_t alive) { return alive != 0; };
  live.nodes.resize(
      static_cast<std::size_t>(std::count_if(node_alive.begin(), node_alive.end(), is_alive)));
  live.arcs.resize(
      static_cast<std::size_t>(std::count_if(arc_alive.begin(), arc_alive.end(), is_alive)));
  Network& network = live.network;
  network.supply.resize(live.nodes.size());
  network.tail.resize(live.arcs.size());
  network.head.resize(live.arcs.size());
  network.capacity.resize(live.arcs.size());
  network.cost.resize(live.arcs.size());
  NodeId nodes = 0;
  for_each_until_cancelled(all.num_nodes(), control, [&](std::size_t v) {
    if (node_alive[v] == 0) return;
    number[v] = nodes;
    live.nodes[nodes] = static_cast<NodeId>(v);
    network.supply[nodes++] = all.supply[v];
  });
  ArcId arcs = 0;
  for_each_until_cancelled(all.num_arcs(), control, [&](std::size_t a) {
    if (arc_alive[a] == 0) return;
    live.arcs[arcs] = static_cast<ArcId>(a);
    network.tail[arcs] = number[all.tail[a]];
    network.head[arcs] = number[all.head[a]];
    network.capacity[arcs] = all.capacity[a];
    network.cost[arcs++] = all.cost[a];
  });
  return live;
}

void ChangeLog::stop_recording() {
  clear_entries();  // which nodes and arcs are new stays known
  is_recording_ = false;
}

void ChangeLog::add_node(NodeId v) {
  set_mark(is_new_node_, v);
  if (!is_recording_) return;
  new_nodes_.push_back(v);
  record(Kind::kAddNode, v);
}

void ChangeLog::remove_nodes(std::span<const NodeId> nodes, std::span<const ArcId> arcs) {
  if (!is_recording_) {
    for (NodeId v : nodes) clear_mark(is_new_node_, v);
    for (ArcId arc : arcs) clear_mark(is_new_arc_, arc);
    return;
  }
  const std::size_t before = removed_nodes_.size();
  for (NodeId v : nodes) {
    if (is_new_node(v)) {
      is_new_node_[v] = 0;
    } else {
      removed_nodes_.push_back(v);
    }
  }
  for (ArcId arc : arcs) {
    if (is_new_arc(arc)) {
      is_new_arc_[arc] = 0;
    } else {
      removed_arcs_.push_back(arc);
    }
  }
  // all of these nodes were new, and so are the arcs at them
  if (removed_nodes_.size() == before) return;
  record(Kind::kRemoveNodes, removals_.size());
  removals_.push_back({removed_nodes_.size(), removed_arcs_.size()});
}

void ChangeLog::add_arc(ArcId arc) {
  set_mark(is_new_arc_, arc);
  if (!is_recording_) return;
  new_arcs_.push_back(arc);
  record(Kind::kAddArc, arc);
}

void ChangeLog::remove_arc(ArcId arc) {
  if (is_new_arc(arc)) {
    is_new_arc_[arc] = 0;
  } else {
    record(Kind::kRemoveArc, arc);
  }
}

void ChangeLog::change_supply(NodeId v, std::int64_t delta) {
  if (is_new_node(v)) return;
  if (!is_recording_) return;
  record(Kind::kChangeSupply, supplies_.size());
  supplies_.push_back({v, delta});
}

void ChangeLog::apply(Engine& engine, const Network& network,
                      std::span<const std::uint8_t> node_alive,
                      std::span<const std::uint8_t> arc_alive) {
  struct ClearOnExit {
    ChangeLog& log;
    ~ClearOnExit() { log.clear(); }
  };
  const ClearOnExit clear_on_exit{*this};
  const auto& [tail, head, capacity, cost, supply] = network;
  std::size_t k = 0;
  for (const Run& run : runs_) {
    switch (run.kind) {
      case Kind::kAddNode:
        for (; k < run.end; ++k) {
          if (!is_new_node(ids_[k])) continue;
          is_new_node_[ids_[k]] = 0;
          engine.add_node(ids_[k], supply[ids_[k]]);
        }
        break;
      case Kind::kRemoveNodes:
        for (; k < run.end; ++k) apply_removal(ids_[k], engine, network);
        break;
      case Kind::kAddArc:
        for (; k < run.end; ++k) {
          const ArcId a = ids_[k];
          if (!is_new_arc(a)) continue;
          is_new_arc_[a] = 0;
          engine.add_arc(a, tail[a], head[a], capacity[a], cost[a]);
        }
        break;
      case Kind::kRemoveArc:
        for (; k < run.end; ++k) engine.remove_arc(ids_[k], tail[ids_[k]], head[ids_[k]]);
        break;
      case Kind::kSetCapacity:
        for (; k < run.end; ++k) {
          const ArcId a = ids_[k];
          if (arc_alive[a] != 0) engine.set_capacity(a, tail[a], head[a], capacity[a]);
        }
        break;
      case Kind::kSetCost:
        for (; k < run.end; ++k) {
          constexpr std::size_t kAhead = 16, kSoon = 8;
          if (k + kAhead < run.end && engine.local()) {
            engine.fetch_price(tail[ids_[k + kAhead]]);
            engine.fetch_arcs(tail[ids_[k + kSoon]]);
          }
          const ArcId a = ids_[k];
          if (arc_alive[a] != 0) engine.set_cost(a, tail[a], cost[a]);
        }
        break;
      case Kind::kChangeSupply:
        for (; k < run.end; ++k) {
          const auto [v, delta] = supplies_[ids_[k]];
          if (node_alive[v] != 0) engine.change_supply(v, delta);
        }
        break;
    }
  }
  extend_to_largest_ids(engine, node_alive, arc_alive);
}

// Engines keep arrays by id as long as the network's, so they must see the largest id, even if it
// was added and removed within the round.
void ChangeLog::extend_to_largest_ids(Engine& engine, std::span<const std::uint8_t> node_alive,
                                      std::span<const std::uint8_t> arc_alive) const {
  const auto node = std::max_element(new_nodes_.begin(), new_nodes_.end());
  if (node != new_nodes_.end() && node_alive[*node] == 0) {
    engine.add_node(*node, 0);
    engine.remove_node(*node);
  }
  const auto arc = std::max_element(new_arcs_.begin(), new_arcs_.end());
  if (arc == new_arcs_.end() || arc_alive[*arc] != 0) return;
  const auto live =
      std::find_if(node_alive.begin(), node_alive.end(), [](auto a) { return a != 0; });
  if (live == node_alive.end()) return;
  const auto loop_at = static_cast<NodeId>(live - node_alive.begin());
  engine.add_arc(*arc, loop_at, loop_at, 0, 0);
  engine.remove_arc(*arc, loop_at, loop_at);
}

void ChangeLog::apply_removal(std::size_t number, Engine& engine, const Network& network) {
  const Removal from = number == 0 ? Removal{0, 0} : removals_[number - 1];
  const Removal to = removals_[number];
  const auto nodes =
      std::span(removed_nodes_).subspan(from.nodes_end, to.nodes_end - from.nodes_end);
  std::vector<ArcId> applied;
  if (engine.local() && engine.remove_with_arcs(nodes, applied)) return;
  for (std::size_t k = from.arcs_end; k < to.arcs_end; ++k) {
    const ArcId arc = removed_arcs_[k];
    engine.remove_arc(arc, network.tail[arc], network.head[arc]);
  }
  for (NodeId v : nodes) engine.remove_node(v);
}

void ChangeLog::clear() {
  for (NodeId v : new_nodes_) is_new_node_[v] = 0;
  for (ArcId arc : new_arcs_) is_new_arc_[arc] = 0;
  if (!is_recording_) {
    std::fill(is_new_node_.begin(), is_new_node_.end(), 0);
    std::fill(is_new_arc_.begin(), is_new_arc_.end(), 0);
    is_recording_ = true;
  }
  clear_entries();
}

void ChangeLog::clear_entries() {
  runs_.clear();
  ids_.clear();
  removals_.clear();
  removed_nodes_.clear();
  removed_arcs_.clear();
  supplies_.clear();
  new_nodes_.clear();
  new_arcs_.clear();
}

}  // namespace flowsolver
