// The solve from scratch; then routing deficits after changes, and the engine that keeps the graph
// from round to round.
#include "relaxation/relaxation.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "graph/start_state.hpp"
#include "relaxation/balanced_graph.hpp"
#include "relaxation/dual_ascent.hpp"

namespace flowsolver {

namespace {

template <class V>
void solve(const Network& network, const Start& start, const AlgorithmSettings& settings,
           const Control& control, Solution& solution) {
  BalancedGraph<ArcGraph<V>> graph;
  std::vector<std::int64_t> price;
  try {
    price = start.flow.empty() && start.price.empty()
                ? distances_to_sink(network, {}, largest_sink(network), control)
                : start_prices(network, start);
  } catch (const Stopped& stopped) {
    solution.status = stopped.status;
    return;
  }
  solution.status = graph.build(network, start, price, control, solution.stats);
  if (solution.status != Status::kOptimal) return;
  IterationHistory past;
  if (!price.empty() && prices_too_far_apart(graph) && !close_gaps(graph)) {
    solution.status = Status::kInfeasible;
  } else {
    solution.status =
        DualAscent<ArcGraph<V>>(graph, past, settings.arc_prioritisation, control, solution.stats)
            .run();
  }
  if (solution.status == Status::kCancelled) return;
  for (NodeId v = 0; v < network.num_nodes(); ++v) solution.potential[v] = graph.nodes[v].price;
  graph.arcs().write_flow(network, control, solution);
}

// How deficits are routed after changes: by cancelling flow along the path it used to take, or from
// the root along a shortest path.
//
// Cancelling. A removed task leaves a deficit where its flow went first, and the flow continues
// from there to the root. It is taken off arc by arc, as long as there are balanced arcs out with
// flow (Firmament, section 5.3.2): mostly up to the root in two or three steps, else up to where
// capacity was freed, which is nearer to the tasks that can use it.
//
// Routing from the root, the mirror image of raising a set. Let d(v) be the distance from v to the
// deficit in reduced costs, along residual half-edges, and D that of the root. Lowering every v
// with d(v) < D by D - d(v) is the same as lowering the sets {d <= t} for t = 0 .. D - 1 in turn:
// each has a deficit and no excess, and no balanced half-edge leads into it, so that the dual
// objective increases with each. Reduced-cost optimality is preserved, and the path from the root
// is balanced: flow is sent along it. The search ends when the root is found at the current
// distance; nodes beyond are not scanned. If the root is not found at all, nothing leads to the
// deficit, which proves that no flow is feasible.
//
// Following hops. Mostly the path is balanced already (D = 0), but among tens of thousands of
// others. So each node stores about how many balanced half-edges it is from the root (0 there, kFar
// if no path is known). Hops determine the order of searches only. Before a search, they are
// followed from the deficit to ever fewer, updating them on the way back from dead ends, as in
// DualAscent for excesses. They are computed again when searches for deficits have scanned as many
// half-edges as there are.
//
// Precondition: there is a root, and no node has excess.
//
// The hops from the root. They persist between runs.
struct RootHops {
  std::vector<std::uint8_t> hops;  // per node
  // per node, its current arc: position in its block before which no half-edge leads to fewer hops
  std::vector<std::uint32_t> current;
  std::int64_t since = kInfinity;  // half-edges
};

template <class Arcs>
class DeficitRouting {
 public:
  using Graph = BalancedGraph<Arcs>;
  using Edge = typename Graph::Edge;
  using Place = typename Graph::Place;

  // `uses_degenerate_raises`: apply them to sources whose prices fell. `prioritises`: follow hops.
  DeficitRouting(Graph& graph, RootHops& known, bool uses_degenerate_raises, bool prioritises,
                 const Control& control, Stats& stats)
      : graph_(graph),
        root_hops_(known),
        uses_degenerate_raises_(uses_degenerate_raises),
        prioritises_(prioritises),
        checker_(control),
        stats_(stats) {}

