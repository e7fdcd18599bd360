// The tree of the network simplex, where its prices are numbered anew.
#include "check.hpp"
#include "simplex/spanning_tree.hpp"

using namespace flowsolver;

namespace {

// Node 0, a task, hangs from the root by an artificial arc, and node 1 from it by an arc.
void all_prices_anew_below_an_outer_node_after_a_drift() {
  const Control control;
  SpanningTree tree({1, 0}, control);
  const NodeId root = tree.root();
  const std::int64_t cost = 7;
  tree.attach(0, root, {kNone, 1, 0}, 5);
  tree.attach(1, 0, {0, 1, 0}, 5 - cost);
  tree.finish({0, 1}, control);
  // Most of the tree moves, so the others do instead: the root's price leaves its range, and all
  // are brought back.
  for (int k = 0; k < 3; ++k) tree.shift_prices(0, -kMaxPathCost);
  CHECK(tree.price(root) == 0);
  CHECK(tree.price(0) - tree.price(root) == 5 - 3 * kMaxPathCost);
  CHECK(tree.price(0) - tree.price(1) == cost);
  CancellationChecker checker(control);
  tree.reprice([](NodeId, std::int64_t above) { return above - (cost + 1); }, checker);
  CHECK(tree.price(0) - tree.price(root) == 5 - 3 * kMaxPathCost);
  CHECK(tree.price(0) - tree.price(1) == cost + 1);
}

}  // namespace

int main() {
  all_prices_anew_below_an_outer_node_after_a_drift();
  return 0;
}
