// The rooted spanning tree of the network simplex: parents, a preorder thread, subtree sizes, tree
// arcs with their residual capacities, and prices for which tree arcs have reduced cost zero.
//
// Nodes are 0..n-1 and the root n. The thread is the nodes in preorder, cyclic; the subtree of v is
// the `size` nodes from v to last[v]. A node's tree arc joins it to its parent: an arc of the
// network, or kNone for the artificial arc to the root.
//
// Outer nodes are those without arcs into them (tasks). Their price matters to their own arcs only,
// and no outer node is adjacent to another in the tree. So their price is stored as a difference
// from their parent's. As leaves they are not threaded and have size 0. So moving the prices of a
// subtree costs its inner nodes only, however many tasks it has, and a task that changes its parent
// costs O(1).
//
// Strongly feasible: every tree arc has residual capacity towards the root. All operations preserve
// that (network_simplex.hpp).
//
// Under changes to the network (network_simplex.hpp), unused ids are outer leaves at the root: they
// cost nothing.
//
// Complexity. An exchange costs O(length of the path that is reversed + ancestors); moving prices
// costs O(threaded nodes of the smaller of the two parts).
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), section 11.3; Barr, Glover, Klingman
// (1979).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "control.hpp"
#include "graph/large_array.hpp"
#include "network.hpp"

namespace flowsolver {

inline constexpr std::int64_t kArtificialCapacity = 2 * kMaxNodeSum;  // more than any flow

class SpanningTree {
 public:
  // A node's tree arc, with its residual capacities towards the parent and from it.
  struct TreeArc {
    ArcId arc = kNone;
    std::int64_t up = 0, down = 0;
  };
  // The cycle that an arc k -> l closes: from the apex down to k, over the arc, and up from l to
  // the apex.
  struct Cycle {
    NodeId apex = kNone;
    // the nodes below the last tree arc of least residual capacity on either side, or kNone
    NodeId down_node = kNone, up_node = kNone;
    std::int64_t down_room = kInfinity, up_room = kInfinity;
    std::int64_t length = 0;
  };
  // How far flow can go around a cycle, and what stops it.
  struct Blocking {
    std::int64_t amount;
    NodeId out = kNone;  // the node below the tree arc that leaves; kNone: the entering arc does
    bool is_on_up_path = false;
  };
  // `room`: of the arc that enters. Of equally restrictive arcs, the last along the flow leaves: on
  // the path up, then the one that enters, then on the path down.
  static Blocking blocking(const Cycle& cycle, std::int64_t room) {
    Blocking found{room};
    if (cycle.down_room < found.amount) found = {cycle.down_room, cycle.down_node};
    if (cycle.up_room <= found.amount) found = {cycle.up_room, cycle.up_node, true};
    return found;
  }

  // `outer`: per node. The constructor and `finish` throw Stopped when cancelled.
  SpanningTree(std::vector<std::uint8_t> outer, const Control& control)
      : root_(static_cast<NodeId>(outer.size())),
        outer_(std::move(outer)),
        nodes_(root_ + 1),
        thread_(root_ + 1),
        back_(root_ + 1),
        price_(root_ + 1),
        above_(root_ + 1),
        reference_(root_ + 1) {
    outer_.push_back(0);
    CancellationChecker checker(control);
    for (NodeId v = 0; v <= root_; ++v) {
      checker.step_until_cancelled({});
      nodes_[v] = Node{};
      thread_[v] = back_[v] = kNone;
      price_[v] = 0;
      above_[v] = 0;
      reference_[v] = v;
    }
    nodes_[root_].size = 1;
  }

  NodeId root() const { return root_; }
  // The price of v is above[v] + prices[reference[v]]; for inner nodes it is prices[v].
  const std::int64_t* prices() const { return price_.data(); }
  const std::int64_t* above() const { return above_.data(); }
  const NodeId* reference() const { return reference_.data(); }
  std::int64_t price(NodeId v) const { return above_[v] + price_[reference_[v]]; }
  bool attached(NodeId v) const { return nodes_[v].parent != kNone; }
  NodeId parent(NodeId v) const { return nodes_[v].parent; }
  TreeArc arc(NodeId v) const { return {nodes_[v].arc, nodes_[v].up, nodes_[v].down}; }
  // threaded nodes of the subtree of v; 0: an outer leaf
  std::uint32_t size(NodeId v) const { return nodes_[v].size; }
  NodeId next(NodeId v) const { return thread_[v]; }
  bool outer(NodeId v) const { return outer_[v] != 0; }

