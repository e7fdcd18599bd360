// The first stage of a solve from scratch: assigns unit sources one after another, each along a
// shortest residual path.
//
// Definitions. Signs are network.hpp's. A unit source has supply 1 and no arcs in; all other nodes
// are the core. An assigned source belongs to the head of the one arc that has its unit
// (SplitNetwork). The state is a pseudoflow with 0 <= x <= capacity and prices p of the core.
//
// Invariant. rc >= 0 on every residual arc of the core and for every change of an assigned source
// from its arc to another one:
//   cost(other) + p[its head] - cost(current) - p[current head] >= 0.
// At the start no source is assigned, core prices are those of the estimate (start_state.hpp) or
// 0, and every core arc with rc < 0 is full, with the imbalances that follow from it.
//
// Method. The unit of a source goes to the nearest node with a deficit or with residual capacity to
// the root, found by a search (path_search.hpp) over the core in which an assigned source is a set
// of arcs: the search reassigns it but does not visit it. For most sources the head of their
// cheapest arc has capacity.
//
// If deficits remain (the estimated price was too high), all prices are lowered together as long as
// that helps (UniformPriceDecrease). Then the deficits are filled by backward searches, from the
// root.
//
// Result. All flows and all prices (a source's is cost + p[head] of its arc). If no imbalance is
// left, this is the optimum. At a budget, the same for what was assigned, so that less is left to
// do. If imbalances of the core are left, it is a start with rc >= 0 from which incremental_ssp.hpp
// continues. Where searches go far (network-aware cells: aggregators with 40,000 arcs of different
// costs, and prices that change for thousands of machines at a time), the assignment is given up.
// It is not attempted in networks most of whose arcs do not belong to unit sources.
//
// Termination and complexity. One search and one augmentation by 1 per source: O(n) searches of O(m
// + n log n) each, in practice a handful of nodes each. No path from a source: INFEASIBLE, as in
// incremental_ssp.hpp.
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), section 12.4: successive shortest paths
// for the assignment problem, where rows need no labels. Departures: heads have capacities and lead
// on through a network; prices of rows are implied.
#include "unit_source/unit_sources.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "control.hpp"
#include "graph/residual_graph.hpp"
#include "graph/start_state.hpp"
#include "shortest_path/path_search.hpp"

namespace flowsolver {

namespace {

// The residual graph of a network whose unit sources are not nodes of the graph (for a solve from
// scratch).
//
// A unit source is a node with supply 1 and no arcs in: a task. All its flow is one unit on one
// arc. So it needs no price, no label and no half-edges: it is assigned to the head of that arc.
// Through it, the head has a residual arc to every other head w of the source, of cost cost(w) -
// cost(current arc). The nodes that remain, the core (machines and aggregators), are a tenth of a
// scheduling graph and stay in the cache. The sources' arcs are read in order of their tails.
//
// The price of a source follows: cost(current arc) + p[head] satisfies the optimality conditions of
// all its arcs if those residual arcs have rc >= 0.

// The network split into the core and the unit sources. Arcs of unit sources without capacity are
// left out.
template <class V>
struct SplitNetwork {
  struct SourceArc {
    NodeId head;  // core node
    V cost;
  };

