// The Python module parsync.protocols._native: one function per part.
#include <nanobind/nanobind.h>

void bind_round_planner(nanobind::module_& module);

NB_MODULE(_native, module) {
  // have the classes of arguments
  nanobind::module_::import_("schedulers._native");
  nanobind::module_::import_("parsync.metrics._native");
  bind_round_planner(module);
}
