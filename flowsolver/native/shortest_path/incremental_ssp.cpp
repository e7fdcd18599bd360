// The parts of incremental successive shortest paths, in order: the engine for any network, the
// engine of a first solve that was stopped, and the choice between these, unit sources
// (unit_sources.hpp) and the algorithm that takes over from them (fallback.hpp).
#include "shortest_path/incremental_ssp.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "solve.hpp"
#include "graph/residual_graph.hpp"
#include "graph/start_state.hpp"
#include "shortest_path/fallback.hpp"
#include "shortest_path/local_engine.hpp"
#include "shortest_path/path_search.hpp"
#include "unit_source/unit_sources.hpp"

namespace flowsolver {

namespace {

// How many half-edges a run's searches may scan, and whether they must keep pace (fallback.hpp).
struct ScanLimit {
  std::int64_t max_scans = kInfinity;
  bool keeps_pace = false;
};

// The engine for any network: residual graph, prices, imbalances, and what must be repaired at the
// next resolve. Values are 32 or 64 bits wide.
template <class Value>
class SspEngine final : public LocalEngine<Value, ResidualGraph<Value>> {
 public:
  SspEngine(const EngineStart& start, bool has_spare_room, const ScanLimit& limit,
            const Control& control)
      : Local(ResidualGraph<Value>(start.network, start.flow, start.alive, start.root,
                                   has_spare_room, control),
              start.network),
        limit_(limit) {
    CancellationChecker checker(control);
    const Network& network = start.network;
    const bool cold = start.flow.empty() && start.price.empty();
    for (NodeId v = 0; v < network.num_nodes(); ++v) {
      checker.step_until_cancelled({});
      if (!start.price.empty()) graph_.nodes[v].price = start.price[v];
      if (network.supply[v] != 0) shift_imbalance(v, network.supply[v]);
    }
    graph_.nodes[start.root].price = 0;
    if (cold) this->estimate_prices(control);
    for (ArcId a = 0; a < network.num_arcs(); ++a) {
      checker.step_until_cancelled({});
      if (!start.alive.empty() && start.alive[a] == 0) continue;
      if (!start.flow.empty() && start.flow[a] != 0) {
        shift_imbalance(network.tail[a], -start.flow[a]);
        shift_imbalance(network.head[a], start.flow[a]);
        cost_ += static_cast<__int128>(network.cost[a]) * start.flow[a];
      }
      // Only arcs that violate the invariant. In a cold start, sources get the price of their best
      // arc first.
      const std::int64_t rc = network.cost[a] - graph_.nodes[network.tail[a]].price +
                              graph_.nodes[network.head[a]].price;
      const std::int64_t used = start.flow.empty() ? 0 : start.flow[a];
      if ((rc < 0 && used < network.capacity[a]) || (rc > 0 && used > 0)) {
        mark_dirty(a);
      }
    }
    if (cold) {
      for (NodeId v = 0; v < network.num_nodes(); ++v) {
        if (network.supply[v] > 0 && v != start.root && (graph_.nodes[v].flags & kInterior) == 0) {
          graph_.nodes[v].flags |= kNewNode;
          new_nodes_.push_back(v);
        }
      }
    }
  }

  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override {
    for (NodeId v : nodes) this->append_arcs(v, arcs);
  }

  void arcs_bound_by(NodeId v, std::span<const std::uint8_t> risen,
                     std::vector<ArcId>& arcs) const override {
    this->append_arcs_bound_by(v, risen, arcs);
  }

  Status run(const Control& control, Stats& stats) override {
    PriceRepair<Value>(*this, this->network_, repriced_, stats).run(new_nodes_, dirty_);
    move_deficits_along_flow();
    this->hint_at_deficits([](const Node<Value>& node) { return (node.flags & kInterior) != 0; });
    last_scan_ = limit_.max_scans == kInfinity ? kInfinity : stats.scanned + limit_.max_scans;
    const Status status = this->run_searches(graph_, control, [&] {
      std::vector<NodeId> sources = unbalanced_nodes<true>();
      const Status routed = route_imbalances<true>(sources, control, stats);
      if (routed != Status::kOptimal) return routed;
      sources = unbalanced_nodes<false>();
      return route_imbalances<false>(sources, control, stats);
    });
    this->drop_balanced();
    return status;
  }

