// The Python module shared_state._native: one function per part.
#include <nanobind/nanobind.h>

#ifdef AGORA_HAVE_CELL
void bind_cell(nanobind::module_& module);
void bind_pack(nanobind::module_& module);
#endif
#ifdef AGORA_HAVE_VIEW
void bind_view(nanobind::module_& module);
void bind_random(nanobind::module_& module);
#endif

NB_MODULE(_native, module) {
#ifdef AGORA_HAVE_CELL
    bind_cell(module);
    bind_pack(module);
#endif
#ifdef AGORA_HAVE_VIEW
    bind_view(module);
    bind_random(module);
#endif
}
