// pack.hpp for numpy arrays, through the buffer protocol.
#pragma once

#include <Python.h>

#include <cstring>
#include <limits>
#include <string>

#include "pack.hpp"

namespace agora {

// Appends the packed form of a C-contiguous integer or bool array [n] or [n, w], n < 2^32, w < 256.
// Returns false, with no Python error set and `bytes` as it was, for anything else.
inline bool pack_array(PyObject* array, std::string& bytes) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(array, &buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return false;
  }
  const struct Release {
    Py_buffer* buffer;
    ~Release() { PyBuffer_Release(buffer); }
  } release{&buffer};
  const bool shaped =
      buffer.ndim == 1 || (buffer.ndim == 2 && buffer.shape[1] > 0 && buffer.shape[1] < 256);
  if (!shaped || buffer.shape[0] > std::numeric_limits<uint32_t>::max() ||
      std::strlen(buffer.format) != 1)
    return false;
  const char letter = *buffer.format == 'l' ? 'q' : *buffer.format == 'L' ? 'Q' : *buffer.format;
  const ColumnShape shape{letter, static_cast<uint8_t>(buffer.ndim == 2 ? buffer.shape[1] : 0),
                          static_cast<uint32_t>(buffer.shape[0])};
  const auto pack = [&]<class T>(T) {
    pack_column(static_cast<const T*>(buffer.buf), shape, bytes);
    return true;
  };
  switch (letter) {
    case 'b':
      return pack(int8_t{});
    case 'B':
    case '?':
      return pack(uint8_t{});
    case 'h':
      return pack(int16_t{});
    case 'H':
      return pack(uint16_t{});
    case 'i':
      return pack(int32_t{});
    case 'I':
      return pack(uint32_t{});
    case 'q':
      return pack(int64_t{});
    case 'Q':
      return pack(uint64_t{});
    default:
      return false;
  }
}

}  // namespace agora