 private:
  using Local = LocalEngine<Value, ResidualGraph<Value>>;
  using Local::cost_;
  using Local::dirty_;
  using Local::graph_;
  using Local::kCancelCheckInterval;
  using Local::kFarShare;
  using Local::kFewLeft;
  using Local::mark_dirty;
  using Local::needs_flow;
  using Local::new_nodes_;
  using Local::repriced_;
  using Local::unbalanced_;
  using Pseudoflow<Value>::shift_imbalance;

  template <bool kForward>
  Status route_imbalances(std::vector<NodeId>& sources, const Control& control, Stats& stats) {
    auto& paths = this->template search<kForward>();
    std::int64_t until_check = 0;
    const std::int64_t before = stats.operations();
    pace_ = {stats.scanned, sources.size()};
    const auto half_edges = static_cast<std::int64_t>(graph_.edges.size());
    const std::int64_t far_scan = half_edges / kFarShare;
    std::int64_t far_budget = half_edges;
    for (std::size_t k = 0; k < sources.size(); ++k) {
      const NodeId source = sources[k];
      while (needs_flow(source, kForward)) {
        if (until_check-- == 0) {
          const Status status = check(control, stats, sources.size() - k);
          if (status != Status::kOptimal) return status;
          until_check = kCancelCheckInterval;
        }
        const std::int64_t scanned_before = stats.scanned;
        const Target target = paths.run(graph_, std::array{source}, kInfinity, repriced_, stats);
        if (!target.found()) return this->report_no_path(source, kForward);
        augment<kForward>(target, stats);
        const std::int64_t scanned = stats.scanned - scanned_before;
        if (scanned > far_scan) {
          far_budget -= scanned;
          until_check = 0;
        }
        if (far_budget < 0 && sources.size() - k > kFewLeft) {
          sources.erase(sources.begin(), sources.begin() + static_cast<std::ptrdiff_t>(k));
          return route_in_phases<kForward>(sources, control, stats);
        }
      }
      const Status status = this->report(control, stats, before, k + 1, sources.size());
      if (status != Status::kOptimal) return status;
    }
    return Status::kOptimal;
  }

  template <bool kForward>
  Status route_in_phases(std::vector<NodeId>& sources, const Control& control, Stats& stats) {
    auto& paths = this->template search<kForward>();
    const std::int64_t before = stats.operations();
    std::size_t all = 0;
    std::int64_t until_check = kCancelCheckInterval;
    while (true) {
      std::erase_if(sources, [this](NodeId v) { return !needs_flow(v, kForward); });
      if (sources.empty()) return Status::kOptimal;
      all = std::max(all, sources.size());
      Status status = check(control, stats, sources.size());
      if (status == Status::kOptimal)
        status = control.report_progress(stats, before, all - sources.size(), sources.size());
      if (status != Status::kOptimal) return status;
      ++stats.phases;
      const Target nearest = paths.run(graph_, sources, kInfinity, repriced_, stats);
      if (!nearest.found()) return this->report_no_path(sources.front(), kForward);
      augment<kForward>(nearest, stats);
      // All paths of length zero, as in Dinic's blocking flows: what cannot reach a target now
      // cannot before prices change.
      paths.relabel(graph_, stats);
      for (NodeId source : sources) {
        while (status == Status::kOptimal && needs_flow(source, kForward) &&
               paths.reaches_target(graph_.nodes[source])) {
          if (until_check-- == 0) {
            status = check(control, stats, sources.size());
            until_check = kCancelCheckInterval;
          }
          const Target target = paths.run(graph_, std::array{source}, 0, repriced_, stats);
          if (!target.found()) {
            paths.mark_settled_dead(graph_);
            break;
          }
          augment<kForward>(target, stats);
        }
      }
      paths.clear_dead(graph_);
      if (status != Status::kOptimal) return status;
    }
  }

  template <bool kForward>
  void augment(const Target& target, Stats& stats) {
    this->template augment_path<kForward>(
        target, stats, [this](std::uint32_t parent) { return graph_.owner(parent); },
        [](std::uint32_t, NodeId) {});
  }

  // The check between two searches, when `left` sources are left.
  Status check(const Control& control, const Stats& stats, std::size_t left) const {
    const bool gives_up = stats.scanned > last_scan_ || falls_behind(stats, left);
    return gives_up ? Status::kBudget : control.check(stats);
  }

