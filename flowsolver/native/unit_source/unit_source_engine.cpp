// Unit source engines, in order: finding the sources, the uniform increase of prices, and the
// engine: changes, a run, and its augmentations.
#include "unit_source/unit_sources.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "shortest_path/local_engine.hpp"
#include "shortest_path/path_search.hpp"
#include "unit_source/bidirectional_search.hpp"

namespace flowsolver {

namespace {

// Per node: whether it is a unit source (unit_sources.hpp).
std::vector<std::uint8_t> find_unit_sources(const EngineStart& start, const Control& control) {
  CancellationChecker checker(control);
  const Network& network = start.network;
  std::vector<std::uint8_t> is_source(network.num_nodes());
  for (NodeId v = 0; v < is_source.size(); ++v)
    is_source[v] = network.supply[v] == 1 && v != start.root;
  for (ArcId a = 0; a < network.num_arcs(); ++a) {
    checker.step_until_cancelled({});
    if (!start.alive.empty() && start.alive[a] == 0) continue;
    is_source[network.head[a]] = 0;
    if (network.capacity[a] == 0) is_source[network.tail[a]] = 0;
  }
  return is_source;
}

// Per arc: whether it is alive and its tail is not a unit source.
std::vector<std::uint8_t> core_arcs(const EngineStart& start,
                                    const std::vector<std::uint8_t>& is_source,
                                    const Control& control) {
  CancellationChecker checker(control);
  std::vector<std::uint8_t> core(start.network.num_arcs());
  for (ArcId a = 0; a < core.size(); ++a) {
    checker.step_until_cancelled({});
    core[a] = (start.alive.empty() || start.alive[a] != 0) && is_source[start.network.tail[a]] == 0;
  }
  return core;
}

// Raises all positive prices by the same amount, when many sources would leave their places for the
// same small gain.
//
// In a cell without a free slot whose waiting tasks get more expensive to leave waiting by one in
// each round, the price of every slot rises by one. Searches find that out too, but only after each
// of those tasks has taken a slot from another task, most of which then take one from them in turn.
//
// Definitions. S: the core nodes with a price > 0 (prices of unit sources are implied). The k
// candidates: those of the changed sources, assigned outside S, that are cheaper elsewhere by d or
// more, where d is the least such gain. sigma of a source assigned to S: its gain from staying,
// compared with its best arc out of S.
//
// Method. The prices of all nodes in S rise by the minimum of d, the reduced costs of residual arcs
// out of S, and the k-th smallest sigma. Arcs within S, arcs into S, and arcs of the sources that
// stay keep rc >= 0. Sources with a smaller sigma are returned, to be unassigned. If these are
// fewer than k because sigma ended the rise, other sources whose sigma equals the rise are
// reassigned at once, which costs nothing: k in all, to make room for k. If d ended the rise, those
// of the k candidates whose gain is just d are as cheap elsewhere now, and may use the capacity
// that the returned sources free. So the invariant of incremental_ssp.hpp holds and less is left to
// search for; optimality is not decided here.
//
// Complexity. One pass over all core nodes and their residual arcs, and over the sources that are
// about to leave. It pays only in place of many searches.
template <class Value>
class UniformPriceIncrease {
 public:
  // `core_nodes`: every core node; some more than once.
  UniformPriceIncrease(ResidualGraph<Value>& graph, UnitSources<Value>& sources,
                       std::span<const NodeId> core_nodes, std::vector<NodeId>& repriced)
      : graph_(graph), sources_(sources), core_nodes_(core_nodes), repriced_(repriced) {}

  // Examines the sources in `changed` and raises prices if that helps. Appends the sources that are
  // not on their best arc any more.
  void run(std::vector<NodeId>& changed, const Control& control, Stats& stats) {
    const std::size_t worse_off = count_worse_off(changed);
    if (worse_off < kFewSources || worse_off * kArcsPerSearch < sources_.source_arcs.size()) return;
    const std::int64_t least = amount_;
    list_priced();
    if (!find_leaving(control, stats)) return;
    if (leaving_.size() > worse_off) {
      std::nth_element(leaving_.begin(),
                       leaving_.begin() + static_cast<std::ptrdiff_t>(worse_off - 1),
                       leaving_.end());
      leaving_.resize(worse_off);
      amount_ = leaving_.back().first;
    }
    std::sort(leaving_.begin(), leaving_.end());
    for (const auto& [sigma, source] : leaving_)
      (sigma < amount_ ? changed : indifferent_members_).push_back(source);
    if (amount_ > 0) raise(stats);
    if (amount_ == least) indifferent_outsiders_.swap(nearest_);
  }

  // Sources assigned to S that can leave S at no cost, and should.
  std::span<const NodeId> indifferent_members() const { return indifferent_members_; }
  // Sources assigned outside S that can enter S at no cost.
  std::span<const NodeId> indifferent_outsiders() const { return indifferent_outsiders_; }

 private:
  static constexpr std::size_t kFewSources = 2;
  // scanning this many in order takes as long as one search in a full cell
  static constexpr std::size_t kArcsPerSearch = 32'768;

  // Counts the candidates and sets the amount to d.
  std::size_t count_worse_off(std::span<const NodeId> changed) {
    std::size_t count = 0;
    amount_ = kInfinity;
    for (NodeId source : changed) {
      if (!is_assigned(source)) continue;
      const std::uint32_t now = sources_.current_arc(source);
      if (is_member(sources_.source_arcs[now].head)) continue;
      const std::int64_t worse = sources_.cost_through(now) - sources_.best_cost(source);
      if (worse <= 0) continue;
      ++count;
      if (worse < amount_) nearest_.clear();
      amount_ = std::min(amount_, worse);
      if (worse == amount_) nearest_.push_back(source);
    }
    return count;
  }

