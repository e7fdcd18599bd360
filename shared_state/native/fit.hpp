// Whether a request fits: the one rule of the cell, its views, the placers, and of what is written
// in Python.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace agora {

// A resource that is requested at 0 is not checked, and takes nothing. So a task that wants none of
// it fits a machine that is overdrawn in it. request: 0 or more, [dimensions].
inline bool fits_in(const int64_t* request, const int64_t* free, size_t dimensions) {
  for (size_t r = 0; r < dimensions; ++r)
    if (request[r] > std::max<int64_t>(free[r], 0)) return false;
  return true;
}

// Whether one request, [dimensions], fits each of the rows of `free`, [fit.size(), dimensions].
inline void fits_rows(const int64_t* request, const int64_t* free, size_t dimensions,
                      std::span<bool> fit) {
  if (dimensions == 1 && request[0] > 0) {  // a third of the time of the loop below
    const int64_t wanted = request[0];
    for (size_t m = 0; m < fit.size(); ++m) fit[m] = wanted <= free[m];
    return;
  }
  for (size_t m = 0; m < fit.size(); ++m)
    fit[m] = fits_in(request, free + m * dimensions, dimensions);
}

}  // namespace agora
