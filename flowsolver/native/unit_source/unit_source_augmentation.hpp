// How a carrier engine (unit_source_engine.hpp) decides on its searches, until nothing is left to send:
// sources one by one, then other imbalances; from both ends where one search wanders; with hops
// that are advertised anew; and in phases once searches go far.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "unit_source/unit_source_engine.hpp"

namespace flowsolver {

template <class Value>
void CarrierEngine<Value>::add_seeds(NodeId source) {
  const auto [begin, end] = sources_.arcs_of(source);
  const std::int64_t best = sources_.best_way(source);
  for (std::uint32_t i = begin; i < end; ++i) {
    seeds_.push_back(
        {sources_.source_arcs[i].head, Sources::as_parent(i), sources_.through(i) - best});
  }
}

template <class Value>
bool CarrierEngine<Value>::place(NodeId source, const Control& control, Stats& stats) {
  const auto [begin, end] = sources_.arcs_of(source);
  std::int64_t best = kInfinity;
  std::uint32_t at_hand = kNone;
  for (std::uint32_t i = begin; i < end; ++i) {
    const std::int64_t through = sources_.through(i);
    if (through > best) continue;
    if (through < best) at_hand = kNone;
    best = through;
    const NodeId head = sources_.source_arcs[i].head;
    if (at_hand == kNone && head != graph_.root() &&
        PathSearch<Sources, true>::at_hand(graph_.nodes[head]))
      at_hand = i;
  }
  stats.scanned += end - begin;
  if (at_hand != kNone) {
    ++stats.searches;
    ++stats.augmentations;
    const NodeId head = sources_.source_arcs[at_hand].head;
    place_at(source, at_hand);
    arrive({head, graph_.nodes[head].imbalance >= 0, 0}, 1);
    return true;
  }
  const Target target = from_both_ends<true>(control, stats, seeds_, [&] {
    seeds_.clear();
    add_seeds(source);
    return forward_.run_from(sources_, seeds_, kInfinity, repriced_, stats);
  });
  if (!target.found()) return false;
  augment<true>(target, stats);
  return true;
}

// While it lives, also when a search throws, searches give up soon.
template <class Paths>
class Impatience {
 public:
  explicit Impatience(Paths& paths) : paths_(paths) { paths.set_patience(kPatience); }
  Impatience(const Impatience&) = delete;
  Impatience& operator=(const Impatience&) = delete;
  ~Impatience() { paths_.set_patience(std::numeric_limits<std::size_t>::max()); }

