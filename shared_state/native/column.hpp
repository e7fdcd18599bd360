// Numpy arrays as native arguments, through the buffer protocol: cheaper than nanobind's ndarray,
// which counts when a call takes a dozen short arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

namespace agora {

// The memory of a numpy array as C-contiguous values.
//
// Arrays that are not contiguous (slices of a table's columns, one value that numpy.broadcast_to
// repeats) are copied. So native code takes every array that has the right type and shape.
class ContiguousBuffer {
 public:
  // Whether the values are only read, or written, which only the array's own memory can be.
  enum class Access { Read, Write };

  // Without memory where the array offers none, or to write where it is not contiguous or
  // read-only: valid() says so, and no Python error is set.
  explicit ContiguousBuffer(PyObject* array, Access access = Access::Read) {
    const int flags =
        PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (access == Access::Write ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(array, &buffer_, flags) == 0) {
      data_ = buffer_.buf;
      valid_ = true;
      return;
    }
    PyErr_Clear();
    if (access == Access::Write) return;
    if (PyObject_GetBuffer(array, &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      return;
    }
    const size_t size = static_cast<size_t>(buffer_.len);
    copy_ = std::make_unique<std::max_align_t[]>(size / sizeof(std::max_align_t) + 1);
    if (PyBuffer_ToContiguous(copy_.get(), &buffer_, buffer_.len, 'C') != 0) {
      PyErr_Clear();
      PyBuffer_Release(&buffer_);
      return;
    }
    data_ = copy_.get();
    valid_ = true;
  }
  ~ContiguousBuffer() {
    if (valid_) PyBuffer_Release(&buffer_);
  }
  ContiguousBuffer(const ContiguousBuffer&) = delete;
  ContiguousBuffer& operator=(const ContiguousBuffer&) = delete;

  bool valid() const { return valid_; }
  // Whether data() is a copy, and not the array's own memory.
  bool is_copy() const { return copy_ != nullptr; }
  void* data() const { return data_; }
  size_t bytes() const { return static_cast<size_t>(buffer_.len); }
  int dimensions() const { return buffer_.ndim; }
  Py_ssize_t length(int dimension) const { return buffer_.shape[dimension]; }
  size_t bytes_per_value() const { return static_cast<size_t>(buffer_.itemsize); }
  // As Python's struct module names it.
  const char* format() const { return buffer_.format; }

 private:
  Py_buffer buffer_;
  void* data_ = nullptr;
  bool valid_ = false;
  std::unique_ptr<std::max_align_t[]> copy_;
};

// An array of one type and shape. What is only read may have any strides. Throws ValueError naming
// the field if dtype or shape is another, or if what is to be written is not contiguous.
template <class T>
class Column {
  using Value = std::remove_const_t<T>;

 public:
  // Expects `length` entries, or `length` rows of `width` where width > 0. T const: read only.
  Column(nanobind::handle array, const char* field, size_t length, size_t width = 0)
      : buffer_(array.ptr(), std::is_const_v<T> ? ContiguousBuffer::Access::Read
                                                : ContiguousBuffer::Access::Write),
        size_(length) {
    if (!buffer_.valid() || !is_value() || !has_shape(length, width)) refuse(field, length, width);
  }

  T* data() const { return static_cast<T*>(buffer_.data()); }
  size_t size() const { return size_; }
  std::span<T> span() const { return {data(), size()}; }
  // Whether data() is a copy, and not the array's own memory.
  bool is_copy() const { return buffer_.is_copy(); }

 private:
  bool has_shape(size_t length, size_t width) const {
    if (buffer_.dimensions() != (width ? 2 : 1)) return false;
    return buffer_.length(0) == static_cast<Py_ssize_t>(length) &&
           (width == 0 || buffer_.length(1) == static_cast<Py_ssize_t>(width));
  }

  bool is_value() const {
    if (buffer_.bytes_per_value() != sizeof(Value) || std::strlen(buffer_.format()) != 1)
      return false;
    if constexpr (std::same_as<Value, bool>) return *buffer_.format() == '?';
    return std::strchr(std::is_signed_v<Value> ? "bhilq" : "BHILQ", *buffer_.format()) != nullptr;
  }

  [[noreturn]] static void refuse(const char* field, size_t length, size_t width) {
    const std::string type =
        std::same_as<Value, bool>
            ? "bool"
            : (std::is_signed_v<Value> ? "int" : "uint") + std::to_string(sizeof(Value) * 8);
    const std::string shape =
        "[" + std::to_string(length) + (width ? ", " + std::to_string(width) : "") + "]";
    const std::string message = std::string(field) + ": expected " +
                                (std::is_const_v<T> ? "an array " : "a contiguous array ") + type +
                                shape;
    throw nanobind::value_error(message.c_str());
  }

  ContiguousBuffer buffer_;
  size_t size_;
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

// int64[n], to be read, of any length.
inline Column<const int64_t> int64_column(nanobind::handle array, const char* field) {
  return {array, field, length_of(array, field)};
}

}  // namespace agora
