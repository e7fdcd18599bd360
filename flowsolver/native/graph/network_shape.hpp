// What kind of network it is, by counts that are the same everywhere: for choices between
// algorithms. Each takes O(n + m) and throws Stopped when cancelled.
#pragma once

#include <cstddef>

#include "control.hpp"
#include "network.hpp"

namespace flowsolver {

// At least half of the sources are tasks: supply 1, no arcs in.
bool is_scheduling_graph(const Network& network, const Control& control);

// How many arcs have an arc back. It looks for one among the first few arcs of either end: more
// than roads meet at a crossing.
std::size_t count_two_way(const Network& network, const Control& control);

// Few more pairs of neighbours than a tree has: a path, a star, a river. Ways are long, and hardly
// any flow has a choice.
bool is_nearly_tree(const Network& network, const Control& control);

}  // namespace flowsolver
