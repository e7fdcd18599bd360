// The Python module shared_state._native: one function per part.
#include <nanobind/nanobind.h>

void bind_cell(nanobind::module_& module);
void bind_fit(nanobind::module_& module);
void bind_observed_cell(nanobind::module_& module);
void bind_pack(nanobind::module_& module);
void bind_transaction(nanobind::module_& module);
void bind_view(nanobind::module_& module);
void bind_random(nanobind::module_& module);

NB_MODULE(_native, module) {
  // What a user's module still holds when the interpreter ends (an event in a cache, say) is no
  // leak to tell him of.
  nanobind::set_leak_warnings(false);
  bind_cell(module);
  bind_fit(module);
  bind_pack(module);
  bind_transaction(module);
  bind_observed_cell(module);
  bind_view(module);
  bind_random(module);
}
