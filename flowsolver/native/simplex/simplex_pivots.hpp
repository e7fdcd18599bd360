// The pivots of the primal network simplex (network_simplex.hpp): pricing arcs, and sending flow
// around the cycles they close. Shared by the solve from scratch and the engine that handles
// changes.
//
// Arcs that changed are priced first. Then blocks of arcs are taken in turn, until all blocks in a
// row hold no entering arc. That count persists between runs, so that runs with small budgets reach
// the end.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "control.hpp"
#include "simplex/simplex_start.hpp"
#include "simplex/spanning_tree.hpp"

namespace flowsolver {

// The work counted by a run, and its cancellation checks.
struct PivotWork {
  PivotWork(const Control& control, Stats& counted) : stats(counted), checker(control) {}
  Stats& stats;
  CancellationChecker checker;
};

// `Observer` gets flow_moves(arc, flow now, change) before the flow of an arc changes, and
// prices_moved(node) before the prices of a subtree change.
template <class Observer>
class SimplexPivots {
 public:
  // `flow` holds the flow of arcs outside the tree. All arguments outlive this object and change as
  // the operations below say.
  SimplexPivots(const Network& network, std::vector<std::int64_t>& flow, SpanningTree& tree,
                Observer observer)
      : network_(network), flow_(flow), tree_(tree), observer_(observer) {}

  // Finds the states of all arcs.
  Status classify(PivotWork& work) {
    extend();
    for (ArcId a = 0; a < network_.num_arcs(); ++a) {
      if (const Status status = work.checker.step(work.stats); status != Status::kOptimal)
        return status;
      classify(a);
    }
    return Status::kOptimal;
  }

  // Pivots until no arc enters. Then all artificial arcs are empty, or the network is infeasible.
  Status run(PivotWork& work) {
    Status status = settle_between(work);
    while (status == Status::kOptimal) {
      ArcId entering = kNone;
      status = choose(work, entering);
      if (entering == kNone) break;
      status = pivot(work, entering);
    }
    return status;
  }

  // Changes. The arc is new, or has another flow, capacity or cost, and is not in the tree: finds
  // its state.
  void reclassify(ArcId a) {
    if (a >= state_.size()) extend();
    classify(a);
    if (state_[a] == kInside) return;
    if (new_nodes_.size() < state_.size() / 8) new_nodes_.push_back(a);
    blocks_without_entering_ = 0;
  }
  // The arc was removed, or is in the tree.
  void forget(ArcId a) { state_[a] = kInside; }
  // Prices have moved other than by pivots: all blocks must be priced again.
  void price_all_again() { blocks_without_entering_ = 0; }

  // v has `excess` that no arc carries yet. It is sent over the tree to the root as far as possible
  // (if negative, it is drawn from there); the rest goes over an artificial arc, which then is v's
  // tree arc. Returns by how much the price of v moved.
  std::int64_t route_excess(NodeId v, std::int64_t excess, std::int64_t artificial_cost,
                            Stats& stats) {
    const bool up = excess > 0;
    const NodeId k = up ? tree_.root() : v, l = up ? v : tree_.root();
    const SpanningTree::Cycle cycle = tree_.find_cycle(k, l);
    const std::int64_t most = up ? excess : -excess;
    const std::int64_t room = up ? cycle.up_room : cycle.down_room;
    const std::int64_t amount = std::min(most, room), rest = most - amount;
    stats.scanned += cycle.length;
    push(k, l, cycle.apex, amount);
    // of equally restrictive arcs, the last along the flow leaves
    if (up ? room > most : room >= most) return 0;
    const NodeId out = up ? cycle.up_node : cycle.down_node;
    leave(out, up);
    const std::int64_t price =
        tree_.price(tree_.root()) + (up ? artificial_cost : -artificial_cost);
    const SpanningTree::TreeArc arc{kNone, up ? kArtificialCapacity - rest : rest,
                                    up ? rest : kArtificialCapacity - rest};
    const std::int64_t shift = price - tree_.price(v);
    stats.scanned += tree_.exchange(v, tree_.root(), out, tree_.root(), arc, shift);
    observer_.prices_moved(v);
    blocks_without_entering_ = 0;
    return shift;
  }
  // The arc enters. Precondition: violation(a) < 0.
  Status pivot(PivotWork& work, ArcId a) {
    return push_around_cycle(work, a, state_[a] == kLower, network_.capacity[a], 0);
  }
  // Negative if the arc may enter.
  std::int64_t violation(ArcId a) const { return state_[a] * reduced_cost(a); }

