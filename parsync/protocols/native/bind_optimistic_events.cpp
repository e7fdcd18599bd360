// The Python classes of the optimistic protocol's events.
#include <nanobind/nanobind.h>

#include "optimistic_events.hpp"
#include "parsync/core/native/bound_event.hpp"

namespace nb = nanobind;

void bind_optimistic_events(nb::module_& module) {
  using namespace agora::optimistic;
  const nb::object base =
      nb::module_::import_("parsync.protocols.optimistic.event").attr("OptimisticEvent");
  const auto bind = [&]<class... Events>() { (agora::bind_event<Events>(module, base), ...); };
  bind.
  operator()<SyncDue, RequeueDue, RetryDue, RoundDue, DemandReport, DemandRequest, DemandReply>();
}
