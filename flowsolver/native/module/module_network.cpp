// Networks and DIMACS files for Python.
#include "dimacs.hpp"
#include "module/module.hpp"

namespace flowsolver {

namespace {

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

}  // namespace

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
      .def("tail", [](const Network& n) { return to_array(n.tail); })
      .def("head", [](const Network& n) { return to_array(n.head); })
      .def("capacity", [](const Network& n) { return copy_of(n.capacity); })
      .def("cost", [](const Network& n) { return copy_of(n.cost); })
      .def("supply", [](const Network& n) { return copy_of(n.supply); });
  bind_dimacs(m);
}

}  // namespace flowsolver
