// The Python module parsync.metrics._native.
#include <nanobind/nanobind.h>

void bind_measurements(nanobind::module_& module);

NB_MODULE(_native, module) { bind_measurements(module); }
