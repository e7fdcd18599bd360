// Cost scaling from a given flow and prices, for Python: used by the benchmark of price refine.
#include "cost_scaling/cost_scaling.hpp"
#include "engines/proven_infeasibility.hpp"
#include "module/module.hpp"

namespace flowsolver {

namespace {

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
    solution = solve_proven(refine ? solve_cost_scaling : solve_cost_scaling_unrefined, network,
                            start, control);
  }
  end_if_interrupted(control);
  return solution;
}

}  // namespace

void bind_handover(nb::module_& m) { m.def("cost_scaling_from", &cost_scaling_from); }

}  // namespace flowsolver
