// The Python module parsync.core._native: one function per part.
#include <nanobind/nanobind.h>

void bind_actor_loop(nanobind::module_& module);
void bind_cell_loop(nanobind::module_& module);
void bind_encoder(nanobind::module_& module);
void bind_event_queue(nanobind::module_& module);
void bind_events(nanobind::module_& module);
void bind_participants(nanobind::module_& module);
void bind_queue_parts(nanobind::module_& module);

NB_MODULE(_native, module) {
  // these have the classes of arguments and of parts of events
  for (const char* name : {"shared_state._native", "schedulers._native", "parsync.metrics._native"})
    nanobind::module_::import_(name);
  bind_events(module);
  bind_encoder(module);
  bind_event_queue(module);
  bind_actor_loop(module);
  bind_cell_loop(module);
  bind_participants(module);
  bind_queue_parts(module);
}
