// pack.hpp for numpy arrays, through the buffer protocol.
#pragma once

#include <cstring>
#include <limits>
#include <string>

#include "contiguous_buffer.hpp"
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

}  // namespace agora
