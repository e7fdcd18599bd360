// The names of an enum as a Python list, by value: what a test holds the enum's Python twin
// against.
#pragma once

#include <nanobind/nanobind.h>

namespace agora {

template <typename Names>
nanobind::list bound_names(const Names& names) {
  nanobind::list list;
  for (const char* name : names) list.append(name);
  return list;
}

}  // namespace agora
