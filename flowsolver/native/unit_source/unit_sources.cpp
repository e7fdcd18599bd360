#include "unit_source/unit_sources.hpp"

#include <algorithm>
#include <stdexcept>

namespace flowsolver {

template <class V>
UnitSources<V>::UnitSources(ResidualGraph<V>& graph, const Network& network)
    : nodes(graph.nodes), edges(graph.edges), hubs(graph.hubs), graph_(graph), tail_(network.tail) {
  const std::size_t num_nodes = network.num_nodes(), arcs = network.num_arcs();
  source_arcs.reserve(arcs + arcs / 2);
  sources_.reserve(num_nodes + num_nodes / 8);
  sources_.resize(num_nodes);
  is_source_.resize(num_nodes, false);
}

template <class V>
void UnitSources<V>::extend(std::size_t num_nodes) {
  if (sources_.size() < num_nodes) sources_.resize(num_nodes);
  if (is_source_.size() < num_nodes) is_source_.resize(num_nodes, false);
  assigned_.extend(num_nodes, num_nodes);
  incoming_.extend(num_nodes, 0);
}

template <class V>
void UnitSources<V>::add_source(NodeId v) {
  sources_[v] = Source{};
  is_source_[v] = true;
}

template <class V>
void UnitSources<V>::remove_source(NodeId v) {
  Source& source = sources_[v];
  if (source.current != kNone) assigned_.remove(source_arcs[source.current].head, v);
  for (std::uint32_t i = source.begin; source.listed && i < source.begin + source.count; ++i) {
    if (i != source.current) incoming_.remove(source_arcs[i].head, i);
  }
  release_block(source);
  source = Source{};
  is_source_[v] = false;
}

// Takes a free block that is not much larger, or a new one.
template <class V>
void UnitSources<V>::take_block(Source& source, std::uint32_t room) {
  for (std::size_t fit = room; fit < free_.size() && fit <= std::size_t{2} * room; ++fit) {
    if (free_[fit].empty()) continue;
    source.begin = free_[fit].back();
    source.room = static_cast<std::uint32_t>(fit);
    free_[fit].pop_back();
    return;
  }
  const std::size_t begin = source_arcs.size(), end = begin + room;
  if (end >= kSourceBit) throw std::length_error("flowsolver: too many arcs");
  source_arcs.resize(end);
  source.begin = static_cast<std::uint32_t>(begin);
  source.room = room;
}

template <class V>
void UnitSources<V>::release_block(const Source& source) {
  if (source.room == 0) return;
  if (free_.size() <= source.room) free_.resize(source.room + std::size_t{1});
  free_[source.room].push_back(source.begin);
}

template <class V>
void UnitSources<V>::relocate(NodeId v, std::uint32_t room) {
  Source& source = sources_[v];
  const Source before = source;
  take_block(source, room);
  incoming_.extend(0, source_arcs.size());
  for (std::uint32_t k = 0; k < source.count; ++k) {
    const std::uint32_t from = before.begin + k, to = source.begin + k;
    source_arcs[to] = source_arcs[from];
    if (source.listed && from != before.current) incoming_.renumber(source_arcs[to].head, from, to);
  }
  if (source.current != kNone) source.current = source.current - before.begin + source.begin;
  release_block(before);
}

template <class V>
void UnitSources<V>::reserve_arcs(NodeId source, std::uint32_t arcs) {
  if (arcs > 0) take_block(sources_[source], arcs);
}

template <class V>
void UnitSources<V>::add_arc(NodeId v, ArcId id, NodeId head, V cost) {
  Source& source = sources_[v];
  if (source.count == source.room) relocate(v, std::max(2 * source.room, kMinRoom));
  const std::uint32_t place = source.begin + source.count++;
  source_arcs[place] = {head, cost, id};
  source.keyed_price = kNotKeyed;
  if (source.listed) incoming_.add(head, place, kInfinity);
}

template <class V>
void UnitSources<V>::remove_arc(NodeId v, std::uint32_t arc) {
  Source& source = sources_[v];
  if (source.listed) incoming_.remove(source_arcs[arc].head, arc);
  const std::uint32_t last = source.begin + --source.count;
  if (arc == last) return;
  source_arcs[arc] = source_arcs[last];
  if (source.current == last) {
    source.current = arc;
  } else if (source.listed) {
    incoming_.renumber(source_arcs[arc].head, last, arc);
  }
}

template <class V>
std::uint32_t UnitSources<V>::position_of(ArcId arc, NodeId source) {
  const auto [begin, end] = arcs_of(source);
  for (std::uint32_t guess = last_position_; guess < last_position_ + 2; ++guess) {
    if (guess >= begin && guess < end && source_arcs[guess].id == arc)
      return last_position_ = guess;
  }
  last_position_ = begin;
  while (source_arcs[last_position_].id != arc) ++last_position_;
  return last_position_;
}

template <class V>
std::int64_t UnitSources<V>::best_cost(NodeId source) const {
  std::int64_t best = kInfinity;
  const auto [begin, end] = arcs_of(source);
  for (std::uint32_t i = begin; i < end; ++i) best = std::min(best, cost_through(i));
  return best;
}

template <class V>
std::int64_t UnitSources<V>::price(NodeId source) const {
  if (sources_[source].current != kNone) return cost_through(sources_[source].current);
  const std::int64_t best = best_cost(source);
  return best == kInfinity ? 0 : best;
}

template <class V>
std::int64_t UnitSources<V>::best_other_cost(NodeId source) const {
  std::int64_t best = kInfinity;
  const auto [begin, end] = arcs_of(source);
  for (std::uint32_t i = begin; i < end; ++i) {
    if (i != sources_[source].current) best = std::min(best, cost_through(i));
  }
  return best;
}

template <class V>
std::int64_t UnitSources<V>::assigned_key(NodeId source) const {
  const std::int64_t other = best_other_cost(source);
  return other == kInfinity ? kInfinity
                            : other - source_arcs[sources_[source].current].cost + assigned_offset_;
}

template <class V>
void UnitSources<V>::set_incoming_keys(NodeId v) {
  Source& source = sources_[v];
  source.keyed_price = price_to_key(source);
  const std::int64_t base = -source.keyed_price;
  const NodeId lead = source_arcs[source.current].head;
  for (std::uint32_t i = source.begin; i < source.begin + source.count; ++i) {
    if (i == source.current) continue;
    const SourceArc& arc = source_arcs[i];
    if (source.listed) {
      incoming_.set_key(arc.head, i, arc.cost + base);
      incoming_.set_lead(arc.head, i, lead);
    } else {
      incoming_.add(arc.head, i, arc.cost + base, lead);
    }
  }
  source.listed = true;
}

template <class V>
void UnitSources<V>::assign(NodeId v, std::uint32_t arc) {
  Source& source = sources_[v];
  if (source.listed) incoming_.remove(source_arcs[arc].head, arc);
  source.current = arc;
  assigned_.add(source_arcs[arc].head, v, assigned_key(v));
  set_incoming_keys(v);
}

template <class V>
void UnitSources<V>::reassign(NodeId v, std::uint32_t arc) {
  Source& source = sources_[v];
  const std::uint32_t before = source.current;
  assigned_.remove(source_arcs[before].head, v);
  incoming_.remove(source_arcs[arc].head, arc);
  source.current = arc;
  const std::int64_t price = price_to_key(source);
  source.keyed_price = std::min(source.keyed_price, price);
  incoming_.add(source_arcs[before].head, before, source_arcs[before].cost - price);
  for (std::uint32_t i = source.begin; i < source.begin + source.count; ++i) {
    if (i != arc) incoming_.set_lead(source_arcs[i].head, i, source_arcs[arc].head);
  }
  assigned_.add(source_arcs[arc].head, v, assigned_key(v));
}

template <class V>
void UnitSources<V>::unassign(NodeId v) {
  Source& source = sources_[v];
  const std::uint32_t before = source.current;
  assigned_.remove(source_arcs[before].head, v);
  source.current = kNone;
  incoming_.add(source_arcs[before].head, before, kInfinity);
}

template <class V>
void UnitSources<V>::refresh(std::span<const NodeId> sources) {
  constexpr std::size_t kAhead = 16, kSoon = 8;
  risen_sources_.clear();
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (k + kAhead < sources.size()) prefetch(sources[k + kAhead]);
    if (k + kSoon < sources.size()) prefetch_arcs(sources[k + kSoon]);
    const NodeId v = sources[k];
    const Source& source = sources_[v];
    assigned_.set_key(source_arcs[source.current].head, v, assigned_key(v));
    if (!source.listed) {
      set_incoming_keys(v);
    } else if (price_to_key(source) > source.keyed_price) {
      risen_sources_.push_back(v);
    }
  }
  lower_keys_of_risen_sources();
}

