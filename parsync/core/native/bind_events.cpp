// The Python classes of the events that every protocol shares.
#include <nanobind/nanobind.h>

#include "bound_event.hpp"
#include "events.hpp"

namespace nb = nanobind;

void bind_events(nb::module_& module) {
  using namespace agora;
  nb::class_<Event>(module, "NativeEvent", "Base class of events that are native; see event.hpp.");
  const nb::object base = nb::module_::import_("parsync.core.event").attr("CoreEvent");
  const auto bind = [&]<class... Events>() { (bind_event<Events>(module, base), ...); };
  bind.operator()<Started, TasksSubmitted, SyncRequest, SyncReply, CommitRequest, CommitReply,
                  DecisionDone, TasksStarted, TasksCancelled, TasksFinished, TasksEnded,
                  TasksAdopted, MachinesChanged, SampleDue, HeartbeatDue, PhaseDue, ArrivalsDue,
                  MachinesDue, ClaimsSettled, AllocationsEnded, QuotaRoundDue, QuotaRequest,
                  QuotaReport, QuotaGrant, QuotaShares, RunningRequest, RunningReply>();
}
