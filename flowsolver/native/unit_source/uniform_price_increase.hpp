// Raises all positive prices by the same amount, when many sources would leave their places for the
// same small gain.
//
// In a cell without a free slot whose waiting tasks get more expensive to leave waiting by one in
// each round, the price of every slot rises by one. Searches find that out too, but only after each
// of those tasks has taken a slot from another task, most of which then take one from them in turn.
//
// Definitions. S: the core nodes with a price > 0 (prices of unit sources are implied). The k
// candidates: those of the changed sources, assigned outside S, that are cheaper elsewhere by d or
// more, where d is the least such gain. sigma of a source assigned to S: its gain from staying,
// compared with its best arc out of S.
//
// Method. The prices of all nodes in S rise by the minimum of d, the reduced costs of residual arcs
// out of S, and the k-th smallest sigma. Arcs within S, arcs into S, and arcs of the sources that
// stay keep rc >= 0. Sources with a smaller sigma are returned, to be unassigned. If these are
// fewer than k because sigma ended the rise, other sources whose sigma equals the rise are
// reassigned at once, which costs nothing: k in all, to make room for k. If d ended the rise, those
// of the k candidates whose gain is just d are as cheap elsewhere now, and may use the capacity
// that the returned sources free. So the invariant of incremental_ssp.hpp holds and less is left to
// search for; optimality is not decided here.
//
// Complexity. One pass over all core nodes and their residual arcs, and over the sources that are
// about to leave. It pays only in place of many searches.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "unit_source/unit_sources.hpp"
#include "control.hpp"

namespace flowsolver {

template <class Value>
class UniformPriceIncrease {
 public:
  // `core_nodes`: every core node; some more than once.
  UniformPriceIncrease(ResidualGraph<Value>& graph, UnitSources<Value>& sources,
                       std::span<const NodeId> core_nodes, std::vector<NodeId>& repriced)
      : graph_(graph), sources_(sources), core_nodes_(core_nodes), repriced_(repriced) {}

  // Examines the sources in `changed` and raises prices if that helps. Appends the sources that are
  // not on their best arc any more.
  void run(std::vector<NodeId>& changed, const Control& control, Stats& stats) {
    const std::size_t worse_off = count_worse_off(changed);
    if (worse_off < kFewSources || worse_off * kArcsPerSearch < sources_.source_arcs.size()) return;
    const std::int64_t least = amount_;
    list_priced();
    if (!find_leaving(control, stats)) return;
    if (leaving_.size() > worse_off) {
      std::nth_element(leaving_.begin(),
                       leaving_.begin() + static_cast<std::ptrdiff_t>(worse_off - 1),
                       leaving_.end());
      leaving_.resize(worse_off);
      amount_ = leaving_.back().first;
    }
    std::sort(leaving_.begin(), leaving_.end());
    for (const auto& [sigma, source] : leaving_)
      (sigma < amount_ ? changed : indifferent_members_).push_back(source);
    if (amount_ > 0) raise(stats);
    if (amount_ == least) indifferent_outsiders_.swap(nearest_);
  }

  // Sources assigned to S that can leave S at no cost, and should.
  std::span<const NodeId> indifferent_members() const { return indifferent_members_; }
  // Sources assigned outside S that can enter S at no cost.
  std::span<const NodeId> indifferent_outsiders() const { return indifferent_outsiders_; }

 private:
  static constexpr std::size_t kFewSources = 2;
  // scanning this many in order takes as long as one search in a full cell
  static constexpr std::size_t kArcsPerSearch = 32'768;

  // Counts the candidates and sets the amount to d.
  std::size_t count_worse_off(std::span<const NodeId> changed) {
    std::size_t count = 0;
    amount_ = kInfinity;
    for (NodeId source : changed) {
      if (!is_assigned(source)) continue;
      const std::uint32_t now = sources_.current_arc(source);
      if (is_member(sources_.source_arcs[now].head)) continue;
      const std::int64_t worse = sources_.cost_through(now) - sources_.best_cost(source);
      if (worse <= 0) continue;
      ++count;
      if (worse < amount_) nearest_.clear();
      amount_ = std::min(amount_, worse);
      if (worse == amount_) nearest_.push_back(source);
    }
    return count;
  }

