// A network whose nodes and arcs are added, removed and changed: which ids are live, which ids are
// reused (IdPool), whether all numbers are in range, and which arcs are at removed nodes. Beside it
// are its capacities that were lowered, its live part as a network of its own, and the log of a
// large round's changes.
//
// Removed nodes and arcs stay in the arrays as gaps without supply, capacity and cost.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "control.hpp"
#include "solve.hpp"
#include "network.hpp"

namespace flowsolver {

// The ids of one kind (nodes or arcs) of a changing network: which id is handed out next, and when
// the ids of removed nodes or arcs are reused.
//
// An id that was live at the last kOptimal round stays reserved until the next kOptimal one, so
// that everything read about that optimum by id stays valid. Any other id is free after the round
// in which it was removed, whatever the round's status. So rounds that stay infeasible need no more
// ids than were live at the last optimum, live at any time since, and removed in one round. Within
// a round no id changes its meaning.
class IdPool {
 public:
  using Id = std::uint32_t;

  // Ids 0 .. ids - 1 are live; there was no optimum yet.
  explicit IdPool(std::size_t ids) {
    states_.reserve(ids + ids / 4);
    states_.assign(ids, State::kSince);
  }

  // All ids handed out so far are below this.
  std::size_t size() const { return states_.size(); }
  // The next id to hand out; size() if none is free.
  Id next() const { return free_.empty() ? static_cast<Id>(size()) : free_.back().id; }
  // Hands out `next`: the last removed of the free ids, or a new one.
  void take() {
    if (free_.empty()) {
      states_.push_back(State::kSince);
      since_optimum_.push_back(static_cast<Id>(size() - 1));
      return;
    }
    const Id id = free_.back().id;
    free_.pop_back();
    free_at_optimum_ = std::min(free_at_optimum_, free_.size());
    if (states_[id] != State::kOfOptimum) return;
    states_[id] = State::kSince;
    since_optimum_.push_back(id);
  }
  void remove(Id id) { removed_.push_back({id, removals_++}); }

  void end_round(bool optimal) {
    for (const Removed& each : removed_) {
      const bool becomes_free = optimal || states_[each.id] == State::kSince;
      (becomes_free ? free_ : reserved_).push_back(each);
    }
    removed_.clear();
    if (optimal) end_optimal_round();
  }

 private:
  // Whether the id was handed out before the last optimum or since.
  enum class State : std::uint8_t { kOfOptimum, kSince };
  struct Removed {
    Id id;
    std::uint32_t number;  // number of removals before this one since the last optimum
  };

  // Orders the free ids by removal, so that how earlier rounds ended does not affect the order.
  void end_optimal_round() {
    free_.insert(free_.end(), reserved_.begin(), reserved_.end());
    reserved_.clear();
    const auto earlier = [](const Removed& a, const Removed& b) { return a.number < b.number; };
    const auto since = free_.begin() + static_cast<std::ptrdiff_t>(free_at_optimum_);
    if (!std::is_sorted(since, free_.end(), earlier)) std::sort(since, free_.end(), earlier);
    free_at_optimum_ = free_.size();
    if (had_optimum_) {
      for (Id id : since_optimum_) states_[id] = State::kOfOptimum;
    } else {
      std::fill(states_.begin(), states_.end(), State::kOfOptimum);
    }
    had_optimum_ = true;
    since_optimum_.clear();
    removals_ = 0;
  }

  std::vector<State> states_;
  std::vector<Id> since_optimum_;  // ids in state kSince, once there was an optimum
  bool had_optimum_ = false;
  std::vector<Removed> free_;        // the last one is handed out first
  std::size_t free_at_optimum_ = 0;  // number of free ids at the last optimum
  std::vector<Removed> removed_;     // in this round
  std::vector<Removed> reserved_;    // removed in earlier rounds, reserved until the next optimum
  std::uint32_t removals_ = 0;
};

class ArcLists;

class ChangingNetwork {
 public:
  explicit ChangingNetwork(const Network& network);  // all live
  ~ChangingNetwork();

  const Network& network() const { return network_; }
  const std::vector<std::uint8_t>& node_alive() const { return node_alive_; }  // per id
  const std::vector<std::uint8_t>& arc_alive() const { return arc_alive_; }
  bool live_node(std::int64_t id) const { return is_live(node_alive_, id); }
  bool live_arc(std::int64_t id) const { return is_live(arc_alive_, id); }
  std::size_t live_nodes() const { return live_nodes_; }
  std::size_t live_arcs() const { return live_arcs_; }
  std::size_t live_size() const { return live_nodes_ + live_arcs_; }
  __int128 capacity_sum() const { return capacity_sum_; }            // of live arcs
  __int128 supply_magnitudes() const { return supply_magnitudes_; }  // their sum, of live nodes
  std::size_t num_sources() const { return num_sources_; }           // live nodes with supply > 0
  bool has_gaps() const {
    return live_nodes_ < network_.num_nodes() || live_arcs_ < network_.num_arcs();
  }

  // These throw std::length_error when there are no ids left.
  NodeId add_node(std::int64_t supply);
  ArcId add_arc(NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost);
  void remove_node(NodeId v);  // the caller removes its arcs next
  void remove_arc(ArcId arc);
  void set_capacity(ArcId arc, std::int64_t capacity);
  void set_cost(ArcId arc, std::int64_t cost);
  void set_supply(NodeId v, std::int64_t supply);

