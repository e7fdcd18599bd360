// The Python module parsync.core._native: one function per part.
#include <nanobind/nanobind.h>

void bind_encoder(nanobind::module_& module);
void bind_event_queue(nanobind::module_& module);
void bind_queue_parts(nanobind::module_& module);
void bind_running_tasks(nanobind::module_& module);

NB_MODULE(_native, module) {
  bind_encoder(module);
  bind_event_queue(module);
  bind_queue_parts(module);
  bind_running_tasks(module);
}
