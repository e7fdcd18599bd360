// The arcs at each node of a changing network: doubly linked lists, O(1) to add or remove an arc.
// 16 bytes an arc, 8 a node.
#pragma once

#include <array>
#include <vector>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

class ArcLists {
 public:
  void extend(std::size_t nodes, std::size_t arcs) {
    if (first_.size() < nodes) first_.resize(nodes, {kNone, kNone});
    if (links_.size() < arcs) links_.resize(arcs);
  }
  void add(ArcId a, NodeId tail, NodeId head) {
    insert<kOut>(a, tail);
    insert<kIn>(a, head);
  }
  void remove(ArcId a, NodeId tail, NodeId head) {
    erase<kOut>(a, tail);
    erase<kIn>(a, head);
  }

  // visit(arc) for each, as long as should_continue().
  template <class Visit, class Continue>
  void for_each_out(NodeId v, Visit visit, Continue should_continue) const {
    for (ArcId a = first_[v][kOut]; a != kNone && should_continue(); a = links_[a].next[kOut])
      visit(a);
  }
  template <class Visit, class Continue>
  void for_each_in(NodeId v, Visit visit, Continue should_continue) const {
    for (ArcId a = first_[v][kIn]; a != kNone && should_continue(); a = links_[a].next[kIn])
      visit(a);
  }
  template <class Visit>
  void for_each_out(NodeId v, Visit visit) const {
    for_each_out(v, visit, [] { return true; });
  }
  template <class Visit>
  void for_each_in(NodeId v, Visit visit) const {
    for_each_in(v, visit, [] { return true; });
  }

 private:
  enum Side { kOut, kIn };
  struct Links {
    std::array<ArcId, 2> next{kNone, kNone}, before{kNone, kNone};
  };

  template <Side side>
  void insert(ArcId a, NodeId v) {
    const ArcId after = first_[v][side];
    links_[a].next[side] = after;
    links_[a].before[side] = kNone;
    if (after != kNone) links_[after].before[side] = a;
    first_[v][side] = a;
  }
  template <Side side>
  void erase(ArcId a, NodeId v) {
    const ArcId before = links_[a].before[side], after = links_[a].next[side];
    if (before == kNone) {
      first_[v][side] = after;
    } else {
      links_[before].next[side] = after;
    }
    if (after != kNone) links_[after].before[side] = before;
  }

  std::vector<std::array<ArcId, 2>> first_;  // by node
  std::vector<Links> links_;                 // by arc
};

}  // namespace flowsolver
