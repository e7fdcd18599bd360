#include "network_simplex.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "simplex_start.hpp"
#include "spanning_tree.hpp"
#include "start_state.hpp"

namespace flowsolver {

namespace {

enum State : std::int8_t { kUpper = -1, kTree = 0, kLower = 1 };  // kTree as well: arcs that never enter

class NetworkSimplex {
 public:
  NetworkSimplex(const Network& network, std::vector<std::int64_t>& flow, SpanningTree& tree, const Control& control,
                 Stats& stats)
      : network_(network), flow_(flow), tree_(tree), stats_(stats), pace_(control) {}

  Status run() {
    Status status = classify();
    while (status == Status::kOptimal) {
      ArcId entering = kNone;
      status = price_out(entering);
      if (entering == kNone) break;
      if (status == Status::kOptimal) status = pivot(entering);
    }
    return status;
  }

  // Whether artificial arcs carry flow.
  bool infeasible() const {
    for (NodeId v = 0; v < tree_.root(); ++v) {
      const SpanningTree::TreeArc arc = tree_.arc(v);
      if (arc.arc == kNone && arc.up != 0 && arc.down != 0) return true;
    }
    return false;
  }

  // The flow of arcs outside the tree is kept in `flow` only by their state; this writes all.
  Status write_flow(const Control& control) {
    const Status status = sweep(state_.size(), control, stats_, [&](std::size_t begin, std::size_t end) {
      for (std::size_t a = begin; a < end; ++a) {
        if (state_[a] != kTree) flow_[a] = state_[a] == kLower ? 0 : network_.capacity[a];
      }
    });
    Pace pace(control);
    for (NodeId v = 0; v < tree_.root(); ++v) {
      pace.build_step(stats_);
      const SpanningTree::TreeArc arc = tree_.arc(v);
      if (arc.arc != kNone) flow_[arc.arc] = network_.tail[arc.arc] == v ? arc.down : arc.up;
    }
    return status;
  }

 private:
  static constexpr ArcId kLeastBlock = 64;

  std::int64_t reduced_cost(ArcId a) const {
    return network_.cost[a] - tree_.price(network_.tail[a]) + tree_.price(network_.head[a]);
  }
  bool in_tree(ArcId a) const {
    return tree_.arc(network_.tail[a]).arc == a || tree_.arc(network_.head[a]).arc == a;
  }

  // Blocks of about sqrt(m) / 8 arcs, since a pivot that moves few prices costs little more than looking at that many. They
  // are taken in strides of the golden section, so that each comes from another part of the network than those before.
  void choose_blocks(std::uint64_t m) {
    while (64 * std::uint64_t{block_} * block_ < m) ++block_;
    blocks_ = static_cast<ArcId>((m + block_ - 1) / block_);
    stride_ = static_cast<ArcId>(std::max<std::uint64_t>(1, std::uint64_t{blocks_} * 618 / 1000));
    while (std::gcd(stride_, blocks_) > 1) ++stride_;
  }

