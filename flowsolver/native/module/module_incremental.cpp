// IncrementalSolver for Python. While an object is in a long call, it refuses all other calls
// except `cancel`.
#include <atomic>
#include <stdexcept>

#include "engines/race_engine.hpp"
#include "incremental_solver.hpp"
#include "live_network.hpp"
#include "module/module.hpp"
#include "race.hpp"

namespace flowsolver {

namespace {

// Marks the solver as busy for the lifetime of this object.
class Busy {
 public:
  explicit Busy(std::atomic<bool>& flag) : flag_(flag) {
    if (flag_.exchange(true)) throw std::runtime_error("the solver is busy in another thread");
  }
  ~Busy() { flag_.store(false); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  std::atomic<bool>& flag_;
};

// IncrementalSolver with checked ids.
class Solver {
 public:
  Solver(const Network& network, const std::vector<std::string>& algorithms, bool deterministic)
      : racers_(known_algorithms(algorithms)),
        solver_(
            network,
            [this, rule = winner_rule(deterministic)](const EngineStart& start,
                                                      const Control& control,
                                                      Stats& stats) -> std::unique_ptr<Engine> {
              if (racers_.size() > 1)
                return std::make_unique<RaceEngine>(racers_, rule, start, report_);
              report_.winner = racers_.front();
              return report_.winner->make_engine(start, control, stats);
            },
            [this, rule = winner_rule(deterministic)](const Network& live, const Control& control) {
              RaceAnswer answer = race(live, racers_, {}, control, rule);
              report_.stop_duration = answer.stop_duration;
              if (is_answer(answer.solution.status)) report_.winner = answer.winner;
              return std::move(answer.solution);
            }) {}

  Result add_nodes(const Array& supply) {
    const Busy busy(busy_);
    solver_.expect_changes(supply.size());
    std::vector<std::int64_t> ids;
    ids.reserve(supply.size());
    for (std::int64_t s : view(supply)) ids.push_back(solver_.add_node(s));
    return to_array(std::move(ids));
  }
  Result add_arcs(const Array& tail, const Array& head, const Array& capacity, const Array& cost) {
    const Busy busy(busy_);
    need_arcs(tail, head, capacity, cost);
    need_nodes("tail", tail);
    need_nodes("head", head);
    solver_.expect_changes(tail.size());
    std::vector<std::int64_t> ids(tail.size());
    {
      nb::gil_scoped_release release;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ids[i] = solver_.add_arc(static_cast<NodeId>(tail.data()[i]),
                                 static_cast<NodeId>(head.data()[i]), capacity.data()[i],
                                 cost.data()[i]);
      }
    }
    return to_array(std::move(ids));
  }
  void remove_nodes(const Array& nodes) {
    const Busy busy(busy_);
    need_nodes("nodes", nodes);
    need_distinct("nodes", nodes, solver_.network().num_nodes());
    const std::vector<NodeId> ids(nodes.data(), nodes.data() + nodes.size());
    nb::gil_scoped_release release;
    solver_.remove_nodes(ids);
  }
  void remove_arcs(const Array& arcs) {
    const Busy busy(busy_);
    need_live_arcs(arcs);
    need_distinct("arcs", arcs, solver_.network().num_arcs());
    solver_.expect_changes(arcs.size());
    for (std::int64_t a : view(arcs)) solver_.remove_arc(static_cast<ArcId>(a));
  }
  void set_capacity(const Array& arcs, const Array& capacity) {
    const Busy busy(busy_);
    need_live_arcs(arcs);
    need_length("capacity", capacity, arcs.size());
    need_capacities(capacity);
    solver_.expect_changes(arcs.size());
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < arcs.size(); ++i)
      solver_.set_capacity(static_cast<ArcId>(arcs.data()[i]), capacity.data()[i]);
  }
  void set_cost(const Array& arcs, const Array& cost) {
    const Busy busy(busy_);
    need_live_arcs(arcs);
    need_length("cost", cost, arcs.size());
    solver_.expect_changes(arcs.size());
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < arcs.size(); ++i)
      solver_.set_cost(static_cast<ArcId>(arcs.data()[i]), cost.data()[i]);
  }
  void set_arcs(const Array& arcs, const Array& capacity, const Array& cost) {
    const Busy busy(busy_);
    need_live_arcs(arcs);
    need_length("capacity", capacity, arcs.size());
    need_length("cost", cost, arcs.size());
    need_capacities(capacity);
    solver_.expect_changes(arcs.size());
    nb::gil_scoped_release release;
    const Network& network = solver_.network();
    constexpr std::size_t kAhead = 8;  // arcs are scattered in memory
    for (std::size_t i = 0; i < arcs.size(); ++i) {
      if (i + kAhead < arcs.size()) {
        const auto next = static_cast<std::size_t>(arcs.data()[i + kAhead]);
        __builtin_prefetch(&network.tail[next]);
        __builtin_prefetch(&network.head[next]);
        __builtin_prefetch(&network.capacity[next], 1);
        __builtin_prefetch(&network.cost[next], 1);
        __builtin_prefetch(&solver_.flow()[next]);
      }
      const ArcId arc = static_cast<ArcId>(arcs.data()[i]);
      solver_.set_capacity(arc, capacity.data()[i]);
      solver_.set_cost(arc, cost.data()[i]);
    }
  }
  void set_supply(const Array& nodes, const Array& supply) {
    const Busy busy(busy_);
    need_nodes("nodes", nodes);
    need_length("supply", supply, nodes.size());
    solver_.expect_changes(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i)
      solver_.set_supply(static_cast<NodeId>(nodes.data()[i]), supply.data()[i]);
  }
  Status resolve(std::int64_t max_operations, double max_seconds) {
    const Busy busy(busy_);
    set_budget(solver_.control(), max_operations, max_seconds);
    end_at_signals(solver_.control());
    Status status;
    {
      nb::gil_scoped_release release;
      status = solver_.resolve();
    }
    end_if_interrupted(solver_.control());
    return status;
  }
  void cancel() { solver_.cancel(); }

