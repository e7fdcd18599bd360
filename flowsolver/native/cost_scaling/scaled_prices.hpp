// What phases of incremental cost scaling keep beside a graph that changes: prices, of which most
// are whole, and how the others are made whole (local_scaling.hpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "cost_scaling/scaling_steps.hpp"
#include "graph/dynamic_graph.hpp"
#include "solve.hpp"

namespace flowsolver {

// Prices of scaled costs beside a dynamic graph (dynamic_graph.hpp), with a record of which prices
// moved.
//
// Definitions. Costs are multiplied by K, a power of two above the number of nodes; P are prices of
// scaled costs; rc = K cost - P[tail] + P[head]. A price is whole if K divides it.
//
// Invariant. Prices of nodes that have not moved are whole.
//
// Method. A phase of cost scaling uses the same interface as that of ScaledGraph, and calls `touch`
// for every node whose price it is about to change. `round_to_whole` makes the moved prices whole
// again:
// - It rounds to the nearest multiple of K, except for the position of the border between down and
//   up: at r, a residue mod K that no price has, near K / 2. P := K floor((P + K - 1 - r) / K).
//   Whole prices do not change.
// - If rc >= -1 on all residual half-edges, rounding gives rc >= 0 whatever r is: P[u] <= P[v] + K
//   cost + 1, and adding 1 to P[v] + K - 1 - r does not pass a multiple of K.
// - Otherwise the rounded prices are refined: starting at the moved nodes, prices fall to what
//   their residual half-edges require, first in first out (refine_prices). The number of half-edges
//   scanned is limited; beyond the limit, all prices are restored.
//
// Complexity. `round_to_whole`: O(half-edges at moved nodes), and at the nodes that are lowered.
template <class V>
class ScaledPrices {
 public:
  using Graph = DynamicGraph<V>;
  using Price = std::int64_t;
  using HalfEdge = typename Graph::HalfEdge;
  using Node = ScaledNode<Price>;

  explicit ScaledPrices(Graph& graph) : graph_(graph) {}

  // Sets whole prices of all nodes. Those that differ from before count as repriced.
  void assign(std::span<const std::int64_t> price, const Control& control) {
    const std::size_t n = graph_.num_nodes(), known = node_.size();
    const int unit_shift_before = unit_shift_;
    std::vector<std::int64_t> before(known);
    for (std::size_t v = 0; v < known; ++v) before[v] = node_[v].price >> unit_shift_before;
    const auto furthest = static_cast<std::int64_t>(largest_magnitude(price));
    unit_shift_ = std::bit_width(n) + 1;
    // If prices do not fit with this K, they are only stored.
    if (furthest > kMaxScaledPrice<Price> >> unit_shift_) unit_shift_ = 0;
    furthest_ = furthest << unit_shift_;
    moved_.clear();
    node_.resize(n);
    flags_.resize(n, 0);
    for_each_until_cancelled(n, control, [&](std::size_t v) {
      node_[v] = {price[v] << unit_shift_, graph_.end(static_cast<NodeId>(v)), Node::kFar};
      if (v >= known || (flags_[v] & kMoved) != 0 || before[v] != price[v])
        note_repriced(static_cast<NodeId>(v));
      flags_[v] &= static_cast<std::uint8_t>(~kMoved);
    });
  }

  // Sets the prices price(v) of some nodes; all others' are whole. False if one does not fit; then
  // call `assign`.
  template <class PriceOf>
  bool assign_some(std::span<const NodeId> nodes, const PriceOf& price) {
    const std::int64_t most = unit_shift_ == 0 ? kInfinity : kMaxScaledPrice<Price> >> unit_shift_;
    for (NodeId v : nodes) {
      const std::int64_t whole = price(v);
      if (whole > most || whole < -most) return false;
      node_[v].price = whole << unit_shift_;
      furthest_ = std::max(furthest_, node_[v].price < 0 ? -node_[v].price : node_[v].price);
      flags_[v] &= static_cast<std::uint8_t>(~kMoved);
      forget_current(v);
      note_repriced(v);
    }
    moved_.clear();
    return true;
  }

  // After prices were replaced by an answer's: nothing is left of a run that was stopped. O(n).
  void forget_run() {
    furthest_ = 0;
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      furthest_ = std::max(furthest_, node_[v].price < 0 ? -node_[v].price : node_[v].price);
      forget_current(v);
    }
  }

