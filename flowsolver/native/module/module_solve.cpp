// Solving from scratch, and what all solves return, for Python.
#include "certificate.hpp"
#include "misplacement.hpp"
#include "module/module.hpp"
#include "race.hpp"

namespace flowsolver {

namespace {

// And the winner, and how long the losers took to stop.
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
    answer = race(network, racers, {}, control, winning(deterministic));
  }
  end_if_interrupted(control);
  return {std::move(answer.solution), std::string(answer.winner->name),
          in_seconds(answer.stopping)};
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

// Any integer of 128 bits.
nb::object as_python(__int128 value) {
  constexpr int kHalf = 64;
  const auto low = static_cast<std::uint64_t>(value);
  return (nb::int_(static_cast<std::int64_t>(value >> kHalf)) << nb::int_(kHalf)) | nb::int_(low);
}

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
      .def_ro("disproved", &Stats::disproved)
      .def_prop_ro("operations", &Stats::operations);
  nb::class_<Certificate>(m, "Certificate")
      .def_ro("arcs_checked", &Certificate::arcs_checked)
      .def_ro("nodes_checked", &Certificate::nodes_checked)
      .def_ro("capacity_violations", &Certificate::capacity_violations)
      .def_ro("balance_violations", &Certificate::balance_violations)
      .def_ro("slackness_violations", &Certificate::slackness_violations)
      .def_ro("costs_agree", &Certificate::costs_agree)
      .def_prop_ro("ok", &Certificate::ok);
  nb::class_<CutCertificate>(m, "CutCertificate")
      .def_ro("nodes", &CutCertificate::nodes)
      .def_ro("unknown_nodes", &CutCertificate::unknown_nodes)
      .def_prop_ro("supply", [](const CutCertificate& c) { return as_python(c.supply); })
      .def_prop_ro("capacity", [](const CutCertificate& c) { return as_python(c.capacity); })
      .def_prop_ro("ok", &CutCertificate::ok);
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
