// The order in which roles, and the frameworks of each role, are served: the sorters of Mesos's
// allocator (apache/mesos, src/master/allocator/mesos/sorter), with exact fractions.
//
//   root --- role "batch" ------------------- "." --- frameworks of "batch"
//        \-- role "service" --- role "web" -- "." --- frameworks of "service/web"
//                           \-- "." --- frameworks of "service"
//
// A node is charged with what the frameworks below it have. Its share is its dominant share
// (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011), the largest quotient of charge and
// total over the resources, divided by its weight. Siblings are ordered by share, then by number
// of charges, then by name; or they are shuffled, by weight, whenever the order is asked for.
//
// Invariants: the charge and the number of charges of a node are the sums over its children. Of the
// children, only those are in order below which a leaf is eligible: the others cost a charge
// nothing. After settle() they are in order, so that a charge moves one node per level, and mostly
// none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared_state/native/random.hpp"

namespace agora {

// Whether a / (b c) < d / (e f), exactly. Expects 0 <= a, d and 1 <= b, c, e, f.
bool is_smaller_share(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f);

class RoleTree {
 public:
  static constexpr int32_t kNone = -1;
  static constexpr int64_t kWeightOne = 1000;  // weights are in thousandths

  // width: how many resources. random: siblings are shuffled by weight.
  RoleTree(size_t width, bool random);

  // The role of a path such as "service/web", made if there is none. Throws std::invalid_argument
  // for an empty part of the path, and for a part that is ".".
  int32_t role(std::string_view path);
  void set_weight(int32_t role, int64_t permille);
  // A leaf below the role. framework: its number, or kNone for a leaf that is never visited.
  // Throws std::invalid_argument if the role has one of that name.
  int32_t add_leaf(int32_t role, std::string name, int32_t framework);
  // The ancestor of a node, or the node itself, that is a child of the root.
  int32_t top(int32_t node) const;

  // Only eligible leaves are visited. They are not when they are made.
  void set_eligible(int32_t leaf, bool eligible);
  // What shares are of, by resource. A resource of which there is none does not count.
  void set_total(std::span<const int64_t> total);
  // Adds to the charge of a node, mostly a leaf, and of all above it. The order changes at
  // settle().
  void charge(int32_t lowest, const int64_t* amount, int64_t sign, int64_t charges);
  void settle();
  // The node whose children all eligible leaves are, or kNone.
  int32_t only_group() const;
  // The eligible leaves of such a group, in order. Requires: settled.
  std::span<const int32_t> leaves(int32_t group) const { return nodes_[index(group)].order; }
  int32_t framework(int32_t leaf) const { return nodes_[index(leaf)].framework; }
  // Charges the leaf at a place among these, once, and moves it to its new place. The group is to
  // be charged as well, with the sum over its leaves, and the tree settled, before it is used
  // otherwise. Requires: leaves are not shuffled.
  void charge_leaf(int32_t group, size_t place, const int64_t* amount);

  const int64_t* charged(int32_t node) const { return nodes_[index(node)].charged.data(); }
  int64_t charges(int32_t node) const { return nodes_[index(node)].charges; }
  // The dominant share, not divided by the weight, in millionths, rounded down. Requires: settled.
  int64_t share_ppm(int32_t node) const;

  // Calls visit(framework) for the eligible leaves in order, until it returns false. Requires:
  // settled. visit may charge; in its last call it may also change the order, and which leaves are
  // eligible. The stream is only used where siblings are shuffled.
  template <class Visit>
  void visit(Stream& stream, Visit&& visit) {
    shuffled_.clear();
    visit_below(0, stream, visit);
  }

 private:
  struct Node {
    bool is_before(const Node& other) const;

    std::string name;
    int32_t parent = kNone;
    int32_t framework = kNone;
    int64_t weight = kWeightOne;
    int64_t charges = 0;
    int64_t share = 0, share_of = 1;  // the dominant share, as a fraction
    int32_t eligible = 0;             // leaves below, or the leaf itself
    bool moved = false;               // charged since settle()
    uint32_t moved_children = 0;
    std::vector<int32_t> children;  // all
    std::vector<int32_t> order;     // those with eligible leaves
    std::vector<int64_t> charged;   // by resource
  };

  static size_t index(int32_t node) { return static_cast<size_t>(node); }
  int32_t child(int32_t parent, std::string_view name) const;
  int32_t add(int32_t parent, std::string name);
  bool is_before(int32_t one, int32_t other) const {
    const Node &a = nodes_[index(one)], &b = nodes_[index(other)];
    if (!random_ && a.share_of == b.share_of && a.weight == b.weight && a.share != b.share)
      return a.share < b.share;  // mostly
    return random_ ? a.name < b.name : a.is_before(b);
  }
  void place(int32_t node);
  void move_alone(int32_t node);
  // In order, the node among them if it is eligible.
  std::vector<int32_t>& siblings_of(int32_t node) {
    return nodes_[index(nodes_[index(node)].parent)].order;
  }
  void add(Node& node, const int64_t* amount, int64_t sign, int64_t charges) const {
    node.charged[0] += sign * amount[0];  // there is mostly one: no loop to set up
    for (size_t r = 1; r < total_.size(); ++r) node.charged[r] += sign * amount[r];
    node.charges += charges;
  }
  void compute_share(Node& node) const;

  template <class Visit>
  bool visit_below(int32_t at, Stream& stream, Visit& visit) {
    if (!random_)  // through nodes that are alone
      while (nodes_[index(at)].order.size() == 1) at = nodes_[index(at)].order.front();
    const Node& node = nodes_[index(at)];
    if (node.framework != kNone) return visit(node.framework);
    if (random_) return visit_shuffled(node, stream, visit);
    for (const int32_t next : node.order)
      if (!visit_below(next, stream, visit)) return false;
    return true;
  }

  // Draws one child after the other, each with a probability in proportion to its weight.
  template <class Visit>
  bool visit_shuffled(const Node& node, Stream& stream, Visit& visit) {
    const size_t first = shuffled_.size();
    int64_t weights = 0;
    for (const int32_t next : node.order) {
      shuffled_.push_back(next);
      weights += nodes_[index(next)].weight;
    }
    bool goes_on = true;
    for (size_t left = shuffled_.size() - first; goes_on && left > 0; --left) {
      auto rest = static_cast<int64_t>(stream.below(static_cast<uint64_t>(weights)));
      auto drawn = shuffled_.begin() + static_cast<std::ptrdiff_t>(first);
      for (; rest >= nodes_[index(*drawn)].weight; ++drawn) rest -= nodes_[index(*drawn)].weight;
      const int32_t next = *drawn;
      shuffled_.erase(drawn);
      weights -= nodes_[index(next)].weight;
      goes_on = visit_below(next, stream, visit);
    }
    shuffled_.resize(first);
    return goes_on;
  }

  const bool random_;
  std::vector<Node> nodes_;  // the root is the first
  std::vector<int64_t> total_;
  std::vector<int32_t> moved_;
  std::vector<int32_t> shuffled_;  // of the levels being visited: the children still to be drawn
};

}  // namespace agora
