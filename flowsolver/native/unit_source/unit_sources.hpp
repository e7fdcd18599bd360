// Unit sources under changes: sources are added, removed and changed, beside the residual graph of
// all other nodes.
//
// A unit source is a node with supply 1, no arcs in, and arcs out of capacity >= 1: a task. It is
// not a node of the graph; initial_assignment.cpp, where the sources are fixed, says why. While
// assigned, it belongs to the head of the arc that has its unit, and stands for residual arcs from
// there to its other heads. Its price is implied: cost(current arc) + p[head].
//
// Invariant, for an assigned source and each of its other arcs: cost(other) + p[its head] - price
// of the source >= 0.
//
// Keys. A search scans only those sources that may lead on within its distance bound. Each node has
// two lists (keyed_lists.hpp):
// - assigned: the sources assigned to it, by a lower bound on (best other arc: cost + p[head]) -
//   cost(current arc);
// - incoming: the arcs into it whose source is assigned elsewhere, by a lower bound on cost(arc) -
//   price of the source.
// Prices rise and fall between two scans of a key. A rise of p[v] lowers the true keys, in the
// incoming lists, of the sources assigned to v; a fall lowers those, in the assigned lists, of the
// sources with an arc to v. If few keys are concerned, they are updated. If all prices of a cell
// rise by one, an offset is raised instead: the stored value is the key plus the offset at that
// time, and the bound is the stored value minus the current offset. A key that is scanned is made
// exact again.
#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "control.hpp"
#include "graph/residual_graph.hpp"
#include "unit_source/keyed_lists.hpp"

namespace flowsolver {

template <class V>
class UnitSources {
 public:
  using Value = V;
  using Edge = HalfEdge<V>;
  static constexpr bool kHasUnitSources = true;
  struct SourceArc {
    NodeId head;
    V cost;
    ArcId id;
  };

  // Starts without sources. Reserves room for those of `network`, which also gives the tails of
  // arcs.
  UnitSources(ResidualGraph<V>& graph, const Network& network)
      : nodes(graph.nodes), edges(graph.edges), graph_(graph), tail_(network.tail) {
    const std::size_t num_nodes = network.num_nodes(), arcs = network.num_arcs();
    source_arcs.reserve(arcs + arcs / 2);
    sources_.reserve(num_nodes + num_nodes / 8);
    sources_.resize(num_nodes);
  }

  // Which nodes are unit sources.
  bool is_source(NodeId v) const { return v < sources_.size() && sources_[v].member; }
  // without arcs
  void add_source(NodeId v) {
    sources_[v] = Source{};
    sources_[v].member = true;
  }

  // with its arcs
  void remove_source(NodeId v) {
    Source& source = sources_[v];
    if (source.current != kNone) assigned_.remove(source_arcs[source.current].head, v);
    for (std::uint32_t i = source.begin; source.listed && i < source.begin + source.count; ++i) {
      if (i != source.current) incoming_.remove(source_arcs[i].head, i);
    }
    release_block(source);
    source = Source{};
  }

  void extend(std::size_t num_nodes) {
    if (sources_.size() < num_nodes) sources_.resize(num_nodes);
    assigned_.extend(num_nodes, num_nodes);
    incoming_.extend(num_nodes, 0);
  }

  // The arcs of a source, and the position of one of them. Finding all by id takes O(1) each if
  // they are looked up in the order in which they were added.
  std::pair<std::uint32_t, std::uint32_t> arcs_of(NodeId source) const {
    return {sources_[source].begin, sources_[source].begin + sources_[source].count};
  }
  std::uint32_t position_of(ArcId arc, NodeId source) {
    const auto [begin, end] = arcs_of(source);
    for (std::uint32_t guess = last_position_; guess < last_position_ + 2; ++guess) {
      if (guess >= begin && guess < end && source_arcs[guess].id == arc)
        return last_position_ = guess;
    }
    last_position_ = begin;
    while (source_arcs[last_position_].id != arc) ++last_position_;
    return last_position_;
  }

  bool is_assigned_over(NodeId source, ArcId arc) const {
    return sources_[source].current != kNone && source_arcs[sources_[source].current].id == arc;
  }
  // before the first arc is added
  void reserve_arcs(NodeId source, std::uint32_t arcs) {
    if (arcs > 0) take_block(sources_[source], arcs);
  }

