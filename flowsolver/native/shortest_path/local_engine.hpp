// The common part of the engines of incremental successive shortest paths (incremental_ssp.hpp): a
// pseudoflow with prices on a residual graph, what must be repaired at the next run, and what this
// round has touched.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine.hpp"
#include "shortest_path/pseudoflow.hpp"

namespace flowsolver {

template <class Value>
class LocalEngine : public Engine, protected Pseudoflow<Value> {
 public:
  __int128 cost() const override { return cost_; }
  void adopt(const Engine&) override {}  // its own state is as good a start
  bool keeps_progress() const override { return true; }
  std::uint64_t value_limit() const override {
    return static_cast<std::uint64_t>(sizeof(Value) == 4 ? kNarrowLimit : std::int64_t{1} << 56);
  }
  bool prices_drifted() const override {
    return std::any_of(repriced_.begin(), repriced_.end(), [this](NodeId v) {
      return graph_.nodes[v].price > 2 * kMaxPathCost || graph_.nodes[v].price < -2 * kMaxPathCost;
    });
  }

  std::vector<NodeId> unrouted_nodes() const override {
    if (unrouted_ == kNone) return {};
    return {unrouted_};
  }
  bool local() const override { return true; }
  const std::vector<FlowBefore>& touched_arcs() const override { return touched_; }
  const std::vector<NodeId>& repriced_nodes() const override { return repriced_; }
  void begin_round() override {
    for (NodeId v : repriced_) graph_.nodes[v].flags &= static_cast<std::uint8_t>(~kTouched);
    repriced_.clear();
    this->forget_touched();
  }

 protected:
  using Pseudoflow<Value>::graph_;
  using Pseudoflow<Value>::cost_;
  using Pseudoflow<Value>::touched_;
  using Pseudoflow<Value>::unbalanced_;

  static constexpr std::int64_t kCancelCheckInterval = 64;  // searches
  // A search that scans more than 1 / kFarShare of all arcs is not local. When such searches have
  // scanned as many arcs as there are, and more than a few imbalances are left, one search from all
  // of them at once is cheaper.
  static constexpr std::int64_t kFarShare = 64;
  static constexpr std::size_t kFewLeft = 4;
  static constexpr std::size_t kReportInterval = 16;  // nodes

  LocalEngine(ResidualGraph<Value> graph, const Network& network)
      : Pseudoflow<Value>(std::move(graph), network), network_(network) {}

  void mark_dirty(ArcId arc) { dirty_.push_back(arc); }
  // Reports progress: `done` of `all` nodes were routed since the run had counted `before`.
  static Status report(const Control& control, const Stats& stats, std::int64_t before,
                       std::size_t done, std::size_t all) {
    if (done % kReportInterval != 0) return Status::kOptimal;
    return control.report_progress(stats, before, done, all - done);
  }
  // Whether flow must start at v (forward) or end there.
  bool needs_flow(NodeId v, bool forward) const {
    return v != graph_.root() &&
           (forward ? graph_.nodes[v].imbalance > 0 : graph_.nodes[v].imbalance < 0);
  }
  // No path was found from v, or to v; in the latter case the root has the excess that v lacks.
  Status report_no_path(NodeId v, bool forward) {
    unrouted_ = forward ? v : graph_.root();
    return Status::kInfeasible;
  }
  void drop_balanced() {
    std::erase_if(unbalanced_, [this](NodeId v) {
      Node<Value>& node = graph_.nodes[v];
      const bool balanced = node.imbalance == 0 || v == graph_.root();
      if (balanced) node.flags &= static_cast<std::uint8_t>(~kListed);
      return balanced;
    });
  }

  const Network& network_;
  std::vector<NodeId> new_nodes_;  // nodes without a price
  std::vector<ArcId> dirty_;  // arcs that may violate the invariant, and some that were removed
  std::vector<NodeId> repriced_;
  NodeId unrouted_ = kNone;  // after kInfeasible: a node whose excess cannot be routed
};

}  // namespace flowsolver
