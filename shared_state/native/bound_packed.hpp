// A packed column (unpack.hpp) as an array of its own.
#pragma once

#include <nanobind/nanobind.h>

#include "bound_column.hpp"
#include "new_array.hpp"
#include "unpack.hpp"

namespace agora {

inline nanobind::object array_of(const PackedColumn& packed) {
  const auto& [letter, width, rows] = packed.shape;
  const NewArrayOf array(detail::dtype_of(letter), rows, width);
  packed.unpack(array.data());
  return array.object();
}

}  // namespace agora