  // For building the tree: `parent` is attached, v is not. Afterwards call `finish` once.
  void attach(NodeId v, NodeId parent, const TreeArc& arc, std::int64_t price) {
    Node& node = nodes_[v];
    node.parent = parent;
    node.size = 1;
    set_arc(node, arc);
    price_[v] = price;
    if (outer_[v] != 0) set_reference(v, parent, price - price_[parent]);
  }

  // Threads the tree, siblings in order of ids, so that large subtrees are walked nearly in order
  // of memory. `order`: all nodes but the root, parents before children.
  void finish(const std::vector<NodeId>& order, const Control& control) {
    CancellationChecker checker(control);
    for (auto v = order.rbegin(); v != order.rend(); ++v) {
      checker.step_until_cancelled({});
      Node& node = nodes_[*v];
      if (outer_[*v] != 0 && node.size == 1) node.size = 0;
      nodes_[node.parent].size += node.size;
    }
    // For now, a node's thread is its first child, `back` its next sibling, `last` its last child.
    for (NodeId v = root_; v-- > 0;) {
      checker.step_until_cancelled({});
      Node& node = nodes_[v];
      if (node.size == 0) continue;
      Node& parent = nodes_[node.parent];
      back_[v] = thread_[node.parent];
      thread_[node.parent] = v;
      if (parent.last == kNone) parent.last = v;
    }
    std::vector<NodeId> pending{root_};
    NodeId before = root_;
    bool first = true;
    while (!pending.empty()) {
      checker.step_until_cancelled({});
      const NodeId v = pending.back();
      pending.pop_back();
      if (v != root_ && back_[v] != kNone) pending.push_back(back_[v]);
      if (thread_[v] != kNone) pending.push_back(thread_[v]);
      if (!first) link(before, v);
      before = v;
      first = false;
    }
    link(before, root_);
    for (auto v = order.rbegin(); v != order.rend(); ++v) {
      checker.step_until_cancelled({});
      end_at_last_child(*v);
    }
    end_at_last_child(root_);
  }

  Cycle find_cycle(NodeId k, NodeId l) const {
    Cycle find_cycle;
    while (k != l) {  // bounded: by the depth of the tree
      ++find_cycle.length;
      if (nodes_[k].size < nodes_[l].size) {
        if (nodes_[k].down < find_cycle.down_room) {
          find_cycle.down_room = nodes_[k].down;
          find_cycle.down_node = k;
        }
        k = nodes_[k].parent;
      } else {
        if (nodes_[l].up <= find_cycle.up_room) {
          find_cycle.up_room = nodes_[l].up;
          find_cycle.up_node = l;
        }
        l = nodes_[l].parent;
      }
    }
    find_cycle.apex = k;
    return find_cycle;
  }

  void push_on_cycle(NodeId k, NodeId l, NodeId apex, std::int64_t amount) {
    for (; k != apex; k = nodes_[k].parent) {  // bounded: by the depth of the tree
      nodes_[k].down -= amount;
      nodes_[k].up += amount;
    }
    for (; l != apex; l = nodes_[l].parent) {  // bounded: by the depth of the tree
      nodes_[l].up -= amount;
      nodes_[l].down += amount;
    }
  }

  // The tree arc of `out` leaves. The subtree below it is attached to `parent` by `arc`, reversed
  // so that `in` is its top. `apex`: where the paths up from `in` and `parent` meet. Prices of the
  // subtree move by `shift`, relative to the others'. Returns how many prices were changed.
  std::int64_t exchange(NodeId in, NodeId parent, NodeId out, NodeId apex, const TreeArc& arc,
                        std::int64_t shift) {
    if (nodes_[in].size == 0) {
      if (in == out) {
        nodes_[in].parent = parent;
        set_arc(nodes_[in], arc);
        set_reference(in, parent, price(in) + shift - price_[parent]);
        return 1;
      }
      thread_in(in);
    }
    if (nodes_[parent].size == 0) thread_in(parent);
    const NodeId old_parent = nodes_[out].parent;
    const std::uint32_t total = nodes_[out].size;
    const NodeId end = reverse_path(in, parent, out, arc, shift);
    for (NodeId v = old_parent; v != apex; v = nodes_[v].parent) nodes_[v].size -= total;
    for (NodeId v = parent; v != apex; v = nodes_[v].parent) nodes_[v].size += total;
    const std::int64_t moved = move_prices(in, end, total, shift);
    for (NodeId v : {out, old_parent}) {
      if (outer_[v] != 0 && nodes_[v].size == 1) thread_out(v);
    }
    return moved;
  }

