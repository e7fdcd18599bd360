// Whether a request fits: the one rule of the cell, its views and the placers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace agora {

// A resource that is requested at 0 is not checked, and takes nothing. So a task that wants none of
// it fits a machine that is overdrawn in it. request: 0 or more, [dimensions].
inline bool fits_in(const int64_t* request, const int64_t* free, size_t dimensions) {
  for (size_t r = 0; r < dimensions; ++r)
    if (request[r] > std::max<int64_t>(free[r], 0)) return false;
  return true;
}

}  // namespace agora
