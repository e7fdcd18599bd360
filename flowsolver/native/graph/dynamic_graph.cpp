#include "graph/dynamic_graph.hpp"

#include <algorithm>
#include <stdexcept>

namespace flowsolver {

template <class V>
DynamicGraph<V>::DynamicGraph(const Network& network, std::span<const std::int64_t> flow,
                              std::span<const std::uint8_t> alive, const Control& control) {
  const std::size_t n = network.num_nodes(), m = network.num_arcs();
  // Reserves address space only, here and for edges below, so that the first change does not copy
  // everything.
  position.reserve(m + m / 4);
  position.resize(m);
  excess.reserve(n + n / 4);
  excess.assign(network.supply.begin(), network.supply.end());
  noted_.reserve(n + n / 4);
  noted_.assign(n, 0);
  blocks_.reserve(n + n / 4);
  blocks_.resize(n);
  // Degrees first: out in `middle`, in in `end`.
  for_each_until_cancelled(m, control, [&](std::size_t arc) {
    position[arc] = kNone;
    if ((!alive.empty() && alive[arc] == 0) || network.tail[arc] == network.head[arc]) return;
    ++blocks_[network.tail[arc]].middle;
    ++blocks_[network.head[arc]].end;
  });
  std::size_t total = 0;
  for (Block& block : blocks_) {
    const std::uint32_t out = block.middle, in = block.end, degree = out + in;
    const std::uint32_t room = in > 0 ? degree + degree / 8 + 6 : degree;
    if (total + room >= kNone) throw std::length_error("flowsolver: too many arcs");
    block.begin = static_cast<std::uint32_t>(total);
    block.limit = block.begin + room;
    block.middle = block.begin;     // where the next forward half-edge goes
    block.end = block.begin + out;  // and the next backward one
    total += room;
  }
  edges.reserve(total + total / 4);
  id_.reserve(total + total / 4);
  edges.resize(total);
  id_.resize(total);
  for_each_until_cancelled(m, control, [&](std::size_t arc) {
    if (!alive.empty() && alive[arc] == 0) return;
    const auto a = static_cast<ArcId>(arc);
    const NodeId tail = network.tail[arc], head = network.head[arc];
    if (tail == head) {
      const Loop loop{network.capacity[arc], network.cost[arc]};
      cost_ += static_cast<__int128>(loop.cost) * loop.flow();
      loops_.emplace(std::pair(tail, a), loop);
      return;
    }
    const std::uint32_t there = blocks_[tail].middle++, back = blocks_[head].end++;
    const std::int64_t used = flow.empty() ? 0 : flow[arc];
    edges[there] = {head, back, static_cast<V>(network.cost[arc]),
                    static_cast<V>(network.capacity[arc] - used)};
    edges[back] = {tail, there, static_cast<V>(-network.cost[arc]), static_cast<V>(used)};
    id_[there] = 2 * a;
    id_[back] = 2 * a | kBackward;
    note_residual(there);
    note_residual(back);
    position[arc] = there;
    if (used == 0) return;
    cost_ += static_cast<__int128>(network.cost[arc]) * used;
    excess[tail] -= used;
    excess[head] += used;
  });
  for_each_until_cancelled(n, control, [&](std::size_t v) {
    if (excess[v] != 0) note_unbalanced(static_cast<NodeId>(v));
  });
}

template <class V>
void DynamicGraph<V>::touch(std::uint32_t edge) {
  const std::uint32_t partner = edges[edge].partner;
  id_[edge] |= kTouched;
  id_[partner] |= kTouched;
  touched_.push_back({arc(edge), edges[is_forward(edge) ? partner : edge].residual});
}

template <class V>
void DynamicGraph<V>::begin_round() {
  for (const FlowBefore& before : touched_) {
    const std::uint32_t there = position[before.arc];
    if (there == kNone) continue;
    id_[there] &= ~kTouched;
    id_[edges[there].partner] &= ~kTouched;
  }
  touched_.clear();
}

template <class V>
void DynamicGraph<V>::drop_balanced() {
  std::erase_if(unbalanced_, [this](NodeId v) {
    if (excess[v] != 0) return false;
    noted_[v] = 0;
    return true;
  });
}

template <class V>
void DynamicGraph<V>::relocate(std::uint32_t from, std::uint32_t to) {
  if (from == to) return;
  edges[to] = edges[from];
  id_[to] = id_[from];
  edges[edges[to].partner].partner = to;
  if (is_forward(to)) position[arc(to)] = to;
}

template <class V>
void DynamicGraph<V>::make_room(NodeId v) {
  Block& block = blocks_[v];
  const std::size_t begin = edges.size(), degree = block.end - block.begin;
  const std::size_t room = std::max<std::size_t>(8, degree + degree / 2);
  if (begin + room >= kNone) throw std::length_error("flowsolver: too many arcs");
  edges.resize(begin + room);
  id_.resize(begin + room);
  const auto at = static_cast<std::uint32_t>(begin);
  for (std::uint32_t i = 0; i < degree; ++i) relocate(block.begin + i, at + i);
  wasted_ += block.limit - block.begin;
  block = {at, at + (block.middle - block.begin), static_cast<std::uint32_t>(begin + degree),
           static_cast<std::uint32_t>(begin + room)};
}

// Makes the place for a new half-edge; the caller fills it at once.
template <class V>
std::uint32_t DynamicGraph<V>::insert(NodeId v, bool forward) {
  if (blocks_[v].end == blocks_[v].limit) make_room(v);
  Block& block = blocks_[v];
  if (!forward) return block.end++;
  relocate(block.middle, block.end++);
  return block.middle++;
}

template <class V>
void DynamicGraph<V>::erase(NodeId v, std::uint32_t edge) {
  Block& block = blocks_[v];
  if (edge < block.middle) {
    relocate(--block.middle, edge);
    edge = block.middle;
  }
  relocate(--block.end, edge);
}

template <class V>
void DynamicGraph<V>::add_node(NodeId v, std::int64_t supply) {
  if (v >= blocks_.size()) {
    blocks_.resize(v + 1);
    excess.resize(v + 1, 0);
    noted_.resize(v + 1, 0);
  }
  excess[v] = 0;
  change_supply(v, supply);
}

template <class V>
void DynamicGraph<V>::remove_node(NodeId v) {
  excess[v] = 0;
}

template <class V>
void DynamicGraph<V>::change_supply(NodeId v, std::int64_t delta) {
  excess[v] += delta;
  note_unbalanced(v);
}

template <class V>
void DynamicGraph<V>::add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
                              std::int64_t cost) {
  while (position.size() <= arc) position.push_back(kNone);  // bounded: by the arc's id
  if (tail == head) {
    change_loop(arc, tail, [=](Loop& loop) { loop = {capacity, cost}; });
    return;
  }
  const std::uint32_t there = insert(tail, true);
  position[arc] = there;
  id_[there] = 2 * arc;
  const std::uint32_t back = insert(head, false);
  id_[back] = 2 * arc | kBackward;
  edges[there] = {head, back, static_cast<V>(cost), static_cast<V>(capacity)};
  edges[back] = {tail, there, static_cast<V>(-cost), 0};
  note_residual(there);
}