  // The states of all arcs; arcs between the bounds are pushed to one, or into the tree.
  Status classify() {
    const auto m = static_cast<ArcId>(network_.num_arcs());
    state_.assign(m, kTree);
    choose_blocks(m);
    std::vector<ArcId> between;
    for (ArcId a = 0; a < m; ++a) {
      if (const Status status = pace_.step(stats_); status != Status::kOptimal) return status;
      const std::int64_t capacity = network_.capacity[a];
      if (network_.tail[a] == network_.head[a]) {
        flow_[a] = network_.cost[a] < 0 ? capacity : 0;
      } else if (capacity > 0 && !in_tree(a)) {
        if (flow_[a] > 0 && flow_[a] < capacity) between.push_back(a);
        state_[a] = flow_[a] == 0 ? kLower : flow_[a] == capacity ? kUpper : kTree;
      }
    }
    for (ArcId a : between) {
      const std::int64_t used = flow_[a], room = network_.capacity[a] - used;
      const bool forward = reduced_cost(a) <= 0;
      const Status status = forward ? push_round(a, true, room, used) : push_round(a, false, used, room);
      if (status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  // The most violated arc of the next block that has one.
  Status price_out(ArcId& entering) {
    const auto m = static_cast<ArcId>(network_.num_arcs());
    const NodeId* tail = network_.tail.data();
    const NodeId* head = network_.head.data();
    const std::int64_t* cost = network_.cost.data();
    const std::int64_t* price = tree_.prices();
    const std::int64_t* above = tree_.above();
    const NodeId* reference = tree_.reference();
    const std::int8_t* state = state_.data();
    for (ArcId seen = 0; seen < blocks_; ++seen) {
      const ArcId begin = next_ * block_, end = std::min(m, begin + block_);
      std::int64_t worst = 0;
      for (ArcId a = begin; a < end; ++a) {
        const NodeId t = tail[a];
        const std::int64_t violation = state[a] * (cost[a] - above[t] - price[reference[t]] + price[head[a]]);
        if (violation < worst) {
          worst = violation;
          entering = a;
        }
      }
      next_ = static_cast<ArcId>((std::uint64_t{next_} + stride_) % blocks_);
      stats_.scanned += end - begin;
      if (const Status status = pace_.step(stats_, end - begin); status != Status::kOptimal) return status;
      if (entering != kNone) return Status::kOptimal;
    }
    return Status::kOptimal;
  }

  Status pivot(ArcId a) { return push_round(a, state_[a] == kLower, network_.capacity[a], 0); }

  // Flow goes over arc a, forward or backward, round its cycle, as far as there is room: `room` on the arc itself, `used`
  // the other way. The arc that stops it leaves the tree, unless it is a itself.
  Status push_round(ArcId a, bool forward, std::int64_t room, std::int64_t used) {
    const NodeId k = forward ? network_.tail[a] : network_.head[a], l = forward ? network_.head[a] : network_.tail[a];
    const SpanningTree::Cycle cycle = tree_.cycle(k, l);
    // Of arcs that allow equally little the last along the flow: up, then a itself, then down.
    std::int64_t amount = room;
    NodeId out = kNone;
    bool on_way_up = false;
    if (cycle.down_room < amount) {
      amount = cycle.down_room;
      out = cycle.down_node;
    }
    if (cycle.up_room <= amount) {
      amount = cycle.up_room;
      out = cycle.up_node;
      on_way_up = true;
    }
    if (amount > 0) tree_.push(k, l, cycle.junction, amount);
    ++stats_.pivots;
    std::int64_t steps = cycle.length;
    if (out == kNone) {
      state_[a] = forward ? kUpper : kLower;
    } else {
      const ArcId leaving = tree_.arc(out).arc;
      // On the way up its residual capacity towards the root is gone, on the way down that away from it.
      if (leaving != kNone) state_[leaving] = (network_.tail[leaving] == out) == on_way_up ? kUpper : kLower;
      const std::int64_t rc = reduced_cost(a);
      state_[a] = kTree;
      const NodeId in = on_way_up ? l : k;
      const std::int64_t shift = in == network_.tail[a] ? rc : -rc;
      if (on_way_up) {
        steps += tree_.exchange(l, k, out, cycle.junction, {a, used + amount, room - amount}, shift);
      } else {
        steps += tree_.exchange(k, l, out, cycle.junction, {a, room - amount, used + amount}, shift);
      }
    }
    stats_.scanned += steps;
    return pace_.step(stats_, steps);
  }

  const Network& network_;
  std::vector<std::int64_t>& flow_;
  SpanningTree& tree_;
  Stats& stats_;
  Pace pace_;
  std::vector<std::int8_t> state_;
  ArcId block_ = kLeastBlock, blocks_ = 0, stride_ = 1;
  ArcId next_ = 0;  // block
};

// What is to be known before there is a tree.
struct Survey {
  std::int64_t artificial_cost = 1;  // more than any path's
  std::vector<std::uint8_t> outer;   // nodes without an arc into them that could carry flow
};

Status take_survey(const Network& network, const Control& control, Survey& survey) {
  std::uint64_t most = 0;
  survey.outer.assign(network.num_nodes(), 1);
  const Status status = sweep(network.num_arcs(), control, {}, [&](std::size_t begin, std::size_t end) {
    most = std::max(most, largest_magnitude(std::span(network.cost).subspan(begin, end - begin)));
    for (std::size_t a = begin; a < end; ++a) {
      if (network.capacity[a] > 0 && network.tail[a] != network.head[a]) survey.outer[network.head[a]] = 0;
    }
  });
  survey.artificial_cost += static_cast<std::int64_t>(most * network.num_nodes());
  return status;
}

void solve(const Network& network, const Start& start, const Control& control, Solution& solution) {
  Survey survey;
  solution.status = take_survey(network, control, survey);
  if (solution.status != Status::kOptimal) return;
  SpanningTree tree(std::move(survey.outer), control);
  const std::vector<std::int64_t> hint = start_prices(network, start);
  solution.status = SimplexStart(network, solution.flow, hint, control, solution.stats).run(tree, survey.artificial_cost);
  if (solution.status == Status::kOptimal) {
    NetworkSimplex simplex(network, solution.flow, tree, control, solution.stats);
    solution.status = simplex.run();
    if (solution.status == Status::kCancelled) return;
    if (simplex.write_flow(control) == Status::kCancelled) throw Stopped{Status::kCancelled};
    if (solution.status == Status::kOptimal && simplex.infeasible()) solution.status = Status::kInfeasible;
    const std::int64_t base = tree.price(largest_sink(network));
    Pace pace(control);
    for (NodeId v = 0; v < network.num_nodes(); ++v) {
      pace.build_step(solution.stats);
      solution.potential[v] = tree.price(v) - base;
    }
  }
  if (solution.status == Status::kCancelled) return;
  __int128 cost = 0;
  if (add_up_cost(network, solution.flow, control, cost) != Status::kOptimal) throw Stopped{Status::kCancelled};
  if (!as_int64(cost, solution.cost) && solution.status == Status::kOptimal) solution.status = Status::kBadCostRange;
}

}  // namespace

Solution solve_network_simplex(const Network& network, const Start& start, const Control& control) {
  Solution solution = start_state(network, start, control).solution;
  if (solution.status != Status::kOptimal || network.num_nodes() == 0) return solution;
  try {
    solve(network, start, control, solution);
  } catch (const Stopped& stopped) {
    solution.status = stopped.status;
  }
  return solution;
}

}  // namespace flowsolver
