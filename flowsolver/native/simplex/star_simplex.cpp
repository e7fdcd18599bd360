#include "simplex/star_simplex.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "control.hpp"
#include "graph/large_array.hpp"
#include "graph/start_state.hpp"
#include "network.hpp"
#include "simplex/spanning_tree.hpp"

namespace flowsolver {

namespace {

// The least r with r * r >= value.
std::uint32_t root_above(std::uint64_t value) {
  std::uint32_t root = 0;
  while (std::uint64_t{root} * root < value) ++root;
  return root;
}

// `V`: the type of costs, 32 bits if they fit.
template <class V>
class StarSimplex {
 public:
  StarSimplex(const Network& network, const Control& control, Stats& stats)
      : network_(network),
        control_(control),
        stats_(stats),
        checker_(control),
        tree_(std::vector<std::uint8_t>(network.num_nodes(), 0), control) {}

  // Pivots until no arc enters, or until stopped.
  Status run() {
    take_arcs();
    plant_star();
    Status status = join_sinks();
    while (status == Status::kOptimal) {  // checks: in `choose` and `pivot`
      std::uint32_t entering = kNone;
      status = choose(entering);
      if (status != Status::kOptimal) break;
      if (entering == kNone) return has_artificial_flow() ? Status::kInfeasible : Status::kOptimal;
      status = pivot(entering);
    }
    return status;
  }

  // The flow and prices reached.
  void write(Solution& solution) {
    for_each_until_cancelled(arcs_.size(), control_, [&](std::size_t i) {
      const ArcId a = id_[i];
      if (state_[i] != kInside) solution.flow[a] = state_[i] == kUpper ? network_.capacity[a] : 0;
    });
    const NodeId base = largest_sink(network_);
    for_each_until_cancelled(network_.num_nodes(), control_, [&](std::size_t i) {
      const auto v = static_cast<NodeId>(i);
      solution.potential[v] = tree_.price(v) - tree_.price(base);
      const SpanningTree::TreeArc arc = tree_.arc(v);
      if (arc.arc == kNone) return;
      const ArcId a = id_[arc.arc];
      solution.flow[a] = network_.tail[a] == v ? arc.down : arc.up;
    });
    for (ArcId a : full_loops_) solution.flow[a] = network_.capacity[a];
  }

 private:
  // kInside: in the tree
  enum State : std::int8_t { kUpper = -1, kInside = 0, kLower = 1 };

  struct Arc {
    NodeId tail, head;
    V cost;
  };

  // Neighbours in the list are about sqrt(m) arcs apart in the network.
  void take_arcs() {
    const std::size_t m = network_.num_arcs(), stride = std::max<std::size_t>(1, root_above(m));
    arcs_.reserve(m);
    id_.reserve(m);
    for (std::size_t first = 0; first < stride; ++first) {
      checker_.step_until_cancelled(stats_, static_cast<std::int64_t>(stride));
      for (std::size_t i = first; i < m; i += stride) {
        const auto a = static_cast<ArcId>(i);
        const NodeId tail = network_.tail[a], head = network_.head[a];
        const std::int64_t capacity = network_.capacity[a], cost = network_.cost[a];
        largest_cost_ = std::max(largest_cost_, cost < 0 ? -cost : cost);
        if (capacity == 0) continue;
        if (tail == head) {
          if (cost < 0) full_loops_.push_back(a);
          continue;
        }
        arcs_.push_back({tail, head, static_cast<V>(cost)});
        id_.push_back(a);
      }
    }
    state_.assign(arcs_.size(), kLower);
    block_ = std::max(kMinBlock, kBlockRoots * root_above(arcs_.size()));
    ++stats_.rebuilds;
    stats_.scanned += static_cast<std::int64_t>(m);
  }

  // Flow from nodes with supply to the root is free, flow from there to sinks is dear.
  void plant_star() {
    const auto n = static_cast<NodeId>(network_.num_nodes());
    const std::int64_t dear = largest_cost_ * n + 1;
    std::vector<NodeId> order(n);
    for (NodeId v = 0; v < n; ++v) {
      checker_.step_until_cancelled(stats_);
      order[v] = v;
      const std::int64_t supply = network_.supply[v];
      if (supply >= 0) {
        tree_.attach(v, tree_.root(), {kNone, kArtificialCapacity - supply, supply}, 0);
      } else {
        tree_.attach(v, tree_.root(), {kNone, -supply, kArtificialCapacity + supply}, -dear);
      }
    }
    tree_.finish(order, control_);
  }

