// The steps of cost scaling, for phases over a whole graph (cost_scaling.cpp) and for those whose
// work depends on changes (local_scaling.hpp): discharging active nodes, the global update of
// prices, and price refine.
//
// A `View` is a residual graph with prices of scaled costs: ScaledGraph (cost_scaling.cpp) or
// ScaledPrices (local_scaling.hpp). Costs are multiplied by `scale`; P are prices of scaled costs;
// rc = scale * cost - P[tail] + P[head]. A pseudoflow is eps-optimal if rc >= -eps on every
// residual half-edge; eps is a power of two, so that distances are shifts. Active: a node with
// excess > 0. Admissible: a residual half-edge with rc < 0. Open: half-edges that the phase scans.
//
// References are those of cost_scaling.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

template <class Price>
struct ScaledNode {
  static constexpr std::uint32_t kFar = kNone;
  Price price;
  std::uint32_t current;   // the current arc: no open half-edge before it is admissible
  std::uint32_t distance;  // in a global update; else kFar
};

// Prices of larger magnitude end the phase.
template <class Price>
inline constexpr Price kMaxScaledPrice = Price{1} << (8 * sizeof(Price) - 4);

// Whether a phase stays in range if it starts from prices of at most this magnitude
// (cost_scaling.cpp, "Range").
template <class Price>
bool phase_fits(Price furthest, NodeId nodes, Price scale, Price largest_cost, Price eps) {
  if (furthest > kMaxScaledPrice<Price>) return false;
  return scale * largest_cost + eps <=
         (kMaxScaledPrice<Price> - furthest) / 2 / (static_cast<Price>(nodes) + 1);
}

// The values of eps from phase to phase: divided by alpha each time, down to 1. Each phase uses the
// power of two at or below the value, so that distances in eps are shifts.
class EpsSequence {
 public:
  EpsSequence(int shift, std::int64_t alpha) : alpha_(alpha) { begin_at(shift); }

  void begin_at(int shift) { eps_ = static_cast<unsigned __int128>(1) << (shift + kFraction); }
  void divide() { eps_ /= static_cast<unsigned __int128>(alpha_); }
  // 0 once eps is 1 or less
  int shift() const {
    int shift = 0;
    while (eps_ >> (shift + 1 + kFraction) > 0) ++shift;
    return shift;
  }

 private:
  static constexpr int kFraction = 16;  // bits, so that alpha need not be a power of two

  std::int64_t alpha_;
  unsigned __int128 eps_ = 0;
};

// A queue of nodes that wait to be discharged, first in first out. Each node is in it at most once.
class ActiveQueue {
 public:
  // Makes room for so many nodes, in O(n). The queue must be empty if the number shrinks.
  void resize(NodeId nodes) { is_queued_.resize(nodes, 0); }

  void clear() {
    for (std::size_t i = begin_; i < nodes_.size(); ++i) is_queued_[nodes_[i]] = 0;
    nodes_.clear();
    begin_ = 0;
  }

  bool empty() const { return begin_ == nodes_.size(); }

  void push(NodeId v) {
    if (is_queued_[v] != 0) return;
    is_queued_[v] = 1;
    nodes_.push_back(v);
  }

  NodeId pop() {
    const NodeId v = nodes_[begin_++];
    is_queued_[v] = 0;
    if (begin_ > is_queued_.size() && 2 * begin_ > nodes_.size()) {
      nodes_.erase(nodes_.begin(), nodes_.begin() + static_cast<std::ptrdiff_t>(begin_));
      begin_ = 0;
    } else if (empty()) {
      clear();
    }
    return v;
  }

  // Visits the nodes in the queue.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = begin_; i < nodes_.size(); ++i) visit(nodes_[i]);
  }

 private:
  std::vector<NodeId> nodes_;  // those before `begin_` were taken
  std::size_t begin_ = 0;
  std::vector<std::uint8_t> is_queued_;  // per node
};

// How a phase ended.
struct Phase {
  Status status =
      Status::kOptimal;  // the flow balances and is eps-optimal, unless one of the following; or
                         // kInfeasible among what is open, kCancelled, kBudget
  bool stalled = false;  // the pseudoflow is eps-optimal
  bool out_of_range = false;  // any pseudoflow and prices

