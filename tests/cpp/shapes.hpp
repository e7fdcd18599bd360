// Random networks of several shapes: what small networks that are drawn arc by arc have not. Nodes
// with far more half-edges than a relabel looks at one by one, costs below zero against large ones,
// capacities that never bind beside such that do, paths as long as the network, parts that hang on
// one arc.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "networks.hpp"

namespace flowsolver {

inline constexpr std::int64_t kWide = 1'000'000;  // more than ever flows

class Random {
 public:
  explicit Random(std::uint64_t seed) : draw_((seed + 1) * 0x9e3779b97f4a7c15ull) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(draw_(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool one_in(std::int64_t times) { return between(1, times) == 1; }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[draw_(values.size())];
  }

 private:
  Draws draw_;
};

// A network, and how a new node is joined with it.
struct Shape {
  std::string_view name;
  Network (*make)(Random& random);
  // the nodes that a new one is joined with, by arcs both ways
  std::size_t most_hubs;
  std::int64_t cost, capacity;
};

inline NodeId add_node(Network& network, std::int64_t supply) {
  network.supply.push_back(supply);
  return static_cast<NodeId>(network.num_nodes() - 1);
}

inline void join(Network& network, NodeId u, NodeId v, std::int64_t capacity, std::int64_t cost) {
  add_arc(network, u, v, capacity, cost);
  add_arc(network, v, u, capacity, cost);
}

// The first node takes what the others leave.
inline void balance(Network& network) {
  std::int64_t sum = 0;
  for (std::int64_t supply : network.supply) sum += supply;
  network.supply[0] -= sum;
}

// Every leaf is joined with each of the hubs, which come first and are joined with each other.
inline Network hubs(Random& random, NodeId count, std::int64_t leaves, std::int64_t capacity) {
  Network network;
  for (NodeId hub = 0; hub < count; ++hub) {
    add_node(network, 0);
    if (hub > 0) join(network, hub - 1, hub, capacity, random.between(1, 300));
  }
  for (; leaves > 0; --leaves) {
    const NodeId leaf = add_node(network, random.between(-5, 5));
    for (NodeId hub = 0; hub < count; ++hub) join(network, leaf, hub, capacity, 200);
  }
  balance(network);
  return network;
}

inline Network hub(Random& random) { return hubs(random, 1, random.between(60, 160), kWide); }
inline Network two_hubs(Random& random) { return hubs(random, 2, random.between(20, 60), kWide); }
inline Network narrow_hub(Random& random) { return hubs(random, 1, random.between(40, 90), 7); }

// One source per leaf, one sink; no arcs back.
inline Network star(Random& random) {
  Network network;
  add_node(network, 0);
  const NodeId hub = add_node(network, 0);
  add_arc(network, hub, 0, kWide, 5);
  for (std::int64_t leaves = random.between(40, 110); leaves > 0; --leaves) {
    const NodeId leaf = add_node(network, random.between(0, 2));
    add_arc(network, leaf, hub, random.between(2, 9), random.between(0, 200));
    if (random.one_in(3)) add_arc(network, leaf, 0, 1, random.between(100, 400));
  }
  balance(network);
  return network;
}

inline Network path(Random& random) {
  Network network;
  const std::int64_t capacity = random.one_in(2) ? kWide : 60;
  add_node(network, 0);
  for (std::int64_t length = random.between(30, 150); length > 0; --length) {
    const NodeId v = add_node(network, random.between(-3, 3));
    join(network, v - 1, v, capacity, random.between(0, 90));
  }
  balance(network);
  return network;
}

// Tasks that prefer some machines, may go to any over the cluster, or wait: sink, cluster, waiting,
// machines, tasks.
inline Network cell(Random& random) {
  Network network;
  const NodeId sink = add_node(network, 0), cluster = add_node(network, 0),
               waiting = add_node(network, 0);
  const std::int64_t machines = random.between(10, 30), slots = random.between(1, 4);
  for (std::int64_t m = 0; m < machines; ++m) {
    const NodeId machine = add_node(network, 0);
    add_arc(network, cluster, machine, slots, 0);
    add_arc(network, machine, sink, slots, 0);
  }
  // some cells have not enough room to wait in
  const std::int64_t tasks = machines * slots * random.between(60, 120) / 100;
  add_arc(network, waiting, sink, random.one_in(4) ? machines * slots / 12 : tasks, 0);
  for (std::int64_t k = 0; k < tasks; ++k) {
    const NodeId task = add_node(network, 1);
    for (int p = 0; p < 3; ++p) {
      add_arc(network, task, static_cast<NodeId>(waiting + random.between(1, machines)), 1,
              random.between(0, 40));
    }
    add_arc(network, task, cluster, 1, 50);
    add_arc(network, task, waiting, 1, random.between(60, 300));
  }
  balance(network);
  return network;
}

// Supplies of a random flow: feasible and tight.
inline Network tight(Random& random, std::int64_t nodes, std::int64_t arcs,
                     std::int64_t most_capacity) {
  Network network;
  network.supply.assign(static_cast<std::size_t>(nodes), 0);
  for (; arcs > 0; --arcs) {
    const auto tail = static_cast<NodeId>(random.between(0, nodes - 1)),
               head = static_cast<NodeId>(random.between(0, nodes - 1));
    const std::int64_t capacity = random.between(0, most_capacity),
                       sent = random.one_in(3) ? random.between(0, capacity) : 0;
    add_arc(network, tail, head, capacity, random.between(-20, 200));
    network.supply[tail] += sent;
    network.supply[head] -= sent;
  }
  return network;
}
inline Network sparse(Random& random) { return tight(random, random.between(30, 80), 160, 20); }
inline Network dense(Random& random) { return tight(random, random.between(6, 14), 400, 9); }

// Two parts of many nodes, joined by one arc that may be too narrow.
inline Network bottleneck(Random& random) {
  Network network = hubs(random, 1, random.between(20, 40), kWide);
  const NodeId leaves = static_cast<NodeId>(network.num_nodes());
  for (NodeId v = 0; v < leaves; ++v) add_node(network, random.between(-5, 5));
  for (NodeId v = leaves + 1; v < 2 * leaves; ++v) join(network, v, leaves, kWide, 200);
  join(network, 1, leaves + 1, random.between(10, 80), 30);
  balance(network);
  return network;
}

inline constexpr std::array kShapes{
    Shape{"hub", hub, 1, 200, kWide},
    Shape{"two_hubs", two_hubs, 2, 200, kWide},
    Shape{"narrow_hub", narrow_hub, 1, 200, 7},
    Shape{"star", star, 2, 60, 4},
    Shape{"path", path, 1, 40, 60},
    Shape{"cell", cell, 3, 50, 1},
    Shape{"sparse", sparse, 3, 50, 20},
    Shape{"dense", dense, 2, 20, 9},
    Shape{"bottleneck", bottleneck, 1, 200, kWide},
};

}  // namespace flowsolver
