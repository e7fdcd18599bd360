// Subtrees that changes have cut off from the spanning tree and attached to the root by artificial
// arcs, and the pivots that rejoin them (simplex_engine.hpp, "A resolve").
#pragma once

#include <vector>

#include "graph/arc_lists.hpp"
#include "simplex/simplex_pivots.hpp"
#include "simplex/spanning_tree.hpp"

namespace flowsolver {

template <class Observer>
class CutSubtrees {
 public:
  CutSubtrees(const Network& network, const ArcLists& lists, SpanningTree& tree,
              SimplexPivots<Observer>& pivots)
      : network_(network), lists_(lists), tree_(tree), pivots_(pivots) {}

  // The subtree of `top` was cut off. `moved`: how far its price moved by that, relative to the
  // others'.
  void add(NodeId top, std::int64_t moved) { cuts_.push_back({top, moved}); }

  // Rejoins all of them, as far as kMaxRejoins pivots each suffice; pricing must do the rest.
  Status rejoin_all(PivotWork& work) {
    while (!cuts_.empty()) {
      const Cut cut = cuts_.back();
      cuts_.pop_back();
      for (int left = kMaxRejoins; left > 0 && tree_.arc(cut.top).arc == kNone; --left) {
        const ArcId a = best_rejoining_arc(cut, work);
        if (a == kNone) break;
        if (const Status status = pivots_.pivot(work, a); status != Status::kOptimal) return status;
      }
    }
    return Status::kOptimal;
  }

 private:
  struct Cut {
    NodeId top;
    std::int64_t moved;
  };
  static constexpr std::int64_t kMaxArcsScanned = 1 << 12;
  static constexpr int kMaxRejoins = 16;

  // The most violated of the arcs at the subtree below the artificial arc, or, when kMaxArcsScanned
  // were scanned, of those: so the others' prices stay as near as possible to what they were. At
  // the artificial arc's cost, all arcs to the rest are violated.
  ArcId best_rejoining_arc(const Cut& cut, PivotWork& work) {
    ArcId best = kNone;
    std::int64_t worst = 0, left = kMaxArcsScanned;
    const auto consider = [&](ArcId a) {
      --left;
      if (pivots_.violation(a) >= worst) return;
      worst = pivots_.violation(a);
      best = a;
    };
    const auto each = [&](auto visit) {
      NodeId v = cut.top;
      visit(v);
      for (std::uint32_t rest = tree_.size(cut.top); rest > 1 && left > 0 && worst > -cut.moved;
           --rest) {
        visit(v = tree_.next(v));
      }
    };
    each([&](NodeId v) {
      lists_.for_each_out(v, consider, [&] { return left > 0 && worst > -cut.moved; });
    });
    if (worst > -cut.moved) {
      each([&](NodeId v) {
        const auto should_continue = [&] { return left > 0 && worst > -cut.moved; };
        lists_.for_each_in(
            v,
            [&](ArcId a) {
              consider(a);
              const NodeId tail = network_.tail[a];
              if (tree_.size(tail) == 0 && tree_.arc(tail).arc == a)
                lists_.for_each_out(tail, consider, should_continue);
            },
            should_continue);
      });
    }
    work.stats.scanned += kMaxArcsScanned - left;
    return best;
  }

  const Network& network_;
  const ArcLists& lists_;
  SpanningTree& tree_;
  SimplexPivots<Observer>& pivots_;
  std::vector<Cut> cuts_;
};

}  // namespace flowsolver
