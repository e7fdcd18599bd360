#include "carrier_engine.hpp"

#include <algorithm>
#include <array>

#include "carried_sources.hpp"
#include "path_search.hpp"
#include "price_estimate.hpp"
#include "price_repair.hpp"
#include "uniform_rise.hpp"

namespace flowsolver {

namespace {

// Per node: whether it is a unit source (see carried_sources.hpp).
std::vector<std::uint8_t> unit_sources(const EngineStart& start) {
  const Network& network = start.network;
  std::vector<std::uint8_t> is_source(network.num_nodes());
  for (NodeId v = 0; v < is_source.size(); ++v) is_source[v] = network.supply[v] == 1 && v != start.root;
  for (ArcId a = 0; a < network.num_arcs(); ++a) {
    if (!start.alive.empty() && start.alive[a] == 0) continue;
    is_source[network.head[a]] = 0;
    if (network.capacity[a] == 0) is_source[network.tail[a]] = 0;
  }
  return is_source;
}

// Per arc: whether it is alive and no source's.
std::vector<std::uint8_t> core_arcs(const EngineStart& start, const std::vector<std::uint8_t>& is_source) {
  std::vector<std::uint8_t> core(start.network.num_arcs());
  for (ArcId a = 0; a < core.size(); ++a) {
    core[a] = (start.alive.empty() || start.alive[a] != 0) && is_source[start.network.tail[a]] == 0;
  }
  return core;
}

template <class Value>
class CarrierEngine final : public Engine, private FlowMover<Value> {
 public:
  explicit CarrierEngine(const EngineStart& start) : CarrierEngine(start, unit_sources(start)) {}

  void add_node(NodeId v, std::int64_t supply) override;
  void remove_node(NodeId v) override;
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost) override;
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override;
  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override;
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override;
  void change_supply(NodeId v, std::int64_t delta) override;
  void incident_arcs(NodeId v, std::vector<ArcId>& arcs) const override;
  Status run(const Control& control, Stats& stats) override;
  std::int64_t flow(ArcId arc, NodeId tail) const override;
  std::int64_t price(NodeId v) const override {
    return sources_.is_source(v) ? sources_.price(v) : graph_.nodes[v].price;
  }
  __int128 cost() const override { return cost_; }
  const std::vector<FlowBefore>& touched_arcs() const override { return touched_; }
  const std::vector<NodeId>& repriced_nodes() const override { return repriced_; }
  void begin_round() override;
  void priced_by(NodeId v, std::vector<NodeId>& nodes) const override {
    sources_.for_each_carried(v, [&](NodeId source) { nodes.push_back(source); });
  }
  void adopt(const Engine&) override {}  // its own state is as good a start
  std::uint64_t value_limit() const override {
    return static_cast<std::uint64_t>(sizeof(Value) == 4 ? kNarrowLimit : std::int64_t{1} << 56);
  }
  bool local() const override { return true; }
  bool prices_drifted() const override {
    return std::any_of(repriced_.begin(), repriced_.end(), [this](NodeId v) {
      return graph_.nodes[v].price > 2 * kMaxPathCost || graph_.nodes[v].price < -2 * kMaxPathCost;
    });
  }

 private:
  using Sources = CarriedSources<Value>;
  using FlowMover<Value>::graph_;
  using FlowMover<Value>::cost_;
  using FlowMover<Value>::touched_;
  using FlowMover<Value>::unbalanced_;
  using FlowMover<Value>::shift_imbalance;

  static constexpr std::int64_t kCancelCheckInterval = 64;  // searches
  // After searches have settled so many nodes, the ways to the targets are labelled, so many nodes deep in all.
  static constexpr std::int64_t kAdvertiseAfter = 256;
  static constexpr std::size_t kAdvertised = 1024;
  // A search that scans more than this share of all arcs is far from local. When such searches have looked at as much as
  // there is, and more than a few imbalances are left, one search from all of them at once is the better bargain.
  static constexpr std::int64_t kFarShare = 64;
  static constexpr std::size_t kFewLeft = 4;

  CarrierEngine(const EngineStart& start, const std::vector<std::uint8_t>& is_source);

