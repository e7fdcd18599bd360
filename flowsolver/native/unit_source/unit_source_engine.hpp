// The engine of incremental successive shortest paths (incremental_ssp.hpp) for networks most of
// whose arcs belong to unit sources, that is, to tasks. These are not nodes of the graph
// (unit_sources.hpp). So a search visits machines and aggregators only, and at each of them only
// those tasks whose next best place is within its distance bound.
//
// A source that gets another supply, an arc in, or an arc without capacity becomes a core node for
// the rest of its life.
#pragma once

#include <memory>
#include <vector>

#include "unit_source/unit_sources.hpp"
#include "unit_source/bidirectional_search.hpp"
#include "shortest_path/local_engine.hpp"
#include "shortest_path/path_search.hpp"

namespace flowsolver {

template <class Value>
class UnitSourceEngine final : public LocalEngine<Value> {
 public:
  UnitSourceEngine(const EngineStart& start, const Control& control);

  void add_node(NodeId v, std::int64_t supply) override;
  void remove_node(NodeId v) override;
  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override;
  void remove_arc(ArcId arc, NodeId tail, NodeId head) override;
  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override;
  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override;
  void change_supply(NodeId v, std::int64_t delta) override;
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override;
  bool remove_with_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) override;
  Status run(const Control& control, Stats& stats) override;
  std::int64_t flow(ArcId arc, NodeId tail) const override;
  std::int64_t price(NodeId v) const override {
    return sources_.is_source(v) ? sources_.price(v) : graph_.nodes[v].price;
  }
  void implicitly_priced_by(NodeId v, std::vector<NodeId>& nodes) const override {
    sources_.for_each_assigned(v, [&](NodeId source) { nodes.push_back(source); });
  }

 private:
  using Sources = UnitSources<Value>;
  using LocalEngine<Value>::graph_;
  using LocalEngine<Value>::cost_;
  using LocalEngine<Value>::unbalanced_;
  using LocalEngine<Value>::new_nodes_;
  using LocalEngine<Value>::dirty_;
  using LocalEngine<Value>::network_;
  using LocalEngine<Value>::repriced_;
  using LocalEngine<Value>::kCancelCheckInterval;
  using LocalEngine<Value>::kFarShare;
  using LocalEngine<Value>::kFewLeft;
  using LocalEngine<Value>::mark_dirty;
  using LocalEngine<Value>::needs_flow;
  using Pseudoflow<Value>::shift_imbalance;

  // After searches have settled kRelabelAfter nodes, hops to the targets are computed again, for up
  // to kMaxRelabelled nodes.
  static constexpr std::int64_t kRelabelAfter = 256;
  static constexpr std::size_t kMaxRelabelled = 1024;

  UnitSourceEngine(const EngineStart& start, const std::vector<std::uint8_t>& is_source,
                   const Control& control);

  // Builds the lists of the sources that the start assigned: not before the first run or change,
  // when the start need not be kept in memory any more. False: cancelled.
  bool ensure_lists(const Control& control = Control()) {
    if (!listed_) {
      release_free_memory();
      listed_ = sources_.build_lists(control);
    }
    return listed_;
  }
  void assign_over(NodeId source, std::uint32_t arc);
  void unassign(NodeId source);
  void note_changed(NodeId source);
  void arcs_at(NodeId v, std::vector<ArcId>& arcs) const;
  void make_core_node(NodeId source);
  void repair_core(Stats& stats);
  void recheck(Stats& stats);
  void yield_place(NodeId source, Stats& stats);
  void move_deficits_up(Stats& stats);
  void hint_at_deficits();

  // The work of the searches in one direction during one run.
  struct SearchEffort {
    std::int64_t settled_before = 0, scanned_before = 0;
    std::int64_t settled = 0;  // nodes settled since hops were last computed
    std::int64_t far_budget = 0;
  };
  void begin_effort(const Stats& stats);
  template <bool kForward>
  bool should_run_phases(Stats& stats);
  template <bool kForward>
  void label_near_targets(Stats& stats);
  void add_seeds(NodeId source);
  template <bool kForward>
  Status route_in_phases(const Control& control, Stats& stats);
  bool is_unassigned(NodeId source) const {
    return sources_.is_source(source) && sources_.current_arc(source) == kNone;
  }

  Status assign_pending(const Control& control, Stats& stats);
  bool assign_source(NodeId source, const Control& control, Stats& stats);
  template <bool kForward, class Run>
  Target search_from_both_ends(const Control& control, Stats& stats, const std::vector<Seed>& seeds,
                               const Run& run);
  template <bool kForward>
  Status route_imbalances(const Control& control, Stats& stats);
  template <bool kForward>
  PathSearch<Sources, kForward>& search() {
    if constexpr (kForward) {
      return forward_;
    } else {
      return backward_;
    }
  }
  template <bool kForward>
  void augment(const Target& target, Stats& stats);
  template <bool kForward>
  NodeId previous_node(std::uint32_t parent) const;
  void end_flow_at(const Target& target, std::int64_t amount);
  void compact(std::vector<NodeId>& nodes, std::size_t& compacted);

  Sources sources_;
  bool listed_ = false;  // see `ensure_lists`
  PathSearch<Sources, true> forward_;
  PathSearch<Sources, false> backward_;
  BidirectionalSearch<Value, true> forward_bidirectional_;
  BidirectionalSearch<Value, false> backward_bidirectional_;
  SearchEffort effort_;
  std::vector<Seed> seeds_;
  // every core node that has an arc to the root inside, and some without
  std::vector<NodeId> root_tails_;
  std::vector<NodeId> core_nodes_;  // every core node, and some that were removed
  std::size_t compacted_root_tails_ = 0, compacted_core_nodes_ = 0;
  std::vector<NodeId> targets_;
  // every source that is not assigned, and some that are, or were removed
  std::vector<NodeId> unassigned_;
  // sources whose arcs changed, and some that were removed; see `note_changed`
  std::vector<NodeId> changed_;
  std::vector<NodeId> to_recheck_;
};

std::unique_ptr<Engine> make_unit_source_engine(const EngineStart& start, const Control& control);

// Whether most arcs belong to unit sources.
bool mostly_unit_sources(const EngineStart& start, const Control& control);

}  // namespace flowsolver
