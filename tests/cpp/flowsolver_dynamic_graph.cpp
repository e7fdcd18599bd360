// The residual graph under changes (dynamic_graph.hpp), beside plain arrays that are changed in the
// same way.
#include <algorithm>
#include <map>
#include <set>

#include "graph/dynamic_graph.hpp"
#include "networks.hpp"

using namespace flowsolver;

namespace {

struct Arc {
  NodeId tail, head;
  std::int64_t capacity, cost, flow;
};

// The expected state of the graph, stored in full.
struct Model {
  std::map<ArcId, Arc> arcs;
  std::map<NodeId, std::int64_t> supply;

  std::int64_t excess(NodeId v) const {
    std::int64_t excess = supply.at(v);
    for (const auto& [id, arc] : arcs) {
      if (arc.tail == arc.head) continue;
      if (arc.tail == v) excess -= arc.flow;
      if (arc.head == v) excess += arc.flow;
    }
    return excess;
  }
};

template <class V>
class Trial {
 public:
  explicit Trial(std::uint64_t seed)
      : draws_(seed), network_(first_network()), graph_(network_, {}, {}, Control()) {
    for (ArcId a = 0; a < network_.num_arcs(); ++a) {
      Arc arc{network_.tail[a], network_.head[a], network_.capacity[a], network_.cost[a], 0};
      settle_loop(arc);
      model_.arcs[a] = arc;
    }
    for (NodeId v = 0; v < network_.num_nodes(); ++v) model_.supply[v] = network_.supply[v];
    next_arc_ = static_cast<ArcId>(network_.num_arcs());
    next_node_ = static_cast<NodeId>(network_.num_nodes());
  }

  void run(int changes) {
    check();
    for (int k = 0; k < changes; ++k) {
      change();
      if (k % 50 == 49) begin_round();
      if (graph_.is_sparse()) graph_.compact(Control());
      check();
    }
  }

 private:
  Network first_network() {
    Network network;
    network.supply.assign(6, 1);
    for (int k = 0; k < 15; ++k) {
      const auto tail = static_cast<NodeId>(draws_(6)), head = static_cast<NodeId>(draws_(6));
      add_arc(network, tail, head, static_cast<std::int64_t>(draws_(4)), cost());
    }
    return network;
  }

  std::int64_t cost() { return static_cast<std::int64_t>(draws_(9)) - 4; }
  static void settle_loop(Arc& arc) {
    if (arc.tail == arc.head) arc.flow = arc.cost < 0 ? arc.capacity : 0;
  }
  template <class Map>
  auto any_key(const Map& map) {
    return std::next(map.begin(), static_cast<std::ptrdiff_t>(draws_(map.size())))->first;
  }
  NodeId any_node() { return any_key(model_.supply); }
  ArcId any_arc() { return any_key(model_.arcs); }

  void change() {
    const std::uint64_t kind = draws_(10);
    if (kind <= 3 && !model_.supply.empty()) {  // most at node 0 or so: blocks grow
      const NodeId tail = draws_(2) == 0 ? model_.supply.begin()->first : any_node(),
                   head = any_node();
      Arc arc{tail, head, static_cast<std::int64_t>(draws_(4)), cost(), 0};
      graph_.add_arc(next_arc_, tail, head, arc.capacity, arc.cost);
      settle_loop(arc);
      model_.arcs[next_arc_++] = arc;
    } else if (kind == 4 && !model_.arcs.empty()) {
      remove_arc(any_arc());
    } else if (kind == 5 && !model_.arcs.empty()) {
      const ArcId a = any_arc();
      Arc& arc = model_.arcs[a];
      arc.capacity = static_cast<std::int64_t>(draws_(4));
      graph_.set_capacity(a, arc.tail, arc.capacity);
      arc.flow = std::min(arc.flow, arc.capacity);
      settle_loop(arc);
    } else if (kind == 6 && !model_.arcs.empty()) {
      const ArcId a = any_arc();
      Arc& arc = model_.arcs[a];
      arc.cost = cost();
      graph_.set_cost(a, arc.tail, arc.cost);
      settle_loop(arc);
    } else if (kind == 7 && !model_.arcs.empty()) {
      push_somewhere();
    } else if (kind == 8) {
      graph_.add_node(next_node_, -2);
      model_.supply[next_node_++] = -2;
    } else if (kind == 9 && draws_(6) == 0 && !model_.supply.empty()) {
      const NodeId v = any_node();
      std::vector<ArcId> arcs;
      graph_.incident_arcs(v, arcs);
      for (ArcId a : arcs) remove_arc(a);
      graph_.remove_node(v);
      model_.supply.erase(v);
    }
  }