  void soil(ArcId arc, NodeId tail) {
    dirty_.push_back(arc);
    tail_of_dirty_.push_back(tail);
  }
  void place_at(NodeId source, std::uint32_t arc);
  void displace(NodeId source);
  void make_ordinary(NodeId source);
  void repair_core(Stats& stats);
  void recheck(Stats& stats);
  void advertise_deficits();
  bool point_at(NodeId v, NodeId& from);

  // Watches searches in one direction during one run.
  struct Effort {
    std::int64_t settled_before = 0, scanned_before = 0;
    std::int64_t settled = 0;  // since the last advertisement
    std::int64_t far_budget = 0;
  };
  Effort new_effort(const Stats& stats) const;
  template <bool kForward>
  bool went_too_far(Effort& effort, Stats& stats);
  template <bool kForward>
  void advertise(Stats& stats);
  void add_seeds(NodeId source);
  template <bool kForward>
  Status drain_in_phases(const Control& control, Stats& stats);
  bool waits(NodeId source) const { return sources_.is_source(source) && sources_.current_arc(source) == kNone; }

  Status place_pending(const Control& control, Stats& stats);
  bool place(NodeId source, Stats& stats);
  template <bool kForward>
  Status drain(const Control& control, Stats& stats);
  template <bool kForward>
  bool pending(NodeId v) const {
    return v != graph_.root() && (kForward ? graph_.nodes[v].imbalance > 0 : graph_.nodes[v].imbalance < 0);
  }
  template <bool kForward>
  PathSearch<Sources, kForward>& search() {
    if constexpr (kForward) {
      return forward_;
    } else {
      return backward_;
    }
  }
  template <bool kForward>
  void augment(const Target& target, Stats& stats);
  template <bool kForward>
  NodeId before(std::uint32_t parent) const;
  void arrive(const Target& target, std::int64_t amount);
  void forget_balanced();
  void tidy(std::vector<NodeId>& nodes, std::size_t& tidied);