  bool is_assigned(NodeId v) const {
    return sources_.is_source(v) && sources_.current_arc(v) != kNone;
  }
  bool is_member(NodeId v) const { return graph_.nodes[v].price > 0; }

  // Lists S. Residual arcs out of it limit the amount.
  void list_priced() {
    priced_.clear();
    for (NodeId v : core_nodes_) {
      if (!is_member(v) || sources_.is_source(v)) continue;
      const Node<Value>& node = graph_.nodes[v];
      priced_.push_back(v);
      if (node.root_residual > 0) amount_ = std::min(amount_, node.root_cost - node.price);
      for (std::uint32_t i = node.begin; i < node.begin + node.residual_degree; ++i) {
        const auto& edge = graph_.edges[i];
        if (!is_member(edge.to))
          amount_ = std::min(amount_, edge.cost - node.price + graph_.nodes[edge.to].price);
      }
    }
    keep_distinct(priced_);
  }

  // Lists the sources assigned to S with sigma below the amount, or 0: those are among the first in
  // the incoming lists of the nodes they would go to. False: stopped.
  bool find_leaving(const Control& control, Stats& stats) {
    leaving_.clear();
    const std::int64_t limit = std::max<std::int64_t>(amount_, 1);
    CancellationChecker checker(control);
    for (NodeId v : core_nodes_) {
      if (is_member(v) || sources_.is_source(v)) continue;
      const std::int64_t price = graph_.nodes[v].price;
      const std::int64_t scanned_before = stats.scanned;
      sources_.visit_incoming(
          v, [&] { return limit - price; },
          [&](std::uint32_t arc, std::int64_t bound, NodeId) {
            ++stats.scanned;
            const NodeId source = sources_.source_of(arc);
            if (!is_assigned(source)) return bound;
            const auto& now = sources_.source_arcs[sources_.current_arc(source)];
            const std::int64_t key = std::int64_t{sources_.source_arcs[arc].cost} - now.cost -
                                     graph_.nodes[now.head].price;
            if (is_member(now.head) && key + price < limit)
              leaving_.emplace_back(key + price, source);
            return key;
          });
      if (checker.step(stats, 1 + stats.scanned - scanned_before) != Status::kOptimal) return false;
    }
    // Keeps each source once, with its least sigma.
    const auto by_source = [](const auto& a, const auto& b) {
      return std::pair(a.second, a.first) < std::pair(b.second, b.first);
    };
    const auto same_source = [](const auto& a, const auto& b) { return a.second == b.second; };
    std::sort(leaving_.begin(), leaving_.end(), by_source);
    leaving_.erase(std::unique(leaving_.begin(), leaving_.end(), same_source), leaving_.end());
    return true;
  }

  void raise(Stats& stats) {
    for (NodeId v : priced_) {
      move_price(graph_.nodes[v], v, amount_, repriced_);
      graph_.nodes[v].distance = 0;
      ++stats.repaired;
    }
    sources_.prices_moved(priced_, amount_, true);
  }

  static void keep_distinct(std::vector<NodeId>& nodes) {
    if (!std::is_sorted(nodes.begin(), nodes.end())) std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }

  ResidualGraph<Value>& graph_;
  UnitSources<Value>& sources_;
  std::span<const NodeId> core_nodes_;
  std::vector<NodeId>& repriced_;
  std::int64_t amount_ = 0;
  std::vector<NodeId> priced_;   // S
  std::vector<NodeId> nearest_;  // candidates with gain d
  std::vector<NodeId> indifferent_members_, indifferent_outsiders_;
  std::vector<std::pair<std::int64_t, NodeId>> leaving_;  // (sigma, source)
};

// Raises prices along with costs, when many arcs between core nodes get dearer by the same amount.
//
// When every way into a machine gets dearer by one, the price of all that leads there rises by one.
// Searches find that out, too, but each for the nodes that it settles, and the arcs of all others
// look cheaper than they are until then.
//
// Method. The prices of the arcs' tails and of all core nodes from which one of them can be reached
// rise by the amount. Sources assigned to these nodes are noted as changed. Other arcs out of the
// set, which may be too cheap now, are noted as dirty. So the repair that follows restores the
// invariant of incremental_ssp.hpp, as after any change. Prices of an optimum are not decided here.
//
// Complexity. One pass over the half-edges of the set, and over the sources assigned to it.
class CommonCostRise {
 public:
  // An arc out of a core node to another one got dearer by so much.
  void note(NodeId tail, std::int64_t amount) {
    if (tails_.empty()) amount_ = amount;
    is_common_ &= amount == amount_;
    tails_.push_back(tail);
  }
  bool pays() const { return is_common_ && amount_ > 0 && tails_.size() >= kManyArcs; }
  std::int64_t amount() const { return amount_; }
  std::span<const NodeId> tails() const { return tails_; }
  void clear() {
    tails_.clear();
    is_common_ = true;
  }

 private:
  static constexpr std::size_t kManyArcs = 2048;  // searches raise the prices of fewer

  std::int64_t amount_ = 0;
  bool is_common_ = true;
  std::vector<NodeId> tails_;
};

// Limits the nodes that searches settle at one distance, for the lifetime of this object, also when
// a search throws.
template <class Paths>
class ScopedSettleLimit {
 public:
  explicit ScopedSettleLimit(Paths& paths) : paths_(paths) { paths.set_settle_limit(kSettleLimit); }
  ScopedSettleLimit(const ScopedSettleLimit&) = delete;
  ScopedSettleLimit& operator=(const ScopedSettleLimit&) = delete;
  ~ScopedSettleLimit() { paths_.set_settle_limit(std::numeric_limits<std::size_t>::max()); }