 private:
  static constexpr std::size_t kPatience = 256;
  Paths& paths_;
};

// By the search that `run` runs; if that wanders, from the targets, too.
template <class Value>
template <bool kForward, class Run>
Target CarrierEngine<Value>::from_both_ends(const Control& control, Stats& stats,
                                            const std::vector<Seed>& seeds, const Run& run) {
  auto& paths = search<kForward>();
  Target target;
  {
    const Impatience impatience(paths);
    target = run();
  }
  if (!paths.gave_up()) return target;
  const std::array<std::span<const NodeId>, 2> targets{unbalanced_, root_tails_};
  const auto in_reach = [&paths](const Node<Value>& node) { return paths.came_to(node); };
  if constexpr (kForward) {
    target = forward_meeting_.run(sources_, ordinary_, targets, seeds, paths.gave_up_at(), in_reach,
                                  control, repriced_, stats);
  } else {
    target = backward_meeting_.run(sources_, ordinary_, targets, seeds, paths.gave_up_at(),
                                   in_reach, control, repriced_, stats);
  }
  if (!target.found()) return run();
  effort_.settled = 0;  // the hops are known
  effort_.settled_before = stats.settled;
  return target;
}

template <class Value>
void CarrierEngine<Value>::begin_effort(const Stats& stats) {
  effort_ = {stats.settled, stats.scanned, 0,
             static_cast<std::int64_t>(graph_.edges.size() + sources_.source_arcs.size())};
}

// Called after each search. True: the rest had better be done in phases.
template <class Value>
template <bool kForward>
bool CarrierEngine<Value>::went_too_far(Stats& stats) {
  const std::int64_t scanned = stats.scanned - effort_.scanned_before;
  if (scanned >
      static_cast<std::int64_t>(graph_.edges.size() + sources_.source_arcs.size()) / kFarShare) {
    effort_.far_budget -= scanned;
  }
  effort_.settled += stats.settled - effort_.settled_before;
  if (effort_.settled > kAdvertiseAfter) {
    advertise<kForward>(stats);
    effort_.settled = 0;
  }
  effort_.settled_before = stats.settled;
  effort_.scanned_before = stats.scanned;
  return effort_.far_budget < 0;
}

template <class Value>
template <bool kForward>
void CarrierEngine<Value>::advertise(Stats& stats) {
  targets_.clear();
  const auto add = [this](NodeId v) {
    if (v != graph_.root() && PathSearch<Sources, kForward>::at_hand(graph_.nodes[v]))
      targets_.push_back(v);
  };
  for (NodeId v : unbalanced_) add(v);
  if (!kForward || targets_.empty()) {
    for (NodeId v : root_tails_) add(v);
  }
  search<kForward>().advertise(sources_, ordinary_, targets_, kAdvertised, stats);
}

template <class Value>
Status CarrierEngine<Value>::place_pending(const Control& control, Stats& stats) {
  std::int64_t until_check = 0;
  begin_effort(stats);
  const std::int64_t before = stats.operations();
  Status status = Status::kOptimal;
  bool too_far = false;
  std::size_t k = 0;
  for (; k < unplaced_.size() && status == Status::kOptimal && !too_far; ++k) {
    const NodeId source = unplaced_[k];
    if (!waits(source)) continue;
    if (until_check-- == 0) {
      if ((status = control.look(stats)) != Status::kOptimal) break;
      until_check = kCancelCheckInterval;
    }
    if (!place(source, control, stats)) {
      status = this->no_way(source, true);
      break;
    }
    too_far = went_too_far<true>(stats) && unplaced_.size() - k > kFewLeft;
    if (status == Status::kOptimal)
      status = this->report(control, stats, before, k + 1, unplaced_.size());
  }
  unplaced_.erase(unplaced_.begin(), unplaced_.begin() + static_cast<std::ptrdiff_t>(k));
  return too_far ? drain_in_phases<true>(control, stats) : status;
}

template <class Value>
template <bool kForward>
Status CarrierEngine<Value>::drain(const Control& control, Stats& stats) {
  const std::vector<Seed> none;
  std::int64_t until_check = 0;
  begin_effort(stats);
  const std::int64_t before = stats.operations();
  for (std::size_t k = 0; k < unbalanced_.size(); ++k) {  // may grow by nodes that are targets
    const NodeId v = unbalanced_[k];
    while (pending(v, kForward)) {
      if (until_check-- == 0) {
        if (const Status status = control.look(stats); status != Status::kOptimal) return status;
        until_check = kCancelCheckInterval;
      }
      const Target target = from_both_ends<kForward>(control, stats, none, [&] {
        return search<kForward>().run(sources_, std::array{v}, kInfinity, repriced_, stats);
      });
      if (!target.found()) return this->no_way(v, kForward);
      augment<kForward>(target, stats);
      if (went_too_far<kForward>(stats) && unbalanced_.size() - k > kFewLeft) {
        return drain_in_phases<kForward>(control, stats);
      }
    }
    const Status status = this->report(control, stats, before, k + 1, unbalanced_.size());
    if (status != Status::kOptimal) return status;
  }
  return Status::kOptimal;
}

// Primal-dual: a search from all that is left, then all paths of length zero, as in Dinic's
// blocking flows: what cannot reach a target now cannot before prices move.
template <class Value>
template <bool kForward>
Status CarrierEngine<Value>::drain_in_phases(const Control& control, Stats& stats) {
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
      std::copy_if(unplaced_.begin(), unplaced_.end(), std::back_inserter(units),
                   [this](NodeId v) { return waits(v); });
      unplaced_ = units;
    }
    for (NodeId v : unbalanced_) {
      if (pending(v, kForward)) nodes.push_back(v);
    }
    if (units.empty() && nodes.empty()) return Status::kOptimal;
    const std::size_t left = units.size() + nodes.size();
    all = std::max(all, left);
    Status status = control.look(stats);
    if (status == Status::kOptimal)
      status = control.report_progress(stats, before, all - left, left);
    if (status != Status::kOptimal) return status;
    ++stats.phases;
    for (NodeId source : units) add_seeds(source);
    for (NodeId v : nodes) seeds_.push_back({v, kNone, 0});
    const Target nearest = paths.run_from(sources_, seeds_, kInfinity, repriced_, stats);
    if (!nearest.found())
      return this->no_way(units.empty() ? nodes.front() : units.front(), kForward);
    augment<kForward>(nearest, stats);
    paths.relabel(sources_, stats);
    const auto reaches = [&](const Seed& seed) {
      return seed.distance == 0 &&
             (seed.node == graph_.root() || paths.within_reach(graph_.nodes[seed.node]));
    };
    const auto send = [&] {
      if (std::none_of(seeds_.begin(), seeds_.end(), reaches)) return false;
      const Target target = paths.run_from(sources_, seeds_, 0, repriced_, stats);
      if (!target.found()) {
        paths.bury_settled(sources_);
        return false;
      }
      augment<kForward>(target, stats);
      return true;
    };
    const auto goes_on = [&] {
      if (status == Status::kOptimal && until_check-- == 0) {
        status = control.look(stats);
        until_check = kCancelCheckInterval;
      }
      return status == Status::kOptimal;
    };
    for (NodeId source : units) {
      if (!waits(source)) continue;
      if (!goes_on()) break;
      seeds_.clear();
      add_seeds(source);
      send();
    }
    for (NodeId v : nodes) {
      seeds_.assign(1, {v, kNone, 0});
      while (pending(v, kForward) && goes_on() && send()) {
      }
    }
    paths.revive(sources_);
    if (status != Status::kOptimal) return status;
  }
}

}  // namespace flowsolver
