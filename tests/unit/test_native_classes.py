"""The Python classes of native structs: used like frozen dataclasses, and typed as they are."""

from __future__ import annotations

import array
import ast
import copy
import dataclasses
import gc
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import parsync.core._native
import parsync.protocols._native
import shared_state._native
from parsync.core.event import CoreEvent
from parsync.core.events import (
    CORE_EVENTS,
    CommitRequest,
    MachinesDue,
    SyncReply,
    TasksStarted,
    TasksSubmitted,
)
from parsync.protocols.optimistic.events import OptimisticEvent, SyncDue
from shared_state.cell import Cell
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec
from shared_state.transaction import PartitionDelta, Transaction

ROOT = Path(__file__).parents[2]
MODULES = (shared_state._native, parsync.core._native, parsync.protocols._native)
I64 = np.array([3, 1, 2], np.int64)
I32 = np.array([0, 5, 7], np.int32)


def typed_fields(module: object) -> dict[str, list[str]]:
    """The fields of the dataclass-like classes of a module's stub, by class."""
    stub = ROOT / (module.__name__.replace(".", "/") + ".pyi")  # type: ignore[attr-defined]
    fields = {}
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.ClassDef):
            names = [
                part.target.id
                for part in node.body
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            ]
            if node.decorator_list or "__match_args__" in names:
                fields[node.name] = [name for name in names if not name.startswith("__")]
    return fields


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_types_name_the_fields_that_there_are(module: object) -> None:
    typed = typed_fields(module)
    expected = {
        name: list(value.__match_args__)
        for name, value in vars(module).items()
        if isinstance(value, type) and hasattr(value, "__match_args__")
    }
    assert typed == expected and typed


def test_faces_are_used_like_dataclasses() -> None:
    event = TasksStarted(7, I64, I64, I32, owner=I32)
    names = [field.name for field in dataclasses.fields(TasksStarted)]  # type: ignore[arg-type]
    assert names == ["start_us", "task", "allocation", "machine", "owner"]
    match event:
        case TasksStarted(start_us, task):
            assert start_us == 7 and task is I64
        case _:
            pytest.fail("no match")
    later = dataclasses.replace(event, start_us=8)  # type: ignore[type-var]
    assert later.start_us == 8 and later != event
    assert dataclasses.replace(later, start_us=7) == event  # type: ignore[type-var]
    assert event == TasksStarted(7, I64.copy(), I64, I32, I32)
    assert event != TasksStarted(7, I64[::-1], I64, I32, I32)
    assert event != 7 and event != MachinesDue(7)
    assert repr(MachinesDue(3)) == "MachinesDue(row=3)"
    assert "task=array([3, 1, 2])" in repr(event)
    assert pickle.loads(pickle.dumps(event)) == event == copy.deepcopy(event)
    with pytest.raises(AttributeError):
        event.start_us = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        hash(event)

    assert all(issubclass(cls, CoreEvent) for cls in CORE_EVENTS)
    assert isinstance(SyncDue(1), OptimisticEvent) and not isinstance(SyncDue(1), CoreEvent)


def test_parts_are_equal_by_value() -> None:
    def delta(row: int) -> PartitionDelta:
        rows = np.array([row], np.uint16)
        return PartitionDelta(0, 0, 1, 5, rows, np.ones((1, 1), np.int8), np.ones(1, bool), None)

    assert SyncReply(0, (delta(1),)) == SyncReply(0, (delta(1),))
    assert SyncReply(0, (delta(1),)) != SyncReply(0, (delta(2),))
    assert SyncReply(0, (delta(1),)) != SyncReply(0, (delta(1), delta(1)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *(
            (lambda given=given: TasksSubmitted(given), "^task: expected an array")
            for given in (
                *(np.zeros(2, np.int32), np.zeros((2, 1), np.int64), np.zeros(2), [1, 2], None),
                # whose memory may move while a column points into it
                *(array.array("q", [1, 2]), bytearray(16), np.int64(5), np.array(5)),
            )
        ),
        *(
            (lambda part=part: CommitRequest(0, part), "transaction: expected a Transaction")
            for part in (None, ..., 7)
        ),
        *(
            (lambda number=number: MachinesDue(number), "row: expected an integer")
            for number in ("3", None, 2.5, 1 << 63)
        ),
        # native code would take one for its parent
        (lambda: type("Mine", (MachinesDue,), {"number": 99}), "subclassing"),
    ],
)
def test_what_does_not_belong_into_a_native_class_is_refused(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError), match=message):
        make()


def test_given_arrays_are_kept_and_native_ones_are_read_only() -> None:
    strided = np.arange(8)[::2]
    assert TasksSubmitted(I64).task is I64
    assert TasksSubmitted(strided).task.tolist() == [0, 2, 4, 6]
    ones = np.ones(4, np.int64)
    permille = np.full(1, 1000, np.int64)
    spec = CellSpec(("slots",), ones[:, None], ones.astype(np.int32), ones, permille)
    cell = Cell(spec, Partitioning.by_topology(spec, 2))
    none = np.zeros(0, np.int64)
    row = cell.snapshot(1, 3, False).row
    assert row.tolist() == [0, 1] and not row.flags.writeable
    assert cell.release(none, None, 0).task.tolist() == []


def test_faces_and_their_arrays_are_freed() -> None:
    column = np.arange(1000)
    references = sys.getrefcount(column)
    events = [TasksSubmitted(column) for _ in range(50)]
    assert [event.task is column for event in events] == [True] * 50
    transaction = Transaction(0, 1, column, column.astype(np.int32), column.reshape(-1, 1), column)
    del events, transaction
    gc.collect()
    assert sys.getrefcount(column) == references