  // Replaces v's tree arc by an artificial one, at a price `above` the root's.
  void attach_subtree(NodeId v, const SpanningTree::TreeArc& arc, std::int64_t above,
                      Stats& stats) {
    stats.scanned += tree_.attach_subtree(v, arc, above);
    observer_.prices_moved(v);
    blocks_without_entering_ = 0;
  }

  bool in_tree(ArcId a) const {
    return state_[a] == kInside &&
           (tree_.arc(network_.tail[a]).arc == a || tree_.arc(network_.head[a]).arc == a);
  }
  // The node whose tree arc it is. Precondition: in_tree.
  NodeId child(ArcId a) const {
    return tree_.arc(network_.tail[a]).arc == a ? network_.tail[a] : network_.head[a];
  }
  // The flow of v's tree arc, which is an arc of the network.
  std::int64_t tree_flow(NodeId v) const {
    const SpanningTree::TreeArc arc = tree_.arc(v);
    return network_.tail[arc.arc] == v ? arc.down : arc.up;
  }
  std::int64_t flow(ArcId a) const { return in_tree(a) ? tree_flow(child(a)) : flow_[a]; }
  std::int64_t reduced_cost(ArcId a) const {
    return network_.cost[a] - tree_.price(network_.tail[a]) + tree_.price(network_.head[a]);
  }

 private:
  // kInside: in the tree, or never enters
  enum State : std::int8_t { kUpper = -1, kInside = 0, kLower = 1 };
  static constexpr ArcId kMinBlock = 64;

  // Blocks of about sqrt(m) / 8 arcs, since a pivot that moves few prices costs little more than
  // pricing that many. They are taken in strides of the golden ratio, so that each block is from
  // another part of the network than those before.
  void extend() {
    const std::uint64_t m = network_.num_arcs();
    state_.resize(m, kInside);
    while (64 * std::uint64_t{block_} * block_ < m) ++block_;
    blocks_ = static_cast<ArcId>((m + block_ - 1) / block_);
    stride_ = static_cast<ArcId>(std::max<std::uint64_t>(1, std::uint64_t{blocks_} * 618 / 1000));
    while (std::gcd(stride_, blocks_) > 1) ++stride_;
    next_ = 0;
    blocks_without_entering_ = 0;
  }

  // Arcs between their bounds wait to be pushed to one, or into the tree.
  void classify(ArcId a) {
    const std::int64_t capacity = network_.capacity[a];
    state_[a] = kInside;
    if (network_.tail[a] == network_.head[a]) {
      flow_[a] = network_.cost[a] < 0 ? capacity : 0;
    } else if (capacity > 0 && tree_.arc(network_.tail[a]).arc != a &&
               tree_.arc(network_.head[a]).arc != a) {
      if (flow_[a] > 0 && flow_[a] < capacity) between_.push_back(a);
      state_[a] = flow_[a] == 0 ? kLower : flow_[a] == capacity ? kUpper : kInside;
    }
  }

