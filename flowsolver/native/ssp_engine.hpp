// The working state of the incremental successive shortest path method (described in incremental_ssp.hpp): residual graph,
// prices, imbalances, and what has to be put right at the next resolve. Values are 32 or 64 bits wide; the owner chooses.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "network.hpp"

namespace flowsolver {

struct FlowBefore {
  ArcId arc;
  std::int64_t flow;
};

class SspEngine {
 public:
  virtual ~SspEngine() = default;

  // Changes. O(1) each but for moves of blocks; every one leaves a pseudoflow whose imbalances are known. `tail` and `head`
  // are the arc's.
  virtual void add_node(NodeId v, std::int64_t supply) = 0;
  virtual void remove_node(NodeId v) = 0;  // its arcs are removed already
  virtual void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost) = 0;
  virtual void remove_arc(ArcId arc, NodeId tail, NodeId head) = 0;
  virtual void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) = 0;
  virtual void set_cost(ArcId arc, NodeId tail, std::int64_t cost) = 0;
  virtual void change_supply(NodeId v, std::int64_t delta) = 0;
  virtual void incident_arcs(NodeId v, std::vector<ArcId>& arcs) const = 0;

  // kOptimal, kInfeasible or kCancelled. Supplies balance and numbers are in range.
  virtual Status run(const std::atomic<bool>& cancel, Stats& stats) = 0;

  virtual std::int64_t flow(ArcId arc, NodeId tail) const = 0;
  virtual std::int64_t price(NodeId v) const = 0;
  virtual __int128 cost() const = 0;
  // Arcs whose flow was touched, with their flow before, and nodes whose price moved, since `begin_round`.
  virtual const std::vector<FlowBefore>& touched_arcs() const = 0;
  virtual const std::vector<NodeId>& repriced_nodes() const = 0;
  virtual void begin_round() = 0;
  // Prices have wandered so far (over very many rounds) that the next solve should start from zero.
  virtual bool prices_drifted() const = 0;
};

struct EngineStart {
  const Network& network;
  NodeId root;
  std::span<const std::uint8_t> alive;    // per arc; empty: all
  std::span<const std::int64_t> flow;     // per arc; empty: zero (a cold start)
  std::span<const std::int64_t> price;    // per node; empty: zero
  bool incremental;                       // leave room for changes
};

// Costs and capacities up to this fit the 32-bit engine.
inline constexpr std::int64_t kNarrowLimit = (std::int64_t{1} << 31) - 1;

std::unique_ptr<SspEngine> make_engine(const EngineStart& start, bool narrow);

}  // namespace flowsolver
