// The changes of a large round. They are recorded as they are made and applied to the engine when
// it is about to run.
//
// Recording a change takes a few nanoseconds. What was added and removed again is never applied,
// and an engine that is given up for a solve from scratch (cold_start.hpp) is spared all of it.
// Changes are applied in the order in which they were made, with the values that the network has by
// then.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine.hpp"
#include "network.hpp"

namespace flowsolver {

class ChangeLog {
 public:
  // Each is recorded after the network was changed. Ids that are recorded as removed are not used
  // again before the log was emptied.
  void add_node(NodeId v);
  // The nodes together with the arcs at them.
  void remove_nodes(std::span<const NodeId> nodes, std::span<const ArcId> arcs);
  void add_arc(ArcId arc);
  void remove_arc(ArcId arc);
  void set_capacity(ArcId arc) {
    if (!is_new_arc(arc)) record(Kind::kSetCapacity, arc);
  }
  void set_cost(ArcId arc) {
    if (!is_new_arc(arc)) record(Kind::kSetCost, arc);
  }
  void change_supply(NodeId v, std::int64_t delta);

  // The engine will not be given these changes. Until the log is emptied, only which nodes and arcs
  // are new is recorded.
  void stop_recording();

  std::size_t size() const { return ids_.size() + removed_arcs_.size(); }
  // Whether it was added since the log was last emptied, so that the engine does not know it.
  bool is_new_node(NodeId v) const { return v < is_new_node_.size() && is_new_node_[v] != 0; }
  bool is_new_arc(ArcId arc) const { return arc < is_new_arc_.size() && is_new_arc_[arc] != 0; }
  // New arcs, including some that were removed again.
  std::span<const ArcId> new_arcs() const { return new_arcs_; }
  // Visits new arcs and arcs whose cost changed, including some that were removed.
  template <class Visit>
  void for_each_priced(Visit visit) const {
    for (ArcId arc : new_arcs_) visit(arc);
    for_each_of(Kind::kSetCost, visit);
  }

  // Applies the changes and empties the log, even when the engine throws. `node_alive`,
  // `arc_alive`: per id.
  void apply(Engine& engine, const Network& network, std::span<const std::uint8_t> node_alive,
             std::span<const std::uint8_t> arc_alive);
  void clear();

 private:
  enum class Kind : std::uint8_t {
    kAddNode,
    kRemoveNodes,
    kAddArc,
    kRemoveArc,
    kSetCapacity,
    kSetCost,
    kChangeSupply
  };
  // A run of changes of one kind: ids_[end of the run before .. end). The id of kRemoveNodes and of
  // kChangeSupply is an index into the lists below.
  struct Run {
    Kind kind;
    std::size_t end;
  };
  struct Removal {
    std::size_t nodes_end, arcs_end;  // ends in the lists below
  };
  struct SupplyChange {
    NodeId node;
    std::int64_t delta;
  };

  void record(Kind kind, std::size_t id) {
    if (!is_recording_) return;
    if (runs_.empty() || runs_.back().kind != kind) runs_.push_back({kind, 0});
    ids_.push_back(static_cast<std::uint32_t>(id));
    runs_.back().end = ids_.size();
  }
  template <class Visit>
  void for_each_of(Kind kind, Visit visit) const {
    std::size_t begin = 0;
    for (const Run& run : runs_) {
      for (std::size_t k = begin; k < run.end && run.kind == kind; ++k) visit(ids_[k]);
      begin = run.end;
    }
  }
  static void clear_mark(std::vector<std::uint8_t>& marks, std::uint32_t id) {
    if (id < marks.size()) marks[id] = 0;
  }
  static void set_mark(std::vector<std::uint8_t>& marks, std::uint32_t id) {
    if (id >= marks.size()) marks.resize(id + std::size_t{1} + id / 4, 0);
    marks[id] = 1;
  }
  void clear_entries();
  void apply_removal(std::size_t number, Engine& engine, const Network& network);
  void extend_to_largest_ids(Engine& engine, std::span<const std::uint8_t> node_alive,
                             std::span<const std::uint8_t> arc_alive) const;

  bool is_recording_ = true;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> ids_;
  std::vector<Removal> removals_;
  std::vector<NodeId> removed_nodes_;
  std::vector<ArcId> removed_arcs_;
  std::vector<SupplyChange> supplies_;
  std::vector<NodeId> new_nodes_;
  std::vector<ArcId> new_arcs_;
  std::vector<std::uint8_t> is_new_node_, is_new_arc_;
};

}  // namespace flowsolver