  // Adds nodes; K grows with their number.
  void grow() {
    const NodeId known = static_cast<NodeId>(node_.size()), n = graph_.num_nodes();
    if (n > known) {
      flags_.resize(n, 0);
      node_.resize(n);
      for (NodeId v = known; v < n; ++v) node_[v] = {0, graph_.end(v), Node::kFar};
    }
    if (unit_shift_ == 0 || std::int64_t{n} + 2 < scale()) return;
    constexpr int kMore = 2;
    if (furthest_ > kMaxScaledPrice<Price> >> kMore) {  // then fits() is false
      furthest_ = kInfinity;
      return;
    }
    unit_shift_ += kMore;
    shift_ += kMore;
    furthest_ <<= kMore;
    for (Node& node : node_) node.price *= std::int64_t{1} << kMore;
  }

  // Whether a phase that starts from these prices stays within 64 bits.
  bool fits(std::int64_t largest_cost) const {
    if (unit_shift_ == 0 || furthest_ > kMaxScaledPrice<Price>) return false;
    const __int128 longest = static_cast<__int128>(largest_cost) << unit_shift_;
    if (longest > kMaxScaledPrice<Price>) return false;
    return phase_fits<Price>(furthest_, graph_.num_nodes(), scale(), largest_cost, scale());
  }

  std::int64_t whole(NodeId v) const { return node_[v].price >> unit_shift_; }
  int unit_shift() const { return unit_shift_; }

  // The interface for phases.
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  Node& node(NodeId v) { return node_[v]; }
  const Node& node(NodeId v) const { return node_[v]; }
  std::uint32_t open(NodeId v) const { return graph_.begin(v); }
  void set_shift(int shift) { shift_ = shift; }
  int shift() const { return shift_; }
  Price eps() const { return Price{1} << shift_; }
  Price scale() const { return Price{1} << unit_shift_; }
  Price reduced_cost(const HalfEdge& edge, Price price_here) const {
    return static_cast<Price>(edge.cost) * scale() - price_here + node_[edge.to].price;
  }
  void push(NodeId u, std::uint32_t e, std::int64_t amount) { graph_.push(u, e, amount); }
  void touch(NodeId v) {
    if ((flags_[v] & kMoved) != 0) return;
    flags_[v] |= kMoved;
    moved_.push_back(v);
  }
  static constexpr bool knows_reverse_residual() { return true; }
  static Status mark_reverse_residual(CancellationChecker&, Stats&) { return Status::kOptimal; }
  bool has_reverse_residual(std::uint32_t e) const { return graph_.has_reverse_residual(e); }

  // Nodes whose prices may not be whole.
  const std::vector<NodeId>& moved() const { return moved_; }
  // Updates the bound of all prices after some moved.
  void note_range() {
    for (NodeId v : moved_)
      furthest_ = std::max(furthest_, node_[v].price < 0 ? -node_[v].price : node_[v].price);
  }
  // A whole price at which v keeps rc >= 0 on its residual half-edges; it has not moved.
  void set_whole(NodeId v, Price price) {
    node_[v].price = price;
    furthest_ = std::max(furthest_, price < 0 ? -price : price);
    forget_current(v);
    note_repriced(v);
  }
  bool has_moved(NodeId v) const { return (flags_[v] & kMoved) != 0; }
  // Makes the moved prices whole. Done: no node counts as moved any more. Not done, or stopped:
  // nothing has changed. `is_exact`: rc >= -1 holds.
  RefineResult round_to_whole(bool is_exact, CancellationChecker& checker, Stats& stats) {
    const Price border = free_residue();
    previous_prices_.clear();
    for (NodeId v : moved_) {
      previous_prices_.push_back({v, node_[v].price});
      node_[v].price = (node_[v].price + scale() - 1 - border) >> unit_shift_ << unit_shift_;
    }
    const RefineResult refined =
        is_exact ? RefineResult{Status::kOptimal, true} : refine(checker, stats);
    for (NodeId v : lowered_) flags_[v] &= static_cast<std::uint8_t>(~kQueued);
    lowered_.clear();
    if (!refined.done) {
      restore_prices();
      return refined;
    }
    note_range();
    for (NodeId v : moved_) {
      flags_[v] &= static_cast<std::uint8_t>(~kMoved);
      forget_current(v);
      note_repriced(v);
    }
    moved_.clear();
    return refined;
  }

  // The node's block has changed or moved. Between phases no half-edge is admissible, so the
  // current arc is the end of the block, and an aggregator need not be scanned before its first
  // relabel.
  void forget_current(NodeId v) { node_[v].current = graph_.end(v); }
  // The same during a phase, when any half-edge may be admissible.
  void rewind_current(NodeId v) { node_[v].current = graph_.begin(v); }