 private:
  static constexpr std::size_t kSettleLimit = 256;
  Paths& paths_;
};

template <class Value>
class UnitSourceEngine final : public LocalEngine<Value, UnitSources<Value>> {
 public:
  UnitSourceEngine(const EngineStart& start, const Control& control)
      : UnitSourceEngine(start, find_unit_sources(start, control), control) {}

  void add_node(NodeId v, std::int64_t supply) override {
    ensure_lists();
    graph_.grow_to_node(v);
    sources_.extend(graph_.num_nodes());
    if (supply == 1 && v != graph_.root()) {
      sources_.add_source(v);
      unassigned_.push_back(v);
      return;
    }
    core_nodes_.push_back(v);
    Local::add_node(v, supply);
  }

  void remove_node(NodeId v) override {
    ensure_lists();
    if (sources_.is_source(v)) {
      sources_.remove_source(v);
    } else {
      Local::remove_node(v);
    }
  }

  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    ensure_lists();
    if (sources_.is_source(head)) make_core_node(head);
    if (sources_.is_source(tail) && capacity == 0) make_core_node(tail);
    if (sources_.is_source(tail)) {
      sources_.add_arc(tail, arc, head, static_cast<Value>(cost));
      if (sources_.current_arc(tail) != kNone) note_changed(tail);
      return;
    }
    Local::add_arc(arc, tail, head, capacity, cost);
    graph_.nodes[tail].flags |= kInterior;
    if (graph_.root_arc(tail) == arc) root_tails_.push_back(tail);
  }

  void remove_arc(ArcId arc, NodeId tail, NodeId head) override {
    ensure_lists();
    if (sources_.is_source(tail)) {
      if (sources_.is_assigned_over(tail, arc)) unassign(tail);
      sources_.remove_arc(tail, sources_.position_of(arc, tail));
      return;
    }
    Local::remove_arc(arc, tail, head);
    graph_.nodes[tail].flags |= kInterior;  // even if only sources lead to it
  }

  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override {
    ensure_lists();
    if (sources_.is_source(tail)) {
      if (capacity > 0) return;
      make_core_node(tail);
    }
    Local::set_capacity(arc, tail, head, capacity);
  }

  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    ensure_lists();
    if (sources_.is_source(tail)) {
      const std::uint32_t assign = sources_.position_of(arc, tail);
      const std::int64_t dearer = cost - sources_.source_arcs[assign].cost;
      const std::uint32_t now = sources_.current_arc(tail);
      if (now == assign) cost_ += dearer;
      sources_.set_cost(tail, assign, static_cast<Value>(cost));
      // If the current arc gets cheaper or another one more expensive, the lower bounds and the
      // invariant still hold.
      if (now != kNone && (now == assign) == (dearer > 0)) note_changed(tail);
      return;
    }
    if (!graph_.is_root_arc(arc)) common_rise_.note(tail, cost - graph_.cost_at(arc, tail));
    Local::set_cost(arc, tail, cost);
  }

  void change_supply(NodeId v, std::int64_t delta) override {
    ensure_lists();
    if (sources_.is_source(v)) make_core_node(v);
    shift_imbalance(v, delta);
  }

  void incident_arcs(std::span<const NodeId> of, std::vector<ArcId>& arcs) const override {
    for (NodeId v : of) arcs_at(v, arcs);
    if (unassigned_.empty()) return;
    std::vector<NodeId> heads;
    std::copy_if(of.begin(), of.end(), std::back_inserter(heads),
                 [this](NodeId v) { return !sources_.is_source(v); });
    if (heads.empty()) return;
    std::sort(heads.begin(), heads.end());
    for (NodeId source : unassigned_) {
      if (!sources_.is_source(source) || sources_.listed(source)) continue;
      const auto [begin, end] = sources_.arcs_of(source);
      for (std::uint32_t i = begin; i < end; ++i) {
        const auto& arc = sources_.source_arcs[i];
        if (std::binary_search(heads.begin(), heads.end(), arc.head)) arcs.push_back(arc.id);
      }
    }
  }

  // Done only if all nodes are unit sources, whose arcs are adjacent in memory.
  bool remove_with_arcs(std::span<const NodeId> of, std::vector<ArcId>& arcs) override {
    ensure_lists();  // also for `incident_arcs`, for which it does nothing
    if (!std::all_of(of.begin(), of.end(), [this](NodeId v) { return sources_.is_source(v); }))
      return false;
    for (NodeId source : of) {
      arcs_at(source, arcs);
      if (const std::uint32_t now = sources_.current_arc(source); now != kNone) {
        cost_ -= sources_.source_arcs[now].cost;
        shift_imbalance(sources_.source_arcs[now].head, -1);
      }
      sources_.remove_source(source);
    }
    return true;
  }

  Status run(const Control& control, Stats& stats) override {
    if (!ensure_lists(control)) return Status::kCancelled;
    if (common_rise_.pays()) raise_above(common_rise_.tails(), common_rise_.amount(), stats);
    common_rise_.clear();
    repair_core(stats);
    UniformPriceIncrease<Value> increase(graph_, sources_, core_nodes_, repriced_);
    increase.run(changed_, control, stats);
    for (NodeId source : increase.indifferent_members()) yield_place(source, stats);
    recheck(stats);
    const bool has_indifferent_sources =
        !increase.indifferent_members().empty() || !increase.indifferent_outsiders().empty();
    if (has_indifferent_sources) move_deficits_up(stats);
    this->hint_at_deficits([](const Node<Value>&) { return true; });
    graph_.hubs.forget_ways();
    const Status status = this->run_searches(sources_, control, [&] {
      Status routed = assign_pending(control, stats);
      if (routed == Status::kOptimal) {
        for (NodeId source : increase.indifferent_outsiders()) yield_place(source, stats);
        routed = route_imbalances<true>(control, stats);
      }
      return routed == Status::kOptimal ? route_imbalances<false>(control, stats) : routed;
    });
    this->drop_balanced();
    compact(core_nodes_, compacted_core_nodes_);
    compact(root_tails_, compacted_root_tails_);
    return status;
  }

