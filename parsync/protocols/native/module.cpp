// The Python module parsync.protocols._native: one function per part.
#include <nanobind/nanobind.h>

void bind_agent_parts(nanobind::module_& module);
void bind_agent_view(nanobind::module_& module);
void bind_optimistic_agent(nanobind::module_& module);
void bind_optimistic_events(nanobind::module_& module);
void bind_pending_queue(nanobind::module_& module);
void bind_round_planner(nanobind::module_& module);
void bind_shared_demand(nanobind::module_& module);
void bind_strategies(nanobind::module_& module);
void bind_sync(nanobind::module_& module);

NB_MODULE(_native, module) {
  // have the classes of arguments
  nanobind::module_::import_("schedulers._native");
  nanobind::module_::import_("parsync.metrics._native");
  nanobind::module_::import_("parsync.core._native");
  bind_agent_parts(module);
  bind_agent_view(module);
  bind_optimistic_events(module);
  bind_pending_queue(module);
  bind_round_planner(module);
  bind_shared_demand(module);
  bind_strategies(module);
  bind_sync(module);
  bind_optimistic_agent(module);
}