  bool succeeded() const { return status == Status::kOptimal && !stalled && !out_of_range; }
};

// Discharges active nodes: partial augment-relabel.
//
// Deficits are never relabelled.
//
// Invariant. eps-optimality: units move over admissible half-edges only (the partner then has rc >
// 0), and a relabel of a node without one raises its price at most so far that some become
// admissible. The current arc shows that there is none: no half-edge of a node before it is
// admissible. Whoever lowers a price, or moves half-edges, must maintain that.
//
// Method. Active nodes are in a queue, first in first out. From one, a path of up to kMaxPathArcs
// admissible half-edges is grown along current arcs. Its tip is relabelled and dropped when it is
// stuck. Units are then pushed along the path. Looking further than one arc avoids pushing units
// that must come back.
// - A tip is raised as far as its residual half-edges allow, not counting the one back to where the
//   path came from, since no unit has come that way. (Counting it, as is usual, raises aggregators
//   by two eps at a time: contended cells took five times as many relabels.)
// - A node with more than kWide half-edges is relabelled by eps as soon as a half-edge is found
//   that this makes admissible.
//
// Infeasibility: an active node without a residual half-edge.
//
// References. Goldberg (2008); Kovacs (2015). Departure: the half-edge back is left out of
// relabels.
//
template <class View>
class Discharge {
 public:
  using Price = typename View::Price;

  Discharge(View& view, ActiveQueue& queue, CancellationChecker& checker, Stats& stats)
      : view_(view), graph_(view.graph()), queue_(queue), checker_(checker), stats_(stats) {}

  // Precondition: the `active` nodes are in the queue. When stats.scanned exceeds the limit of
  // set_next_update, `update(active)` is called, which sets the next limit; a Phase that has not
  // succeeded ends this one. Nodes that are still active are then in the queue.
  template <class Update>
  Phase run(std::size_t active, const Update& update) {
    active_ = active;
    while (!queue_.empty()) {  // checks: in `update`
      const NodeId v = queue_.pop();
      const Phase phase = discharge(v, update);
      if (phase.succeeded()) continue;
      if (graph_.excess[v] > 0) queue_.push(v);
      return phase;
    }
    return {};
  }

  void set_next_update(std::int64_t scanned) { next_update_ = scanned; }

 private:
  using HalfEdge = typename View::HalfEdge;
  static constexpr int kMaxPathArcs = 4;
  static constexpr std::uint32_t kWide = 64;
  static constexpr Price kUnreachable = std::numeric_limits<Price>::max();

  // A path of admissible half-edges, as far as it was grown.
  struct Path {
    std::array<std::uint32_t, kMaxPathArcs> edge;
    std::array<NodeId, kMaxPathArcs + 1> node;
    int length = 0;
  };

  // The first admissible half-edge of v from its current arc on, or kNone.
  std::uint32_t find_admissible(NodeId v) {
    const std::uint32_t begin = view_.node(v).current, last = graph_.end(v);
    const Price price_v = view_.node(v).price;
    std::uint32_t e = begin;
    while (e < last &&
           (graph_.edges[e].residual == 0 || view_.reduced_cost(graph_.edges[e], price_v) >= 0))
      ++e;
    view_.node(v).current = e;
    stats_.scanned += e - begin + 1;
    return e < last ? e : kNone;
  }

