"""The Python class of the flow scheduler's task table; its behaviour is tested in
tests/cpp/schedulers_task_table.cpp."""

from __future__ import annotations

import numpy as np
import pytest

from schedulers.flow.solver_graph import NO_ROW, TaskState, TaskTable
from shared_state.tasks import TaskBatch
from tests.flow_world import tasks_of


def table_of(tasks: TaskBatch) -> TaskTable:
    table = TaskTable(tasks.request.shape[1])
    table.offer(tasks)
    return table


def test_a_batch_is_what_was_offered() -> None:
    request = np.array([[1, 2], [3, 4], [5, 6]])
    tasks = tasks_of(
        np.array([7, 3, 9]),
        job=np.array([1, 2, 1]),
        request=request,
        submit_us=5,
        preference=np.array([0, 2, 1]),
        gang=np.array([-1, 4, 4]),
    )
    table = table_of(tasks)
    row = table.rows(np.array([9, 7, 8, -1]))
    assert row[2:].tolist() == [NO_ROW, NO_ROW]
    batch = table.batch(row[:2])
    expected = tasks.take(np.array([2, 0]))
    for field in TaskBatch.__slots__:
        got, wanted = getattr(batch, field), getattr(expected, field)
        assert got.dtype == wanted.dtype
        assert np.array_equal(got, wanted), field
    assert table.requests(row[:2]).tolist() == [[5, 6], [1, 2]]
    assert table.gangs(row[:2]).tolist() == [4, -1]


def test_columns_of_any_layout_may_be_offered() -> None:
    wide = np.arange(24).reshape(4, 6)
    tasks = tasks_of(np.arange(8)[::2], request=wide[:, ::3], gang=np.arange(8)[::-2])
    table = table_of(tasks)
    batch = table.batch(table.rows(tasks.task))
    assert np.array_equal(batch.request, wide[:, ::3])
    assert batch.gang.tolist() == [7, 5, 3, 1]


def test_windows_are_read_only_and_outlive_the_growth_of_the_table() -> None:
    table = table_of(tasks_of(np.arange(3)))
    before = table.state
    assert not before.flags.writeable
    table.offer(tasks_of(np.arange(3, 5000)))
    assert (before[:3] == TaskState.WAITING).all()
    assert table.capacity == len(table.state) > len(before)
    table.forget(np.arange(3))
    assert (table.state == TaskState.ABSENT).sum() == table.capacity - 4997
    assert (before[:3] == TaskState.WAITING).all()  # as it was


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"request": np.ones((2, 2), np.int64)}, r"request: expected an array int64\[2, 1\]"),
        ({"priority": np.zeros(2, np.int64)}, r"priority: expected an array int32\[2\]"),
        ({"gang": np.zeros(1, np.int64)}, r"gang: expected an array int64\[2\]"),
        ({"task": np.array([0, -1])}, "task: expected ids from 0 on"),
    ],
)
def test_tasks_that_are_none_are_refused(change: dict[str, np.ndarray], message: str) -> None:
    tasks = tasks_of(np.arange(2))
    columns = {field: getattr(tasks, field) for field in TaskBatch.__slots__}
    table = TaskTable(1)
    with pytest.raises(ValueError, match=message):
        table.offer(TaskBatch(**{**columns, **change}))
    assert table.capacity == 0


def test_rows_that_do_not_exist_are_refused() -> None:
    table = table_of(tasks_of(np.arange(2)))
    for row in (np.array([table.capacity]), np.array([-1])):
        with pytest.raises(ValueError, match="row: expected rows of the table"):
            table.batch(row)
        with pytest.raises(ValueError, match="row: expected rows of the table"):
            table.set_state(row, TaskState.WAITING)
