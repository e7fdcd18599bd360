// flowsolver._flowsolver: the library for Python. Arrays are one-dimensional int64; ids are checked here, all of a call's
// before any is applied. Long calls release the GIL; an object in such a call refuses others (but for `cancel`).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

#include "certificate.hpp"
#include "dimacs.hpp"
#include "incremental_solver.hpp"
#include "misplacement.hpp"
#include "race.hpp"
#include "race_engine.hpp"
#include "solve.hpp"

namespace nb = nanobind;

namespace flowsolver {

namespace {

using Array = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

std::span<const std::int64_t> view(const Array& array) { return {array.data(), array.size()}; }

template <class T>
Result to_array(std::vector<T> values) {
  auto* owned = new std::vector<std::int64_t>(values.begin(), values.end());
  return Result(owned->data(), {owned->size()}, nb::capsule(owned, [](void* p) noexcept {
    delete static_cast<std::vector<std::int64_t>*>(p);
  }));
}

Result to_array(std::vector<std::int64_t>&& values) {
  auto* owned = new std::vector<std::int64_t>(std::move(values));
  return Result(owned->data(), {owned->size()}, nb::capsule(owned, [](void* p) noexcept {
    delete static_cast<std::vector<std::int64_t>*>(p);
  }));
}

Result copy_of(std::span<const std::int64_t> values) {
  return to_array(std::vector<std::int64_t>(values.begin(), values.end()));
}

[[noreturn]] void reject(const char* field, std::size_t index, std::int64_t value, const char* why) {
  throw nb::value_error(
      (std::string(field) + "[" + std::to_string(index) + "] = " + std::to_string(value) + ": " + why).c_str());
}

void need_length(const char* field, const Array& array, std::size_t length) {
  if (array.size() == length) return;
  throw nb::value_error((std::string(field) + " has " + std::to_string(array.size()) + " entries, expected " +
                         std::to_string(length))
                            .c_str());
}

template <class Test>
void need_all(const char* field, const Array& array, Test test, const char* why) {
  const auto values = view(array);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!test(values[i])) reject(field, i, values[i], why);
  }
}

void need_capacities(const Array& capacity) {
  need_all("capacity", capacity, [](std::int64_t c) { return c >= 0; }, "negative");
}

void need_distinct(const char* field, const Array& array) {
  std::vector<std::int64_t> sorted(array.data(), array.data() + array.size());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw nb::value_error((std::string(field) + " names " + std::to_string(*twice) + " twice").c_str());
  }
}

// While one of these lives, the object is busy.
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

std::int64_t add_nodes(Network& network, const Array& supply) {
  const std::size_t first = network.num_nodes();
  if (supply.size() > kMaxNodes - first) throw nb::value_error("too many nodes");
  network.supply.insert(network.supply.end(), supply.data(), supply.data() + supply.size());
  return static_cast<std::int64_t>(first);
}

void need_arcs(const Array& tail, const Array& head, const Array& capacity, const Array& cost) {
  need_length("head", head, tail.size());
  need_length("capacity", capacity, tail.size());
  need_length("cost", cost, tail.size());
  need_capacities(capacity);
}

std::int64_t add_arcs(Network& network, const Array& tail, const Array& head, const Array& capacity, const Array& cost) {
  const std::size_t first = network.num_arcs();
  need_arcs(tail, head, capacity, cost);
  if (tail.size() > kMaxArcs - first) throw nb::value_error("too many arcs");
  const auto n = static_cast<std::int64_t>(network.num_nodes());
  const auto known = [n](std::int64_t v) { return v >= 0 && v < n; };
  need_all("tail", tail, known, "no such node");
  need_all("head", head, known, "no such node");
  network.tail.insert(network.tail.end(), tail.data(), tail.data() + tail.size());
  network.head.insert(network.head.end(), head.data(), head.data() + head.size());
  network.capacity.insert(network.capacity.end(), capacity.data(), capacity.data() + capacity.size());
  network.cost.insert(network.cost.end(), cost.data(), cost.data() + cost.size());
  return static_cast<std::int64_t>(first);
}