  // Raises the price of v, none of whose half-edges is admissible. `back`: reduced cost of the
  // half-edge back, used if no other is residual. kInfeasible: that is kUnreachable as well.
  Status relabel(NodeId v, Price back) {
    const std::uint32_t first = view_.open(v), last = graph_.end(v);
    const Price price_v = view_.node(v).price, eps = view_.eps();
    const Price enough = last - first > kWide ? eps : 0;
    // half-edges before `at` have rc >= least_before
    Price least = kUnreachable, least_before = kUnreachable;
    std::uint32_t at = first;
    ++stats_.relabels;
    for (std::uint32_t e = first; e < last; ++e) {
      const HalfEdge& edge = graph_.edges[e];
      if (edge.residual == 0) continue;
      const Price rc = view_.reduced_cost(edge, price_v);
      if (rc >= least) continue;
      if (rc < enough) {
        stats_.scanned += e - first + 1;
        if (rc >= 0) raise(v, eps);
        view_.node(v).current = e;
        return Status::kOptimal;
      }
      least_before = least;
      least = rc;
      at = e;
    }
    stats_.scanned += last - first;
    if (least == kUnreachable) least = back;
    if (least == kUnreachable) return Status::kInfeasible;
    raise(v, least + eps);  // least is at least -eps
    view_.node(v).current = least_before - least >= eps ? at : first;
    return Status::kOptimal;
  }

  void raise(NodeId v, Price by) {
    view_.touch(v);
    Price& price = view_.node(v).price;
    price += by;
    out_of_range_ = out_of_range_ || price > 2 * kMaxScaledPrice<Price>;
  }

  // Grows the path, relabelling stuck tips.
  Status grow(Path& path) {
    while (path.length < kMaxPathArcs && graph_.excess[path.node[path.length]] >= 0 &&
           stats_.scanned <= next_update_ && !out_of_range_) {
      const NodeId tip = path.node[path.length];
      const std::int64_t scanned = stats_.scanned;
      const std::uint32_t e = find_admissible(tip);
      if (e != kNone) {
        path.edge[path.length++] = e;
        path.node[path.length] = graph_.edges[e].to;
      } else {
        Price back = kUnreachable;
        if (path.length > 0) {
          const std::uint32_t return_path = graph_.edges[path.edge[path.length - 1]].partner;
          back = view_.reduced_cost(graph_.edges[return_path], view_.node(tip).price);
          --path.length;
        }
        if (const Status status = relabel(tip, back); status != Status::kOptimal) return status;
      }
      if (const Status status = checker_.step(stats_, stats_.scanned - scanned + 1);
          status != Status::kOptimal)
        return status;
    }
    return Status::kOptimal;
  }

  void push_along(const Path& path) {
    for (int i = 0; i < path.length && graph_.excess[path.node[i]] > 0; ++i) {
      const NodeId u = path.node[i], v = path.node[i + 1];
      const bool was_active = graph_.excess[v] > 0;
      view_.push(u, path.edge[i],
                 std::min<std::int64_t>(graph_.edges[path.edge[i]].residual, graph_.excess[u]));
      ++stats_.pushes;
      if (graph_.excess[u] == 0) --active_;
      if (!was_active && graph_.excess[v] > 0) ++active_;
      if (i > 0 && graph_.excess[u] > 0) queue_.push(u);
    }
    const NodeId end = path.node[path.length];
    if (path.length > 0 && graph_.excess[end] > 0) queue_.push(end);
    ++stats_.augmentations;
  }

  template <class Update>
  Phase discharge(NodeId v, const Update& update) {
    Path path;
    path.node[0] = v;
    while (graph_.excess[v] > 0) {
      path.length = 0;
      Phase phase;
      phase.status = grow(path);
      phase.out_of_range = out_of_range_;
      if (!phase.succeeded()) return phase;
      push_along(path);
      if (stats_.scanned > next_update_) {
        phase = update(active_);
        if (!phase.succeeded()) return phase;
      }
    }
    return {};
  }

  View& view_;
  typename View::Graph& graph_;
  ActiveQueue& queue_;
  CancellationChecker& checker_;
  Stats& stats_;
  std::size_t active_ = 0;  // active nodes, in the queue or not
  std::int64_t next_update_ = 0;
  bool out_of_range_ = false;
};

