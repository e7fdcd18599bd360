// A path of balanced arcs to a deficit, along which all excess on the path is sent at once.
//
// The path is built backward from the deficit. Each node on it adds as much of its excess as the
// rest of the path has capacity for, the nearest node first. If the excesses were sent one by one,
// a long path would take quadratic time.
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

}  // namespace flowsolver
