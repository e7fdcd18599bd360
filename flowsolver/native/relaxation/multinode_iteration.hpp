// A multinode iteration of relaxation: a set S is grown from a node with excess over balanced arcs,
// until flow can be sent to deficits or the prices of S can be raised. Definitions and termination:
// relaxation.hpp; graph and prices: balanced_graph.hpp.
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
//   candidate is deferred.
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
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "relaxation/balanced_graph.hpp"
#include "relaxation/augmenting_path.hpp"

namespace flowsolver {

template <class Arcs>
class MultinodeIteration {
 public:
  using Graph = BalancedGraph<Arcs>;
  using Edge = typename Graph::Edge;
  using Node = typename Graph::Node;
  using Place = typename Graph::Place;

  MultinodeIteration(Graph& graph, const Control& control, Stats& stats)
      : graph_(graph), checker_(control), stats_(stats) {}

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
    const std::uint32_t hops = graph_.nodes[w].hops;
    candidates_[hops].push_back(w);
    lowest_ = std::min(lowest_, hops);
  }
  NodeId next_candidate() {
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
    if (head.hops == 0) {
      excess_ -= augment(v, i);
      if (edge.residual == 0) return;
    }
    cut_.push_back(i);
    graph_.cut[edge.to] += edge.residual;
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
    ++stats_.relabels;
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
    members_.clear();
    labelled_.clear();
    cut_.clear();
    deferred_.clear();
    keys_.clear();
    gathered_.clear();
  }

  Graph& graph_;
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
  std::int64_t highest_price_ = 0;
};

}  // namespace flowsolver