template <class V>
void DynamicGraph<V>::remove_arc(ArcId arc, NodeId tail) {
  const std::uint32_t there = position[arc];
  if (there == kNone) {
    change_loop(arc, tail, [](Loop& loop) { loop = {0, 0}; });
    loops_.erase({tail, arc});
    return;
  }
  set_capacity(arc, tail, 0);
  const std::uint32_t back = edges[there].partner;
  const NodeId head = edges[there].to;
  erase(tail, there);
  erase(head, back);
  position[arc] = kNone;
}

template <class V>
void DynamicGraph<V>::set_capacity(ArcId arc, NodeId tail, std::int64_t capacity) {
  const std::uint32_t there = position[arc];
  if (there == kNone) {
    change_loop(arc, tail, [=](Loop& loop) { loop.capacity = capacity; });
    return;
  }
  const std::uint32_t back = edges[there].partner;
  const std::int64_t flow = edges[back].residual;
  if (flow > capacity) {
    push(edges[there].to, back, flow - capacity);
    note_unbalanced(tail);
    note_unbalanced(edges[there].to);
  }
  edges[there].residual = static_cast<V>(capacity - std::min(flow, capacity));
  note_residual(there);
}

template <class V>
void DynamicGraph<V>::set_cost(ArcId arc, NodeId tail, std::int64_t cost) {
  const std::uint32_t there = position[arc];
  if (there == kNone) {
    change_loop(arc, tail, [=](Loop& loop) { loop.cost = cost; });
    return;
  }
  HalfEdge& back = edges[edges[there].partner];
  cost_ += (static_cast<__int128>(cost) - edges[there].cost) * back.residual;
  edges[there].cost = static_cast<V>(cost);
  back.cost = static_cast<V>(-cost);
}

template <class V>
template <class Change>
void DynamicGraph<V>::change_loop(ArcId arc, NodeId v, Change change) {
  Loop& loop = loops_[{v, arc}];
  const std::int64_t before = loop.flow();
  cost_ -= static_cast<__int128>(loop.cost) * before;
  change(loop);
  cost_ += static_cast<__int128>(loop.cost) * loop.flow();
  if (loop.flow() != before) touched_.push_back({arc, before});
}

template <class V>
void DynamicGraph<V>::incident_arcs(NodeId v, std::vector<ArcId>& arcs) const {
  for (std::uint32_t e = begin(v); e < end(v); ++e) arcs.push_back(arc(e));
  for (auto loop = loops_.lower_bound({v, 0}); loop != loops_.end() && loop->first.first == v;
       ++loop) {
    arcs.push_back(loop->first.second);
  }
}

template <class V>
void DynamicGraph<V>::compact(const Control& control) {
  CancellationChecker checker(control);
  std::size_t total = 0;
  for (const Block& block : blocks_) total += block.limit - block.begin;
  LargeArray<HalfEdge> packed(total);
  LargeArray<std::uint32_t> ids(total);
  // Computes where each block will begin; then all new positions are known.
  std::vector<std::uint32_t> shift(blocks_.size());
  std::uint32_t next = 0;
  for (std::size_t v = 0; v < blocks_.size(); ++v) {
    shift[v] = next - blocks_[v].begin;
    next += blocks_[v].limit - blocks_[v].begin;
  }
  for (std::size_t v = 0; v < blocks_.size(); ++v) {
    const Block& block = blocks_[v];
    checker.step_until_cancelled({}, block.end - block.begin + 1);
    for (std::uint32_t e = block.begin; e < block.end; ++e) {
      const std::uint32_t to = e + shift[v];
      packed[to] = edges[e];
      packed[to].partner += shift[edges[e].to];
      ids[to] = id_[e];
    }
  }
  for (std::size_t v = 0; v < blocks_.size(); ++v) {
    Block& block = blocks_[v];
    block = {block.begin + shift[v], block.middle + shift[v], block.end + shift[v],
             block.limit + shift[v]};
  }
  edges = std::move(packed);
  id_ = std::move(ids);
  for (const Block& block : blocks_) {
    for (std::uint32_t e = block.begin; e < block.middle; ++e) position[arc(e)] = e;
  }
  wasted_ = 0;
}

template class DynamicGraph<std::int32_t>;
template class DynamicGraph<std::int64_t>;

}  // namespace flowsolver