  Sources sources_;
  PathSearch<Sources, true> forward_;
  PathSearch<Sources, false> backward_;
  const Network& network_;
  std::vector<Seed> seeds_;
  std::vector<NodeId> root_tails_;       // every ordinary node with its arc to the root inside, and some without
  std::vector<NodeId> ordinary_;         // every node that is no source, and some that are gone
  std::size_t tidied_root_tails_ = 0, tidied_ordinary_ = 0;
  std::vector<NodeId> targets_;
  std::vector<NodeId> fresh_;            // ordinary nodes without a price
  std::vector<ArcId> dirty_;             // arcs of ordinary nodes
  std::vector<NodeId> tail_of_dirty_;
  std::vector<NodeId> unplaced_;         // every source that is not placed, and some that are or are gone
  std::vector<NodeId> changed_;          // sources whose arcs changed, the same
  std::vector<NodeId> repriced_, doubtful_;
};

template <class Value>
CarrierEngine<Value>::CarrierEngine(const EngineStart& start, const std::vector<std::uint8_t>& is_source)
    : FlowMover<Value>(ResidualGraph<Value>(start.network, start.flow, core_arcs(start, is_source), start.root, true),
                       start.network),
      sources_(graph_, start.network.num_nodes(), start.network.num_arcs()),
      network_(start.network) {
  const auto lives = [&](ArcId a) { return start.alive.empty() || start.alive[a] != 0; };
  for (NodeId v = 0; v < network_.num_nodes(); ++v) {
    if (is_source[v] != 0) {
      sources_.enroll(v);
      continue;
    }
    ordinary_.push_back(v);
    graph_.nodes[v].hops[0] = graph_.nodes[v].hops[1] = HopStacks::kLevels - 2;  // nothing is known yet
    if (!start.price.empty()) graph_.nodes[v].price = start.price[v];
    if (network_.supply[v] != 0) shift_imbalance(v, network_.supply[v]);
  }
  if (start.flow.empty() && start.price.empty()) {
    const PriceEstimate estimate = estimate_price(network_, start.root);
    for (NodeId v : estimate.nodes) graph_.nodes[v].price = estimate.price;
  }
  graph_.nodes[start.root].price = 0;
  std::vector<std::uint32_t> degree(network_.num_nodes(), 0);
  for (ArcId a = 0; a < network_.num_arcs(); ++a) degree[network_.tail[a]] += lives(a);
  for (ArcId a = 0; a < network_.num_arcs(); ++a) {
    if (!lives(a)) continue;
    const NodeId u = network_.tail[a], v = network_.head[a];
    if (is_source[u] != 0) {
      if (degree[u] != 0) sources_.reserve_arcs(u, std::exchange(degree[u], 0));
      sources_.add_arc(u, a, v, static_cast<Value>(network_.cost[a]));
      continue;
    }
    graph_.nodes[u].flags |= kInterior;
    if (graph_.root_arc(u) == a) root_tails_.push_back(u);
    if (!start.flow.empty() && start.flow[a] != 0) {
      shift_imbalance(u, -start.flow[a]);
      shift_imbalance(v, start.flow[a]);
      cost_ += static_cast<__int128>(network_.cost[a]) * start.flow[a];
    }
    soil(a, u);
  }
  // A source stays where the start has its unit if prices allow, and is placed by a search otherwise.
  std::vector<std::uint32_t> at(network_.num_nodes(), kNone);
  if (!start.flow.empty()) {
    for (ArcId a = 0; a < network_.num_arcs(); ++a) {
      if (start.flow[a] > 0 && sources_.place_of(a) != kNone) at[network_.tail[a]] = sources_.place_of(a);
    }
  }
  for (NodeId v = 0; v < network_.num_nodes(); ++v) {
    if (is_source[v] == 0) continue;
    if (at[v] != kNone && sources_.through(at[v]) == sources_.best_way(v)) {
      sources_.put(v, at[v]);
      cost_ += sources_.source_arcs[at[v]].cost;
      shift_imbalance(sources_.source_arcs[at[v]].head, 1);
    } else {
      unplaced_.push_back(v);
    }
  }
}

template <class Value>
void CarrierEngine<Value>::add_node(NodeId v, std::int64_t supply) {
  graph_.grow_to_node(v);
  sources_.extend(graph_.num_nodes());
  if (supply == 1 && v != graph_.root()) {
    sources_.enroll(v);
    unplaced_.push_back(v);
    return;
  }
  ordinary_.push_back(v);
  graph_.nodes[v].flags |= kFresh;
  fresh_.push_back(v);
  if (supply != 0) shift_imbalance(v, supply);
}

template <class Value>
void CarrierEngine<Value>::remove_node(NodeId v) {
  if (sources_.is_source(v)) {
    sources_.dismiss(v);
  } else {
    graph_.clear_node(v);
  }
}

template <class Value>
void CarrierEngine<Value>::add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost) {
  if (sources_.is_source(head)) make_ordinary(head);
  if (sources_.is_source(tail) && capacity == 0) make_ordinary(tail);
  if (sources_.is_source(tail)) {
    sources_.add_arc(tail, arc, head, static_cast<Value>(cost));
    if (sources_.current_arc(tail) != kNone) changed_.push_back(tail);
    return;
  }
  graph_.attach(arc, tail, head, static_cast<Value>(capacity), static_cast<Value>(cost));
  graph_.nodes[tail].flags |= kInterior;
  if (graph_.root_arc(tail) == arc) root_tails_.push_back(tail);
  soil(arc, tail);
}

template <class Value>
void CarrierEngine<Value>::remove_arc(ArcId arc, NodeId tail, NodeId head) {
  const std::uint32_t place = sources_.place_of(arc);
  if (place != kNone) {
    if (sources_.current_arc(tail) == place) displace(tail);
    sources_.remove_arc(sources_.place_of(arc));
    return;
  }
  this->add_flow(arc, tail, head, -graph_.flow_at(arc, tail));
  graph_.detach(arc, tail);
  graph_.nodes[tail].flags |= kInterior;  // though only sources may lead to it
}

template <class Value>
void CarrierEngine<Value>::set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) {
  if (sources_.is_source(tail)) {
    if (capacity > 0) return;
    make_ordinary(tail);
  }
  const std::int64_t flow = graph_.flow_at(arc, tail);
  if (flow > capacity) this->add_flow(arc, tail, head, capacity - flow);
  graph_.set_capacity(arc, tail, static_cast<Value>(capacity));
  soil(arc, tail);
}

