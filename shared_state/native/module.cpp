// The Python module shared_state._native: one function per part.
#include <nanobind/nanobind.h>

#include <string_view>

#include "bound_fields.hpp"

namespace nb = nanobind;

void bind_cell(nb::module_& module);
void bind_fit(nb::module_& module);
void bind_observed_cell(nb::module_& module);
void bind_random(nb::module_& module);
void bind_transaction(nb::module_& module);
void bind_view(nb::module_& module);

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

NB_MODULE(_native, module) {
  // What a user's module still holds when the interpreter ends (an event in a cache, say) is no
  // leak to tell him of.
  nb::set_leak_warnings(false);
  bind_cell(module);
  bind_fit(module);
  module.def(
      "pack_columns", &pack_columns,
      "Integer or bool arrays of one or two dimensions as few bytes (pack.hpp). ValueError for "
      "others.");
  module.def(
      "unpack_columns", &unpack_columns,
      "The arrays that pack_columns was given, equal in dtype, shape and values. ValueError if "
      "the bytes are not such.");
  bind_transaction(module);
  bind_observed_cell(module);
  bind_view(module);
  bind_random(module);
}
