// The augmentations of a unit source engine (unit_source_engine.hpp): it routes sources one by one,
// then the other imbalances. Where one search settles many tied nodes, a search from the targets
// meets it; hops are computed again when they have become useless; and once searches go far, the
// rest is routed in phases.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "unit_source/unit_source_engine.hpp"

namespace flowsolver {

template <class Value>
void UnitSourceEngine<Value>::add_seeds(NodeId source) {
  const auto [begin, end] = sources_.arcs_of(source);
  const std::int64_t best = sources_.best_cost(source);
  for (std::uint32_t i = begin; i < end; ++i) {
    seeds_.push_back(
        {sources_.source_arcs[i].head, Sources::encode_parent(i), sources_.cost_through(i) - best});
  }
}

template <class Value>
bool UnitSourceEngine<Value>::assign_source(NodeId source, const Control& control, Stats& stats) {
  const auto [begin, end] = sources_.arcs_of(source);
  std::int64_t best = kInfinity;
  std::uint32_t has_target_arc = kNone;
  for (std::uint32_t i = begin; i < end; ++i) {
    const std::int64_t cost_through = sources_.cost_through(i);
    if (cost_through > best) continue;
    if (cost_through < best) has_target_arc = kNone;
    best = cost_through;
    const NodeId head = sources_.source_arcs[i].head;
    if (has_target_arc == kNone && head != graph_.root() &&
        PathSearch<Sources, true>::has_target_arc(graph_.nodes[head]))
      has_target_arc = i;
  }
  stats.scanned += end - begin;
  if (has_target_arc != kNone) {
    ++stats.searches;
    ++stats.augmentations;
    const NodeId head = sources_.source_arcs[has_target_arc].head;
    assign_over(source, has_target_arc);
    end_flow_at({head, graph_.nodes[head].imbalance >= 0, 0}, 1);
    return true;
  }
  const Target target = search_from_both_ends<true>(control, stats, seeds_, [&] {
    seeds_.clear();
    add_seeds(source);
    return forward_.run_from(sources_, seeds_, kInfinity, repriced_, stats);
  });
  if (!target.found()) return false;
  augment<true>(target, stats);
  return true;
}

// Limits the nodes that searches settle at one distance, for the lifetime of this object, also when
// a search throws.
template <class Paths>
class ScopedSettleLimit {
 public:
  explicit ScopedSettleLimit(Paths& paths) : paths_(paths) { paths.set_settle_limit(kSettleLimit); }
  ScopedSettleLimit(const ScopedSettleLimit&) = delete;
  ScopedSettleLimit& operator=(const ScopedSettleLimit&) = delete;
  ~ScopedSettleLimit() { paths_.set_settle_limit(std::numeric_limits<std::size_t>::max()); }