  // Throws Stopped when cancelled.
  SplitNetwork(const Network& network, NodeId network_root, const Control& control) {
    const std::size_t n = network.num_nodes(), m = network.num_arcs();
    std::vector<std::uint8_t> is_core(n, 0);
    for_each_until_cancelled(
        m, control,
        [&, core = is_core.data(), to = network.head.data()](std::size_t a) { core[to[a]] = 1; });
    is_core[network_root] = 1;
    std::size_t nodes = 0;
    for_each_until_cancelled(n, control,
                             [&](std::size_t v) { nodes += is_core[v] |= network.supply[v] != 1; });
    const std::size_t sources = n - nodes;
    source_node.resize(sources);
    core_node.resize(nodes);
    core.supply.resize(nodes);
    constexpr std::uint32_t kIsSource = std::uint32_t{1} << 31;
    std::vector<std::uint32_t> number(n);  // of a core node; of a source, kIsSource + its number
    std::uint32_t next_source = 0, next_core = 0;
    for (NodeId v = 0; v < n; ++v) {
      if (is_core[v] == 0) {
        number[v] = kIsSource + next_source;
        source_node[next_source++] = v;
      } else {
        number[v] = next_core;
        core_node[next_core] = v;
        core.supply[next_core++] = network.supply[v];
      }
    }
    root = number[network_root];

    std::size_t core_arcs = 0;
    NodeId last = 0;
    bool in_order = true;  // whether the sources' arcs are sorted by tail
    for_each_until_cancelled(m, control, [&](std::size_t a) {
      const NodeId tail = network.tail[a];
      const bool of_core = is_core[tail] != 0;
      core_arcs += of_core;
      in_order &= of_core | (tail >= last);
      last = of_core ? last : tail;
    });
    begin.assign(sources + 1, 0);
    arcs.resize(m - core_arcs);
    arc_id.resize(m - core_arcs);
    core_arc.resize(core_arcs);
    core.tail.resize(core_arcs);
    core.head.resize(core_arcs);
    core.capacity.resize(core_arcs);
    core.cost.resize(core_arcs);
    reached.assign(nodes, 0);
    std::size_t at_core = 0;
    std::uint32_t at = 0;
    // `place(source)`: index of the next arc of the source.
    const auto distribute_arcs = [&](auto place) {
      for_each_until_cancelled(m, control, [&](std::size_t a) {
        const std::uint32_t tail = number[network.tail[a]], head = number[network.head[a]];
        const std::int64_t capacity = network.capacity[a];
        const auto cost = static_cast<V>(network.cost[a]);
        if ((tail & kIsSource) == 0) {
          core_arc[at_core] = static_cast<ArcId>(a);
          core.tail[at_core] = tail;
          core.head[at_core] = head;
          core.capacity[at_core] = static_cast<V>(capacity);
          core.cost[at_core++] = cost;
        } else if (capacity > 0) {
          const std::uint32_t to = place(tail & ~kIsSource);
          arcs[to] = {head, cost};
          arc_id[to] = static_cast<ArcId>(a);
          ++at;
        }
        reached[head] |= capacity > 0;
      });
    };
    if (in_order) {
      distribute_arcs([&](std::uint32_t source) {
        begin[source + 1] = at + 1;
        return at;
      });
      // sources without arcs
      for (std::size_t s = 0; s < sources; ++s) begin[s + 1] = std::max(begin[s], begin[s + 1]);
    } else {
      for_each_until_cancelled(m, control, [&](std::size_t a) {
        const std::uint32_t tail = number[network.tail[a]];
        if ((tail & kIsSource) != 0 && network.capacity[a] > 0) ++begin[(tail & ~kIsSource) + 1];
      });
      for (std::size_t s = 0; s < sources; ++s) begin[s + 1] += begin[s];
      std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
      distribute_arcs([&](std::uint32_t source) { return next[source]++; });
    }
    arcs.resize(at);
    arc_id.resize(at);
  }

  PackedNetwork<V> core;          // the network without the unit sources
  std::vector<NodeId> core_node;  // node of the network, per core node
  LargeArray<ArcId> core_arc;
  std::vector<std::uint8_t> reached;  // per core node: whether arcs with capacity lead to it
  NodeId root = kNone;                // core node
  std::vector<NodeId> source_node;    // the unit sources, ascending
  std::vector<std::uint32_t> begin;   // arcs of source s: [begin[s], begin[s + 1])
  LargeArray<SourceArc> arcs;
  LargeArray<ArcId> arc_id;  // arc of the network, per entry of `arcs`
};

template <class V>
class UnitSourceGraph : public ResidualGraph<V> {
 public:
  static constexpr bool kHasUnitSources = true;
  using SourceArc = typename SplitNetwork<V>::SourceArc;

  // Moves the sources' arcs out of `split`.
  UnitSourceGraph(SplitNetwork<V>& split, std::span<const std::int64_t> flow,
                  const Control& control)
      : ResidualGraph<V>(split.core, flow, {}, split.root, false, control),
        assigned(split.core_node.size(), split.source_node.size()),
        source_arcs(std::move(split.arcs)),
        begin_(std::move(split.begin)),
        current_(split.source_node.size(), kNone) {
    for (NodeId v : split.core.tail) this->nodes[v].flags |= kInterior;
    assigned.reserve(0, 0, 2 * num_sources());  // blocks have spare room
  }

  std::size_t num_sources() const { return current_.size(); }
  std::pair<std::uint32_t, std::uint32_t> arcs_of(std::uint32_t source) const {
    return {begin_[source], begin_[source + 1]};
  }
  // kNone: not assigned yet
  std::uint32_t current_arc(std::uint32_t source) const { return current_[source]; }

