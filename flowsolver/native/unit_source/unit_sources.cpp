#include "unit_source/unit_sources.hpp"

#include <algorithm>
#include <stdexcept>

namespace flowsolver {

template <class V>
CarriedSources<V>::CarriedSources(ResidualGraph<V>& graph, const Network& network)
    : nodes(graph.nodes), edges(graph.edges), graph_(graph), tail_(network.tail) {
  const std::size_t num_nodes = network.num_nodes(), arcs = network.num_arcs();
  source_arcs.reserve(arcs + arcs / 2);
  sources_.reserve(num_nodes + num_nodes / 8);
  sources_.resize(num_nodes);
}

template <class V>
void CarriedSources<V>::extend(std::size_t num_nodes) {
  if (sources_.size() < num_nodes) sources_.resize(num_nodes);
  carried_.extend(num_nodes, num_nodes);
  arrivals_.extend(num_nodes, 0);
}

template <class V>
void CarriedSources<V>::enroll(NodeId v) {
  sources_[v] = Source{};
  sources_[v].member = true;
}

template <class V>
void CarriedSources<V>::dismiss(NodeId v) {
  Source& source = sources_[v];
  if (source.current != kNone) carried_.remove(source_arcs[source.current].head, v);
  for (std::uint32_t i = source.begin; source.listed && i < source.begin + source.count; ++i) {
    if (i != source.current) arrivals_.remove(source_arcs[i].head, i);
  }
  release_block(source);
  source = Source{};
}

// A free block that is not much larger, or a new one.
template <class V>
void CarriedSources<V>::take_block(Source& source, std::uint32_t room) {
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
void CarriedSources<V>::release_block(const Source& source) {
  if (source.room == 0) return;
  if (free_.size() <= source.room) free_.resize(source.room + std::size_t{1});
  free_[source.room].push_back(source.begin);
}

template <class V>
void CarriedSources<V>::relocate(NodeId v, std::uint32_t room) {
  Source& source = sources_[v];
  const Source before = source;
  take_block(source, room);
  arrivals_.extend(0, source_arcs.size());
  for (std::uint32_t k = 0; k < source.count; ++k) {
    const std::uint32_t from = before.begin + k, to = source.begin + k;
    source_arcs[to] = source_arcs[from];
    if (source.listed && from != before.current) arrivals_.rename(source_arcs[to].head, from, to);
  }
  if (source.current != kNone) source.current = source.current - before.begin + source.begin;
  release_block(before);
}

template <class V>
void CarriedSources<V>::reserve_arcs(NodeId source, std::uint32_t arcs) {
  if (arcs > 0) take_block(sources_[source], arcs);
}

template <class V>
void CarriedSources<V>::add_arc(NodeId v, ArcId id, NodeId head, V cost) {
  Source& source = sources_[v];
  if (source.count == source.room) relocate(v, std::max(2 * source.room, kLeastRoom));
  const std::uint32_t place = source.begin + source.count++;
  source_arcs[place] = {head, cost, id};
  if (source.listed) arrivals_.add(head, place, kInfinity);
}

template <class V>
void CarriedSources<V>::remove_arc(NodeId v, std::uint32_t arc) {
  Source& source = sources_[v];
  if (source.listed) arrivals_.remove(source_arcs[arc].head, arc);
  const std::uint32_t last = source.begin + --source.count;
  if (arc == last) return;
  source_arcs[arc] = source_arcs[last];
  if (source.current == last) {
    source.current = arc;
  } else if (source.listed) {
    arrivals_.rename(source_arcs[arc].head, last, arc);
  }
}

template <class V>
std::uint32_t CarriedSources<V>::place_of(ArcId arc, NodeId source) {
  const auto [begin, end] = arcs_of(source);
  for (std::uint32_t guess = sought_; guess < sought_ + 2; ++guess) {
    if (guess >= begin && guess < end && source_arcs[guess].id == arc) return sought_ = guess;
  }
  sought_ = begin;
  while (source_arcs[sought_].id != arc) ++sought_;
  return sought_;
}

template <class V>
std::int64_t CarriedSources<V>::best_way(NodeId source) const {
  std::int64_t best = kInfinity;
  const auto [begin, end] = arcs_of(source);
  for (std::uint32_t i = begin; i < end; ++i) best = std::min(best, through(i));
  return best;
}

template <class V>
std::int64_t CarriedSources<V>::price(NodeId source) const {
  if (sources_[source].current != kNone) return through(sources_[source].current);
  const std::int64_t best = best_way(source);
  return best == kInfinity ? 0 : best;
}

template <class V>
std::int64_t CarriedSources<V>::best_other(NodeId source) const {
  std::int64_t best = kInfinity;
  const auto [begin, end] = arcs_of(source);
  for (std::uint32_t i = begin; i < end; ++i) {
    if (i != sources_[source].current) best = std::min(best, through(i));
  }
  return best;
}

template <class V>
std::int64_t CarriedSources<V>::carried_key(NodeId source) const {
  const std::int64_t other = best_other(source);
  return other == kInfinity
             ? kInfinity
             : other - source_arcs[sources_[source].current].cost + carried_allowance_;
}

template <class V>
void CarriedSources<V>::set_arrival_keys(NodeId v) {
  Source& source = sources_[v];
  const std::int64_t base = arrival_allowance_ - through(source.current);
  const NodeId lead = source_arcs[source.current].head;
  for (std::uint32_t i = source.begin; i < source.begin + source.count; ++i) {
    if (i == source.current) continue;
    const SourceArc& arc = source_arcs[i];
    if (source.listed) {
      arrivals_.set_key(arc.head, i, arc.cost + base);
      arrivals_.set_lead(arc.head, i, lead);
    } else {
      arrivals_.add(arc.head, i, arc.cost + base, lead);
    }
  }
  source.listed = true;
}

template <class V>
void CarriedSources<V>::put(NodeId v, std::uint32_t arc) {
  Source& source = sources_[v];
  if (source.listed) arrivals_.remove(source_arcs[arc].head, arc);
  source.current = arc;
  carried_.add(source_arcs[arc].head, v, carried_key(v));
  set_arrival_keys(v);
}

template <class V>
void CarriedSources<V>::move(NodeId v, std::uint32_t arc) {
  Source& source = sources_[v];
  const std::uint32_t before = source.current;
  carried_.remove(source_arcs[before].head, v);
  arrivals_.remove(source_arcs[arc].head, arc);
  source.current = arc;
  arrivals_.add(source_arcs[before].head, before,
                source_arcs[before].cost - through(arc) + arrival_allowance_);
  for (std::uint32_t i = source.begin; i < source.begin + source.count; ++i) {
    if (i != arc) arrivals_.set_lead(source_arcs[i].head, i, source_arcs[arc].head);
  }
  carried_.add(source_arcs[arc].head, v, carried_key(v));
}

template <class V>
void CarriedSources<V>::take_off(NodeId v) {
  Source& source = sources_[v];
  const std::uint32_t before = source.current;
  carried_.remove(source_arcs[before].head, v);
  source.current = kNone;
  arrivals_.add(source_arcs[before].head, before, kInfinity);
}

template <class V>
void CarriedSources<V>::refresh(NodeId v) {
  carried_.set_key(source_arcs[sources_[v].current].head, v, carried_key(v));
  set_arrival_keys(v);
}

template <class V>
bool CarriedSources<V>::list_settled(const Control& control) {
  Pace pace(control);
  const std::size_t arcs = source_arcs.size(), num_nodes = nodes.size();
  arrivals_.reserve(num_nodes + num_nodes / 8, arcs + arcs / 8, 2 * arcs);
  carried_.reserve(num_nodes + num_nodes / 8, num_nodes + num_nodes / 8, num_nodes);
  extend(num_nodes);
  arrivals_.extend(0, arcs);
  std::vector<std::uint32_t> carried(nodes.size(), 0), arrivals(nodes.size(), 0);
  const auto settled = [this](const Source& source) {
    return source.member && source.current != kNone;
  };
  for (const Source& source : sources_) {
    if (!settled(source)) continue;
    for (std::uint32_t i = source.begin; i < source.begin + source.count; ++i) {
      ++(i == source.current ? carried : arrivals)[source_arcs[i].head];
    }
    if (pace.step({}, source.count) == Status::kCancelled) return false;
  }
  constexpr std::int64_t kStepsPerArc = 4;
  const auto with_spare = [](std::uint32_t items) { return items + items / 16; };
  for (NodeId v = 0; v < nodes.size(); ++v) {
    carried_.make_room(v, with_spare(carried[v]));
    arrivals_.make_room(v, with_spare(arrivals[v]));
  }
  for (NodeId v = 0; v < sources_.size(); ++v) {
    Source& source = sources_[v];
    if (!settled(source)) continue;
    const std::int64_t base = arrival_allowance_ - through(source.current);
    const NodeId lead = source_arcs[source.current].head;
    for (std::uint32_t i = source.begin; i < source.begin + source.count; ++i) {
      if (i != source.current)
        arrivals_.append(source_arcs[i].head, i, source_arcs[i].cost + base, lead);
    }
    carried_.append(lead, v, carried_key(v));
    source.listed = true;
    if (pace.step({}, kStepsPerArc * source.count) == Status::kCancelled) {
      carried_.clear();
      arrivals_.clear();
      for (Source& any : sources_) any.listed = false;
      return false;
    }
  }
  for (NodeId v = 0; v < nodes.size(); ++v) {
    carried_.order(v);
    arrivals_.order(v);
  }
  return true;
}

template <class V>
void CarriedSources<V>::lower_arrival_keys(NodeId v) {
  carried_.for_each(v, [this](NodeId source) {
    const std::int64_t base = arrival_allowance_ - through(sources_[source].current);
    const auto [begin, end] = arcs_of(source);
    for (std::uint32_t i = begin; i < end; ++i) {
      const SourceArc& arc = source_arcs[i];
      if (i != sources_[source].current && arc.cost + base < arrivals_.key(arc.head, i)) {
        arrivals_.set_key(arc.head, i, arc.cost + base);
      }
    }
  });
}

template <class V>
void CarriedSources<V>::lower_carried_keys(NodeId v) {
  arrivals_.for_each(v, [this](std::uint32_t i) {
    const NodeId source = source_of(i);
    if (sources_[source].current == kNone) return;
    const SourceArc& now = source_arcs[sources_[source].current];
    const std::int64_t key = through(i) - now.cost + carried_allowance_;
    if (key < carried_.key(now.head, source)) carried_.set_key(now.head, source, key);
  });
}

template <class V>
void CarriedSources<V>::refresh_all() {
  carried_allowance_ = arrival_allowance_ = 0;
  for (NodeId v = 0; v < sources_.size(); ++v) {
    if (sources_[v].member && sources_[v].current != kNone) refresh(v);
  }
}

template <class V>
void CarriedSources<V>::prices_moved(std::int64_t most, bool up) {
  (up ? arrival_allowance_ : carried_allowance_) += most;
  if (std::max(arrival_allowance_, carried_allowance_) > kAllowanceLimit) refresh_all();
}

template <class V>
void CarriedSources<V>::prices_moved(std::span<const NodeId> moved, std::int64_t reach, bool up) {
  constexpr std::int64_t kArcsPerSource = 12;
  const auto keys_at = [&](NodeId v) {
    return 1 + (up ? kArcsPerSource * num_carried(v) : std::int64_t{num_arrivals(v)});
  };
  moves_.clear();
  std::int64_t keys = 0;
  for (NodeId v : moved) {
    if (nodes[v].distance >= reach) continue;
    moves_.emplace_back(reach - nodes[v].distance, v);
    keys += keys_at(v);
  }
  std::size_t explicitly = moves_.size();
  std::int64_t rest = 0;
  if (keys > kExplicitKeys) {  // the farthest moves one by one, the others by the allowance
    explicitly = 0;
    keys = 0;
    std::make_heap(moves_.begin(), moves_.end());
    // bounded: all moves together exceed the limit
    while ((keys += keys_at(moves_.front().second)) <= kExplicitKeys) {
      std::pop_heap(moves_.begin(), moves_.end() - static_cast<std::ptrdiff_t>(explicitly));
      ++explicitly;
    }
    rest = moves_.front().first;
    (up ? arrival_allowance_ : carried_allowance_) += rest;
    if (std::max(arrival_allowance_, carried_allowance_) > kAllowanceLimit) {
      refresh_all();
      return;
    }
    std::reverse(moves_.begin(), moves_.end());  // the popped ones come first
  }
  for (std::size_t k = 0; k < explicitly && moves_[k].first > rest; ++k)
    price_moved(moves_[k].second, up);
}

template class CarriedSources<std::int32_t>;
template class CarriedSources<std::int64_t>;

}  // namespace flowsolver