  std::int64_t flow(ArcId arc, NodeId tail) const override {
    if (!sources_.is_source(tail)) return graph_.flow_at(arc, tail);
    return sources_.is_assigned_over(tail, arc) ? 1 : 0;
  }

  std::int64_t price(NodeId v) const override {
    return sources_.is_source(v) ? sources_.price(v) : graph_.nodes[v].price;
  }
  void implicitly_priced_by(NodeId v, std::vector<NodeId>& nodes) const override {
    sources_.for_each_assigned(v, [&](NodeId source) { nodes.push_back(source); });
  }
  void fetch_price(NodeId v) const override {
    if (sources_.is_source(v)) return sources_.prefetch(v);
    fetch_line(&graph_.nodes[v].price);
  }
  void fetch_arcs(NodeId v) const override {
    if (sources_.is_source(v)) sources_.prefetch_arcs(v);
  }
  bool is_implicitly_priced(NodeId v) const override { return sources_.is_source(v); }
  // Without those over which sources could come: an aggregator may have one from each task.
  void arcs_bound_by(NodeId v, std::span<const std::uint8_t> risen,
                     std::vector<ArcId>& arcs) const override {
    if (sources_.is_source(v)) {
      const auto [begin, end] = sources_.arcs_of(v);
      for (std::uint32_t i = begin; i < end; ++i) {
        const auto& arc = sources_.source_arcs[i];
        if (risen.empty() || risen[arc.head] == 0) arcs.push_back(arc.id);
      }
      return;
    }
    this->append_arcs_bound_by(v, risen, arcs);
    if (risen.empty()) append_assigned(v, arcs);
  }

 private:
  using Sources = UnitSources<Value>;
  using Local = LocalEngine<Value, Sources>;
  using Local::cost_;
  using Local::dirty_;
  using Local::end_flow_at;
  using Local::graph_;
  using Local::kCancelCheckInterval;
  using Local::kFarShare;
  using Local::kFewLeft;
  using Local::mark_dirty;
  using Local::needs_flow;
  using Local::network_;
  using Local::new_nodes_;
  using Local::repriced_;
  using Local::unbalanced_;
  using Pseudoflow<Value>::shift_imbalance;

  // After searches have settled kRelabelAfter nodes, hops to the targets are computed again, for up
  // to kMaxRelabelled nodes.
  static constexpr std::int64_t kRelabelAfter = 256;
  static constexpr std::size_t kMaxRelabelled = 1024;

  UnitSourceEngine(const EngineStart& start, const std::vector<std::uint8_t>& is_source,
                   const Control& control)
      : Local(ResidualGraph<Value>(start.network, start.flow, core_arcs(start, is_source, control),
                                   start.root, true, control),
              start.network),
        sources_(graph_, start.network) {
    const auto is_live = [&](ArcId a) { return start.alive.empty() || start.alive[a] != 0; };
    CancellationChecker checker(control);
    for (NodeId v = 0; v < network_.num_nodes(); ++v) {
      checker.step_until_cancelled({});
      if (is_source[v] != 0) {
        sources_.add_source(v);
        continue;
      }
      core_nodes_.push_back(v);
      // no hops are known yet
      graph_.nodes[v].hops[0] = graph_.nodes[v].hops[1] = HopBuckets::kLevels - 2;
      if (!start.price.empty()) graph_.nodes[v].price = start.price[v];
      if (network_.supply[v] != 0) shift_imbalance(v, network_.supply[v]);
    }
    if (start.flow.empty() && start.price.empty()) this->estimate_prices(control);
    graph_.nodes[start.root].price = 0;
    std::vector<std::uint32_t> degree(network_.num_nodes(), 0);
    for (ArcId a = 0; a < network_.num_arcs(); ++a) {
      checker.step_until_cancelled({});
      degree[network_.tail[a]] += is_live(a);
    }
    for (ArcId a = 0; a < network_.num_arcs(); ++a) {
      checker.step_until_cancelled({});
      if (!is_live(a)) continue;
      const NodeId u = network_.tail[a], v = network_.head[a];
      if (is_source[u] != 0) {
        if (degree[u] != 0) sources_.reserve_arcs(u, std::exchange(degree[u], 0));
        sources_.add_arc(u, a, v, static_cast<Value>(network_.cost[a]));
        if (!start.flow.empty() && start.flow[a] > 0)
          sources_.preassign(u, sources_.position_of(a, u));
        continue;
      }
      graph_.nodes[u].flags |= kInterior;
      if (graph_.root_arc(u) == a) root_tails_.push_back(u);
      if (!start.flow.empty() && start.flow[a] != 0) {
        shift_imbalance(u, -start.flow[a]);
        shift_imbalance(v, start.flow[a]);
        cost_ += static_cast<__int128>(network_.cost[a]) * start.flow[a];
      }
      mark_dirty(a);
    }
    constexpr std::int64_t kStepsPerSource = 8;
    // A source stays on its arc of the start if it is the best one; else a search assigns it.
    for (NodeId v = 0; v < network_.num_nodes(); ++v) {
      if (is_source[v] == 0) continue;
      checker.step_until_cancelled({}, kStepsPerSource);
      const std::uint32_t at = sources_.current_arc(v);
      if (at != kNone && sources_.is_on_best_arc(v)) {
        cost_ += sources_.source_arcs[at].cost;
        shift_imbalance(sources_.source_arcs[at].head, 1);
      } else {
        sources_.preassign(v, kNone);
        unassigned_.push_back(v);
      }
    }
  }