  // Cancels flow from v, which has a deficit, as far as possible. The hops of nodes above freed
  // capacity are updated.
  void cancel_along_flow(NodeId v) {
    for (int steps = 0; steps < kMaxSteps && v != graph_.root && graph_.excess(v) < 0; ++steps) {
      const Arcs& arcs = graph_.arcs();
      std::uint32_t i = arcs.begin(v);
      for (; i < arcs.middle(v); ++i) {
        const Edge& edge = arcs.edges[i];
        ++stats_.scanned;
        if (graph_.reduced_cost(v, edge) == 0 && arcs.edges[edge.partner].residual > 0) break;
      }
      if (i == arcs.middle(v)) return;
      const std::uint32_t back = arcs.edges[i].partner;
      const NodeId to = arcs.edges[i].to;
      graph_.push(to, back, std::min<std::int64_t>(-graph_.excess(v), arcs.edges[back].residual),
                  stats_);
      if (to == graph_.root && prioritises_) record_path_to_root(v);
      if (graph_.excess(v) == 0) v = to;
    }
  }

  // Sends some flow to v, which has a deficit. kCancelled: nothing has changed. kInfeasible:
  // proven. Ignores budgets: the same one again and again would never suffice.
  Status route_to(NodeId v) {
    const std::int64_t before = stats_.scanned;
    const std::size_t n = graph_.num_nodes();
    if (root_hops_.hops.size() < n) {
      root_hops_.hops.resize(n, kFar);
      root_hops_.current.resize(n, 0);
    }
    if (!prioritises_) return search_from_root(v);
    if (root_hops_.since > static_cast<std::int64_t>(graph_.arcs().edges.size())) {
      root_hops_.since = 0;
      if (measure() == Status::kCancelled) return Status::kCancelled;
    }
    const Status status = follow(v) ? Status::kOptimal : search_from_root(v);
    root_hops_.since += stats_.scanned - before;
    return status;
  }

  // of the nodes that the last search reached
  std::int64_t lowest_price() const { return lowest_price_; }

 private:
  // Routes flow to v by a search.
  Status search_from_root(NodeId v) {
    const Arcs& arcs = graph_.arcs();
    ++stats_.searches;
    nearest_ = kInfinity;
    lowest_price_ = 0;
    label(v, 0, kNone);
    Status status = Status::kOptimal;
    while (!heap_.empty() && status != Status::kCancelled) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const auto [distance, order, w] = heap_.back();
      heap_.pop_back();
      if (distance >= nearest_) break;
      if (graph_.nodes[w].place == Place::kInside) continue;
      graph_.nodes[w].place = Place::kInside;
      ++stats_.settled;
      std::uint32_t i = arcs.begin(w);
      for (; i < arcs.end(w) && distance < nearest_; ++i) {
        const Edge& edge = arcs.edges[i];
        const auto& tail = graph_.nodes[edge.to];
        // of the half-edge that leads here
        const std::int64_t length = -graph_.reduced_cost(w, edge);
        if (length < 0 || length >= nearest_ - distance || tail.place == Place::kInside) continue;
        if (tail.place == Place::kLabelled && graph_.cut[edge.to] <= distance + length) continue;
        if (arcs.edges[edge.partner].residual == 0) continue;
        label(edge.to, distance + length, edge.partner);
        if (edge.to == graph_.root) nearest_ = distance + length;
      }
      const std::int64_t steps = i - arcs.begin(w);
      stats_.scanned += steps;
      status = checker_.step(stats_, steps + 1);
    }
    if (status != Status::kCancelled) {
      status = Status::kInfeasible;
      if (nearest_ != kInfinity) {
        path_.clear();
        // bounded: by the length of the path
        for (NodeId u = graph_.root; u != v; u = graph_.edge(path_.back()).to) {
          root_hops_.hops[u] = static_cast<std::uint8_t>(std::min<std::size_t>(path_.size(), kFar));
          root_hops_.current[u] = 0;
          path_.push_back(graph_.nodes[u].parent);
        }
        augment(v);
        status = Status::kOptimal;
      }
    }
    for (NodeId w : labelled_) {
      const std::int64_t distance = graph_.cut[w];
      if (status == Status::kOptimal && distance < nearest_) graph_.lower(w, nearest_ - distance);
      lowest_price_ = std::min(lowest_price_, graph_.nodes[w].price);
      graph_.nodes[w].place = Place::kOutside;
      graph_.nodes[w].parent = kNone;
      graph_.cut[w] = 0;
    }
    if (uses_degenerate_raises_ && status == Status::kOptimal) {
      for (NodeId w : labelled_) {
        if (graph_.nodes[w].source && w != graph_.root && graph_.excess(w) == 0)
          graph_.raise_degenerate(w, stats_);
      }
    }
    labelled_.clear();
    heap_.clear();
    return status;
  }

