// NewArray<T>: an array for native code to fill and hand to Python. numpy itself makes it, which
// takes half the time of nanobind's ndarray.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace agora {

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

}  // namespace agora
