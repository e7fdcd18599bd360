"""What the parts of a protocol that watch the cell do alike: queues at the machines, and
participants beside the master."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import AllocationsEnded, MachinesChanged, Started, TasksStarted
from schedulers.interface import ChangeKind
from shared_state.tasks import Int32, Int64


class CellWatcher(ABC):
    """A part of a protocol that is notified of every start, end and machine change on the cell. A
    subclass says what it does with the events of its protocol (on_event), and overrides the other
    handlers as it needs them.

    The columns have a row per task, of any agent: task and allocation int64[n], machine int32[n],
    owner int32[n] (the agent). Tasks that run at time 0 start then; machines are up at time 0.
    """

    @abstractmethod
    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        """Handle an event of the protocol, or a timer that it set."""

    def on_started(self, now_us: int) -> list[Effect]:
        """Set timers, at the start of the run and after each restart of the cell."""
        return []

    def on_tasks_started(
        self, now_us: int, task: Int64, allocation: Int64, machine: Int32, owner: Int32
    ) -> list[Effect]:
        """Handle the start of tasks."""
        return []

    def on_tasks_ended(
        self,
        now_us: int,
        change: ChangeKind,
        task: Int64,
        allocation: Int64,
        machine: Int32,
        owner: Int32,
    ) -> list[Effect]:
        """Handle the end of tasks, which finished, were evicted, or lost their machine."""
        return []

    def on_machines_changed(
        self, now_us: int, machine: Int32, up: NDArray[np.bool_]
    ) -> list[Effect]:
        """Handle machines that come up or go down, int32[n] and bool[n]. The tasks on those that go
        down end after this."""
        return []

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case TasksStarted(_, task, allocation, machine, owner):
                return self.on_tasks_started(now_us, task, allocation, machine, owner)
            case AllocationsEnded(change, task, allocation, machine, owner):
                kind = ChangeKind(change)
                return self.on_tasks_ended(now_us, kind, task, allocation, machine, owner)
            case MachinesChanged(machine, up):
                return self.on_machines_changed(now_us, machine, up)
            case Started():
                return self.on_started(now_us)
        return self.on_event(now_us, event)
