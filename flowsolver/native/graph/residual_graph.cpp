#include "graph/residual_graph.hpp"

#include <algorithm>
#include <stdexcept>

namespace flowsolver {

template <class Value>
template <class Arrays>
ResidualGraph<Value>::ResidualGraph(const Arrays& network, std::span<const std::int64_t> flow,
                                    std::span<const std::uint8_t> alive, NodeId root, bool spare,
                                    const Control& control)
    : root_(root) {
  CancellationChecker checker(control);
  const std::size_t n = network.num_nodes(), m = network.num_arcs();
  if (spare) {  // reserves address space only, so that the first change does not copy everything
    position.reserve(2 * m + m / 2);
    nodes.reserve(n + n / 4);
    for (auto* values : {&room_, &in_degree_, &out_degree_, &root_arc_}) values->reserve(n + n / 4);
  }
  nodes.reserve(n);
  while (nodes.size() < n) {
    nodes.resize(std::min<std::size_t>(n, nodes.size() + Control::kCheckInterval));
    checker.step_until_cancelled({}, Control::kCheckInterval);
  }
  root_arc_.assign(n, kNone);
  in_degree_.assign(n, 0);
  out_degree_.assign(n, 0);
  room_.resize(n);
  position.resize(2 * m);
  const auto is_live = [&](ArcId a) { return alive.empty() || alive[a] != 0; };
  for_each_until_cancelled(m, control, [&](std::size_t arc) {
    const auto a = static_cast<ArcId>(arc);
    if (!is_live(a)) return;
    const NodeId u = network.tail[a], v = network.head[a];
    if (v == root && u != root && root_arc_[u] == kNone) {
      root_arc_[u] = a;
    } else {
      ++out_degree_[u];
      ++in_degree_[v];
    }
  });
  std::size_t total = 0;
  for_each_until_cancelled(n, control, [&](std::size_t node) {
    const auto v = static_cast<NodeId>(node);
    const std::uint32_t degree = in_degree_[v] + out_degree_[v];
    nodes[v].begin = static_cast<std::uint32_t>(total);
    nodes[v].degree = degree;
    room_[v] = spare && in_degree_[v] > 0 ? degree + degree / 8 + 6 : degree;
    total += room_[v];
    update_interior(v);
  });
  if (total >= kRemoved) throw std::length_error("flowsolver: too many arcs");
  if (spare) edges.reserve(total + total / 4);
  edges.resize(total);
  // Residual half-edges fill a block from the front, saturated ones from the back (counted in
  // `current` for now).
  const auto place = [&](NodeId u, const Edge& edge) {
    Node<Value>& node = nodes[u];
    const std::uint32_t index = edge.residual > 0 ? node.begin + node.residual_degree++
                                                  : node.begin + node.degree - 1 - node.current++;
    edges[index] = edge;
    position[edge.id] = index;
  };
  // heads are scattered: their blocks are prefetched some arcs in advance
  constexpr ArcId kAhead = 12;
  for_each_until_cancelled(m, control, [&](std::size_t arc) {
    const auto a = static_cast<ArcId>(arc);
    if (a + kAhead < m) {
      const Node<Value>& head = nodes[network.head[a + kAhead]];
      __builtin_prefetch(edges.data() + head.begin + head.degree - head.current, 1);
    }
    if (!is_live(a)) return;
    const NodeId u = network.tail[a], v = network.head[a];
    const Value cost = static_cast<Value>(network.cost[a]);
    const Value used = flow.empty() ? Value{0} : static_cast<Value>(flow[a]);
    const Value left = static_cast<Value>(network.capacity[a]) - used;
    if (root_arc_[u] == a) {
      nodes[u].root_residual = left;
      nodes[u].root_flow = used;
      nodes[u].root_cost = cost;
      position[2 * a] = position[2 * a + 1] = kAtRoot;
    } else {
      place(u, {v, 2 * a, cost, left, used});
      place(v, {u, 2 * a + 1, static_cast<Value>(-cost), used, left});
    }
  });
  for (Node<Value>& node : nodes) node.current = 0;
}

template <class Value>
void ResidualGraph<Value>::update_interior(NodeId u) {
  if (in_degree_[u] > 0 && out_degree_[u] > 0) {
    nodes[u].flags |= kInterior;
  } else {
    nodes[u].flags &= static_cast<std::uint8_t>(~kInterior);
  }
}

template <class Value>
void ResidualGraph<Value>::grow_to_node(NodeId v) {
  if (v < nodes.size()) return;
  nodes.resize(v + 1);
  room_.resize(v + 1, 0);
  in_degree_.resize(v + 1, 0);
  out_degree_.resize(v + 1, 0);
  root_arc_.resize(v + 1, kNone);
}

template <class Value>
void ResidualGraph<Value>::clear_node(NodeId v) {
  const std::uint32_t begin = nodes[v].begin, stamp = nodes[v].stamp;
  const std::uint8_t listed = nodes[v].flags & kListed;
  hubs.forget(v);
  nodes[v] = Node<Value>{};
  nodes[v].begin = begin;
  nodes[v].stamp = stamp;
  nodes[v].flags = listed;
}

template <class Value>
void ResidualGraph<Value>::to_residual(NodeId u, std::uint32_t index) {
  swap_edges(index, nodes[u].begin + nodes[u].residual_degree++);
}

template <class Value>
void ResidualGraph<Value>::from_residual(NodeId u, std::uint32_t index) {
  swap_edges(index, nodes[u].begin + --nodes[u].residual_degree);
}

template <class Value>
void ResidualGraph<Value>::compact() {
  std::size_t total = 0;
  for (std::size_t v = 0; v < nodes.size(); ++v) total += room_[v];
  decltype(edges) packed(total);
  std::uint32_t next = 0;
  for (NodeId v = 0; v < nodes.size(); ++v) {
    Node<Value>& node = nodes[v];
    for (std::uint32_t i = 0; i < node.degree; ++i) {
      packed[next + i] = edges[node.begin + i];
      position[packed[next + i].id] = next + i;
    }
    // only a hint: may be outside of the block, and is checked on use
    node.current = node.current - node.begin + next;
    node.begin = next;
    next += room_[v];
  }
  edges = std::move(packed);
  wasted_ = 0;
}

template <class Value>
void ResidualGraph<Value>::make_room(NodeId u) {
  if (wasted_ > edges.size() / 2 + 1024) compact();
  Node<Value>& node = nodes[u];
  const std::uint32_t room = std::max<std::uint32_t>(8, room_[u] + room_[u] / 2);
  const std::size_t begin = edges.size();
  if (begin + room >= kRemoved) throw std::length_error("flowsolver: too many arcs");
  edges.resize(begin + room);
  for (std::uint32_t i = 0; i < node.degree; ++i) {
    edges[begin + i] = edges[node.begin + i];
    position[edges[begin + i].id] = static_cast<std::uint32_t>(begin + i);
  }
  wasted_ += room_[u];
  node.current = node.current - node.begin + static_cast<std::uint32_t>(begin);
  node.begin = static_cast<std::uint32_t>(begin);
  room_[u] = room;
}

template <class Value>
void ResidualGraph<Value>::insert(NodeId u, const Edge& edge) {
  if (nodes[u].degree == room_[u]) make_room(u);
  const std::uint32_t index = nodes[u].begin + nodes[u].degree++;
  edges[index] = edge;
  position[edge.id] = index;
  if (edge.residual > 0) to_residual(u, index);
}

template <class Value>
void ResidualGraph<Value>::erase(NodeId u, std::uint32_t index) {
  Node<Value>& node = nodes[u];
  if (index < node.begin + node.residual_degree) {
    const std::uint32_t last = node.begin + node.residual_degree - 1;
    swap_edges(index, last);
    index = last;
    --node.residual_degree;
  }
  swap_edges(index, node.begin + --node.degree);
}

template <class Value>
void ResidualGraph<Value>::attach(ArcId arc, NodeId tail, NodeId head, Value capacity, Value cost) {
  if (position.size() < 2 * (static_cast<std::size_t>(arc) + 1))
    position.resize(2 * (static_cast<std::size_t>(arc) + 1));
  if (head == root_ && tail != root_ && root_arc_[tail] == kNone) {
    root_arc_[tail] = arc;
    position[2 * arc] = position[2 * arc + 1] = kAtRoot;
    nodes[tail].root_residual = capacity;
    nodes[tail].root_flow = 0;
    nodes[tail].root_cost = cost;
    return;
  }
  insert(tail, {head, 2 * arc, cost, capacity, 0});
  insert(head, {tail, 2 * arc + 1, static_cast<Value>(-cost), 0, capacity});
  ++out_degree_[tail];
  ++in_degree_[head];
  update_interior(tail);
  update_interior(head);
  note_for_hubs(arc);
}

template <class Value>
void ResidualGraph<Value>::note_for_hubs(ArcId arc) {
  if (hubs.empty()) return;
  const Edge& forward = edges[position[2 * arc]];
  const Edge& backward = edges[position[2 * arc + 1]];
  hubs.note_half_edge(*this, backward.to, forward);
  hubs.note_half_edge(*this, forward.to, backward);
}

template <class Value>
void ResidualGraph<Value>::detach(ArcId arc, NodeId tail) {
  if (is_root_arc(arc)) {
    root_arc_[tail] = kNone;
    nodes[tail].root_residual = nodes[tail].root_flow = nodes[tail].root_cost = 0;
    position[2 * arc] = position[2 * arc + 1] = kRemoved;
    return;
  }
  const NodeId head = edges[position[2 * arc]].to;
  erase(tail, position[2 * arc]);
  erase(head, position[2 * arc + 1]);
  position[2 * arc] = position[2 * arc + 1] = kRemoved;
  --out_degree_[tail];
  --in_degree_[head];
  update_interior(tail);
  update_interior(head);
}

template <class Value>
void ResidualGraph<Value>::push(NodeId u, std::uint32_t index, Value amount) {
  Edge& edge = edges[index];
  const std::uint32_t partner_id = edge.id ^ 1;
  Edge& partner = edges[position[partner_id]];
  const NodeId v = edge.to;
  const bool opened = partner.residual == 0;
  edge.residual -= amount;
  edge.reverse_residual += amount;
  partner.residual += amount;
  partner.reverse_residual -= amount;
  const bool saturated = edge.residual == 0;
  if (!hubs.empty()) {
    if (edge.reverse_residual == amount) hubs.template note_half_edge<false>(*this, u, edge);
    if (opened) hubs.template note_half_edge<true>(*this, v, partner);
  }
  if (saturated) from_residual(u, index);
  if (opened) to_residual(v, position[partner_id]);
}

template <class Value>
void ResidualGraph<Value>::set_capacity(ArcId arc, NodeId tail, Value capacity) {
  if (is_root_arc(arc)) {
    nodes[tail].root_residual = capacity - nodes[tail].root_flow;
    return;
  }
  Edge& edge = edges[position[2 * arc]];
  Edge& partner = edges[position[2 * arc + 1]];
  const bool was_open = edge.residual > 0;
  edge.residual = partner.reverse_residual = capacity - edge.reverse_residual;
  const bool is_open = edge.residual > 0;
  if (was_open && !is_open) from_residual(tail, position[2 * arc]);
  if (!was_open && is_open) {
    to_residual(tail, position[2 * arc]);
    note_for_hubs(arc);
  }
}

template <class Value>
void ResidualGraph<Value>::set_cost(ArcId arc, NodeId tail, Value cost) {
  if (is_root_arc(arc)) {
    nodes[tail].root_cost = cost;
    return;
  }
  edges[position[2 * arc]].cost = cost;
  edges[position[2 * arc + 1]].cost = static_cast<Value>(-cost);
  note_for_hubs(arc);
}

template class ResidualGraph<std::int32_t>;
template class ResidualGraph<std::int64_t>;
template ResidualGraph<std::int32_t>::ResidualGraph(const Network&, std::span<const std::int64_t>,
                                                    std::span<const std::uint8_t>, NodeId, bool,
                                                    const Control&);
template ResidualGraph<std::int64_t>::ResidualGraph(const Network&, std::span<const std::int64_t>,
                                                    std::span<const std::uint8_t>, NodeId, bool,
                                                    const Control&);
template ResidualGraph<std::int32_t>::ResidualGraph(const PackedNetwork<std::int32_t>&,
                                                    std::span<const std::int64_t>,
                                                    std::span<const std::uint8_t>, NodeId, bool,
                                                    const Control&);
template ResidualGraph<std::int64_t>::ResidualGraph(const PackedNetwork<std::int64_t>&,
                                                    std::span<const std::int64_t>,
                                                    std::span<const std::uint8_t>, NodeId, bool,
                                                    const Control&);

}  // namespace flowsolver