  // Prefetches what assigning the source will read first.
  void prefetch_assignment(std::uint32_t source) const {
    if (begin_[source] == begin_[source + 1]) return;
    const NodeId head = source_arcs[begin_[source]].head;
    fetch_line(&this->nodes[head]);
    assigned.prefetch(head);
  }

  // The `parent` of a label is the half-edge over which a path came to the node, or a source: then
  // the top bit is set, and the rest is the source (forward search) or its arc (backward search).
  static std::uint32_t parent_of_move(std::uint32_t source, std::uint32_t) {
    return encode_parent(source);
  }
  static std::uint32_t encode_parent(std::uint32_t source_or_arc) {
    return source_or_arc | kSourceBit;
  }
  static bool is_source(std::uint32_t parent) { return (parent & kSourceBit) != 0; }
  static std::uint32_t decode_parent(std::uint32_t parent) { return parent & ~kSourceBit; }

  // Assigns the source to v, over its cheapest arc there. `key`: see `assigned`.
  void assign(std::uint32_t source, NodeId v) {
    const auto [begin, end] = arcs_of(source);
    std::uint32_t chosen = kNone;
    std::int64_t other = kInfinity;  // the best of the other arcs
    const auto cost_through = [this](std::uint32_t i) {
      return source_arcs[i].cost + this->nodes[source_arcs[i].head].price;
    };
    for (std::uint32_t i = begin; i < end; ++i) {
      if (source_arcs[i].head == v &&
          (chosen == kNone || source_arcs[i].cost < source_arcs[chosen].cost)) {
        if (chosen != kNone) other = std::min(other, cost_through(chosen));
        chosen = i;
      } else {
        other = std::min(other, cost_through(i));
      }
    }
    assign(source, chosen, other == kInfinity ? kInfinity : other - source_arcs[chosen].cost);
  }

  void assign(std::uint32_t source, std::uint32_t arc, std::int64_t key) {
    if (current_[source] != kNone) assigned.remove(source_arcs[current_[source]].head, source);
    current_[source] = arc;
    assigned.add(source_arcs[arc].head, source, key);
  }

  // Removes the source from its arc. Returns the node it was assigned to.
  NodeId unassign(std::uint32_t source) {
    const NodeId v = source_arcs[current_[source]].head;
    assigned.remove(v, source);
    current_[source] = kNone;
    return v;
  }

  // For backward searches: the arcs into v whose source is assigned elsewhere, keyed by a lower
  // bound on (cost of the arc - cost of the source's current arc - price of the current head).
  // throws Stopped when cancelled
  void prepare_backward(const Control& control) {
    CancellationChecker checker(control);
    const std::size_t n = this->nodes.size(), m = source_arcs.size();
    in_begin_.assign(n + 1, 0);
    for (const SourceArc& arc : source_arcs) {
      checker.step_until_cancelled({});
      ++in_begin_[arc.head + 1];
    }
    for (std::size_t v = 0; v < n; ++v) in_begin_[v + 1] += in_begin_[v];
    std::vector<std::uint32_t> next(in_begin_.begin(), in_begin_.end() - 1);
    in_arcs_.resize(m);
    arc_source_.resize(m);
    for (std::uint32_t source = 0; source < num_sources(); ++source) {
      checker.step_until_cancelled({}, begin_[source + 1] - begin_[source] + 1);
      for (std::uint32_t i = begin_[source]; i < begin_[source + 1]; ++i) {
        in_arcs_[next[source_arcs[i].head]++] = i;
        arc_source_[i] = source;
      }
    }
    incoming_ = KeyedLists<std::int64_t>(n, m);
    has_incoming_.assign(n, 0);
  }

  KeyedLists<std::int64_t>& incoming_at(NodeId v) {
    if (has_incoming_[v] == 0) {
      has_incoming_[v] = 1;
      incoming_.make_room(v, in_begin_[v + 1] - in_begin_[v]);
      for (std::uint32_t k = in_begin_[v]; k < in_begin_[v + 1]; ++k) {
        const std::uint32_t arc = in_arcs_[k];
        if (current_[arc_source_[arc]] != arc) incoming_.add(v, arc, incoming_key(arc));
      }
    }
    return incoming_;
  }

  std::uint32_t source_of(std::uint32_t arc) const { return arc_source_[arc]; }