const Algorithm& known_algorithm(const std::string& name) {
  const Algorithm* found = find_algorithm(name);
  if (found == nullptr) throw nb::value_error(("no algorithm \"" + name + "\"").c_str());
  return *found;
}

// Budgets: negative means none.
void set_budget(Control& control, std::int64_t operations, double seconds) {
  control.limit_operations(operations < 0 ? kInfinity : operations);
  using Clock = Control::Clock;
  constexpr double kForEver = 1e9;  // 30 years, and what the clock can hold
  control.stop_at(!(seconds >= 0 && seconds < kForEver) ? Clock::time_point::max()
                              : Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
}

// Signal handlers run in the main thread, and only when asked to: a long call there asks now and then, so that Ctrl-C ends it.
// When it does, the handler's exception is pending: `end_if_interrupted` then throws it.
void end_at_signals(Control& control) {
  static const unsigned long main_thread =
      nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  if (PyThread_get_thread_ident() != main_thread) return control.poll({});
  control.poll([](const Stats&) {
    const nb::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;
  });
}

void end_if_interrupted(Control& control) {
  if (PyErr_Occurred() == nullptr) return;
  control.clear();
  throw nb::python_error();
}

std::vector<const Algorithm*> known_algorithms(const std::vector<std::string>& names) {
  if (names.empty()) throw nb::value_error("no algorithm given");
  std::vector<const Algorithm*> algorithms;
  for (const std::string& name : names) {
    algorithms.push_back(&known_algorithm(name));
    if (std::count(algorithms.begin(), algorithms.end(), algorithms.back()) > 1) {
      throw nb::value_error(("algorithm \"" + name + "\" given twice").c_str());
    }
  }
  return algorithms;
}

Winning winning(bool deterministic) { return deterministic ? Winning::kFewestOperations : Winning::kFirst; }

std::pair<Solution, std::string> solve(const Network& network, const std::vector<std::string>& algorithms, bool deterministic,
                                       std::int64_t max_operations, double max_seconds) {
  const std::vector<const Algorithm*> racers = known_algorithms(algorithms);
  Control control;
  set_budget(control, max_operations, max_seconds);
  end_at_signals(control);
  RaceAnswer answer;
  {
    nb::gil_scoped_release release;
    answer = race(network, racers, {}, control, winning(deterministic));
  }
  end_if_interrupted(control);
  return {std::move(answer.solution), std::string(answer.winner->name)};
}

std::int64_t misplaced(const Network& network, const Array& flow, const Array& optimum) {
  need_length("flow", flow, network.num_arcs());
  const auto counts = [](std::int64_t units) { return units >= 0; };
  need_all("flow", flow, counts, "negative");
  need_all("optimum", optimum, counts, "negative");
  need_length("optimum", optimum, network.num_arcs());
  const auto flows = view(flow), best = view(optimum);
  nb::gil_scoped_release release;
  return misplaced_tasks(network, flows, best);
}

Certificate certify_arrays(const Network& network, const Array& flow, const Array& potential, std::int64_t cost) {
  need_length("flow", flow, network.num_arcs());
  need_length("potential", potential, network.num_nodes());
  const auto flows = view(flow), potentials = view(potential);
  nb::gil_scoped_release release;
  return certify(network, flows, potentials, cost);
}

// IncrementalSolver with checked ids.
class Solver {
 public:
  Solver(const Network& network, const std::vector<std::string>& algorithms, bool deterministic)
      : racers_(known_algorithms(algorithms)),
        core_(network, [this, how = winning(deterministic)](const EngineStart& start, const Control& control,
                                                            Stats& stats) -> std::unique_ptr<Engine> {
          if (racers_.size() > 1) return std::make_unique<RaceEngine>(racers_, how, start, &winner_);
          winner_ = racers_.front();
          return winner_->make_engine(start, control, stats);
        }) {}

  Result add_nodes(const Array& supply) {
    const Busy busy(busy_);
    std::vector<std::int64_t> ids;
    ids.reserve(supply.size());
    for (std::int64_t s : view(supply)) ids.push_back(core_.add_node(s));
    return to_array(std::move(ids));
  }
  Result add_arcs(const Array& tail, const Array& head, const Array& capacity, const Array& cost) {
    const Busy busy(busy_);
    need_arcs(tail, head, capacity, cost);
    need_nodes("tail", tail);
    need_nodes("head", head);
    std::vector<std::int64_t> ids(tail.size());
    {
      nb::gil_scoped_release release;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ids[i] = core_.add_arc(static_cast<NodeId>(tail.data()[i]), static_cast<NodeId>(head.data()[i]), capacity.data()[i],
                               cost.data()[i]);
      }
    }
    return to_array(std::move(ids));
  }
  void remove_nodes(const Array& nodes) {
    const Busy busy(busy_);
    need_nodes("nodes", nodes);
    need_distinct("nodes", nodes);
    const std::vector<NodeId> ids(nodes.data(), nodes.data() + nodes.size());
    nb::gil_scoped_release release;
    core_.remove_nodes(ids);
  }
  void remove_arcs(const Array& arcs) {
    const Busy busy(busy_);
    need_live_arcs(arcs);
    need_distinct("arcs", arcs);
    for (std::int64_t a : view(arcs)) core_.remove_arc(static_cast<ArcId>(a));
  }
  void set_capacity(const Array& arcs, const Array& capacity) {
    const Busy busy(busy_);
    need_live_arcs(arcs);
    need_length("capacity", capacity, arcs.size());
    need_capacities(capacity);
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < arcs.size(); ++i) core_.set_capacity(static_cast<ArcId>(arcs.data()[i]), capacity.data()[i]);
  }
  void set_cost(const Array& arcs, const Array& cost) {
    const Busy busy(busy_);
    need_live_arcs(arcs);
    need_length("cost", cost, arcs.size());
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < arcs.size(); ++i) core_.set_cost(static_cast<ArcId>(arcs.data()[i]), cost.data()[i]);
  }
  void set_supply(const Array& nodes, const Array& supply) {
    const Busy busy(busy_);
    need_nodes("nodes", nodes);
    need_length("supply", supply, nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) core_.set_supply(static_cast<NodeId>(nodes.data()[i]), supply.data()[i]);
  }
  Status resolve(std::int64_t max_operations, double max_seconds) {
    const Busy busy(busy_);
    set_budget(core_.control(), max_operations, max_seconds);
    end_at_signals(core_.control());
    Status status;
    {
      nb::gil_scoped_release release;
      status = core_.resolve();
    }
    end_if_interrupted(core_.control());
    return status;
  }
  void cancel() { core_.cancel(); }

  std::int64_t cost() { return core().cost(); }
  bool solved() { return core().solved(); }
  // Whose answer the last one was; empty before any.
  std::string winner() {
    const Busy busy(busy_);
    return winner_ == nullptr ? "" : std::string(winner_->name);
  }
  Stats stats() { return core().stats(); }
  Result flow() { return copy_of(core().flow()); }
  Result flow_of(const Array& arcs) {
    const Busy busy(busy_);
    need_live_arcs(arcs);
    std::vector<std::int64_t> flow;
    flow.reserve(arcs.size());
    for (std::int64_t a : view(arcs)) flow.push_back(core_.flow()[static_cast<std::size_t>(a)]);
    return to_array(std::move(flow));
  }
  Result flow_reached() { return to_array(core().flow_reached()); }
  Result potential() { return to_array(core().potential()); }
  std::pair<Result, Result> changed_flow() {
    const ChangedFlow& changed = core().changed_flow();
    return {to_array(changed.arcs), copy_of(changed.flow)};
  }
  Certificate certify(bool touched_only) {
    const Busy busy(busy_);
    if (!core_.solved()) throw std::runtime_error("nothing to certify: changed since, or not optimal at, the last resolve");
    nb::gil_scoped_release release;
    return touched_only ? core_.certify_touched() : core_.certify();
  }
  std::int64_t num_nodes() { return std::count(core().live_nodes().begin(), core().live_nodes().end(), 1); }
  std::int64_t num_arcs() { return std::count(core().live_arcs().begin(), core().live_arcs().end(), 1); }
  // Live nodes and arcs, numbered anew; the ids they have here.
  std::tuple<Network, Result, Result> snapshot() {
    const IncrementalSolver& ssp = core();
    const Network& all = ssp.network();
    Network live;
    std::vector<std::int64_t> nodes, arcs;
    std::vector<NodeId> number(all.num_nodes(), kNone);
    for (NodeId v = 0; v < all.num_nodes(); ++v) {
      if (ssp.live_nodes()[v] == 0) continue;
      number[v] = static_cast<NodeId>(nodes.size());
      nodes.push_back(v);
      live.supply.push_back(all.supply[v]);
    }
    for (ArcId a = 0; a < all.num_arcs(); ++a) {
      if (ssp.live_arcs()[a] == 0) continue;
      arcs.push_back(a);
      live.tail.push_back(number[all.tail[a]]);
      live.head.push_back(number[all.head[a]]);
      live.capacity.push_back(all.capacity[a]);
      live.cost.push_back(all.cost[a]);
    }
    return {std::move(live), to_array(std::move(nodes)), to_array(std::move(arcs))};
  }

 private:
  const IncrementalSolver& core() {
    const Busy busy(busy_);  // reading during a resolve would be a race
    return core_;
  }
  void need_nodes(const char* field, const Array& nodes) {
    need_all(field, nodes, [this](std::int64_t v) { return core_.live_node(v); }, "no such node");
  }
  void need_live_arcs(const Array& arcs) {
    need_all("arcs", arcs, [this](std::int64_t a) { return core_.live_arc(a); }, "no such arc");
  }

  const std::vector<const Algorithm*> racers_;
  const Algorithm* winner_ = nullptr;
  IncrementalSolver core_;
  std::atomic<bool> busy_{false};
};