  // Computes hops by breadth-first search from the root.
  Status measure() {
    const Arcs& arcs = graph_.arcs();
    std::fill(root_hops_.hops.begin(), root_hops_.hops.end(), kFar);
    std::fill(root_hops_.current.begin(), root_hops_.current.end(), 0);
    std::vector<NodeId> reached{graph_.root};
    root_hops_.hops[graph_.root] = 0;
    for (std::size_t k = 0; k < reached.size(); ++k) {
      const NodeId v = reached[k];
      const auto hops = static_cast<std::uint8_t>(root_hops_.hops[v] + 1);
      if (hops == kFar) break;
      for (std::uint32_t i = arcs.begin(v); i < arcs.end(v); ++i) {
        const Edge& edge = arcs.edges[i];
        if (root_hops_.hops[edge.to] != kFar || edge.residual == 0 ||
            graph_.reduced_cost(v, edge) != 0)
          continue;
        root_hops_.hops[edge.to] = hops;
        reached.push_back(edge.to);
      }
      const std::int64_t steps = arcs.end(v) - arcs.begin(v);
      stats_.scanned += steps;
      if (checker_.step(stats_, steps + 1) == Status::kCancelled) return Status::kCancelled;
    }
    return Status::kOptimal;
  }

  // Follows hops from the deficit. True if flow was sent.
  bool follow(NodeId target) {
    const Arcs& arcs = graph_.arcs();
    const std::int64_t until =
        stats_.scanned + static_cast<std::int64_t>(arcs.edges.size() / kFollowShare);
    path_.clear();
    NodeId w = target;
    while (stats_.scanned < until) {  // bounded: by the half-edges scanned
      const std::uint32_t begin = arcs.begin(w), degree = arcs.end(w) - begin;
      std::uint32_t place = std::min(root_hops_.current[w], degree);
      const std::uint32_t before = place;
      for (; place < degree; ++place) {
        if (root_hops_.hops[arcs.edges[begin + place].to] < root_hops_.hops[w] &&
            is_balanced_from(w, begin + place))
          break;
      }
      stats_.scanned += place - before + 1;
      root_hops_.current[w] = place;
      if (place < degree) {
        path_.push_back(arcs.edges[begin + place].partner);
        w = arcs.edges[begin + place].to;
        if (w != graph_.root) continue;
        augment(target);
        return true;
      }
      std::uint8_t hops = kFar;
      for (std::uint32_t i = begin; i < begin + degree; ++i) {
        if (root_hops_.hops[arcs.edges[i].to] + 1 < hops && is_balanced_from(w, i)) {
          hops = static_cast<std::uint8_t>(root_hops_.hops[arcs.edges[i].to] + 1);
        }
      }
      stats_.scanned += degree;
      root_hops_.hops[w] = hops;
      root_hops_.current[w] = 0;
      if (w != target) {
        w = graph_.edge(path_.back()).to;
        path_.pop_back();
      } else if (hops == kFar) {
        return false;
      }
    }
    return false;
  }

