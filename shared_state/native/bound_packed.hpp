// Packed columns (pack.hpp) of numpy arrays, and as arrays of their own.
#pragma once

#include <nanobind/nanobind.h>

#include <cstring>
#include <limits>
#include <string>

#include "bound_fields.hpp"
#include "column.hpp"
#include "new_array.hpp"
#include "pack.hpp"

namespace agora {

// Appends the packed form of an integer or bool array [n] or [n, w], n < 2^32, w < 256. Returns
// false, with no Python error set and `bytes` as it was, for anything else.
inline bool pack_array(PyObject* array, std::string& bytes) {
  const ContiguousBuffer buffer(array);
  if (!buffer.valid()) return false;
  const bool table = buffer.dimensions() == 2;
  const bool shaped =
      buffer.dimensions() == 1 || (table && buffer.length(1) > 0 && buffer.length(1) < 256);
  if (!shaped || buffer.length(0) > std::numeric_limits<uint32_t>::max() ||
      std::strlen(buffer.format()) != 1)
    return false;
  const char code = *buffer.format();
  const char letter = code == 'l' ? 'q' : code == 'L' ? 'Q' : code;
  const ColumnShape shape{letter, static_cast<uint8_t>(table ? buffer.length(1) : 0),
                          static_cast<uint32_t>(buffer.length(0))};
  return pack_column(buffer.data(), shape, bytes);
}

// A packed column as an array of its own.
inline nanobind::object array_of(const PackedColumn& packed) {
  const auto& [letter, width, rows] = packed.shape;
  const NewArrayOf array(detail::dtype_of(letter), rows, width);
  packed.unpack(array.data());
  return array.object();
}

}  // namespace agora
