// Shared columns in Python: numpy arrays, read-only where the memory is native.
//
// An array given to native code is kept, not copied, if it is contiguous and of the right type. The
// array that shows a native column is a copy, made when somebody looks, and kept for the next look.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "contiguous_buffer.hpp"
#include "new_array.hpp"
#include "shared_column.hpp"

namespace agora {

// A reference to a Python object that owns memory of native code. The last reference may be dropped
// without the interpreter's lock.
inline std::shared_ptr<void> share(nanobind::handle object) {
  return {object.inc_ref().ptr(), [](void* held) {
            const nanobind::gil_scoped_acquire locked;
            Py_DECREF(static_cast<PyObject*>(held));
          }};
}

namespace detail {

inline nanobind::handle dtype_of(char letter) {
  static constexpr char letters[] = "?bBhHiIqQ";
  static const std::array<nanobind::handle, sizeof(letters)> dtypes = [] {
    std::array<nanobind::handle, sizeof(letters)> named;
    for (size_t i = 0; letters[i]; ++i) named[i] = dtype_named(name_of(letters[i]));
    return named;
  }();
  return dtypes[static_cast<size_t>(std::strchr(letters, letter) - letters)];
}

// The letter of a buffer's type; 0 if it is none of a column.
inline char letter_of_format(const char* format) {
  if (!format || std::strlen(format) != 1) return 0;
  const char letter = *format == 'l' ? 'q' : *format == 'L' ? 'Q' : *format;
  return std::strchr("?bBhHiIqQ", letter) ? letter : '\0';
}

// numpy's arrays: their memory stays where it is for as long as they live. (Whoever resizes one by
// force, with refcheck=False, breaks that.)
inline bool is_array(nanobind::handle value) {
  static const nanobind::handle type =
      nanobind::object(nanobind::module_::import_("numpy").attr("ndarray")).release();
  return PyObject_TypeCheck(value.ptr(), reinterpret_cast<PyTypeObject*>(type.ptr()));
}

// The array as a column, its memory kept alive; false, with no Python error, if it is no contiguous
// array of integers [n] or [n, w].
inline bool borrow_array(nanobind::handle array, AnyColumn& column) {
  if (!is_array(array)) return false;
  const ContiguousBuffer buffer(array.ptr(), ContiguousBuffer::Access::Read);
  if (!buffer.valid() || buffer.is_copy()) return false;
  const char letter = letter_of_format(buffer.format());
  const int dimensions = buffer.dimensions();
  if (!letter || dimensions < 1 || dimensions > 2) return false;
  const auto rows = static_cast<size_t>(buffer.length(0));
  const size_t width = dimensions == 2 ? static_cast<size_t>(buffer.length(1)) : 0;
  if (dimensions == 2 && width == 0) return false;
  std::shared_ptr<void> owner = share(array);
  column = AnyColumn(letter, rows, width, buffer.data(), owner);
  column.face() = std::move(owner);
  return true;
}

[[noreturn]] inline void refuse_column(const char* field, char letter, bool table) {
  const std::string type = letter ? " " + name_of(letter) : " of integers ";
  const std::string shape = table ? "[n, width]" : letter ? "[n]" : "[n] or [n, width]";
  throw nanobind::value_error((std::string(field) + ": expected an array" + type + shape).c_str());
}

// An array of another layout as a contiguous one.
inline nanobind::object contiguous(nanobind::handle array) {
  static const nanobind::handle convert =
      nanobind::object(nanobind::module_::import_("numpy").attr("ascontiguousarray")).release();
  if (!is_array(array) || nanobind::cast<int>(array.attr("ndim")) == 0)
    return nanobind::borrow(array);
  return convert(array);
}

}  // namespace detail

// A column of the type `letter`, of one dimension or two. Throws ValueError naming the field for
// anything else.
inline AnyColumn column_from(nanobind::handle value, const char* field, char letter, bool table) {
  AnyColumn column;
  if ((detail::borrow_array(value, column) ||
       detail::borrow_array(detail::contiguous(value), column)) &&
      column.letter() == letter && column.is_table() == table)
    return column;
  detail::refuse_column(field, letter, table);
}

// A column of the array's own type, of one dimension or two. Errors as above.
inline AnyColumn column_from(nanobind::handle value, const char* field) {
  AnyColumn column;
  if (detail::borrow_array(value, column) ||
      detail::borrow_array(detail::contiguous(value), column))
    return column;
  detail::refuse_column(field, 0, false);
}

// The array that shows a column.
inline nanobind::object array_of(const AnyColumn& column) {
  if (!column.face()) {
    const NewArrayOf array(detail::dtype_of(column.letter()), column.rows(), column.width());
    if (column.bytes()) {  // (numpy cannot permute an empty array that is read-only)
      std::memcpy(array.data(), column.values(), column.bytes());
      static const nanobind::handle name = nanobind::str("setflags").release();
      static const nanobind::handle write = nanobind::str("write").release();
      PyObject* const arguments[] = {array.object().ptr(), Py_False};
      static const nanobind::handle keyword = nanobind::make_tuple(write).release();
      const nanobind::object done =
          nanobind::steal(PyObject_VectorcallMethod(name.ptr(), arguments, 1, keyword.ptr()));
      if (!done.is_valid()) throw nanobind::python_error();
    }
    column.face() = share(array.object());
  }
  return nanobind::borrow(static_cast<PyObject*>(column.face().get()));
}

}  // namespace agora