template <class Value>
void CarrierEngine<Value>::set_cost(ArcId arc, NodeId tail, std::int64_t cost) {
  const std::uint32_t place = sources_.place_of(arc);
  if (place != kNone) {
    const std::int64_t dearer = cost - sources_.source_arcs[place].cost;
    const std::uint32_t now = sources_.current_arc(tail);
    if (now == place) cost_ += dearer;
    sources_.set_cost(place, static_cast<Value>(cost));
    // The lower bounds and the advantage of the present arc hold all the more when that gets cheaper, or another one dearer.
    if (now != kNone && (now == place) == (dearer > 0)) changed_.push_back(tail);
    return;
  }
  const std::int64_t flow = graph_.flow_at(arc, tail);
  const std::int64_t before =
      graph_.at_root(arc) ? graph_.nodes[tail].root_cost : graph_.edges[graph_.position[2 * arc]].cost;
  cost_ += static_cast<__int128>(flow) * (static_cast<__int128>(cost) - before);
  graph_.set_cost(arc, tail, static_cast<Value>(cost));
  soil(arc, tail);
}

template <class Value>
void CarrierEngine<Value>::change_supply(NodeId v, std::int64_t delta) {
  if (sources_.is_source(v)) make_ordinary(v);
  shift_imbalance(v, delta);
}

template <class Value>
void CarrierEngine<Value>::incident_arcs(NodeId v, std::vector<ArcId>& arcs) const {
  const auto& source_arcs = sources_.source_arcs;
  if (sources_.is_source(v)) {
    const auto [begin, end] = sources_.arcs_of(v);
    for (std::uint32_t i = begin; i < end; ++i) arcs.push_back(source_arcs[i].id);
    return;
  }
  const Node<Value>& node = graph_.nodes[v];
  if (graph_.root_arc(v) != kNone) arcs.push_back(graph_.root_arc(v));
  for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
    const auto& edge = graph_.edges[i];
    if (edge.to != v || graph_.is_forward(edge)) arcs.push_back(edge.id >> 1);  // a self-loop once
  }
  sources_.for_each_carried(v, [&](NodeId source) { arcs.push_back(source_arcs[sources_.current_arc(source)].id); });
  sources_.for_each_arrival(v, [&](std::uint32_t arc) { arcs.push_back(source_arcs[arc].id); });
  for (NodeId source : unplaced_) {
    if (!sources_.is_source(source) || sources_.listed(source)) continue;
    const auto [begin, end] = sources_.arcs_of(source);
    for (std::uint32_t i = begin; i < end; ++i) {
      if (source_arcs[i].head == v) arcs.push_back(source_arcs[i].id);
    }
  }
}

template <class Value>
std::int64_t CarrierEngine<Value>::flow(ArcId arc, NodeId tail) const {
  const std::uint32_t place = sources_.place_of(arc);
  if (place == kNone) return graph_.flow_at(arc, tail);
  return sources_.current_arc(tail) == place ? 1 : 0;
}

template <class Value>
void CarrierEngine<Value>::begin_round() {
  for (NodeId v : repriced_) graph_.nodes[v].flags &= static_cast<std::uint8_t>(~kTouched);
  repriced_.clear();
  this->forget_touched();
}

// The unit of a source that had none of its arcs; imbalances are the caller's.
template <class Value>
void CarrierEngine<Value>::place_at(NodeId source, std::uint32_t arc) {
  sources_.put(source, arc);
  this->touch(sources_.source_arcs[arc].id, 0);
  cost_ += sources_.source_arcs[arc].cost;
}

template <class Value>
void CarrierEngine<Value>::displace(NodeId source) {
  const auto arc = sources_.source_arcs[sources_.current_arc(source)];
  sources_.take_off(source);
  this->touch(arc.id, 1);
  cost_ -= arc.cost;
  shift_imbalance(arc.head, -1);
  unplaced_.push_back(source);
}

