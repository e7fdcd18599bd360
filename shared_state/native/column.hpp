// Numpy arrays as native arguments, through the buffer protocol: cheaper than nanobind's ndarray,
// which counts when a call takes a dozen short arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

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

// NewArray<T>: an array for native code to fill and hand to Python. numpy itself makes it, which
// takes half the time of nanobind's ndarray.

// An array of numpy.empty: [rows], or [rows, width] where width > 0.
class NewArrayOf {
 public:
  NewArrayOf(nanobind::handle dtype, size_t rows, size_t width = 0) {
    static const nanobind::object* const empty =
        new nanobind::object(nanobind::module_::import_("numpy").attr("empty"));
    const nanobind::object length = number(rows);
    const nanobind::object shape = width ? nanobind::make_tuple(length, width) : length;
    PyObject* const arguments[] = {nullptr, shape.ptr(), dtype.ptr()};
    object_ = nanobind::steal(PyObject_Vectorcall(empty->ptr(), arguments + 1,
                                                  2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (!object_.is_valid()) throw nanobind::python_error();
    Py_buffer buffer;
    if (PyObject_GetBuffer(object_.ptr(), &buffer, PyBUF_WRITABLE) != 0)
      throw nanobind::python_error();
    data_ = buffer.buf;  // the array's own memory, which stays where it is
    PyBuffer_Release(&buffer);
  }

  const nanobind::object& object() const { return object_; }
  void* data() const { return data_; }

 private:
  static nanobind::object number(size_t value) {
    nanobind::object result = nanobind::steal(PyLong_FromSize_t(value));
    if (!result.is_valid()) throw nanobind::python_error();
    return result;
  }

  nanobind::object object_;
  void* data_ = nullptr;
};

// numpy's dtype of that name, e.g. "int64". Kept for good.
inline nanobind::handle dtype_named(const std::string& name) {
  return nanobind::module_::import_("numpy").attr("dtype")(name.c_str()).release();
}

template <class T>
class NewArray : public NewArrayOf {
 public:
  explicit NewArray(size_t rows, size_t width = 0)
      : NewArrayOf(dtype(), rows, width), size_(rows * (width ? width : 1)) {}

  T* data() const { return static_cast<T*>(NewArrayOf::data()); }
  std::span<T> span() const { return {data(), size_}; }

 private:
  static nanobind::handle dtype() {
    static const nanobind::handle kept =
        dtype_named(std::is_same_v<T, bool>
                        ? "bool"
                        : (std::is_signed_v<T> ? "int" : "uint") + std::to_string(sizeof(T) * 8));
    return kept;
  }

  size_t size_;
};

// Native values as an array of their own. width: 0, or how many values a row has.
template <class T>
nanobind::object array_of(std::span<const T> values, size_t width = 0) {
  const NewArray<T> array(width ? values.size() / width : values.size(), width);
  std::copy(values.begin(), values.end(), array.data());
  return array.object();
}
template <class T>
nanobind::object array_of(const std::vector<T>& values, size_t width = 0) {
  return array_of(std::span<const T>(values), width);
}

// The names of an enum as a Python list, by value: what a test holds the enum's Python twin
// against.
template <typename Names>
nanobind::list bound_names(const Names& names) {
  nanobind::list list;
  for (const char* name : names) list.append(name);
  return list;
}

}  // namespace agora