  // For searches: see KeyedLists::visit. Keys stay valid, because prices only rise before
  // `prepare_backward` and only fall after it.
  template <class Limit, class Evaluate>
  void visit_assigned(NodeId v, Limit limit, Evaluate evaluate) {
    assigned.visit(v, limit, [](std::span<const std::uint32_t>) {}, evaluate);
  }
  template <class Limit, class Evaluate>
  void visit_incoming(NodeId v, Limit limit, Evaluate evaluate) {
    incoming_at(v).visit(v, limit, [](std::span<const std::uint32_t>) {}, evaluate);
  }
  void prices_moved(std::span<const NodeId>, std::int64_t, bool) {}
  // the arc's source leaves its current arc for this one
  void reassign_backward(std::uint32_t arc) {
    const std::uint32_t source = arc_source_[arc], before = current_[source];
    const NodeId from = source_arcs[before].head, to = source_arcs[arc].head;
    if (has_incoming_[to] != 0) incoming_.remove(to, arc);
    current_[source] = arc;
    if (has_incoming_[from] != 0) incoming_.add(from, before, incoming_key(before));
  }

  // For forward searches: the sources assigned to v, keyed by a lower bound on (cost of the best
  // other arc + price of its head - cost of the current arc). Valid while prices only rise.
  KeyedLists<V> assigned;
  LargeArray<SourceArc> source_arcs;

 private:
  static constexpr std::uint32_t kSourceBit = std::uint32_t{1} << 31;

  // The key of the arc in `incoming_`.
  std::int64_t incoming_key(std::uint32_t arc) const {
    const SourceArc& present = source_arcs[current_[arc_source_[arc]]];
    return std::int64_t{source_arcs[arc].cost} - present.cost - this->nodes[present.head].price;
  }

  std::vector<std::uint32_t> begin_, current_;
  // Arcs by head, for backward searches.
  std::vector<std::uint32_t> in_begin_;
  LargeArray<std::uint32_t> in_arcs_, arc_source_;
  KeyedLists<std::int64_t> incoming_;
  std::vector<std::uint8_t> has_incoming_;  // nodes whose list was made
};

// Lowers an estimated price of capacity that was too high. Such a price leaves deficits: capacity
// that no source uses at that price.
//
// All priced nodes get cheaper by the same amount, chosen so that as many sources on bypasses as
// there are deficits would rather use the capacity. Those are unassigned, to be assigned again.
// Arcs between priced nodes keep their reduced cost. So rc >= 0 is preserved on every residual arc
// as long as the amount is at most
//   rc of every residual arc from an unpriced node to a priced one, the root's included, and
//   the gain from its bypass of every source that cannot be unassigned.
//
// Filling the deficits by backward searches instead would change the same prices, a little at a
// time and all of them each time.
template <class Value>
class UniformPriceDecrease {
 public:
  using Graph = UnitSourceGraph<Value>;

  UniformPriceDecrease(Graph& graph, std::vector<std::uint8_t> is_priced)
      : graph_(graph), priced_(std::move(is_priced)) {}

  bool is_priced(NodeId v) const { return priced_[v] != 0; }

  // Lowers prices for `deficits` units. Returns the unassigned sources, ascending; empty: nothing
  // more can be gained.
  const std::vector<std::uint32_t>& lower(std::int64_t deficits) {
    freed_.clear();
    choices_.clear();
    std::int64_t amount = kInfinity;
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) amount = std::min(amount, max_decrease_at(v));
    if (choices_.empty()) return freed_;
    const auto rank =
        static_cast<std::size_t>(std::min(deficits, static_cast<std::int64_t>(choices_.size()))) -
        1;
    std::nth_element(choices_.begin(), choices_.begin() + static_cast<std::ptrdiff_t>(rank),
                     choices_.end());
    amount = std::min(amount, choices_[rank].first);
    if (amount < 0) return freed_;
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      if (priced_[v] != 0) graph_.nodes[v].price -= amount;
    }
    graph_.assigned.shift_keys(-amount);
    for (std::size_t i = 0; i <= rank; ++i) {
      if (choices_[i].first <= amount) freed_.push_back(choices_[i].second);
    }
    std::sort(freed_.begin(), freed_.end());
    for (std::uint32_t source : freed_) unassign(source);
    return freed_;
  }

