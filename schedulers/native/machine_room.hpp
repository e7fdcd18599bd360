// How many tasks the room of machines holds: units of a flow, and tasks that share a machine
// (schedulers/units.py, schedulers/flow/extraction.py). A resource that is not asked for does not
// count, on machines that are overdrawn in it either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace agora {

// How many of `unit` (R) fit each row of `resources` ([M, R]). A resource of which the unit is 0
// does not count; if it is 0 in all, rows with room in some resource hold `most`, and others none.
// No row holds more than `most`. Throws std::invalid_argument if `resources` has no whole rows.
void units_in(std::span<const int64_t> resources, std::span<const int64_t> unit, int64_t most,
              std::span<int64_t> units);

// n placements.
struct Placed {
  std::span<const int64_t> task;      // ids
  std::span<const int32_t> priority;  // of one machine's tasks the highest come first
  std::span<const int64_t> request;   // [n, R]
  std::span<const int64_t> machine;   // rows
};

// Writes which placements fit together in what is free ([M, R]). On one machine the more important
// come first, then the lower id. Tasks after one that does not fit are judged as if it did.
// O(n (log n + R)). Throws std::invalid_argument for columns that do not go together, and machines
// that do not exist.
void fit_together(const Placed& placed, std::span<const int64_t> free, size_t dimensions,
                  std::span<bool> fits);

}  // namespace agora
