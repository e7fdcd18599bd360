// Column<T>: a C-contiguous numpy array as a native argument, through the buffer protocol: cheaper
// than nanobind's ndarray, which counts when a call takes a dozen short arrays. Throws ValueError
// naming the field if dtype, shape or layout is another.
#pragma once

#include <nanobind/nanobind.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace agora {

template <class T>
class Column {
  using Value = std::remove_const_t<T>;

 public:
  // Expects `length` entries, or `length` rows of `width` where width > 0. T const: read only.
  Column(nanobind::handle array, const char* field, size_t length, size_t width = 0) {
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (std::is_const_v<T> ? 0 : PyBUF_WRITABLE);
    if (PyObject_GetBuffer(array.ptr(), &buffer_, flags) != 0) {
      PyErr_Clear();
      refuse(field, length, width);
    }
    const bool shaped =
        width ? buffer_.ndim == 2 && buffer_.shape[1] == static_cast<Py_ssize_t>(width)
              : buffer_.ndim == 1;
    if (!shaped || buffer_.shape[0] != static_cast<Py_ssize_t>(length) || !is_value(buffer_)) {
      PyBuffer_Release(&buffer_);
      refuse(field, length, width);
    }
  }
  ~Column() { PyBuffer_Release(&buffer_); }
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;

  T* data() const { return static_cast<T*>(buffer_.buf); }
  size_t size() const { return static_cast<size_t>(buffer_.shape[0]); }
  std::span<T> span() const { return {data(), size()}; }

 private:
  static bool is_value(const Py_buffer& buffer) {
    if (buffer.itemsize != static_cast<Py_ssize_t>(sizeof(Value)) ||
        std::strlen(buffer.format) != 1)
      return false;
    if constexpr (std::same_as<Value, bool>) return *buffer.format == '?';
    return std::strchr(std::is_signed_v<Value> ? "bhilq" : "BHILQ", *buffer.format) != nullptr;
  }

  [[noreturn]] static void refuse(const char* field, size_t length, size_t width) {
    const std::string dtype =
        std::same_as<Value, bool>
            ? "bool"
            : (std::is_signed_v<Value> ? "int" : "uint") + std::to_string(sizeof(Value) * 8);
    const std::string shape =
        "[" + std::to_string(length) + (width ? ", " + std::to_string(width) : "") + "]";
    const std::string message =
        std::string(field) + ": expected a contiguous " + dtype + shape + " array";
    throw nanobind::value_error(message.c_str());
  }

  Py_buffer buffer_;
};

// The length of a sequence such as a numpy array.
inline size_t length_of(nanobind::handle array, const char* field) {
  const Py_ssize_t length = PyObject_Size(array.ptr());
  if (length < 0) {
    PyErr_Clear();
    throw nanobind::value_error((std::string(field) + ": expected an array").c_str());
  }
  return static_cast<size_t>(length);
}

}  // namespace agora
