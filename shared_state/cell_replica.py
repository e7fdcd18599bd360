"""The state of a cell as its events make it, kept in plain numpy: the audit's own account, which
shares no code with the cell."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from shared_state.cell import Released
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, Int32, Int64
from shared_state.transaction import NO_RIVAL, Transaction

UNKNOWN, WAITING, RUNNING, FINISHED = range(4)
_NO_ID = -1


class InvariantViolation(Exception):
    """An event that cannot be: the message names it (its number in the audit, what it is, when) and
    what is wrong."""


class _GrowingArray:
    """An array that grows to hold the largest index asked for."""

    def __init__(self, fill: int, dtype: type, width: int = 0) -> None:
        self._fill = fill
        self.values: NDArray[Any] = np.full((64, width) if width else 64, fill, dtype)

    def covering(self, index: Int64) -> NDArray[Any]:
        size = int(index.max(initial=-1)) + 1
        if size > len(self.values):
            grown = np.full(
                (max(size, 2 * len(self.values)), *self.values.shape[1:]),
                self._fill,
                self.values.dtype,
            )
            grown[: len(self.values)] = self.values
            self.values = grown
        return self.values


class CellReplica:
    """What runs where, and the versions and sequence numbers that follow. Each change checks that
    it is possible and raises InvariantViolation if not."""

    def __init__(
        self, spec: CellSpec, partitioning: Partitioning, priority: Int32 | None = None
    ) -> None:
        self._priority = priority  # by task; None: schedulers evict their own tasks only
        self._partition = partitioning.of(np.arange(spec.machines, dtype=np.int32))
        self._used = np.zeros_like(spec.capacity)
        self._up = np.ones(spec.machines, np.bool_)
        self._seqnum = np.zeros(spec.machines, np.uint32)
        self._claimant = np.full(spec.machines, NO_RIVAL, np.int32)  # who claimed a machine last
        self._previous_claimant = np.full(
            spec.machines, NO_RIVAL, np.int32
        )  # and who of all others
        self._changed = np.zeros(spec.machines, np.int64)
        self._versions = np.zeros(partitioning.count, np.int64)
        # By task: where it stands.
        self._state = _GrowingArray(UNKNOWN, np.int8)
        self._allocation = _GrowingArray(_NO_ID, np.int64)
        self._machine = _GrowingArray(-1, np.int32)
        self._owner = _GrowingArray(-1, np.int32)
        self._request = _GrowingArray(0, np.int64, len(spec.dimensions))
        # By slot of an allocation id (its low 32 bits): the last id given and its task. Ids of a
        # slot ascend.
        self._last_id = _GrowingArray(_NO_ID, np.int64)
        self._slot_task = _GrowingArray(-1, np.int64)
        self._now_us = 0
        self._events = 0
        self._event = ""
        self._counts = dict.fromkeys(
            ("submitted", "loaded", "evicted", "lost", "finished", "claims", "accepted"), 0
        )

    def _end_victims(self, t: Transaction, evicted: Int64) -> None:
        """Victims of a commit: named by it, running, its scheduler's own or permitted. Their
        versions move with those of the claims."""
        named = np.zeros(0, np.int64) if t.evict is None else t.evict
        self._require(np.isin(evicted, named), "allocation {} was evicted and not named", evicted)
        self._require_unique(evicted, "allocation {} was evicted twice")
        slot = evicted & 0xFFFFFFFF
        self._require(
            self._last_id.covering(slot)[slot] == evicted,
            "allocation {} was evicted and never existed",
            evicted,
        )
        task = self._slot_task.covering(slot)[slot]
        running = (self._state.values[task] == RUNNING) & (self._allocation.values[task] == evicted)
        self._require(running, "allocation {} was evicted and had ended", evicted)
        self._require(
            (self._owner.values[task] == t.scheduler) | self._may_preempt(t, task),
            "allocation {} was evicted by another scheduler",
            evicted,
        )
        np.subtract.at(self._used, self._machine.values[task], self._request.values[task])
        self._state.values[task] = WAITING
        self._counts["evicted"] += len(evicted)

    def _may_preempt(self, t: Transaction, task: Int64) -> NDArray[np.bool_]:
        """Whether the cell's policy lets the transaction end each of these running tasks (int64[n])
        of other schedulers: bool[n]. There are claims on its machine, all of higher priority, and
        none claims the task itself."""
        if self._priority is None:
            return np.zeros(len(task), np.bool_)
        none = 1 << 31  # above every priority
        lowest = np.full(len(self._up), none, np.int64)
        np.minimum.at(lowest, t.machine, self._priority_of(t.task))
        of_machine = lowest[self._machine.values[task]]
        higher = (of_machine != none) & (of_machine > self._priority_of(task))
        may: NDArray[np.bool_] = higher & ~np.isin(task, t.task)
        return may

    def _priority_of(self, task: Int64) -> Int64:
        assert self._priority is not None, "asked under a policy of priorities only"
        known = task < len(self._priority)
        return np.where(known, self._priority[np.where(known, task, 0)], 0).astype(np.int64)

    def _end(self, ended: Released) -> None:
        task = ended.task
        self._require_unique(task, "task {} ended twice")
        self._require(
            self._state.covering(task)[task] == RUNNING, "task {} ended and did not run", task
        )
        self._require(
            self._allocation.values[task] == ended.allocation,
            "task {} ended with an allocation not its own",
            task,
        )
        same = (self._machine.values[task] == ended.machine) & (
            self._owner.values[task] == ended.owner
        )
        self._require(same, "task {} ended on another machine or for another owner", task)
        self._require(
            (self._request.values[task] == ended.request).all(axis=1),
            "task {} freed what it had not taken",
            task,
        )
        np.subtract.at(self._used, ended.machine, ended.request)

    def _place(
        self, task: Int64, machine: Int32, request: Int64, owner: Int32, allocation: Int64
    ) -> None:
        self._require_unique(task, "task {} is placed twice")
        self._require(
            self._state.covering(task)[task] == WAITING,
            "task {} is placed, and runs, has run or was never submitted",
            task,
        )
        slot = allocation & 0xFFFFFFFF
        self._require_unique(slot, "the slot {} is given twice")
        self._require(
            self._last_id.covering(slot)[slot] < allocation,
            "allocation {} is given a second time",
            allocation,
        )
        holder = self._slot_task.covering(slot)[slot]
        busy = (
            (holder >= 0)
            & (self._state.values[holder] == RUNNING)
            & (self._allocation.values[holder] == self._last_id.values[slot])
        )
        self._require(~busy, "allocation {} is given while its slot is in use", allocation)
        self._last_id.values[slot] = allocation
        self._slot_task.values[slot] = task
        self._state.values[task] = RUNNING
        for column, values in (
            (self._allocation, allocation),
            (self._machine, machine),
            (self._owner, owner),
            (self._request, request),
        ):
            column.covering(task)[task] = values
        np.add.at(self._used, machine, request)
        np.add.at(self._seqnum, machine, 1)
        self._claimed(machine, owner)

    def _claimed(self, machine: Int32, owner: Int32) -> None:
        if (owner[1:] != owner[:-1]).any():
            for row in range(len(machine)):
                self._claimed(machine[row : row + 1], owner[row : row + 1])
            return
        before = self._claimant[machine]
        other = before != owner
        self._previous_claimant[machine[other]] = before[other]
        self._claimant[machine] = owner

    def _move_versions(self, machine: Int32) -> None:
        self._versions[np.unique(self._partition[machine])] += 1
        self._changed[machine] = self._versions[self._partition[machine]]

    def _require_versions(self, ended: Released) -> None:
        version = self._versions[self._partition[ended.machine]]
        self._require(ended.version == version, "task {} ended in a wrong version", ended.task)

    def _begin(self, event: str, now_us: int) -> None:
        self._events += 1
        self._event = f"event {self._events}, {event} at {now_us} us"
        if now_us < self._now_us:
            self._fail(f"time goes back from {self._now_us} us")
        self._now_us = now_us

    def _require(self, holds: NDArray[np.bool_], message: str, named: NDArray[Any]) -> None:
        if not holds.all():
            self._fail(message.format(int(named[np.flatnonzero(~holds)[0]])))

    def _require_unique(self, values: Int64, message: str) -> None:
        ordered = np.sort(values)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        self._require(np.zeros(len(twice), np.bool_), message, twice)

    def _fail(self, message: str) -> NoReturn:
        raise InvariantViolation(f"{self._event}: {message}")
