// The parts of the network simplex, in order: the first flow and tree, the pivots, the solve from
// scratch, and the engine that keeps the tree under changes.
#include "simplex/network_simplex.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "control.hpp"
#include "graph/dynamic_graph.hpp"
#include "graph/imbalances.hpp"
#include "graph/network_shape.hpp"
#include "graph/start_state.hpp"
#include "network.hpp"
#include "simplex/spanning_tree.hpp"
#include "simplex/star_simplex.hpp"

namespace flowsolver {

namespace {

// The first flow and the first tree of the network simplex.
//
// Flow. First, what a start's flow lacks at nodes that are not sinks (a removed task) is cancelled
// along the paths by which the flow left them. Then the excess of sources is sent to sinks, a path
// at a time, over forward arcs only, at every node the cheapest arc first, never again over an arc
// that led nowhere. Both stop after a number of steps linear in the network's size. The remaining
// excess is sent to sinks in waves (imbalances.hpp): paths may be long, and lead back over arcs
// with flow. Only what no flow can balance is left to the tree's artificial arcs.
//
// Tree. It grows from the root over residual arcs that lead to it, cheapest first (as in Prim's and
// Dijkstra's algorithms, with the prices that the tree gives), with arcs that are neither empty nor
// full before others. So it is strongly feasible; a flow that is a basic solution has all such arcs
// in the tree; and an optimal flow with its prices gets an optimal tree. First the sink is joined
// to the root, by a free arc, then nodes where the flow does not balance, by an artificial arc that
// carries the difference. Nodes from which no residual arcs lead there come last, by an empty
// artificial arc.
class SimplexStart {
 public:
  // `flow` is improved in place. `hint`: prices with which the flow was found, of magnitude at most
  // 2 * kMaxPathCost. `waves`: the control of the waves alone, which may stop at a budget where
  // everything else may not.
  SimplexStart(const Network& network, std::vector<std::int64_t>& flow,
               const std::vector<std::int64_t>& hint, const Control& control, const Control& waves,
               Stats& stats)
      : network_(network),
        flow_(flow),
        hint_(hint),
        stats_(stats),
        control_(control),
        waves_(waves),
        checker_(control) {}

  // kOptimal, or kCancelled or kBudget when stopped; only then is the tree incomplete.
  // `artificial_cost`: more than that of any simple path. The balance of `sink` is not examined: it
  // is implied by the others.
  Status run(SpanningTree& tree, NodeId sink, std::int64_t artificial_cost) {
    if (const Status status = index(); status != Status::kOptimal) return status;
    if (const Status status = cancel_deficits(); status != Status::kOptimal) return status;
    if (const Status status = route(); status != Status::kOptimal) return status;
    if (const Status status = finish_route(); status != Status::kOptimal) return status;
    return grow(tree, sink, artificial_cost);
  }

 private:
  static constexpr std::int64_t kStepsPerArc = 4;

  struct Candidate {
    std::int64_t key;  // the price that v would get, minus its hint
    ArcId arc;
    NodeId v;

    bool operator>(const Candidate& other) const {
      return key != other.key ? key > other.key : arc > other.arc;
    }
  };

  // The arcs as FeasibleFlow needs them.
  struct View {
    SimplexStart& start;

    NodeId num_nodes() const { return static_cast<NodeId>(start.excess_.size()); }
    std::int64_t excess(NodeId v) const { return start.excess_[v]; }
    std::int64_t degree(NodeId v) const {
      return start.out_first_[v + 1] - start.out_first_[v] + start.in_first_[v + 1] -
             start.in_first_[v];
    }
    template <class Visit>
    void for_each_predecessor(NodeId v, Visit visit) const {
      for (std::uint32_t i = start.in_first_[v]; i < start.in_first_[v + 1]; ++i) {
        const ArcId a = start.in_[i];
        if (start.flow_[a] < start.network_.capacity[a]) visit(start.network_.tail[a]);
      }
      for (std::uint32_t i = start.out_first_[v]; i < start.out_first_[v + 1]; ++i) {
        const ArcId a = start.out_[i];
        if (start.flow_[a] > 0) visit(start.network_.head[a]);
      }
    }
    template <class Send>
    void for_each_push(NodeId v, bool forward, Send send) {
      const auto& first = forward ? start.out_first_ : start.in_first_;
      for (std::uint32_t i = first[v]; i < first[v + 1] && start.excess_[v] > 0; ++i) {
        const ArcId a = forward ? start.out_[i] : start.in_[i];
        const NodeId w = forward ? start.network_.head[a] : start.network_.tail[a];
        const std::int64_t room =
            forward ? start.network_.capacity[a] - start.flow_[a] : start.flow_[a];
        if (room == 0) continue;
        const std::int64_t amount = send(w, room);
        start.flow_[a] += forward ? amount : -amount;
        start.excess_[v] -= amount;
        start.excess_[w] += amount;
      }
    }
  };

