// The Python module schedulers._native: one function per part. The view's type comes from
// shared_state._native, which must be imported first.
#include <nanobind/nanobind.h>

void bind_claimable(nanobind::module_& module);
void bind_flow_placements(nanobind::module_& module);
void bind_flow_units(nanobind::module_& module);
void bind_optimum(nanobind::module_& module);
void bind_place(nanobind::module_& module);
void bind_plan_check(nanobind::module_& module);
void bind_planner(nanobind::module_& module);
void bind_prices(nanobind::module_& module);
void bind_slot_segments(nanobind::module_& module);
void bind_task_table(nanobind::module_& module);

NB_MODULE(_native, module) {
  nanobind::module_::import_("shared_state._native");
  bind_claimable(module);
  bind_flow_placements(module);
  bind_flow_units(module);
  bind_optimum(module);
  bind_place(module);
  bind_plan_check(module);
  bind_planner(module);
  bind_prices(module);
  bind_slot_segments(module);
  bind_task_table(module);
}
