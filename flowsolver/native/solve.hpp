// The registry of algorithms. A new one is a header and a source that define
//   Solution name(const Network&, const std::atomic<bool>& cancel)
// and one row in solve.cpp.
#pragma once

#include <atomic>
#include <span>
#include <string_view>

#include "network.hpp"

namespace flowsolver {

struct Algorithm {
  std::string_view name;
  std::string_view summary;
  Solution (*solve)(const Network& network, const std::atomic<bool>& cancel);
};

std::span<const Algorithm> algorithms();
const Algorithm* find_algorithm(std::string_view name);  // null if there is none of that name

}  // namespace flowsolver