  // Whether flow can come to w over the partner of its half-edge i, which is balanced.
  bool is_balanced_from(NodeId w, std::uint32_t i) const {
    const Edge& edge = graph_.edge(i);
    return graph_.reduced_cost(w, edge) == 0 && graph_.edge(edge.partner).residual > 0;
  }

  static constexpr std::uint8_t kFar = 32;
  // share of the half-edges scanned before a search is made
  static constexpr std::size_t kFollowShare = 4;
  static constexpr int kMaxSteps = 64;
  // nodes with more half-edges are not scanned for predecessors
  static constexpr std::uint32_t kMaxLooked = 4096;
  struct Reached {
    std::int64_t distance;
    std::uint32_t order;
    NodeId node;
    bool operator>(const Reached& other) const {
      return distance != other.distance ? distance > other.distance : order > other.order;
    }
  };

  // v has a balanced path to the root, and so have up to two levels of nodes from which a balanced
  // half-edge leads to it. Sources are skipped: they scan their own arcs anyway.
  void record_path_to_root(NodeId v) {
    const Arcs& arcs = graph_.arcs();
    graph_.nodes[v].hops = 1;
    for (int level = 0; level < 2 && arcs.end(v) - arcs.begin(v) <= kMaxLooked; ++level) {
      const std::uint32_t hops = graph_.nodes[v].hops + 1;
      NodeId above = kNone;
      for (std::uint32_t i = arcs.middle(v); i < arcs.end(v); ++i) {
        const Edge& edge = arcs.edges[i];
        auto& tail = graph_.nodes[edge.to];
        if (tail.source || tail.hops <= hops || edge.to == graph_.root) continue;
        if (graph_.reduced_cost(v, edge) != 0 || arcs.edges[edge.partner].residual == 0) continue;
        tail.hops = hops;
        tail.current = 0;
        above = edge.to;
      }
      stats_.scanned += arcs.end(v) - arcs.middle(v);
      if (above == kNone) return;
      v = above;
    }
  }

  // `half_edge`: the next one on the path to the deficit.
  void label(NodeId v, std::int64_t distance, std::uint32_t half_edge) {
    auto& node = graph_.nodes[v];
    if (node.place == Place::kOutside) {
      node.place = Place::kLabelled;
      labelled_.push_back(v);
    }
    node.parent = half_edge;
    graph_.cut[v] = distance;
    heap_.push_back({distance, static_cast<std::uint32_t>(labelled_.size()), v});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  // Sends flow along path_, which ends at the root.
  void augment(NodeId target) {
    std::int64_t room = -graph_.excess(target);
    for (std::uint32_t i : path_) room = std::min<std::int64_t>(room, graph_.edge(i).residual);
    for (std::uint32_t i : path_) graph_.move(i, room);
    stats_.pushes += static_cast<std::int64_t>(path_.size());
    ++stats_.augmentations;
    graph_.add_excess(graph_.root, -room);
    graph_.add_excess(target, room);
  }

  Graph& graph_;
  RootHops& root_hops_;
  const bool uses_degenerate_raises_, prioritises_;
  CancellationChecker checker_;
  Stats& stats_;
  std::int64_t nearest_ = kInfinity;  // least distance found for the root
  std::int64_t lowest_price_ = 0;
  std::vector<std::uint32_t> path_;  // half-edges
  std::vector<NodeId> labelled_;
  std::vector<Reached> heap_;
};

template <class V>
class RelaxationEngine final : public Engine {
 public:
  RelaxationEngine(const EngineStart& start, std::span<const std::int64_t> price,
                   const AlgorithmSettings& settings, const Control& control, Stats& stats)
      : network_(start.network),
        root_(start.root),
        settings_(settings),
        graph_(start.network, start.flow, start.alive, price, control),
        may_have_price_gaps_(!price.empty()) {
    CancellationChecker checker(control);
    stats.scanned += static_cast<std::int64_t>(network_.num_arcs());
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      graph_.saturate(v, stats);
      checker.step_until_cancelled(stats, graph_.arcs().end(v) - graph_.arcs().begin(v) + 1);
    }
  }

