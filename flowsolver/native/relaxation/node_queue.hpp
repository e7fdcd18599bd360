// A queue of nodes with excess, first in first out: the order in which relaxation tries them.
#pragma once

#include <vector>

#include "network.hpp"

namespace flowsolver {

class NodeQueue {
 public:
  void push(NodeId v) { nodes_.push_back(v); }
  NodeId pop() {  // kNone when empty
    if (begin_ < nodes_.size()) return nodes_[begin_++];
    nodes_.clear();
    begin_ = 0;
    return kNone;
  }
  std::size_t size() const { return nodes_.size() - begin_; }
  NodeId operator[](std::size_t i) const { return nodes_[begin_ + i]; }

 private:
  std::vector<NodeId> nodes_;
  std::size_t begin_ = 0;
};

}  // namespace flowsolver