template <class Value>
void CarrierEngine<Value>::make_ordinary(NodeId source) {
  const std::uint32_t now = sources_.current_arc(source);
  const std::int64_t price = sources_.price(source);
  std::vector<typename Sources::SourceArc> arcs;
  ArcId used = kNone;
  const auto [begin, end] = sources_.arcs_of(source);
  for (std::uint32_t i = begin; i < end; ++i) {
    if (i == now) used = sources_.source_arcs[i].id;
    arcs.push_back(sources_.source_arcs[i]);
  }
  if (now != kNone) sources_.take_off(source);
  sources_.dismiss(source);
  ordinary_.push_back(source);
  for (const auto& arc : arcs) {
    const auto capacity = static_cast<Value>(std::max<std::int64_t>(1, network_.capacity[arc.id]));
    graph_.attach(arc.id, source, arc.head, capacity, arc.cost);
    graph_.nodes[source].flags |= kInterior;
    if (graph_.at_root(arc.id)) root_tails_.push_back(source);
    if (arc.id == used) {
      if (graph_.at_root(arc.id)) {
        --graph_.nodes[source].root_residual;
        ++graph_.nodes[source].root_flow;
      } else {
        graph_.push(source, graph_.position[2 * arc.id], 1);
      }
    }
    soil(arc.id, source);
  }
  graph_.nodes[source].price = price;
  if (used == kNone) shift_imbalance(source, 1);
}

// Prices of ordinary nodes move in the repair without regard to the sources: those they no longer suit are displaced.
template <class Value>
void CarrierEngine<Value>::repair_core(Stats& stats) {
  if (fresh_.empty() && dirty_.empty()) return;
  std::vector<std::pair<NodeId, std::int64_t>> price_before;
  const auto note = [&](NodeId v) { price_before.emplace_back(v, graph_.nodes[v].price); };
  for (NodeId v : fresh_) note(v);
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    if (graph_.gone(dirty_[i])) continue;
    note(tail_of_dirty_[i]);
    if (!graph_.at_root(dirty_[i])) note(graph_.edges[graph_.position[2 * dirty_[i]]].to);
  }
  std::sort(price_before.begin(), price_before.end());
  price_before.erase(std::unique(price_before.begin(), price_before.end()), price_before.end());
  PriceRepair<Value>(*this, repriced_, stats).run(fresh_, dirty_, tail_of_dirty_);
  doubtful_.clear();
  for (const auto& [v, price] : price_before) {
    if (graph_.nodes[v].price > price) {
      sources_.for_each_carried(v, [this](NodeId source) { doubtful_.push_back(source); });
    } else if (graph_.nodes[v].price < price) {
      sources_.for_each_arrival(v, [this](std::uint32_t arc) { doubtful_.push_back(sources_.source_of(arc)); });
    }
  }
  for (NodeId source : doubtful_) changed_.push_back(source);
}

// Sources whose arcs or heads changed: displaced if there is a better way now.
template <class Value>
void CarrierEngine<Value>::recheck(Stats& stats) {
  for (NodeId source : changed_) {
    if (!sources_.is_source(source) || sources_.current_arc(source) == kNone) continue;
    ++stats.repaired;
    if (sources_.suits(source)) {
      sources_.refresh(source);
    } else {
      displace(source);
    }
  }
  changed_.clear();
}

// Lets the aggregators above v point down at it, so that chains of current half-edges lead to its deficit.
template <class Value>
bool CarrierEngine<Value>::point_at(NodeId v, NodeId& from) {
  const Node<Value>& node = graph_.nodes[v];
  for (std::uint32_t i = node.begin; i < node.begin + node.degree; ++i) {
    const auto& edge = graph_.edges[i];
    Node<Value>& above = graph_.nodes[edge.to];
    if (graph_.is_forward(edge) || edge.reverse_residual == 0) continue;
    if (edge.cost - node.price + above.price != 0) continue;
    above.current = graph_.position[edge.id ^ 1];
    above.hops[true] = static_cast<std::uint8_t>(std::min<unsigned>(node.hops[true] + 1U, HopStacks::kLevels - 1));
    from = edge.to;
    return true;
  }
  return false;
}

template <class Value>
void CarrierEngine<Value>::advertise_deficits() {
  constexpr int kLevelsUp = 2;
  constexpr std::uint32_t kDegreeLimit = 4096;
  for (NodeId v : unbalanced_) {
    if (!pending<false>(v)) continue;
    graph_.nodes[v].hops[true] = 0;
    for (int level = 0; level < kLevelsUp && graph_.nodes[v].degree <= kDegreeLimit; ++level) {
      if (!point_at(v, v)) break;
    }
  }
}

