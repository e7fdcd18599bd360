// The Python module parsync.core._native: one function per part.

#include <nanobind/nanobind.h>

#include "bound_participant.hpp"
#include "events.hpp"

void bind_actor_loop(nanobind::module_& module);
void bind_cell_loop(nanobind::module_& module);
void bind_encoder(nanobind::module_& module);
void bind_event_queue(nanobind::module_& module);
void bind_participants(nanobind::module_& module);
void bind_queue_parts(nanobind::module_& module);

namespace {

// The Python classes of the events that every protocol shares.
void bind_events(nanobind::module_& module) {
  using namespace agora;
  nanobind::class_<Event>(module, "NativeEvent",
                          "Base class of events that are native; see event.hpp.");
  const nanobind::object base = nanobind::module_::import_("parsync.core.event").attr("CoreEvent");
  const auto bind = [&]<class... Events>() { (bind_event<Events>(module, base), ...); };
  bind.operator()<Started, TasksSubmitted, SyncRequest, SyncReply, CommitRequest, CommitReply,
                  DecisionDone, TasksStarted, TasksCancelled, TasksFinished, TasksEnded,
                  TasksAdopted, MachinesChanged, SampleDue, HeartbeatDue, PhaseDue, ArrivalsDue,
                  MachinesDue, ClaimsSettled, AllocationsEnded, QuotaRoundDue, QuotaRequest,
                  QuotaReport, QuotaGrant, QuotaShares, RunningRequest, RunningReply, HoldRequest,
                  HoldReply, HoldsReleased, HoldsEnded, RoomFreed>();
}

}  // namespace

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
