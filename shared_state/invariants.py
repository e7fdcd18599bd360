"""The audit of a cell: it follows the cell's events and recomputes everything on its own, in plain
numpy.

It shares no code with the cell: it believes only the events. What it checks: no machine filled
above its limit by a claim or a hold, no allocation or task placed twice, no task lost, no hold that
ends twice, versions that move by
one and only where something changed, views never newer than the cell and deltas that hold exactly
what changed, rejections that are true, no eviction that the cell's policy forbids, and
groups that stand or fall together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from shared_state.cell import Cell, Released
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, Int32, Int64, fits
from shared_state.transaction import (
    NO_RIVAL,
    CommitMode,
    CommitResult,
    ConflictCheck,
    Holds,
    PartitionDelta,
    Reason,
    Transaction,
)

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


@dataclass(frozen=True, slots=True)
class AuditCounts:
    """Sums over all events: claims == accepted + rejected; accepted + loaded == running + finished
    + evicted + lost."""

    submitted: int
    waiting: int
    running: int
    finished: int
    loaded: int
    evicted: int
    lost: int
    claims: int
    accepted: int
    rejected: int


class CellAudit:
    """The state of a cell as its events make it: what runs where, and the versions and sequence
    numbers that follow.

    Call one method per event, in the order the cell handled them. Each checks that the event is
    possible and raises InvariantViolation if not.
    """

    def __init__(
        self, spec: CellSpec, partitioning: Partitioning, priority: Int32 | None = None
    ) -> None:
        """Of a cell with these arguments: see Cell."""
        self._limit = spec.limit
        self._partitioning = partitioning
        self._synced: dict[tuple[int, int], int] = {}  # (agent, partition) -> the version it holds
        self._priority = priority  # by task; None: schedulers evict their own tasks only
        self._partition = partitioning.of_each()
        self._used = np.zeros_like(spec.capacity)
        self._held = np.zeros_like(spec.capacity)
        # Holds that have not ended: id -> holder, machine, amount. They ascend by id.
        self._holds: dict[int, tuple[int, int, Int64]] = {}
        self._holds_begun = 0
        self._up = np.ones(spec.machines, np.bool_)
        self._seqnum = np.zeros(spec.machines, np.uint32)
        self._claimant = np.full(spec.machines, NO_RIVAL, np.int32)  # who claimed a machine last
        self._previous_claimant = self._claimant.copy()  # and who of all others
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

    # --- events ----------------------------------------------------------------------------------

    def submitted(self, task: Int64) -> None:
        """Tasks arrived: int64[n], each for the first time."""
        self._begin(f"submission of {len(task)} tasks", self._now_us)
        state = self._state.covering(task)
        self._require(state[task] == UNKNOWN, "task {} was submitted before", task)
        self._require_unique(task, "task {} is submitted twice")
        state[task] = WAITING
        self._counts["submitted"] += len(task)

    def loaded(
        self, task: Int64, machine: Int32, request: Int64, owner: Int32, allocation: Int64
    ) -> None:
        """Cell.load of an initial state, which counts as submitted, and its answer."""
        self._begin(f"load of {len(task)} tasks", self._now_us)
        self._require(
            self._state.covering(task)[task] == UNKNOWN, "task {} was submitted before", task
        )
        self._state.values[task] = WAITING
        self._place(task, machine, request, owner, allocation)
        self._move_versions(machine)
        self._counts["submitted"] += len(task)
        self._counts["loaded"] += len(task)

    def commit(self, transaction: Transaction, result: CommitResult, now_us: int) -> None:
        """A transaction and the cell's answer."""
        t = transaction
        self._begin(f"commit {t.sequence} of scheduler {t.scheduler}", now_us)
        k = len(t.task)
        columns = (result.reason, result.allocation, result.rival, result.age_us, result.version)
        if result.sequence != t.sequence or any(len(column) != k for column in columns):
            self._fail(
                "the answer is not one to this transaction: accepted + rejected != submitted"
            )
        accepted = result.reason == Reason.ACCEPTED
        self._require(
            (result.reason >= 0) & (result.reason <= max(Reason)), "claim {} has no known reason"
        )
        self._require(
            (result.allocation >= 0) == accepted,
            "claim {} is accepted without an allocation or the reverse",
        )
        self._require(result.age_us == now_us - t.synced_us, "claim {} has a wrong age")
        self._check_groups(t, accepted)
        seen_before = self._seqnum[t.machine]
        claimant = self._claimant[t.machine]
        rival = np.where(claimant != t.scheduler, claimant, self._previous_claimant[t.machine])
        waiting_before = self._state.covering(t.task)[t.task] == WAITING
        rests, freed = self._end_named_holds(t)
        used_before = self._used[t.machine]
        self._end_victims(t, result.evicted)
        self._check_reasons(t, result, seen_before, rival, waiting_before, rests)

        machine = t.machine[accepted]
        self._require(self._up[machine], "machine {} is down and took a claim", machine)
        owner = np.full(len(machine), t.scheduler, np.int32)
        ended = self._machine.values[self._slot_task.values[result.evicted & 0xFFFFFFFF]]
        self._place(
            t.task[accepted], machine, t.request[accepted], owner, result.allocation[accepted]
        )
        self._require_room(machine, t.request[accepted], "a claim")
        self._move_versions(np.concatenate([machine, ended, freed]))
        self._require(
            result.version == self._versions[self._partition[t.machine]],
            "claim {} has a wrong version",
        )
        if t.commit_mode == CommitMode.INCREMENTAL and (t.evict is None or len(t.evict) == 0):
            full, held = result.reason == Reason.FULL, result.reason == Reason.HELD
            unused = self._limit[t.machine] - self._used[t.machine]
            self._require(
                ~(full & fits(t.request, unused)), "claim {} fits and was rejected as full"
            )
            fit = fits(t.request, unused - self._held[t.machine])
            self._require(~(held & fit), "claim {} fits and was rejected as held")
            fitted = fits(t.request, self._limit[t.machine] - used_before)
            self._require(
                ~held | fitted, "claim {} was rejected as held, and no room would do if it were not"
            )
        self._counts["claims"] += k
        self._counts["accepted"] += len(machine)

    def released(self, released: Released, now_us: int) -> None:
        """The answer of Cell.release: tasks that ran to their end."""
        self._begin(f"release of {len(released)} allocations", now_us)
        self._end(released)
        self._state.values[released.task] = FINISHED
        self._move_versions(released.machine)
        self._require_versions(released)
        self._counts["finished"] += len(released)

    def held(self, holds: Holds, now_us: int) -> None:
        """Cell.hold and its answer, in one."""
        self._begin(f"{len(holds)} holds", now_us)
        for hold, holder, machine, amount in _rows_of(holds):
            free = self._limit[machine] - self._used[machine] - self._held[machine]
            may = bool(self._up[machine]) and bool(fits(amount[None], free[None])[0])
            if (hold >= 0) != may:
                self._fail(
                    f"machine {machine} has {free.tolist()} free, "
                    f"and holding {amount.tolist()} was answered {hold}"
                )
            if hold < 0:
                continue
            if hold < self._holds_begun:
                self._fail(f"hold {hold} is given a second time")
            self._holds_begun = hold + 1
            self._holds[hold] = holder, machine, amount.copy()
            self._held[machine] += amount
        begun = holds.hold >= 0
        touched = holds.machine[begun]
        self._require_room(touched, holds.amount[begun], "a hold")
        self._move_versions(touched)

    def holds_ended(self, ended: Holds, now_us: int) -> None:
        """The answer of Cell.end_holds."""
        self._begin(f"end of {len(ended)} holds", now_us)
        for hold, holder, machine, amount in _rows_of(ended):
            if hold not in self._holds:
                self._fail(f"hold {hold} ended and had ended before, or never was")
            of = self._end_hold(hold)
            if of[:2] != (holder, machine) or not np.array_equal(of[2], amount):
                self._fail(f"hold {hold} ended with another holder, machine or amount")
        self._move_versions(ended.machine)

    def machines(self, machine: Int32, up: NDArray[np.bool_], lost: Released, now_us: int) -> None:
        """Cell.set_machines and its answer."""
        self._begin(f"change of {len(machine)} machines", now_us)
        before = self._up.copy()
        downed: set[int] = set()
        touched: set[int] = set()
        for row, now_up in zip(machine.tolist(), up.tolist(), strict=True):
            if bool(before[row]) != now_up:
                touched.add(row)
                if not now_up:
                    downed.add(row)
            before[row] = now_up
        self._up = before
        for hold in [hold for hold, of in self._holds.items() if of[1] in downed]:
            self._end_hold(hold)
        running = np.flatnonzero(self._state.values == RUNNING)
        expected = running[np.isin(self._machine.values[running], list(downed))]
        if not np.array_equal(np.sort(lost.task), expected):
            self._fail(
                "the tasks said to be lost are not those that ran on the machines that went down"
            )
        self._end(lost)
        self._state.values[lost.task] = WAITING
        self._move_versions(np.array(sorted(touched), np.int32))
        self._require_versions(lost)
        self._counts["lost"] += len(lost)

    def delta(self, agent: int, delta: PartitionDelta) -> None:
        """A delta the cell has just taken for an agent: it must hold exactly the rows that changed,
        as they are."""
        self.synced(agent, delta.partition, delta.from_version, delta.to_version)
        self._now_us = max(self._now_us, delta.at_us)
        if delta.to_version != self._versions[delta.partition]:
            self._fail(
                f"the delta ends at version {delta.to_version}, "
                f"the cell is at {self._versions[delta.partition]}"
            )
        if 0 < delta.from_version == delta.to_version and not len(delta.row):
            return  # nothing has changed, as most often
        rows = self._partitioning.rows(delta.partition)
        changed = np.arange(rows.stop - rows.start)
        if delta.from_version:
            changed = np.flatnonzero(self._changed[rows] > delta.from_version)
        if not np.array_equal(delta.row, changed):
            self._fail("the delta's rows are not those that changed")
        at = changed + rows.start
        self._require(
            (delta.used == self._used[at] + self._held[at]).all(axis=1),
            "the delta shows another use of machine {}",
            at,
        )
        self._require(
            delta.up == self._up[at], "the delta shows machine {} up or down, and it is not", at
        )
        if delta.seqnum is not None:
            self._require(
                delta.seqnum == self._seqnum[at],
                "the delta shows another sequence number of machine {}",
                at,
            )

    def synced(self, agent: int, partition: int, from_version: int, to_version: int) -> None:
        """A view of a partition was moved, where only versions are known.

        Args:
            from_version: The version that the agent says it holds (a reply may be lost).
        """
        self._begin(f"sync of agent {agent}, partition {partition}", self._now_us)
        held = self._synced.get((agent, partition), 0)
        if not 0 <= from_version <= held:
            self._fail(
                f"the delta starts at version {from_version}, the view was brought to {held}"
            )
        if to_version > self._versions[partition]:
            self._fail(
                f"the view is at version {to_version}, "
                f"newer than the cell at {self._versions[partition]}"
            )
        if to_version < from_version:
            self._fail(f"the view goes back from version {from_version} to {to_version}")
        self._synced[agent, partition] = to_version

    def matches(self, cell: Cell) -> None:
        """The cell's own state is what its events make it (after a restart, at the end)."""
        self._begin("comparison with the cell", self._now_us)
        self._require(
            (cell.used == self._used).all(axis=1), "the cell has another use of machine {}"
        )
        self._require(
            (cell.held == self._held).all(axis=1), "the cell holds another amount of machine {}"
        )
        self._require(cell.up == self._up, "the cell has machine {} up or down, and it is not")
        self._require(
            cell.seqnum == self._seqnum, "the cell has another sequence number of machine {}"
        )
        self._require(
            cell.versions == self._versions, "the cell has another version of partition {}"
        )
        if not np.array_equal(
            np.sort(cell.allocations().task), np.flatnonzero(self._state.values == RUNNING)
        ):
            self._fail("the cell runs other tasks")
        if cell.holds().hold.tolist() != list(self._holds):
            self._fail("the cell has other holds")

    def finish(self, waiting: Int64 | None = None) -> AuditCounts:
        """Check that no task is missing or held twice at the end.

        Args:
            waiting: Every task the schedulers still hold, queued or in flight.
        """
        self._begin("end", self._now_us)
        state = self._state.values
        if waiting is not None:
            self._require_unique(waiting, "task {} waits twice")
            self._require(
                self._state.covering(waiting)[waiting] == WAITING,
                "task {} waits, and runs, has run or was never submitted",
                waiting,
            )
            held = np.zeros(len(self._state.values), np.bool_)
            held[waiting] = True
            self._require(
                (self._state.values != WAITING) | held,
                "task {} is lost: it neither runs nor waits nor has run",
            )
        c = self._counts
        counts = AuditCounts(
            waiting=int(np.count_nonzero(state == WAITING)),
            running=int(np.count_nonzero(state == RUNNING)),
            rejected=c["claims"] - c["accepted"],
            **c,
        )
        if counts.submitted != counts.waiting + counts.running + counts.finished:
            self._fail("submitted != waiting + running + finished")
        if (
            counts.accepted + counts.loaded
            != counts.running + counts.finished + counts.evicted + counts.lost
        ):
            self._fail("accepted + loaded != running + finished + evicted + lost")
        return counts

    # --- checks ----------------------------------------------------------------------------------

    def _check_groups(self, t: Transaction, accepted: NDArray[np.bool_]) -> None:
        if t.commit_mode != CommitMode.ALL_OR_NOTHING or len(t.task) == 0:
            return
        gangs, group = np.unique(
            np.zeros(len(t.task), np.int64) if t.gang is None else t.gang, return_inverse=True
        )
        members = np.bincount(group)
        inside = np.bincount(group, weights=accepted)
        self._require((inside == 0) | (inside == members), "gang {} is accepted in part", gangs)

    def _check_reasons(
        self,
        t: Transaction,
        result: CommitResult,
        seen_before: NDArray[np.uint32],
        rival: Int32,
        waiting_before: NDArray[np.bool_],
        rests: NDArray[np.bool_],
    ) -> None:
        reason = result.reason
        self._require(
            (reason != Reason.MACHINE_DOWN) | ~self._up[t.machine],
            "claim {} was rejected for a machine that is up",
        )
        # In a gang that failed a task claimed twice is a duplicate of a claim that did not last.
        if t.commit_mode == CommitMode.INCREMENTAL and (reason == Reason.DUPLICATE).any():
            placed = ~waiting_before | np.isin(t.task, t.task[reason == Reason.ACCEPTED])
            self._require(
                (reason != Reason.DUPLICATE) | placed,
                "claim {} was rejected as duplicate, its task waits",
            )
        moved = np.zeros(len(reason), np.bool_)
        if t.conflict_check == ConflictCheck.SEQUENCE_NUMBER and t.seqnum is not None:
            moved[:] = t.seqnum != seen_before
        self._require(
            (reason != Reason.STALE) | moved | ~rests,
            "claim {} was rejected as stale, its machine has not changed",
        )
        self._require(
            (reason != Reason.ACCEPTED) | ~moved,
            "claim {} was accepted on a machine that has changed",
        )
        self._require(
            (reason != Reason.ACCEPTED) | rests,
            "claim {} was accepted without the hold it rests on",
        )
        if t.commit_mode == CommitMode.INCREMENTAL:
            self._require(reason != Reason.GANG, "claim {} was rejected for its gang without gangs")
        if t.evict is None:
            self._require(
                reason != Reason.EVICTED, "claim {} was rejected for a victim, and there is none"
            )
        explained = (reason == Reason.STALE) | (reason == Reason.FULL)
        expected = np.where(explained, rival, NO_RIVAL)
        for row in np.flatnonzero(reason == Reason.HELD).tolist():
            others = [
                holder
                for holder, machine, _ in self._holds.values()
                if machine == t.machine[row] and holder != t.scheduler
            ]
            expected[row] = others[-1] if others else NO_RIVAL
        self._require(result.rival == expected, "claim {} names a wrong rival")

    # --- what follows from an event ---------------------------------------------------------------

    def _end_named_holds(self, t: Transaction) -> tuple[NDArray[np.bool_], Int32]:
        """End the transaction's holds. Return which of its claims may rest on them (bool[k], all if
        it names none), and their machines."""
        freed: set[int] = set()
        if t.holds is None or len(t.holds) == 0:
            return np.ones(len(t.task), np.bool_), np.zeros(0, np.int32)
        for hold in t.holds.tolist():
            of = self._holds.get(hold)
            if of is not None and of[0] == t.scheduler:
                self._end_hold(hold)
                freed.add(of[1])
        machines = np.array(sorted(freed), np.int32)
        return np.isin(t.machine, machines), machines

    def _end_hold(self, hold: int) -> tuple[int, int, Int64]:
        of = self._holds.pop(hold)
        self._held[of[1]] -= of[2]
        return of

    def _require_room(self, machine: Int32, amount: Int64, by: str) -> None:
        """Fail if amounts (int64[n, R]) that were just taken of machines fill these above their
        limit."""
        taken: Int64 = self._used[machine] + self._held[machine]
        over = np.any((taken > self._limit[machine]) & (amount > 0), axis=1)
        self._require(~over, f"machine {{}} is filled above its limit by {by}", machine)

    def _end_victims(self, t: Transaction, evicted: Int64) -> None:
        """Victims of a commit: named by it, running, its scheduler's own or permitted. Their
        versions move with those of the claims."""
        if not len(evicted):
            return
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

    def _require(
        self, holds: NDArray[np.bool_], message: str, named: NDArray[Any] | None = None
    ) -> None:
        """Fail with the first one that does not hold: its entry in `named`, or its place."""
        if not holds.all():
            place = np.flatnonzero(~holds)[0]
            self._fail(message.format(int(place if named is None else named[place])))

    def _require_unique(self, values: Int64, message: str) -> None:
        ordered = np.sort(values)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        self._require(np.zeros(len(twice), np.bool_), message, twice)

    def _fail(self, message: str) -> NoReturn:
        raise InvariantViolation(f"{self._event}: {message}")


def _rows_of(holds: Holds) -> Iterator[tuple[int, int, int, Int64]]:
    """The id, holder, machine and amount, int64[R], of each."""
    ids = holds.hold.tolist(), holds.holder.tolist(), holds.machine.tolist()
    return zip(*ids, holds.amount, strict=True)