  // Whether the searches have scanned more than a quarter of all half-edges and the share of the
  // limit that belongs to the sources that are done. Later searches are longer than earlier ones,
  // so they would not come to an end within the limit.
  bool falls_behind(const Stats& stats, std::size_t left) const {
    if (!limit_.keeps_pace) return false;
    const auto few = static_cast<std::int64_t>(graph_.edges.size() / kFewScansShare);
    const auto all = static_cast<std::int64_t>(pace_.sources);
    const std::int64_t done = all - static_cast<std::int64_t>(left);
    return stats.scanned - pace_.scanned > few + limit_.max_scans / all * done;
  }
  static constexpr std::size_t kFewScansShare = 4;

  template <bool kForward>
  std::vector<NodeId> unbalanced_nodes() const {
    std::vector<NodeId> nodes;
    for (NodeId v : unbalanced_) {
      if (needs_flow(v, kForward)) nodes.push_back(v);
    }
    return nodes;
  }

  static constexpr std::size_t kMaxMovesPerNode = 4;  // per node
  // Moves a deficit that a removed task left at an aggregator along flow with rc = 0 to where
  // capacity was freed (X -> rack -> machine). A backward search would find that only after
  // scanning all arcs into the aggregator.
  void move_deficits_along_flow() {
    constexpr std::uint32_t kLook = 600;
    // Limited, because a deficit could circulate on a cycle of flow.
    std::size_t left = kMaxMovesPerNode * (graph_.nodes.size() + unbalanced_.size());
    for (std::size_t k = 0; k < unbalanced_.size(); ++k) {  // grows meanwhile
      NodeId v = unbalanced_[k];
      // bounded: by `left`
      while (graph_.nodes[v].imbalance < 0 && v != graph_.root() &&
             (graph_.nodes[v].flags & kInterior) != 0 && left > 0) {
        --left;
        const Node<Value>& node = graph_.nodes[v];
        std::uint32_t found = kNone;
        const std::uint32_t end = node.begin + std::min(node.residual_degree, kLook);
        for (std::uint32_t i = node.begin; i < end && found == kNone; ++i) {
          const auto& edge = graph_.edges[i];
          if (graph_.is_forward(edge) && edge.reverse_residual > 0 && edge.to != v &&
              edge.cost - node.price + graph_.nodes[edge.to].price == 0) {
            found = i;
          }
        }
        if (found == kNone) break;
        const auto edge = graph_.edges[found];
        const std::int64_t amount = std::min<std::int64_t>(-node.imbalance, edge.reverse_residual);
        this->add_flow(edge.id >> 1, v, edge.to, -amount);
      }
    }
  }

  const ScanLimit limit_;
  struct Pace {
    std::int64_t scanned = 0;  // when the sources of a direction began
    std::size_t sources = 1;   // all of them
  } pace_;
  std::int64_t last_scan_ = kInfinity;  // the run ends when it has scanned so much
};

// `has_spare_room`: leave room for changes. A run whose searches scan more than `limit` allows ends
// with kBudget.
std::unique_ptr<Engine> make_ssp_engine(const EngineStart& start, bool has_spare_room,
                                        const ScanLimit& limit, const Control& control) {
  if (fits_narrow(start.network, control))
    return std::make_unique<SspEngine<std::int32_t>>(start, has_spare_room, limit, control);
  return std::make_unique<SspEngine<std::int64_t>>(start, has_spare_room, limit, control);
}

// The engine of a first solve that was stopped at a budget, until that solve is complete
// (incremental_ssp.hpp, "Start").
//
// Method. It continues where the solve was stopped. If that was in shortest paths, they continue
// with the operation limit of a first solve, and the fallback from zero takes over beyond it. If
// the fallback had taken over already, it continues from its own flow and prices. So the total work
// is at most a few times that of a solve without a budget. When the network is solved, the engine
// for later rounds is made from the answer, and all calls are passed on to it.
//
// Termination. Cost scaling need not make progress in resolves whose budgets are shorter than its
// phases. After kMaxFallbackRuns runs that were stopped in a fallback, shortest paths continue from
// its flow and prices for good: each augmentation is lasting progress.
class FirstSolveEngine final : public ForwardingEngine {
 public:
  using MakeEngine = std::unique_ptr<Engine> (*)(const EngineStart& start, const Control& control);