  std::int64_t cost() { return core().cost(); }
  bool solved() { return core().solved(); }
  // The algorithm that gave the last answer; empty before the first one.
  std::string winner() {
    const Busy busy(busy_);
    return report_.winner == nullptr ? "" : std::string(report_.winner->name);
  }
  double stop_seconds() {
    const Busy busy(busy_);
    return in_seconds(report_.stop_duration);
  }
  Stats stats() { return core().stats(); }
  Result flow() { return copy_of(core().flow()); }
  Result flow_of(const Array& arcs) {
    const Busy busy(busy_);
    need_live_arcs(arcs);
    std::vector<std::int64_t> flow;
    flow.reserve(arcs.size());
    for (std::int64_t a : view(arcs)) flow.push_back(solver_.flow()[static_cast<std::size_t>(a)]);
    return to_array(std::move(flow));
  }
  Result flow_reached() { return to_array(core().flow_reached()); }
  Result potential() { return to_array(core().potential()); }
  std::pair<Result, Result> changed_flow() {
    const ChangedFlow& changed = core().changed_flow();
    return {to_array(changed.arcs), copy_of(changed.flow)};
  }
  Result cut() {
    const std::span<const NodeId> cut = core().cut();
    return to_array(std::vector<NodeId>(cut.begin(), cut.end()));
  }
  CutCertificate certify_cut() {
    const Busy busy(busy_);
    if (solver_.cut().empty())
      throw std::runtime_error("no cut to certify: the last resolve did not end INFEASIBLE");
    nb::gil_scoped_release release;
    return solver_.certify_cut();
  }
  Certificate certify(bool touched_only) {
    const Busy busy(busy_);
    if (!solver_.solved())
      throw std::runtime_error(
          "nothing to certify: changed since, or not optimal at, the last resolve");
    nb::gil_scoped_release release;
    return touched_only ? solver_.certify_touched() : solver_.certify();
  }
  std::int64_t num_nodes() { return static_cast<std::int64_t>(core().num_live_nodes()); }
  std::int64_t num_arcs() { return static_cast<std::int64_t>(core().num_live_arcs()); }
  // The number of ids handed out so far, including those of removed nodes or arcs.
  std::int64_t num_node_ids() { return static_cast<std::int64_t>(core().live_nodes().size()); }
  std::int64_t num_arc_ids() { return static_cast<std::int64_t>(core().live_arcs().size()); }
  // The live network, numbered densely, and the ids of its nodes and arcs here.
  std::tuple<Network, Result, Result> snapshot() {
    const IncrementalSolver& solver = core();
    LiveNetwork live =
        live_network(solver.network(), solver.live_nodes(), solver.live_arcs(), Control());
    for (ArcId k = 0; k < live.network.num_arcs(); ++k)
      live.network.capacity[k] = solver.given_capacity(live.arcs[k]);
    return {std::move(live.network), to_array(std::move(live.nodes)),
            to_array(std::move(live.arcs))};
  }

 private:
  const IncrementalSolver& core() {
    const Busy busy(busy_);  // reading during a resolve would be a race
    return solver_;
  }
  void need_nodes(const char* field, const Array& nodes) {
    need_all(field, nodes, [this](std::int64_t v) { return solver_.live_node(v); }, "no such node");
  }
  void need_live_arcs(const Array& arcs) {
    need_all("arcs", arcs, [this](std::int64_t a) { return solver_.live_arc(a); }, "no such arc");
  }

  const std::vector<const Algorithm*> racers_;
  RaceReport report_;
  IncrementalSolver solver_;
  std::atomic<bool> busy_{false};
};

}  // namespace

void bind_incremental(nb::module_& m) {
  nb::class_<Solver>(m, "IncrementalSolver")
      .def(nb::init<const Network&, const std::vector<std::string>&, bool>())
      .def("add_nodes", &Solver::add_nodes)
      .def("add_arcs", &Solver::add_arcs)
      .def("remove_nodes", &Solver::remove_nodes)
      .def("remove_arcs", &Solver::remove_arcs)
      .def("set_capacity", &Solver::set_capacity)
      .def("set_cost", &Solver::set_cost)
      .def("set_arcs", &Solver::set_arcs)
      .def("set_supply", &Solver::set_supply)
      .def("resolve", &Solver::resolve)
      .def("cancel", &Solver::cancel)
      .def("flow", &Solver::flow)
      .def("flow_of", &Solver::flow_of)
      .def("flow_reached", &Solver::flow_reached)
      .def("potential", &Solver::potential)
      .def("changed_flow", &Solver::changed_flow)
      .def("cut", &Solver::cut)
      .def("certify", &Solver::certify)
      .def("certify_cut", &Solver::certify_cut)
      .def("snapshot", &Solver::snapshot)
      .def_prop_ro("winner", &Solver::winner)
      .def_prop_ro("stop_seconds", &Solver::stop_seconds)
      .def_prop_ro("cost", &Solver::cost)
      .def_prop_ro("solved", &Solver::solved)
      .def_prop_ro("stats", &Solver::stats)
      .def_prop_ro("num_nodes", &Solver::num_nodes)
      .def_prop_ro("num_arcs", &Solver::num_arcs)
      .def("num_node_ids", &Solver::num_node_ids)
      .def("num_arc_ids", &Solver::num_arc_ids);
}

}  // namespace flowsolver