  void add_node(NodeId v, std::int64_t supply) override {
    graph_.add_node(v, supply);
    graph_.marks.set(v, NodeMark::kNewNode);
    note_changed(v);
  }
  void remove_node(NodeId v) override { graph_.remove_node(v); }
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    graph_.add_arc(arc, tail, head, capacity, cost);
    note_changed(arc, tail);
  }
  void remove_arc(ArcId arc, NodeId tail, NodeId) override { graph_.remove_arc(arc, tail); }
  void set_capacity(ArcId arc, NodeId tail, NodeId, std::int64_t capacity) override {
    graph_.set_capacity(arc, tail, capacity);
    note_changed(arc, tail);
  }
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    graph_.set_cost(arc, tail, cost);
    note_changed(arc, tail);
  }
  void change_supply(NodeId v, std::int64_t delta) override {
    graph_.change_supply(v, delta, network_.supply[v]);
  }

  Status run(const Control& control, Stats& stats) override {
    if (const Status status = control.check(stats); status != Status::kOptimal) return status;
    try {
      graph_.keep_compact(control);
    } catch (const Stopped& stopped) {
      return stopped.status;
    }
    if (const Status status = restore_optimality(control, stats); status != Status::kOptimal)
      return status;
    graph_.note_excesses();
    if (may_have_price_gaps_) {
      if (prices_too_far_apart(graph_) && !close_gaps(graph_)) return Status::kInfeasible;
      may_have_price_gaps_ = false;
    }
    if (graph_.root == kNone) return solve_without_root(control, stats);
    DeficitRouting<DynamicGraph<V>> routing(graph_, from_root_, history_.uses_degenerate_raises,
                                            settings_.arc_prioritisation, control, stats);
    const std::vector<NodeId> deficits = graph_.arcs().unbalanced();
    for (NodeId v : deficits) routing.cancel_along_flow(v);
    Status status = dual_ascent(control, stats);
    if (status == Status::kOptimal) status = route_deficits(control, stats);
    graph_.note_excesses();
    return status;
  }

  // With a root, the excess that cannot be routed is the root's.
  std::vector<NodeId> unrouted_nodes() const override {
    std::vector<NodeId> nodes;
    for (const NodeQueue* queue : {&graph_.untried, &graph_.postponed}) {
      for (std::size_t k = 0; k < queue->size(); ++k) {
        if (graph_.is_excess((*queue)[k])) nodes.push_back((*queue)[k]);
      }
    }
    if (nodes.empty() && graph_.root != kNone) nodes.push_back(graph_.root);
    return nodes;
  }

  // each raises the dual objective or routes excess to a deficit
  bool keeps_progress() const override { return true; }

  std::int64_t flow(ArcId arc, NodeId tail) const override { return graph_.arcs().flow(arc, tail); }
  std::int64_t price(NodeId v) const override {
    return graph_.nodes[v].price - graph_.nodes[root_].price;
  }
  __int128 cost() const override { return graph_.arcs().cost(); }
  void adopt(const Engine&) override {}  // its own state is as good a start
  std::uint64_t value_limit() const override { return width_limit<V>(61); }
  bool prices_drifted() const override { return false; }
  bool local() const override { return true; }
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override {
    for (NodeId v : nodes) graph_.arcs().incident_arcs(v, arcs);
  }
  const std::vector<FlowBefore>& touched_arcs() const override {
    return graph_.arcs().touched_arcs();
  }
  const std::vector<NodeId>& repriced_nodes() const override { return graph_.repriced(); }
  void begin_round() override { graph_.begin_round(); }

 private:
  using Graph = BalancedGraph<DynamicGraph<V>>;
  using Edge = typename Graph::Edge;
  // times the number of half-edges: scans for single deficits in a run
  static constexpr std::int64_t kMaxScansFactor = 4;

  void note_changed(NodeId v) {
    if (graph_.marks.set(v, NodeMark::kChanged)) changed_.push_back(v);
  }
  void note_changed(ArcId arc, NodeId tail) {
    changed_arcs_.push_back(arc);
    note_changed(tail);
  }
  bool is_source(NodeId v) const { return graph_.arcs().middle(v) == graph_.arcs().end(v); }
  // If cancelled, all changes remain listed for the next run.
  Status restore_optimality(const Control& control, Stats& stats) {
    const DynamicGraph<V>& arcs = graph_.arcs();
    CancellationChecker checker(control);
    const auto cancelled = [&](std::int64_t steps) {
      return checker.step(stats, steps) == Status::kCancelled;
    };
    for (NodeId v : changed_) {
      if (!graph_.marks.has(v, NodeMark::kNewNode)) continue;
      if (v != graph_.root && !is_source(v)) price_new_node(v, stats);
      if (cancelled(arcs.end(v) - arcs.begin(v) + 1)) return Status::kCancelled;
    }
    for (NodeId v : changed_) {
      if (v == graph_.root || !is_source(v)) continue;
      price_source(v, stats);
      if (cancelled(arcs.end(v) - arcs.begin(v) + 1)) return Status::kCancelled;
    }
    const auto saturate = [&](NodeId v, std::uint32_t i) {
      const Edge& edge = arcs.edges[i];
      if (edge.residual == 0 || graph_.reduced_cost(v, edge) >= 0) return;
      graph_.push(v, i, edge.residual, stats);
      ++stats.repaired;
    };
    const auto saturate_both = [&](std::uint32_t there) {
      const NodeId tail = graph_.tail(there), head = arcs.edges[there].to;
      saturate(tail, there);
      saturate(head, arcs.edges[there].partner);
    };
    for (ArcId arc : changed_arcs_) {
      if (arcs.position[arc] != kNone) saturate_both(arcs.position[arc]);
      if (cancelled(1)) return Status::kCancelled;
    }
    for (NodeId v : changed_) {
      graph_.marks.clear(v, NodeMark::kNewNode);
      graph_.marks.clear(v, NodeMark::kChanged);
      if (v == graph_.root || !is_source(v)) continue;
      for (std::uint32_t i = arcs.begin(v); i < arcs.end(v); ++i) saturate_both(i);
    }
    changed_.clear();
    changed_arcs_.clear();
    return Status::kOptimal;
  }

  // Between which prices no residual arc at a node has negative reduced cost.
  struct PriceLimits {
    std::int64_t highest = kInfinity;  // by residual arcs out
    std::int64_t lowest = -kInfinity;  // by residual arcs in
  };
  PriceLimits price_limits(NodeId v, Stats& stats) const {
    const DynamicGraph<V>& arcs = graph_.arcs();
    PriceLimits limits;
    for (std::uint32_t i = arcs.begin(v); i < arcs.end(v); ++i) {
      const Edge& edge = arcs.edges[i];
      const std::int64_t there = edge.cost + graph_.nodes[edge.to].price;
      if (edge.residual > 0) limits.highest = std::min(limits.highest, there);
      if (arcs.edges[edge.partner].residual > 0) limits.lowest = std::max(limits.lowest, there);
    }
    stats.scanned += arcs.end(v) - arcs.begin(v);
    return limits;
  }

  // Sets the highest price that residual arcs out allow; without any, the lowest that those in
  // allow.
  void price_new_node(NodeId v, Stats& stats) {
    const auto [highest, lowest] = price_limits(v, stats);
    graph_.set_price(v, highest != kInfinity ? highest : lowest != -kInfinity ? lowest : 0);
  }

  void price_source(NodeId v, Stats& stats) {
    auto [highest, lowest] = price_limits(v, stats);
    std::int64_t price = graph_.nodes[v].price;
    lowest = std::min(lowest, highest);  // more expensive arcs will be emptied
    price = std::min(std::max(price, lowest), highest);
    if (graph_.excess(v) > 0 && highest != kInfinity) price = highest;
    graph_.set_price(v, price);
    ++stats.repaired;
  }

  Status route_deficits(const Control& control, Stats& stats) {
    DeficitRouting<DynamicGraph<V>> routing(graph_, from_root_, history_.uses_degenerate_raises,
                                            settings_.arc_prioritisation, control, stats);
    const std::int64_t max_scanned =
        stats.scanned + kMaxScansFactor * static_cast<std::int64_t>(graph_.arcs().edges.size());
    const std::vector<NodeId> deficits = graph_.arcs().unbalanced();
    for (NodeId v : deficits) {
      while (v != graph_.root && graph_.excess(v) < 0) {
        if (stats.scanned > max_scanned) return solve_without_root(control, stats);
        if (const Status status = routing.route_to(v); status != Status::kOptimal) return status;
        if (routing.lowest_price() < -Graph::kMaxPrice && !close_gaps(graph_))
          return Status::kInfeasible;
        if (const Status status = control.check(stats); status != Status::kOptimal) return status;
      }
    }
    return Status::kOptimal;
  }

  Status dual_ascent(const Control& control, Stats& stats) {
    return DualAscent<DynamicGraph<V>>(graph_, history_, settings_.arc_prioritisation, control,
                                       stats)
        .run();
  }

  Status solve_without_root(const Control& control, Stats& stats) {
    if (graph_.root != kNone) {
      graph_.root = kNone;
      graph_.note_excess(root_);
      for (NodeId v = 0; v < graph_.num_nodes(); ++v) graph_.note_price(v);
    }
    const Status status = dual_ascent(control, stats);
    if (status == Status::kOptimal) {
      graph_.root = root_;
      graph_.note_excess(root_);
    }
    return status;
  }

  const Network& network_;
  const NodeId root_;
  const AlgorithmSettings settings_;
  Graph graph_;
  IterationHistory history_;
  RootHops from_root_;
  bool may_have_price_gaps_;  // start prices were given, which may be far apart
  // nodes marked as changed: new ones, and those with changed arcs out
  std::vector<NodeId> changed_;
  std::vector<ArcId> changed_arcs_;  // some twice, some removed again
};

template <class V>
std::unique_ptr<Engine> make(const EngineStart& start, const AlgorithmSettings& settings,
                             const Control& control, Stats& stats) {
  if (start.flow.empty() && start.price.empty()) {
    const std::vector<std::int64_t> price =
        distances_to_sink(start.network, start.alive, start.root, control);
    return std::make_unique<RelaxationEngine<V>>(start, price, settings, control, stats);
  }
  const bool within = std::none_of(start.price.begin(), start.price.end(), is_far);
  const std::span<const std::int64_t> price =
      within ? start.price : std::span<const std::int64_t>{};
  return std::make_unique<RelaxationEngine<V>>(start, price, settings, control, stats);
}

}  // namespace

Solution solve_relaxation(const Network& network, const Start& start, const Control& control,
                          const AlgorithmSettings& settings) {
  return solve_by_width(network, start, control, [&]<class Value>(Solution& solution) {
    solve<Value>(network, start, settings, control, solution);
  });
}

std::unique_ptr<Engine> make_relaxation_engine(const EngineStart& start, const Control& control,
                                               Stats& stats, const AlgorithmSettings& settings) {
  return make_by_width(start.network, control,
                       [&]<class V> { return make<V>(start, settings, control, stats); });
}

}  // namespace flowsolver
