// The lists of hubs against all their half-edges: whatever has changed, a visit comes to each open
// half-edge below its limit, and reads few others. What is remembered as a way to a target is one.
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "graph/residual_graph.hpp"

using namespace flowsolver;

namespace {

using Graph = ResidualGraph<std::int32_t>;

constexpr NodeId kRoot = 0, kHubs = 2, kFirst = 1 + kHubs, kMachines = 60;
constexpr ArcId kArcs = 6000;
constexpr std::int64_t kMost = 1000;  // cost, and price of a machine

// Two hubs, with arcs to each other and thousands to and from machines.
Network hubs_and_machines(Draws& draw) {
  Network network;
  network.supply.assign(kFirst + kMachines, 0);
  for (ArcId a = 0; a < kArcs; ++a) {
    const auto hub = static_cast<NodeId>(1 + draw(kHubs));
    const NodeId other = draw(500) == 0 ? 3 - hub : static_cast<NodeId>(kFirst + draw(kMachines));
    const bool in = draw(4) == 0;
    network.tail.push_back(in ? other : hub);
    network.head.push_back(in ? hub : other);
    network.capacity.push_back(static_cast<std::int64_t>(draw(3)));
    network.cost.push_back(static_cast<std::int64_t>(draw(kMost)));
  }
  return network;
}

class History {
 public:
  explicit History(std::uint64_t seed)
      : draw_(seed),
        draw_target_(seed),
        network_(hubs_and_machines(draw_)),
        graph_(network_, {}, {}, kRoot, true, Control()),
        alive_(kArcs, true) {
    for (NodeId v = kFirst; v < kFirst + kMachines; ++v) {
      graph_.nodes[v].price = price();
      draw_target(v);
    }
  }

  void round() {
    for (std::uint64_t k = draw_(40); k > 0; --k) change();
    draw_target(static_cast<NodeId>(kFirst + draw_target_(kMachines)));
    for (NodeId hub = 1; hub <= kHubs; ++hub) {
      check<true>(hub);
      check<false>(hub);
      check_way<true>(hub);
      check_way<false>(hub);
      if (draw_target_(4) == 0) graph_.hubs.forget_ways();
    }
  }

  // Before any change: takes ways to targets until there are none left, at some prices of the hub.
  // Returns how many there were.
  template <bool kForward>
  int use_up_ways(NodeId hub) {
    Stats stats;
    graph_.hubs.visit<kForward>(graph_, hub, 2 * kMost, stats, [](std::uint32_t) {});
    int used = 0;
    for (std::int64_t price = -kMost; price < 2 * kMost; price += 5) {
      graph_.nodes[hub].price = price;
      while (const std::uint32_t left = num_ways<kForward>(hub)) {
        const std::uint32_t way = way_to_target<kForward>(hub);
        CHECK(way != kNone);
        if (kForward) {
          graph_.push(hub, way, 1);
        } else {
          graph_.push(graph_.edges[way].to, graph_.position[graph_.edges[way].id ^ 1], 1);
        }
        ++used;
        CHECK(num_ways<kForward>(hub) <= left);
      }
      CHECK(way_to_target<kForward>(hub) == kNone);
    }
    return used;
  }

  // Half-edges read per visit of the cheapest hundredth, when nothing changes.
  std::int64_t read_per_visit() {
    Stats stats;
    const auto visit = [&] {
      graph_.hubs.visit<true>(graph_, 1, kMost / 100, stats, [](std::uint32_t) {});
    };
    visit();
    stats = {};
    visit();
    return stats.scanned;
  }

 private:
  std::int64_t price() { return static_cast<std::int64_t>(draw_(kMost)); }

  static bool is_target(const Node<std::int32_t>& node) { return node.imbalance < 0; }