 private:
  // The most that prices may fall because of v. Records the sources that could be unassigned from
  // v.
  std::int64_t max_decrease_at(NodeId v) {
    const Node<Value>& node = graph_.nodes[v];
    if (priced_[v] != 0) return node.root_flow > 0 ? node.price - node.root_cost : kInfinity;
    std::int64_t amount = kInfinity;
    for (std::uint32_t i = node.begin; i < node.begin + node.residual_degree; ++i) {
      const auto& edge = graph_.edges[i];
      if (priced_[edge.to] != 0)
        amount = std::min(amount, edge.cost - node.price + graph_.nodes[edge.to].price);
    }
    const bool is_releasable = v == graph_.root() || (node.root_cost == node.price &&
                                                      std::int64_t{node.root_flow} >=
                                                          std::int64_t{graph_.assigned.size(v)});
    graph_.assigned.for_each(v, [&](std::uint32_t source) {
      const std::int64_t advantage = advantage_of_present_arc(source);
      if (advantage == kInfinity) return;
      if (is_releasable) {
        choices_.emplace_back(advantage, source);
      } else {
        amount = std::min(amount, advantage);
      }
    });
    return amount;
  }

  // The gain of the source's current arc over its best arc to a priced node.
  std::int64_t advantage_of_present_arc(std::uint32_t source) const {
    const auto [begin, end] = graph_.arcs_of(source);
    std::int64_t best = kInfinity;
    for (std::uint32_t i = begin; i < end; ++i) {
      const auto& arc = graph_.source_arcs[i];
      if (priced_[arc.head] != 0) best = std::min(best, arc.cost + graph_.nodes[arc.head].price);
    }
    if (best == kInfinity) return kInfinity;
    const auto& present = graph_.source_arcs[graph_.current_arc(source)];
    return best - present.cost - graph_.nodes[present.head].price;
  }

  void unassign(std::uint32_t source) {
    const NodeId v = graph_.unassign(source);
    if (v == graph_.root()) return;
    --graph_.nodes[v].root_flow;
    ++graph_.nodes[v].root_residual;
  }

  Graph& graph_;
  std::vector<std::uint8_t> priced_;                             // by node
  std::vector<std::pair<std::int64_t, std::uint32_t>> choices_;  // (advantage, source)
  std::vector<std::uint32_t> freed_;
};

template <class Value>
class AssignmentBuilder {
 public:
  // `full`: the flow of core arcs that are full at the start; empty if there are none.
  AssignmentBuilder(const Network& network, SplitNetwork<Value> split,
                    const std::vector<std::int64_t>& price, std::vector<std::uint8_t> is_priced,
                    const std::vector<std::int64_t>& full, const Control& control)
      : network_(network),
        split_(std::move(split)),
        graph_(split_, full, control),
        descent_(graph_, std::move(is_priced)) {
    for (NodeId v = 0; v < core_.num_nodes(); ++v) {
      graph_.nodes[v].price = price[v];
      graph_.nodes[v].imbalance = core_.supply[v];
    }
    for (std::size_t a = 0; a < full.size(); ++a) {
      graph_.nodes[core_.tail[a]].imbalance -= full[a];
      graph_.nodes[core_.head[a]].imbalance += full[a];
    }
    graph_.nodes[graph_.root()].imbalance = 0;
    search_.set_control(control);
    back_search_.set_control(control);
  }

  InitialAssignment run(const Control& control, Stats& stats) {
    InitialAssignment result;
    try {
      result.status = assign_all(control, stats);
      if (result.status == Status::kOptimal) result.status = lower_prices(control, stats);
      if (result.status == Status::kOptimal) result.status = fill_deficits(control, stats);
    } catch (const Stopped& stopped) {  // by a search, which leaves the state unchanged
      result.status = stopped.status;
    }
    result.local = far_budget_ >= 0;
    if (result.status != Status::kCancelled && (result.status != Status::kOptimal || result.local))
      write_result(result, control);
    return result;
  }

 private:
  static constexpr std::uint32_t kCheckInterval = 64;
  // heads are scattered: they are prefetched some sources in advance
  static constexpr std::uint32_t kAhead = 8;
  // A search that scans more than 1 / kFarShare of the sources' arcs is not local. When such
  // searches have scanned kFarBudget times as many arcs as there are, the rest is left to a method
  // that routes all imbalances at once. Quincy cells, oversubscribed and contended ones included,
  // need up to 1.4 times.
  static constexpr std::int64_t kFarShare = 64, kFarBudget = 8;

  Status assign_all(const Control& control, Stats& stats) {
    const auto sources = static_cast<std::uint32_t>(graph_.num_sources());
    for (std::uint32_t source = 0; source < sources && far_budget_ >= 0; ++source) {
      if (source % kCheckInterval == 0) {
        if (const Status status = control.check(stats); status != Status::kOptimal) return status;
      }
      if (source + kAhead < sources) graph_.prefetch_assignment(source + kAhead);
      const std::int64_t scanned_before = stats.scanned;
      if (!assign_source(source, stats)) return Status::kInfeasible;
      charge_far_search(stats.scanned - scanned_before);
    }
    return Status::kOptimal;
  }

