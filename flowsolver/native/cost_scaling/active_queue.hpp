// A queue of nodes that wait to be discharged, first in first out. Each node is in it at most once.
#pragma once

#include <vector>

#include "network.hpp"

namespace flowsolver {

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

}  // namespace flowsolver
