// The Python module parsync.metrics._native.
#include <nanobind/nanobind.h>

void bind_measurements(nanobind::module_& module);
void bind_table_fold(nanobind::module_& module);

NB_MODULE(_native, module) {
  bind_measurements(module);
  bind_table_fold(module);
}
