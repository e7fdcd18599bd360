"""The worker pool: runs tasks by waiting for their ends, and reports those once per heartbeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from parsync.core._native import RunningTasks
from parsync.core.addresses import MASTER
from parsync.core.effects import Effect, Send, SetTimer
from parsync.core.event import Event
from parsync.core.events import (
    AllocationsEnded,
    CommitReply,
    HeartbeatDue,
    MachinesChanged,
    Started,
    TasksCancelled,
    TasksFinished,
    TasksStarted,
)
from parsync.core.node_side import NodeSide
from parsync.metrics.record import Record
from schedulers.interface import ChangeKind
from schedulers.objective import native_columns
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog

FOREVER_US = 1 << 62


class WorkerPool:
    """Executes tasks: t, or preferred_permille/1000 of t on a preferred machine (ParSync section
    6.4). The only holder of true durations.

    duration_us: int64[n] by task id, -1 = never ends. preference: int32[n] by task id. One release
    batch per heartbeat. node_sides: the queues of protocols that have some, by protocol.
    protocol_of: the protocol of each agent.
    """

    def __init__(
        self,
        cell: CellSpec,
        catalog: PreferenceCatalog,
        preference: Int32,
        duration_us: Int64,
        preferred_permille: int,
        heartbeat_us: int,
        node_sides: Mapping[str, NodeSide],
        protocol_of: Sequence[str],
    ) -> None:
        self._tasks = RunningTasks(
            heartbeat_us,
            np.ascontiguousarray(duration_us, np.int64),
            np.ascontiguousarray(preference, np.int32),
            native_columns(catalog, cell),
            preferred_permille,
            indexed=bool(node_sides),
        )
        self._node_sides = dict(node_sides)
        self._protocol_of = tuple(protocol_of)
        self._armed_us: set[int] = set()  # when heartbeat timers that are set will fire

    @property
    def pending_ends(self) -> int:
        """Tasks whose end is still to come."""
        return len(self._tasks)

    def due_ends(self) -> tuple[Int64, Int64, Int32]:
        """Empties the pool at the end of a run: (end_us int64[n], allocation int64[n], owner
        int32[n]) of what still runs, as it would have ended."""
        end_us, allocation, owner, _ = self._tasks.take(FOREVER_US)
        return end_us, allocation, owner

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case TasksStarted():
                self.execute(event)
                if self._node_sides:
                    return self._notify(now_us, event) + self._arm(now_us)
                return self._arm(now_us)
            case HeartbeatDue():
                return self._heartbeat(now_us)
            case TasksCancelled():
                self.execute(event)
                return []
            case AllocationsEnded():
                return self._notify_ended(now_us, event)
            case Started() | MachinesChanged():
                return self._notify(now_us, event)
            case CommitReply(scheduler=scheduler):
                kind = self._protocol_of[scheduler]
                if kind in self._node_sides:
                    return self._node_sides[kind].handle(now_us, event)
            case _ if (node_side := self._node_sides.get(event.kind)) is not None:
                return node_side.handle(now_us, event)
        raise TypeError(f"worker pool cannot handle {type(event).__name__}")

    def execute(self, event: TasksStarted | TasksCancelled) -> None:
        """Start or cancel tasks without notifying the queues at the machines."""
        if isinstance(event, TasksCancelled):
            self._tasks.cancel(event.allocation)
        else:
            self._tasks.start(
                event.start_us, event.task, event.allocation, event.machine, event.owner
            )

    def finish(self, now_us: int) -> list[Record]:
        """Hand out the measurements of the protocols' queues: the pool makes none."""
        return [
            record for node_side in self._node_sides.values() for record in node_side.finish(now_us)
        ]

    def _notify(self, now_us: int, event: Event) -> list[Effect]:
        return [
            effect
            for node_side in self._node_sides.values()
            for effect in node_side.handle(now_us, event)
        ]

    def _notify_ended(self, now_us: int, event: AllocationsEnded) -> list[Effect]:
        """Notify the queues of the ends that they have not been notified of."""
        new = self._tasks.forget(event.allocation) >= 0
        if not new.any():
            return []
        ended = AllocationsEnded(
            event.change,
            event.task[new],
            event.allocation[new],
            event.machine[new],
            event.owner[new],
        )
        return self._notify(now_us, ended)

    def _heartbeat(self, now_us: int) -> list[Effect]:
        self._armed_us = {at_us for at_us in self._armed_us if at_us > now_us}
        end_us, allocation, owner, machine = self._tasks.take(now_us)
        effects: list[Effect] = []
        if len(allocation):
            effects.append(Send(MASTER, TasksFinished(allocation, owner, end_us)))
            if self._node_sides:
                task = self._tasks.forget(allocation)
                finished = int(ChangeKind.FINISHED)
                ended = AllocationsEnded(finished, task, allocation, machine, owner)
                effects += self._notify(now_us, ended)
        return effects + self._arm(now_us)

    def _arm(self, now_us: int) -> list[Effect]:
        """A timer at the earliest end's heartbeat, unless one fires no later."""
        next_us = self._tasks.next_us()
        if next_us < 0 or (self._armed_us and min(self._armed_us) <= next_us):
            return []
        at_us = max(next_us, now_us)
        self._armed_us.add(at_us)
        return [SetTimer(at_us, HeartbeatDue())]