  // Builds the lists of the sources that the start assigned: not before the first run or change,
  // when the start need not be kept in memory any more. False: cancelled.
  bool ensure_lists(const Control& control = Control()) {
    if (!listed_) {
      release_free_memory();
      listed_ = sources_.build_lists(control);
    }
    return listed_;
  }
  // Assigns an unassigned source. The caller adjusts imbalances.
  void assign_over(NodeId source, std::uint32_t arc) {
    sources_.assign(source, arc);
    this->touch(sources_.source_arcs[arc].id, 0);
    cost_ += sources_.source_arcs[arc].cost;
  }

  void unassign(NodeId source) {
    const auto arc = sources_.source_arcs[sources_.current_arc(source)];
    sources_.unassign(source);
    this->touch(arc.id, 1);
    cost_ -= arc.cost;
    shift_imbalance(arc.head, -1);
    unassigned_.push_back(source);
  }

  // Records the source once, however many of its arcs change.
  void note_changed(NodeId source) {
    if (sources_.mark_changed(source)) changed_.push_back(source);
  }

  // The arcs at v, except those of unassigned sources into v.
  void arcs_at(NodeId v, std::vector<ArcId>& arcs) const {
    const auto& source_arcs = sources_.source_arcs;
    if (sources_.is_source(v)) {
      const auto [begin, end] = sources_.arcs_of(v);
      std::size_t next = arcs.size();
      arcs.resize(next + end - begin);
      for (std::uint32_t i = begin; i < end; ++i) arcs[next++] = source_arcs[i].id;
      return;
    }
    this->append_arcs(v, arcs);
    append_assigned(v, arcs);
    sources_.for_each_incoming(v, [&](std::uint32_t arc) { arcs.push_back(source_arcs[arc].id); });
  }

  // The arcs over which sources are assigned to v.
  void append_assigned(NodeId v, std::vector<ArcId>& arcs) const {
    sources_.for_each_assigned(v, [&](NodeId source) {
      arcs.push_back(sources_.source_arcs[sources_.current_arc(source)].id);
    });
  }

  void make_core_node(NodeId source) {
    const std::uint32_t now = sources_.current_arc(source);
    const std::int64_t price = sources_.price(source);
    std::vector<typename Sources::SourceArc> arcs;
    ArcId used = kNone;
    const auto [begin, end] = sources_.arcs_of(source);
    for (std::uint32_t i = begin; i < end; ++i) {
      if (i == now) used = sources_.source_arcs[i].id;
      arcs.push_back(sources_.source_arcs[i]);
    }
    if (now != kNone) sources_.unassign(source);
    sources_.remove_source(source);
    core_nodes_.push_back(source);
    graph_.nodes[source].price = price;
    for (const auto& arc : arcs) {
      const auto capacity =
          static_cast<Value>(std::max<std::int64_t>(1, network_.capacity[arc.id]));
      graph_.attach(arc.id, source, arc.head, capacity, arc.cost);
      graph_.nodes[source].flags |= kInterior;
      if (graph_.is_root_arc(arc.id)) root_tails_.push_back(source);
      if (arc.id == used) {
        if (graph_.is_root_arc(arc.id)) {
          --graph_.nodes[source].root_residual;
          ++graph_.nodes[source].root_flow;
        } else {
          graph_.push(source, graph_.position[2 * arc.id], 1);
        }
      }
      mark_dirty(arc.id);
    }
    if (used == kNone) shift_imbalance(source, 1);
  }

