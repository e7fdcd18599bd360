// A network whose nodes and arcs are added, removed and changed: which ids are live, which ids are
// reused (id_pool.hpp), whether all numbers are in range, and which arcs are at removed nodes.
//
// Removed nodes and arcs stay in the arrays as gaps without supply, capacity and cost.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "id_pool.hpp"
#include "network.hpp"

namespace flowsolver {

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
  // Ends a round: ids of removed nodes and arcs become free as id_pool.hpp says.
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

}  // namespace flowsolver