// What ends at the target of a forward path (amount > 0) or begins at that of a backward one.
template <class Value>
void CarrierEngine<Value>::arrive(const Target& target, std::int64_t amount) {
  if (target.through_root_arc) {
    this->move_root_flow(target.node, amount);
  } else {
    shift_imbalance(target.node, amount);
  }
}

// The node that is one step nearer to where the search began; kNone at the source being placed.
template <class Value>
template <bool kForward>
NodeId CarrierEngine<Value>::before(std::uint32_t parent) const {
  if (!Sources::is_source_arc(parent)) return graph_.owner(parent);
  const auto& arc = sources_.source_arcs[Sources::from_parent(parent)];
  if constexpr (!kForward) return arc.head;
  const std::uint32_t now = sources_.current_arc(arc.source);
  return now == kNone ? kNone : sources_.source_arcs[now].head;
}

template <class Value>
template <bool kForward>
void CarrierEngine<Value>::augment(const Target& target, Stats& stats) {
  ++stats.augmentations;
  auto& nodes = graph_.nodes;
  const Node<Value>& last = nodes[target.node];
  std::int64_t amount = kInfinity;
  if (target.through_root_arc) {
    amount = kForward ? last.root_residual : last.root_flow;
  } else if (target.node != graph_.root()) {
    amount = kForward ? -last.imbalance : last.imbalance;
  }
  NodeId first = target.node;
  while (first != kNone && nodes[first].parent != kNone) {
    const std::uint32_t parent = nodes[first].parent;
    std::int64_t room = 1;
    if (!Sources::is_source_arc(parent)) {
      room = kForward ? graph_.edges[parent].residual : graph_.edges[parent].reverse_residual;
    }
    amount = std::min(amount, room);
    first = before<kForward>(parent);
  }
  if (first != kNone) amount = std::min(amount, kForward ? nodes[first].imbalance : -nodes[first].imbalance);
  for (NodeId v = target.node; v != first;) {
    const std::uint32_t parent = nodes[v].parent;
    const NodeId u = before<kForward>(parent);
    if (Sources::is_source_arc(parent)) {
      const std::uint32_t arc = Sources::from_parent(parent);
      const NodeId source = sources_.source_of(arc);
      if (u == kNone) {
        place_at(source, arc);
      } else {
        const auto& now = sources_.source_arcs[sources_.current_arc(source)];
        this->touch(now.id, 1);
        this->touch(sources_.source_arcs[arc].id, 0);
        cost_ += static_cast<std::int64_t>(sources_.source_arcs[arc].cost) - now.cost;
        sources_.move(source, arc);
      }
    } else {
      if constexpr (kForward) {
        this->move_flow(u, parent, static_cast<Value>(amount));
        if ((nodes[u].flags & kInterior) != 0) nodes[u].current = parent;
      } else {
        this->move_flow(v, graph_.position[graph_.edges[parent].id ^ 1], static_cast<Value>(amount));
      }
    }
    v = u;
  }
  const std::int64_t sent = kForward ? amount : -amount;
  if (first != kNone) shift_imbalance(first, -sent);
  arrive(target, sent);
}

template <class Value>
void CarrierEngine<Value>::add_seeds(NodeId source) {
  const auto [begin, end] = sources_.arcs_of(source);
  const std::int64_t best = sources_.best_way(source);
  for (std::uint32_t i = begin; i < end; ++i) {
    seeds_.push_back({sources_.source_arcs[i].head, Sources::as_parent(i), sources_.through(i) - best});
  }
}

template <class Value>
bool CarrierEngine<Value>::place(NodeId source, Stats& stats) {
  const auto [begin, end] = sources_.arcs_of(source);
  std::int64_t best = kInfinity;
  std::uint32_t at_hand = kNone;
  for (std::uint32_t i = begin; i < end; ++i) {
    const std::int64_t through = sources_.through(i);
    if (through > best) continue;
    if (through < best) at_hand = kNone;
    best = through;
    const NodeId head = sources_.source_arcs[i].head;
    if (at_hand == kNone && head != graph_.root() && PathSearch<Sources, true>::at_hand(graph_.nodes[head])) at_hand = i;
  }
  stats.scanned += end - begin;
  if (at_hand != kNone) {
    ++stats.searches;
    ++stats.augmentations;
    const NodeId head = sources_.source_arcs[at_hand].head;
    place_at(source, at_hand);
    arrive({head, graph_.nodes[head].imbalance >= 0, 0}, 1);
    return true;
  }
  seeds_.clear();
  add_seeds(source);
  const Target target = forward_.run_from(sources_, seeds_, kInfinity, repriced_, stats);
  if (!target.found()) return false;
  augment<true>(target, stats);
  return true;
}

