#include "role_tree.hpp"

#include <stdexcept>

namespace agora {

namespace {

constexpr std::string_view kFrameworks = ".";

// A product of three factors of 63 bits.
struct Product {
  Product(int64_t a, int64_t b, int64_t c) {
    const Uint128 two = static_cast<Uint128>(a) * static_cast<Uint128>(b);
    const auto third = static_cast<Uint128>(c);
    const Uint128 lower = static_cast<uint64_t>(two) * third;
    high = (two >> 64) * third + (lower >> 64);
    low = static_cast<uint64_t>(lower);
  }
  bool operator<(const Product& other) const {
    return high != other.high ? high < other.high : low < other.low;
  }

  Uint128 high;
  uint64_t low;
};

}  // namespace

bool is_smaller_share(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f) {
  return Product(a, e, f) < Product(d, b, c);
}

RoleTree::RoleTree(size_t width, bool random) : random_(random), total_(width) {
  nodes_.emplace_back().charged.resize(width);
}

int32_t RoleTree::child(int32_t parent, std::string_view name) const {
  for (const int32_t one : nodes_[index(parent)].children)
    if (nodes_[index(one)].name == name) return one;
  return kNone;
}

int32_t RoleTree::add(int32_t parent, std::string name) {
  const auto made = static_cast<int32_t>(nodes_.size());
  Node& node = nodes_.emplace_back();
  node.name = std::move(name);
  node.parent = parent;
  node.charged.resize(total_.size());
  nodes_[index(parent)].children.push_back(made);
  return made;
}

int32_t RoleTree::role(std::string_view path) {
  int32_t at = 0;
  for (size_t from = 0; from <= path.size();) {
    const size_t end = std::min(path.find('/', from), path.size());
    const std::string_view part = path.substr(from, end - from);
    if (part.empty() || part == kFrameworks)
      throw std::invalid_argument("role \"" + std::string(path) +
                                  "\": expected names joined by slashes");
    const int32_t known = child(at, part);
    at = known != kNone ? known : add(at, std::string(part));
    from = end + 1;
  }
  return at;
}

void RoleTree::set_weight(int32_t role, int64_t permille) {
  if (permille < 1) throw std::invalid_argument("weight_permille: expected 1 or more");
  nodes_[index(role)].weight = permille;
  charge(role, std::vector<int64_t>(total_.size()).data(), 0, 0);
}

int32_t RoleTree::add_leaf(int32_t role, std::string name, int32_t framework) {
  int32_t group = child(role, kFrameworks);
  if (group == kNone) group = add(role, std::string(kFrameworks));
  if (child(group, name) != kNone)
    throw std::invalid_argument("framework \"" + name + "\": its role has one of that name");
  const int32_t leaf = add(group, std::move(name));
  nodes_[index(leaf)].framework = framework;
  return leaf;
}

int32_t RoleTree::top(int32_t node) const {
  while (nodes_[index(node)].parent != 0) node = nodes_[index(node)].parent;
  return node;
}

void RoleTree::set_eligible(int32_t leaf, bool eligible) {
  const int32_t change = int32_t{eligible} - nodes_[index(leaf)].eligible;
  if (change == 0) return;
  settle();  // places are searched for among those in order
  for (int32_t at = leaf; at != kNone; at = nodes_[index(at)].parent) {
    Node& node = nodes_[index(at)];
    const int32_t before = std::exchange(node.eligible, node.eligible + change);
    if (at == 0) continue;
    if (before == 0) place(at);
    if (node.eligible == 0) std::erase(siblings_of(at), at);
  }
}

void RoleTree::set_total(std::span<const int64_t> total) {
  total_.assign(total.begin(), total.end());
  moved_.clear();
  for (Node& node : nodes_) {
    node.moved = false;
    node.moved_children = 0;
    compute_share(node);
  }
  for (Node& node : nodes_)
    std::ranges::sort(node.order,
                      [this](int32_t one, int32_t other) { return is_before(one, other); });
}

void RoleTree::charge(int32_t lowest, const int64_t* amount, int64_t sign, int64_t charges) {
  for (int32_t at = lowest; at != kNone; at = nodes_[index(at)].parent) {
    Node& node = nodes_[index(at)];
    add(node, amount, sign, charges);
    if (node.moved || at == 0) continue;
    node.moved = true;
    nodes_[index(node.parent)].moved_children += node.eligible > 0;
    moved_.push_back(at);
  }
}

void RoleTree::settle() {
  for (const int32_t one : moved_) compute_share(nodes_[index(one)]);
  // Where several siblings moved, all of them leave before one comes back, since places are
  // searched for among those in order. Names stay in order.
  const auto is_in_order = [&](int32_t one) { return random_ || nodes_[index(one)].eligible == 0; };
  const auto is_alone = [&](int32_t one) {
    return nodes_[index(nodes_[index(one)].parent)].moved_children == 1;
  };
  for (const int32_t one : moved_)
    if (!is_in_order(one) && !is_alone(one)) std::erase(siblings_of(one), one);
  for (const int32_t one : moved_)
    if (!is_in_order(one)) is_alone(one) ? move_alone(one) : place(one);
  for (const int32_t one : moved_) {
    nodes_[index(one)].moved = false;
    nodes_[index(nodes_[index(one)].parent)].moved_children = 0;
  }
  moved_.clear();
}

int32_t RoleTree::only_group() const {
  const auto is_leaf = [this](int32_t node) { return nodes_[index(node)].framework != kNone; };
  int32_t at = 0;
  const auto order = [&] { return std::span(nodes_[index(at)].order); };
  while (order().size() == 1 && !is_leaf(order().front())) at = order().front();
  return std::ranges::all_of(order(), is_leaf) ? at : kNone;
}

// A charge only moves it back.
void RoleTree::charge_leaf(int32_t group, size_t place, const int64_t* amount) {
  std::vector<int32_t>& order = nodes_[index(group)].order;
  const int32_t leaf = order[place];
  Node& node = nodes_[index(leaf)];
  add(node, amount, +1, 1);
  compute_share(node);
  const auto next = order.begin() + static_cast<std::ptrdiff_t>(place) + 1;
  if (next == order.end() || !is_before(*next, leaf)) return;
  const auto before = [this](int32_t one, int32_t other) { return is_before(one, other); };
  const auto to = std::lower_bound(next + 1, order.end(), leaf, before);
  *std::copy(next, to, next - 1) = leaf;
}

void RoleTree::place(int32_t node) {
  std::vector<int32_t>& siblings = siblings_of(node);
  const auto before = [this](int32_t one, int32_t other) { return is_before(one, other); };
  siblings.insert(std::ranges::lower_bound(siblings, node, before), node);
}

// Moves a node to its place among siblings that are in order.
void RoleTree::move_alone(int32_t node) {
  std::vector<int32_t>& siblings = siblings_of(node);
  if (siblings.size() == 1) return;
  const auto before = [this](int32_t one, int32_t other) { return is_before(one, other); };
  const auto at = std::ranges::find(siblings, node), next = at + 1;
  if (next != siblings.end() && is_before(*next, node)) {
    std::rotate(at, next, std::lower_bound(next, siblings.end(), node, before));
  } else if (at != siblings.begin() && is_before(node, *(at - 1))) {
    std::rotate(std::lower_bound(siblings.begin(), at, node, before), at, next);
  }
}

bool RoleTree::Node::is_before(const Node& b) const {
  const Node& a = *this;
  if (a.share == 0 || b.share == 0 || (a.share_of == b.share_of && a.weight == b.weight)) {
    if (a.share != b.share) return a.share < b.share;
  } else {
    const auto is_less = [](const Node& x, const Node& y) {
      return is_smaller_share(x.share, x.share_of, x.weight, y.share, y.share_of, y.weight);
    };
    if (is_less(a, b)) return true;
    if (is_less(b, a)) return false;
  }
  if (a.charges != b.charges) return a.charges < b.charges;
  return a.name < b.name;
}

void RoleTree::compute_share(Node& node) const {
  node.share = 0;
  node.share_of = 1;
  for (size_t r = 0; r < total_.size(); ++r) {
    if (total_[r] <= 0) continue;
    const auto product = [](int64_t x, int64_t y) {
      return static_cast<Uint128>(x) * static_cast<Uint128>(y);
    };
    if (node.share == 0 ? node.charged[r] == 0
                        : product(node.share, total_[r]) >= product(node.charged[r], node.share_of))
      continue;
    node.share = node.charged[r];
    node.share_of = total_[r];
  }
}

int64_t RoleTree::share_ppm(int32_t node) const {
  const Node& of = nodes_[index(node)];
  return static_cast<int64_t>(static_cast<Uint128>(of.share) * 1'000'000 /
                              static_cast<Uint128>(of.share_of));
}

}  // namespace agora