  // `start`: the state in which the solve was stopped. `fell_back`: whether the fallback had taken
  // over; else it does after as many operations as searches may scan. `make`: makes the engine for
  // later rounds; throws Stopped.
  FirstSolveEngine(const EngineStart& start, bool fell_back, Fallback fallback, MakeEngine make,
                   const Control& control)
      : network_(start.network),
        alive_(start.alive),
        root_(start.root),
        fallback_(std::move(fallback)),
        make_(make),
        fell_back_(fell_back) {
    if (fell_back) {
      set_inner(std::make_unique<WarmStartEngine>(fallback_.method, start));
    } else {
      set_inner(make_(start, control));
    }
  }

  Status run(const Control& control, Stats& stats) override {
    if (is_final_) return inner().run(control, stats);
    if (!fell_back_) {
      const Status status = run_until_fallback(control, stats);
      is_final_ = status == Status::kOptimal;
      if (status != Status::kBudget) return status;
      if (const Status checked = control.check(stats); checked != Status::kOptimal) return checked;
      set_inner(std::make_unique<WarmStartEngine>(fallback_.method,
                                                  EngineStart{network_, alive_, root_, {}, {}}));
      fell_back_ = true;
    }
    return run_fallback(control, stats);
  }

  bool keeps_progress() const override { return !fell_back_; }
  // Not before the final engine is in place: what an earlier one touched is lost with it.
  bool local() const override { return is_final_ && inner().local(); }

 private:
  static constexpr int kMaxFallbackRuns = 2;

  // kBudget: at the budget, or at the operation limit of the fallback.
  Status run_until_fallback(const Control& control, Stats& stats) {
    Control limited;
    limited.limit_operations(stats.operations() + fallback_.max_scans);
    limited.poll(
        [&control](const Stats& counted) { return control.check(counted) != Status::kOptimal; },
        {});
    const Status status = inner().run(limited, stats);
    if (status != Status::kCancelled) return status;
    return control.check(stats) == Status::kBudget ? Status::kBudget : Status::kCancelled;
  }

  Status run_fallback(const Control& control, Stats& stats) {
    Stats counted;
    const Status status = inner().run(Control(control, stats), counted);
    stats.add(counted);
    const bool last_try = status == Status::kBudget && ++fallback_runs_ >= kMaxFallbackRuns;
    if (status != Status::kOptimal && !last_try) return status;
    try {
      switch_to_final_engine(control, stats);
    } catch (const Stopped& stopped) {
      return stopped.status;
    }
    return last_try ? status : inner().run(control, stats);
  }

  // The final engine starts from the flow and prices that the fallback reached.
  void switch_to_final_engine(const Control& control, Stats& stats) {
    std::vector<std::int64_t> flow(network_.num_arcs(), 0), price(network_.num_nodes(), 0);
    for_each_until_cancelled(flow.size(), control, [&](std::size_t a) {
      if (alive_[a] != 0) flow[a] = inner().flow(static_cast<ArcId>(a), network_.tail[a]);
    });
    for_each_until_cancelled(price.size(), control, [&](std::size_t v) {
      price[v] = inner().price(static_cast<NodeId>(v));
    });
    price = relative_to_root(start_prices(network_, {{}, price}), root_);
    set_inner(make_({network_, alive_, root_, flow, price}, control));
    ++stats.rebuilds;
    fell_back_ = false;
    is_final_ = true;
  }

