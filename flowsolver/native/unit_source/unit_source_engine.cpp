#include "unit_source/unit_source_engine.hpp"

#include <algorithm>

#include "unit_source/unit_source_changes.hpp"
#include "unit_source/unit_source_augmentation.hpp"
#include "unit_source/uniform_price_increase.hpp"
#include "shortest_path/deficit_hints.hpp"
#include "shortest_path/price_repair.hpp"

namespace flowsolver {

// Prices of ordinary nodes move in the repair without regard to the sources: those they no longer
// suit are displaced.
template <class Value>
void CarrierEngine<Value>::repair_core(Stats& stats) {
  if (fresh_.empty() && dirty_.empty()) return;
  std::vector<std::pair<NodeId, std::int64_t>> price_before;
  const auto note = [&](NodeId v) { price_before.emplace_back(v, graph_.nodes[v].price); };
  for (NodeId v : fresh_) note(v);
  for (ArcId arc : dirty_) {
    if (graph_.gone(arc)) continue;
    note(network_.tail[arc]);
    if (!graph_.at_root(arc)) note(graph_.edges[graph_.position[2 * arc]].to);
  }
  std::sort(price_before.begin(), price_before.end());
  price_before.erase(std::unique(price_before.begin(), price_before.end()), price_before.end());
  PriceRepair<Value>(*this, network_, repriced_, stats).run(fresh_, dirty_);
  doubtful_.clear();
  for (const auto& [v, price] : price_before) {
    if (graph_.nodes[v].price > price) {
      sources_.for_each_carried(v, [this](NodeId source) { doubtful_.push_back(source); });
    } else if (graph_.nodes[v].price < price) {
      sources_.for_each_arrival(
          v, [this](std::uint32_t arc) { doubtful_.push_back(sources_.source_of(arc)); });
    }
  }
  for (NodeId source : doubtful_) note_changed(source);
}

// Sources whose arcs or heads changed: displaced if there is a better way now.
template <class Value>
void CarrierEngine<Value>::recheck(Stats& stats) {
  for (NodeId source : changed_) {
    graph_.nodes[source].flags &= static_cast<std::uint8_t>(~kChanged);
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

// Its unit goes to where it is as well off and there is room, or a deficit above, and makes room
// where it was.
template <class Value>
void CarrierEngine<Value>::give_way(NodeId source, Stats& stats) {
  const std::uint32_t now = sources_.current_arc(source);
  const auto before = sources_.source_arcs[now];
  const auto [begin, end] = sources_.arcs_of(source);
  stats.scanned += end - begin;
  for (std::uint32_t i = begin; i < end; ++i) {
    const auto arc = sources_.source_arcs[i];
    if (arc.head == before.head || arc.head == graph_.root() ||
        sources_.through(i) != sources_.through(now))
      continue;
    const bool at_hand = PathSearch<Sources, true>::at_hand(graph_.nodes[arc.head]);
    const WayBack<Value> way_back(graph_, arc.head);
    if (!at_hand && !way_back.found()) continue;
    ++stats.augmentations;
    this->touch(before.id, 1);
    this->touch(arc.id, 0);
    cost_ += static_cast<std::int64_t>(arc.cost) - before.cost;
    sources_.move(source, i);
    shift_imbalance(before.head, -1);
    arrive({arc.head, at_hand && graph_.nodes[arc.head].imbalance >= 0, 0}, 1);
    if (!at_hand) way_back.send_unit(*this);
    return;
  }
}

// After many sources have given way, or are about to: where those who come instead look first.
template <class Value>
void CarrierEngine<Value>::raise_deficits(Stats& stats) {
  for (std::size_t k = 0, before = unbalanced_.size(); k < before; ++k) {
    if (pending(unbalanced_[k], false)) raise_deficit(*this, unbalanced_[k], stats);
  }
}

template <class Value>
void CarrierEngine<Value>::advertise_deficits() {
  for (NodeId v : unbalanced_) {
    if (pending(v, false)) point_at_deficit(graph_, v, [](const Node<Value>&) { return true; });
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
  const std::uint32_t arc = Sources::from_parent(parent);
  if constexpr (!kForward) return sources_.source_arcs[arc].head;
  const std::uint32_t now = sources_.current_arc(sources_.source_of(arc));
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
  while (first != kNone && nodes[first].parent != kNone) {  // bounded: by the length of a path
    const std::uint32_t parent = nodes[first].parent;
    std::int64_t room = 1;
    if (!Sources::is_source_arc(parent)) {
      room = kForward ? graph_.edges[parent].residual : graph_.edges[parent].reverse_residual;
    }
    amount = std::min(amount, room);
    first = before<kForward>(parent);
  }
  if (first != kNone)
    amount = std::min(amount, kForward ? nodes[first].imbalance : -nodes[first].imbalance);
  for (NodeId v = target.node; v != first;) {  // bounded: by the length of a path
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
        this->move_flow(v, graph_.position[graph_.edges[parent].id ^ 1],
                        static_cast<Value>(amount));
      }
    }
    v = u;
  }
  const std::int64_t sent = kForward ? amount : -amount;
  if (first != kNone) shift_imbalance(first, -sent);
  arrive(target, sent);
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
  if (!ready(control)) return Status::kCancelled;
  repair_core(stats);
  UniformRise<Value> rise(graph_, sources_, ordinary_, repriced_);
  rise.attempt(changed_, control, stats);
  for (NodeId source : rise.yielding()) give_way(source, stats);
  recheck(stats);
  const bool many_come = !rise.yielding().empty() || !rise.willing().empty();
  if (many_come) raise_deficits(stats);
  advertise_deficits();
  forward_.watch(control);
  backward_.watch(control);
  Status status;
  try {
    status = place_pending(control, stats);
    if (status == Status::kOptimal) {
      for (NodeId source : rise.willing()) give_way(source, stats);
      status = drain<true>(control, stats);
    }
    if (status == Status::kOptimal) status = drain<false>(control, stats);
  } catch (const Stopped& stopped) {
    status = stopped.status;
    forward_.revive(sources_);
    backward_.revive(sources_);
  }
  this->forget_balanced();
  tidy(ordinary_, tidied_ordinary_);
  tidy(root_tails_, tidied_root_tails_);
  return status;
}

std::unique_ptr<Engine> make_carrier_engine(const EngineStart& start, const Control& control) {
  if (fits_narrow(start.network, control))
    return std::make_unique<CarrierEngine<std::int32_t>>(start, control);
  return std::make_unique<CarrierEngine<std::int64_t>>(start, control);
}

bool mostly_unit_sources(const EngineStart& start, const Control& control) {
  Pace pace(control);
  const std::vector<std::uint8_t> is_source = unit_sources(start, control);
  std::size_t of_sources = 0, of_all = 0;
  for (ArcId a = 0; a < start.network.num_arcs(); ++a) {
    pace.build_step({});
    if (!start.alive.empty() && start.alive[a] == 0) continue;
    ++of_all;
    of_sources += is_source[start.network.tail[a]];
  }
  return 2 * of_sources >= of_all;
}

}  // namespace flowsolver
