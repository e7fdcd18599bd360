// The live part of a network that changes, numbered without gaps: what a solve from scratch is
// given.
#pragma once

#include <span>
#include <vector>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

struct LiveNetwork {
  Network network;
  std::vector<NodeId> nodes;  // their ids where they come from, ascending
  std::vector<ArcId> arcs;
};

// O(n + m). `node_alive`, `arc_alive`: per id. Arcs are alive only between nodes that are. Throws
// Stopped when cancelled.
LiveNetwork live_network(const Network& all, std::span<const std::uint8_t> node_alive,
                         std::span<const std::uint8_t> arc_alive, const Control& control);

}  // namespace flowsolver