  // Attaches v and its subtree to the root by an artificial arc, at a price `above` the root's.
  // Returns as `exchange`.
  std::int64_t attach_subtree(NodeId v, const TreeArc& arc, std::int64_t above) {
    return exchange(v, root_, v, root_, arc, above + price_[root_] - price(v));
  }

  void set_arc(NodeId v, const TreeArc& arc) { set_arc(nodes_[v], arc); }

  // Moves the prices of v and its subtree by `shift`, relative to the others'. Returns how many
  // were changed.
  std::int64_t shift_prices(NodeId v, std::int64_t shift) {
    if (outer_[v] != 0) above_[v] += shift;
    return nodes_[v].size == 0 ? 1 : move_prices(v, nodes_[v].last, nodes_[v].size, shift);
  }

  // Computes all prices again from the costs of tree arcs. Prices of nodes attached to the root by
  // artificial arcs stay. The stored value of such an outer node need not be its price.
  template <class PriceBelow>  // (v, price of its parent) -> price of v
  void reprice(PriceBelow price_below, CancellationChecker& checker) {
    for (NodeId v = thread_[root_]; v != root_; v = thread_[v]) {
      checker.step_until_cancelled({});
      if (nodes_[v].arc == kNone) continue;
      price_[v] = price_below(v, price(nodes_[v].parent));
      if (outer_[v] != 0) above_[v] = price_[v] - price_[nodes_[v].parent];
    }
  }

  // v has arcs into it from now on.
  void make_inner(NodeId v) {
    if (outer_[v] == 0) return;
    const std::int64_t now = price(v);
    if (nodes_[v].size == 0) thread_in(v);
    price_[v] = now;
    set_reference(v, v, 0);
    outer_[v] = 0;
  }
  // v has no arcs left: it is a leaf at the root.
  void make_outer(NodeId v) {
    if (outer_[v] != 0) return;
    outer_[v] = 1;
    set_reference(v, root_, price_[v] - price_[root_]);
    thread_out(v);
  }

  // Makes room for ids up to `nodes`: unused ones are attached to the root by `arc`, at a price
  // `above` the root's. The root gets another id. O(nodes).
  void make_room(NodeId nodes, const TreeArc& arc, std::int64_t above) {
    const NodeId before = root_;
    const auto renamed = [=](NodeId v) { return v == before ? nodes : v; };
    nodes_.resize(nodes + std::size_t{1});
    thread_.resize(nodes + std::size_t{1});
    back_.resize(nodes + std::size_t{1});
    price_.resize(nodes + std::size_t{1});
    above_.resize(nodes + std::size_t{1});
    reference_.resize(nodes + std::size_t{1});
    outer_.resize(nodes + std::size_t{1}, 1);
    for (NodeId v = 0; v <= before; ++v) {
      Node& node = nodes_[v];
      if (node.parent != kNone) node.parent = renamed(node.parent);
      if (back_[v] != kNone) back_[v] = renamed(back_[v]);
      if (node.last != kNone) node.last = renamed(node.last);
      if (thread_[v] != kNone) thread_[v] = renamed(thread_[v]);
      reference_[v] = renamed(reference_[v]);
    }
    nodes_[nodes] = nodes_[before];
    thread_[nodes] = thread_[before];
    back_[nodes] = back_[before];
    price_[nodes] = price_[before];
    above_[nodes] = 0;
    reference_[nodes] = nodes;
    outer_[nodes] = 0;
    root_ = nodes;
    for (NodeId v = before; v < nodes; ++v) {
      nodes_[v] = Node{};
      nodes_[v].parent = root_;
      set_arc(nodes_[v], arc);
      thread_[v] = back_[v] = kNone;
      price_[v] = 0;
      outer_[v] = 1;
      set_reference(v, root_, above);
    }
  }

 private:
  struct Node {
    std::int64_t up = 0, down = 0;
    ArcId arc = kNone;
    NodeId parent = kNone;
    NodeId last = kNone;
    std::uint32_t size = 0;
  };
  static_assert(sizeof(Node) == 32);  // two a cache line: walks up the tree read nothing else
  static constexpr std::int64_t kMaxDrift = 2 * kMaxPathCost;