  Status index() {
    const std::size_t n = network_.num_nodes(), m = network_.num_arcs();
    excess_ = network_.supply;
    out_first_.assign(n + 1, 0);
    in_first_.assign(n + 1, 0);
    const auto counts = [&](ArcId a) {
      return network_.capacity[a] > 0 && network_.tail[a] != network_.head[a];
    };
    for (ArcId a = 0; a < m; ++a) {
      if (const Status status = checker_.step(stats_); status != Status::kOptimal) return status;
      if (!counts(a)) continue;
      ++out_first_[network_.tail[a] + 1];
      ++in_first_[network_.head[a] + 1];
    }
    for (std::size_t v = 0; v < n; ++v) {
      out_first_[v + 1] += out_first_[v];
      in_first_[v + 1] += in_first_[v];
    }
    out_.resize(out_first_[n]);
    in_.resize(in_first_[n]);
    std::vector<std::uint32_t> out(out_first_.begin(), out_first_.end() - 1),
        in(in_first_.begin(), in_first_.end() - 1);
    for (ArcId a = 0; a < m; ++a) {
      if (const Status status = checker_.step(stats_); status != Status::kOptimal) return status;
      if (!counts(a)) continue;
      const NodeId tail = network_.tail[a], head = network_.head[a];
      out_[out[tail]++] = a;
      in_[in[head]++] = a;
      excess_[tail] -= flow_[a];
      excess_[head] += flow_[a];
    }
    stats_.repaired += static_cast<std::int64_t>(m / 4);
    ++stats_.rebuilds;
    return Status::kOptimal;
  }

  Status cancel_deficits() {
    std::vector<NodeId> lacking;
    for (NodeId v = 0; v < network_.num_nodes(); ++v) {
      if (excess_[v] < 0 && network_.supply[v] >= 0) lacking.push_back(v);
    }
    std::int64_t left = kStepsPerArc * static_cast<std::int64_t>(network_.num_arcs());
    while (!lacking.empty() && left > 0) {
      const NodeId v = lacking.back();
      lacking.pop_back();
      for (std::uint32_t i = out_first_[v]; i < out_first_[v + 1] && excess_[v] < 0; ++i, --left) {
        if (const Status status = count(); status != Status::kOptimal) return status;
        const ArcId a = out_[i];
        if (flow_[a] == 0) continue;
        const std::int64_t amount = std::min(flow_[a], -excess_[v]);
        const NodeId head = network_.head[a];
        if (excess_[head] >= 0 && excess_[head] < amount && network_.supply[head] >= 0)
          lacking.push_back(head);
        flow_[a] -= amount;
        excess_[v] += amount;
        excess_[head] -= amount;
        ++stats_.pushes;
      }
    }
    return Status::kOptimal;
  }