void bind_results(nb::module_& m) {
  nb::enum_<Status>(m, "Status")
      .value("OPTIMAL", Status::kOptimal)
      .value("INFEASIBLE", Status::kInfeasible)
      .value("UNBALANCED", Status::kUnbalanced)
      .value("BAD_COST_RANGE", Status::kBadCostRange)
      .value("BAD_CAPACITY_RANGE", Status::kBadCapacityRange)
      .value("CANCELLED", Status::kCancelled)
      .value("BUDGET", Status::kBudget);
  nb::class_<Stats>(m, "Stats")
      .def_ro("searches", &Stats::searches)
      .def_ro("settled", &Stats::settled)
      .def_ro("scanned", &Stats::scanned)
      .def_ro("augmentations", &Stats::augmentations)
      .def_ro("phases", &Stats::phases)
      .def_ro("repaired", &Stats::repaired)
      .def_ro("rebuilds", &Stats::rebuilds)
      .def_ro("pushes", &Stats::pushes)
      .def_ro("relabels", &Stats::relabels)
      .def_ro("pivots", &Stats::pivots)
      .def_prop_ro("operations", &Stats::operations);
  nb::class_<Certificate>(m, "Certificate")
      .def_ro("arcs_checked", &Certificate::arcs_checked)
      .def_ro("nodes_checked", &Certificate::nodes_checked)
      .def_ro("capacity_violations", &Certificate::capacity_violations)
      .def_ro("balance_violations", &Certificate::balance_violations)
      .def_ro("slackness_violations", &Certificate::slackness_violations)
      .def_ro("costs_agree", &Certificate::costs_agree)
      .def_prop_ro("ok", &Certificate::ok);
  nb::class_<Solution>(m, "Solution")
      .def_ro("status", &Solution::status)
      .def_ro("cost", &Solution::cost)
      .def_ro("stats", &Solution::stats)
      .def("take_flow", [](Solution& s) { return to_array(std::move(s.flow)); })
      .def("take_potential", [](Solution& s) { return to_array(std::move(s.potential)); });
}

