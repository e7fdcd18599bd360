#include "unit_source/unit_source_engine.hpp"

#include <algorithm>

#include "unit_source/unit_source_changes.hpp"
#include "unit_source/unit_source_augmentation.hpp"
#include "unit_source/uniform_price_increase.hpp"
#include "shortest_path/deficit_hints.hpp"
#include "shortest_path/price_repair.hpp"

namespace flowsolver {

// The repair changes prices of core nodes without regard to the sources. Sources that are not on
// their best arc any more are unassigned.
template <class Value>
void UnitSourceEngine<Value>::repair_core(Stats& stats) {
  if (new_nodes_.empty() && dirty_.empty()) return;
  std::vector<std::pair<NodeId, std::int64_t>> price_before;
  const auto record = [&](NodeId v) { price_before.emplace_back(v, graph_.nodes[v].price); };
  for (NodeId v : new_nodes_) record(v);
  for (ArcId arc : dirty_) {
    if (graph_.is_removed(arc)) continue;
    record(network_.tail[arc]);
    if (!graph_.is_root_arc(arc)) record(graph_.edges[graph_.position[2 * arc]].to);
  }
  std::sort(price_before.begin(), price_before.end());
  price_before.erase(std::unique(price_before.begin(), price_before.end()), price_before.end());
  PriceRepair<Value>(*this, network_, repriced_, stats).run(new_nodes_, dirty_);
  to_recheck_.clear();
  for (const auto& [v, price] : price_before) {
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
template <class Value>
void UnitSourceEngine<Value>::recheck(Stats& stats) {
  for (NodeId source : changed_) {
    graph_.nodes[source].flags &= static_cast<std::uint8_t>(~kChanged);
    if (!sources_.is_source(source) || sources_.current_arc(source) == kNone) continue;
    ++stats.repaired;
    if (sources_.is_on_best_arc(source)) {
      sources_.refresh(source);
    } else {
      unassign(source);
    }
  }
  changed_.clear();
}

// Reassigns the source to a head of equal cost that has capacity, or a deficit upstream, if there
// is one. This makes room where it was.
template <class Value>
void UnitSourceEngine<Value>::yield_place(NodeId source, Stats& stats) {
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

// After many sources were reassigned, or before they are: moves deficits to where searches for the
// arriving sources begin.
template <class Value>
void UnitSourceEngine<Value>::move_deficits_up(Stats& stats) {
  for (std::size_t k = 0, before = unbalanced_.size(); k < before; ++k) {
    if (needs_flow(unbalanced_[k], false)) move_deficit_up(*this, unbalanced_[k], stats);
  }
}

template <class Value>
void UnitSourceEngine<Value>::hint_at_deficits() {
  for (NodeId v : unbalanced_) {
    if (needs_flow(v, false)) hint_at_deficit(graph_, v, [](const Node<Value>&) { return true; });
  }
}

// Ends flow at the target of a forward path (amount > 0), or begins it at that of a backward path.
template <class Value>
void UnitSourceEngine<Value>::end_flow_at(const Target& target, std::int64_t amount) {
  if (target.through_root_arc) {
    this->move_root_flow(target.node, amount);
  } else {
    shift_imbalance(target.node, amount);
  }
}

// The node before it on the path; kNone if the parent is the source being assigned.
template <class Value>
template <bool kForward>
NodeId UnitSourceEngine<Value>::previous_node(std::uint32_t parent) const {
  if (!Sources::is_source_arc(parent)) return graph_.owner(parent);
  const std::uint32_t arc = Sources::decode_parent(parent);
  if constexpr (!kForward) return sources_.source_arcs[arc].head;
  const std::uint32_t now = sources_.current_arc(sources_.source_of(arc));
  return now == kNone ? kNone : sources_.source_arcs[now].head;
}

template <class Value>
template <bool kForward>
void UnitSourceEngine<Value>::augment(const Target& target, Stats& stats) {
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
  while (first != kNone && nodes[first].parent != kNone) {  // bounded: by the length of a path
    const std::uint32_t parent = nodes[first].parent;
    std::int64_t room = 1;
    if (!Sources::is_source_arc(parent)) {
      room = kForward ? graph_.edges[parent].residual : graph_.edges[parent].reverse_residual;
    }
    amount = std::min(amount, room);
    first = previous_node<kForward>(parent);
  }
  if (first != kNone)
    amount = std::min(amount, kForward ? nodes[first].imbalance : -nodes[first].imbalance);
  for (NodeId v = target.node; v != first;) {  // bounded: by the length of a path
    const std::uint32_t parent = nodes[v].parent;
    const NodeId u = previous_node<kForward>(parent);
    if (Sources::is_source_arc(parent)) {
      const std::uint32_t arc = Sources::decode_parent(parent);
      const NodeId source = sources_.source_of(arc);
      if (u == kNone) {
        assign_over(source, arc);
      } else {
        const auto& now = sources_.source_arcs[sources_.current_arc(source)];
        this->touch(now.id, 1);
        this->touch(sources_.source_arcs[arc].id, 0);
        cost_ += static_cast<std::int64_t>(sources_.source_arcs[arc].cost) - now.cost;
        sources_.reassign(source, arc);
      }
    } else {
      if constexpr (kForward) {
        this->move_flow(u, parent, static_cast<Value>(amount));
        if ((nodes[u].flags & kInterior) != 0) nodes[u].current = parent;
      } else {
        this->move_flow(v, graph_.position[graph_.edges[parent].id ^ 1],
                        static_cast<Value>(amount));
      }
    }
    v = u;
  }
  const std::int64_t sent = kForward ? amount : -amount;
  if (first != kNone) shift_imbalance(first, -sent);
  end_flow_at(target, sent);
}

// Removes duplicates and sources from a list of nodes once it has doubled.
template <class Value>
void UnitSourceEngine<Value>::compact(std::vector<NodeId>& nodes, std::size_t& compacted) {
  if (nodes.size() < 2 * compacted + 64) return;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::erase_if(nodes, [this](NodeId v) { return sources_.is_source(v); });
  compacted = nodes.size();
}

template <class Value>
Status UnitSourceEngine<Value>::run(const Control& control, Stats& stats) {
  if (!ensure_lists(control)) return Status::kCancelled;
  repair_core(stats);
  UniformPriceIncrease<Value> increase(graph_, sources_, core_nodes_, repriced_);
  increase.run(changed_, control, stats);
  for (NodeId source : increase.indifferent_members()) yield_place(source, stats);
  recheck(stats);
  const bool has_indifferent_sources =
      !increase.indifferent_members().empty() || !increase.indifferent_outsiders().empty();
  if (has_indifferent_sources) move_deficits_up(stats);
  hint_at_deficits();
  forward_.set_control(control);
  backward_.set_control(control);
  Status status;
  try {
    status = assign_pending(control, stats);
    if (status == Status::kOptimal) {
      for (NodeId source : increase.indifferent_outsiders()) yield_place(source, stats);
      status = route_imbalances<true>(control, stats);
    }
    if (status == Status::kOptimal) status = route_imbalances<false>(control, stats);
  } catch (const Stopped& stopped) {
    status = stopped.status;
    forward_.clear_dead(sources_);
    backward_.clear_dead(sources_);
  }
  this->drop_balanced();
  compact(core_nodes_, compacted_core_nodes_);
  compact(root_tails_, compacted_root_tails_);
  return status;
}

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
