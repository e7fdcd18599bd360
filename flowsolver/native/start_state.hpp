// What a method returns when it is stopped before it did anything, and the start's prices within range.
#pragma once

#include <vector>

#include "method.hpp"

namespace flowsolver {

// Status by check_ranges; when that is kOptimal, the start's flow and prices (else zeros) and that flow's cost, saturated.
Solution start_state(const Network& network, const Start& start);

// The start's prices relative to the largest sink's; all zero when some are further from it than 2 * kMaxPathCost, so that
// sums of a few prices and costs of paths fit. Precondition: there are nodes.
std::vector<std::int64_t> start_prices(const Network& network, const Start& start);

}  // namespace flowsolver
