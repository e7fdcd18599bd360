// The engine of incremental successive shortest paths (described in incremental_ssp.hpp) for any
// network: residual graph, prices, imbalances, and what must be repaired at the next resolve.
// Values are 32 or 64 bits wide.
#pragma once

#include <cstdint>
#include <memory>

#include "engine.hpp"

namespace flowsolver {

// `has_spare_room`: leave room for changes. A run whose searches have scanned more than `max_scans`
// half-edges ends with kBudget.
std::unique_ptr<Engine> make_ssp_engine(const EngineStart& start, bool has_spare_room,
                                        std::int64_t max_scans, const Control& control);

}  // namespace flowsolver
