"""Which tasks wait with a scheduler that keeps them, as far as its agent can tell."""

from __future__ import annotations

import numpy as np

from schedulers.interface import Plan
from shared_state.tasks import NO_GANG, Int64

_ABSENT, _WAITING, _OFFERED = 0, 1, 2


class WaitingTasks:
    """The tasks that wait. A task waits from its offer or the rejection of its claim until it is
    claimed.

    Args:
        gang: int64[tasks]; None if no task has one.
    """

    def __init__(self, tasks: int, gang: Int64 | None) -> None:
        self._state = np.zeros(tasks, np.int8)
        self._gang = gang
        if gang is not None:
            self._gangs = np.unique(gang[gang != NO_GANG])
            self._waiting = np.zeros(len(self._gangs), np.int64)  # tasks of each gang

    def offer(self, task: Int64) -> None:
        """The tasks of a call of plan()."""
        self._count(task[self._state[task] == _ABSENT], +1)
        self._state[task] = _OFFERED

    def are_named_once(self, plan: Plan, offered: Int64) -> bool:
        """Whether the plan claims only tasks that wait, and names every task offered, no other as
        pending, and none twice."""
        if (self._state[plan.task] == _ABSENT).any():
            return False
        if (self._state[plan.pending] != _OFFERED).any():
            return False
        named = np.sort(np.concatenate([plan.task, plan.pending]))
        if (named[1:] == named[:-1]).any():
            return False
        return int(np.count_nonzero(self._state[named] == _OFFERED)) == len(offered)

    def planned(self, plan: Plan) -> None:
        """The plan keeps the rules: what it claims waits no more."""
        self._state[plan.pending] = _WAITING
        self._state[plan.task] = _ABSENT
        self._count(plan.task, -1)

    def rejected(self, task: Int64) -> None:
        """Their claims were: they wait again."""
        task = task[self._state[task] == _ABSENT]
        self._state[task] = _WAITING
        self._count(task, +1)

    def adopted(self, task: Int64) -> None:
        """They run, as their agent learnt after a restart."""
        task = task[self._state[task] != _ABSENT]
        self._state[task] = _ABSENT
        self._count(task, -1)

    def all(self) -> Int64:
        """All waiting tasks, int64[n], ascending."""
        return np.flatnonzero(self._state)

    def count(self) -> int:
        """How many tasks wait."""
        return int(np.count_nonzero(self._state))

    def in_gang(self, gang: Int64) -> Int64:
        """How many tasks of each of these gangs wait."""
        return self._waiting[np.searchsorted(self._gangs, gang)]

    def _count(self, task: Int64, change: int) -> None:
        if self._gang is None:
            return
        gang = self._gang[task]
        np.add.at(self._waiting, np.searchsorted(self._gangs, gang[gang != NO_GANG]), change)
