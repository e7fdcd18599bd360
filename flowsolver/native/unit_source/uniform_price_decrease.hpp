// Lowers an estimated price of capacity that was too high. Such a price leaves deficits: capacity
// that no source uses at that price.
//
// All priced nodes get cheaper by the same amount, chosen so that as many sources on bypasses as
// there are deficits would rather use the capacity. Those are unassigned, to be assigned again.
// Arcs between priced nodes keep their reduced cost. So rc >= 0 is preserved on every residual arc
// as long as the amount is at most
//   rc of every residual arc from an unpriced node to a priced one, the root's included, and
//   the gain from its bypass of every source that cannot be unassigned.
//
// Filling the deficits by backward searches instead would change the same prices, a little at a
// time and all of them each time.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "unit_source/unit_source_graph.hpp"

namespace flowsolver {

template <class Value>
class UniformPriceDecrease {
 public:
  using Graph = UnitSourceGraph<Value>;

  UniformPriceDecrease(Graph& graph, std::vector<std::uint8_t> is_priced)
      : graph_(graph), priced_(std::move(is_priced)) {}

  bool is_priced(NodeId v) const { return priced_[v] != 0; }

  // Lowers prices for `deficits` units. Returns the unassigned sources, ascending; empty: nothing
  // more can be gained.
  const std::vector<std::uint32_t>& lower(std::int64_t deficits) {
    freed_.clear();
    choices_.clear();
    std::int64_t amount = kInfinity;
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) amount = std::min(amount, max_decrease_at(v));
    if (choices_.empty()) return freed_;
    const auto rank =
        static_cast<std::size_t>(std::min(deficits, static_cast<std::int64_t>(choices_.size()))) -
        1;
    std::nth_element(choices_.begin(), choices_.begin() + static_cast<std::ptrdiff_t>(rank),
                     choices_.end());
    amount = std::min(amount, choices_[rank].first);
    if (amount < 0) return freed_;
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      if (priced_[v] != 0) graph_.nodes[v].price -= amount;
    }
    graph_.assigned.shift_keys(-amount);
    for (std::size_t i = 0; i <= rank; ++i) {
      if (choices_[i].first <= amount) freed_.push_back(choices_[i].second);
    }
    std::sort(freed_.begin(), freed_.end());
    for (std::uint32_t source : freed_) unassign(source);
    return freed_;
  }

 private:
  // The most that prices may fall because of v. Records the sources that could be unassigned from
  // v.
  std::int64_t max_decrease_at(NodeId v) {
    const Node<Value>& node = graph_.nodes[v];
    if (priced_[v] != 0) return node.root_flow > 0 ? node.price - node.root_cost : kInfinity;
    std::int64_t amount = kInfinity;
    for (std::uint32_t i = node.begin; i < node.begin + node.residual_degree; ++i) {
      const auto& edge = graph_.edges[i];
      if (priced_[edge.to] != 0)
        amount = std::min(amount, edge.cost - node.price + graph_.nodes[edge.to].price);
    }
    const bool is_releasable = v == graph_.root() || (node.root_cost == node.price &&
                                                      std::int64_t{node.root_flow} >=
                                                          std::int64_t{graph_.assigned.size(v)});
    graph_.assigned.for_each(v, [&](std::uint32_t source) {
      const std::int64_t advantage = advantage_of_present_arc(source);
      if (advantage == kInfinity) return;
      if (is_releasable) {
        choices_.emplace_back(advantage, source);
      } else {
        amount = std::min(amount, advantage);
      }
    });
    return amount;
  }

  // The gain of the source's current arc over its best arc to a priced node.
  std::int64_t advantage_of_present_arc(std::uint32_t source) const {
    const auto [begin, end] = graph_.arcs_of(source);
    std::int64_t best = kInfinity;
    for (std::uint32_t i = begin; i < end; ++i) {
      const auto& arc = graph_.source_arcs[i];
      if (priced_[arc.head] != 0) best = std::min(best, arc.cost + graph_.nodes[arc.head].price);
    }
    if (best == kInfinity) return kInfinity;
    const auto& present = graph_.source_arcs[graph_.current_arc(source)];
    return best - present.cost - graph_.nodes[present.head].price;
  }

  void unassign(std::uint32_t source) {
    const NodeId v = graph_.unassign(source);
    if (v == graph_.root()) return;
    --graph_.nodes[v].root_flow;
    ++graph_.nodes[v].root_residual;
  }

  Graph& graph_;
  std::vector<std::uint8_t> priced_;                             // by node
  std::vector<std::pair<std::int64_t, std::uint32_t>> choices_;  // (advantage, source)
  std::vector<std::uint32_t> freed_;
};

}  // namespace flowsolver