  void add_arc(NodeId v, ArcId id, NodeId head, V cost) {
    Source& source = sources_[v];
    if (source.count == source.room) relocate(v, std::max(2 * source.room, kMinRoom));
    const std::uint32_t place = source.begin + source.count++;
    source_arcs[place] = {head, cost, id};
    if (source.listed) incoming_.add(head, place, kInfinity);
  }

  // not the current arc
  void remove_arc(NodeId v, std::uint32_t arc) {
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

  // call `refresh` before the next search
  void set_cost(std::uint32_t arc, V cost) { source_arcs[arc].cost = cost; }
  // kNone: not assigned
  std::uint32_t current_arc(NodeId source) const { return sources_[source].current; }
  NodeId source_of(std::uint32_t arc) const { return tail_[source_arcs[arc].id]; }
  // whether its arcs are in the lists of their heads
  bool listed(NodeId source) const { return sources_[source].listed; }

  std::int64_t cost_through(std::uint32_t arc) const {
    return source_arcs[arc].cost + nodes[source_arcs[arc].head].price;
  }
  // kInfinity without arcs
  std::int64_t best_cost(NodeId source) const {
    std::int64_t best = kInfinity;
    const auto [begin, end] = arcs_of(source);
    for (std::uint32_t i = begin; i < end; ++i) best = std::min(best, cost_through(i));
    return best;
  }

  std::int64_t price(NodeId source) const {
    if (sources_[source].current != kNone) return cost_through(sources_[source].current);
    const std::int64_t best = best_cost(source);
    return best == kInfinity ? 0 : best;
  }

  bool is_on_best_arc(NodeId source) const {
    return best_cost(source) >= cost_through(sources_[source].current);
  }

  // Assignments of its unit. `assign` is for a source that is not assigned; `reassign` keeps its
  // price.
  void assign(NodeId v, std::uint32_t arc) {
    Source& source = sources_[v];
    if (source.listed) incoming_.remove(source_arcs[arc].head, arc);
    source.current = arc;
    assigned_.add(source_arcs[arc].head, v, assigned_key(v));
    set_incoming_keys(v);
  }

  void reassign(NodeId v, std::uint32_t arc) {
    Source& source = sources_[v];
    const std::uint32_t before = source.current;
    assigned_.remove(source_arcs[before].head, v);
    incoming_.remove(source_arcs[arc].head, arc);
    source.current = arc;
    incoming_.add(source_arcs[before].head, before,
                  source_arcs[before].cost - cost_through(arc) + incoming_offset_);
    for (std::uint32_t i = source.begin; i < source.begin + source.count; ++i) {
      if (i != arc) incoming_.set_lead(source_arcs[i].head, i, source_arcs[arc].head);
    }
    assigned_.add(source_arcs[arc].head, v, assigned_key(v));
  }

  void unassign(NodeId v) {
    Source& source = sources_[v];
    const std::uint32_t before = source.current;
    assigned_.remove(source_arcs[before].head, v);
    source.current = kNone;
    incoming_.add(source_arcs[before].head, before, kInfinity);
  }

  // recomputes its keys
  void refresh(NodeId v) {
    assigned_.set_key(source_arcs[sources_[v].current].head, v, assigned_key(v));
    set_incoming_keys(v);
  }

  // For many sources at once, in less time and memory: `preassign` puts the unit on an arc, and
  // `build_lists`, when all are preassigned, makes the lists, which must be empty. In between only
  // reading and adding sources is allowed. False: cancelled, and the lists are still empty.
  void preassign(NodeId source, std::uint32_t arc) { sources_[source].current = arc; }
  bool build_lists(const Control& control) {
    CancellationChecker checker(control);
    const std::size_t arcs = source_arcs.size(), num_nodes = nodes.size();
    incoming_.reserve(num_nodes + num_nodes / 8, arcs + arcs / 8, 2 * arcs);
    assigned_.reserve(num_nodes + num_nodes / 8, num_nodes + num_nodes / 8, num_nodes);
    extend(num_nodes);
    incoming_.extend(0, arcs);
    std::vector<std::uint32_t> assigned(nodes.size(), 0), incoming(nodes.size(), 0);
    const auto is_preassigned = [this](const Source& source) {
      return source.member && source.current != kNone;
    };
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
      const std::int64_t base = incoming_offset_ - cost_through(source.current);
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

  // The lists of a node.
  template <class Evaluate>
  void for_each_assigned(NodeId v, Evaluate evaluate) const {
    assigned_.for_each(v, evaluate);
  }
  template <class Evaluate>
  void for_each_incoming(NodeId v, Evaluate evaluate) const {
    incoming_.for_each(v, evaluate);
  }
  std::uint32_t num_assigned(NodeId v) const { return assigned_.size(v); }
  std::uint32_t num_incoming(NodeId v) const { return incoming_.size(v); }

  // What searches need, as in UnitSourceGraph. The parent of a label is a half-edge, or an arc of a
  // source with the top bit set.
  NodeId root() const { return graph_.root(); }
  NodeId num_nodes() const { return graph_.num_nodes(); }
  NodeId owner(std::uint32_t edge_index) const { return graph_.owner(edge_index); }
  std::uint32_t partner(std::uint32_t edge_index) const {
    return graph_.position[edges[edge_index].id ^ 1];
  }
  bool is_forward(const Edge& edge) const { return graph_.is_forward(edge); }
  static std::uint32_t parent_of_move(NodeId, std::uint32_t arc) { return encode_parent(arc); }
  static std::uint32_t encode_parent(std::uint32_t arc) { return arc | kSourceBit; }
  static bool is_source_arc(std::uint32_t parent) { return (parent & kSourceBit) != 0; }
  static std::uint32_t decode_parent(std::uint32_t parent) { return parent & ~kSourceBit; }
  template <class Limit, class Evaluate>
  void visit_assigned(NodeId v, Limit limit, Evaluate evaluate) {
    assigned_.visit(
        v, [&] { return plus(limit(), assigned_offset_); },
        [&](NodeId source, std::int64_t key, NodeId lead) {
          return plus(evaluate(source, plus(key, -assigned_offset_), lead), assigned_offset_);
        });
  }
  template <class Limit, class Evaluate>
  void visit_incoming(NodeId v, Limit limit, Evaluate evaluate) {
    incoming_.visit(
        v, [&] { return plus(limit(), incoming_offset_); },
        [&](std::uint32_t arc, std::int64_t key, NodeId lead) {
          return plus(evaluate(arc, plus(key, -incoming_offset_), lead), incoming_offset_);
        });
  }
  // Must be called after the prices of these nodes rose (fell) by reach - distance, where that is >
  // 0.
  void prices_moved(std::span<const NodeId> moved, std::int64_t reach, bool up) {
    constexpr std::int64_t kArcsPerSource = 12;
    const auto keys_at = [&](NodeId v) {
      return 1 + (up ? kArcsPerSource * num_assigned(v) : std::int64_t{num_incoming(v)});
    };
    price_changes_.clear();
    std::int64_t keys = 0;
    for (NodeId v : moved) {
      if (nodes[v].distance >= reach) continue;
      price_changes_.emplace_back(reach - nodes[v].distance, v);
      keys += keys_at(v);
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
      (up ? incoming_offset_ : assigned_offset_) += rest;
      if (std::max(incoming_offset_, assigned_offset_) > kMaxOffset) {
        refresh_all();
        return;
      }
      std::reverse(price_changes_.begin(), price_changes_.end());  // the popped changes come first
    }
    for (std::size_t k = 0; k < num_explicit && price_changes_[k].first > rest; ++k)
      price_changed(price_changes_[k].second, up);
  }

  // Must be called after any prices rose (fell), by at most `most`.
  void prices_moved(std::int64_t most, bool up) {
    (up ? incoming_offset_ : assigned_offset_) += most;
    if (std::max(incoming_offset_, assigned_offset_) > kMaxOffset) refresh_all();
  }

  // Must be called after one node's price was changed by other means than a search, with the
  // invariant intact.
  void price_changed(NodeId v, bool up) { up ? lower_incoming_keys(v) : lower_assigned_keys(v); }

  decltype(ResidualGraph<V>::nodes)& nodes;
  decltype(ResidualGraph<V>::edges)& edges;
  LargeArray<SourceArc> source_arcs;

 private:
  static constexpr std::uint32_t kSourceBit = std::uint32_t{1} << 31;
  // Maximum number of keys updated after one search; beyond it, the offset is raised.
  static constexpr std::int64_t kMaxKeyUpdates = 32'768;
  // Maximum offset: shifted keys must fit their type.
  static constexpr std::int64_t kMaxOffset = std::int64_t{1} << (sizeof(V) == 4 ? 29 : 58);

  struct Source {
    std::uint32_t begin = 0, count = 0, current = kNone;
    std::uint32_t room = 0;  // for arcs
    bool member = false;
    bool listed = false;  // its arcs, except the current one, are in the incoming lists
  };
  static constexpr std::uint32_t kMinRoom = 8;

  static std::int64_t plus(std::int64_t key, std::int64_t offset) {
    return key == kInfinity || key == -kInfinity ? key : key + offset;
  }
  // Takes a free block that is not much larger, or a new one.
  void take_block(Source& source, std::uint32_t room) {
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

  void release_block(const Source& source) {
    if (source.room == 0) return;
    if (free_.size() <= source.room) free_.resize(source.room + std::size_t{1});
    free_[source.room].push_back(source.begin);
  }

  void relocate(NodeId v, std::uint32_t room) {
    Source& source = sources_[v];
    const Source before = source;
    take_block(source, room);
    incoming_.extend(0, source_arcs.size());
    for (std::uint32_t k = 0; k < source.count; ++k) {
      const std::uint32_t from = before.begin + k, to = source.begin + k;
      source_arcs[to] = source_arcs[from];
      if (source.listed && from != before.current)
        incoming_.renumber(source_arcs[to].head, from, to);
    }
    if (source.current != kNone) source.current = source.current - before.begin + source.begin;
    release_block(before);
  }

  std::int64_t best_other_cost(NodeId source) const {
    std::int64_t best = kInfinity;
    const auto [begin, end] = arcs_of(source);
    for (std::uint32_t i = begin; i < end; ++i) {
      if (i != sources_[source].current) best = std::min(best, cost_through(i));
    }
    return best;
  }

  std::int64_t assigned_key(NodeId source) const {
    const std::int64_t other = best_other_cost(source);
    return other == kInfinity
               ? kInfinity
               : other - source_arcs[sources_[source].current].cost + assigned_offset_;
  }

  void set_incoming_keys(NodeId v) {
    Source& source = sources_[v];
    const std::int64_t base = incoming_offset_ - cost_through(source.current);
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

  void lower_incoming_keys(NodeId v) {
    assigned_.for_each(v, [this](NodeId source) {
      const std::int64_t base = incoming_offset_ - cost_through(sources_[source].current);
      const auto [begin, end] = arcs_of(source);
      for (std::uint32_t i = begin; i < end; ++i) {
        const SourceArc& arc = source_arcs[i];
        if (i != sources_[source].current && arc.cost + base < incoming_.key(arc.head, i)) {
          incoming_.set_key(arc.head, i, arc.cost + base);
        }
      }
    });
  }

  void lower_assigned_keys(NodeId v) {
    incoming_.for_each(v, [this](std::uint32_t i) {
      const NodeId source = source_of(i);
      if (sources_[source].current == kNone) return;
      const SourceArc& now = source_arcs[sources_[source].current];
      const std::int64_t key = cost_through(i) - now.cost + assigned_offset_;
      if (key < assigned_.key(now.head, source)) assigned_.set_key(now.head, source, key);
    });
  }

  void refresh_all() {
    assigned_offset_ = incoming_offset_ = 0;
    for (NodeId v = 0; v < sources_.size(); ++v) {
      if (sources_[v].member && sources_[v].current != kNone) refresh(v);
    }
  }

  ResidualGraph<V>& graph_;
  const std::vector<NodeId>& tail_;               // by arc id
  std::vector<Source> sources_;                   // by node
  std::uint32_t last_position_ = 0;               // where `position_of` found the last arc
  std::vector<std::vector<std::uint32_t>> free_;  // free blocks of `source_arcs`, by size
  KeyedLists<V> assigned_, incoming_;
  std::int64_t assigned_offset_ = 0, incoming_offset_ = 0;
  std::vector<std::pair<std::int64_t, NodeId>> price_changes_;
};

}  // namespace flowsolver
