// The Python module shared_state._native: one function per part.
#include <nanobind/nanobind.h>

void bind_cell(nanobind::module_& module);
void bind_pack(nanobind::module_& module);
void bind_view(nanobind::module_& module);
void bind_random(nanobind::module_& module);

NB_MODULE(_native, module) {
  bind_cell(module);
  bind_pack(module);
  bind_view(module);
  bind_random(module);
}
