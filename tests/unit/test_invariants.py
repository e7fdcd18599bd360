"""The audit tells every kind of lie. That it is silent on what a cell really does, the cell's
property test shows (tests/properties/test_cell_reference.py)."""

from __future__ import annotations

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


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def rows(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def started() -> tuple[Audited, CommitResult]:
    """Tasks 0..3 run on machines 0, 0, 4, 8; tasks 4..9 wait."""
    a = Audited()
    a.submit(*range(10))
    return a, a.commit(a.transaction([0, 1, 2, 3], [0, 0, 4, 8]))


def changed(value: Any, changes: dict[str, Any]) -> Any:
    """The value with other fields. Of an array field, {row: entry} are changed; a function maps the
    whole."""

    def field(name: str, change: Any) -> Any:
        if callable(change):
            return change(getattr(value, name))
        if not isinstance(change, dict):
            return change
        array = getattr(value, name).copy()
        for row, entry in change.items():
            array[row] = entry
        return array

    return replace(value, **{name: field(name, change) for name, change in changes.items()})


SEQUENCE_NUMBER = {"conflict_check": ConflictCheck.SEQUENCE_NUMBER}
# What is told; changes of the transaction, and of its result. Claims 0 and 1 were accepted, claim 2
# did not fit.
COMMIT_LIES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("above its limit", {}, {"reason": {2: 0}, "allocation": {2: 77}, "rival": {2: -1}}),
    ("wrong version|fits", {}, {"reason": {0: 2}, "allocation": {0: -1}}),
    ("accepted without an allocation", {}, {"allocation": {0: -1}}),
    ("given twice", {}, {"allocation": lambda of: of[[1, 1, 2]]}),
    ("a second time", {}, {"allocation": {0: 0}}),
    ("slot is in use", {}, {"allocation": {0: 1 << 32}}),
    ("accepted . rejected != submitted", {}, {"reason": lambda of: of[:-1]}),
    ("not one to this transaction", {}, {"sequence": lambda of: of + 1}),
    ("no known reason", {}, {"reason": {2: 9}}),
    ("wrong age", {}, {"age_us": lambda of: of + 1}),
    ("wrong version", {}, {"version": lambda of: of - 1}),
    ("wrong rival", {}, {"rival": {2: 8}}),
    ("wrong rival", {}, {"rival": {0: 1}}),
    ("rejected as stale, its machine has not changed", {}, {"reason": {2: 1}}),
    ("a machine that is up", {}, {"reason": {2: 3}}),
    ("for a victim, and there is none", {}, {"reason": {2: 4}}),
    ("without gangs", {}, {"reason": {2: 5}}),
    ("as duplicate, its task waits", {}, {"reason": {2: 6}}),
    ("task 3 is placed", {"task": {0: 3}}, {}),
    ("task 2 is placed", {"task": {0: 2}}, {}),  # it has finished
    ("task 99 is placed", {"task": {0: 99}}, {}),  # there is none
    ("task 5 is placed twice", {"task": {0: 5}}, {}),
    ("machine 11 is down", {"machine": {0: 11}}, {}),
    ("accepted in part", {"commit_mode": CommitMode.ALL_OR_NOTHING}, {}),
    ("evicted and not named", {}, {"evicted": ids(0)}),
    ("never existed", {"evict": ids(55)}, {"evicted": ids(55)}),
    ("evicted twice", {"evict": ids(0)}, {"evicted": ids(0, 0)}),
    ("had ended", {"evict": ids(2)}, {"evicted": ids(2)}),
    ("by another scheduler", {"scheduler": 5, "evict": ids(0)}, {"evicted": ids(0)}),
    (
        "accepted on a machine that has changed",
        SEQUENCE_NUMBER | {"seqnum": np.full(3, 9, np.uint32)},
        {},
    ),
    (
        "its machine has not changed",
        SEQUENCE_NUMBER | {"seqnum": np.array([0, 0, 2], np.uint32)},
        {"reason": {2: 1}},
    ),
]


@pytest.mark.parametrize(("message", "of_transaction", "of_result"), COMMIT_LIES)
def test_a_false_commit_is_told(
    message: str, of_transaction: dict[str, Any], of_result: dict[str, Any]
) -> None:
    a, first = started()
    a.audit.released(a.cell.release(first.allocation[2:3], None, a.now_us), a.now_us)
    down = rows(11), np.array([False])
    a.audit.machines(*down, a.cell.set_machines(*down, a.now_us), a.now_us)
    t = a.transaction([4, 5, 6], [1, 2, 0])
    t = replace(t, request=np.array([[1, 1], [1, 1], [4, 4]]))
    result = a.cell.commit(t, a.now_us)
    with pytest.raises(InvariantViolation, match=message) as told:
        a.audit.commit(changed(t, of_transaction), changed(result, of_result), a.now_us)
    assert f"commit {t.sequence}" in str(told.value) or "scheduler 5" in str(told.value)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("task 4 ended and did not run", {"task": {0: 4}}),
        (
            "task 0 ended twice",
            dict.fromkeys(Released.__slots__, lambda of: np.repeat(of, 2, axis=0)),
        ),
        ("not its own", {"allocation": lambda of: of + 1}),
        ("on another machine", {"machine": lambda of: of + 1}),
        ("for another owner", {"owner": lambda of: of + 1}),
        ("freed what it had not taken", {"request": lambda of: of + 1}),
        ("wrong version", {"version": lambda of: of - 1}),
    ],
)
def test_a_false_release_is_told(message: str, changes: dict[str, Any]) -> None:
    a, first = started()
    released = a.cell.release(first.allocation[:1], None, a.now_us)
    with pytest.raises(InvariantViolation, match=message):
        a.audit.released(changed(released, changes), a.now_us)


def test_tasks_forgotten_on_a_lost_machine_are_told() -> None:
    a, _ = started()
    lost = a.cell.set_machines(rows(0), np.array([False]), a.now_us)
    forgotten = Released(*(getattr(lost, name)[1:] for name in Released.__slots__))
    with pytest.raises(InvariantViolation, match="said to be lost are not those"):
        a.audit.machines(rows(0), np.array([False]), forgotten, a.now_us)


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("newer than the cell", {"to_version": 3}),
        ("starts at version 2, the view was brought to 1", {"from_version": 2}),
        ("goes back", {"to_version": 0}),
        ("ends at version 1, the cell is at 2", {"to_version": 1}),
        ("not those that changed", {"row": np.array([0], np.uint16)}),
        ("not those that changed", {"row": np.zeros(0, np.uint16)}),
        ("another use of machine 1", {"used": np.array([[2, 2]], np.int8)}),
        ("machine 1 up or down", {"up": np.array([False])}),
        ("another sequence number of machine 1", {"seqnum": np.array([2], np.uint32)}),
    ],
)
def test_a_false_delta_is_told(message: str, change: dict[str, Any]) -> None:
    a, _ = started()
    a.audit.delta(0, a.cell.delta_since(0, 0, a.now_us, with_seqnum=True))
    a.commit(a.transaction([4], [1]))
    delta = a.cell.delta_since(0, 1, a.now_us, with_seqnum=True)
    with pytest.raises(InvariantViolation, match=message):
        a.audit.delta(0, replace(delta, **change))


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