  const Network& network_;
  const std::vector<std::uint8_t>& alive_;
  const NodeId root_;
  const Fallback fallback_;
  const MakeEngine make_;
  bool fell_back_;  // the inner engine is the fallback's, not one of make_
  int fallback_runs_ = 0;
  bool is_final_ = false;  // the inner engine stays
};

std::unique_ptr<Engine> make_growing_engine(const EngineStart& start, const Control& control) {
  return mostly_unit_sources(start, control) ? make_unit_source_engine(start, control)
                                             : make_ssp_engine(start, true, {}, control);
}

enum class SolvedBy { kShortestPaths, kFallback };

// From zero: the state that searches reached is no better a start (equally slow on general networks
// and network-aware cells).
SolvedBy solve_by_fallback(const Method& method, const Network& network, const Control& control,
                           Solution& solution) {
  const Stats before = solution.stats;
  solution = method(network, {}, Control(control, before));
  solution.stats.add(before);
  return SolvedBy::kFallback;
}

// By the engine, from a start, or from the sources assigned so far.
SolvedBy solve_by_engine(const Network& network, NodeId root, InitialAssignment&& from,
                         const Fallback& fallback, const Control& control, Solution& solution) {
  const auto engine = make_ssp_engine({network, {}, root, from.flow, from.price}, false,
                                      {fallback.max_scans, fallback.keeps_pace}, control);
  ++solution.stats.rebuilds;
  solution.status = engine->run(control, solution.stats);
  // at the control's budget, or at the limit of the fallback
  if (solution.status == Status::kBudget) {
    solution.status = control.check(solution.stats);
    if (solution.status == Status::kOptimal)
      return solve_by_fallback(fallback.method, network, control, solution);
  }
  if (solution.status == Status::kCancelled) return SolvedBy::kShortestPaths;
  solution.flow = std::move(from.flow);
  if (solution.flow.empty() &&
      fill_zeros(solution.flow, network.num_arcs(), control) != Status::kOptimal) {
    throw Stopped{Status::kCancelled};
  }
  for (const FlowBefore& before : engine->touched_arcs()) {
    solution.flow[before.arc] = engine->flow(before.arc, network.tail[before.arc]);
  }
  solution.potential.resize(network.num_nodes());
  for (NodeId v = 0; v < network.num_nodes(); ++v) solution.potential[v] = engine->price(v);
  if (!as_int64(engine->cost(), solution.cost) && solution.status == Status::kOptimal)
    solution.status = Status::kBadCostRange;
  return SolvedBy::kShortestPaths;
}

// Returns by what the network was solved, or stopped.
SolvedBy solve_in_range(const Network& network, const Start& start, bool narrow,
                        const Control& control, Solution& solution) {
  const NodeId root = largest_sink(network);
  InitialAssignment placed;
  if (!start.flow.empty() || !start.price.empty()) {
    placed.flow.assign(start.flow.begin(), start.flow.end());
    if (!start.price.empty()) placed.price = relative_to_root(start.price, root);
    return solve_by_engine(network, root, std::move(placed), {nullptr, kInfinity}, control,
                           solution);
  }
  placed = assign_unit_sources(network, root, narrow, control, solution.stats);
  if (placed.status == Status::kOptimal && (!placed.local || !placed.complete)) {
    const Fallback fallback = choose_fallback(network, control);
    if (!placed.local || fallback.max_scans == 0)
      return solve_by_fallback(fallback.method, network, control, solution);
    return solve_by_engine(network, root, std::move(placed), fallback, control, solution);
  }
  solution.status = placed.status;
  if (!as_int64(placed.cost, solution.cost) && placed.complete)
    solution.status = Status::kBadCostRange;
  solution.flow = std::move(placed.flow);
  solution.potential = std::move(placed.price);
  return SolvedBy::kShortestPaths;
}

}  // namespace

Solution solve_incremental_ssp(const Network& network, const Start& start, const Control& control) {
  Solution solution;
  const Ranges ranges = check_ranges(network, control);
  solution.status = ranges.status;
  try {
    if (ranges.status == Status::kOptimal && network.num_nodes() > 0) {
      solve_in_range(network, start, ranges.narrow, control, solution);
    }
  } catch (const Stopped& stopped) {
    solution.status = stopped.status;
  }
  if (solution.status == Status::kCancelled || !solution.potential.empty()) return solution;
  solution.flow.assign(network.num_arcs(), 0);
  solution.potential.assign(network.num_nodes(), 0);
  return solution;
}

std::unique_ptr<Engine> make_incremental_ssp(const EngineStart& start, const Control& control,
                                             Stats& stats) {
  ++stats.rebuilds;
  try {
    if (!start.flow.empty() || !start.price.empty()) return make_growing_engine(start, control);
    Solution solution;
    const SolvedBy by =
        solve_in_range(start.network, {}, fits_narrow(start.network, control), control, solution);
    stats.add(solution.stats);
    if (solution.status == Status::kCancelled) return nullptr;
    // If some source has no path, the engine starts from zero and finds that out itself.
    const bool stopped = solution.status == Status::kBudget;
    if ((!stopped && solution.status != Status::kOptimal) || solution.potential.empty()) {
      return make_growing_engine(start, control);
    }
    const std::vector<std::int64_t> price =
        relative_to_root(start_prices(start.network, {{}, solution.potential}), start.root);
    const EngineStart from{start.network, start.alive, start.root, solution.flow, price};
    if (!stopped) return make_growing_engine(from, control);
    return std::make_unique<FirstSolveEngine>(from, by == SolvedBy::kFallback,
                                              choose_fallback(start.network, control),
                                              make_growing_engine, control);
  } catch (const Stopped&) {
    return nullptr;
  }
}

}  // namespace flowsolver
