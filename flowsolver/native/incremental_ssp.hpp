// Incremental successive shortest paths with persistent prices.
//
// Definitions and signs are network.hpp's: rc = cost - p[tail] + p[head]; imbalance = supply + inflow - outflow.
//
// Method. The state is a pseudoflow (0 <= x <= capacity, imbalances allowed) and prices with the invariant
//     rc >= 0 on every residual arc,
// so that whenever all imbalances are zero the flow is optimal. A change to the network (nodes, arcs, capacities, costs,
// supplies) keeps or repairs the invariant locally and leaves imbalances: a new task an excess, a removed one a deficit
// where its flow used to go. `resolve` then sends flow along shortest residual paths, first from each excess to the nearest
// deficit or the root, then from the root to the deficits left, moving prices as it goes (path_search.hpp). Prices stay from
// one resolve to the next, so a small change needs a small search. A solve from scratch is the same from x = 0, p = 0.
//
// Root. One node, the largest sink, has price 0 and an implicit imbalance: excesses may go there and deficits draw from
// there at any time. Since supplies sum to zero it balances when all others do, so this does not change what is solved; it
// spares deciding which excess meets which deficit, and makes changing the root's supply free. The root is chosen anew when
// it is removed, or stops being a sink while another node is one.
//
// Correctness and termination. Each augmentation lessens the sum of imbalances by an integer >= 1; a search that finds no
// target proves that the reached side has more supply than its outgoing capacity: INFEASIBLE. The state stays usable.
//
// Complexity. With B the sum of imbalances, O(B (m + n log n)): pseudo-polynomial in general, meant for networks whose
// sources have supply 1 and whose searches are local. When searches stop being local and many imbalances remain, the
// primal-dual variant takes over: one search from all of them, then all zero-length paths; the number of searches is then
// bounded by the number of distinct distances as well.
//
// Start. From scratch, and at the first resolve, sources of one unit are placed first by a method that needs no labels for them
// (source_placement.hpp); what it leaves undone is done here. An oversubscribed start from zero prices would raise the price of
// all room once per source too many; it starts from an estimate of the clearing price instead (price_estimate.hpp).
//
// References. Ahuja, Magnanti, Orlin, Network Flows (1993), sections 9.7 (successive shortest paths), 9.8 (primal-dual) and
// 9.11 (sensitivity analysis: the changes above). Gog et al., Firmament, OSDI 2016, section 5.2: incremental solving.
// Departures: Firmament solves incrementally by cost scaling or relaxation; the textbook computes all distances in every
// search and restores optimality after every single change.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "certificate.hpp"
#include "network.hpp"
#include "ssp_engine.hpp"

namespace flowsolver {

struct ChangedFlow {
  std::vector<ArcId> arcs;  // ascending
  std::vector<std::int64_t> flow;
};

// Ids. Nodes and arcs keep their id for life. Ids of removed ones are handed out again, last removed first, but only after
// the next resolve that ends kOptimal: between two such resolves an id means one thing.
//
// Preconditions (checked by the caller, see `live_node`, `live_arc`): ids given are live, capacities are >= 0, a removed id
// occurs once. Not thread-safe, except that `cancel` may be called from any thread.
class IncrementalSsp {
 public:
  explicit IncrementalSsp(Network network);

  NodeId add_node(std::int64_t supply);
  ArcId add_arc(NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost);
  void remove_nodes(std::span<const NodeId> nodes);  // and the arcs at them
  void remove_arc(ArcId arc);
  void set_capacity(ArcId arc, std::int64_t capacity);
  void set_cost(ArcId arc, std::int64_t cost);
  void set_supply(NodeId node, std::int64_t supply);

  // Re-optimises. The work is that of the changes since the last call. After any status but kOptimal the changes made so
  // far remain, and flow and cost are still those of the last kOptimal.
  Status resolve();
  // The running resolve ends with kCancelled; if none is running, or it is past its last look at the flag, the next one does.
  void cancel() { cancel_.store(true, std::memory_order_relaxed); }

  bool live_node(std::int64_t node) const;
  bool live_arc(std::int64_t arc) const;
  const Network& network() const { return network_; }  // with gaps at removed ids (capacity and supply 0)
  std::span<const std::uint8_t> live_nodes() const { return node_alive_; }
  std::span<const std::uint8_t> live_arcs() const { return arc_alive_; }

  std::int64_t cost() const { return cost_; }
  std::span<const std::int64_t> flow() const { return flow_; }
  bool solved() const { return solved_; }  // no change since the last resolve, which ended kOptimal
  std::vector<std::int64_t> potential() const;  // prices; optimal duals when solved()
  const Stats& stats() const { return stats_; }  // of the last resolve
  // Live arcs whose flow differs between the last two kOptimal resolves (new arcs had none).
  const ChangedFlow& changed_flow() const { return changed_; }
  // Precondition: solved(). Checks the state: all of it, or all arcs and balances at nodes that
  // the last resolve touched.
  Certificate certify() const;
  Certificate certify_touched() const;

 private:
  void reserve_for_growth();
  bool engine_takes(std::int64_t magnitude) const;
  void drop_engine();
  void ensure_engine();
  Status check_numbers();
  void adopt_flow();
  void note_touched();
  void drop_arc(ArcId arc);

  Network network_;
  std::vector<std::uint8_t> node_alive_, arc_alive_;
  std::vector<NodeId> free_nodes_, parting_nodes_;  // reusable, and those that become so
  std::vector<ArcId> free_arcs_, parting_arcs_;
  __int128 supply_sum_ = 0, supply_magnitudes_ = 0, capacity_sum_ = 0;
  std::uint64_t cost_bound_ = 0;  // >= every |cost|

  std::unique_ptr<SspEngine> engine_;  // null: to be built by the next resolve, from the two below
  bool narrow_ = false;
  NodeId root_ = kNone;
  std::vector<std::int64_t> warm_flow_, warm_price_;
  bool prices_drifted_ = false;
  bool solved_ = false;  // the last call of interest was a resolve that ended kOptimal
  bool compare_all_ = true;  // the engine's list of touched arcs does not cover the time since the last kOptimal

  std::int64_t cost_ = 0;
  std::vector<std::int64_t> flow_;
  ChangedFlow changed_;
  Stats stats_;
  std::vector<NodeId> touched_;  // nodes at touched arcs and nodes repriced, of the last resolve
  std::atomic<bool> cancel_{false};
};

// From scratch.
Solution solve_incremental_ssp(const Network& network, const std::atomic<bool>& cancel);

}  // namespace flowsolver