 private:
  static constexpr std::size_t kSettleLimit = 256;
  Paths& paths_;
};

// Runs the search `run`; if it gives up, searches from the targets, too.
template <class Value>
template <bool kForward, class Run>
Target UnitSourceEngine<Value>::search_from_both_ends(const Control& control, Stats& stats,
                                                      const std::vector<Seed>& seeds,
                                                      const Run& run) {
  auto& paths = search<kForward>();
  Target target;
  {
    const ScopedSettleLimit settle_limit(paths);
    target = run();
  }
  if (!paths.gave_up()) return target;
  const std::array<std::span<const NodeId>, 2> targets{unbalanced_, root_tails_};
  const auto is_labelled = [&paths](const Node<Value>& node) { return paths.has_labelled(node); };
  if constexpr (kForward) {
    target = forward_bidirectional_.run(sources_, core_nodes_, targets, seeds, paths.gave_up_at(),
                                        is_labelled, control, repriced_, stats);
  } else {
    target = backward_bidirectional_.run(sources_, core_nodes_, targets, seeds, paths.gave_up_at(),
                                         is_labelled, control, repriced_, stats);
  }
  if (!target.found()) return run();
  effort_.settled = 0;  // hops were just computed
  effort_.settled_before = stats.settled;
  return target;
}

template <class Value>
void UnitSourceEngine<Value>::begin_effort(const Stats& stats) {
  effort_ = {stats.settled, stats.scanned, 0,
             static_cast<std::int64_t>(graph_.edges.size() + sources_.source_arcs.size())};
}

// Called after each search. True: the rest should be routed in phases.
template <class Value>
template <bool kForward>
bool UnitSourceEngine<Value>::should_run_phases(Stats& stats) {
  const std::int64_t scanned = stats.scanned - effort_.scanned_before;
  if (scanned >
      static_cast<std::int64_t>(graph_.edges.size() + sources_.source_arcs.size()) / kFarShare) {
    effort_.far_budget -= scanned;
  }
  effort_.settled += stats.settled - effort_.settled_before;
  if (effort_.settled > kRelabelAfter) {
    label_near_targets<kForward>(stats);
    effort_.settled = 0;
  }
  effort_.settled_before = stats.settled;
  effort_.scanned_before = stats.scanned;
  return effort_.far_budget < 0;
}

template <class Value>
template <bool kForward>
void UnitSourceEngine<Value>::label_near_targets(Stats& stats) {
  targets_.clear();
  const auto add = [this](NodeId v) {
    if (v != graph_.root() && PathSearch<Sources, kForward>::has_target_arc(graph_.nodes[v]))
      targets_.push_back(v);
  };
  for (NodeId v : unbalanced_) add(v);
  if (!kForward || targets_.empty()) {
    for (NodeId v : root_tails_) add(v);
  }
  search<kForward>().label_near_targets(sources_, core_nodes_, targets_, kMaxRelabelled, stats);
}

template <class Value>
Status UnitSourceEngine<Value>::assign_pending(const Control& control, Stats& stats) {
  std::int64_t until_check = 0;
  begin_effort(stats);
  const std::int64_t before = stats.operations();
  Status status = Status::kOptimal;
  bool too_far = false;
  std::size_t k = 0;
  for (; k < unassigned_.size() && status == Status::kOptimal && !too_far; ++k) {
    const NodeId source = unassigned_[k];
    if (!is_unassigned(source)) continue;
    if (until_check-- == 0) {
      if ((status = control.check(stats)) != Status::kOptimal) break;
      until_check = kCancelCheckInterval;
    }
    if (!assign_source(source, control, stats)) {
      status = this->report_no_path(source, true);
      break;
    }
    too_far = should_run_phases<true>(stats) && unassigned_.size() - k > kFewLeft;
    if (status == Status::kOptimal)
      status = this->report(control, stats, before, k + 1, unassigned_.size());
  }
  unassigned_.erase(unassigned_.begin(), unassigned_.begin() + static_cast<std::ptrdiff_t>(k));
  return too_far ? route_in_phases<true>(control, stats) : status;
}

template <class Value>
template <bool kForward>
Status UnitSourceEngine<Value>::route_imbalances(const Control& control, Stats& stats) {
  const std::vector<Seed> none;
  std::int64_t until_check = 0;
  begin_effort(stats);
  const std::int64_t before = stats.operations();
  for (std::size_t k = 0; k < unbalanced_.size(); ++k) {  // may grow by targets
    const NodeId v = unbalanced_[k];
    while (needs_flow(v, kForward)) {
      if (until_check-- == 0) {
        if (const Status status = control.check(stats); status != Status::kOptimal) return status;
        until_check = kCancelCheckInterval;
      }
      const Target target = search_from_both_ends<kForward>(control, stats, none, [&] {
        return search<kForward>().run(sources_, std::array{v}, kInfinity, repriced_, stats);
      });
      if (!target.found()) return this->report_no_path(v, kForward);
      augment<kForward>(target, stats);
      if (should_run_phases<kForward>(stats) && unbalanced_.size() - k > kFewLeft) {
        return route_in_phases<kForward>(control, stats);
      }
    }
    const Status status = this->report(control, stats, before, k + 1, unbalanced_.size());
    if (status != Status::kOptimal) return status;
  }
  return Status::kOptimal;
}

// Primal-dual algorithm: one search from all remaining sources and imbalances, then all paths of
// length zero, as in Dinic's blocking flows. What cannot reach a target now cannot before prices
// change.
template <class Value>
template <bool kForward>
Status UnitSourceEngine<Value>::route_in_phases(const Control& control, Stats& stats) {
  auto& paths = search<kForward>();
  std::vector<NodeId> units, nodes;
  const std::int64_t before = stats.operations();
  std::size_t all = 0;
  std::int64_t until_check = kCancelCheckInterval;
  while (true) {
    units.clear();
    nodes.clear();
    seeds_.clear();
    if constexpr (kForward) {
      std::copy_if(unassigned_.begin(), unassigned_.end(), std::back_inserter(units),
                   [this](NodeId v) { return is_unassigned(v); });
      unassigned_ = units;
    }
    for (NodeId v : unbalanced_) {
      if (needs_flow(v, kForward)) nodes.push_back(v);
    }
    if (units.empty() && nodes.empty()) return Status::kOptimal;
    const std::size_t left = units.size() + nodes.size();
    all = std::max(all, left);
    Status status = control.check(stats);
    if (status == Status::kOptimal)
      status = control.report_progress(stats, before, all - left, left);
    if (status != Status::kOptimal) return status;
    ++stats.phases;
    for (NodeId source : units) add_seeds(source);
    for (NodeId v : nodes) seeds_.push_back({v, kNone, 0});
    const Target nearest = paths.run_from(sources_, seeds_, kInfinity, repriced_, stats);
    if (!nearest.found())
      return this->report_no_path(units.empty() ? nodes.front() : units.front(), kForward);
    augment<kForward>(nearest, stats);
    paths.relabel(sources_, stats);
    const auto reaches = [&](const Seed& seed) {
      return seed.distance == 0 &&
             (seed.node == graph_.root() || paths.reaches_target(graph_.nodes[seed.node]));
    };
    const auto send = [&] {
      if (std::none_of(seeds_.begin(), seeds_.end(), reaches)) return false;
      const Target target = paths.run_from(sources_, seeds_, 0, repriced_, stats);
      if (!target.found()) {
        paths.mark_settled_dead(sources_);
        return false;
      }
      augment<kForward>(target, stats);
      return true;
    };
    const auto may_continue = [&] {
      if (status == Status::kOptimal && until_check-- == 0) {
        status = control.check(stats);
        until_check = kCancelCheckInterval;
      }
      return status == Status::kOptimal;
    };
    for (NodeId source : units) {
      if (!is_unassigned(source)) continue;
      if (!may_continue()) break;
      seeds_.clear();
      add_seeds(source);
      send();
    }
    for (NodeId v : nodes) {
      seeds_.assign(1, {v, kNone, 0});
      while (needs_flow(v, kForward) && may_continue() && send()) {
      }
    }
    paths.clear_dead(sources_);
    if (status != Status::kOptimal) return status;
  }
}

}  // namespace flowsolver