  // Lowers prices as long as that decreases the deficits.
  Status lower_prices(const Control& control, Stats& stats) {
    std::int64_t before = kInfinity;
    for (std::int64_t left = deficits(); left > 0 && left < before && far_budget_ >= 0;
         left = deficits()) {
      if (const Status status = control.check(stats); status != Status::kOptimal) return status;
      before = left;
      for (std::uint32_t source : descent_.lower(left)) {
        ++stats.repaired;
        if (!assign_to_priced(source, stats) && !assign_source(source, stats))
          return Status::kInfeasible;
      }
    }
    return Status::kOptimal;
  }

  std::int64_t deficits() const {
    std::int64_t sum = 0;
    for (const Node<Value>& node : graph_.nodes) sum += std::max<std::int64_t>(0, -node.imbalance);
    return sum;
  }

  Status fill_deficits(const Control& control, Stats& stats) {
    bool prepared = false;
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      while (graph_.nodes[v].imbalance < 0 && far_budget_ >= 0) {
        if (const Status status = control.check(stats); status != Status::kOptimal) return status;
        if (!prepared) graph_.prepare_backward(control);
        prepared = true;
        const std::int64_t scanned_before = stats.scanned;
        const Target target = back_search_.run(graph_, std::array{v}, kInfinity, repriced_, stats);
        if (!target.found()) return Status::kInfeasible;
        ++stats.augmentations;
        augment_backward(target);
        charge_far_search(stats.scanned - scanned_before);
      }
    }
    return Status::kOptimal;
  }

  void charge_far_search(std::int64_t scanned) {
    if (scanned > static_cast<std::int64_t>(graph_.source_arcs.size()) / kFarShare)
      far_budget_ -= scanned;
  }

  bool assign_source(std::uint32_t source, Stats& stats) {
    const auto [begin, end] = graph_.arcs_of(source);
    std::int64_t best = kInfinity, second = kInfinity;
    std::uint32_t with_target = kNone;
    for (std::uint32_t i = begin; i < end; ++i) {
      const auto& arc = graph_.source_arcs[i];
      const Node<Value>& node = graph_.nodes[arc.head];
      const std::int64_t through = arc.cost + node.price;
      if (through > best) {
        second = std::min(second, through);
      } else {
        if (through < best) with_target = kNone;
        second = best;
        best = through;
        if (with_target == kNone && arc.head != graph_.root() && Search::has_target_arc(node))
          with_target = i;
      }
    }
    stats.scanned += end - begin;
    if (with_target != kNone) {
      ++stats.searches;
      ++stats.augmentations;
      const std::int64_t cost = graph_.source_arcs[with_target].cost;
      graph_.assign(source, with_target, second == kInfinity ? kInfinity : second - cost);
      end_unit_at(graph_.source_arcs[with_target].head,
                  graph_.nodes[graph_.source_arcs[with_target].head].imbalance >= 0);
      return true;
    }
    seeds_.clear();
    for (std::uint32_t i = begin; i < end; ++i) {
      const auto& arc = graph_.source_arcs[i];
      seeds_.push_back(
          {arc.head, Graph::encode_parent(source), arc.cost + graph_.nodes[arc.head].price - best});
    }
    return search_from_seeds(kInfinity, stats);
  }

  // As assign_source, but only to priced nodes, and only if that requires no change of prices.
  bool assign_to_priced(std::uint32_t source, Stats& stats) {
    const auto [begin, end] = graph_.arcs_of(source);
    std::int64_t best = kInfinity;
    seeds_.clear();
    for (std::uint32_t i = begin; i < end; ++i) {
      const auto& arc = graph_.source_arcs[i];
      const std::int64_t through = arc.cost + graph_.nodes[arc.head].price;
      if (through > best) continue;
      if (through < best) seeds_.clear();
      best = through;
      if (descent_.is_priced(arc.head))
        seeds_.push_back({arc.head, Graph::encode_parent(source), 0});
    }
    stats.scanned += end - begin;
    return search_from_seeds(0, stats);
  }

  bool search_from_seeds(std::int64_t limit, Stats& stats) {
    const Target target = search_.run_from(graph_, seeds_, limit, repriced_, stats);
    if (!target.found()) return false;
    ++stats.augmentations;
    augment(target);
    return true;
  }

  // Ends a unit of flow at v.
  void end_unit_at(NodeId v, bool through_root_arc) {
    Node<Value>& node = graph_.nodes[v];
    if (through_root_arc) {
      --node.root_residual;
      ++node.root_flow;
    } else if (v != graph_.root()) {
      ++node.imbalance;
    }
  }

  void augment(const Target& target) {
    end_unit_at(target.node, target.through_root_arc);
    NodeId v = target.node;
    while (true) {  // bounded: by the length of a path
      const std::uint32_t parent = graph_.nodes[v].parent;
      if (Graph::is_source(parent)) {
        const std::uint32_t source = Graph::decode_parent(parent);
        const std::uint32_t before = graph_.current_arc(source);
        graph_.assign(source, v);
        if (before == kNone) return;  // the source being assigned
        v = graph_.source_arcs[before].head;
      } else {
        const NodeId u = graph_.owner(parent);
        graph_.push(u, parent, 1);
        if ((graph_.nodes[u].flags & kInterior) != 0) graph_.nodes[u].current = parent;
        v = u;
      }
    }
  }

  // Augments from the target back to the deficit: by one unit if a source is reassigned on the
  // path, else by as much as fits.
  void augment_backward(const Target& target) {
    Node<Value>& last = graph_.nodes[target.node];
    std::int64_t amount = kInfinity;
    if (target.through_root_arc) {
      amount = last.root_flow;
    } else if (target.node != graph_.root()) {
      amount = last.imbalance;
    }
    NodeId deficit = target.node;
    // bounded: by the length of a path
    for (std::uint32_t parent; (parent = graph_.nodes[deficit].parent) != kNone;
         deficit = next_on_path(parent)) {
      amount = std::min<std::int64_t>(
          amount, Graph::is_source(parent) ? 1 : graph_.edges[parent].reverse_residual);
    }
    amount = std::min(amount, -graph_.nodes[deficit].imbalance);
    for (NodeId v = target.node; v != deficit;) {  // bounded: by the length of a path
      const std::uint32_t parent = graph_.nodes[v].parent;
      const NodeId next = next_on_path(parent);
      if (Graph::is_source(parent)) {
        graph_.reassign_backward(Graph::decode_parent(parent));
      } else {
        graph_.push(v, graph_.position[graph_.edges[parent].id ^ 1], static_cast<Value>(amount));
      }
      v = next;
    }
    graph_.nodes[deficit].imbalance += amount;
    if (target.through_root_arc) {
      last.root_residual += static_cast<Value>(amount);
      last.root_flow -= static_cast<Value>(amount);
    } else if (target.node != graph_.root()) {
      last.imbalance -= amount;
    }
  }
  // The next node of a backward path.
  NodeId next_on_path(std::uint32_t parent) const {
    return Graph::is_source(parent) ? graph_.source_arcs[Graph::decode_parent(parent)].head
                                    : graph_.owner(parent);
  }

  void write_result(InitialAssignment& result, const Control& control) const {
    if (fill_zeros(result.flow, network_.num_arcs(), control) != Status::kOptimal)
      throw Stopped{Status::kCancelled};
    result.price.assign(network_.num_nodes(), 0);
    result.complete = true;
    std::vector<std::int64_t> price_of(core_.num_nodes());  // denser in memory than nodes
    for (NodeId v = 0; v < core_.num_nodes(); ++v) {
      result.price[split_.core_node[v]] = price_of[v] = graph_.nodes[v].price;
      result.complete &= graph_.nodes[v].imbalance == 0;
    }
    for_each_until_cancelled(core_.num_arcs(), control, [&](std::size_t a) {
      const std::int64_t flow = graph_.flow_at(static_cast<ArcId>(a), core_.tail[a]);
      result.flow[split_.core_arc[a]] = flow;
      result.cost += static_cast<__int128>(core_.cost[a]) * flow;
    });
    for_each_until_cancelled(graph_.num_sources(), control, [&](std::size_t number) {
      const auto source = static_cast<std::uint32_t>(number);
      const std::uint32_t now = graph_.current_arc(source);
      std::int64_t price = kInfinity;
      if (now != kNone) {
        const auto& arc = graph_.source_arcs[now];
        result.flow[split_.arc_id[now]] = 1;
        result.cost += arc.cost;
        price = arc.cost + price_of[arc.head];
      } else {
        result.complete = false;
        const auto [begin, end] = graph_.arcs_of(source);
        for (std::uint32_t i = begin; i < end; ++i) {
          price = std::min(
              price, graph_.source_arcs[i].cost + graph_.nodes[graph_.source_arcs[i].head].price);
        }
        if (price == kInfinity) price = 0;
      }
      result.price[split_.source_node[source]] = price;
    });
  }

  using Graph = UnitSourceGraph<Value>;
  using Search = PathSearch<Graph, true>;
  using BackSearch = PathSearch<Graph, false>;

  const Network& network_;
  SplitNetwork<Value> split_;  // without the sources' arcs, which the graph has
  const PackedNetwork<Value>& core_ = split_.core;
  Graph graph_;
  UniformPriceDecrease<Value> descent_;
  Search search_;
  BackSearch back_search_;
  std::int64_t far_budget_ = kFarBudget * static_cast<std::int64_t>(graph_.source_arcs.size());
  std::vector<Seed> seeds_;
  std::vector<NodeId> repriced_;
};

