// What relaxation remembers of nodes between two solves of a graph that changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "network.hpp"

namespace flowsolver {

enum class NodeMark : std::uint8_t { kRepriced = 1, kNewNode = 2, kChanged = 4 };

class NodeMarks {
 public:
  void reserve(std::size_t nodes) { of_.reserve(nodes); }
  void assign(std::size_t nodes) { of_.assign(nodes, 0); }
  void resize(std::size_t nodes) { of_.resize(nodes, 0); }
  // Sets a mark. False: it was set already.
  bool set(NodeId v, NodeMark mark) {
    const bool is_new = !has(v, mark);
    of_[v] |= static_cast<std::uint8_t>(mark);
    return is_new;
  }
  bool has(NodeId v, NodeMark mark) const {
    return (of_[v] & static_cast<std::uint8_t>(mark)) != 0;
  }
  void clear(NodeId v, NodeMark mark) {
    of_[v] &= static_cast<std::uint8_t>(~static_cast<std::uint8_t>(mark));
  }

 private:
  std::vector<std::uint8_t> of_;  // per node
};

}  // namespace flowsolver
