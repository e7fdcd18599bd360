// Shared by the parts of the Python module: conversion of arrays, checks of arguments, budgets, and
// signals during long calls.
//
// Arrays are one-dimensional int64. Ids are checked here, all ids of a call before any change is
// made. Long calls release the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "racer_threads.hpp"
#include "control.hpp"
#include "network.hpp"
#include "solve.hpp"

namespace nb = nanobind;

namespace flowsolver {

using Array = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

inline std::span<const std::int64_t> view(const Array& array) {
  return {array.data(), array.size()};
}

template <class T>
Result to_array(std::vector<T> values) {
  auto* owned = new std::vector<std::int64_t>(values.begin(), values.end());
  return Result(owned->data(), {owned->size()}, nb::capsule(owned, [](void* p) noexcept {
                  delete static_cast<std::vector<std::int64_t>*>(p);
                }));
}

inline Result to_array(std::vector<std::int64_t>&& values) {
  auto* owned = new std::vector<std::int64_t>(std::move(values));
  return Result(owned->data(), {owned->size()}, nb::capsule(owned, [](void* p) noexcept {
                  delete static_cast<std::vector<std::int64_t>*>(p);
                }));
}

inline Result copy_of(std::span<const std::int64_t> values) {
  return to_array(std::vector<std::int64_t>(values.begin(), values.end()));
}

[[noreturn]] inline void reject(const char* field, std::size_t index, std::int64_t value,
                                const char* why) {
  throw nb::value_error((std::string(field) + "[" + std::to_string(index) +
                         "] = " + std::to_string(value) + ": " + why)
                            .c_str());
}

inline void need_length(const char* field, const Array& array, std::size_t length) {
  if (array.size() == length) return;
  throw nb::value_error((std::string(field) + " has " + std::to_string(array.size()) +
                         " entries, expected " + std::to_string(length))
                            .c_str());
}

template <class Test>
void need_all(const char* field, const Array& array, Test test, const char* why) {
  const auto values = view(array);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!test(values[i])) reject(field, i, values[i], why);
  }
}

inline void need_capacities(const Array& capacity) {
  need_all("capacity", capacity, [](std::int64_t c) { return c >= 0; }, "negative");
}

// Refuses an id that occurs twice. `limit`: above all ids.
inline void need_distinct(const char* field, const Array& array, std::size_t limit) {
  if (array.size() < 2) return;
  const auto reject_twice = [field](std::int64_t id) {
    throw nb::value_error((std::string(field) + " names " + std::to_string(id) + " twice").c_str());
  };
  constexpr std::size_t kFew = 64;
  if (array.size() <= kFew) {
    std::vector<std::int64_t> sorted(array.data(), array.data() + array.size());
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) reject_twice(*twice);
    return;
  }
  std::vector<bool> named(limit, false);
  for (std::int64_t id : view(array)) {
    if (named[static_cast<std::size_t>(id)]) reject_twice(id);
    named[static_cast<std::size_t>(id)] = true;
  }
}

inline void need_arcs(const Array& tail, const Array& head, const Array& capacity,
                      const Array& cost) {
  need_length("head", head, tail.size());
  need_length("capacity", capacity, tail.size());
  need_length("cost", cost, tail.size());
  need_capacities(capacity);
}

// The algorithms of these names. Throws ValueError for an unknown name, for an empty list, and for
// a name that occurs twice.
std::vector<const Algorithm*> known_algorithms(const std::vector<std::string>& names);
inline WinnerRule winner_rule(bool deterministic) {
  return deterministic ? WinnerRule::kFewestOperations : WinnerRule::kFirst;
}
inline double in_seconds(Control::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Sets the budgets; a negative value means none.
void set_budget(Control& control, std::int64_t operations, double seconds);

// Python's signal handlers run only in the main thread, and only when asked to. A long call in the
// main thread asks regularly, so that Ctrl-C ends it. The handler's exception is then pending, and
// `end_if_interrupted` throws it.
void end_at_signals(Control& control);
void end_if_interrupted(Control& control);

void bind_network(nb::module_& m);      // Network, and DIMACS files
void bind_solve(nb::module_& m);        // solve, and what it returns
void bind_incremental(nb::module_& m);  // IncrementalSolver
void bind_handover(nb::module_& m);     // cost_scaling_from

}  // namespace flowsolver