  // Each sink gets the cheapest arc into it.
  Status join_sinks() {
    std::vector<std::uint32_t> cheapest(network_.num_nodes(), kNone);
    for (std::uint32_t i = 0; i < arcs_.size(); ++i) {
      checker_.step_until_cancelled(stats_);
      const NodeId head = arcs_[i].head;
      if (network_.supply[head] >= 0) continue;
      if (cheapest[head] == kNone || arcs_[i].cost < arcs_[cheapest[head]].cost) cheapest[head] = i;
    }
    for (NodeId v = 0; v < network_.num_nodes(); ++v) {
      if (cheapest[v] == kNone || violation(cheapest[v]) >= 0) continue;
      if (const Status status = pivot(cheapest[v]); status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  std::int64_t reduced_cost(const Arc& arc) const {
    return arc.cost - tree_.prices()[arc.tail] + tree_.prices()[arc.head];
  }
  // Negative if the arc may enter.
  std::int64_t violation(std::uint32_t i) const { return state_[i] * reduced_cost(arcs_[i]); }

  // kNone: none of them may enter. Not inlined, so that the loop keeps what it needs in registers.
  [[gnu::noinline]] std::uint32_t most_violated(std::uint32_t begin, std::uint32_t end) const {
    const Arc* arcs = arcs_.data();
    const std::int8_t* state = state_.data();
    const std::int64_t* price = tree_.prices();
    std::int64_t worst = 0;
    std::uint32_t found = kNone;
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::int64_t violation =
          state[i] * (arcs[i].cost - price[arcs[i].tail] + price[arcs[i].head]);
      if (violation < worst) {
        worst = violation;
        found = i;
      }
    }
    return found;
  }

  // The most violated arc of the next block that has one; kNone: there is none in all. There is no
  // check between this choice and the pivot, so that a run makes progress.
  Status choose(std::uint32_t& entering) {
    const auto m = static_cast<std::uint32_t>(arcs_.size());
    for (std::uint32_t left = m; left > 0;) {  // bounded: by the arcs
      const std::uint32_t begin = next_, end = begin + std::min({block_, left, m - begin});
      entering = most_violated(begin, end);
      next_ = end == m ? 0 : end;
      left -= end - begin;
      stats_.scanned += end - begin;
      if (entering != kNone) {
        looked_at_ = end - begin;
        return Status::kOptimal;
      }
      if (const Status status = checker_.step(stats_, end - begin); status != Status::kOptimal)
        return status;
    }
    return Status::kOptimal;
  }

  // The arc enters: flow is sent around its cycle as far as possible, and the blocking arc leaves,
  // unless it is the arc itself.
  Status pivot(std::uint32_t i) {
    const Arc& arc = arcs_[i];
    const bool forward = state_[i] == kLower;
    const NodeId k = forward ? arc.tail : arc.head, l = forward ? arc.head : arc.tail;
    const std::int64_t room = network_.capacity[id_[i]];
    const SpanningTree::Cycle cycle = tree_.find_cycle(k, l);
    const auto [amount, out, is_on_up_path] = SpanningTree::blocking(cycle, room);
    if (amount > 0) tree_.push_on_cycle(k, l, cycle.apex, amount);
    ++stats_.pivots;
    std::int64_t steps = cycle.length;
    if (out == kNone) {
      state_[i] = forward ? kUpper : kLower;
    } else {
      const std::uint32_t leaving = tree_.arc(out).arc;
      // On the path up its residual capacity towards the root is used up, else that away from it.
      if (leaving != kNone)
        state_[leaving] = (arcs_[leaving].tail == out) == is_on_up_path ? kUpper : kLower;
      const std::int64_t rc = reduced_cost(arc);
      state_[i] = kInside;
      const NodeId in = is_on_up_path ? l : k;
      const std::int64_t shift = in == arc.tail ? rc : -rc;
      steps += is_on_up_path
                   ? tree_.exchange(l, k, out, cycle.apex, {i, amount, room - amount}, shift)
                   : tree_.exchange(k, l, out, cycle.apex, {i, room - amount, amount}, shift);
    }
    stats_.scanned += steps;
    return checker_.step(stats_, steps + std::exchange(looked_at_, 0));
  }

  bool has_artificial_flow() const {
    for (NodeId v = 0; v < tree_.root(); ++v) {
      const SpanningTree::TreeArc arc = tree_.arc(v);
      if (arc.arc == kNone && arc.up != 0 && arc.down != 0) return true;
    }
    return false;
  }

  // A block has so many times sqrt(m) arcs. With one, a third more pivots are made, with three the
  // pricing of large networks takes longer than that saves.
  static constexpr std::uint32_t kBlockRoots = 2, kMinBlock = 10;

  const Network& network_;
  const Control& control_;
  Stats& stats_;
  CancellationChecker checker_;
  SpanningTree tree_;     // its arcs are indices into arcs_
  LargeArray<Arc> arcs_;  // those with capacity that are no loops
  LargeArray<ArcId> id_;  // of each, in the network
  LargeArray<std::int8_t> state_;
  std::vector<ArcId> full_loops_;
  std::int64_t largest_cost_ = 0;
  std::uint32_t block_ = kMinBlock, next_ = 0;
  std::int64_t looked_at_ = 0;  // arcs, since the last check, for the next pivot
};

}  // namespace

Solution solve_star_simplex(const Network& network, const Control& control) {
  return solve_by_width(network, {}, control, [&]<class V>(Solution& solution) {
    StarSimplex<V> simplex(network, control, solution.stats);
    solution.status = simplex.run();
    if (solution.status == Status::kCancelled) return;
    simplex.write(solution);
    __int128 cost = 0;
    if (add_up_cost(network, solution.flow, control, cost) != Status::kOptimal)
      throw Stopped{Status::kCancelled};
    if (!as_int64(cost, solution.cost) && solution.status == Status::kOptimal)
      solution.status = Status::kBadCostRange;
  });
}

}  // namespace flowsolver
