// The Python module parsync.core._native: one function per part.
#include <nanobind/nanobind.h>

void bind_encoder(nanobind::module_& module);
void bind_event_queue(nanobind::module_& module);
void bind_events(nanobind::module_& module);
void bind_running_tasks(nanobind::module_& module);

NB_MODULE(_native, module) {
  nanobind::module_::import_("shared_state._native");  // has the classes of parts of events
  bind_events(module);
  bind_encoder(module);
  bind_event_queue(module);
  bind_running_tasks(module);
}
