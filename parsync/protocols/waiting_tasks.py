"""Why tasks still wait with their scheduler when a run ends: the table `waiting`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.agent_log import AgentLog
from parsync.metrics.tables import NOBODY, NOT_LOOKED_AT, Waiting
from shared_state.tasks import CellSpec, Int64, TaskBatch
from shared_state.view import ClusterView

# So many different requests are looked at in the view; who waits with others is not told which
# resource is short.
MOST_REQUESTS = 1000


class WaitingPart(NamedTuple):
    """Tasks, int64[n], that wait for one reason, behind one task (NOBODY: behind none)."""

    task: Int64
    why: Waiting
    ahead: int = NOBODY


def record_waiting(
    log: AgentLog,
    parts: Iterable[WaitingPart],
    table: TaskBatch,
    cell: CellSpec,
    view: ClusterView,
    unseen: NDArray[np.bool_],
) -> None:
    """Record the tasks that wait, and what those without room lack in the view as it stands.

    Args:
        log: The agent's.
        parts: The tasks.
        table: Every task of the run (row = id).
        cell: The cell.
        view: The agent's.
        unseen: bool[M], the machines that the agent may not use.
    """
    for part in parts:
        n = len(part.task)
        if not n:
            continue
        request = table.request[part.task]
        resource, machines = np.full(n, NOT_LOOKED_AT, np.int32), np.zeros(n, np.int64)
        hidden = np.zeros(n, np.int64)
        if part.why is Waiting.NO_ROOM:
            distinct, place = np.unique(request, axis=0, return_inverse=True)
            place = place.ravel()
            for number, one in enumerate(distinct[:MOST_REQUESTS]):
                rows = place == number
                resource[rows], machines[rows] = _short_of(one, view)
                hidden[rows] = np.count_nonzero((cell.limit[unseen] >= one).all(axis=1))
        log.waiting(part.task, part.why, part.ahead, resource, machines, hidden)


def _short_of(request: Int64, view: ClusterView) -> tuple[int, int]:
    """The resource that keeps a task, by its request int64[R], from most machines that have enough
    of every other, and how many these are. NOBODY and how many machines have room for it, if some
    have. If all lack more than one, the resource that most of them lack, and 0."""
    up = view.up
    lacks = ((view.free < request) & (request > 0))[up]
    count = lacks.sum(axis=1)
    roomy = int(np.count_nonzero(count == 0))
    if roomy:
        return NOBODY, roomy
    one = lacks[count == 1].sum(axis=0)
    if one.any():
        return int(one.argmax()), int(one.max())
    return int(lacks.sum(axis=0).argmax()), 0