void bind_solver(nb::module_& m) {
  nb::class_<Solver>(m, "IncrementalSolver")
      .def(nb::init<const Network&, const std::vector<std::string>&, bool>())
      .def("add_nodes", &Solver::add_nodes)
      .def("add_arcs", &Solver::add_arcs)
      .def("remove_nodes", &Solver::remove_nodes)
      .def("remove_arcs", &Solver::remove_arcs)
      .def("set_capacity", &Solver::set_capacity)
      .def("set_cost", &Solver::set_cost)
      .def("set_supply", &Solver::set_supply)
      .def("resolve", &Solver::resolve)
      .def("cancel", &Solver::cancel)
      .def("flow", &Solver::flow)
      .def("flow_of", &Solver::flow_of)
      .def("flow_reached", &Solver::flow_reached)
      .def("potential", &Solver::potential)
      .def("changed_flow", &Solver::changed_flow)
      .def("certify", &Solver::certify)
      .def("snapshot", &Solver::snapshot)
      .def_prop_ro("winner", &Solver::winner)
      .def_prop_ro("cost", &Solver::cost)
      .def_prop_ro("solved", &Solver::solved)
      .def_prop_ro("stats", &Solver::stats)
      .def_prop_ro("num_nodes", &Solver::num_nodes)
      .def_prop_ro("num_arcs", &Solver::num_arcs);
}

