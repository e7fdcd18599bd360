// The rooted spanning tree of the network simplex: parents, a preorder thread, subtree sizes, tree arcs with their residual
// capacities, and prices for which tree arcs have reduced cost zero.
//
// Nodes are 0..n-1 and the root n. The thread is the nodes in preorder, cyclic; the subtree of v is the `size` nodes from v
// to last[v]. A node's tree arc joins it to its parent: an arc of the network, or kNone for the artificial one to the root.
//
// Strongly feasible: every tree arc has residual capacity towards the root. All operations keep that (network_simplex.hpp).
//
// An exchange costs O(length of the path that is turned round + ancestors up to the junction), moving prices O(nodes of the
// smaller of the two parts). Reference: Ahuja, Magnanti, Orlin, Network Flows (1993), section 11.3; Barr, Glover, Klingman
// (1979).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "large_array.hpp"
#include "network.hpp"

namespace flowsolver {

class SpanningTree {
 public:
  // Residual capacities of a node's tree arc towards its parent, and from it.
  struct TreeArc {
    ArcId arc = kNone;
    std::int64_t up = 0, down = 0;
  };
  // The cycle that an arc k -> l closes, walked from the junction down to k, over the arc, and up from l to the junction.
  struct Cycle {
    NodeId junction = kNone;
    NodeId down_node = kNone, up_node = kNone;  // below the last tree arc of least room on either side, or kNone
    std::int64_t down_room = kInfinity, up_room = kInfinity;
    std::int64_t length = 0;
  };

  explicit SpanningTree(NodeId nodes) : root_(nodes), nodes_(nodes + 1), thread_(nodes + 1), price_(nodes + 1) {
    for (NodeId v = 0; v <= root_; ++v) {
      nodes_[v] = Node{};
      thread_[v] = kNone;
      price_[v] = 0;
    }
    nodes_[root_].size = 1;
  }

  NodeId root() const { return root_; }
  const std::int64_t* prices() const { return price_.data(); }
  std::int64_t price(NodeId v) const { return price_[v]; }
  bool attached(NodeId v) const { return nodes_[v].size > 0; }
  NodeId parent(NodeId v) const { return nodes_[v].parent; }
  TreeArc arc(NodeId v) const { return {nodes_[v].arc, nodes_[v].up, nodes_[v].down}; }

  // While the tree is built: `parent` is attached, v is not. Afterwards `finish`, once.
  void attach(NodeId v, NodeId parent, const TreeArc& arc, std::int64_t price) {
    Node& node = nodes_[v];
    node.parent = parent;
    node.size = 1;
    set_arc(node, arc);
    price_[v] = price;
  }

  // Threads the tree. `order`: all nodes but the root, parents before children.
  void finish(const std::vector<NodeId>& order) {
    // A node's thread is its first child for now, `back` its next sibling.
    for (auto v = order.rbegin(); v != order.rend(); ++v) {
      Node& node = nodes_[*v];
      node.back = thread_[node.parent];
      thread_[node.parent] = *v;
      nodes_[node.parent].size += node.size;
    }
    std::vector<NodeId> pending{root_};
    NodeId before = root_;
    bool first = true;
    while (!pending.empty()) {
      const NodeId v = pending.back();
      pending.pop_back();
      if (v != root_ && nodes_[v].back != kNone) pending.push_back(nodes_[v].back);
      if (thread_[v] != kNone) pending.push_back(thread_[v]);
      if (!first) link(before, v);
      before = v;
      first = false;
    }
    link(before, root_);
    for (NodeId v = 0; v <= root_; ++v) nodes_[v].last = v;
    for (auto v = order.rbegin(); v != order.rend(); ++v) {
      // Of siblings the last in the thread is the first seen to end at its parent's end.
      Node& parent = nodes_[nodes_[*v].parent];
      if (parent.last == nodes_[*v].parent) parent.last = nodes_[*v].last;
    }
  }

  Cycle cycle(NodeId k, NodeId l) const {
    Cycle cycle;
    while (k != l) {
      ++cycle.length;
      if (nodes_[k].size < nodes_[l].size) {
        if (nodes_[k].down < cycle.down_room) {
          cycle.down_room = nodes_[k].down;
          cycle.down_node = k;
        }
        k = nodes_[k].parent;
      } else {
        if (nodes_[l].up <= cycle.up_room) {
          cycle.up_room = nodes_[l].up;
          cycle.up_node = l;
        }
        l = nodes_[l].parent;
      }
    }
    cycle.junction = k;
    return cycle;
  }

