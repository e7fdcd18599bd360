#include "changing_network.hpp"

#include <algorithm>
#include <stdexcept>

#include "graph/arc_lists.hpp"

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

}  // namespace flowsolver