// A priority queue of nodes by integer distance for searches whose distances never decrease:
// multi-level buckets.
//
// Definitions. `last` is the distance taken last; inserted distances are not below it. A distance
// is written in four digits of eight bits. Level l has a bucket for every value of digit l. A
// distance is kept at the level of its highest digit that differs from `last`'s (level 0 if none
// does).
//
// Method. The nearest node is in the first nonempty bucket of the lowest nonempty level. At level 0
// all entries of a bucket have the same distance; a bucket of another level is distributed to the
// levels below it once `last` has reached it. A node whose distance falls is inserted again; the
// outdated entry is recognised when it is taken, by comparing it with the node's distance.
//
// Complexity. Each entry moves at most three times, and not at all beyond the distance at which the
// search ends: unlike with one bucket per distance, the range of distances costs nothing. Equal
// distances: last in, first out.
//
// References. Denardo and Fox, Shortest-route methods: 1 (1979); Cherkassky, Goldberg, Silverstein,
// Buckets, heaps, lists, and monotone priority queues (1999).
class DistanceQueue {
 public:
  DistanceQueue() { head_.fill(kNone); }

  void clear() {
    for (int word = 0; word < kWords; ++word) {
      // bounded: by the bits of a word
      for (std::uint64_t used = used_[word]; used != 0; used &= used - 1)
        head_[64 * word + std::countr_zero(used)] = kNone;
      used_[word] = 0;
    }
    entries_.clear();
    last_ = 0;
  }

  void insert(NodeId v, std::uint32_t distance) {
    entries_.push_back({v, distance, kNone});
    link(static_cast<std::uint32_t>(entries_.size() - 1));
  }

  // Takes the nearest node v whose entry has the distance distance_of(v); kNone if the queue is
  // empty.
  template <class DistanceOf>
  NodeId take(const DistanceOf& distance_of) {
    // bounded: each entry is taken or goes to a lower level
    for (int level = 0; level < kLevels;) {
      const int bucket = first_used(level);
      if (bucket == kNoBucket) {
        ++level;
        continue;
      }
      std::uint32_t entry = head_[bucket];
      if (level == 0) {
        const Entry taken = entries_[entry];
        head_[bucket] = taken.after;
        if (taken.after == kNone) used_[bucket / 64] &= ~(std::uint64_t{1} << bucket % 64);
        last_ = taken.distance;
        if (distance_of(taken.node) == taken.distance) return taken.node;
        continue;
      }
      head_[bucket] = kNone;
      used_[bucket / 64] &= ~(std::uint64_t{1} << bucket % 64);
      last_ = entries_[entry].distance >> (kDigitBits * level) << (kDigitBits * level);
      while (entry != kNone) {  // bounded: by the entries of a bucket
        const std::uint32_t after = entries_[entry].after;
        if (distance_of(entries_[entry].node) == entries_[entry].distance) link(entry);
        entry = after;
      }
      level = 0;
    }
    return kNone;
  }

 private:
  struct Entry {
    NodeId node;
    std::uint32_t distance, after;
  };
  static constexpr int kDigitBits = 8, kLevels = 4, kDigits = 1 << kDigitBits,
                       kWords = kLevels * kDigits / 64;
  static constexpr int kNoBucket = -1;

  void link(std::uint32_t entry) {
    const std::uint32_t distance = entries_[entry].distance;
    const int level = distance == last_ ? 0 : (std::bit_width(distance ^ last_) - 1) / kDigitBits;
    const int bucket =
        level * kDigits + static_cast<int>(distance >> (kDigitBits * level) & (kDigits - 1));
    entries_[entry].after = head_[bucket];
    head_[bucket] = entry;
    used_[bucket / 64] |= std::uint64_t{1} << bucket % 64;
  }

  int first_used(int level) const {
    for (int word = level * kDigits / 64; word < (level + 1) * kDigits / 64; ++word) {
      if (used_[word] != 0) return 64 * word + std::countr_zero(used_[word]);
    }
    return kNoBucket;
  }

  std::array<std::uint32_t, kLevels * kDigits> head_;
  std::array<std::uint64_t, kWords> used_{};
  std::vector<Entry> entries_;
  std::uint32_t last_ = 0;
};

