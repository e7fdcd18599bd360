#include "solve.hpp"

#include <array>

#include "incremental_ssp.hpp"

namespace flowsolver {

namespace {

constexpr std::array kAlgorithms{
    Algorithm{"incremental_ssp", "successive shortest paths with persistent prices", solve_incremental_ssp},
};

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm* find_algorithm(std::string_view name) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

}  // namespace flowsolver
