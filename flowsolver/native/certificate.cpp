#include "certificate.hpp"

namespace flowsolver {

namespace {

using Wide = __int128;

Wide reduced_cost(std::int64_t cost, std::int64_t tail_potential, std::int64_t head_potential) {
  return static_cast<Wide>(cost) - tail_potential + head_potential;
}

}  // namespace

void check_arc(const Network& network, ArcId arc, std::int64_t flow, std::int64_t tail_potential,
               std::int64_t head_potential, Certificate& certificate) {
  ++certificate.arcs_checked;
  const std::int64_t capacity = network.capacity[arc];
  certificate.capacity_violations += flow < 0 || flow > capacity;
  const Wide rc = reduced_cost(network.cost[arc], tail_potential, head_potential);
  certificate.slackness_violations += (flow < capacity && rc < 0) || (flow > 0 && rc > 0);
}

Certificate certify(const Network& network, std::span<const std::int64_t> flow,
                    std::span<const std::int64_t> potential, std::int64_t cost,
                    std::span<const std::uint8_t> alive) {
  Certificate certificate;
  std::vector<Wide> outflow(network.num_nodes(), 0);
  Wide primal = 0, dual = 0;
  for (ArcId a = 0; a < network.num_arcs(); ++a) {
    if (!alive.empty() && alive[a] == 0) continue;
    const NodeId u = network.tail[a], v = network.head[a];
    check_arc(network, a, flow[a], potential[u], potential[v], certificate);
    outflow[u] += flow[a];
    outflow[v] -= flow[a];
    primal += static_cast<Wide>(network.cost[a]) * flow[a];
    const Wide rc = reduced_cost(network.cost[a], potential[u], potential[v]);
    if (rc < 0) dual += rc * network.capacity[a];
  }
  certificate.nodes_checked = static_cast<std::int64_t>(network.num_nodes());
  for (NodeId v = 0; v < network.num_nodes(); ++v) {
    certificate.balance_violations += outflow[v] != network.supply[v];
    dual += static_cast<Wide>(network.supply[v]) * potential[v];
  }
  certificate.costs_agree = primal == dual && primal == cost;
  return certificate;
}

CutCertificate certify_cut(const Network& network, std::span<const NodeId> cut,
                           std::span<const std::uint8_t> alive) {
  CutCertificate certificate;
  std::vector<std::uint8_t> inside(network.num_nodes(), 0);
  for (NodeId v : cut) {
    if (v >= network.num_nodes() || (!alive.empty() && alive[v] == 0) || inside[v] != 0) {
      ++certificate.unknown_nodes;
      continue;
    }
    inside[v] = 1;
    ++certificate.nodes;
    certificate.supply += network.supply[v];
  }
  for (ArcId a = 0; a < network.num_arcs(); ++a) {
    if (inside[network.tail[a]] != 0 && inside[network.head[a]] == 0)
      certificate.capacity += network.capacity[a];
  }
  return certificate;
}

}  // namespace flowsolver