template <class V>
bool UnitSources<V>::build_lists(const Control& control) {
  CancellationChecker checker(control);
  const std::size_t arcs = source_arcs.size(), num_nodes = nodes.size();
  incoming_.reserve(num_nodes + num_nodes / 8, arcs + arcs / 8, 2 * arcs);
  assigned_.reserve(num_nodes + num_nodes / 8, num_nodes + num_nodes / 8, num_nodes);
  extend(num_nodes);
  incoming_.extend(0, arcs);
  std::vector<std::uint32_t> assigned(nodes.size(), 0), incoming(nodes.size(), 0);
  const auto is_preassigned = [](const Source& source) { return source.current != kNone; };
  for (const Source& source : sources_) {
    if (!is_preassigned(source)) continue;
    for (std::uint32_t i = source.begin; i < source.begin + source.count; ++i) {
      ++(i == source.current ? assigned : incoming)[source_arcs[i].head];
    }
    if (checker.step({}, source.count) == Status::kCancelled) return false;
  }
  constexpr std::int64_t kStepsPerArc = 4;
  const auto with_spare_room = [](std::uint32_t items) { return items + items / 16; };
  for (NodeId v = 0; v < nodes.size(); ++v) {
    assigned_.make_room(v, with_spare_room(assigned[v]));
    incoming_.make_room(v, with_spare_room(incoming[v]));
  }
  for (NodeId v = 0; v < sources_.size(); ++v) {
    Source& source = sources_[v];
    if (!is_preassigned(source)) continue;
    source.keyed_price = price_to_key(source);
    const std::int64_t base = -source.keyed_price;
    const NodeId lead = source_arcs[source.current].head;
    for (std::uint32_t i = source.begin; i < source.begin + source.count; ++i) {
      if (i != source.current)
        incoming_.append(source_arcs[i].head, i, source_arcs[i].cost + base, lead);
    }
    assigned_.append(lead, v, assigned_key(v));
    source.listed = true;
    if (checker.step({}, kStepsPerArc * source.count) == Status::kCancelled) {
      assigned_.clear();
      incoming_.clear();
      for (Source& any : sources_) any.listed = false;
      return false;
    }
  }
  for (NodeId v = 0; v < nodes.size(); ++v) {
    assigned_.order(v);
    incoming_.order(v);
  }
  return true;
}

