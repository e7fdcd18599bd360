#include "carrier_engine.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "carrier_changes.hpp"
#include "deficit_signs.hpp"
#include "price_repair.hpp"
#include "uniform_rise.hpp"

namespace flowsolver {

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

// Its unit goes to where it is as well off and there is room, or a deficit above, and makes room where it was.
template <class Value>
void CarrierEngine<Value>::give_way(NodeId source, Stats& stats) {
  const std::uint32_t now = sources_.current_arc(source);
  const auto before = sources_.source_arcs[now];
  const auto [begin, end] = sources_.arcs_of(source);
  stats.scanned += end - begin;
  for (std::uint32_t i = begin; i < end; ++i) {
    const auto arc = sources_.source_arcs[i];
    if (arc.head == before.head || arc.head == graph_.root() || sources_.through(i) != sources_.through(now)) continue;
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
    if (pending<false>(unbalanced_[k])) raise_deficit(*this, unbalanced_[k], stats);
  }
}

template <class Value>
void CarrierEngine<Value>::advertise_deficits() {
  for (NodeId v : unbalanced_) {
    if (pending<false>(v)) point_at_deficit(graph_, v, [](const Node<Value>&) { return true; });
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
bool CarrierEngine<Value>::place(NodeId source, const Control& control, Stats& stats) {
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
  const Target target = from_both_ends<true>(control, stats, seeds_, [&] {
    seeds_.clear();
    add_seeds(source);
    return forward_.run_from(sources_, seeds_, kInfinity, repriced_, stats);
  });
  if (!target.found()) return false;
  augment<true>(target, stats);
  return true;
}

// While it lives, also when a search throws, searches give up soon.
template <class Paths>
class Impatience {
 public:
  explicit Impatience(Paths& paths) : paths_(paths) { paths.set_patience(kPatience); }
  Impatience(const Impatience&) = delete;
  Impatience& operator=(const Impatience&) = delete;
  ~Impatience() { paths_.set_patience(std::numeric_limits<std::size_t>::max()); }

 private:
  static constexpr std::size_t kPatience = 256;
  Paths& paths_;
};

// By the search that `run` runs; if that wanders, from the targets, too.
template <class Value>
template <bool kForward, class Run>
Target CarrierEngine<Value>::from_both_ends(const Control& control, Stats& stats, const std::vector<Seed>& seeds,
                                            const Run& run) {
  auto& paths = search<kForward>();
  Target target;
  {
    const Impatience impatience(paths);
    target = run();
  }
  if (!paths.gave_up()) return target;
  const std::array<std::span<const NodeId>, 2> targets{unbalanced_, root_tails_};
  const auto in_reach = [&paths](const Node<Value>& node) { return paths.came_to(node); };
  if constexpr (kForward) {
    target = forward_meeting_.run(sources_, ordinary_, targets, seeds, paths.gave_up_at(), in_reach, control, repriced_, stats);
  } else {
    target = backward_meeting_.run(sources_, ordinary_, targets, seeds, paths.gave_up_at(), in_reach, control, repriced_, stats);
  }
  if (!target.found()) return run();
  effort_.settled = 0;  // the hops are known
  effort_.settled_before = stats.settled;
  return target;
}

template <class Value>
void CarrierEngine<Value>::begin_effort(const Stats& stats) {
  effort_ = {stats.settled, stats.scanned, 0, static_cast<std::int64_t>(graph_.edges.size() + sources_.source_arcs.size())};
}

// Called after each search. True: the rest had better be done in phases.
template <class Value>
template <bool kForward>
bool CarrierEngine<Value>::went_too_far(Stats& stats) {
  const std::int64_t scanned = stats.scanned - effort_.scanned_before;
  if (scanned > static_cast<std::int64_t>(graph_.edges.size() + sources_.source_arcs.size()) / kFarShare) {
    effort_.far_budget -= scanned;
  }
  effort_.settled += stats.settled - effort_.settled_before;
  if (effort_.settled > kAdvertiseAfter) {
    advertise<kForward>(stats);
    effort_.settled = 0;
  }
  effort_.settled_before = stats.settled;
  effort_.scanned_before = stats.scanned;
  return effort_.far_budget < 0;
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
  begin_effort(stats);
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
    if (!place(source, control, stats)) {
      status = Status::kInfeasible;
      break;
    }
    too_far = went_too_far<true>(stats) && unplaced_.size() - k > kFewLeft;
  }
  unplaced_.erase(unplaced_.begin(), unplaced_.begin() + static_cast<std::ptrdiff_t>(k));
  return too_far ? drain_in_phases<true>(control, stats) : status;
}

template <class Value>
template <bool kForward>
Status CarrierEngine<Value>::drain(const Control& control, Stats& stats) {
  const std::vector<Seed> none;
  std::int64_t until_check = 0;
  begin_effort(stats);
  for (std::size_t k = 0; k < unbalanced_.size(); ++k) {  // may grow by nodes that are targets
    const NodeId v = unbalanced_[k];
    while (pending<kForward>(v)) {
      if (until_check-- == 0) {
        if (const Status status = control.look(stats); status != Status::kOptimal) return status;
        until_check = kCancelCheckInterval;
      }
      const Target target = from_both_ends<kForward>(control, stats, none, [&] {
        return search<kForward>().run(sources_, std::array{v}, kInfinity, repriced_, stats);
      });
      if (!target.found()) return Status::kInfeasible;
      augment<kForward>(target, stats);
      if (went_too_far<kForward>(stats) && unbalanced_.size() - k > kFewLeft) {
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
  forget_balanced();
  tidy(ordinary_, tidied_ordinary_);
  tidy(root_tails_, tidied_root_tails_);
  return status;
}

std::unique_ptr<Engine> make_carrier_engine(const EngineStart& start, const Control& control) {
  if (fits_narrow(start.network, control)) return std::make_unique<CarrierEngine<std::int32_t>>(start, control);
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