template <class Value>
typename CarrierEngine<Value>::Effort CarrierEngine<Value>::new_effort(const Stats& stats) const {
  return {stats.settled, stats.scanned, 0, static_cast<std::int64_t>(graph_.edges.size() + sources_.source_arcs.size())};
}

// Called after each search. True: the rest had better be done in phases.
template <class Value>
template <bool kForward>
bool CarrierEngine<Value>::went_too_far(Effort& effort, Stats& stats) {
  const std::int64_t scanned = stats.scanned - effort.scanned_before;
  if (scanned > static_cast<std::int64_t>(graph_.edges.size() + sources_.source_arcs.size()) / kFarShare) {
    effort.far_budget -= scanned;
  }
  effort.settled += stats.settled - effort.settled_before;
  if (effort.settled > kAdvertiseAfter) {
    advertise<kForward>(stats);
    effort.settled = 0;
  }
  effort.settled_before = stats.settled;
  effort.scanned_before = stats.scanned;
  return effort.far_budget < 0;
}

template <class Value>
template <bool kForward>
void CarrierEngine<Value>::advertise(Stats& stats) {
  targets_.clear();
  const auto add = [this](NodeId v) {
    if (v != graph_.root() && PathSearch<Sources, kForward>::at_hand(graph_.nodes[v])) targets_.push_back(v);
  };
  for (NodeId v : unbalanced_) add(v);
  if (!kForward || targets_.empty()) {
    for (NodeId v : root_tails_) add(v);
  }
  search<kForward>().advertise(sources_, ordinary_, targets_, kAdvertised, stats);
}

template <class Value>
Status CarrierEngine<Value>::place_pending(const Control& control, Stats& stats) {
  std::int64_t until_check = 0;
  Effort effort = new_effort(stats);
  Status status = Status::kOptimal;
  bool too_far = false;
  std::size_t k = 0;
  for (; k < unplaced_.size() && status == Status::kOptimal && !too_far; ++k) {
    const NodeId source = unplaced_[k];
    if (!waits(source)) continue;
    if (until_check-- == 0) {
      if ((status = control.look(stats)) != Status::kOptimal) break;
      until_check = kCancelCheckInterval;
    }
    if (!place(source, stats)) {
      status = Status::kInfeasible;
      break;
    }
    too_far = went_too_far<true>(effort, stats) && unplaced_.size() - k > kFewLeft;
  }
  unplaced_.erase(unplaced_.begin(), unplaced_.begin() + static_cast<std::ptrdiff_t>(k));
  return too_far ? drain_in_phases<true>(control, stats) : status;
}

template <class Value>
template <bool kForward>
Status CarrierEngine<Value>::drain(const Control& control, Stats& stats) {
  std::int64_t until_check = 0;
  Effort effort = new_effort(stats);
  for (std::size_t k = 0; k < unbalanced_.size(); ++k) {  // may grow by nodes that are targets
    const NodeId v = unbalanced_[k];
    while (pending<kForward>(v)) {
      if (until_check-- == 0) {
        if (const Status status = control.look(stats); status != Status::kOptimal) return status;
        until_check = kCancelCheckInterval;
      }
      const Target target = search<kForward>().run(sources_, std::array{v}, kInfinity, repriced_, stats);
      if (!target.found()) return Status::kInfeasible;
      augment<kForward>(target, stats);
      if (went_too_far<kForward>(effort, stats) && unbalanced_.size() - k > kFewLeft) {
        return drain_in_phases<kForward>(control, stats);
      }
    }
  }
  return Status::kOptimal;
}