// The sources, their arcs and the keys of these are scattered in memory: each step fetches what the
// next one reads, of all nodes at once.
template <class V>
void UnitSources<V>::lower_incoming_keys(std::span<const std::pair<std::int64_t, NodeId>> risen) {
  risen_sources_.clear();
  for (const auto& [change, v] : risen) {
    assigned_.for_each(v, [this](NodeId source) {
      prefetch(source);
      risen_sources_.push_back(source);
    });
  }
  for (NodeId v : risen_sources_) prefetch_arcs(v);
  std::erase_if(risen_sources_,
                [this](NodeId v) { return price_to_key(sources_[v]) <= sources_[v].keyed_price; });
  lower_keys_of_risen_sources();
}

// Their arcs are in the cache.
template <class V>
void UnitSources<V>::lower_keys_of_risen_sources() {
  lowered_keys_.clear();
  for (NodeId v : risen_sources_) {
    Source& source = sources_[v];
    const std::int64_t price = price_to_key(source);
    source.keyed_price = price;
    const auto [begin, end] = arcs_of(v);
    for (std::uint32_t i = begin; i < end; ++i) {
      if (i == source.current) continue;
      const SourceArc& arc = source_arcs[i];
      incoming_.prefetch(arc.head);
      incoming_.prefetch_place(i);
      lowered_keys_.push_back({arc.head, i, arc.cost - price});
    }
  }
  for (const LoweredKey& each : lowered_keys_) incoming_.prefetch_entry(each.head, each.arc);
  for (const LoweredKey& each : lowered_keys_)
    incoming_.prefetch_moved(each.head, each.arc, each.key);
  for (const LoweredKey& each : lowered_keys_) incoming_.lower_key(each.head, each.arc, each.key);
}

