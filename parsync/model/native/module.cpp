// The Python module parsync.model._native.
#include <nanobind/nanobind.h>

void bind_slot_simulator(nanobind::module_& module);

NB_MODULE(_native, module) { bind_slot_simulator(module); }