// Primal-dual: a search from all that is left, then all paths of length zero, as in Dinic's blocking flows: what cannot reach
// a target now cannot before prices move.
template <class Value>
template <bool kForward>
Status CarrierEngine<Value>::drain_in_phases(const Control& control, Stats& stats) {
  auto& paths = search<kForward>();
  std::vector<NodeId> units, nodes;
  while (true) {
    units.clear();
    nodes.clear();
    seeds_.clear();
    if constexpr (kForward) {
      std::copy_if(unplaced_.begin(), unplaced_.end(), std::back_inserter(units), [this](NodeId v) { return waits(v); });
      unplaced_ = units;
    }
    for (NodeId v : unbalanced_) {
      if (pending<kForward>(v)) nodes.push_back(v);
    }
    if (units.empty() && nodes.empty()) return Status::kOptimal;
    if (const Status status = control.look(stats); status != Status::kOptimal) return status;
    ++stats.phases;
    for (NodeId source : units) add_seeds(source);
    for (NodeId v : nodes) seeds_.push_back({v, kNone, 0});
    const Target nearest = paths.run_from(sources_, seeds_, kInfinity, repriced_, stats);
    if (!nearest.found()) return Status::kInfeasible;
    augment<kForward>(nearest, stats);
    paths.relabel(sources_, stats);
    const auto reaches = [&](const Seed& seed) {
      return seed.distance == 0 && (seed.node == graph_.root() || paths.within_reach(graph_.nodes[seed.node]));
    };
    const auto send = [&] {
      if (std::none_of(seeds_.begin(), seeds_.end(), reaches)) return false;
      const Target target = paths.run_from(sources_, seeds_, 0, repriced_, stats);
      if (!target.found()) {
        paths.bury_settled(sources_);
        return false;
      }
      augment<kForward>(target, stats);
      return true;
    };
    for (NodeId source : units) {
      if (!waits(source)) continue;
      seeds_.clear();
      add_seeds(source);
      send();
    }
    for (NodeId v : nodes) {
      seeds_.assign(1, {v, kNone, 0});
      while (pending<kForward>(v) && send()) {
      }
    }
    paths.revive(sources_);
  }
}

template <class Value>
void CarrierEngine<Value>::forget_balanced() {
  std::erase_if(unbalanced_, [this](NodeId v) {
    Node<Value>& node = graph_.nodes[v];
    const bool balanced = node.imbalance == 0 || v == graph_.root();
    if (balanced) node.flags &= static_cast<std::uint8_t>(~kListed);
    return balanced;
  });
}

// Nodes come and go: a list that has doubled is freed of what occurs twice.
template <class Value>
void CarrierEngine<Value>::tidy(std::vector<NodeId>& nodes, std::size_t& tidied) {
  if (nodes.size() < 2 * tidied + 64) return;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::erase_if(nodes, [this](NodeId v) { return sources_.is_source(v); });
  tidied = nodes.size();
}

template <class Value>
Status CarrierEngine<Value>::run(const Control& control, Stats& stats) {
  repair_core(stats);
  UniformRise<Value>(graph_, sources_, repriced_).attempt(changed_, control, stats);
  recheck(stats);
  advertise_deficits();
  Status status = place_pending(control, stats);
  if (status == Status::kOptimal) status = drain<true>(control, stats);
  if (status == Status::kOptimal) status = drain<false>(control, stats);
  forget_balanced();
  tidy(ordinary_, tidied_ordinary_);
  tidy(root_tails_, tidied_root_tails_);
  return status;
}

}  // namespace

std::unique_ptr<Engine> make_carrier_engine(const EngineStart& start) {
  if (fits_narrow(start.network)) return std::make_unique<CarrierEngine<std::int32_t>>(start);
  return std::make_unique<CarrierEngine<std::int64_t>>(start);
}

bool mostly_unit_sources(const EngineStart& start) {
  const std::vector<std::uint8_t> is_source = unit_sources(start);
  std::size_t of_sources = 0, of_all = 0;
  for (ArcId a = 0; a < start.network.num_arcs(); ++a) {
    if (!start.alive.empty() && start.alive[a] == 0) continue;
    ++of_all;
    of_sources += is_source[start.network.tail[a]];
  }
  return 2 * of_sources >= of_all;
}

}  // namespace flowsolver
