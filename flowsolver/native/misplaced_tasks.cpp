#include "misplaced_tasks.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace flowsolver {

namespace {

// Arcs by tail, in order of ids.
struct Outgoing {
  explicit Outgoing(const Network& network)
      : first(network.num_nodes() + 1, 0), arcs(network.num_arcs()) {
    for (NodeId v : network.tail) ++first[v + 1];
    for (std::size_t v = 0; v < network.num_nodes(); ++v) first[v + 1] += first[v];
    std::vector<ArcId> next(first.begin(), first.end() - 1);
    for (ArcId a = 0; a < network.num_arcs(); ++a) arcs[next[network.tail[a]]++] = a;
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
  const Outgoing outgoing(network);
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

}  // namespace flowsolver