// Whether the capacity that arcs lead to suffices for all supply. Then there is nothing to estimate
// (start_state.hpp). Nearly always so.
template <class Value>
bool has_room(const SplitNetwork<Value>& split) {
  const PackedNetwork<Value>& core = split.core;
  std::vector<std::uint8_t> shared(core.num_nodes(), 0);
  std::vector<std::int64_t> to_root(core.num_nodes(), 0);
  for (std::size_t a = 0; a < core.num_arcs(); ++a) {
    const NodeId tail = core.tail[a], head = core.head[a];
    shared[head] |= split.reached[tail] & static_cast<std::uint8_t>(core.capacity[a] > 0);
    if (head == split.root) to_root[tail] += core.capacity[a];
  }
  auto supply = static_cast<std::int64_t>(split.source_node.size());
  for (std::int64_t more : core.supply) supply += std::max<std::int64_t>(0, more);
  std::int64_t room = 0;
  for (NodeId v = 0; v < core.num_nodes(); ++v) room += shared[v] != 0 ? to_root[v] : 0;
  return supply <= room;
}

// The flow that fills core arcs with rc < 0 at these prices and leaves all others empty; no flow if
// there are none.
template <class Value>
std::vector<std::int64_t> full_where_cheap(const PackedNetwork<Value>& core,
                                           const std::vector<std::int64_t>& price) {
  std::vector<std::int64_t> flow;
  for (std::size_t a = 0; a < core.num_arcs(); ++a) {
    if (core.cost[a] - price[core.tail[a]] + price[core.head[a]] >= 0) continue;
    flow.resize(core.num_arcs(), 0);
    flow[a] = core.capacity[a];
  }
  return flow;
}

