"""The audit: silent on what a cell really does, and telling for every kind of lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shared_state.cell import Cell, Released
from shared_state.invariants import CellAudit, InvariantViolation
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec
from shared_state.transaction import CommitMode, CommitResult, ConflictCheck, Transaction

MACHINES = 12
PARTITIONS = 3


class Audited:
    """A small cell whose every event goes through an audit."""

    def __init__(self, priority: list[int] | None = None) -> None:
        rack = (np.arange(MACHINES) // 2).astype(np.int32)
        capacity = np.full((MACHINES, 2), 4, np.int64)
        self.spec = CellSpec(
            ("cpu", "mem"), capacity, rack, np.zeros(MACHINES, np.int64), np.array([1000, 1500])
        )
        self.partitioning = Partitioning.by_topology(self.spec, PARTITIONS)
        of_tasks = None if priority is None else np.array(priority, np.int32)
        self.cell = Cell(self.spec, self.partitioning, of_tasks)
        self.audit = CellAudit(self.spec, self.partitioning, of_tasks)
        self.now_us = 0
        self.held = np.zeros((2, PARTITIONS), np.int64)

    def submit(self, *task: int) -> None:
        self.audit.submitted(np.array(task, np.int64))

    def transaction(
        self, tasks: list[int], machines: list[int], amount: int = 1, **other: Any
    ) -> Transaction:
        k = len(tasks)
        self.now_us += 10
        request = np.full((k, 2), amount, np.int64)
        return Transaction(
            1,
            self.now_us,
            np.array(tasks, np.int64),
            np.array(machines, np.int32),
            request,
            np.zeros(k, np.int64),
            **other,
        )

    def commit(self, t: Transaction) -> CommitResult:
        result = self.cell.commit(t, self.now_us)
        self.audit.commit(t, result, self.now_us)
        return result

    def sync(self, agent: int, partition: int) -> None:
        delta = self.cell.delta_since(
            partition, int(self.held[agent, partition]), self.now_us, with_seqnum=True
        )
        self.audit.delta(agent, delta)
        self.held[agent, partition] = delta.to_version


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def rows(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def test_silent_on_a_long_true_history() -> None:
    rng = np.random.default_rng(11)
    a = Audited()
    machine = rng.integers(0, MACHINES, 20).astype(np.int32)
    request = rng.integers(0, 3, (20, 2))
    owner = np.ones(20, np.int32)
    loaded = a.cell.load(np.arange(20), machine, request, owner)
    a.audit.loaded(np.arange(20), machine, request, owner, loaded)
    submitted, seen = 20, set()
    for _ in range(600):
        a.now_us += 5
        match rng.integers(0, 6):
            case 0:
                a.submit(*range(submitted, submitted + 5))
                submitted += 5
            case 1 | 2:
                k = int(rng.integers(0, 6))
                tasks = rng.integers(max(0, submitted - 30), submitted, k)
                t = a.transaction(
                    tasks.tolist(), rng.integers(0, MACHINES, k).tolist(), int(rng.integers(0, 4))
                )
                live = a.cell.allocations().allocation
                t = replace(
                    t,
                    scheduler=int(rng.integers(0, 2)),
                    commit_mode=CommitMode(int(rng.integers(0, 2))),
                    gang=rng.integers(-1, 2, k),
                    conflict_check=ConflictCheck(int(rng.integers(0, 2))),
                    seqnum=a.cell.seqnum[t.machine] - rng.integers(0, 2, k).astype(np.uint32),
                    evict=rng.permutation(live)[: int(rng.integers(0, 3))]
                    if rng.integers(0, 2)
                    else None,
                )
                seen |= set(a.commit(t).reason.tolist())
            case 3:
                live = a.cell.allocations()
                some = rng.permutation(len(live))[:2]
                released = a.cell.release(live.allocation[some], live.owner[some], a.now_us)
                a.audit.released(released, a.now_us)
            case 4:
                a.sync(int(rng.integers(0, 2)), int(rng.integers(0, PARTITIONS)))
            case 5:
                changed, up = (
                    rng.integers(0, MACHINES, 2).astype(np.int32),
                    rng.integers(0, 4, 2) > 0,
                )
                a.audit.machines(changed, up, a.cell.set_machines(changed, up, a.now_us), a.now_us)
                a.audit.matches(a.cell)
    counts = a.audit.finish()
    assert (
        seen == set(range(7))
        and counts.evicted
        and counts.lost
        and counts.finished
        and counts.waiting
    )
    assert counts.submitted == submitted and counts.claims == counts.accepted + counts.rejected
    a.audit.matches(Cell.restore(a.spec, a.partitioning, a.cell.checkpoint()))


def started() -> tuple[Audited, CommitResult]:
    """Tasks 0..3 run on machines 0, 0, 4, 8; tasks 4..9 wait."""
    a = Audited()
    a.submit(*range(10))
    return a, a.commit(a.transaction([0, 1, 2, 3], [0, 0, 4, 8]))


def edit(array: np.ndarray, at: int, value: object) -> np.ndarray:
    edited = array.copy()
    edited[at] = value
    return edited


Lie = Callable[[Transaction, CommitResult], tuple[Transaction, CommitResult]]

COMMIT_LIES: dict[str, tuple[Lie, str]] = {
    "a full claim accepted": (
        lambda t, r: (
            t,
            replace(
                r, reason=r.reason * 0, allocation=edit(r.allocation, 2, 77), rival=r.rival * 0 - 1
            ),
        ),
        "above its limit",
    ),
    "a fitting claim full": (
        lambda t, r: (
            t,
            replace(r, reason=edit(r.reason, 0, 2), allocation=edit(r.allocation, 0, -1)),
        ),
        "wrong version|fits",
    ),
    "no allocation": (
        lambda t, r: (t, replace(r, allocation=edit(r.allocation, 0, -1))),
        "accepted without an allocation",
    ),
    "one allocation for two": (
        lambda t, r: (t, replace(r, allocation=edit(r.allocation, 0, int(r.allocation[1])))),
        "given twice",
    ),
    "an allocation in use": (
        lambda t, r: (t, replace(r, allocation=edit(r.allocation, 0, 0))),
        "a second time",
    ),
    "a slot in use": (
        lambda t, r: (t, replace(r, allocation=edit(r.allocation, 0, 1 << 32))),
        "slot is in use",
    ),
    "a missing answer": (
        lambda t, r: (t, replace(r, reason=r.reason[:-1])),
        "accepted . rejected != submitted",
    ),
    "another's answer": (
        lambda t, r: (t, replace(r, sequence=r.sequence + 1)),
        "not one to this transaction",
    ),
    "an unknown reason": (
        lambda t, r: (t, replace(r, reason=edit(r.reason, 2, 9))),
        "no known reason",
    ),
    "a wrong age": (lambda t, r: (t, replace(r, age_us=r.age_us + 1)), "wrong age"),
    "a wrong version": (lambda t, r: (t, replace(r, version=r.version - 1)), "wrong version"),
    "a wrong rival": (lambda t, r: (t, replace(r, rival=edit(r.rival, 2, 8))), "wrong rival"),
    "a rival of an accepted claim": (
        lambda t, r: (t, replace(r, rival=edit(r.rival, 0, 1))),
        "wrong rival",
    ),
    "stale without the check": (
        lambda t, r: (t, replace(r, reason=edit(r.reason, 2, 1))),
        "stale without the check",
    ),
    "a machine that is up": (
        lambda t, r: (t, replace(r, reason=edit(r.reason, 2, 3))),
        "a machine that is up",
    ),
    "a victim of none": (
        lambda t, r: (t, replace(r, reason=edit(r.reason, 2, 4))),
        "for a victim, and there is none",
    ),
    "a gang of none": (lambda t, r: (t, replace(r, reason=edit(r.reason, 2, 5))), "without gangs"),
    "a duplicate of none": (
        lambda t, r: (t, replace(r, reason=edit(r.reason, 2, 6))),
        "as duplicate, its task waits",
    ),
    "a placed task": (lambda t, r: (replace(t, task=edit(t.task, 0, 3)), r), "task 3 is placed"),
    "a finished task": (lambda t, r: (replace(t, task=edit(t.task, 0, 2)), r), "task 2 is placed"),
    "an unknown task": (
        lambda t, r: (replace(t, task=edit(t.task, 0, 99)), r),
        "task 99 is placed",
    ),
    "a task twice": (
        lambda t, r: (replace(t, task=edit(t.task, 0, 5)), r),
        "task 5 is placed twice",
    ),
    "a machine that is down": (
        lambda t, r: (replace(t, machine=edit(t.machine, 0, 11)), r),
        "machine 11 is down",
    ),
    "a part of a gang": (
        lambda t, r: (replace(t, commit_mode=CommitMode.ALL_OR_NOTHING), r),
        "accepted in part",
    ),
    "an unnamed victim": (lambda t, r: (t, replace(r, evicted=ids(0))), "evicted and not named"),
    "a victim that never was": (
        lambda t, r: (replace(t, evict=ids(55)), replace(r, evicted=ids(55))),
        "never existed",
    ),
    "a victim twice": (
        lambda t, r: (replace(t, evict=ids(0)), replace(r, evicted=ids(0, 0))),
        "evicted twice",
    ),
    "a victim that had ended": (
        lambda t, r: (replace(t, evict=ids(2)), replace(r, evicted=ids(2))),
        "had ended",
    ),
    "another's victim": (
        lambda t, r: (replace(t, scheduler=5, evict=ids(0)), replace(r, evicted=ids(0))),
        "by another scheduler",
    ),
    "a moved machine": (
        lambda t, r: (
            replace(
                t, conflict_check=ConflictCheck.SEQUENCE_NUMBER, seqnum=np.full(3, 9, np.uint32)
            ),
            r,
        ),
        "accepted on a machine that has changed",
    ),
    "an unmoved machine": (
        lambda t, r: (
            replace(
                t,
                conflict_check=ConflictCheck.SEQUENCE_NUMBER,
                seqnum=np.array([0, 0, 2], np.uint32),
            ),
            replace(r, reason=edit(r.reason, 2, 1)),
        ),
        "its machine has not changed",
    ),
}


@pytest.mark.parametrize("name", COMMIT_LIES)
def test_a_false_commit_is_told(name: str) -> None:
    a, first = started()
    a.audit.released(a.cell.release(first.allocation[2:3], None, a.now_us), a.now_us)
    a.audit.machines(
        rows(11),
        np.array([False]),
        a.cell.set_machines(rows(11), np.array([False]), a.now_us),
        a.now_us,
    )
    t = a.transaction([4, 5, 6], [1, 2, 0])
    t = replace(t, request=np.array([[1, 1], [1, 1], [4, 4]]))
    result = a.cell.commit(t, a.now_us)
    lie, message = COMMIT_LIES[name]
    with pytest.raises(InvariantViolation, match=message) as told:
        a.audit.commit(*lie(t, result), a.now_us)
    assert f"commit {t.sequence}" in str(told.value) or "scheduler 5" in str(told.value)


RELEASE_LIES: dict[str, tuple[Callable[[Released], Released], str]] = {
    "of a task that waits": (
        lambda r: replace(r, task=edit(r.task, 0, 4)),
        "task 4 ended and did not run",
    ),
    "twice": (
        lambda r: Released(
            *(np.repeat(getattr(r, name), 2, axis=0) for name in Released.__slots__)
        ),
        "task 0 ended twice",
    ),
    "of another's allocation": (lambda r: replace(r, allocation=r.allocation + 1), "not its own"),
    "elsewhere": (lambda r: replace(r, machine=r.machine + 1), "on another machine"),
    "of another's task": (lambda r: replace(r, owner=r.owner + 1), "for another owner"),
    "of more than was taken": (
        lambda r: replace(r, request=r.request + 1),
        "freed what it had not taken",
    ),
    "without a version": (lambda r: replace(r, version=r.version - 1), "wrong version"),
}


@pytest.mark.parametrize("name", RELEASE_LIES)
def test_a_false_release_is_told(name: str) -> None:
    a, first = started()
    released = a.cell.release(first.allocation[:1], None, a.now_us)
    lie, message = RELEASE_LIES[name]
    with pytest.raises(InvariantViolation, match=message):
        a.audit.released(lie(released), a.now_us)


def test_tasks_forgotten_on_a_lost_machine_are_told() -> None:
    a, _ = started()
    lost = a.cell.set_machines(rows(0), np.array([False]), a.now_us)
    forgotten = Released(*(getattr(lost, name)[1:] for name in Released.__slots__))
    with pytest.raises(InvariantViolation, match="said to be lost are not those"):
        a.audit.machines(rows(0), np.array([False]), forgotten, a.now_us)


def test_false_deltas_are_told() -> None:
    def told(change: dict[str, Any], message: str) -> None:
        a, _ = started()
        a.sync(0, 0)
        a.commit(a.transaction([4], [1]))
        delta = a.cell.delta_since(0, 1, a.now_us, with_seqnum=True)
        with pytest.raises(InvariantViolation, match=message):
            a.audit.delta(0, replace(delta, **change))

    told({"to_version": 3}, "newer than the cell")
    told({"from_version": 2}, "starts at version 2, the view was brought to 1")
    told({"to_version": 0}, "goes back")
    told({"to_version": 1}, "ends at version 1, the cell is at 2")
    told({"row": np.array([0], np.uint16)}, "not those that changed")
    told({"used": np.array([[2, 2]], np.int8)}, "another use of machine 1")
    told({"up": np.array([False])}, "machine 1 up or down")
    told({"seqnum": np.array([2], np.uint32)}, "another sequence number of machine 1")


def test_lost_and_doubled_tasks_are_told_at_the_end() -> None:
    a, _ = started()
    assert a.audit.finish(np.arange(4, 10)).waiting == 6
    with pytest.raises(InvariantViolation, match="task 9 is lost"):
        a.audit.finish(np.arange(4, 9))
    with pytest.raises(InvariantViolation, match="task 4 waits twice"):
        a.audit.finish(ids(4, 4, 5, 6, 7, 8, 9))
    with pytest.raises(InvariantViolation, match="task 3 waits, and runs"):
        a.audit.finish(np.arange(3, 10))


def test_submitting_twice_and_going_back_in_time_are_told() -> None:
    a, _ = started()
    with pytest.raises(InvariantViolation, match="task 3 was submitted before"):
        a.submit(3)
    with pytest.raises(InvariantViolation, match="task 20 is submitted twice"):
        a.submit(20, 20)
    with pytest.raises(InvariantViolation, match="time goes back from 10 us"):
        a.audit.released(a.cell.release(ids(), None, 0), 9)


def test_a_cell_that_differs_is_told() -> None:
    a, first = started()
    a.cell.release(first.allocation[:1], None, a.now_us)
    with pytest.raises(InvariantViolation, match="another use of machine 0"):
        a.audit.matches(a.cell)
    with pytest.raises(InvariantViolation, match="another use of machine 0"):
        a.audit.matches(Cell(a.spec, a.partitioning))


def test_an_eviction_that_the_policy_forbids_is_a_violation() -> None:
    """A cell that lets anybody with priority evict, followed by audits of other policies."""
    priority = [0, 1, 2, 1]
    a = Audited(priority)
    a.submit(0, 1, 2, 3)
    running = a.commit(a.transaction([0, 1], [4, 4], amount=2)).allocation
    named = np.array([running[0]])
    preempting = replace(a.transaction([2], [4], amount=2, evict=named), scheduler=2)
    strict = [CellAudit(a.spec, a.partitioning, p) for p in (None, np.array([2, 0, 2], np.int32))]
    for audit in strict:
        audit.submitted(np.arange(4))
        first = a.transaction([0, 1], [4, 4], amount=2)
        fresh = Cell(a.spec, a.partitioning)
        audit.commit(first, fresh.commit(first, 0), 0)
    result = a.commit(preempting)
    assert result.evicted.tolist() == named.tolist() and result.reason.tolist() == [0]
    for audit in strict:
        with pytest.raises(InvariantViolation, match="was evicted by another scheduler"):
            audit.commit(preempting, result, a.now_us)
