#include "simplex/simplex_engine.hpp"

#include <algorithm>
#include <utility>

#include "graph/arc_lists.hpp"
#include "graph/start_state.hpp"
#include "simplex/cut_subtrees.hpp"
#include "simplex/simplex_pivots.hpp"
#include "simplex/simplex_start.hpp"
#include "simplex/spanning_tree.hpp"

namespace flowsolver {

namespace {

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
    Control cancellation_only;
    cancellation_only.poll(
        [&control](const Stats& counted) { return control.check(counted) == Status::kCancelled; },
        {});
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

std::unique_ptr<Engine> make_simplex_engine(const EngineStart& start, const Control& control,
                                            Stats& stats) {
  try {
    return std::make_unique<SimplexEngine>(start, control, stats);
  } catch (const Stopped&) {
    return nullptr;
  }
}

}  // namespace flowsolver