  Status route() {
    const std::size_t n = network_.num_nodes();
    current_.assign(n, kNone);
    on_path_.assign(n, 0);
    const std::int64_t most =
        stats_.scanned + kStepsPerArc * static_cast<std::int64_t>(n + network_.num_arcs());
    for (NodeId v = 0; v < n && stats_.scanned < most; ++v) {
      if (excess_[v] <= 0) continue;
      if (const Status status = route_from(v); status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  Status route_from(NodeId source) {
    std::vector<ArcId> path;
    const auto leave = [&] {
      for (ArcId a : path) on_path_[network_.head[a]] = 0;
      on_path_[source] = 0;
    };
    const auto dearer = [&](ArcId a, ArcId b) {
      const std::int64_t one = network_.cost[a] + hint_[network_.head[a]],
                         two = network_.cost[b] + hint_[network_.head[b]];
      return one != two ? one > two : a > b;
    };
    const auto drop_current_arc = [&](NodeId v) {  // removes the current arc of v
      std::pop_heap(out_.begin() + out_first_[v], out_.begin() + current_[v], dearer);
      --current_[v];
    };
    NodeId v = source;
    on_path_[v] = 1;
    while (excess_[source] > 0) {
      if (const Status status = count(); status != Status::kOptimal) return status;
      if (excess_[v] < 0) {
        std::int64_t amount = std::min(excess_[source], -excess_[v]);
        for (ArcId a : path) amount = std::min(amount, network_.capacity[a] - flow_[a]);
        for (ArcId a : path) flow_[a] += amount;
        excess_[source] -= amount;
        excess_[v] += amount;
        ++stats_.augmentations;
        stats_.pushes += static_cast<std::int64_t>(path.size());
        leave();
        path.clear();
        v = source;
        on_path_[v] = 1;
        continue;
      }
      const auto first = out_.begin() + out_first_[v];
      if (current_[v] == kNone) {
        current_[v] = out_first_[v + 1];
        std::make_heap(first, out_.begin() + current_[v], dearer);
      }
      if (current_[v] > out_first_[v]) {
        const NodeId head = network_.head[*first];
        if (flow_[*first] < network_.capacity[*first] && on_path_[head] == 0) {
          path.push_back(*first);
          on_path_[head] = 1;
          v = head;
        } else {
          drop_current_arc(v);
        }
      } else if (v == source) {
        break;
      } else {
        on_path_[v] = 0;
        v = network_.tail[path.back()];
        path.pop_back();
        drop_current_arc(v);
      }
    }
    leave();
    return Status::kOptimal;
  }

  // For paths that are full, or too long to be searched for one by one. What no flow can balance,
  // or none within the budget, is left.
  Status finish_route() {
    const auto has_excess = [](std::int64_t excess) { return excess > 0; };
    if (std::none_of(excess_.begin(), excess_.end(), has_excess)) return Status::kOptimal;
    CancellationChecker checker(waves_);
    const Status status = FeasibleFlow(View{*this}, checker, stats_).run();
    return status == Status::kCancelled ? status : Status::kOptimal;
  }

  Status grow(SpanningTree& tree, NodeId sink, std::int64_t artificial_cost) {
    const auto n = static_cast<NodeId>(network_.num_nodes());
    best_.assign(n, kInfinity);
    // reserves address space only
    for (auto* candidates : {&free_, &ties_, &queue_}) candidates->reserve(network_.num_arcs());
    order_.reserve(n);
    const auto join_root = [&](NodeId v) {
      const std::int64_t amount = excess_[v] < 0 ? -excess_[v] : excess_[v];
      const std::int64_t rest = kArtificialCapacity - amount;
      // An excess flows up an arc to the root, a deficit draws over an arc from it.
      if (excess_[v] < 0)
        return join(tree, v, tree.root(), {kNone, amount, rest}, -artificial_cost);
      return join(tree, v, tree.root(), {kNone, rest, amount}, artificial_cost);
    };
    const SpanningTree::TreeArc free{kNone, kArtificialCapacity, kArtificialCapacity};
    if (const Status status = join(tree, sink, tree.root(), free, 0); status != Status::kOptimal)
      return status;
    for (NodeId v = 0; v < n; ++v) {
      if (excess_[v] == 0 || v == sink) continue;
      if (const Status status = join_root(v); status != Status::kOptimal) return status;
    }
    if (const Status status = attach_unreachable(tree); status != Status::kOptimal) return status;
    for (NodeId v = 0; v < n; ++v) {
      if (tree.attached(v)) continue;
      if (const Status status = join_root(v); status != Status::kOptimal) return status;
      if (const Status status = attach_unreachable(tree); status != Status::kOptimal) return status;
    }
    tree.finish(order_, control_);
    return Status::kOptimal;
  }

  Status join(SpanningTree& tree, NodeId v, NodeId parent, const SpanningTree::TreeArc& arc,
              std::int64_t price) {
    tree.attach(v, parent, arc, price);
    order_.push_back(v);
    for (std::uint32_t i = in_first_[v]; i < in_first_[v + 1]; ++i) {
      if (const Status status = count(); status != Status::kOptimal) return status;
      const ArcId a = in_[i];
      if (flow_[a] < network_.capacity[a])
        add_candidate(tree, network_.tail[a], a, network_.cost[a] + price);
    }
    for (std::uint32_t i = out_first_[v]; i < out_first_[v + 1]; ++i) {
      if (const Status status = count(); status != Status::kOptimal) return status;
      const ArcId a = out_[i];
      if (flow_[a] > 0) add_candidate(tree, network_.head[a], a, price - network_.cost[a]);
    }
    return count();
  }

  Status attach_unreachable(SpanningTree& tree) {
    while (order_.size() <
           network_.num_nodes()) {  // then the remaining candidates would add nothing
      if (const Status status = checker_.step(stats_, kStepsPerHalfEdge);
          status != Status::kOptimal)
        return status;
      Candidate next;
      if (!free_.empty()) {
        next = free_.back();
        free_.pop_back();
      } else if (!ties_.empty()) {
        next = ties_.back();
        ties_.pop_back();
      } else if (!queue_.empty()) {
        next = queue_.front();
        std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
        queue_.pop_back();
        key_ = next.key;
      } else {
        return Status::kOptimal;
      }
      if (tree.attached(next.v)) continue;
      const ArcId a = next.arc;
      const std::int64_t room = network_.capacity[a] - flow_[a];
      const bool up = network_.tail[a] == next.v;
      const NodeId parent = up ? network_.head[a] : network_.tail[a];
      const SpanningTree::TreeArc arc{a, up ? room : flow_[a], up ? flow_[a] : room};
      const Status status = join(tree, next.v, parent, arc, next.key + hint_[next.v]);
      if (status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  void add_candidate(const SpanningTree& tree, NodeId v, ArcId arc, std::int64_t price) {
    if (tree.attached(v)) return;
    const Candidate candidate{price - hint_[v], arc, v};
    if (flow_[arc] > 0 && flow_[arc] < network_.capacity[arc]) {
      free_.push_back(candidate);
    } else if (candidate.key < best_[v]) {
      best_[v] = candidate.key;
      if (candidate.key <= key_) {
        ties_.push_back(candidate);
      } else {
        queue_.push_back(candidate);
        std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
      }
    }
  }

  // its arc and other end are scattered in memory
  static constexpr std::int64_t kStepsPerHalfEdge = 4;
  Status count() {
    ++stats_.scanned;
    return checker_.step(stats_, kStepsPerHalfEdge);
  }

  const Network& network_;
  std::vector<std::int64_t>& flow_;
  const std::vector<std::int64_t>& hint_;
  Stats& stats_;
  const Control& control_;
  const Control& waves_;
  CancellationChecker checker_;
  std::vector<std::int64_t> excess_;
  std::vector<std::uint32_t> out_first_, in_first_;  // per node: index into the two lists below
  LargeArray<ArcId> out_, in_;                       // arcs with capacity, without loops
  // per node: end of its arcs out that are still to be tried, which form a heap; kNone: all
  std::vector<std::uint32_t> current_;
  std::vector<std::uint8_t> on_path_;
  std::vector<NodeId> order_;       // nodes in the order in which they joined the tree
  std::vector<std::int64_t> best_;  // per node: least key of its candidates
  std::vector<Candidate> queue_;    // a heap
  // candidates by arcs between their bounds; candidates of keys up to `key_`
  std::vector<Candidate> free_, ties_;
  std::int64_t key_ = -kInfinity;  // the current key
};

// The pivots of the primal network simplex : pricing arcs, and sending flow around the cycles they
// close. Shared by the solve from scratch and the engine that handles changes.
//
// Arcs that changed are priced first. Then blocks of arcs are taken in turn, until all blocks in a
// row hold no entering arc. That count persists between runs, so that runs with small budgets reach
// the end.
//
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
    const auto [amount, out, is_on_up_path] = SpanningTree::blocking(cycle, room);
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

struct NoObserver {
  static constexpr bool kObserves = false;
  void flow_moves(ArcId, std::int64_t, std::int64_t) {}
  void prices_moved(NodeId) {}
};

// Whether artificial arcs carry flow.
bool infeasible(const SpanningTree& tree, NodeId sink) {
  for (NodeId v = 0; v < tree.root(); ++v) {
    const SpanningTree::TreeArc arc = tree.arc(v);
    if (v != sink && arc.arc == kNone && arc.up != 0 && arc.down != 0) return true;
  }
  return false;
}

// The flow of tree arcs.
void write_flow(const Network& network, const SpanningTree& tree, const Control& control,
                Solution& solution) {
  CancellationChecker checker(control);
  for (NodeId v = 0; v < tree.root(); ++v) {
    checker.step_until_cancelled(solution.stats);
    const SpanningTree::TreeArc arc = tree.arc(v);
    if (arc.arc != kNone) solution.flow[arc.arc] = network.tail[arc.arc] == v ? arc.down : arc.up;
  }
}

// What is to be known before there is a tree.
struct Survey {
  std::int64_t artificial_cost = 1;  // more than any path's
  std::vector<std::uint8_t> outer;   // nodes without an arc into them that could carry flow
};

Status take_survey(const Network& network, const Control& control, Survey& survey) {
  std::uint64_t most = 0;
  survey.outer.assign(network.num_nodes(), 1);
  const Status status =
      for_each_block(network.num_arcs(), control, {}, [&](std::size_t begin, std::size_t end) {
        most =
            std::max(most, largest_magnitude(std::span(network.cost).subspan(begin, end - begin)));
        for (std::size_t a = begin; a < end; ++a) {
          if (network.capacity[a] > 0 && network.tail[a] != network.head[a])
            survey.outer[network.head[a]] = 0;
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
  const NodeId sink = largest_sink(network);
  SimplexStart begin(network, solution.flow, hint, control, control, solution.stats);
  solution.status = begin.run(tree, sink, survey.artificial_cost);
  if (solution.status == Status::kOptimal) {
    SimplexPivots<NoObserver> pivots(network, solution.flow, tree, {});
    PivotWork work(control, solution.stats);
    solution.status = pivots.classify(work);
    if (solution.status == Status::kOptimal) solution.status = pivots.run(work);
    if (solution.status == Status::kCancelled) return;
    write_flow(network, tree, control, solution);
    if (solution.status == Status::kOptimal && infeasible(tree, sink))
      solution.status = Status::kInfeasible;
    const std::int64_t base = tree.price(sink);
    CancellationChecker checker(control);
    for (NodeId v = 0; v < network.num_nodes(); ++v) {
      checker.step_until_cancelled(solution.stats);
      solution.potential[v] = tree.price(v) - base;
    }
  }
  if (solution.status == Status::kCancelled) return;
  __int128 cost = 0;
  if (add_up_cost(network, solution.flow, control, cost) != Status::kOptimal)
    throw Stopped{Status::kCancelled};
  if (!as_int64(cost, solution.cost) && solution.status == Status::kOptimal)
    solution.status = Status::kBadCostRange;
}

// Subtrees that changes have cut off from the spanning tree and attached to the root by artificial
// arcs, and the pivots that rejoin them (network_simplex.hpp, "A resolve").
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

constexpr std::int64_t kArtificialCost = kMaxPathCost + 1;
constexpr SpanningTree::TreeArc kEmptyArtificial{kNone, kArtificialCapacity, 0};

class SimplexEngine final : public Engine {
 public:
  SimplexEngine(const EngineStart& start, const Control& control, Stats& stats)
      : network_(start.network),
        sink_(start.root),
        flow_(start.flow.begin(), start.flow.end()),
        tree_(outer_nodes(start.network), control),
        pivots_(network_, flow_, tree_, Observer{this}) {
    const auto n = static_cast<NodeId>(network_.num_nodes());
    flow_.resize(network_.num_arcs(), 0);
    // An incomplete state could not be continued: the construction can be cancelled, but ignores
    // budgets.
    const CancellationOnly cancellation_only(control);
    extend(n, network_.num_arcs());
    for_each_until_cancelled(network_.num_arcs(), control, [&](std::size_t arc) {
      const auto a = static_cast<ArcId>(arc);
      cost_of_[a] = network_.cost[a];
      if (start.alive[a] != 0) lists_.add(a, network_.tail[a], network_.head[a]);
    });
    const std::vector<std::int64_t> hint = start_prices(network_, {{}, start.price});
    throw_unless_optimal(SimplexStart(network_, flow_, hint, cancellation_only, control, stats)
                             .run(tree_, sink_, kArtificialCost));
    for (NodeId v = 0; v < n; ++v) {
      if (tree_.arc(v).arc == kNone) record_artificial(v);
    }
    tree_.make_room(n + n / 4 + kSpareNodes, kEmptyArtificial, kArtificialCost);
    extend(tree_.root(), 0);
    PivotWork work(cancellation_only, stats);
    throw_unless_optimal(pivots_.classify(work));
    for_each_until_cancelled(network_.num_arcs(), control, [&](std::size_t arc) {
      const auto a = static_cast<ArcId>(arc);
      cost_ += static_cast<__int128>(cost_of_[a]) * pivots_.flow(a);
    });
  }

  void add_node(NodeId v, std::int64_t supply) override {
    if (v >= tree_.root()) {
      tree_.make_room(v + 1 + v / 4 + kSpareNodes, kEmptyArtificial, kArtificialCost);
      extend(tree_.root(), 0);
    }
    record_artificial(v);
    cuts_.add(v, kInfinity);
    add_excess(v, supply);
  }

  void remove_node(NodeId v) override {
    excess_[v] = 0;
    pivots_.attach_subtree(v, kEmptyArtificial, kArtificialCost, unused_stats_);
    tree_.make_outer(v);
  }

  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    extend(0, arc + std::size_t{1});
    lists_.add(arc, tail, head);
    flow_[arc] = 0;
    cost_of_[arc] = cost;
    reclassify(arc, tail, head, capacity);
  }

  void remove_arc(ArcId arc, NodeId tail, NodeId head) override {
    set_flow(arc, tail, head, 0, true);
    pivots_.forget(arc);
    flow_[arc] = 0;  // loops were settled again meanwhile
    lists_.remove(arc, tail, head);
  }

  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override {
    if (tail == head || !pivots_.in_tree(arc)) {
      if (flow_[arc] > capacity) set_flow(arc, tail, head, capacity, false);
      reclassify(arc, tail, head, capacity);
      return;
    }
    const NodeId v = pivots_.child(arc);
    const std::int64_t used = std::min(pivots_.tree_flow(v), capacity);
    set_flow(arc, tail, head, used, v == tail ? used == capacity : used == 0);
    if (pivots_.in_tree(arc)) {
      const std::int64_t room = capacity - used;
      tree_.set_arc(v, v == tail ? SpanningTree::TreeArc{arc, room, used}
                                 : SpanningTree::TreeArc{arc, used, room});
    }
  }

  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    const NodeId head = network_.head[arc];
    cost_ += (static_cast<__int128>(cost) - cost_of_[arc]) * pivots_.flow(arc);
    cost_of_[arc] = cost;
    if (tail != head && pivots_.in_tree(arc)) {
      repriced_arcs_.push_back(pivots_.child(arc));
    } else {
      reclassify(arc, tail, head, network_.capacity[arc]);
    }
  }

  void change_supply(NodeId v, std::int64_t delta) override { add_excess(v, delta); }

  Status run(const Control& control, Stats& stats) override {
    if (const Status status = control.check(stats); status != Status::kOptimal) return status;
    PivotWork work(control, stats);
    try {
      move_prices(work);
      Status status = cuts_.rejoin_all(work);
      if (status == Status::kOptimal) status = route_excesses(work);
      if (status == Status::kOptimal) status = pivots_.run(work);
      if (status != Status::kOptimal) return status;
    } catch (const Stopped& stopped) {
      return stopped.status;
    }
    return artificial_flow() ? Status::kInfeasible : Status::kOptimal;
  }
  // Nodes whose excess goes to the root. If there are none, the sink has the excess that others
  // lack.
  std::vector<NodeId> unrouted_nodes() const override {
    std::vector<NodeId> nodes;
    for (NodeId v : on_artificial_) {
      const SpanningTree::TreeArc arc = tree_.arc(v);
      if (arc.arc == kNone && arc.down != 0 && arc.down < arc.up) nodes.push_back(v);
    }
    if (nodes.empty()) nodes.push_back(sink_);
    return nodes;
  }
  bool keeps_progress() const override { return true; }

  std::int64_t flow(ArcId arc, NodeId) const override { return pivots_.flow(arc); }
  std::int64_t price(NodeId v) const override { return tree_.price(v) - tree_.price(sink_); }
  __int128 cost() const override { return cost_; }
  void adopt(const Engine&) override {}  // its own state is as good a start
  // Sums of a few such values fit. Values beyond the network's range are not given to engines
  // anyway.
  std::uint64_t value_limit() const override { return static_cast<std::uint64_t>(kMaxPathCost); }
  bool prices_drifted() const override {
    return false;
  }  // they are bounded (network_simplex.hpp, "Range")

  bool local() const override { return true; }
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override {
    for (NodeId v : nodes) {
      lists_.for_each_out(v, [&](ArcId a) { arcs.push_back(a); });
      lists_.for_each_in(v, [&](ArcId a) { arcs.push_back(a); });
    }
  }
  const std::vector<FlowBefore>& touched_arcs() const override { return touched_; }
  const std::vector<NodeId>& repriced_nodes() const override { return repriced_; }
  void begin_round() override {
    for (const FlowBefore& before : touched_) is_touched_[before.arc] = false;
    for (NodeId v : repriced_) is_repriced_[v] = false;
    touched_.clear();
    repriced_.clear();
  }
  // Leaves of the tree without arcs in have their price from v.
  void implicitly_priced_by(NodeId v, std::vector<NodeId>& nodes) const override {
    lists_.for_each_in(v, [&](ArcId a) {
      const NodeId tail = network_.tail[a];
      if (tree_.size(tail) == 0 && tree_.arc(tail).arc == a) nodes.push_back(tail);
    });
  }

 private:
  struct Observer {
    static constexpr bool kObserves = true;
    void flow_moves(ArcId arc, std::int64_t now, std::int64_t amount) {
      engine->flow_moves(arc, now, amount);
    }
    void prices_moved(NodeId v) { engine->prices_moved(v); }
    SimplexEngine* engine;
  };
  static constexpr NodeId kSpareNodes = 64;
  // Up to so many subtrees are moved one by one.
  static constexpr std::size_t kFewSubtrees = 8;

  static std::vector<std::uint8_t> outer_nodes(const Network& network) {
    std::vector<std::uint8_t> outer(network.num_nodes(), 1);
    for (ArcId a = 0; a < network.num_arcs(); ++a) {
      if (network.capacity[a] > 0 && network.tail[a] != network.head[a]) outer[network.head[a]] = 0;
    }
    return outer;
  }
  static void throw_unless_optimal(Status status) {
    if (status != Status::kOptimal) throw Stopped{status};
  }

  void extend(std::size_t nodes, std::size_t arcs) {
    lists_.extend(nodes, arcs);
    if (excess_.size() < nodes) {
      excess_.resize(nodes, 0);
      is_repriced_.resize(nodes, false);
      is_on_artificial_.resize(nodes, false);
    }
    if (cost_of_.size() < arcs) {
      flow_.resize(arcs, 0);
      cost_of_.resize(arcs, 0);
      is_touched_.resize(arcs, false);
    }
  }

  void add_excess(NodeId v, std::int64_t amount) {
    if (v == sink_ || amount == 0) return;
    excess_[v] += amount;
    unbalanced_.push_back(v);
  }
  void record_artificial(NodeId v) {
    if (is_on_artificial_[v] || v == sink_) return;
    is_on_artificial_[v] = true;
    on_artificial_.push_back(v);
  }

  void flow_moves(ArcId arc, std::int64_t now, std::int64_t amount) {
    if (!is_touched_[arc]) {
      is_touched_[arc] = true;
      touched_.push_back({arc, now});
    }
    cost_ += static_cast<__int128>(cost_of_[arc]) * amount;
  }
  void note_repriced(NodeId v) {
    if (is_repriced_[v]) return;
    is_repriced_[v] = true;
    repriced_.push_back(v);
  }
  void prices_moved(NodeId top) {
    if (top != tree_.root()) note_repriced(top);
    NodeId v = top;
    for (std::uint32_t left = tree_.size(top); left > 1; --left) note_repriced(v = tree_.next(v));
  }

  // Sets the arc's flow to `amount`; its ends get the difference as excess and deficit. `out`: if
  // it is in the tree, it leaves.
  void set_flow(ArcId arc, NodeId tail, NodeId head, std::int64_t amount, bool out) {
    const std::int64_t now = pivots_.flow(arc);
    if (now != amount) flow_moves(arc, now, amount - now);
    if (tail != head) {
      add_excess(tail, now - amount);
      add_excess(head, amount - now);
      if (pivots_.in_tree(arc)) {
        if (!out) return;
        const NodeId v = pivots_.child(arc);
        cuts_.add(v, kArtificialCost + tree_.price(tree_.root()) - tree_.price(v));
        pivots_.attach_subtree(v, kEmptyArtificial, kArtificialCost, unused_stats_);
        record_artificial(v);
      }
    }
    flow_[arc] = amount;
    if (out) pivots_.reclassify(arc);
  }

  // Its values have changed, and it is not in the tree.
  void reclassify(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) {
    if (tail != head) {
      if (capacity > 0) tree_.make_inner(head);
      pivots_.reclassify(arc);
      return;
    }
    const std::int64_t now = flow_[arc];
    pivots_.reclassify(arc);  // settles the loop
    if (flow_[arc] != now) flow_moves(arc, now, flow_[arc] - now);
  }

  void move_prices(PivotWork& work) {
    if (repriced_arcs_.empty() && !prices_unfinished_) return;
    work.stats.repaired += static_cast<std::int64_t>(repriced_arcs_.size());
    std::size_t subtrees = 0;
    const std::size_t last = repriced_arcs_.size();
    for (std::size_t i = 0; i < last; ++i) {
      const NodeId v = repriced_arcs_[i];
      work.checker.step_until_cancelled(work.stats);
      if (tree_.size(v) == 0) {
        move_price(v);
      } else {
        repriced_arcs_[subtrees++] = v;
      }
    }
    repriced_arcs_.resize(subtrees);
    if (subtrees <= kFewSubtrees && !prices_unfinished_) {
      for (NodeId v : repriced_arcs_) work.stats.scanned += move_price(v);
    } else {
      prices_moved(tree_.root());
      prices_unfinished_ = true;
      tree_.reprice(
          [this](NodeId v, std::int64_t price) {
            const ArcId a = tree_.arc(v).arc;
            return network_.tail[a] == v ? network_.cost[a] + price : price - network_.cost[a];
          },
          work.checker);
      prices_unfinished_ = false;
      work.stats.scanned += tree_.size(tree_.root());
    }
    pivots_.price_all_again();
    repriced_arcs_.clear();
  }
  std::int64_t move_price(NodeId v) {
    const ArcId a = tree_.arc(v).arc;
    if (a == kNone) return 0;  // cut off meanwhile
    const std::int64_t rc = pivots_.reduced_cost(a);
    if (rc == 0) return 0;
    prices_moved(v);
    return tree_.shift_prices(v, network_.tail[a] == v ? rc : -rc);
  }

  // Excesses first: deficits draw from them.
  Status route_excesses(PivotWork& work) {
    std::partition(unbalanced_.begin(), unbalanced_.end(),
                   [this](NodeId v) { return excess_[v] <= 0; });
    while (!unbalanced_.empty()) {
      const NodeId v = unbalanced_.back();
      unbalanced_.pop_back();
      const std::int64_t amount = std::exchange(excess_[v], 0);
      if (amount == 0) continue;
      ++work.stats.repaired;
      const std::int64_t before = work.stats.scanned;
      const std::int64_t moved = pivots_.route_excess(v, amount, kArtificialCost, work.stats);
      const Status status = work.checker.step(work.stats, work.stats.scanned - before + 1);
      if (tree_.arc(v).arc == kNone) {
        record_artificial(v);
        cuts_.add(v, moved < 0 ? -moved : moved);
      }
      if (status != Status::kOptimal) return status;
      if (const Status joined = cuts_.rejoin_all(work); joined != Status::kOptimal) return joined;
    }
    return Status::kOptimal;
  }

  // Whether artificial arcs carry flow. Drops those from the list that are not in the tree any
  // more.
  bool artificial_flow() {
    bool any = false;
    std::size_t kept = 0;
    for (NodeId v : on_artificial_) {
      const SpanningTree::TreeArc arc = tree_.arc(v);
      is_on_artificial_[v] = arc.arc == kNone;
      if (arc.arc != kNone) continue;
      on_artificial_[kept++] = v;
      any |= arc.up != 0 && arc.down != 0;
    }
    on_artificial_.resize(kept);
    return any;
  }

  const Network& network_;
  const NodeId sink_;
  std::vector<std::int64_t> flow_;  // of arcs outside the tree
  SpanningTree tree_;
  SimplexPivots<Observer> pivots_;
  ArcLists lists_;
  std::vector<std::int64_t> cost_of_;  // as counted in cost_
  __int128 cost_ = 0;
  std::vector<std::int64_t> excess_;  // by node
  std::vector<NodeId> unbalanced_;    // nodes with an excess or deficit, and some without
  CutSubtrees<Observer> cuts_{network_, lists_, tree_, pivots_};
  std::vector<NodeId> repriced_arcs_;  // nodes whose tree arc has another cost
  bool prices_unfinished_ = false;     // stopped while all were computed again
  // all nodes attached to the root by artificial arcs, and some that were
  std::vector<NodeId> on_artificial_;
  std::vector<FlowBefore> touched_;  // since begin_round
  std::vector<NodeId> repriced_;
  std::vector<bool> is_touched_, is_repriced_, is_on_artificial_;
  Stats unused_stats_;  // for changes, whose work is not counted
};

}  // namespace

Solution solve_network_simplex(const Network& network, const Start& start, const Control& control) {
  Solution solution = start_state(network, start, control).solution;
  if (solution.status != Status::kOptimal || network.num_nodes() == 0) return solution;
  try {
    if (start.flow.empty() && start.price.empty() && !is_scheduling_graph(network, control) &&
        !is_nearly_tree(network, control))
      return solve_star_simplex(network, control);
    solve(network, start, control, solution);
  } catch (const Stopped& stopped) {
    solution.status = stopped.status;
  }
  return solution;
}

std::unique_ptr<Engine> make_simplex_engine(const EngineStart& start, const Control& control,
                                            Stats& stats) {
  try {
    return std::make_unique<SimplexEngine>(start, control, stats);
  } catch (const Stopped&) {
    return nullptr;
  }
}

}  // namespace flowsolver
