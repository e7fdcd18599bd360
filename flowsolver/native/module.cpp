// flowsolver._flowsolver, the Python module, in order: conversion of arrays, checks of arguments,
// budgets and signals; networks and DIMACS files; solving from scratch; IncrementalSolver.
//
// Arrays are one-dimensional int64. Ids are checked here, all ids of a call before any change is
// made. Long calls release the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "certificate.hpp"
#include "changing_network.hpp"
#include "control.hpp"
#include "cost_scaling/cost_scaling.hpp"
#include "dimacs.hpp"
#include "graph/large_array.hpp"
#include "solve.hpp"
#include "race.hpp"
#include "incremental_solver.hpp"
#include "network.hpp"

namespace nb = nanobind;

namespace flowsolver {

namespace {

using Array = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

std::span<const std::int64_t> view(const Array& array) { return {array.data(), array.size()}; }

Result to_array(std::vector<std::int64_t>&& values) {
  auto* owned = new std::vector<std::int64_t>(std::move(values));
  return Result(owned->data(), {owned->size()}, nb::capsule(owned, [](void* p) noexcept {
                  delete static_cast<std::vector<std::int64_t>*>(p);
                }));
}

template <class Values>
Result copy_of(const Values& values) {
  return to_array(std::vector<std::int64_t>(values.begin(), values.end()));
}

[[noreturn]] void refuse(const std::string& what) { throw nb::value_error(what.c_str()); }

[[noreturn]] void reject(const char* field, std::size_t index, std::int64_t value,
                         const char* why) {
  refuse(std::string(field) + "[" + std::to_string(index) + "] = " + std::to_string(value) + ": " +
         why);
}

void need_length(const char* field, const Array& array, std::size_t length) {
  if (array.size() == length) return;
  refuse(std::string(field) + " has " + std::to_string(array.size()) + " entries, expected " +
         std::to_string(length));
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

// Refuses an id that occurs twice. `limit`: above all ids.
void need_distinct(const char* field, const Array& array, std::size_t limit) {
  if (array.size() < 2) return;
  const auto reject_twice = [field](std::int64_t id) {
    refuse(std::string(field) + " names " + std::to_string(id) + " twice");
  };
  constexpr std::size_t kFew = 64;
  if (array.size() <= kFew) {
    std::vector<std::int64_t> sorted(array.data(), array.data() + array.size());
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) reject_twice(*twice);
    return;
  }
  std::vector<bool> named(limit, false);
  for (std::int64_t id : view(array)) {
    if (named[static_cast<std::size_t>(id)]) reject_twice(id);
    named[static_cast<std::size_t>(id)] = true;
  }
}

void need_arcs(const Array& tail, const Array& head, const Array& capacity, const Array& cost) {
  need_length("head", head, tail.size());
  need_length("capacity", capacity, tail.size());
  need_length("cost", cost, tail.size());
  need_capacities(capacity);
}

const Algorithm& known_algorithm(const std::string& name) {
  const Algorithm* found = find_algorithm(name);
  if (found != nullptr) return *found;
  std::string known;
  for (const Algorithm& each : algorithms())
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  refuse("no algorithm \"" + name + "\"; known: " + known);
}

// An algorithm with its settings, as choices.py gives it: name, from_scratch, alpha (0: its own),
// arc_prioritisation, task_removal, price_refine.
using Choice = std::tuple<std::string, bool, std::int64_t, bool, bool, bool>;

// The algorithms of one solve, with their settings. `racers` points into `algorithms`.
struct Racers {
  // Precondition: distinct names, at least one; choices.py checks that. Throws ValueError for an
  // unknown name.
  explicit Racers(const std::vector<Choice>& choices) {
    for (const auto& [name, from_scratch, alpha, arc_prioritisation, task_removal, price_refine] :
         choices) {
      algorithms.push_back(configured(known_algorithm(name), {from_scratch, alpha, task_removal,
                                                              price_refine, arc_prioritisation}));
    }
    for (const Algorithm& each : algorithms) racers.push_back(&each);
  }
  Racers(const Racers&) = delete;
  Racers& operator=(const Racers&) = delete;

