"""An agent's account of its quota: what its tasks hold and want, and what they may hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsync.core.quota_events import QuotaReport
from parsync.core.quotas import TaskQuotas
from shared_state.tasks import NO_GANG, Int64, TaskBatch


class QuotaAccount:
    """What the tasks of one agent hold and wait for, by quota group and resource.

    A task waits from its submission on. It holds its request from when the agent begins to decide
    on it, so that what is being decided on or committed counts, until it ends or its claim fails.
    Nothing may be held before the first grant.

    The room that ended tasks leave is used from the next look on, which the agent takes when it
    synchronises or gets a grant. At once, it would be a decision round for nearly every task.

    Args:
        quotas: The quota group of each task.
        table: Every task (row = id).

    Attributes:
        held, waiting: int64[G, R].
        granted: int64[G, R], up to which tasks may hold resources.
    """

    def __init__(self, quotas: TaskQuotas, table: TaskBatch) -> None:
        self.of_task = quotas.of_task
        self.groups = quotas.groups
        self._request = table.request
        self._gang = table.gang if (table.gang != NO_GANG).any() else None
        shape = (quotas.groups, table.request.shape[1])
        self.held, self.waiting = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.granted: Int64 = np.zeros(shape, np.int64)
        self._ended: Int64 = np.zeros(shape, np.int64)  # since the last look

    def report(self, agent: int, number: int) -> QuotaReport:
        """The answer to the request of a round."""
        return QuotaReport(agent, number, self.held.copy(), self.waiting.copy())

    def submit(self, task: Int64) -> None:
        """Tasks were submitted, int64[n], or have to run again."""
        self._move(task, None, self.waiting)

    def offer(self, task: Int64) -> None:
        """Waiting tasks are decided on."""
        self._move(task, self.waiting, self.held)

    def withdraw(self, task: Int64) -> None:
        """Tasks that were decided on wait again: they found no place, or lost it to a rival."""
        self._move(task, self.held, self.waiting)

    def drop(self, task: Int64) -> None:
        """Waiting tasks are given up."""
        self._move(task, self.waiting, None)

    def adopt(self, task: Int64) -> None:
        """Tasks run already."""
        self._move(task, None, self.held)

    def end(self, task: Int64) -> None:
        """Tasks run no more."""
        self._move(task, self.held, self._ended)

    def look(self) -> None:
        """What tasks that ended held may be used from now on."""
        self._ended[:] = 0

    @property
    def _room(self) -> Int64:
        """What may be held besides, int64[G, R]; negative where a grant has become smaller."""
        return self.granted - self.held - self._ended

    def within(self, task: Int64) -> NDArray[np.bool_]:
        """Which of these waiting tasks may be decided on now: of each group the first ones, as many
        as its grant has room for, bool[n]. A task that does not fit stops those of its group that
        come after it, so that small tasks do not keep a large one waiting for ever; and no gang is
        parted."""
        group, request = self.of_task[task], self._request[task]
        room = self._room
        fits = np.zeros(len(task), np.bool_)
        for present in np.unique(group).tolist():
            rows = np.flatnonzero(group == present)
            taken = np.cumsum(request[rows], axis=0)
            within = ((taken <= room[present]) | (request[rows] == 0)).all(axis=1)
            fits[rows] = np.logical_and.accumulate(within)
        if self._gang is not None and not fits.all():
            gang = self._gang[task]
            torn = np.unique(gang[~fits])
            fits &= ~np.isin(gang, torn[torn != NO_GANG])
        return fits

    def has_room(self, task: Int64, before: Int64) -> bool:
        """Whether the first of these tasks, which are of one group, or its whole gang, may be
        decided on now, together with other tasks that come before it.

        Args:
            task: int64[n], n > 0.
            before: int64[k], the other tasks.
        """
        first = task[:1]
        if self._gang is not None and self._gang[task[0]] != NO_GANG:
            first = task[self._gang[task] == self._gang[task[0]]]
        group = self.of_task[task[0]]
        before = before[self.of_task[before] == group]
        wanted = self._request[first].sum(axis=0) + self._request[before].sum(axis=0)
        asked = self._request[first].any(axis=0)
        return bool(((wanted <= self._room[group]) | ~asked).all())

    def _move(self, task: Int64, source: Int64 | None, to: Int64 | None) -> None:
        """Count the requests of tasks among other amounts than before; None: among none."""
        if not len(task):
            return
        group, request = self.of_task[task], self._request[task]
        if source is not None:
            np.subtract.at(source, group, request)
        if to is not None:
            np.add.at(to, group, request)
