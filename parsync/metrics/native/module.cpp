// The Python module parsync.metrics._native.
#include <nanobind/nanobind.h>

void bind_conflict_causes(nanobind::module_& module);
void bind_measurements(nanobind::module_& module);
void bind_regret(nanobind::module_& module);
void bind_table_fold(nanobind::module_& module);

NB_MODULE(_native, module) {
  nanobind::module_::import_("shared_state._native");  // has the classes of arguments
  nanobind::module_::import_("schedulers._native");
  bind_conflict_causes(module);
  bind_measurements(module);
  bind_regret(module);
  bind_table_fold(module);
}
