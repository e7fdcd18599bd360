// Python's access to fit.hpp (shared_state.tasks.fits).
#include <nanobind/nanobind.h>

#include "column.hpp"
#include "fit.hpp"
#include "new_array.hpp"

namespace nb = nanobind;

namespace {

using Amounts = agora::Column<const int64_t>;

// Whether one request, int64[R], fits each row of `free`, int64[n, R]: bool[n].
nb::object fits_rows(nb::handle request, nb::handle free) {
  const size_t dimensions = agora::length_of(request, "request");
  const Amounts wanted(request, "request", dimensions);
  const Amounts rows(free, "free", agora::length_of(free, "free"), dimensions);
  const agora::NewArray<bool> fit(rows.size());
  agora::fits_rows(wanted.data(), rows.data(), dimensions, fit.span());
  return fit.object();
}

// Whether each request fits what is free in its row, int64[n, R] both: bool[n].
nb::object fits_each(nb::handle request, nb::handle free, size_t dimensions) {
  const size_t n = agora::length_of(request, "request");
  const Amounts wanted(request, "request", n, dimensions), rows(free, "free", n, dimensions);
  const agora::NewArray<bool> fit(n);
  for (size_t i = 0; i < n; ++i)
    fit.data()[i] =
        agora::fits_in(wanted.data() + i * dimensions, rows.data() + i * dimensions, dimensions);
  return fit.object();
}

}  // namespace

void bind_fit(nb::module_& module) {
  module.def("fits_rows", &fits_rows);
  module.def("fits_each", &fits_each);
}