  bool all_from_scratch() const {
    return std::all_of(algorithms.begin(), algorithms.end(),
                       [](const Algorithm& each) { return each.from_scratch; });
  }

  std::vector<Algorithm> algorithms;
  std::vector<const Algorithm*> racers;
};

WinnerRule winner_rule(bool deterministic) {
  return deterministic ? WinnerRule::kFewestOperations : WinnerRule::kFirst;
}
double in_seconds(Control::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Sets the budgets; a negative value means none.
void set_budget(Control& control, std::int64_t operations, double seconds) {
  control.limit_operations(operations < 0 ? kInfinity : operations);
  using Clock = Control::Clock;
  constexpr double kForEver = 1e9;  // 30 years, which the clock can represent
  control.stop_at(!(seconds >= 0 && seconds < kForEver)
                      ? Clock::time_point::max()
                      : Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds)));
}

// Python's signal handlers run only in the main thread, and only when asked to. A long call in the
// main thread asks regularly, so that Ctrl-C ends it. The handler's exception is then pending, and
// `end_if_interrupted` throws it.
void end_at_signals(Control& control) {
  static const unsigned long main_thread = nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
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

void need_ids(const char* field, const Array& ids, std::size_t count, const char* why) {
  const auto known = [count](std::int64_t id) {
    return id >= 0 && static_cast<std::size_t>(id) < count;
  };
  need_all(field, ids, known, why);
}

std::int64_t add_nodes(Network& network, const Array& supply) {
  const std::size_t first = network.num_nodes();
  if (supply.size() > kMaxNodes - first) throw nb::value_error("too many nodes");
  network.supply.insert(network.supply.end(), supply.data(), supply.data() + supply.size());
  return static_cast<std::int64_t>(first);
}

std::int64_t add_arcs(Network& network, const Array& tail, const Array& head, const Array& capacity,
                      const Array& cost) {
  const std::size_t first = network.num_arcs();
  need_arcs(tail, head, capacity, cost);
  if (tail.size() > kMaxArcs - first) throw nb::value_error("too many arcs");
  need_ids("tail", tail, network.num_nodes(), "no such node");
  need_ids("head", head, network.num_nodes(), "no such node");
  network.tail.insert(network.tail.end(), tail.data(), tail.data() + tail.size());
  network.head.insert(network.head.end(), head.data(), head.data() + head.size());
  network.capacity.insert(network.capacity.end(), capacity.data(),
                          capacity.data() + capacity.size());
  network.cost.insert(network.cost.end(), cost.data(), cost.data() + cost.size());
  return static_cast<std::int64_t>(first);
}

void assign(std::vector<std::int64_t>& column, const Array& ids, const Array& values) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    column[static_cast<std::size_t>(ids.data()[i])] = values.data()[i];
}

void set_capacity(Network& network, const Array& arcs, const Array& capacity) {
  need_ids("arcs", arcs, network.num_arcs(), "no such arc");
  need_length("capacity", capacity, arcs.size());
  need_capacities(capacity);
  assign(network.capacity, arcs, capacity);
}

void set_cost(Network& network, const Array& arcs, const Array& cost) {
  need_ids("arcs", arcs, network.num_arcs(), "no such arc");
  need_length("cost", cost, arcs.size());
  assign(network.cost, arcs, cost);
}

void set_supply(Network& network, const Array& nodes, const Array& supply) {
  need_ids("nodes", nodes, network.num_nodes(), "no such node");
  need_length("supply", supply, nodes.size());
  assign(network.supply, nodes, supply);
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
    return std::make_tuple(std::move(problem.network), to_array(std::move(problem.low)),
                           problem.base_cost, line, error);
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

void bind_network(nb::module_& m) {
  m.attr("MAX_NODES") = kMaxNodes;
  m.attr("MAX_ARCS") = kMaxArcs;
  nb::class_<Network>(m, "Network")
      .def(nb::init<>())
      .def("add_nodes", &add_nodes)
      .def("add_arcs", &add_arcs)
      .def("set_capacity", &set_capacity)
      .def("set_cost", &set_cost)
      .def("set_supply", &set_supply)
      .def("copy", [](const Network& n) { return n; })
      .def_prop_ro("num_nodes", &Network::num_nodes)
      .def_prop_ro("num_arcs", &Network::num_arcs)
      .def("tail", [](const Network& n) { return copy_of(n.tail); })
      .def("head", [](const Network& n) { return copy_of(n.head); })
      .def("capacity", [](const Network& n) { return copy_of(n.capacity); })
      .def("cost", [](const Network& n) { return copy_of(n.cost); })
      .def("supply", [](const Network& n) { return copy_of(n.supply); });
  bind_dimacs(m);
}

// Returns the solution, the name of the winner, how long the losers took to stop, in seconds, and
// the operations of each racer.
std::tuple<Solution, std::string, double, std::vector<std::int64_t>> solve(
    const Network& network, const std::vector<Choice>& choices, bool deterministic,
    std::int64_t max_operations, double max_seconds) {
  const Racers chosen(choices);
  Control control;
  set_budget(control, max_operations, max_seconds);
  end_at_signals(control);
  RaceAnswer answer;
  {
    nb::gil_scoped_release release;
    answer = race(network, chosen.racers, {}, control, winner_rule(deterministic));
  }
  end_if_interrupted(control);
  return {std::move(answer.solution), std::string(answer.winner->name),
          in_seconds(answer.stop_duration), std::move(answer.operations)};
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

Certificate certify_arrays(const Network& network, const Array& flow, const Array& potential,
                           std::int64_t cost) {
  need_length("flow", flow, network.num_arcs());
  need_length("potential", potential, network.num_nodes());
  const auto flows = view(flow), potentials = view(potential);
  nb::gil_scoped_release release;
  return certify(network, flows, potentials, cost);
}

CutCertificate certify_cut_array(const Network& network, const Array& cut) {
  std::vector<NodeId> nodes;
  nodes.reserve(cut.size());
  for (std::int64_t v : view(cut)) {
    const bool known = v >= 0 && static_cast<std::size_t>(v) < network.num_nodes();
    nodes.push_back(known ? static_cast<NodeId>(v) : kNone);
  }
  nb::gil_scoped_release release;
  return certify_cut(network, nodes);
}

// A Python integer of this value.
nb::object as_python(__int128 value) {
  constexpr int kHalf = 64;
  const auto low = static_cast<std::uint64_t>(value);
  return (nb::int_(static_cast<std::int64_t>(value >> kHalf)) << nb::int_(kHalf)) | nb::int_(low);
}

template <class T, class Value>
struct Field {
  const char* name;
  Value T::* value;
  const char* doc;
};

// Binds a record of counters and verdicts: read-only, printable, picklable.
template <class T>
nb::class_<T> bind_record(nb::module_& m, const char* name, const char* doc,
                          std::vector<Field<T, std::int64_t>> counts,
                          std::vector<Field<T, bool>> verdicts = {}) {
  nb::class_<T> bound(m, name, doc);
  for (const auto& field : counts) bound.def_ro(field.name, field.value, field.doc);
  for (const auto& field : verdicts) bound.def_ro(field.name, field.value, field.doc);
  bound.def("__getstate__", [=](const T& record) {
    std::vector<std::int64_t> state;
    for (const auto& field : counts) state.push_back(record.*field.value);
    for (const auto& field : verdicts) state.push_back(record.*field.value ? 1 : 0);
    return state;
  });
  bound.def("__setstate__", [=](T& record, const std::vector<std::int64_t>& state) {
    if (state.size() != counts.size() + verdicts.size())
      throw nb::value_error("pickled by another version of flowsolver");
    new (&record) T();
    auto next = state.begin();
    for (const auto& field : counts) record.*field.value = *next++;
    for (const auto& field : verdicts) record.*field.value = *next++ != 0;
  });
  bound.def("__repr__", [=, type = std::string(name)](const T& record) {
    std::string text;
    const auto add = [&text](const char* field, const std::string& value) {
      text += (text.empty() ? "" : ", ") + std::string(field) + "=" + value;
    };
    for (const auto& field : verdicts) add(field.name, record.*field.value ? "True" : "False");
    for (const auto& field : counts) {
      if (record.*field.value != 0) add(field.name, std::to_string(record.*field.value));
    }
    return type + "(" + text + ")";
  });
  return bound;
}

// Bound by hand, because its sums have 128 bits.
void bind_cut_certificate(nb::module_& m) {
  using State = std::array<std::int64_t, 6>;
  constexpr int kHalf = 64;
  const auto high = [](__int128 value) { return static_cast<std::int64_t>(value >> kHalf); };
  const auto low = [](__int128 value) { return static_cast<std::int64_t>(value); };
  const auto whole = [](std::int64_t high, std::int64_t low) {
    return (static_cast<__int128>(high) << kHalf) | static_cast<std::uint64_t>(low);
  };
  nb::class_<CutCertificate>(m, "CutCertificate",
                             "What an exact check of a cut found; `ok` is the verdict.")
      .def_ro("nodes", &CutCertificate::nodes, "Nodes in the cut.")
      .def_ro("unknown_nodes", &CutCertificate::unknown_nodes,
              "Ids that are no node of the network, or were named before.")
      .def_prop_ro(
          "supply", [](const CutCertificate& c) { return as_python(c.supply); },
          "Sum of its nodes' supplies.")
      .def_prop_ro(
          "capacity", [](const CutCertificate& c) { return as_python(c.capacity); },
          "Sum of the capacities of the arcs that leave it.")
      .def_prop_ro("ok", &CutCertificate::ok, "More supply than capacity, and no unknown node.")
      .def("__getstate__",
           [=](const CutCertificate& c) {
             return State{c.nodes,       c.unknown_nodes,  high(c.supply),
                          low(c.supply), high(c.capacity), low(c.capacity)};
           })
      .def("__setstate__",
           [=](CutCertificate& c, const State& state) {
             const auto& [nodes, unknown, supply_high, supply_low, capacity_high, capacity_low] =
                 state;
             new (&c) CutCertificate{nodes, unknown, whole(supply_high, supply_low),
                                     whole(capacity_high, capacity_low)};
           })
      .def("__repr__", [](const CutCertificate& c) {
        return nb::str("CutCertificate(ok={}, nodes={}, unknown_nodes={}, supply={}, capacity={})")
            .format(c.ok(), c.nodes, c.unknown_nodes, as_python(c.supply), as_python(c.capacity));
      });
}

void bind_results(nb::module_& m) {
  nb::enum_<Status>(m, "Status", "How a solve ended. `flowsolver.STATUS_TEXT` has a line for each.")
      .value("OPTIMAL", Status::kOptimal, "A feasible flow of least cost, with proving potentials.")
      .value("INFEASIBLE", Status::kInfeasible,
             "The supplies sum to zero, but no flow meets them within the capacities: the cut "
             "proves it.")
      .value("UNBALANCED", Status::kUnbalanced, "The supplies do not sum to zero.")
      .value("BAD_COST_RANGE", Status::kBadCostRange,
             "The largest |cost| times (nodes + 1) exceeds 2^59, or the optimal cost int64.")
      .value("BAD_CAPACITY_RANGE", Status::kBadCapacityRange,
             "Supplies, or supplies and capacities around one node, sum beyond 2^61.")
      .value("CANCELLED", Status::kCancelled, "Stopped by `cancel`; there is no answer.")
      .value("BUDGET", Status::kBudget,
             "Stopped at its budget of operations or time; the flow is as far as it came.")
      .value("UNBOUNDED", Status::kUnbounded,
             "A cycle of negative cost over arcs of unbounded capacity: there is no least cost.");
  bind_record<Stats>(
      m, "Stats", "Counted work of one solve, the same on every machine.",
      {{"searches", &Stats::searches, "Shortest-path searches."},
       {"settled", &Stats::settled, "Nodes taken from the queue of a search."},
       {"scanned", &Stats::scanned, "Residual arcs looked at."},
       {"augmentations", &Stats::augmentations, "Paths along which flow was sent."},
       {"phases", &Stats::phases, "Searches from all unbalanced nodes at once."},
       {"repaired", &Stats::repaired, "Prices, arcs and tasks put right after changes."},
       {"refined", &Stats::refined, "Of those: prices lowered by price refine (cost scaling)."},
       {"rebuilds", &Stats::rebuilds, "Times the residual graph was built anew."},
       {"pushes", &Stats::pushes, "Single arcs along which flow was sent."},
       {"relabels", &Stats::relabels, "Prices moved one at a time (cost scaling)."},
       {"ascents", &Stats::ascents,
        "Dual ascents: prices of a node, or of a set at once, raised (relaxation)."},
       {"pivots", &Stats::pivots, "Exchanges of tree arcs, and cycles cancelled."},
       {"disproved", &Stats::disproved, "Answers INFEASIBLE that no cut proved."}})
      .def_prop_ro("operations", &Stats::operations,
                   "One figure for all of it, weighted; what budgets count.");
  bind_record<Certificate>(
      m, "Certificate", "What an exact check of an answer found; `ok` is the verdict.",
      {{"arcs_checked", &Certificate::arcs_checked, "Arcs looked at."},
       {"nodes_checked", &Certificate::nodes_checked, "Nodes looked at."},
       {"capacity_violations", &Certificate::capacity_violations,
        "Arcs with a flow outside 0 .. capacity."},
       {"balance_violations", &Certificate::balance_violations,
        "Nodes where outflow - inflow is not the supply."},
       {"slackness_violations", &Certificate::slackness_violations,
        "Arcs whose flow and reduced cost contradict each other."}},
      {{"costs_agree", &Certificate::costs_agree, "Claimed == primal == dual cost."}})
      .def_prop_ro("ok", &Certificate::ok, "No violation, and the costs agree.");
  bind_cut_certificate(m);
  nb::class_<Solution>(m, "Solution")
      .def_ro("status", &Solution::status)
      .def_ro("cost", &Solution::cost)
      .def_ro("stats", &Solution::stats)
      .def("take_flow", [](Solution& s) { return to_array(std::move(s.flow)); })
      .def("take_potential", [](Solution& s) { return to_array(std::move(s.potential)); })
      .def("take_cut", [](Solution& s) { return copy_of(s.cut); });
}

// Cost scaling from a given flow and prices: used by the benchmark of price refine.
Solution cost_scaling_from(const Network& network, const Array& flow, const Array& price,
                           bool refine) {
  need_length("flow", flow, network.num_arcs());
  need_length("price", price, network.num_nodes());
  const auto flows = view(flow);
  for (std::size_t a = 0; a < flows.size(); ++a) {
    if (flows[a] < 0 || flows[a] > network.capacity[a])
      reject("flow", a, flows[a], "not within 0 and the capacity");
  }
  const Start start{flows, view(price)};
  Control control;
  end_at_signals(control);
  Solution solution;
  {
    nb::gil_scoped_release release;
    const Algorithm algorithm =
        configured(*find_algorithm("cost_scaling"), {.price_refine = refine});
    solution = algorithm.solve(network, start, control);
  }
  end_if_interrupted(control);
  return solution;
}

void bind_solve(nb::module_& m) {
  bind_results(m);
  m.def("solve", &solve);
  m.def("cost_scaling_from", &cost_scaling_from);
  m.def("certify", &certify_arrays);
  m.def("certify_cut", &certify_cut_array);
  m.def("misplaced_tasks", &misplaced);
  m.def("algorithms", [] {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Algorithm& a : algorithms()) rows.emplace_back(a.name, a.summary);
    return rows;
  });
  m.def("algorithm_settings", [](const std::string& name) {
    const auto settings = known_algorithm(name).settings;
    return std::vector<std::string>(settings.begin(), settings.end());
  });
}

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

// IncrementalSolver with checked ids. While an object is in a long call, it refuses all other calls
// except `cancel`.
class Solver {
 public:
  Solver(const Network& network, const std::vector<Choice>& choices, bool deterministic)
      : chosen_(std::make_unique<Racers>(choices)),
        solver_(network, engine_maker(deterministic), cold_solver(deterministic),
                chosen_->all_from_scratch()) {}

  // The engine, which names the former algorithms, is dropped before they are.
  void set_algorithm(const std::vector<Choice>& choices, bool deterministic) {
    const Busy busy(busy_);
    auto chosen = std::make_unique<Racers>(choices);
    const std::string last = report_.winner == nullptr ? "" : std::string(report_.winner->name);
    solver_.switch_to(engine_maker(deterministic), cold_solver(deterministic),
                      chosen->all_from_scratch());
    chosen_ = std::move(chosen);
    report_.winner = find_algorithm(last);
  }

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
    for (std::size_t i = 0; i < arcs.size(); ++i) {
      fetch_ahead(arcs, i);
      solver_.set_cost(static_cast<ArcId>(arcs.data()[i]), cost.data()[i]);
    }
  }
  void set_arcs(const Array& arcs, const Array& capacity, const Array& cost) {
    const Busy busy(busy_);
    need_live_arcs(arcs);
    need_length("capacity", capacity, arcs.size());
    need_length("cost", cost, arcs.size());
    need_capacities(capacity);
    solver_.expect_changes(arcs.size());
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < arcs.size(); ++i) {
      fetch_ahead(arcs, i);
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
    report_.operations.clear();
    Status status;
    {
      nb::gil_scoped_release release;
      status = solver_.resolve();
    }
    end_if_interrupted(solver_.control());
    if (is_answer(status) && solver_.fell_back()) report_.winner = &algorithms().front();
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
  // Of the last resolve: the operations of each algorithm that took part.
  std::vector<std::pair<std::string, std::int64_t>> racer_operations() {
    const Busy busy(busy_);
    std::vector<std::pair<std::string, std::int64_t>> counted;
    for (std::size_t i = 0; i < report_.operations.size() && chosen_->racers.size() > 1; ++i)
      counted.emplace_back(chosen_->racers[i]->name, report_.operations[i]);
    if (counted.empty()) {
      const bool fell_back = solver_.fell_back();
      counted.emplace_back(fell_back ? algorithms().front().name : chosen_->racers.front()->name,
                           solver_.stats().operations());
    }
    return counted;
  }
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
  std::pair<Result, Result> routed(const Array& nodes) {
    const Busy busy(busy_);
    need_nodes("nodes", nodes);
    const std::vector<NodeId> ids(nodes.data(), nodes.data() + nodes.size());
    std::vector<std::int64_t> first(ids.size(), -1), last(ids.size(), -1);
    {
      nb::gil_scoped_release release;
      const std::vector<RoutedUnit> units =
          routed_units(solver_.network(), solver_.flow_reached(), ids);
      for (std::size_t i = 0; i < units.size(); ++i) {
        if (units[i].first == kNone) continue;
        first[i] = units[i].first;
        last[i] = units[i].last;
      }
    }
    return {to_array(std::move(first)), to_array(std::move(last))};
  }
  Result potential() { return to_array(core().potential()); }
  std::pair<Result, Result> changed_flow() {
    const ChangedFlow& changed = core().changed_flow();
    return {copy_of(changed.arcs), copy_of(changed.flow)};
  }
  Result cut() { return copy_of(core().cut()); }
  CutCertificate certify_cut() {
    const Busy busy(busy_);
    if (solver_.cut().empty())
      throw std::runtime_error("no cut to certify: the last resolve did not end INFEASIBLE");
    nb::gil_scoped_release release;
    return solver_.certify_cut();
  }
  Certificate certify(bool touched_only) {
    const Busy busy(busy_);
    need_solved();
    nb::gil_scoped_release release;
    return touched_only ? solver_.certify_touched() : solver_.certify();
  }
  Certificate certify_changes(std::size_t others) {
    const Busy busy(busy_);
    need_solved();
    nb::gil_scoped_release release;
    return solver_.certify_changes(others);
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
    return {std::move(live.network), copy_of(live.nodes), copy_of(live.arcs)};
  }

 private:
  // Fetches what changing an arc further on will read: arcs are scattered in memory.
  void fetch_ahead(const Array& arcs, std::size_t at) const {
    constexpr std::size_t kAhead = 8;
    if (at + kAhead >= arcs.size()) return;
    const Network& network = solver_.network();
    const auto next = static_cast<std::size_t>(arcs.data()[at + kAhead]);
    fetch_line(&network.tail[next]);
    fetch_line(&network.head[next]);
    fetch_line(&network.capacity[next]);
    fetch_line(&network.cost[next]);
    fetch_line(&solver_.flow()[next]);
  }
  const IncrementalSolver& core() {
    const Busy busy(busy_);  // reading during a resolve would be a race
    return solver_;
  }
  void need_solved() const {
    if (!solver_.solved())
      throw std::runtime_error(
          "nothing to certify: changed since, or not optimal at, the last resolve");
  }
  void need_nodes(const char* field, const Array& nodes) {
    need_all(field, nodes, [this](std::int64_t v) { return solver_.live_node(v); }, "no such node");
  }
  void need_live_arcs(const Array& arcs) {
    need_all("arcs", arcs, [this](std::int64_t a) { return solver_.live_arc(a); }, "no such arc");
  }

  IncrementalSolver::MakeEngine engine_maker(bool deterministic) {
    return
        [this, rule = winner_rule(deterministic)](const EngineStart& start, const Control& control,
                                                  Stats& stats) -> std::unique_ptr<Engine> {
          if (chosen_->racers.size() > 1)
            return make_race_engine(chosen_->racers, rule, start, report_);
          report_.winner = chosen_->racers.front();
          return report_.winner->make_engine(start, control, stats);
        };
  }
  IncrementalSolver::SolveCold cold_solver(bool deterministic) {
    return [this, rule = winner_rule(deterministic)](const Network& live, const Control& control) {
      RaceAnswer answer = race(live, chosen_->racers, {}, control, rule);
      report_.stop_duration = answer.stop_duration;
      report_.operations = std::move(answer.operations);
      if (is_answer(answer.solution.status)) report_.winner = answer.winner;
      return std::move(answer.solution);
    };
  }

  std::unique_ptr<Racers> chosen_;
  RaceReport report_;
  IncrementalSolver solver_;
  std::atomic<bool> busy_{false};
};

void bind_incremental(nb::module_& m) {
  nb::class_<Solver>(m, "IncrementalSolver")
      .def(nb::init<const Network&, const std::vector<Choice>&, bool>())
      .def("set_algorithm", &Solver::set_algorithm)
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
      .def("routed", &Solver::routed)
      .def("potential", &Solver::potential)
      .def("changed_flow", &Solver::changed_flow)
      .def("cut", &Solver::cut)
      .def("certify", &Solver::certify)
      .def("certify_changes", &Solver::certify_changes)
      .def("certify_cut", &Solver::certify_cut)
      .def("snapshot", &Solver::snapshot)
      .def_prop_ro("winner", &Solver::winner)
      .def_prop_ro("stop_seconds", &Solver::stop_seconds)
      .def("racer_operations", &Solver::racer_operations)
      .def_prop_ro("cost", &Solver::cost)
      .def_prop_ro("solved", &Solver::solved)
      .def_prop_ro("stats", &Solver::stats)
      .def_prop_ro("num_nodes", &Solver::num_nodes)
      .def_prop_ro("num_arcs", &Solver::num_arcs)
      .def("num_node_ids", &Solver::num_node_ids)
      .def("num_arc_ids", &Solver::num_arc_ids);
}

}  // namespace

}  // namespace flowsolver

NB_MODULE(_flowsolver, m) {
  flowsolver::bind_network(m);
  flowsolver::bind_solve(m);
  flowsolver::bind_incremental(m);
}
