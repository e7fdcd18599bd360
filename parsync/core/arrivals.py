"""The source of tasks and machine events: an open-loop participant that never waits for the
cell."""

from __future__ import annotations

import numpy as np

from parsync.core.addresses import MASTER
from parsync.core.effects import Effect, Send, SetTimer
from parsync.core.event import Event
from parsync.core.events import ArrivalsDue, MachinesChanged, MachinesDue, Started, TasksSubmitted
from parsync.metrics.measurements import Measurements
from parsync.metrics.record import Record
from shared_state.tasks import Int32, Int64, TaskBatch

FLUSH_BATCHES = 64  # submissions are recorded in bundles of about this many


class ArrivalSource:
    """Submits batch b (rows arrival_rows[offsets[b]:offsets[b+1]]) to agent_of_batch[b] at
    arrival_us[b], and machine changes at their times.

    Args:
        table: Every task (row = id).
        arrival_us: int64[B], ascending.
        machine_at_us, machine, machine_up: The machine changes: int64[k] ascending, int32[k],
            bool[k].
    """

    def __init__(
        self,
        table: TaskBatch,
        arrival_us: Int64,
        arrival_offsets: Int64,
        arrival_rows: Int64,
        agent_of_batch: Int32,
        machine_at_us: Int64,
        machine: Int32,
        machine_up: np.ndarray,
    ) -> None:
        self._records = Measurements()
        prefers = np.concatenate([[0], np.cumsum(table.preference[arrival_rows] > 0)])
        # by batch: the columns of the table "submissions"
        self._submissions = (
            agent_of_batch,
            table.job[arrival_rows[arrival_offsets[:-1]]],
            arrival_us,
            np.diff(arrival_offsets),
            np.diff(prefers[arrival_offsets]),
        )
        self._arrival_us = arrival_us
        self._offsets = arrival_offsets
        self._agent = agent_of_batch
        self._rows = arrival_rows
        self._machine_at_us = machine_at_us
        self._machine = machine
        self._machine_up = machine_up
        self._next_batch = 0
        self._next_machine = 0

    @property
    def exhausted(self) -> bool:
        """Whether all batches are submitted (machine events may still come)."""
        return self._next_batch >= len(self._arrival_us)

    @property
    def submitted(self) -> int:
        """The number of tasks submitted so far."""
        return int(self._offsets[self._next_batch])

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case ArrivalsDue():
                return self._submit(now_us)
            case MachinesDue():
                return self._change_machines(now_us)
            case Started():
                return self._arm_arrivals() + self._arm_machines()
        raise TypeError(f"arrival source cannot handle {type(event).__name__}")

    def _submit(self, now_us: int) -> list[Effect]:
        first = self._next_batch
        end = first
        while end < len(self._arrival_us) and self._arrival_us[end] <= now_us:
            end += 1
        if end == first:
            return self._arm_arrivals()
        self._next_batch = end
        columns = (column[first:end] for column in self._submissions)
        self._records.add("submissions", end - first, *columns)
        effects: list[Effect] = [
            Send(
                int(self._agent[b]),
                TasksSubmitted(self._rows[self._offsets[b] : self._offsets[b + 1]]),
            )
            for b in range(first, end)
        ]
        if first // FLUSH_BATCHES != end // FLUSH_BATCHES:
            effects += self._records.flush()
        return effects + self._arm_arrivals()

    def finish(self, now_us: int) -> list[Record]:
        """The measurements not yet handed out, at the end of a run."""
        return self._records.flush()

    def _change_machines(self, now_us: int) -> list[Effect]:
        first = self._next_machine
        end = int(np.searchsorted(self._machine_at_us, now_us, side="right"))
        self._next_machine = max(first, end)
        effects: list[Effect] = []
        if end > first:
            effects.append(
                Send(MASTER, MachinesChanged(self._machine[first:end], self._machine_up[first:end]))
            )
        return effects + self._arm_machines()

    def _arm_arrivals(self) -> list[Effect]:
        if self.exhausted:
            return []
        return [SetTimer(int(self._arrival_us[self._next_batch]), ArrivalsDue(self._next_batch))]

    def _arm_machines(self) -> list[Effect]:
        if self._next_machine >= len(self._machine_at_us):
            return []
        return [
            SetTimer(int(self._machine_at_us[self._next_machine]), MachinesDue(self._next_machine))
        ]