  const std::vector<NodeId>& repriced() const { return repriced_; }
  void begin_round() {
    for (NodeId v : repriced_) flags_[v] &= static_cast<std::uint8_t>(~kRepriced);
    repriced_.clear();
  }

 private:
  static constexpr std::uint8_t kMoved = 1, kRepriced = 2, kQueued = 4;
  static constexpr std::int64_t kMaxScansFactor = 8;  // times the half-edges at moved nodes
  // plus kFewScans, plus 1 / kMaxScansShare of all half-edges
  static constexpr std::int64_t kFewScans = 4096, kMaxScansShare = 16;

  struct PreviousPrice {
    NodeId node;
    Price price;
  };

  void note_repriced(NodeId v) {
    if ((flags_[v] & kRepriced) != 0) return;
    flags_[v] |= kRepriced;
    repriced_.push_back(v);
  }
  // The first residue from K / 2 on that no price has; all prices that have not moved have residue
  // 0.
  Price free_residue() const {
    const Price unit = scale();
    std::vector<std::uint8_t> taken(moved_.size() + 2, 0);
    const auto take = [&](Price residue) {
      const auto place = static_cast<std::size_t>((residue - unit / 2) & (unit - 1));
      if (place < taken.size()) taken[place] = 1;
    };
    take(0);
    for (NodeId v : moved_) take(node_[v].price & (unit - 1));
    return (unit / 2 + (std::find(taken.begin(), taken.end(), 0) - taken.begin())) & (unit - 1);
  }

  void lower(NodeId v, Price price) {
    if ((flags_[v] & kMoved) == 0) {
      previous_prices_.push_back({v, node_[v].price});
      touch(v);
    }
    node_[v].price = price;
    if ((flags_[v] & kQueued) != 0) return;
    flags_[v] |= kQueued;
    lowered_.push_back(v);
  }

  RefineResult refine(CancellationChecker& checker, Stats& stats) {
    const std::size_t rounded = moved_.size();
    std::int64_t max_scans =
        kFewScans + static_cast<std::int64_t>(graph_.edges.size()) / kMaxScansShare;
    for (std::size_t k = 0; k < rounded; ++k) {
      const NodeId v = moved_[k];
      Price least = node_[v].price;
      const std::int64_t scanned = graph_.end(v) - graph_.begin(v);
      for (std::uint32_t e = graph_.begin(v); e < graph_.end(v); ++e) {
        const HalfEdge& edge = graph_.edges[e];
        if (edge.residual > 0)
          least = std::min(least, static_cast<Price>(edge.cost) * scale() + node_[edge.to].price);
      }
      stats.scanned += scanned;
      stats.repaired += least < node_[v].price;
      stats.refined += least < node_[v].price;
      max_scans += kMaxScansFactor * scanned;
      lower(v, least);
      if (const Status status = checker.step(stats, scanned + 1); status != Status::kOptimal)
        return {status};
    }
    for (std::size_t k = 0; k < lowered_.size(); ++k) {  // grows meanwhile
      const NodeId v = lowered_[k];
      flags_[v] &= static_cast<std::uint8_t>(~kQueued);
      const Price price_v = node_[v].price;
      const std::int64_t scanned = graph_.end(v) - graph_.begin(v);
      for (std::uint32_t e = graph_.begin(v); e < graph_.end(v); ++e) {
        if (!graph_.has_reverse_residual(e)) continue;
        const HalfEdge& edge = graph_.edges[e];  // v -> u, whose partner is u -> v
        const Price price = price_v - static_cast<Price>(edge.cost) * scale();
        if (price >= node_[edge.to].price) continue;
        lower(edge.to, price);
        ++stats.repaired;
        ++stats.refined;
      }
      stats.scanned += scanned;
      if (const Status status = checker.step(stats, scanned + 1); status != Status::kOptimal)
        return {status};
      if ((max_scans -= scanned) < 0) return {};
    }
    return {Status::kOptimal, true};
  }

  void restore_prices() {
    for (const PreviousPrice& before : previous_prices_) node_[before.node].price = before.price;
  }

  Graph& graph_;
  int unit_shift_ = 0;  // K = 2^unit_shift_
  int shift_ = 0;
  LargeArray<Node> node_;
  std::vector<std::uint8_t> flags_;  // per node
  std::vector<NodeId> moved_, repriced_;
  Price furthest_ = 0;                          // the magnitude of all prices is at most this
  std::vector<PreviousPrice> previous_prices_;  // during round_to_whole
  std::vector<NodeId> lowered_;
};

}  // namespace flowsolver