// The global update of prices: a search backward from all deficits with lengths floor(rc / eps) +
// 1. Prices rise by eps * distance, which makes a shortest path from every active node admissible
// except for its last eps.
//
// The search ends when all active nodes are settled. Nodes beyond rise as far as the last settled
// one, which preserves eps-optimality: if u is beyond the distance D and v within, rc > eps (D -
// d(v) - 1) before, so rc >= -eps after. To make the work that of the nodes seen, the common rise
// is returned as one number, and the settled nodes are lowered by the difference.
//
// If the search has seen all nodes that reach a deficit, and some active node is not among them, no
// flow is feasible: the nodes reached from the active nodes have more supply than capacity out of
// them.
//
// Reference. Goldberg (1997), price updates. Departure: the update is local.
template <class View>
class GlobalUpdate {
 public:
  using Price = typename View::Price;

  GlobalUpdate(View& view, Stats& stats) : view_(view), stats_(stats) {}

  // Searches from the deficits among `deficits` (others are removed) until `active` nodes with
  // excess are settled. `distance`: what all nodes rise by, in eps. kInfeasible as above;
  // kCancelled and kBudget change nothing.
  Status run(std::vector<NodeId>& deficits, std::size_t active, CancellationChecker& checker,
             std::uint32_t& distance) {
    distance = 0;
    if (!view_.knows_reverse_residual()) {
      if (const Status status = view_.mark_reverse_residual(checker, stats_);
          status != Status::kOptimal)
        return status;
    }
    ++stats_.searches;
    std::erase_if(deficits, [this](NodeId v) { return view_.graph().excess[v] >= 0; });
    const Status status = search(deficits, active, checker, distance);
    if (status != Status::kOptimal) distance = 0;
    for (NodeId v : reached_) {
      auto& node = view_.node(v);
      if (node.distance < distance) {
        view_.touch(v);
        node.price -= static_cast<Price>(distance - node.distance) << view_.shift();
      }
      node.current = view_.open(v);
      node.distance = kFar;
    }
    return status;
  }

 private:
  static constexpr std::uint32_t kFar = View::Node::kFar;
  // nodes further away rise as if at this distance
  static constexpr std::uint32_t kMaxDistance = std::uint32_t{1} << 31;

  void label(NodeId v, std::uint32_t distance) {
    if (view_.node(v).distance == kFar) reached_.push_back(v);
    view_.node(v).distance = distance;
    nearest_.insert(v, distance);
  }

  // Labels the nodes with a residual half-edge to v.
  void settle(NodeId v, std::uint32_t distance) {
    const auto& graph = view_.graph();
    const Price price_v = view_.node(v).price, scale = view_.scale();
    const int shift = view_.shift();
    const std::uint32_t open = view_.open(v), last = graph.end(v);
    for (std::uint32_t e = open; e < last; ++e) {
      if (!view_.has_reverse_residual(e)) continue;
      const auto& edge = graph.edges[e];
      const auto& u = view_.node(edge.to);
      if (u.distance <= distance) continue;
      const Price length =
          ((-static_cast<Price>(edge.cost) * scale - u.price + price_v) >> shift) + 1;
      if (length > static_cast<Price>(kMaxDistance - distance)) {
        cut_off_ = true;
        continue;
      }
      const std::uint32_t reached = distance + static_cast<std::uint32_t>(length);
      if (reached < u.distance) label(edge.to, reached);
    }
    stats_.scanned += last - open;
    ++stats_.settled;
  }

  // Settles nodes until all active ones are settled; `distance` is then that of the last one.
  Status search(const std::vector<NodeId>& deficits, std::size_t active,
                CancellationChecker& checker, std::uint32_t& distance) {
    nearest_.clear();
    reached_.clear();
    cut_off_ = false;
    for (NodeId v : deficits) label(v, 0);
    for (std::size_t waiting = active; waiting > 0;) {
      const NodeId v = nearest_.take([this](NodeId u) { return view_.node(u).distance; });
      if (v == kNone) {
        distance = kMaxDistance;
        return cut_off_ ? Status::kOptimal : Status::kInfeasible;
      }
      distance = view_.node(v).distance;
      settle(v, distance);
      waiting -= view_.graph().excess[v] > 0;
      const std::int64_t steps = view_.graph().end(v) - view_.open(v) + 1;
      if (const Status status = checker.step(stats_, steps); status != Status::kOptimal)
        return status;
    }
    return Status::kOptimal;
  }