  // See CommonCostRise.
  void raise_above(std::span<const NodeId> tails, std::int64_t amount, Stats& stats) {
    std::vector<bool> in_set(graph_.num_nodes(), false);
    std::vector<NodeId> set;
    const auto add = [&](NodeId v) {
      if (v == graph_.root() || sources_.is_source(v) || in_set[v]) return;
      in_set[v] = true;
      set.push_back(v);
    };
    for (NodeId v : tails) add(v);
    for (std::size_t k = 0; k < set.size(); ++k) {  // bounded: each node joins once
      const Node<Value>& node = graph_.nodes[set[k]];
      for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
        if (!graph_.is_forward(graph_.edges[i])) add(graph_.edges[i].to);
      }
    }
    for (NodeId v : set) {
      move_price(graph_.nodes[v], v, amount, repriced_);
      ++stats.repaired;
    }
    for (NodeId v : set) {
      if (!graph_.hubs.empty()) graph_.hubs.price_moved(graph_, v, true);
      if (sources_.num_assigned(v) > 0) {
        sources_.for_each_assigned(v, [this](NodeId source) { note_changed(source); });
        sources_.price_changed(v, true);
      }
      const Node<Value>& node = graph_.nodes[v];
      if (node.root_residual > 0 && node.root_cost < node.price) mark_dirty(graph_.root_arc(v));
      stats.scanned += node.degree;
      for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
        const auto& edge = graph_.edges[i];
        if (in_set[edge.to]) continue;  // as it was
        const std::int64_t rc = edge.cost - node.price + graph_.nodes[edge.to].price;
        if (rc < 0 ? edge.residual > 0 : rc > 0 && edge.reverse_residual > 0)
          mark_dirty(edge.id >> 1);
      }
    }
  }

  // The repair changes prices of core nodes without regard to the sources. Sources that are not on
  // their best arc any more are unassigned.
  void repair_core(Stats& stats) {
    if (new_nodes_.empty() && dirty_.empty()) return;
    PriceRepair<Value> repair(*this, network_, repriced_, stats);
    repair.run(new_nodes_, dirty_);
    auto price_before = repair.prices_before();
    const auto by_node = [](const auto& a, const auto& b) { return a.first < b.first; };
    const auto same_node = [](const auto& a, const auto& b) { return a.first == b.first; };
    std::stable_sort(price_before.begin(), price_before.end(), by_node);
    price_before.erase(std::unique(price_before.begin(), price_before.end(), same_node),
                       price_before.end());
    to_recheck_.clear();
    for (const auto& [v, price] : price_before) {
      if (!graph_.hubs.empty()) {  // half-edges may have opened between two moves
        graph_.hubs.price_moved(graph_, v, true);
        graph_.hubs.price_moved(graph_, v, false);
      }
      if (graph_.nodes[v].price > price) {
        sources_.for_each_assigned(v, [this](NodeId source) { to_recheck_.push_back(source); });
      } else if (graph_.nodes[v].price < price) {
        sources_.for_each_incoming(
            v, [this](std::uint32_t arc) { to_recheck_.push_back(sources_.source_of(arc)); });
      }
    }
    for (NodeId source : to_recheck_) note_changed(source);
  }

  // Sources whose arcs or heads changed: unassigned if they are not on their best arc any more.
  void recheck(Stats& stats) {
    std::size_t kept = 0;
    for (NodeId source : changed_) {
      sources_.clear_changed(source);
      if (!sources_.is_source(source) || sources_.current_arc(source) == kNone) continue;
      ++stats.repaired;
      if (sources_.is_on_best_arc(source)) {
        changed_[kept++] = source;
      } else {
        unassign(source);
      }
    }
    changed_.resize(kept);
    sources_.refresh(changed_);
    changed_.clear();
  }

  // Reassigns the source to a head of equal cost that has capacity, or a deficit upstream, if there
  // is one. This makes room where it was.
  void yield_place(NodeId source, Stats& stats) {
    const std::uint32_t now = sources_.current_arc(source);
    const auto before = sources_.source_arcs[now];
    const auto [begin, end] = sources_.arcs_of(source);
    stats.scanned += end - begin;
    for (std::uint32_t i = begin; i < end; ++i) {
      const auto arc = sources_.source_arcs[i];
      if (arc.head == before.head || arc.head == graph_.root() ||
          sources_.cost_through(i) != sources_.cost_through(now))
        continue;
      const bool has_target_arc = PathSearch<Sources, true>::has_target_arc(graph_.nodes[arc.head]);
      const ReturnPath<Value> return_path(graph_, arc.head);
      if (!has_target_arc && !return_path.found()) continue;
      ++stats.augmentations;
      this->touch(before.id, 1);
      this->touch(arc.id, 0);
      cost_ += static_cast<std::int64_t>(arc.cost) - before.cost;
      sources_.reassign(source, i);
      shift_imbalance(before.head, -1);
      end_flow_at({arc.head, has_target_arc && graph_.nodes[arc.head].imbalance >= 0, 0}, 1);
      if (!has_target_arc) return_path.send_unit(*this);
      return;
    }
  }

  // After many sources were reassigned, or before they are: moves deficits to where searches for
  // the arriving sources begin.
  void move_deficits_up(Stats& stats) {
    for (std::size_t k = 0, before = unbalanced_.size(); k < before; ++k) {
      if (needs_flow(unbalanced_[k], false)) move_deficit_up(*this, unbalanced_[k], stats);
    }
  }

  // The work of the searches in one direction during one run.
  struct SearchEffort {
    std::int64_t settled_before = 0, scanned_before = 0;
    std::int64_t settled = 0;  // nodes settled since hops were last computed
    std::int64_t far_budget = 0;
  };
  void begin_effort(const Stats& stats) {
    open_tails_.clear();
    effort_ = {stats.settled, stats.scanned, 0,
               static_cast<std::int64_t>(graph_.edges.size() + sources_.source_arcs.size())};
  }

  template <bool kForward>
  // Called after each search. True: the rest should be routed in phases.
  bool should_run_phases(Stats& stats) {
    const std::int64_t scanned = stats.scanned - effort_.scanned_before;
    if (scanned >
        static_cast<std::int64_t>(graph_.edges.size() + sources_.source_arcs.size()) / kFarShare) {
      effort_.far_budget -= scanned;
    }
    effort_.settled += stats.settled - effort_.settled_before;
    if (effort_.settled > kRelabelAfter) {
      label_near_targets<kForward>(stats);
      effort_.settled = 0;
    }
    effort_.settled_before = stats.settled;
    effort_.scanned_before = stats.scanned;
    return effort_.far_budget < 0;
  }

  // The nodes whose arc to the root inside can take flow (forward) or give some back. While flow is
  // routed in one direction, no others join them.
  template <bool kForward>
  std::span<const NodeId> open_tails() {
    if (open_tails_.empty()) {
      std::copy_if(root_tails_.begin(), root_tails_.end(), std::back_inserter(open_tails_),
                   [this](NodeId v) {
                     const Node<Value>& node = graph_.nodes[v];
                     return (kForward ? node.root_residual : node.root_flow) > 0;
                   });
    }
    return open_tails_;
  }

  template <bool kForward>
  void label_near_targets(Stats& stats) {
    targets_.clear();
    const auto add = [this](NodeId v) {
      if (v != graph_.root() && PathSearch<Sources, kForward>::has_target_arc(graph_.nodes[v]))
        targets_.push_back(v);
    };
    for (NodeId v : unbalanced_) add(v);
    if (!kForward || targets_.empty()) {
      for (NodeId v : open_tails<kForward>()) add(v);
    }
    this->template search<kForward>().label_near_targets(sources_, core_nodes_, targets_,
                                                         kMaxRelabelled, stats);
  }

  void add_seeds(NodeId source) {
    const auto [begin, end] = sources_.arcs_of(source);
    const std::int64_t best = sources_.best_cost(source);
    for (std::uint32_t i = begin; i < end; ++i) {
      seeds_.push_back({sources_.source_arcs[i].head, Sources::encode_parent(i),
                        sources_.cost_through(i) - best});
    }
  }

  template <bool kForward>
  // Primal-dual algorithm: one search from all remaining sources and imbalances, then all paths of
  // length zero, as in Dinic's blocking flows. What cannot reach a target now cannot before prices
  // change.
  Status route_in_phases(const Control& control, Stats& stats) {
    auto& paths = this->template search<kForward>();
    std::vector<NodeId> units, nodes;
    const std::int64_t before = stats.operations();
    std::size_t all = 0;
    std::int64_t until_check = kCancelCheckInterval;
    while (true) {
      units.clear();
      nodes.clear();
      seeds_.clear();
      if constexpr (kForward) {
        std::copy_if(unassigned_.begin(), unassigned_.end(), std::back_inserter(units),
                     [this](NodeId v) { return is_unassigned(v); });
        unassigned_ = units;
      }
      for (NodeId v : unbalanced_) {
        if (needs_flow(v, kForward)) nodes.push_back(v);
      }
      if (units.empty() && nodes.empty()) return Status::kOptimal;
      const std::size_t left = units.size() + nodes.size();
      all = std::max(all, left);
      Status status = control.check(stats);
      if (status == Status::kOptimal)
        status = control.report_progress(stats, before, all - left, left);
      if (status != Status::kOptimal) return status;
      ++stats.phases;
      for (NodeId source : units) add_seeds(source);
      for (NodeId v : nodes) seeds_.push_back({v, kNone, 0});
      const Target nearest = paths.run_from(sources_, seeds_, kInfinity, repriced_, stats);
      if (!nearest.found())
        return this->report_no_path(units.empty() ? nodes.front() : units.front(), kForward);
      augment<kForward>(nearest, stats);
      paths.relabel(sources_, stats);
      const auto reaches = [&](const Seed& seed) {
        return seed.distance == 0 &&
               (seed.node == graph_.root() || paths.reaches_target(graph_.nodes[seed.node]));
      };
      const auto send = [&] {
        if (std::none_of(seeds_.begin(), seeds_.end(), reaches)) return false;
        const Target target = paths.run_from(sources_, seeds_, 0, repriced_, stats);
        if (!target.found()) {
          paths.mark_settled_dead(sources_);
          return false;
        }
        augment<kForward>(target, stats);
        return true;
      };
      const auto may_continue = [&] {
        if (status == Status::kOptimal && until_check-- == 0) {
          status = control.check(stats);
          until_check = kCancelCheckInterval;
        }
        return status == Status::kOptimal;
      };
      for (NodeId source : units) {
        if (!is_unassigned(source)) continue;
        if (!may_continue()) break;
        seeds_.clear();
        add_seeds(source);
        send();
      }
      for (NodeId v : nodes) {
        seeds_.assign(1, {v, kNone, 0});
        while (needs_flow(v, kForward) && may_continue() && send()) {
        }
      }
      paths.clear_dead(sources_);
      if (status != Status::kOptimal) return status;
    }
  }

  bool is_unassigned(NodeId source) const {
    return sources_.is_source(source) && sources_.current_arc(source) == kNone;
  }

  Status assign_pending(const Control& control, Stats& stats) {
    std::int64_t until_check = 0;
    begin_effort(stats);
    const std::int64_t before = stats.operations();
    Status status = Status::kOptimal;
    bool too_far = false;
    std::size_t k = 0;
    for (; k < unassigned_.size() && status == Status::kOptimal && !too_far; ++k) {
      const NodeId source = unassigned_[k];
      if (!is_unassigned(source)) continue;
      if (until_check-- == 0) {
        if ((status = control.check(stats)) != Status::kOptimal) break;
        until_check = kCancelCheckInterval;
      }
      if (!assign_source(source, control, stats)) {
        status = this->report_no_path(source, true);
        break;
      }
      too_far = should_run_phases<true>(stats) && unassigned_.size() - k > kFewLeft;
      if (status == Status::kOptimal)
        status = this->report(control, stats, before, k + 1, unassigned_.size());
    }
    unassigned_.erase(unassigned_.begin(), unassigned_.begin() + static_cast<std::ptrdiff_t>(k));
    return too_far ? route_in_phases<true>(control, stats) : status;
  }

  bool assign_source(NodeId source, const Control& control, Stats& stats) {
    const auto [begin, end] = sources_.arcs_of(source);
    std::int64_t best = kInfinity;
    std::uint32_t has_target_arc = kNone;
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::int64_t cost_through = sources_.cost_through(i);
      if (cost_through > best) continue;
      if (cost_through < best) has_target_arc = kNone;
      best = cost_through;
      const NodeId head = sources_.source_arcs[i].head;
      if (has_target_arc == kNone && head != graph_.root() &&
          PathSearch<Sources, true>::has_target_arc(graph_.nodes[head]))
        has_target_arc = i;
    }
    stats.scanned += end - begin;
    if (has_target_arc != kNone) {
      ++stats.searches;
      ++stats.augmentations;
      const NodeId head = sources_.source_arcs[has_target_arc].head;
      assign_over(source, has_target_arc);
      end_flow_at({head, graph_.nodes[head].imbalance >= 0, 0}, 1);
      return true;
    }
    const Target target = search_from_both_ends<true>(control, stats, seeds_, [&] {
      seeds_.clear();
      add_seeds(source);
      return this->forward_.run_from(sources_, seeds_, kInfinity, repriced_, stats);
    });
    if (!target.found()) return false;
    augment<true>(target, stats);
    return true;
  }

  template <bool kForward, class Run>
  // Runs the search `run`; if it gives up, searches from the targets, too.
  Target search_from_both_ends(const Control& control, Stats& stats, const std::vector<Seed>& seeds,
                               const Run& run) {
    auto& paths = this->template search<kForward>();
    Target target;
    {
      const ScopedSettleLimit settle_limit(paths);
      target = run();
    }
    if (!paths.gave_up()) return target;
    const std::array<std::span<const NodeId>, 2> targets{unbalanced_, open_tails<kForward>()};
    if constexpr (kForward) {
      target = forward_bidirectional_.run(sources_, core_nodes_, targets, seeds, control, repriced_,
                                          stats);
    } else {
      target = backward_bidirectional_.run(sources_, core_nodes_, targets, seeds, control,
                                           repriced_, stats);
    }
    if (!target.found()) return run();
    effort_.settled = 0;  // hops were just computed
    effort_.settled_before = stats.settled;
    return target;
  }

  template <bool kForward>
  Status route_imbalances(const Control& control, Stats& stats) {
    const std::vector<Seed> none;
    std::int64_t until_check = 0;
    begin_effort(stats);
    const std::int64_t before = stats.operations();
    for (std::size_t k = 0; k < unbalanced_.size(); ++k) {  // may grow by targets
      const NodeId v = unbalanced_[k];
      while (needs_flow(v, kForward)) {
        if (until_check-- == 0) {
          if (const Status status = control.check(stats); status != Status::kOptimal) return status;
          until_check = kCancelCheckInterval;
        }
        const Target target = search_from_both_ends<kForward>(control, stats, none, [&] {
          return this->template search<kForward>().run(sources_, std::array{v}, kInfinity,
                                                       repriced_, stats);
        });
        if (!target.found()) return this->report_no_path(v, kForward);
        augment<kForward>(target, stats);
        if (should_run_phases<kForward>(stats) && unbalanced_.size() - k > kFewLeft) {
          return route_in_phases<kForward>(control, stats);
        }
      }
      const Status status = this->report(control, stats, before, k + 1, unbalanced_.size());
      if (status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  template <bool kForward>
  void augment(const Target& target, Stats& stats) {
    const auto move_source = [this](std::uint32_t parent, NodeId from) {
      const std::uint32_t arc = Sources::decode_parent(parent);
      const NodeId source = sources_.source_of(arc);
      if (from == kNone) return assign_over(source, arc);
      const auto& now = sources_.source_arcs[sources_.current_arc(source)];
      this->touch(now.id, 1);
      this->touch(sources_.source_arcs[arc].id, 0);
      cost_ += static_cast<std::int64_t>(sources_.source_arcs[arc].cost) - now.cost;
      sources_.reassign(source, arc);
    };
    this->template augment_path<kForward>(
        target, stats, [this](std::uint32_t parent) { return previous_node<kForward>(parent); },
        move_source);
  }

  template <bool kForward>
  // The node before it on the path; kNone if the parent is the source being assigned.
  NodeId previous_node(std::uint32_t parent) const {
    if (!Sources::is_source_arc(parent)) return graph_.owner(parent);
    const std::uint32_t arc = Sources::decode_parent(parent);
    if constexpr (!kForward) return sources_.source_arcs[arc].head;
    const std::uint32_t now = sources_.current_arc(sources_.source_of(arc));
    return now == kNone ? kNone : sources_.source_arcs[now].head;
  }

  // Removes duplicates and sources from a list of nodes once it has doubled.
  void compact(std::vector<NodeId>& nodes, std::size_t& compacted) {
    if (nodes.size() < 2 * compacted + 64) return;
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    std::erase_if(nodes, [this](NodeId v) { return sources_.is_source(v); });
    compacted = nodes.size();
  }

  Sources sources_;
  bool listed_ = false;  // see `ensure_lists`
  BidirectionalSearch<Value, true> forward_bidirectional_{this->forward_};
  BidirectionalSearch<Value, false> backward_bidirectional_{this->backward_};
  SearchEffort effort_;
  std::vector<Seed> seeds_;
  // every core node that has an arc to the root inside, and some without
  std::vector<NodeId> root_tails_;
  std::vector<NodeId> core_nodes_;  // every core node, and some that were removed
  std::vector<NodeId> open_tails_;  // see `open_tails`; empty: not listed yet
  std::size_t compacted_root_tails_ = 0, compacted_core_nodes_ = 0;
  std::vector<NodeId> targets_;
  // every source that is not assigned, and some that are, or were removed
  std::vector<NodeId> unassigned_;
  // sources whose arcs changed, and some that were removed; see `note_changed`
  std::vector<NodeId> changed_;
  CommonCostRise common_rise_;
  std::vector<NodeId> to_recheck_;
};

}  // namespace

std::unique_ptr<Engine> make_unit_source_engine(const EngineStart& start, const Control& control) {
  if (fits_narrow(start.network, control))
    return std::make_unique<UnitSourceEngine<std::int32_t>>(start, control);
  return std::make_unique<UnitSourceEngine<std::int64_t>>(start, control);
}

bool mostly_unit_sources(const EngineStart& start, const Control& control) {
  CancellationChecker checker(control);
  const std::vector<std::uint8_t> is_source = find_unit_sources(start, control);
  std::size_t of_sources = 0, of_all = 0;
  for (ArcId a = 0; a < start.network.num_arcs(); ++a) {
    checker.step_until_cancelled({});
    if (!start.alive.empty() && start.alive[a] == 0) continue;
    ++of_all;
    of_sources += is_source[start.network.tail[a]];
  }
  return 2 * of_sources >= of_all;
}

}  // namespace flowsolver
