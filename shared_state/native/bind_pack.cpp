// pack_columns(*arrays) -> bytes: see pack.hpp.
#include <nanobind/nanobind.h>

#include "pack_array.hpp"

namespace nb = nanobind;

namespace {

nb::bytes pack_columns(nb::args arrays) {
  std::string bytes;
  for (nb::handle array : arrays)
    if (!agora::pack_array(array.ptr(), bytes))
      throw nb::value_error(
          "pack_columns: expected arrays [n] or [n, w] of integers or bools, n < 2^32, w < 256");
  return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void bind_pack(nb::module_& module) { module.def("pack_columns", &pack_columns); }