  void remove_arc(ArcId a) {
    graph_.remove_arc(a, model_.arcs[a].tail);
    model_.arcs.erase(a);
  }

  void push_somewhere() {
    const ArcId a = any_arc();
    Arc& arc = model_.arcs[a];
    if (arc.tail == arc.head) return;
    std::uint32_t edge = graph_.position[a];
    const bool back = draws_(2) == 0;
    if (back) edge = graph_.edges[edge].partner;
    const std::int64_t amount = graph_.edges[edge].residual;
    pushed_ = true;
    graph_.push(back ? arc.head : arc.tail, edge, amount);
    arc.flow += back ? -amount : amount;
  }

  void begin_round() {
    graph_.begin_round();
    CHECK(graph_.touched_arcs().empty());
    known_ = model_;
    pushed_ = false;
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) graph_.note_unbalanced(v);
    graph_.drop_balanced();
  }

  void check() const {
    __int128 total = 0;
    for (const auto& [id, arc] : model_.arcs) {
      CHECK(graph_.flow(id, arc.tail) == arc.flow);
      total += static_cast<__int128>(arc.cost) * arc.flow;
      if (arc.tail == arc.head) {
        CHECK(graph_.position[id] == kNone);
        continue;
      }
      const std::uint32_t there = graph_.position[id];
      const auto& edge = graph_.edges[there];
      const auto& partner = graph_.edges[edge.partner];
      CHECK(edge.to == arc.head && partner.to == arc.tail && partner.partner == there);
      CHECK(edge.cost == arc.cost && partner.cost == -arc.cost);
      CHECK(edge.residual == arc.capacity - arc.flow && partner.residual == arc.flow);
      CHECK(graph_.has_reverse_residual(there) == (partner.residual > 0));
      CHECK(graph_.has_reverse_residual(edge.partner) == (edge.residual > 0));
      CHECK(graph_.begin(arc.tail) <= there && there < graph_.middle(arc.tail));
      CHECK(graph_.middle(arc.head) <= edge.partner && edge.partner < graph_.end(arc.head));
    }
    CHECK(graph_.cost() == total);
    const std::set<NodeId> unbalanced(graph_.unbalanced().begin(), graph_.unbalanced().end());
    for (const auto& [v, supply] : model_.supply) {
      CHECK(graph_.excess[v] == model_.excess(v));
      CHECK(pushed_ || graph_.excess[v] == 0 || unbalanced.contains(v));
      std::vector<ArcId> arcs;
      graph_.incident_arcs(v, arcs);
      std::sort(arcs.begin(), arcs.end());
      std::vector<ArcId> expected;
      for (const auto& [id, arc] : model_.arcs) {
        if (arc.tail == v || arc.head == v) expected.push_back(id);
      }
      CHECK(arcs == expected);
    }
    std::map<ArcId, std::int64_t> before;
    for (const FlowBefore& touched : graph_.touched_arcs())
      before.emplace(touched.arc, touched.flow);
    for (const auto& [id, arc] : model_.arcs) {
      const auto known = known_.arcs.find(id);
      const std::int64_t flow = known == known_.arcs.end() ? 0 : known->second.flow;
      if (before.contains(id)) {
        CHECK(before[id] == flow || known == known_.arcs.end());
      } else if (known != known_.arcs.end()) {
        CHECK(arc.flow == flow);
      }
    }
  }

  Draws draws_;
  Network network_;
  DynamicGraph<V> graph_;
  Model model_, known_;  // known: when the round began
  bool pushed_ = false;  // since then
  ArcId next_arc_ = 0;
  NodeId next_node_ = 0;
};

}  // namespace

int main() {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Trial<std::int32_t>(seed).run(1'000);
    Trial<std::int64_t>(seed).run(300);
  }
  return 0;
}
