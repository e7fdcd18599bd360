// How a spanning tree (spanning_tree.hpp) is built and grows, and how a path of it is reversed.
#include "simplex/spanning_tree.hpp"

namespace flowsolver {

SpanningTree::SpanningTree(std::vector<std::uint8_t> outer, const Control& control)
    : root_(static_cast<NodeId>(outer.size())),
      outer_(std::move(outer)),
      nodes_(root_ + 1),
      thread_(root_ + 1),
      price_(root_ + 1),
      above_(root_ + 1),
      reference_(root_ + 1) {
  outer_.push_back(0);
  CancellationChecker checker(control);
  for (NodeId v = 0; v <= root_; ++v) {
    checker.step_until_cancelled({});
    nodes_[v] = Node{};
    thread_[v] = kNone;
    price_[v] = 0;
    above_[v] = 0;
    reference_[v] = v;
  }
  nodes_[root_].size = 1;
}

void SpanningTree::finish(const std::vector<NodeId>& order, const Control& control) {
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
    node.back = thread_[node.parent];
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
    if (v != root_ && nodes_[v].back != kNone) pending.push_back(nodes_[v].back);
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

void SpanningTree::make_room(NodeId nodes, const TreeArc& arc, std::int64_t above) {
  const NodeId before = root_;
  const auto renamed = [=](NodeId v) { return v == before ? nodes : v; };
  nodes_.resize(nodes + std::size_t{1});
  thread_.resize(nodes + std::size_t{1});
  price_.resize(nodes + std::size_t{1});
  above_.resize(nodes + std::size_t{1});
  reference_.resize(nodes + std::size_t{1});
  outer_.resize(nodes + std::size_t{1}, 1);
  for (NodeId v = 0; v <= before; ++v) {
    Node& node = nodes_[v];
    if (node.parent != kNone) node.parent = renamed(node.parent);
    if (node.back != kNone) node.back = renamed(node.back);
    if (node.last != kNone) node.last = renamed(node.last);
    if (thread_[v] != kNone) thread_[v] = renamed(thread_[v]);
    reference_[v] = renamed(reference_[v]);
  }
  nodes_[nodes] = nodes_[before];
  thread_[nodes] = thread_[before];
  price_[nodes] = price_[before];
  above_[nodes] = 0;
  reference_[nodes] = nodes;
  outer_[nodes] = 0;
  root_ = nodes;
  for (NodeId v = before; v < nodes; ++v) {
    nodes_[v] = Node{};
    nodes_[v].parent = root_;
    set_arc(nodes_[v], arc);
    thread_[v] = kNone;
    price_[v] = 0;
    outer_[v] = 1;
    set_reference(v, root_, above);
  }
}

NodeId SpanningTree::reverse_path(NodeId in, NodeId parent, NodeId out, TreeArc arc,
                                  std::int64_t shift) {
  const NodeId old_parent = nodes_[out].parent, old_last = nodes_[out].last;
  const std::uint32_t total = nodes_[out].size;
  NodeId end = kNone;  // end of the new thread
  NodeId below_before = kNone, below_after = kNone, below_last = kNone, above = parent;
  std::uint32_t below_size = 0;
  for (NodeId v = in;;) {  // bounded: by the depth of the tree
    Node& node = nodes_[v];
    const NodeId next = node.parent, before = node.back;
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

}  // namespace flowsolver
