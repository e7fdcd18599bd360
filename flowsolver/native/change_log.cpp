#include "change_log.hpp"

#include <algorithm>

namespace flowsolver {

void ChangeLog::stop_noting() {
  forget();  // but not which are new
  notes_ = false;
}

void ChangeLog::add_node(NodeId v) {
  mark(is_new_node_, v);
  if (!notes_) return;
  new_nodes_.push_back(v);
  note(Kind::kAddNode, v);
}

void ChangeLog::remove_nodes(std::span<const NodeId> nodes, std::span<const ArcId> arcs) {
  if (!notes_) {
    for (NodeId v : nodes) unmark(is_new_node_, v);
    for (ArcId arc : arcs) unmark(is_new_arc_, arc);
    return;
  }
  const std::size_t before = gone_nodes_.size();
  for (NodeId v : nodes) {
    if (is_new_node(v)) {
      is_new_node_[v] = 0;
    } else {
      gone_nodes_.push_back(v);
    }
  }
  for (ArcId arc : arcs) {
    if (is_new_arc(arc)) {
      is_new_arc_[arc] = 0;
    } else {
      gone_arcs_.push_back(arc);
    }
  }
  if (gone_nodes_.size() == before) return;  // all arcs at new nodes are new
  note(Kind::kRemoveNodes, departures_.size());
  departures_.push_back({gone_nodes_.size(), gone_arcs_.size()});
}

void ChangeLog::add_arc(ArcId arc) {
  mark(is_new_arc_, arc);
  if (!notes_) return;
  new_arcs_.push_back(arc);
  note(Kind::kAddArc, arc);
}

void ChangeLog::remove_arc(ArcId arc) {
  if (is_new_arc(arc)) {
    is_new_arc_[arc] = 0;
  } else {
    note(Kind::kRemoveArc, arc);
  }
}

void ChangeLog::change_supply(NodeId v, std::int64_t delta) {
  if (is_new_node(v)) return;
  if (!notes_) return;
  note(Kind::kChangeSupply, supplies_.size());
  supplies_.push_back({v, delta});
}

void ChangeLog::tell(Engine& engine, const Network& network,
                     std::span<const std::uint8_t> node_alive,
                     std::span<const std::uint8_t> arc_alive) {
  struct Emptied {
    ChangeLog& log;
    ~Emptied() { log.clear(); }
  };
  const Emptied emptied{*this};
  const auto& [tail, head, capacity, cost, supply] = network;
  std::size_t k = 0;
  for (const Run& run : runs_) {
    switch (run.kind) {
      case Kind::kAddNode:
        for (; k < run.end; ++k) {
          if (!is_new_node(ids_[k])) continue;
          is_new_node_[ids_[k]] = 0;
          engine.add_node(ids_[k], supply[ids_[k]]);
        }
        break;
      case Kind::kRemoveNodes:
        for (; k < run.end; ++k) tell_departure(ids_[k], engine, network);
        break;
      case Kind::kAddArc:
        for (; k < run.end; ++k) {
          const ArcId a = ids_[k];
          if (!is_new_arc(a)) continue;
          is_new_arc_[a] = 0;
          engine.add_arc(a, tail[a], head[a], capacity[a], cost[a]);
        }
        break;
      case Kind::kRemoveArc:
        for (; k < run.end; ++k) engine.remove_arc(ids_[k], tail[ids_[k]], head[ids_[k]]);
        break;
      case Kind::kSetCapacity:
        for (; k < run.end; ++k) {
          const ArcId a = ids_[k];
          if (arc_alive[a] != 0) engine.set_capacity(a, tail[a], head[a], capacity[a]);
        }
        break;
      case Kind::kSetCost:
        for (; k < run.end; ++k) {
          const ArcId a = ids_[k];
          if (arc_alive[a] != 0) engine.set_cost(a, tail[a], cost[a]);
        }
        break;
      case Kind::kChangeSupply:
        for (; k < run.end; ++k) {
          const auto [v, delta] = supplies_[ids_[k]];
          if (node_alive[v] != 0) engine.change_supply(v, delta);
        }
        break;
    }
  }
  tell_largest_ids(engine, node_alive, arc_alive);
}

// Ids of what has come and gone again: engines keep arrays by id, as long as the network's.
void ChangeLog::tell_largest_ids(Engine& engine, std::span<const std::uint8_t> node_alive,
                                 std::span<const std::uint8_t> arc_alive) const {
  const auto node = std::max_element(new_nodes_.begin(), new_nodes_.end());
  if (node != new_nodes_.end() && node_alive[*node] == 0) {
    engine.add_node(*node, 0);
    engine.remove_node(*node);
  }
  const auto arc = std::max_element(new_arcs_.begin(), new_arcs_.end());
  if (arc == new_arcs_.end() || arc_alive[*arc] != 0) return;
  const auto live =
      std::find_if(node_alive.begin(), node_alive.end(), [](auto a) { return a != 0; });
  if (live == node_alive.end()) return;
  const auto loop_at = static_cast<NodeId>(live - node_alive.begin());
  engine.add_arc(*arc, loop_at, loop_at, 0, 0);
  engine.remove_arc(*arc, loop_at, loop_at);
}

void ChangeLog::tell_departure(std::size_t number, Engine& engine, const Network& network) {
  const Departure from = number == 0 ? Departure{0, 0} : departures_[number - 1];
  const Departure to = departures_[number];
  const auto nodes = std::span(gone_nodes_).subspan(from.nodes_end, to.nodes_end - from.nodes_end);
  std::vector<ArcId> told;
  if (engine.local() && engine.remove_with_arcs(nodes, told)) return;
  for (std::size_t k = from.arcs_end; k < to.arcs_end; ++k) {
    const ArcId arc = gone_arcs_[k];
    engine.remove_arc(arc, network.tail[arc], network.head[arc]);
  }
  for (NodeId v : nodes) engine.remove_node(v);
}

void ChangeLog::clear() {
  for (NodeId v : new_nodes_) is_new_node_[v] = 0;
  for (ArcId arc : new_arcs_) is_new_arc_[arc] = 0;
  if (!notes_) {
    std::fill(is_new_node_.begin(), is_new_node_.end(), 0);
    std::fill(is_new_arc_.begin(), is_new_arc_.end(), 0);
    notes_ = true;
  }
  forget();
}

void ChangeLog::forget() {
  runs_.clear();
  ids_.clear();
  departures_.clear();
  gone_nodes_.clear();
  gone_arcs_.clear();
  supplies_.clear();
  new_nodes_.clear();
  new_arcs_.clear();
}

}  // namespace flowsolver
