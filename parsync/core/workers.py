"""The worker pool: runs tasks by waiting for their ends, and reports those once per heartbeat."""

from __future__ import annotations

import numpy as np

from parsync.core._native import TimerWheel
from parsync.core.events import (
    MASTER,
    Effect,
    Event,
    Send,
    SetTimer,
    Started,
    TasksCancelled,
    TasksFinished,
    TasksStarted,
    Timer,
    TimerFired,
)
from schedulers.objective import placement_cost
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog

FOREVER_US = 1 << 62


class WorkerPool:
    """Executes tasks: t, or preferred_permille/1000 of t on a preferred machine (ParSync section 6.4). The only holder of true durations.

    duration_us: int64[n] by task id, -1 = never ends. preference: int32[n] by task id. One release batch per heartbeat.
    """

    def __init__(
        self,
        cell: CellSpec,
        catalog: PreferenceCatalog,
        preference: Int32,
        duration_us: Int64,
        preferred_permille: int,
        heartbeat_us: int,
    ) -> None:
        self._rack = cell.rack
        self._catalog = catalog
        self._preference = preference
        self._duration_us = duration_us
        self._preferred_permille = preferred_permille
        self._heartbeat_us = heartbeat_us
        self._wheel = TimerWheel(heartbeat_us)
        self._armed_us: set[int] = set()  # when heartbeat timers that are set will fire

    @property
    def pending_ends(self) -> int:
        """Tasks whose end is still to come."""
        return len(self._wheel)

    def due_ends(self) -> tuple[Int64, Int64, Int32]:
        """Empties the pool at the end of a run: (end_us int64[n], allocation int64[n], owner int32[n]) of what still runs, as it would have ended."""
        return self._wheel.take(FOREVER_US)

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case TasksStarted():
                return self._start(now_us, event)
            case TimerFired(timer=Timer.HEARTBEAT):
                return self._heartbeat(now_us)
            case TasksCancelled():
                self._wheel.cancel(event.allocation)
                return []
            case Started():
                return []
        raise TypeError(f"worker pool cannot handle {type(event).__name__}")

    def _start(self, now_us: int, event: TasksStarted) -> list[Effect]:
        duration_us = self._duration_us[event.task]
        if self._catalog.sets > 1 and self._preferred_permille != 1000:
            _, preferred = placement_cost(self._catalog, self._rack, self._preference[event.task], event.machine)
            shortened = duration_us * self._preferred_permille // 1000
            duration_us = np.where(preferred & (duration_us >= 0), shortened, duration_us)
        ends = duration_us >= 0
        if ends.all():
            self._wheel.add(event.start_us + duration_us, event.allocation, event.owner)
        else:
            self._wheel.add(event.start_us + duration_us[ends], event.allocation[ends], event.owner[ends])
        return self._arm(now_us)

    def _heartbeat(self, now_us: int) -> list[Effect]:
        self._armed_us = {at_us for at_us in self._armed_us if at_us > now_us}
        end_us, allocation, owner = self._wheel.take(now_us)
        effects: list[Effect] = []
        if len(allocation):
            effects.append(Send(MASTER, TasksFinished(allocation, owner, end_us)))
        return effects + self._arm(now_us)

    def _arm(self, now_us: int) -> list[Effect]:
        """A timer at the earliest end's heartbeat, unless one fires no later."""
        next_us = self._wheel.next_us()
        if next_us < 0 or any(at_us <= next_us for at_us in self._armed_us):
            return []
        at_us = max(next_us, now_us)
        self._armed_us.add(at_us)
        return [SetTimer(at_us, Timer.HEARTBEAT, 0)]
