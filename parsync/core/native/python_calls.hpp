// Calls of Python from loops that make many.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace agora {

// Calls `callable` with these arguments.
template <class... Arguments>
nanobind::object call(nanobind::handle callable, const Arguments&... arguments) {
  PyObject* const columns[] = {nullptr, arguments.ptr()...};
  PyObject* result = PyObject_Vectorcall(
      callable.ptr(), columns + 1, sizeof...(Arguments) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  if (!result) throw nanobind::python_error();
  return nanobind::steal(result);
}

inline nanobind::object number(int64_t value) {
  PyObject* result = PyLong_FromLongLong(value);
  if (!result) throw nanobind::python_error();
  return nanobind::steal(result);
}

}  // namespace agora
