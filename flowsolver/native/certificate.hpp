// Certificates of optimality and of infeasibility, checked independently of how the answer was
// found.
//
// A flow x is optimal if it is feasible and there are prices p such that, for every arc,
//   x < capacity  =>  rc >= 0   and   x > 0  =>  rc <= 0        (complementary slackness)
// with signs as in network.hpp. Then its cost equals the dual's: sum supply[v] p[v] + sum over arcs
// with rc < 0 of capacity * rc. Sums are exact (128 bits), and so are reduced costs.
//
// A network is infeasible if for some set of nodes, a cut, the sum of supplies exceeds the capacity
// of the arcs that leave it: that much supply cannot leave. (By the max-flow min-cut theorem, every
// infeasible network whose supplies balance has one.)
#pragma once

#include <span>

#include "network.hpp"

namespace flowsolver {

struct Certificate {
  std::int64_t arcs_checked = 0;
  std::int64_t nodes_checked = 0;
  std::int64_t capacity_violations = 0;   // arcs with flow outside [0, capacity]
  std::int64_t balance_violations = 0;    // nodes where outflow - inflow != supply
  std::int64_t slackness_violations = 0;  // arcs
  // cost claimed == primal == dual (a partial check leaves this true)
  bool costs_agree = false;

  bool ok() const {
    return capacity_violations == 0 && balance_violations == 0 && slackness_violations == 0 &&
           costs_agree;
  }
};

// `alive` is per arc, empty for all live. Spans have the network's lengths.
Certificate certify(const Network& network, std::span<const std::int64_t> flow,
                    std::span<const std::int64_t> potential, std::int64_t cost,
                    std::span<const std::uint8_t> alive = {});

struct CutCertificate {
  std::int64_t nodes = 0;          // in the cut
  std::int64_t unknown_nodes = 0;  // entries that are not live nodes, or that occurred before
  __int128 supply = 0;             // of its nodes
  __int128 capacity = 0;           // of the arcs that leave it

  bool ok() const { return unknown_nodes == 0 && supply > capacity; }
};

// `alive` is per node, empty for all live; arcs at removed nodes have no capacity.
CutCertificate certify_cut(const Network& network, std::span<const NodeId> cut,
                           std::span<const std::uint8_t> alive = {});

// One arc: adds to the counts of the certificate.
void check_arc(const Network& network, ArcId arc, std::int64_t flow, std::int64_t tail_potential,
               std::int64_t head_potential, Certificate& certificate);

}  // namespace flowsolver
