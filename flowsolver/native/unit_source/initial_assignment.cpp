#include "unit_source/initial_assignment.hpp"

#include <algorithm>
#include <array>

#include "unit_source/unit_source_graph.hpp"
#include "unit_source/uniform_price_decrease.hpp"
#include "graph/price_estimate.hpp"
#include "graph/start_state.hpp"
#include "shortest_path/path_search.hpp"

namespace flowsolver {

namespace {

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
// (price_estimate.hpp). Nearly always so.
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