template <class Value>
bool any_negative(const LargeArray<Value>& values) {
  Value signs = 0;
  for (Value value : values) signs |= value;
  return signs < 0;
}

template <class Value>
InitialAssignment assign_source(const Network& network, NodeId root, const Control& control,
                                Stats& stats) {
  SplitNetwork<Value> split(network, root, control);
  if (2 * split.arcs.size() < network.num_arcs()) return {};  // little would be gained
  PriceEstimate estimate;
  if (!has_room(split)) estimate = estimate_price(network, root, control);
  std::vector<std::int64_t> price(split.core_node.size(), 0);
  std::vector<std::uint8_t> is_priced(split.core_node.size(), 0);
  for (NodeId v : estimate.nodes) {
    const auto number = std::lower_bound(split.core_node.begin(), split.core_node.end(), v) -
                        split.core_node.begin();
    price[static_cast<std::size_t>(number)] = estimate.price;
    is_priced[static_cast<std::size_t>(number)] = 1;
  }
  std::vector<std::int64_t> full;
  if (!estimate.nodes.empty() || any_negative(split.core.cost))
    full = full_where_cheap(split.core, price);
  return AssignmentBuilder<Value>(network, std::move(split), price, std::move(is_priced), full,
                                  control)
      .run(control, stats);
}

}  // namespace

InitialAssignment assign_unit_sources(const Network& network, NodeId root, bool narrow,
                                      const Control& control, Stats& stats) {
  try {
    return narrow ? assign_source<std::int32_t>(network, root, control, stats)
                  : assign_source<std::int64_t>(network, root, control, stats);
  } catch (const Stopped& stopped) {
    InitialAssignment result;
    result.status = stopped.status;
    return result;
  }
}

}  // namespace flowsolver
