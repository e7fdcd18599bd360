// Which units can never be placed, over all n tasks of a run (schedulers/unplaceable.py). A unit is
// a task, or a gang, which is placed together or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agora {

struct UnplaceableUnits {
  std::span<const int64_t> task_us;  // when each task alone becomes unplaceable; INT64_MAX: never
  std::span<const int64_t> gang_us;  // when its gang as a whole does
  std::span<const int64_t> gang;     // negative: none
  std::span<const int64_t> gang_size;

  // Whether some of these tasks can never be placed from now on, and which: 1 in `never` [k], which
  // is left empty if there are none. A gang counts as a whole only if all its tasks are among
  // these; where one of its tasks can never be placed, none of those among these can. Throws
  // std::invalid_argument for a task that does not exist.
  bool among(std::span<const int64_t> task, int64_t now_us, std::vector<uint8_t>& never) const;
};

// Throws std::invalid_argument unless the columns are of one length.
void check_lengths(const UnplaceableUnits& units);

}  // namespace agora