  Status settle_between(PivotWork& work) {
    while (!between_.empty()) {
      const ArcId a = between_.back();
      between_.pop_back();
      const std::int64_t used = flow_[a], room = network_.capacity[a] - used;
      // changed meanwhile
      if (state_[a] != kInside || used <= 0 || room <= 0 || in_tree(a)) continue;
      const bool forward = reduced_cost(a) <= 0;
      const Status status = forward ? push_around_cycle(work, a, true, room, used)
                                    : push_around_cycle(work, a, false, used, room);
      if (status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  Status choose(PivotWork& work, ArcId& entering) {
    while (!new_nodes_.empty()) {
      const std::size_t begin =
          new_nodes_.size() - std::min<std::size_t>(new_nodes_.size(), kMinBlock);
      std::int64_t worst = 0;
      for (std::size_t i = begin; i < new_nodes_.size(); ++i) {
        const ArcId a = new_nodes_[i];
        if (violation(a) < worst) {
          worst = violation(a);
          entering = a;
        }
      }
      const auto arcs_priced = static_cast<std::int64_t>(new_nodes_.size() - begin);
      work.stats.scanned += arcs_priced;
      if (entering != kNone) return Status::kOptimal;
      new_nodes_.resize(begin);
      if (const Status status = work.checker.step(work.stats, arcs_priced);
          status != Status::kOptimal)
        return status;
    }
    return price_out(work, entering);
  }

  // Finds the most violated arc of the next block that has one. There is no check between this
  // choice and the pivot, so that a run makes progress.
  Status price_out(PivotWork& work, ArcId& entering) {
    const auto m = static_cast<ArcId>(network_.num_arcs());
    const NodeId* tail = network_.tail.data();
    const NodeId* head = network_.head.data();
    const std::int64_t* cost = network_.cost.data();
    const std::int64_t* price = tree_.prices();
    const std::int64_t* above = tree_.above();
    const NodeId* reference = tree_.reference();
    const std::int8_t* state = state_.data();
    while (blocks_without_entering_ < blocks_) {
      const ArcId begin = next_ * block_, end = std::min(m, begin + block_);
      std::int64_t worst = 0;
      for (ArcId a = begin; a < end; ++a) {
        const NodeId t = tail[a];
        const std::int64_t violation =
            state[a] * (cost[a] - above[t] - price[reference[t]] + price[head[a]]);
        if (violation < worst) {
          worst = violation;
          entering = a;
        }
      }
      next_ = static_cast<ArcId>((std::uint64_t{next_} + stride_) % blocks_);
      work.stats.scanned += end - begin;
      if (entering != kNone) return Status::kOptimal;
      ++blocks_without_entering_;
      if (const Status status = work.checker.step(work.stats, end - begin);
          status != Status::kOptimal)
        return status;
    }
    return Status::kOptimal;
  }

  // Sends flow over arc a, forward or backward, around its cycle, as far as capacities allow:
  // `room` on the arc itself, `used` in the other direction. The blocking arc leaves the tree,
  // unless it is a itself.
  Status push_around_cycle(PivotWork& work, ArcId a, bool forward, std::int64_t room,
                           std::int64_t used) {
    const NodeId k = forward ? network_.tail[a] : network_.head[a],
                 l = forward ? network_.head[a] : network_.tail[a];
    const SpanningTree::Cycle cycle = tree_.find_cycle(k, l);
    // Of equally restrictive arcs, the last along the flow leaves: on the path up, then a itself,
    // then on the path down.
    std::int64_t amount = room;
    NodeId out = kNone;
    bool is_on_up_path = false;
    if (cycle.down_room < amount) {
      amount = cycle.down_room;
      out = cycle.down_node;
    }
    if (cycle.up_room <= amount) {
      amount = cycle.up_room;
      out = cycle.up_node;
      is_on_up_path = true;
    }
    if (amount > 0) observer_.flow_moves(a, flow_[a], forward ? amount : -amount);
    push(k, l, cycle.apex, amount);
    ++work.stats.pivots;
    blocks_without_entering_ = 0;
    std::int64_t steps = cycle.length;
    if (out == kNone) {
      state_[a] = forward ? kUpper : kLower;
      flow_[a] = forward ? network_.capacity[a] : 0;
    } else {
      leave(out, is_on_up_path);
      const std::int64_t rc = reduced_cost(a);
      state_[a] = kInside;
      const NodeId in = is_on_up_path ? l : k;
      const std::int64_t shift = in == network_.tail[a] ? rc : -rc;
      if (is_on_up_path) {
        steps += tree_.exchange(l, k, out, cycle.apex, {a, used + amount, room - amount}, shift);
      } else {
        steps += tree_.exchange(k, l, out, cycle.apex, {a, room - amount, used + amount}, shift);
      }
      if (shift != 0) observer_.prices_moved(in);
    }
    work.stats.scanned += steps;
    return work.checker.step(work.stats, steps);
  }

  void push(NodeId k, NodeId l, NodeId apex, std::int64_t amount) {
    if (amount == 0) return;
    if constexpr (Observer::kObserves) {
      for (NodeId v = k; v != apex; v = tree_.parent(v)) notify(v, false, amount);
      for (NodeId v = l; v != apex; v = tree_.parent(v)) notify(v, true, amount);
    }
    tree_.push_on_cycle(k, l, apex, amount);
  }
  void notify(NodeId v, bool up, std::int64_t amount) {
    const ArcId a = tree_.arc(v).arc;
    if (a != kNone)
      observer_.flow_moves(a, tree_flow(v), (network_.tail[a] == v) == up ? amount : -amount);
  }

  // On the path up its residual capacity towards the root is used up, on the path down that away
  // from it.
  void leave(NodeId out, bool is_on_up_path) {
    const ArcId leaving = tree_.arc(out).arc;
    if (leaving == kNone) return;
    const bool full = (network_.tail[leaving] == out) == is_on_up_path;
    state_[leaving] = full ? kUpper : kLower;
    flow_[leaving] = full ? network_.capacity[leaving] : 0;
  }

  const Network& network_;
  std::vector<std::int64_t>& flow_;
  SpanningTree& tree_;
  Observer observer_;
  std::vector<std::int8_t> state_;
  std::vector<ArcId> between_, new_nodes_;
  ArcId block_ = kMinBlock, blocks_ = 0, stride_ = 1;
  ArcId next_ = 0;                     // next block
  ArcId blocks_without_entering_ = 0;  // blocks in a row without an entering arc
};

}  // namespace flowsolver
