// The Python module schedulers._native: one function per part. The view's type comes from
// shared_state._native, which must be imported first.
#include <nanobind/nanobind.h>

void bind_flow(nanobind::module_& module);
void bind_place(nanobind::module_& module);
void bind_prices(nanobind::module_& module);
void bind_score(nanobind::module_& module);

NB_MODULE(_native, module) {
  nanobind::module_::import_("shared_state._native");
  bind_place(module);
  bind_prices(module);
  bind_flow(module);
  bind_score(module);
}
