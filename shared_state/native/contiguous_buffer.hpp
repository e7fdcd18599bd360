// The memory of a numpy array as C-contiguous values, through the buffer protocol.
//
// Arrays that are not contiguous (slices of a table's columns, one value that numpy.broadcast_to
// repeats) are copied. So native code takes every array that has the right type and shape.
#pragma once

#include <Python.h>

#include <cstddef>
#include <memory>

namespace agora {

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

}  // namespace agora