void bind_dimacs(nb::module_& m) {
  m.def("parse_dimacs", [](const nb::bytes& text) {
    const std::string_view data(static_cast<const char*>(text.data()), text.size());
    DimacsProblem problem;
    std::size_t line = 0;
    std::string error;
    {
      nb::gil_scoped_release release;
      try {
        problem = parse_dimacs(data);
      } catch (const DimacsError& e) {
        line = e.line();
        error = e.what();
      }
    }
    return std::make_tuple(std::move(problem.network), to_array(std::move(problem.low)), problem.base_cost, line, error);
  });
  m.def("write_dimacs", [](const Network& network) {
    const std::string text = write_dimacs(network);
    return nb::bytes(text.data(), text.size());
  });
  m.def("write_dimacs_flow", [](const Network& network, const Array& flow) {
    need_length("flow", flow, network.num_arcs());
    const std::string text = write_dimacs_flow(network, view(flow));
    return nb::bytes(text.data(), text.size());
  });
}

}  // namespace

}  // namespace flowsolver

NB_MODULE(_flowsolver, m) {
  using namespace flowsolver;
  bind_results(m);
  nb::class_<Network>(m, "Network")
      .def(nb::init<>())
      .def("add_nodes", &add_nodes)
      .def("add_arcs", &add_arcs)
      .def_prop_ro("num_nodes", &Network::num_nodes)
      .def_prop_ro("num_arcs", &Network::num_arcs)
      .def("tail", [](const Network& n) { return to_array(n.tail); })
      .def("head", [](const Network& n) { return to_array(n.head); })
      .def("capacity", [](const Network& n) { return copy_of(n.capacity); })
      .def("cost", [](const Network& n) { return copy_of(n.cost); })
      .def("supply", [](const Network& n) { return copy_of(n.supply); });
  m.def("solve", &solve);
  m.def("certify", &certify_arrays);
  m.def("misplaced_tasks", &misplaced);
  m.def("algorithms", [] {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Algorithm& a : algorithms()) rows.emplace_back(a.name, a.summary);
    return rows;
  });
  bind_solver(m);
  bind_dimacs(m);
}