template <class V>
void UnitSources<V>::lower_assigned_keys(NodeId v) {
  incoming_.for_each(v, [this](std::uint32_t i) {
    const NodeId source = source_of(i);
    if (sources_[source].current == kNone) return;
    const SourceArc& now = source_arcs[sources_[source].current];
    const std::int64_t key = cost_through(i) - now.cost + assigned_offset_;
    assigned_.lower_key(now.head, source, key);
  });
}

template <class V>
void UnitSources<V>::refresh_all() {
  assigned_offset_ = incoming_offset_ = 0;
  for (NodeId v = 0; v < sources_.size(); ++v) {
    if (!is_source_[v] || sources_[v].current == kNone) continue;
    assigned_.set_key(source_arcs[sources_[v].current].head, v, assigned_key(v));
    set_incoming_keys(v);
  }
}

template <class V>
void UnitSources<V>::prices_moved(std::int64_t most, bool up) {
  hubs.prices_moved(most, up);
  raise_offset(most, up);
}

template <class V>
bool UnitSources<V>::raise_offset(std::int64_t by, bool up) {
  (up ? incoming_offset_ : assigned_offset_) += by;
  if (std::max(incoming_offset_, assigned_offset_) <= kMaxOffset) return false;
  refresh_all();
  return true;
}

template <class V>
void UnitSources<V>::prices_moved(std::span<const NodeId> moved, std::int64_t reach, bool up) {
  constexpr std::int64_t kArcsPerSource = 12;
  const auto keys_at = [&](NodeId v) {
    return 1 + (up ? kArcsPerSource * num_assigned(v) : std::int64_t{num_incoming(v)});
  };
  price_changes_.clear();
  std::int64_t keys = 0, least = kInfinity, most = 0;
  for (NodeId v : moved) {
    if (nodes[v].distance >= reach) continue;
    price_changes_.emplace_back(reach - nodes[v].distance, v);
    keys += keys_at(v);
    least = std::min(least, reach - nodes[v].distance);
    most = std::max(most, reach - nodes[v].distance);
  }
  if (!hubs.empty()) {
    for (const auto& [change, v] : price_changes_) hubs.price_moved(graph_, v, up);
  }
  if (keys > kMaxKeyUpdates && least == most) {
    raise_offset(most, up);
    return;
  }
  std::size_t num_explicit = price_changes_.size();
  std::int64_t rest = 0;
  // update keys for the largest price changes, and raise the offset for the others
  if (keys > kMaxKeyUpdates) {
    num_explicit = 0;
    keys = 0;
    std::make_heap(price_changes_.begin(), price_changes_.end());
    // bounded: all changes together exceed the limit
    while ((keys += keys_at(price_changes_.front().second)) <= kMaxKeyUpdates) {
      std::pop_heap(price_changes_.begin(),
                    price_changes_.end() - static_cast<std::ptrdiff_t>(num_explicit));
      ++num_explicit;
    }
    rest = price_changes_.front().first;
    if (raise_offset(rest, up)) return;
    std::reverse(price_changes_.begin(), price_changes_.end());  // the popped changes come first
  }
  const auto is_rest = [rest](const auto& change) { return change.first <= rest; };
  const auto end = price_changes_.begin() + static_cast<std::ptrdiff_t>(num_explicit);
  const std::span<const std::pair<std::int64_t, NodeId>> own{
      price_changes_.begin(), std::find_if(price_changes_.begin(), end, is_rest)};
  if (up) return lower_incoming_keys(own);
  for (const auto& [change, v] : own) lower_assigned_keys(v);
}

template class UnitSources<std::int32_t>;
template class UnitSources<std::int64_t>;

}  // namespace flowsolver
