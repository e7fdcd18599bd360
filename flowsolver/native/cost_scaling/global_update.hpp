// The global update of prices in a phase of cost scaling: a search backward from all deficits
// (distance_queue.hpp) with lengths floor(rc / eps) + 1. Prices rise by eps * distance, which makes
// a shortest path from every active node admissible except for its last eps.
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
#pragma once

#include <cstdint>
#include <vector>

#include "cost_scaling/distance_queue.hpp"
#include "cost_scaling/scaled_graph.hpp"

namespace flowsolver {

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

}  // namespace flowsolver
