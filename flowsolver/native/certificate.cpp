#include "certificate.hpp"

#include <algorithm>
#include <utility>
#include <vector>

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

namespace {

// Arcs by tail, in order of ids: those for which `counts(arc)`.
struct Outgoing {
  template <class Counts>
  Outgoing(const Network& network, const Counts& counts) : first(network.num_nodes() + 1, 0) {
    for (ArcId a = 0; a < network.num_arcs(); ++a) {
      if (counts(a)) ++first[network.tail[a] + 1];
    }
    for (std::size_t v = 0; v < network.num_nodes(); ++v) first[v + 1] += first[v];
    arcs.resize(first.back());
    std::vector<ArcId> next(first.begin(), first.end() - 1);
    for (ArcId a = 0; a < network.num_arcs(); ++a) {
      if (counts(a)) arcs[next[network.tail[a]]++] = a;
    }
  }
  std::vector<ArcId> first, arcs;
};

// Units not yet walked, per arc, and unmet demand, per node.
class Remainder {
 public:
  Remainder(const Network& network, const Outgoing& outgoing, std::vector<std::int64_t> units)
      : network_(network),
        outgoing_(outgoing),
        units_(std::move(units)),
        demand_(network.num_nodes()),
        at_(network.num_nodes()) {
    for (NodeId v = 0; v < network.num_nodes(); ++v) {
      demand_[v] = network.supply[v] < 0 ? -network.supply[v] : 0;
      at_[v] = outgoing.first[v];
    }
  }

  // The arcs of a walk from v to a node with unmet demand, whose units it takes; empty if there is
  // none. A step back discards the arc's units: nothing could be delivered over its head.
  const std::vector<ArcId>& walk(NodeId v) {
    walk_.clear();
    while (demand_[v] == 0) {  // bounded: takes units off an arc each time
      std::uint32_t& at = at_[v];
      while (at < outgoing_.first[v + 1] && units_[outgoing_.arcs[at]] == 0) ++at;
      if (at < outgoing_.first[v + 1]) {
        const ArcId arc = outgoing_.arcs[at];
        --units_[arc];
        walk_.push_back(arc);
        v = network_.head[arc];
      } else if (!walk_.empty()) {
        v = network_.tail[walk_.back()];
        units_[walk_.back()] = 0;
        walk_.pop_back();
      } else {
        return walk_;
      }
    }
    --demand_[v];
    return walk_;
  }

  void take(const std::vector<ArcId>& walk) {
    for (ArcId arc : walk) --units_[arc];
    --demand_[network_.head[walk.back()]];
  }

 private:
  const Network& network_;
  const Outgoing& outgoing_;
  std::vector<std::int64_t> units_, demand_;
  std::vector<std::uint32_t> at_;  // arcs before this one have no units left
  std::vector<ArcId> walk_;
};

}  // namespace

std::int64_t misplaced_tasks(const Network& network, std::span<const std::int64_t> flow,
                             std::span<const std::int64_t> optimum) {
  const Outgoing outgoing(network, [&](ArcId a) { return flow[a] > 0 || optimum[a] > 0; });
  std::vector<std::int64_t> units(network.num_arcs());
  for (ArcId a = 0; a < network.num_arcs(); ++a) units[a] = std::min(flow[a], optimum[a]);
  Remainder common(network, outgoing, std::move(units));
  Remainder reached(network, outgoing, {flow.begin(), flow.end()});
  Remainder deficit(network, outgoing, {optimum.begin(), optimum.end()});
  std::vector<NodeId> left;
  for (NodeId v = 0; v < network.num_nodes(); ++v) {
    if (network.supply[v] != 1) continue;
    const std::vector<ArcId>& walk = common.walk(v);
    if (walk.empty()) {
      left.push_back(v);
    } else {
      reached.take(walk);
      deficit.take(walk);
    }
  }
  std::int64_t misplaced = 0;
  for (NodeId v : left) {
    const std::vector<ArcId>& to = reached.walk(v);
    const std::vector<ArcId>& best = deficit.walk(v);
    const bool alike = !to.empty() && !best.empty() &&
                       network.tail[to.back()] == network.tail[best.back()] &&
                       network.head[to.back()] == network.head[best.back()];
    misplaced += !alike;
  }
  return misplaced;
}

std::vector<RoutedUnit> routed_units(const Network& network, std::span<const std::int64_t> flow,
                                     std::span<const NodeId> nodes) {
  const Outgoing outgoing(network, [&](ArcId a) { return flow[a] > 0; });
  Remainder left(network, outgoing, {flow.begin(), flow.end()});
  std::vector<RoutedUnit> routed;
  routed.reserve(nodes.size());
  for (NodeId v : nodes) {
    const std::vector<ArcId>& walk = left.walk(v);
    routed.push_back(walk.empty() ? RoutedUnit{} : RoutedUnit{walk.front(), walk.back()});
  }
  return routed;
}

}  // namespace flowsolver