  void push(NodeId k, NodeId l, NodeId junction, std::int64_t amount) {
    for (; k != junction; k = nodes_[k].parent) {
      nodes_[k].down -= amount;
      nodes_[k].up += amount;
    }
    for (; l != junction; l = nodes_[l].parent) {
      nodes_[l].up -= amount;
      nodes_[l].down += amount;
    }
  }

  // The tree arc of `out` leaves, and the subtree below it hangs, turned round so that `in` is its top, from `parent` by
  // `arc`. `junction` is where the ways up from `in` and `parent` meet. Prices of the subtree move by `shift`, relative to
  // the others'. Returns how many prices were moved.
  std::int64_t exchange(NodeId in, NodeId parent, NodeId out, NodeId junction, const TreeArc& arc, std::int64_t shift) {
    const NodeId old_parent = nodes_[out].parent;
    const std::uint32_t total = nodes_[out].size;
    const NodeId end = turn(in, parent, out, arc);
    for (NodeId v = old_parent; v != junction; v = nodes_[v].parent) nodes_[v].size -= total;
    for (NodeId v = parent; v != junction; v = nodes_[v].parent) nodes_[v].size += total;
    return move_prices(in, end, total, shift);
  }

 private:
  struct Node {
    std::int64_t up = 0, down = 0;
    ArcId arc = kNone;
    NodeId parent = kNone;
    NodeId back = kNone;  // before it in the thread
    NodeId last = kNone;
    std::uint32_t size = 0;
  };
  static constexpr std::int64_t kMostDrift = 2 * kMaxPathCost;

  static void set_arc(Node& node, const TreeArc& arc) {
    node.arc = arc.arc;
    node.up = arc.up;
    node.down = arc.down;
  }
  void link(NodeId a, NodeId b) {
    thread_[a] = b;
    nodes_[b].back = a;
  }

  // Turns the path in..out round, threads the subtree anew and puts it after `parent`; all but the sizes of the nodes
  // outside. Returns the last node of the subtree. The blocks of the thread, from `in` up: a node of the path comes first in
  // its block, which is cut in two by the block of the one below it.
  NodeId turn(NodeId in, NodeId parent, NodeId out, TreeArc arc) {
    const NodeId old_parent = nodes_[out].parent, old_last = nodes_[out].last;
    const std::uint32_t total = nodes_[out].size;
    NodeId end = kNone;  // of what is threaded anew
    NodeId below_before = kNone, below_after = kNone, below_last = kNone, above = parent;
    std::uint32_t below_size = 0;
    for (NodeId v = in;;) {
      Node& node = nodes_[v];
      const NodeId next = node.parent, before = node.back;
      const NodeId after = node.last == below_last ? below_after : thread_[node.last];
      const std::uint32_t size = node.size;
      const TreeArc turned{node.arc, node.down, node.up};
      if (end == kNone) {
        end = node.last;
      } else {
        link(end, v);
        end = below_before;
        if (node.last != below_last) {
          link(end, below_after);
          end = node.last;
        }
      }
      node.parent = above;
      node.size = total - below_size;
      set_arc(node, arc);
      below_before = before;
      below_after = after;
      below_last = node.last;
      below_size = size;
      arc = turned;
      above = v;
      if (v == out) break;
      v = next;
    }
    for (NodeId v = out; v != parent; v = nodes_[v].parent) nodes_[v].last = end;
    link(below_before, below_after);
    for (NodeId v = old_parent; v != kNone && nodes_[v].last == old_last; v = nodes_[v].parent) {
      nodes_[v].last = below_before;
    }
    const NodeId after = thread_[parent];
    link(parent, in);
    link(end, after);
    for (NodeId v = parent; v != kNone && nodes_[v].last == parent; v = nodes_[v].parent) nodes_[v].last = end;
    return end;
  }

  // Only differences of prices count, so the smaller part is moved; the root's price shows how far all have drifted.
  std::int64_t move_prices(NodeId first, NodeId last, std::uint32_t size, std::int64_t shift) {
    const std::uint32_t others = root_ + 1 - size;
    if (size <= others) {
      for (NodeId v = first;; v = thread_[v]) {
        price_[v] += shift;
        if (v == last) return size;
      }
    }
    for (NodeId v = thread_[last]; v != first; v = thread_[v]) price_[v] -= shift;
    if (price_[root_] > kMostDrift || price_[root_] < -kMostDrift) {
      const std::int64_t drift = price_[root_];
      for (std::int64_t& price : price_) price -= drift;
    }
    return others;
  }

  NodeId root_;
  LargeArray<Node> nodes_;
  LargeArray<NodeId> thread_;
  LargeArray<std::int64_t> price_;
};

}  // namespace flowsolver