  // Appends the live arcs at the nodes; other arcs may be among them, and some may occur twice.
  using FindArcs = std::function<void(std::span<const NodeId>, std::vector<ArcId>&)>;
  // The live arcs at nodes that were just removed, ascending. `find` may be empty; else it takes a
  // pass over `find_passes` arcs beside those it finds. All calls of a round together take a few
  // passes over the network at most, and time for the arcs they return.
  std::vector<ArcId> arcs_at_removed(std::span<const NodeId> nodes, const FindArcs& find,
                                     std::size_t find_passes);

  // The status that check_ranges gives for the live part. O(1) unless numbers are near the ends of
  // the range.
  Status check_numbers();
  // Whether the largest cost fits paths over as many nodes as there are ids: engines and methods
  // count the ids of removed nodes as well.
  bool ids_fit_costs();
  // Ends a round: ids of removed nodes and arcs become free as IdPool says.
  void end_round(bool optimal);

 private:
  static bool is_live(const std::vector<std::uint8_t>& alive, std::int64_t id) {
    return id >= 0 && static_cast<std::size_t>(id) < alive.size() &&
           alive[static_cast<std::size_t>(id)] != 0;
  }
  bool is_at_removed(ArcId a) const {
    return arc_alive_[a] != 0 &&
           (node_alive_[network_.tail[a]] == 0 || node_alive_[network_.head[a]] == 0);
  }
  void index_arcs();

  Network network_;
  std::vector<std::uint8_t> node_alive_, arc_alive_;
  std::size_t live_nodes_, live_arcs_, num_sources_ = 0;
  IdPool node_ids_, arc_ids_;
  __int128 supply_sum_ = 0, supply_magnitudes_ = 0, capacity_sum_ = 0;
  std::uint64_t cost_bound_ = 0;  // >= every |cost|
  // The arcs at each node. Made when nodes are removed in so many calls that it pays, and kept up
  // to date until the round ends.
  std::unique_ptr<ArcLists> arcs_at_;
  std::size_t scanned_arcs_ = 0;  // arcs scanned in this round for those at removed nodes
};

inline std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
}

// The capacities of a changing network that were lowered to a level (graph/start_state.hpp),
// with their original values.
class LoweredCapacities {
 public:
  bool any() const { return count_ > 0; }
  std::int64_t level() const { return level_; }
  std::int64_t count() const { return count_; }

  // Starts a new level. No arc is lowered to it yet.
  void begin(std::int64_t level) {
    level_ = level;
    count_ = 0;
    given_.clear();
    arcs_.clear();
  }

  // The capacity to use for an arc whose given capacity is `capacity`.
  std::int64_t lower(ArcId arc, std::int64_t capacity) {
    if (capacity <= level_) {
      forget(arc);
      return capacity;
    }
    if (arc >= given_.size()) given_.resize(arc + std::size_t{1} + arc / 4, 0);
    if (given_[arc] == 0) {
      ++count_;
      arcs_.push_back(arc);
    }
    given_[arc] = capacity;
    return level_;
  }
  void forget(ArcId arc) {
    if (arc >= given_.size() || given_[arc] == 0) return;
    given_[arc] = 0;
    --count_;
    if (arcs_.size() > 2 * static_cast<std::size_t>(count_) + kFew) compact();
  }

  // The given capacity. `capacity`: the one in use.
  std::int64_t given(ArcId arc, std::int64_t capacity) const {
    return arc < given_.size() && given_[arc] > 0 ? given_[arc] : capacity;
  }
  template <class Holds>
  bool any_of(Holds holds) const {
    return std::any_of(arcs_.begin(), arcs_.end(),
                       [&](ArcId arc) { return given_[arc] > 0 && holds(arc); });
  }

 private:
  static constexpr std::size_t kFew = 64;

  void compact() {
    std::sort(arcs_.begin(), arcs_.end());
    arcs_.erase(std::unique(arcs_.begin(), arcs_.end()), arcs_.end());
    std::erase_if(arcs_, [this](ArcId arc) { return given_[arc] == 0; });
  }

  // the maximum: nothing is lowered
  std::int64_t level_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t count_ = 0;
  std::vector<std::int64_t> given_;  // per arc id; 0: not lowered
  std::vector<ArcId> arcs_;          // lowered arcs, and some that no longer are; may repeat
};

// The live part of a changing network, numbered without gaps: the input of a solve from scratch.
struct LiveNetwork {
  Network network;
  std::vector<NodeId> nodes;  // ids in the changing network, ascending
  std::vector<ArcId> arcs;
};

// O(n + m). `node_alive`, `arc_alive`: per id. Live arcs join live nodes only. Throws Stopped when
// cancelled.
LiveNetwork live_network(const Network& all, std::span<const std::uint8_t> node_alive,
                         std::span<const std::uint8_t> arc_alive, const Control& control);

// The changes of a large round. They are recorded as they are made and applied to the engine when
// it is about to run.
//
// Recording a change takes a few nanoseconds. What was added and removed again is never applied,
// and an engine that is given up for a solve from scratch (ColdStartRule) is spared all of it.
// Changes are applied in the order in which they were made, with the values that the network has by
// then.
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
