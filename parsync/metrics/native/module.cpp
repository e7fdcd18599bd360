// The Python module parsync.metrics._native.
#include <nanobind/nanobind.h>

void bind_measurements(nanobind::module_& module);
void bind_observers(nanobind::module_& module);
void bind_table_fold(nanobind::module_& module);

NB_MODULE(_native, module) {
  nanobind::module_::import_("shared_state._native");  // has the classes of arguments
  nanobind::module_::import_("schedulers._native");
  bind_measurements(module);
  bind_observers(module);
  bind_table_fold(module);
}
