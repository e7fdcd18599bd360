// Solving from scratch, and the results of all solves, for Python.
#include <array>

#include "certificate.hpp"
#include "misplaced_tasks.hpp"
#include "module/module.hpp"
#include "race.hpp"

namespace flowsolver {

namespace {

// Returns the solution, the name of the winner, and how long the losers took to stop, in seconds.
std::tuple<Solution, std::string, double> solve(const Network& network,
                                                const std::vector<std::string>& algorithms,
                                                bool deterministic, std::int64_t max_operations,
                                                double max_seconds) {
  const std::vector<const Algorithm*> racers = known_algorithms(algorithms);
  Control control;
  set_budget(control, max_operations, max_seconds);
  end_at_signals(control);
  RaceAnswer answer;
  {
    nb::gil_scoped_release release;
    answer = race(network, racers, {}, control, winner_rule(deterministic));
  }
  end_if_interrupted(control);
  return {std::move(answer.solution), std::string(answer.winner->name),
          in_seconds(answer.stop_duration)};
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
       {"rebuilds", &Stats::rebuilds, "Times the residual graph was built anew."},
       {"pushes", &Stats::pushes, "Single arcs along which flow was sent."},
       {"relabels", &Stats::relabels, "Prices moved, one at a time or a set at once."},
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
      .def("take_cut", [](Solution& s) { return to_array(std::move(s.cut)); });
}

}  // namespace

void bind_solve(nb::module_& m) {
  bind_results(m);
  m.def("solve", &solve);
  m.def("certify", &certify_arrays);
  m.def("certify_cut", &certify_cut_array);
  m.def("misplaced_tasks", &misplaced);
  m.def("algorithms", [] {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Algorithm& a : algorithms()) rows.emplace_back(a.name, a.summary);
    return rows;
  });
}

}  // namespace flowsolver
