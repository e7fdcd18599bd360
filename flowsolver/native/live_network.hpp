// The live part of a changing network, numbered without gaps: the input of a solve from scratch.
#pragma once

#include <span>
#include <vector>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

struct LiveNetwork {
  Network network;
  std::vector<NodeId> nodes;  // ids in the changing network, ascending
  std::vector<ArcId> arcs;
};

// O(n + m). `node_alive`, `arc_alive`: per id. Live arcs join live nodes only. Throws Stopped when
// cancelled.
LiveNetwork live_network(const Network& all, std::span<const std::uint8_t> node_alive,
                         std::span<const std::uint8_t> arc_alive, const Control& control);

}  // namespace flowsolver
