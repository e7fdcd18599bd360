// When many sources would rather leave where they are by the same little, all that has a price gets dearer by that, at
// once.
//
// In a cell without a free slot, whose waiting tasks get dearer to leave waiting by one each round, the price of every
// slot rises by one. Searches find that out too, but only after each of those tasks has taken a place from another task,
// most of which then take one from them in turn.
//
// Definitions. S: the nodes with a price > 0, but for unit sources (whose prices are implied by S's). d: the least by
// which any of the changed sources is worse off where it is. Method: the price of all nodes in S rises by d. Arcs within
// S, into it, and of the sources that stay in it keep rc >= 0. Out of it, residual arcs need rc >= d, or nothing is
// done; and sources carried by S with another arc out of it that now is better are handed back, to be displaced: there
// must be no more of them than of those that are worse off. So the invariant of incremental_ssp.hpp holds, and less is
// left to search for; what is optimal is not decided here.
//
// One pass over the sources' arcs in order, O(n + m): worth it only in place of many searches.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "carried_sources.hpp"
#include "control.hpp"

namespace flowsolver {

template <class Value>
class UniformRise {
 public:
  UniformRise(ResidualGraph<Value>& graph, CarriedSources<Value>& sources, std::vector<NodeId>& repriced)
      : graph_(graph), sources_(sources), repriced_(repriced) {}

  // Looks at the sources in `changed` and moves prices if that helps. Appends the sources that do not suit them any more.
  void attempt(std::vector<NodeId>& changed, const Control& control, Stats& stats) {
    const std::size_t worse_off = count_worse_off(changed);
    if (worse_off < kFewSources || worse_off * kArcsPerSearch < sources_.source_arcs.size() || !mark_priced()) return;
    if (!find_leaving(worse_off, control, stats)) return;
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
    changed.insert(changed.end(), leaving_.begin(), leaving_.end());
  }

 private:
  static constexpr std::size_t kFewSources = 2;
  static constexpr std::size_t kArcsPerSearch = 32'768;  // in order, they take as long as one search in a full cell

  static constexpr std::int64_t kFar = std::int64_t{1} << 62;

  // Of sources carried outside S; sets the amount.
  std::size_t count_worse_off(std::span<const NodeId> changed) {
    std::size_t count = 0;
    amount_ = kInfinity;
    for (NodeId source : changed) {
      if (!placed(source)) continue;
      const std::uint32_t now = sources_.current_arc(source);
      if (in_set(sources_.source_arcs[now].head)) continue;
      const std::int64_t worse = sources_.through(now) - sources_.best_way(source);
      if (worse <= 0) continue;
      ++count;
      amount_ = std::min(amount_, worse);
    }
    return count;
  }

  bool placed(NodeId v) const { return sources_.is_source(v) && sources_.current_arc(v) != kNone; }
  bool in_set(NodeId v) const { return graph_.nodes[v].price > 0; }  // a source's own node has price 0

  // Lists S. False: some residual arc out of it forbids the rise.
  bool mark_priced() {
    priced_.clear();
    outside_.resize(graph_.num_nodes());
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      if (sources_.is_source(v)) continue;
      const Node<Value>& node = graph_.nodes[v];
      outside_[v] = in_set(v) ? kFar : node.price;
      if (!in_set(v)) continue;
      priced_.push_back(v);
      if (node.root_residual > 0 && node.root_cost - node.price < amount_) return false;
      for (std::uint32_t i = node.begin; i < node.begin + node.residual_degree; ++i) {
        const auto& edge = graph_.edges[i];
        const Node<Value>& other = graph_.nodes[edge.to];
        if (!in_set(edge.to) && edge.cost - node.price + other.price < amount_) return false;
      }
    }
    return true;
  }

  // Those carried by S for which an arc out of it becomes better. False: too many.
  bool find_leaving(std::size_t limit, const Control& control, Stats& stats) {
    leaving_.clear();
    Pace pace(control);
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      if (!placed(v)) continue;
      const auto [begin, end] = sources_.arcs_of(v);
      stats.scanned += end - begin;
      if (pace.step(stats, end - begin) != Status::kOptimal) return false;
      const auto& now = sources_.source_arcs[sources_.current_arc(v)];
      if (outside_[now.head] != kFar) continue;
      std::int64_t best = kFar;
      for (std::uint32_t i = begin; i < end; ++i) {
        const auto& arc = sources_.source_arcs[i];
        best = std::min(best, arc.cost + outside_[arc.head]);
      }
      if (best >= now.cost + graph_.nodes[now.head].price + amount_) continue;
      if (leaving_.size() == limit) return false;
      leaving_.push_back(v);
    }
    return true;
  }

  ResidualGraph<Value>& graph_;
  CarriedSources<Value>& sources_;
  std::vector<NodeId>& repriced_;
  std::int64_t amount_ = 0;
  std::vector<NodeId> priced_, leaving_;  // S; see find_leaving
  LargeArray<std::int64_t> outside_;      // by node, but for sources: the price, kFar in S
};

}  // namespace flowsolver
