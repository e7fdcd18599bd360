"""The source of tasks and machine events: an open-loop participant that never waits for the cell.

It is native (native/arrivals.cpp). Groups of agents own shares or classes of the workload by hash
of the job; the agents of a group take its jobs in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parsync.core import _native
from parsync.metrics.record import Measurements, Record
from shared_state.errors import AgoraError
from shared_state.random import hash64, stream_key
from shared_state.tasks import Int32, Int64, TaskBatch, TaskClass


class ArrivalSource(_native.ArrivalSource):
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
        super().__init__(
            arrival_us,
            arrival_offsets,
            arrival_rows,
            agent_of_batch,
            table.job[arrival_rows[arrival_offsets[:-1]]],
            np.diff(prefers[arrival_offsets]),
            machine_at_us,
            machine,
            machine_up,
            self._records,
        )

    def finish(self, now_us: int) -> list[Record]:
        """The measurements not yet handed out, at the end of a run."""
        return self._records.flush()


@dataclass(frozen=True, slots=True)
class Route:
    """A group of agents [first_agent, first_agent + agents) that owns share_permille of the jobs of
    task_class (None: of every class)."""

    name: str
    first_agent: int
    agents: int
    share_permille: int
    task_class: TaskClass | None


def route_jobs(routes: Sequence[Route], job: Int64, task_class: np.ndarray, seed: int) -> Int32:
    """The agent of each row: job int64[n] in order of arrival (repeats allowed), task_class int8[n]
    -> int32[n].

    A job goes to one group, by hash, and within it to one agent, in turn (Omega: round robin over
    the mapped schedulers), for all its tasks. Raises AgoraError if the shares of a class that
    occurs do not sum to 1000.
    """
    if len(job) == 0:
        return np.zeros(0, np.int32)
    distinct, first_row, inverse = np.unique(job, return_index=True, return_inverse=True)
    class_of = task_class[first_row]
    drawn = hash64(distinct, stream_key(seed, "routing")) % np.uint64(1000)
    group = np.full(len(distinct), -1, np.int64)
    for present in np.unique(class_of).tolist():
        open_to = [
            i
            for i, route in enumerate(routes)
            if route.task_class is None or int(route.task_class) == present
        ]
        upper = np.cumsum([routes[i].share_permille for i in open_to])
        if len(upper) == 0 or upper[-1] != 1000:
            name = TaskClass(present).name.lower()
            total = 0 if len(upper) == 0 else int(upper[-1])
            raise AgoraError(f"mix: the shares of {name} jobs sum to {total / 1000:g}, not to 1")
        rows = class_of == present
        group[rows] = np.array(open_to)[np.searchsorted(upper, drawn[rows], side="right")]
    agent = np.empty(len(distinct), np.int32)
    for i, route in enumerate(routes):
        members = np.flatnonzero(group == i)
        in_order = members[np.argsort(first_row[members], kind="stable")]
        agent[in_order] = route.first_agent + np.arange(len(in_order)) % route.agents
    routed: Int32 = agent[inverse]
    return routed
