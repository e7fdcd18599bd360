// pack_columns(*arrays) -> bytes, and unpack_columns(bytes) -> arrays: see pack.hpp.
#include <nanobind/nanobind.h>

#include <string_view>

#include "bound_packed.hpp"

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

nb::list unpack_columns(const nb::bytes& packed) {
  agora::PackedColumns columns(std::string_view(packed.c_str(), packed.size()));
  nb::list arrays;
  while (!columns.at_end()) arrays.append(agora::array_of(columns.next()));
  return arrays;
}

}  // namespace

void bind_pack(nb::module_& module) {
  module.def("pack_columns", &pack_columns);
  module.def("unpack_columns", &unpack_columns);
}
