#include "change_log.hpp"

#include <algorithm>

namespace flowsolver {

void ChangeLog::stop_recording() {
  clear_entries();  // which nodes and arcs are new stays known
  is_recording_ = false;
}

void ChangeLog::add_node(NodeId v) {
  set_mark(is_new_node_, v);
  if (!is_recording_) return;
  new_nodes_.push_back(v);
  record(Kind::kAddNode, v);
}

void ChangeLog::remove_nodes(std::span<const NodeId> nodes, std::span<const ArcId> arcs) {
  if (!is_recording_) {
    for (NodeId v : nodes) clear_mark(is_new_node_, v);
    for (ArcId arc : arcs) clear_mark(is_new_arc_, arc);
    return;
  }
  const std::size_t before = removed_nodes_.size();
  for (NodeId v : nodes) {
    if (is_new_node(v)) {
      is_new_node_[v] = 0;
    } else {
      removed_nodes_.push_back(v);
    }
  }
  for (ArcId arc : arcs) {
    if (is_new_arc(arc)) {
      is_new_arc_[arc] = 0;
    } else {
      removed_arcs_.push_back(arc);
    }
  }
  // all of these nodes were new, and so are the arcs at them
  if (removed_nodes_.size() == before) return;
  record(Kind::kRemoveNodes, removals_.size());
  removals_.push_back({removed_nodes_.size(), removed_arcs_.size()});
}

void ChangeLog::add_arc(ArcId arc) {
  set_mark(is_new_arc_, arc);
  if (!is_recording_) return;
  new_arcs_.push_back(arc);
  record(Kind::kAddArc, arc);
}

void ChangeLog::remove_arc(ArcId arc) {
  if (is_new_arc(arc)) {
    is_new_arc_[arc] = 0;
  } else {
    record(Kind::kRemoveArc, arc);
  }
}

void ChangeLog::change_supply(NodeId v, std::int64_t delta) {
  if (is_new_node(v)) return;
  if (!is_recording_) return;
  record(Kind::kChangeSupply, supplies_.size());
  supplies_.push_back({v, delta});
}

void ChangeLog::apply(Engine& engine, const Network& network,
                      std::span<const std::uint8_t> node_alive,
                      std::span<const std::uint8_t> arc_alive) {
  struct ClearOnExit {
    ChangeLog& log;
    ~ClearOnExit() { log.clear(); }
  };
  const ClearOnExit clear_on_exit{*this};
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
        for (; k < run.end; ++k) apply_removal(ids_[k], engine, network);
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
  extend_to_largest_ids(engine, node_alive, arc_alive);
}

// Engines keep arrays by id as long as the network's, so they must see the largest id, even if it
// was added and removed within the round.
void ChangeLog::extend_to_largest_ids(Engine& engine, std::span<const std::uint8_t> node_alive,
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

void ChangeLog::apply_removal(std::size_t number, Engine& engine, const Network& network) {
  const Removal from = number == 0 ? Removal{0, 0} : removals_[number - 1];
  const Removal to = removals_[number];
  const auto nodes =
      std::span(removed_nodes_).subspan(from.nodes_end, to.nodes_end - from.nodes_end);
  std::vector<ArcId> applied;
  if (engine.local() && engine.remove_with_arcs(nodes, applied)) return;
  for (std::size_t k = from.arcs_end; k < to.arcs_end; ++k) {
    const ArcId arc = removed_arcs_[k];
    engine.remove_arc(arc, network.tail[arc], network.head[arc]);
  }
  for (NodeId v : nodes) engine.remove_node(v);
}

void ChangeLog::clear() {
  for (NodeId v : new_nodes_) is_new_node_[v] = 0;
  for (ArcId arc : new_arcs_) is_new_arc_[arc] = 0;
  if (!is_recording_) {
    std::fill(is_new_node_.begin(), is_new_node_.end(), 0);
    std::fill(is_new_arc_.begin(), is_new_arc_.end(), 0);
    is_recording_ = true;
  }
  clear_entries();
}

void ChangeLog::clear_entries() {
  runs_.clear();
  ids_.clear();
  removals_.clear();
  removed_nodes_.clear();
  removed_arcs_.clear();
  supplies_.clear();
  new_nodes_.clear();
  new_arcs_.clear();
}

}  // namespace flowsolver