  View& view_;
  Stats& stats_;
  std::vector<NodeId> reached_;
  DistanceQueue nearest_;
  bool cut_off_ = false;
};

struct RefineResult {
  Status status = Status::kOptimal;  // or kCancelled or kBudget
  bool done = false;  // rc >= 0 everywhere; if false, `price` holds intermediate values
};

// Price refine: prices in whole cost units that prove a flow optimal, if it is.
//
// Definitions. rc = cost - p[tail] + p[head] on residual half-edges (arc_graph.hpp). A flow or
// pseudoflow is optimal for its own imbalances if there are prices with rc >= 0 on every residual
// half-edge, that is, if its residual graph has no negative cycle.
//
// Method. Label correcting: starting from the given prices, p[u] is lowered to the minimum over
// residual u -> v of cost + p[v], until no price changes. Nodes are taken in rounds, first in first
// out (Bellman and Ford), so that the work of a round is that of the nodes lowered in the round
// before. Prices that are nearly right are refined in about one pass over the arcs. The flow is not
// changed.
//
// Termination. Without a negative cycle, each price is determined by a path of at most n - 1 arcs;
// a round after the n-th proves a negative cycle. `max_scans` ends the method earlier, without a
// verdict.
//
// Range. The given prices are within 2^61, so the results stay above -(2^61 + kMaxPathCost +
// |cost|).
//
// References. Goldberg (1997), section 5; Bunnagel, Korte, Vygen, Efficient implementation of the
// Goldberg-Tarjan minimum-cost flow algorithm (1998); Gog et al., Firmament, OSDI 2016, section
// 6.2. Departure: there, prices are refined for the next epsilon of the scaling, here always for
// zero: on scheduling graphs an optimal flow is found so early that the remaining phases can be
// skipped.
template <class Graph>
RefineResult refine_prices(const Graph& graph, std::vector<std::int64_t>& price,
                           std::int64_t max_scans, const Control& control, Stats& stats) {
  const NodeId n = graph.num_nodes();
  CancellationChecker checker(control);
  std::vector<NodeId> lowered, next;
  std::vector<std::uint8_t> queued(n, 0);
  for (NodeId u = 0; u < n; ++u) {
    std::int64_t least = price[u];
    const std::uint32_t last = graph.end(u);
    for (std::uint32_t e = graph.begin(u); e < last; ++e) {
      const auto& edge = graph.edges[e];
      if (edge.residual > 0 && edge.cost + price[edge.to] < least)
        least = edge.cost + price[edge.to];
    }
    stats.scanned += last - graph.begin(u);
    if (const Status status = checker.step(stats, last - graph.begin(u) + 1);
        status != Status::kOptimal)
      return {status};
    if (least == price[u]) continue;
    price[u] = least;
    ++stats.repaired;
    ++stats.refined;
    queued[u] = 1;
    lowered.push_back(u);
  }
  for (std::size_t round = 1; !lowered.empty(); ++round) {
    if (round > n) return {};
    for (NodeId v : lowered) {
      queued[v] = 0;
      const std::int64_t price_v = price[v];
      const std::uint32_t first = graph.begin(v), last = graph.end(v);
      for (std::uint32_t e = first; e < last; ++e) {
        const auto& edge = graph.edges[e];  // v -> u, whose partner is u -> v
        if (price_v - edge.cost >= price[edge.to] || graph.edges[edge.partner].residual == 0)
          continue;
        price[edge.to] = price_v - edge.cost;
        ++stats.repaired;
        ++stats.refined;
        if (queued[edge.to] != 0) continue;
        queued[edge.to] = 1;
        next.push_back(edge.to);
      }
      stats.scanned += last - first;
      if (const Status status = checker.step(stats, last - first + 1); status != Status::kOptimal)
        return {status};
      if ((max_scans -= last - first) < 0) return {};
    }
    lowered.swap(next);
    next.clear();
  }
  return {Status::kOptimal, true};
}

}  // namespace flowsolver
