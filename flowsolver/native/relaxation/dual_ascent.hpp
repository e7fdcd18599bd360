// The iterations of relaxation: by single nodes, by sets of nodes, and passes over a whole balanced
// graph between them. Definitions, method, termination and complexity are in relaxation.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "network.hpp"
#include "relaxation/balanced_graph.hpp"

namespace flowsolver {

// Passes over a whole balanced graph, between iterations: computing hops, raising prices by
// distance, closing gaps between prices, degenerate raises. Relaxation uses them as a fallback,
// decided by counted work.
//
// Closing gaps. Prices only rise. When one exceeds kMaxPrice, or a start's prices are too far
// apart, close_gaps sorts them and moves every group of nodes that lies further than the largest
// |cost| above the rest down to that distance. Arcs out of such a group T have rc < 0 before and <=
// 0 after, arcs into it rc > 0 and >= 0, so the invariant stays. All prices then lie in [0, (n - 1)
// max|cost|], below 2^59. Since T's arcs are full out and empty in, e(T) > 0 proves that no flow is
// feasible; otherwise the dual objective does not decrease.

// The largest cost of any half-edge, which is the largest |cost|.
template <class Arcs>
std::int64_t largest_cost(const Arcs& arcs) {
  std::int64_t largest = 0;
  for (NodeId v = 0; v < arcs.num_nodes(); ++v) {
    for (std::uint32_t i = arcs.begin(v); i < arcs.end(v); ++i) {
      largest = std::max<std::int64_t>(largest, arcs.edges[i].cost);
    }
  }
  return largest;
}

// Computes the hops of all nodes by breadth-first search backward from all deficits.
template <class Graph>
Status measure_hops(Graph& graph, const Control& control, Stats& stats) {
  CancellationChecker checker(control);
  const auto& arcs = graph.arcs();
  std::vector<NodeId> reached;
  for (NodeId v = 0; v < graph.num_nodes(); ++v) {
    graph.nodes[v].hops = graph.has_deficit(v) ? 0 : Graph::kFar;
    graph.nodes[v].current = 0;
    if (graph.has_deficit(v)) reached.push_back(v);
  }
  for (std::size_t k = 0; k < reached.size(); ++k) {
    const NodeId w = reached[k];
    if (graph.nodes[w].hops + 1 >= Graph::kFar) break;
    for (std::uint32_t i = arcs.begin(w); i < arcs.end(w); ++i) {
      const auto& edge = arcs.edges[i];
      auto& node = graph.nodes[edge.to];
      if (node.hops != Graph::kFar || graph.reduced_cost(w, edge) != 0 ||
          arcs.edges[edge.partner].residual == 0)
        continue;
      node.hops = graph.nodes[w].hops + 1;
      reached.push_back(edge.to);
    }
    const std::int64_t steps = arcs.end(w) - arcs.begin(w);
    stats.scanned += steps;
    if (const Status status = checker.step(stats, steps + 1); status != Status::kOptimal)
      return status;
  }
  return Status::kOptimal;
}

// Whether a start's prices have gaps that many small raises would be needed to close.
template <class Graph>
bool prices_too_far_apart(const Graph& graph) {
  const auto cheaper = [](const auto& a, const auto& b) { return a.price < b.price; };
  const auto [low, high] = std::minmax_element(graph.nodes.begin(), graph.nodes.end(), cheaper);
  return high->price - low->price >
         largest_cost(graph.arcs()) * static_cast<std::int64_t>(graph.nodes.size() - 1);
}

// See "Closing gaps". False: no flow is feasible.
template <class Graph>
bool close_gaps(Graph& graph) {
  std::vector<NodeId> order(graph.num_nodes());
  std::iota(order.begin(), order.end(), NodeId{0});
  std::sort(order.begin(), order.end(), [&](NodeId a, NodeId b) {
    const std::int64_t price_a = graph.nodes[a].price, price_b = graph.nodes[b].price;
    return price_a != price_b ? price_a > price_b : a < b;
  });
  const std::int64_t widest = largest_cost(graph.arcs());
  __int128 above = 0;  // excess of the nodes above a gap
  for (std::size_t k = 0; k + 1 < order.size(); ++k) {
    above += graph.excess(order[k]);
    if (above > 0 && graph.nodes[order[k]].price - graph.nodes[order[k + 1]].price > widest)
      return false;
  }
  std::int64_t before = graph.nodes[order.back()].price, price = 0;
  for (std::size_t k = order.size(); k-- > 0;) {
    auto& node = graph.nodes[order[k]];
    price += std::min(node.price - before, widest);
    before = node.price;
    node.price = price;
    node.current = 0;
    graph.note_price(order[k]);
  }
  graph.forget_keys();
  return true;
}

struct Reached {
  std::int64_t distance;
  NodeId node;
  bool operator>(const Reached& other) const {
    return distance != other.distance ? distance > other.distance : node > other.node;
  }
};

// Raises every node by its distance to the nearest deficit in reduced costs, but none by more than
// the farthest excess. So each excess gets a balanced path to a deficit. kInfeasible: one has no
// path at all, so the nodes it reaches have more supply than capacity out.
template <class Graph>
Status raise_by_distance(Graph& graph, const Control& control, Stats& stats) {
  CancellationChecker checker(control);
  const auto& arcs = graph.arcs();
  std::vector<std::int64_t> distance(graph.num_nodes(), kInfinity);
  std::vector<Reached> heap;
  const auto label = [&](NodeId v, std::int64_t at) {
    distance[v] = at;
    heap.push_back({at, v});
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  std::int64_t left = 0, farthest = 0;  // left: number of excesses not yet reached
  for (NodeId v = 0; v < graph.num_nodes(); ++v) {
    if (graph.has_deficit(v)) label(v, 0);
    if (graph.is_excess(v)) ++left;
  }
  while (left > 0 && !heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto [at, w] = heap.back();
    heap.pop_back();
    if (at > distance[w]) continue;
    if (graph.is_excess(w)) --left;
    farthest = at;
    for (std::uint32_t i = arcs.begin(w); i < arcs.end(w); ++i) {
      const auto& edge = arcs.edges[i];
      const std::int64_t beyond = at - graph.reduced_cost(w, edge);
      if (arcs.edges[edge.partner].residual > 0 && beyond < distance[edge.to])
        label(edge.to, beyond);
    }
    const std::int64_t steps = arcs.end(w) - arcs.begin(w);
    stats.scanned += steps;
    const Status status = checker.step(stats, steps + 1);
    // If the graph persists, it does not stop at a budget: the same one again and again would never
    // suffice.
    if (status == Status::kCancelled || (status == Status::kBudget && !Graph::kIsDynamic))
      return status;
  }
  if (left > 0) return Status::kInfeasible;
  std::int64_t highest = 0;
  for (NodeId v = 0; v < graph.num_nodes(); ++v) {
    if (distance[v] > 0) graph.raise(v, std::min(distance[v], farthest));
    highest = std::max(highest, graph.nodes[v].price);
  }
  ++stats.ascents;
  if (highest > Graph::kMaxPrice && !close_gaps(graph)) return Status::kInfeasible;
  return measure_hops(graph, control, stats);
}

// Degenerate raises of all sources without excess.
template <class Graph>
Status raise_sources_degenerate(Graph& graph, const Control& control, Stats& stats) {
  CancellationChecker checker(control);
  for (NodeId v = 0; v < graph.num_nodes(); ++v) {
    const std::int64_t before = stats.scanned;
    if (graph.nodes[v].source && graph.excess(v) == 0) graph.raise_degenerate(v, stats);
    if (const Status status = checker.step(stats, stats.scanned - before + 1);
        status != Status::kOptimal)
      return status;
  }
  return Status::kOptimal;
}

// A path of balanced arcs to a deficit, along which all excess on the path is sent at once.
//
// The path is built backward from the deficit. Each node on it adds as much of its excess as the
// rest of the path has capacity for, the nearest node first. If the excesses were sent one by one,
// a long path would take quadratic time.
template <class Graph>
class AugmentingPath {
 public:
  explicit AugmentingPath(Graph& graph) : graph_(graph) {}

  void begin(NodeId target) {
    target_ = target;
    room_ = graph_.deficit(target);
    steps_.clear();
    steps_with_excess_ = 0;
  }

  // Adds the next half-edge back. False: no capacity is left for excess beyond it.
  bool extend(std::uint32_t edge) {
    room_ = std::min<std::int64_t>(room_, graph_.edge(edge).residual);
    if (room_ == 0) return false;
    const NodeId v = graph_.tail(edge);
    const std::int64_t amount = std::clamp<std::int64_t>(graph_.excess(v), 0, room_);
    steps_.push_back({edge, v, amount});
    room_ -= amount;
    if (amount > 0) steps_with_excess_ = steps_.size();
    return room_ > 0;
  }

  // Sends the excess and returns the amount; visit(node, number of half-edges to the target) for
  // each node it came from or over.
  template <class Visit>
  std::int64_t send(Stats& stats, Visit visit) {
    std::int64_t amount_sent = 0;
    for (std::size_t k = steps_with_excess_; k-- > 0;) {
      const Step& step = steps_[k];
      amount_sent += step.amount;
      graph_.move(step.edge, amount_sent);
      if (step.amount > 0) graph_.add_excess(step.tail, -step.amount);
      visit(step.tail, static_cast<std::uint32_t>(k) + 1);
    }
    if (amount_sent == 0) return 0;
    graph_.add_excess(target_, amount_sent);
    stats.pushes += static_cast<std::int64_t>(steps_with_excess_);
    ++stats.augmentations;
    return amount_sent;
  }

 private:
  struct Step {
    std::uint32_t edge;
    NodeId tail;
    std::int64_t amount;  // of the tail's excess
  };

  Graph& graph_;
  NodeId target_ = kNone;
  std::int64_t room_ = 0;  // capacity left for excess from beyond the last step
  std::vector<Step> steps_;
  std::size_t steps_with_excess_ = 0;  // steps up to the last one that adds excess
};

// A multinode iteration of relaxation: a set S is grown from a node with excess over balanced arcs,
// until flow can be sent to deficits or the prices of S can be raised.
//
// Slope. Let e(S) be the excess in S, deficits counted negative, and cut(w) the residual capacity
// of the balanced arcs from S to a node w outside. Per unit by which the prices of S are raised,
// the dual objective changes by
//   slope = e(S) - sum of cut(w).
// The slope is updated incrementally: w joining S adds cut(w) + e(w) and subtracts the balanced
// residual capacity of w's arcs to the outside; sending flow to a deficit outside takes as much
// from e(S) as from the cut. So each step costs only what it scans.
//
// Loop, until e(S) = 0 or nothing is left to do:
// - When a balanced arc out of S leads to a deficit, flow is sent there at once, from excesses up
//   the tree, the nearest first.
// - While there is a candidate (balanced arcs lead to it from S), it joins S: the one of least hops
//   first, of those the one found last. If the slope is positive and would fall by it, the
//   candidate is deferred. Without arc prioritisation, balanced arcs are followed in the order in
//   which they were found, also those to deficits.
// - When the slope is positive, the balanced arcs out of S are saturated, and S is raised until the
//   next arc is balanced. No such arc: e(S) > 0 and no residual arc leads out of S, so no flow is
//   feasible.
//
// S persists through raises, which makes one set from one search (the textbook starts again after
// each raise), and each raise costs only the nodes whose arcs get balanced: a heap has, for each
// node of S, the raise at which its next arc does. Members store their price minus the raise at
// which they joined; `finish` adds the final one.
//
// Gathering. The excess of one task never makes a slope of more than one, and a full cell would be
// searched for each task again. Once a search has cost more than scanning all postponed excesses,
// those join that are adjacent to S: single-node ascent gives them a balanced arc into S and none
// out of it worth more than their excess. Their excess moves along that arc; what is left is
// returned. From then on the prices of the whole set rise at once, as far as the dual objective
// does.
template <class Arcs>
class MultinodeIteration {
 public:
  using Graph = BalancedGraph<Arcs>;
  using Edge = typename Graph::Edge;
  using Node = typename Graph::Node;
  using Place = typename Graph::Place;

  // `prioritises`: whether arcs are prioritised.
  MultinodeIteration(Graph& graph, bool prioritises, const Control& control, Stats& stats)
      : graph_(graph), prioritises_(prioritises), checker_(control), stats_(stats) {}

  // kOptimal: the dual objective increased, or the sum of excesses decreased. kInfeasible: proven.
  // Or stopped, with prices in a valid state.
  Status run(NodeId root) {
    ++stats_.searches;
    raise_ = 0;
    slope_ = excess_ = 0;
    checked_at_ = stats_.scanned;
    std::int64_t noted_at = stats_.scanned;
    bool infeasible = false;
    status_ = Status::kOptimal;
    made_progress_ = false;
    steps_since_push_ = 0;
    add_member(root);
    while (should_continue() && excess_ > 0 && raise_ < Graph::kMaxPrice &&
           (!made_progress_ || steps_since_push_ < kMaxStepsSincePush)) {
      const NodeId w = next_candidate();
      if (w != kNone) {
        if (slope_ > 0 && lowers_slope(w)) {
          deferred_.push_back(w);
        } else {
          add_member(w);
        }
      } else if (slope_ > 0) {
        saturate_cut();
        infeasible = !raise();
        if (infeasible) break;
      } else if (!deferred_.empty()) {
        for (NodeId r : deferred_) add_candidate(r);
        deferred_.clear();
      } else {
        break;
      }
      since_gathering_ += stats_.scanned - noted_at;
      const auto waiting = static_cast<std::int64_t>(graph_.postponed.size());
      if (excess_ > 0 && since_gathering_ > kScansPerWaiting * waiting) {
        gather();
        since_gathering_ = 0;
      }
      noted_at = stats_.scanned;
    }
    finish();
    return infeasible ? Status::kInfeasible : status_;
  }

  std::int64_t highest_price() const { return highest_price_; }  // of the last set

 private:
  // gathering costs about as much: a task's arcs
  static constexpr std::int64_t kScansPerWaiting = 16;
  // steps up the tree: what is below an arc without capacity is of no use
  static constexpr std::int64_t kMaxStepsSincePush = 8192;
  struct Key {
    std::int64_t raise;
    NodeId node;
    bool operator>(const Key& other) const {
      return raise != other.raise ? raise > other.raise : node > other.node;
    }
  };
  struct Gathered {
    std::uint32_t edge;
    std::int64_t amount;
  };

  // A search may stop after any step: the price changes and flow so far are consistent. If the
  // graph persists, it does not stop at a budget before it made progress, or the same budget again
  // and again would never suffice.
  bool should_continue() {
    if (status_ != Status::kCancelled) {
      const Status status = checker_.step(stats_, stats_.scanned - checked_at_ + 1);
      if (status != Status::kOptimal) status_ = status;
    }
    checked_at_ = stats_.scanned;
    return status_ == Status::kOptimal ||
           (status_ == Status::kBudget && Graph::kIsDynamic && !made_progress_);
  }

  // Whether to stop at once because the graph will be discarded.
  bool cancelled() {
    if (Graph::kIsDynamic) return false;
    if (checker_.step(stats_) == Status::kCancelled) status_ = Status::kCancelled;
    return status_ == Status::kCancelled;
  }

  void add_candidate(NodeId w) {
    if (!prioritises_) return found_.push_back(graph_.nodes[w].parent);
    const std::uint32_t hops = graph_.nodes[w].hops;
    candidates_[hops].push_back(w);
    lowest_ = std::min(lowest_, hops);
  }
  // Without arc prioritisation: the next node in order. Sends flow to the deficits before it.
  NodeId next_found() {
    while (next_found_ < found_.size() && excess_ > 0) {  // bounded: by the half-edges found
      const std::uint32_t i = found_[next_found_++];
      const NodeId w = graph_.edge(i).to;
      if (graph_.has_deficit(w)) {
        const std::int64_t sent = augment(graph_.tail(i), i);
        excess_ -= sent;
        graph_.cut[w] -= sent;  // the slope stays
      }
      if (graph_.nodes[w].place == Place::kLabelled && graph_.excess(w) >= 0) return w;
    }
    found_.clear();
    next_found_ = 0;
    return kNone;
  }
  NodeId next_candidate() {
    if (!prioritises_) return next_found();
    for (; lowest_ <= Graph::kFar; ++lowest_) {
      std::vector<NodeId>& stack = candidates_[lowest_];
      while (!stack.empty()) {  // bounded: takes one off the stack each time
        const NodeId w = stack.back();
        stack.pop_back();
        if (graph_.nodes[w].place == Place::kLabelled && graph_.excess(w) >= 0) return w;
      }
    }
    return kNone;
  }

  void add_member(NodeId v) {
    Node& node = graph_.nodes[v];
    slope_ += graph_.cut[v];
    slope_ += graph_.excess(v);
    excess_ += graph_.excess(v);
    node.place = Place::kInside;
    graph_.cut[v] = 0;
    node.price -= raise_;
    members_.push_back(v);
    ++stats_.settled;
    scan_member(v, 0);
  }

  // Scans the arcs of a member: when it joins, and whenever one of them may have got balanced. If
  // the member uses a heap, only half-edges at position `from` of its list and later are scanned
  // then. Stops when no excess is left, which ends the search.
  void scan_member(NodeId v, std::uint32_t from) {
    const std::int64_t price = graph_.nodes[v].price;
    std::int64_t least = kInfinity;
    std::uint32_t hops = Graph::kFar;
    graph_.scan_up_to(raise_, v, from, stats_, [&](std::uint32_t i, const Edge& edge) {
      const Node& head = graph_.nodes[edge.to];
      const std::int64_t rc = edge.cost - price + head.price;
      if (head.place == Place::kInside) {
        if (rc == 0) hops = std::min(hops, head.hops + 1);
      } else if (rc > raise_) {
        least = std::min(least, rc);
      } else {
        hops = std::min(hops, head.hops + 1);
        label_head(v, i, edge);
      }
      return excess_ > 0;
    });
    const auto outside = [&](const Edge& edge) {
      return graph_.nodes[edge.to].place != Place::kInside;
    };
    least = std::min(least, graph_.min_in_heap(v, stats_, outside));
    if (from > 0) hops = std::min(hops, graph_.nodes[v].hops);
    if (graph_.nodes[v].hops != 0) graph_.nodes[v].hops = hops;
    if (least == kInfinity) return;
    keys_.push_back({least, v});
    std::push_heap(keys_.begin(), keys_.end(), std::greater<>());
  }

  // Handles a balanced arc out of the set.
  void label_head(NodeId v, std::uint32_t i, const Edge& edge) {
    Node& head = graph_.nodes[edge.to];
    slope_ -= edge.residual;  // where flow is sent, the excess decreases by as much
    if (head.hops == 0 && prioritises_) {
      excess_ -= augment(v, i);
      if (edge.residual == 0) return;
    }
    cut_.push_back(i);
    graph_.cut[edge.to] += edge.residual;
    if (head.hops == 0 && !prioritises_) found_.push_back(i);
    if (head.place == Place::kLabelled) return;
    head.place = Place::kLabelled;
    head.parent = i;
    labelled_.push_back(edge.to);
    if (head.hops != 0) add_candidate(edge.to);
  }

  // Sends flow from excesses up the tree, the nearest first, to the member v, and on over the
  // half-edge `last`; if that is kNone, v itself has the deficit. Returns the amount: 0 when no
  // excess, or no capacity of a tree arc, is left.
  std::int64_t augment(NodeId v, std::uint32_t last) {
    augmenting_path_.begin(last == kNone ? v : graph_.edge(last).to);
    bool has_room = last == kNone || augmenting_path_.extend(last);
    // bounded: by the depth of the tree
    for (std::uint32_t parent = graph_.nodes[v].parent; has_room && parent != kNone;) {
      ++stats_.scanned;
      ++steps_since_push_;
      has_room = augmenting_path_.extend(parent);
      parent = graph_.nodes[graph_.tail(parent)].parent;
    }
    const std::int64_t sent = augmenting_path_.send(stats_, [this](NodeId u, std::uint32_t hops) {
      if (graph_.nodes[u].hops != 0) graph_.nodes[u].hops = std::min(hops, Graph::kFar);
    });
    if (sent == 0) return 0;
    made_progress_ = true;
    steps_since_push_ = 0;
    return sent;
  }

  bool lowers_slope(NodeId w) {
    std::int64_t gain = graph_.excess(w) + graph_.cut[w];
    graph_.scan(w, 0, stats_, [&](std::uint32_t, const Edge& edge) {
      if (graph_.nodes[edge.to].place != Place::kInside && graph_.reduced_cost(w, edge) == 0)
        gain -= edge.residual;
      return gain >= 0;
    });
    return gain < 0;
  }

  void saturate_cut() {
    for (std::uint32_t i : cut_) {
      if (cancelled()) return;
      const Edge& edge = graph_.edge(i);
      Node& head = graph_.nodes[edge.to];
      if (head.place == Place::kInside) continue;
      const NodeId v = graph_.tail(i);
      const std::int64_t amount = edge.residual;
      graph_.push(v, i, amount, stats_);
      excess_ -= amount;  // and so does the cut; the slope stays
      graph_.cut[edge.to] = 0;
      head.place = Place::kOutside;
      if (graph_.excess(v) < 0) augment(v, kNone);
    }
    cut_.clear();
    deferred_.clear();
  }

  // False: no residual arc leads out.
  bool raise() {
    if (keys_.empty()) return false;
    raise_ = keys_.front().raise;
    made_progress_ = true;
    ++stats_.ascents;
    while (!keys_.empty() && keys_.front().raise == raise_ && excess_ > 0 && should_continue()) {
      std::pop_heap(keys_.begin(), keys_.end(), std::greater<>());
      const NodeId v = keys_.back().node;
      keys_.pop_back();
      scan_member(v, graph_.uses_heap(v) ? graph_.list_size(v) : 0);
    }
    return true;
  }

  void gather() {
    for (std::size_t k = 0; k < graph_.postponed.size() && excess_ > 0 && should_continue(); ++k) {
      const NodeId v = graph_.postponed[k];
      // A half-edge that is not visited may have the least reduced cost: a larger raise would
      // violate the invariant.
      if (graph_.nodes[v].place != Place::kOutside || graph_.excess(v) <= 0 ||
          !graph_.visits_all(v))
        continue;
      // outside: balanced residual capacity to nodes outside once v is raised by `least`
      std::int64_t least = kInfinity, outside = 0;
      std::uint32_t into = kNone;
      graph_.scan(v, 0, stats_, [&](std::uint32_t i, const Edge& edge) {
        const bool inside = graph_.nodes[edge.to].place == Place::kInside;
        const std::int64_t rc = graph_.reduced_cost(v, edge) + (inside ? raise_ : 0);
        if (rc < least) {
          least = rc;
          outside = 0;
          into = kNone;
        }
        if (rc > least) return true;
        if (!inside) outside += edge.residual;
        if (inside && into == kNone) into = i;
        return true;
      });
      if (into == kNone || outside > graph_.excess(v)) continue;
      if (least > 0) graph_.raise(v, least);
      const std::int64_t amount =
          std::min<std::int64_t>(graph_.excess(v), graph_.edge(into).residual);
      graph_.push(v, into, amount, stats_);
      gathered_.push_back({into, amount});
      slope_ += amount;
      excess_ += amount;
      graph_.nodes[v].parent = graph_.edge(into).partner;
      add_member(v);
    }
  }

  void finish() {
    if (cancelled()) return;
    for (const Gathered& gathered : gathered_) {
      const Edge& edge = graph_.edge(gathered.edge);
      const std::int64_t back = graph_.edge(edge.partner).residual;
      const std::int64_t amount = std::min({graph_.excess(edge.to), gathered.amount, back});
      if (amount > 0) graph_.push(edge.to, edge.partner, amount, stats_);
    }
    highest_price_ = 0;
    for (NodeId v : members_) {
      if (cancelled()) return;
      Node& node = graph_.nodes[v];
      node.price += raise_;
      graph_.note_price(v);
      node.place = Place::kOutside;
      node.parent = kNone;
      node.current = 0;
      if (graph_.excess(v) > 0) graph_.postpone(v);
    }
    for (NodeId w : labelled_) {
      if (cancelled()) return;
      Node& node = graph_.nodes[w];
      node.place = Place::kOutside;
      graph_.cut[w] = 0;
      node.parent = kNone;
    }
    for (NodeId v : members_) {
      if (cancelled()) return;
      Node& node = graph_.nodes[v];
      if (node.source && graph_.excess(v) == 0) graph_.raise_degenerate(v, stats_);
      highest_price_ = std::max(highest_price_, node.price);
    }
    for (std::vector<NodeId>& stack : candidates_) stack.clear();
    lowest_ = Graph::kFar + 1;
    found_.clear();
    next_found_ = 0;
    members_.clear();
    labelled_.clear();
    cut_.clear();
    deferred_.clear();
    keys_.clear();
    gathered_.clear();
  }

  Graph& graph_;
  const bool prioritises_;
  CancellationChecker checker_;
  Stats& stats_;
  Status status_ = Status::kOptimal;
  bool made_progress_ = false;         // flow or prices changed
  std::int64_t since_gathering_ = 0;   // half-edges scanned, for this set and those before it
  std::int64_t steps_since_push_ = 0;  // steps up the tree since flow was sent
  std::int64_t checked_at_ = 0;        // stats_.scanned at the last check
  std::int64_t raise_ = 0;
  __int128 slope_ = 0, excess_ = 0;  // sums over S, which may exceed 64 bits
  std::vector<NodeId> members_;      // of S
  std::vector<NodeId> labelled_;     // nodes labelled in this search
  std::vector<NodeId> deferred_;     // candidates that would decrease the slope
  std::vector<std::uint32_t> cut_;   // balanced arcs out of S, and some that are inside by now
  std::vector<Key> keys_;            // heap
  std::vector<Gathered> gathered_;
  AugmentingPath<Graph> augmenting_path_{graph_};
  std::array<std::vector<NodeId>, Graph::kFar + 1> candidates_;  // by hops
  std::uint32_t lowest_ = Graph::kFar + 1;
  // without arc prioritisation: balanced arcs to follow; those before `next_found_` were
  std::vector<std::uint32_t> found_;
  std::size_t next_found_ = 0;
  std::int64_t highest_price_ = 0;
};

// The work of multinode iterations so far. It decides when forwarding (step 3) and degenerate
// raises begin. Persists between runs if the graph does.
struct IterationHistory {
  std::int64_t since_hops = 0;  // half-edges scanned for sets since hops were computed
  // sets
  std::int64_t window = 0, of_window = 0;
  bool forwards_excess = false, uses_degenerate_raises = false;
};

template <class Arcs>
class DualAscent {
 public:
  using Graph = BalancedGraph<Arcs>;
  using Edge = typename Graph::Edge;

  // `prioritises`: whether arcs are prioritised.
  DualAscent(Graph& graph, IterationHistory& history, bool prioritises, const Control& control,
             Stats& stats)
      : prioritises_(prioritises),
        control_(control),
        stats_(stats),
        checker_(control),
        graph_(graph),
        history_(history),
        set_(graph_, prioritises, control, stats) {}

  // Iterates until no node has excess: kOptimal. Nodes with excess are in the graph's queues,
  // before and after.
  Status run() {
    if (!Graph::kIsDynamic) lowest_excess_ = graph_.total_excess();
    max_scans_ = kMaxScansFactor *
                 static_cast<std::int64_t>(graph_.arcs().edges.size() + graph_.nodes.size());
    max_scanned_ = stats_.scanned + max_scans_;
    Status status = Status::kOptimal;
    scanned_before_ = stats_.scanned;
    while (status == Status::kOptimal) {
      NodeId v = graph_.take(graph_.untried);
      const bool alone = v == kNone;
      if (alone) v = graph_.take(graph_.postponed);
      if (v == kNone) return Status::kOptimal;
      status = iterate(v, alone);
      if (status == Status::kOptimal) status = check();
      if (status != Status::kOptimal && graph_.is_excess(v)) graph_.postpone(v);
    }
    return status;
  }

 private:
  // times the number of half-edges: scans without a decrease of the total deficit
  static constexpr std::int64_t kMaxScansFactor = 4;
  // more than a machine, its tasks and their arcs
  static constexpr std::int64_t kFollowScans = 2048;
  // half-edges scanned per set, mean of a window
  static constexpr std::int64_t kCostlySet = 4096;
  // share of the half-edges that sets scan before degenerate raises begin
  static constexpr std::int64_t kDegenerateRaiseShare = 8;
  static constexpr std::int64_t kWindow = 64;  // sets

  // Called in every loop; counts the half-edges scanned since the last call as steps.
  Status check() {
    const std::int64_t steps = stats_.scanned - scanned_before_ + 1;
    scanned_before_ = stats_.scanned;
    return checker_.step(stats_, steps);
  }

  // One iteration, for the excess of v. `alone`: all others were postponed.
  Status iterate(NodeId v, bool alone) {
    if (stats_.scanned > max_scanned_) {
      const __int128 total_excess = graph_.total_excess();
      if (total_excess >= lowest_excess_) {
        if (const Status status = raise_by_distance(graph_, control_, stats_);
            status != Status::kOptimal)
          return status;
      }
      lowest_excess_ = std::min(total_excess, lowest_excess_);
      max_scanned_ = stats_.scanned + max_scans_;
    }
    Status status = raise_node(v);
    if (status != Status::kOptimal) return status;
    std::int64_t price = graph_.nodes[v].price;
    if (graph_.excess(v) == 0 || (prioritises_ && follow_hops(v))) {
      if (history_.uses_degenerate_raises && graph_.nodes[v].source)
        graph_.raise_degenerate(v, stats_);
    } else if (alone) {
      status = grow_set(v);
      price = set_.highest_price();
    } else if (!history_.forwards_excess || !forward_excess(v)) {
      graph_.postpone(v);
    }
    price = std::max(price, graph_.nodes[v].price);
    if (status == Status::kOptimal && price > Graph::kMaxPrice && !close_gaps(graph_))
      return Status::kInfeasible;
    return status;
  }

  // Step 1. kInfeasible: v has more excess than residual capacity out.
  Status raise_node(NodeId v) {
    while (true) {
      const std::int64_t excess = graph_.excess(v);
      std::int64_t balanced = 0, least = kInfinity;
      graph_.scan(v, 0, stats_, [&](std::uint32_t, const Edge& edge) {
        const std::int64_t rc = graph_.reduced_cost(v, edge);
        if (rc == 0) {
          balanced += edge.residual;
        } else {
          least = std::min(least, rc);
        }
        return balanced < excess;
      });
      if (balanced >= excess) return Status::kOptimal;
      if (balanced > 0) push_balanced(v);
      least = std::min(least, graph_.min_in_heap(v, stats_));
      if (least == kInfinity) return Status::kInfeasible;
      graph_.raise(v, least);
      ++stats_.ascents;
      if (const Status status = check(); status != Status::kOptimal) return status;
    }
  }

  // Step 4. Its work decides about degenerate raises, hops and step 3.
  Status grow_set(NodeId v) {
    const std::int64_t before = stats_.scanned;
    Status status = set_.run(v);
    history_.since_hops += stats_.scanned - before;
    history_.of_window += stats_.scanned - before;
    const auto half_edges = static_cast<std::int64_t>(graph_.arcs().edges.size());
    if (!history_.uses_degenerate_raises &&
        history_.since_hops > half_edges / kDegenerateRaiseShare && status == Status::kOptimal) {
      history_.uses_degenerate_raises = true;
      status = raise_sources_degenerate(graph_, control_, stats_);
    }
    bool measure = history_.since_hops > half_edges;
    if (++history_.window == kWindow) {
      if (history_.of_window > kWindow * kCostlySet && !history_.forwards_excess) {
        history_.forwards_excess = measure = true;
        graph_.retry_postponed();
      }
      history_.window = history_.of_window = 0;
    }
    if (!measure || !prioritises_ || status != Status::kOptimal) return status;
    history_.since_hops = 0;
    return measure_hops(graph_, control_, stats_);
  }

  // Step 3. A source that can fill all its balanced arcs does so, and is raised. False: it cannot.
  bool forward_excess(NodeId v) {
    const std::int64_t excess = graph_.excess(v);
    std::int64_t balanced = 0;
    if (!graph_.nodes[v].source) return false;
    graph_.scan(v, 0, stats_, [&](std::uint32_t, const Edge& edge) {
      if (graph_.reduced_cost(v, edge) == 0) balanced += edge.residual;
      return balanced <= excess;
    });
    if (balanced != excess) return false;
    push_balanced(v);
    graph_.raise_degenerate(v, stats_);
    return true;
  }

  void push_balanced(NodeId v) {
    graph_.scan(v, 0, stats_, [&](std::uint32_t i, const Edge& edge) {
      if (graph_.reduced_cost(v, edge) == 0) graph_.push(v, i, edge.residual, stats_);
      return true;
    });
  }

  // Step 2. True when no excess is left at `origin`.
  bool follow_hops(NodeId origin) {
    const std::int64_t until = stats_.scanned + kFollowScans;
    path_.clear();
    NodeId u = origin;
    while (stats_.scanned < until) {  // bounded: by the half-edges scanned
      auto& node = graph_.nodes[u];
      std::uint32_t down = kNone;
      node.current = graph_.scan(u, node.current, stats_, [&](std::uint32_t i, const Edge& edge) {
        if (graph_.nodes[edge.to].hops >= node.hops || graph_.reduced_cost(u, edge) != 0)
          return true;
        down = i;
        return false;
      });
      if (down != kNone) {
        path_.push_back(down);
        u = graph_.edge(down).to;
        if (graph_.nodes[u].hops != 0) continue;
        augment(u);
        if (graph_.excess(origin) == 0) return true;
        path_.clear();
        u = origin;
        continue;
      }
      std::uint32_t hops = Graph::kFar;
      graph_.scan(u, 0, stats_, [&](std::uint32_t, const Edge& edge) {
        if (graph_.reduced_cost(u, edge) == 0)
          hops = std::min(hops, graph_.nodes[edge.to].hops + 1);
        return true;
      });
      node.hops = hops;
      node.current = 0;
      if (u != origin) {
        u = graph_.tail(path_.back());
        path_.pop_back();
      } else if (hops == Graph::kFar) {
        return false;
      }
    }
    return false;
  }

  void augment(NodeId target) {
    augmenting_path_.begin(target);
    for (std::size_t k = path_.size(); k-- > 0 && augmenting_path_.extend(path_[k]);) {
    }
    augmenting_path_.send(stats_, [](NodeId, std::uint32_t) {});
  }

  const bool prioritises_;
  const Control& control_;
  Stats& stats_;
  CancellationChecker checker_;
  Graph& graph_;
  IterationHistory& history_;
  MultinodeIteration<Arcs> set_;
  std::vector<std::uint32_t> path_;
  AugmentingPath<Graph> augmenting_path_{graph_};
  __int128 lowest_excess_ = __int128{1} << 120;   // least total excess at any check for progress
  std::int64_t max_scans_ = 0, max_scanned_ = 0;  // in half-edges scanned
  std::int64_t scanned_before_ = 0;               // at the last check
};

}  // namespace flowsolver