  bool is_assigned(NodeId v) const {
    return sources_.is_source(v) && sources_.current_arc(v) != kNone;
  }
  bool is_member(NodeId v) const { return graph_.nodes[v].price > 0; }

  // Lists S. Residual arcs out of it limit the amount.
  void list_priced() {
    priced_.clear();
    for (NodeId v : core_nodes_) {
      if (!is_member(v) || sources_.is_source(v)) continue;
      const Node<Value>& node = graph_.nodes[v];
      priced_.push_back(v);
      if (node.root_residual > 0) amount_ = std::min(amount_, node.root_cost - node.price);
      for (std::uint32_t i = node.begin; i < node.begin + node.residual_degree; ++i) {
        const auto& edge = graph_.edges[i];
        if (!is_member(edge.to))
          amount_ = std::min(amount_, edge.cost - node.price + graph_.nodes[edge.to].price);
      }
    }
    keep_distinct(priced_);
  }

  // Lists the sources assigned to S with sigma below the amount, or 0: those are among the first in
  // the incoming lists of the nodes they would go to. False: stopped.
  bool find_leaving(const Control& control, Stats& stats) {
    leaving_.clear();
    const std::int64_t limit = std::max<std::int64_t>(amount_, 1);
    CancellationChecker checker(control);
    for (NodeId v : core_nodes_) {
      if (is_member(v) || sources_.is_source(v)) continue;
      const std::int64_t price = graph_.nodes[v].price;
      const std::int64_t scanned_before = stats.scanned;
      sources_.visit_incoming(
          v, [&] { return limit - price; },
          [&](std::uint32_t arc, std::int64_t bound, NodeId) {
            ++stats.scanned;
            const NodeId source = sources_.source_of(arc);
            if (!is_assigned(source)) return bound;
            const auto& now = sources_.source_arcs[sources_.current_arc(source)];
            const std::int64_t key = std::int64_t{sources_.source_arcs[arc].cost} - now.cost -
                                     graph_.nodes[now.head].price;
            if (is_member(now.head) && key + price < limit)
              leaving_.emplace_back(key + price, source);
            return key;
          });
      if (checker.step(stats, 1 + stats.scanned - scanned_before) != Status::kOptimal) return false;
    }
    // Keeps each source once, with its least sigma.
    const auto by_source = [](const auto& a, const auto& b) {
      return std::pair(a.second, a.first) < std::pair(b.second, b.first);
    };
    const auto same_source = [](const auto& a, const auto& b) { return a.second == b.second; };
    std::sort(leaving_.begin(), leaving_.end(), by_source);
    leaving_.erase(std::unique(leaving_.begin(), leaving_.end(), same_source), leaving_.end());
    return true;
  }

  void raise(Stats& stats) {
    for (NodeId v : priced_) {
      Node<Value>& node = graph_.nodes[v];
      node.price += amount_;
      node.distance = 0;
      ++stats.repaired;
      if ((node.flags & kTouched) == 0) {
        node.flags |= kTouched;
        repriced_.push_back(v);
      }
    }
    sources_.prices_moved(priced_, amount_, true);
  }

  static void keep_distinct(std::vector<NodeId>& nodes) {
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }

  ResidualGraph<Value>& graph_;
  UnitSources<Value>& sources_;
  std::span<const NodeId> core_nodes_;
  std::vector<NodeId>& repriced_;
  std::int64_t amount_ = 0;
  std::vector<NodeId> priced_;   // S
  std::vector<NodeId> nearest_;  // candidates with gain d
  std::vector<NodeId> indifferent_members_, indifferent_outsiders_;
  std::vector<std::pair<std::int64_t, NodeId>> leaving_;  // (sigma, source)
};

}  // namespace flowsolver
