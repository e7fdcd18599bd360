// Units of a flow (schedulers/units.py), and array idioms of the flow scheduler that numpy takes
// several passes for (schedulers/flow/arrays.py).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agora {

// How many of `unit` (R) fit each row of `resources` ([M, R]). A resource of which the unit is 0
// does not count, on machines that are overdrawn in it either; if it is 0 in all, rows with room in
// some resource hold `most`, and others none. No row holds more than `most`. Throws
// std::invalid_argument if `resources` has another number of rows than `units`.
void units_in(std::span<const int64_t> resources, std::span<const int64_t> unit, int64_t most,
              std::span<int64_t> units);

// The entries of the named rows of a CSR table: begin[0], begin[0] + 1, ... (size[0] of them),
// begin[1], ... Throws std::invalid_argument for columns of different lengths, and sizes below 0.
std::vector<int64_t> ranges(std::span<const int64_t> begin, std::span<const int64_t> size);

// The places where two columns differ. Throws std::invalid_argument if their lengths do.
std::vector<int64_t> differing(std::span<const int64_t> a, std::span<const int64_t> b);

// The first place of a number that is not within these bounds, or -1.
int64_t first_outside(std::span<const int64_t> column, int64_t lowest, int64_t highest);

}  // namespace agora
