// A way of balanced arcs to a deficit, over which all excess on it is sent at once.
//
// The way is given from its end: the half-edge that leads to the deficit first. Each node on it
// adds what excess it has and there is room for beyond it, the nearest first. Sent one by one, the
// excesses of a long way would take the square of its length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "network.hpp"

namespace flowsolver {

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

  // The next half-edge back. False: what lies beyond it has no room.
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

  // Moves the excess, and returns how much; visit(node, its half-edges from the target) for each
  // node it came from or over.
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
    std::int64_t amount;  // of its excess
  };

  Graph& graph_;
  NodeId target_ = kNone;
  std::int64_t room_ = 0;  // for what comes from beyond the last step
  std::vector<Step> steps_;
  std::size_t steps_with_excess_ = 0;  // steps up to the last that adds excess
};

}  // namespace flowsolver