  static void set_arc(Node& node, const TreeArc& arc) {
    node.arc = arc.arc;
    node.up = arc.up;
    node.down = arc.down;
  }
  void end_at_last_child(NodeId v) {
    nodes_[v].last = nodes_[v].last == kNone ? v : nodes_[nodes_[v].last].last;
  }
  void link(NodeId a, NodeId b) {
    thread_[a] = b;
    back_[b] = a;
  }

  void set_reference(NodeId v, NodeId parent, std::int64_t above) {
    reference_[v] = parent;
    above_[v] = above;
  }

  // An outer node enters the thread before it gets its first child, and leaves it with its last
  // one.
  void thread_in(NodeId v) {
    const NodeId parent = nodes_[v].parent, after = thread_[parent];
    price_[v] = price(v);
    nodes_[v].size = 1;
    nodes_[v].last = v;
    link(parent, v);
    link(v, after);
    for (NodeId u = parent; u != kNone && nodes_[u].last == parent; u = nodes_[u].parent)
      nodes_[u].last = v;
    for (NodeId u = parent; u != kNone; u = nodes_[u].parent) ++nodes_[u].size;
  }
  void thread_out(NodeId v) {
    const NodeId before = back_[v];
    link(before, thread_[v]);
    for (NodeId u = nodes_[v].parent; u != kNone && nodes_[u].last == v; u = nodes_[u].parent)
      nodes_[u].last = before;
    for (NodeId u = v; u != kNone; u = nodes_[u].parent) --nodes_[u].size;
  }

  // Reverses the path in..out, threads the subtree again and puts it after `parent`. Does not
  // update the sizes of nodes outside. Returns the last node of the subtree. From `in` up, each
  // node of the path comes first in its block of the thread, which is cut in two by the block of
  // the node below it.
  NodeId reverse_path(NodeId in, NodeId parent, NodeId out, TreeArc arc, std::int64_t shift) {
    const NodeId old_parent = nodes_[out].parent, old_last = nodes_[out].last;
    const std::uint32_t total = nodes_[out].size;
    NodeId end = kNone;  // end of the new thread
    NodeId below_before = kNone, below_after = kNone, below_last = kNone, above = parent;
    std::uint32_t below_size = 0;
    for (NodeId v = in;;) {  // bounded: by the depth of the tree
      Node& node = nodes_[v];
      const NodeId next = node.parent, before = back_[v];
      const NodeId after = node.last == below_last ? below_after : thread_[node.last];
      const std::uint32_t size = node.size;
      const TreeArc reversed{node.arc, node.down, node.up};
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
      if (outer_[v] != 0) set_reference(v, above, price(v) + (v == in ? shift : 0) - price_[above]);
      node.parent = above;
      node.size = total - below_size;
      set_arc(node, arc);
      below_before = before;
      below_after = after;
      below_last = node.last;
      below_size = size;
      arc = reversed;
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
    for (NodeId v = parent; v != kNone && nodes_[v].last == parent; v = nodes_[v].parent)
      nodes_[v].last = end;
    return end;
  }

  // Only differences of prices matter, so the smaller part is changed; the root's price shows how
  // far all have drifted.
  std::int64_t move_prices(NodeId first, NodeId last, std::uint32_t size, std::int64_t shift) {
    const std::uint32_t others = nodes_[root_].size - size;
    if (size <= others) {
      for (NodeId v = first;; v = thread_[v]) {
        price_[v] += shift;
        if (v == last) return size;
      }
    }
    for (NodeId v = thread_[last]; v != first; v = thread_[v]) price_[v] -= shift;
    if (price_[root_] > kMaxDrift || price_[root_] < -kMaxDrift) {
      const std::int64_t drift = price_[root_];
      for (NodeId v = 0; v <= root_; ++v) price_[v] = outer_[v] != 0 ? 0 : price_[v] - drift;
    }
    return others;
  }

  NodeId root_;
  std::vector<std::uint8_t> outer_;
  LargeArray<Node> nodes_;
  LargeArray<NodeId> thread_, back_;  // the node after, and the one before
  LargeArray<std::int64_t> price_;    // maintained for inner nodes
  LargeArray<std::int64_t> above_;
  LargeArray<NodeId> reference_;
};

}  // namespace flowsolver
