// The addresses of participants (parsync/core/addresses.py): agents have 0, 1, ..., and all other
// participants have negative addresses.
#pragma once

#include <cstdint>

namespace agora {

constexpr int64_t kMaster = -1;
constexpr int64_t kWorkers = -2;
constexpr int64_t kArrivals = -4;

}  // namespace agora