  template <bool kForward>
  bool is_way(NodeId hub, std::uint32_t index) const {
    const auto& edge = graph_.edges[index];
    const auto& head = graph_.nodes[edge.to];
    return (kForward ? edge.residual : edge.reverse_residual) > 0 && is_target(head) &&
           edge.cost + head.price == graph_.nodes[hub].price;
  }
  template <bool kForward>
  std::uint32_t num_ways(NodeId hub) const {
    const auto& node = graph_.nodes[hub];
    std::uint32_t count = 0;
    for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i)
      count += is_way<kForward>(hub, i);
    return count;
  }
  template <bool kForward>
  std::uint32_t way_to_target(NodeId hub) {
    std::int64_t looked_at = 0;
    return graph_.hubs.way_to_target<kForward>(graph_, hub, looked_at, is_target);
  }
  template <bool kForward>
  void check_way(NodeId hub) {
    const std::uint32_t way = way_to_target<kForward>(hub);
    if (way == kNone) return;
    CHECK(way - graph_.nodes[hub].begin < graph_.nodes[hub].degree);
    CHECK(is_way<kForward>(hub, way));
  }

  void change() {
    const auto arc = static_cast<ArcId>(draw_(kArcs));
    const NodeId tail = network_.tail[arc];
    const std::uint64_t what = draw_(6);
    if (what == 0) return move_price();
    if (what == 1) return move_prices();
    if (!alive_[arc]) {
      graph_.attach(arc, tail, network_.head[arc], 1, static_cast<std::int32_t>(price()));
      alive_[arc] = true;
    } else if (what == 2) {
      graph_.set_cost(arc, tail, static_cast<std::int32_t>(price()));
    } else if (what == 3) {
      const auto flow = static_cast<std::int32_t>(graph_.flow_at(arc, tail));
      graph_.set_capacity(arc, tail, flow + static_cast<std::int32_t>(draw_(3)));
    } else if (what == 4) {
      const auto& edge = graph_.edges[graph_.position[2 * arc]];
      if (edge.residual > 0) {
        graph_.push(tail, graph_.position[2 * arc], 1);
      } else if (edge.reverse_residual > 0) {
        graph_.push(network_.head[arc], graph_.position[2 * arc + 1], 1);
      }
    } else {
      graph_.detach(arc, tail);
      alive_[arc] = false;
    }
  }

  void move_price() {  // of a hub, too
    const auto v = static_cast<NodeId>(1 + draw_(kHubs + kMachines));
    const std::int64_t before = graph_.nodes[v].price;
    graph_.nodes[v].price = price();
    graph_.hubs.price_moved(graph_, v, graph_.nodes[v].price > before);
  }

  void draw_target(NodeId v) { graph_.nodes[v].imbalance = draw_target_(2) == 0 ? -1 : 0; }

  void move_prices() {
    const bool up = draw_(2) == 0;
    const auto most = static_cast<std::int64_t>(1 + draw_(20));
    for (NodeId v = 1; v < kFirst + kMachines; ++v) {
      const auto by = static_cast<std::int64_t>(draw_(static_cast<std::uint64_t>(most) + 1));
      graph_.nodes[v].price += up ? by : -by;
    }
    graph_.hubs.prices_moved(most, up);
  }

  template <bool kForward>
  void check(NodeId hub) {
    const std::int64_t limit = kForward ? price() / 2 : price() / 2 - kMost;
    std::vector<bool> visited(graph_.edges.size(), false);
    Stats stats;
    graph_.hubs.visit<kForward>(graph_, hub, limit, stats,
                                [&](std::uint32_t index) { visited[index] = true; });
    const auto& node = graph_.nodes[hub];
    for (std::uint32_t i = 0; i < graph_.edges.size(); ++i) {
      const bool own = i - node.begin < node.degree;
      if (!own) {
        CHECK(!visited[i]);
        continue;
      }
      const auto& edge = graph_.edges[i];
      const bool open = (kForward ? edge.residual : edge.reverse_residual) > 0;
      const std::int64_t away = edge.cost + graph_.nodes[edge.to].price;
      CHECK(open || !visited[i]);
      if (open && (kForward ? away : -away) < limit) CHECK(visited[i]);
    }
  }

  Draws draw_, draw_target_;
  Network network_;
  Graph graph_;
  std::vector<bool> alive_;
};

}  // namespace

int main() {
  for (std::uint64_t seed = 1; seed <= tries(6); ++seed) {
    CHECK(History(seed).use_up_ways<true>(1) > 20);
    CHECK(History(seed).use_up_ways<false>(2) > 20);
    History history(seed);
    for (int round = 0; round < 150; ++round) history.round();
    CHECK(history.read_per_visit() < kArcs / 10);
  }
  return 0;
}
