"""Queued tasks in Python's hands: as many rows as asked for, the arrays that Python made them of,
and what Python writes into a column is what queues see."""

from __future__ import annotations

import numpy as np
import pytest

from parsync.core.queued_tasks import NO_TASKS, DelegatedTasks, QueuedTasks, split_batch
from parsync.protocols.pending_queue import (
    AgentQueue,
    LoserPolicy,
)


def tasks_of(*task: int) -> QueuedTasks:
    return QueuedTasks.new(np.array(task, np.int64), 1)


@pytest.mark.parametrize(
    ("rows", "taken"),
    [
        (slice(1, None), [5, 9, 2]),
        (slice(None, None, -2), [2, 5]),
        (np.array([False, True, False, True]), [5, 2]),
        (np.array([3, -4, 0]), [2, 7, 7]),
        (np.zeros(0, np.int64), []),
    ],
)
def test_rows_are_taken_as_numpy_takes_them(rows: np.ndarray | slice, taken: list[int]) -> None:
    task = np.array([7, 5, 9, 2])
    assert task[rows].tolist() == taken
    tasks = QueuedTasks(task, np.arange(4, dtype=np.int32), np.ones(4, np.int8), 3, True)
    some = tasks.take(rows)
    assert some.task.tolist() == taken and len(some) == len(taken)
    assert some.attempts.tolist() == np.arange(4)[rows].tolist()
    assert (some.rounds, some.some_placed) == (3, True)


def test_what_is_taken_does_not_share_memory() -> None:
    tasks = tasks_of(1, 2, 3)
    head, rest = tasks.split(2)
    head.attempts[:] = 9
    assert tasks.attempts.tolist() == [0, 0, 0] and rest.task.tolist() == [3]


def test_a_queue_sees_what_was_written_into_a_column() -> None:
    tasks = tasks_of(4, 6)
    queue = AgentQueue(LoserPolicy.BLOCK, 9, 9)
    queue.add(tasks)
    tasks.attempts[1] += 1
    tasks.first = np.zeros(2, np.int8)
    queue.add(tasks)
    for attempts, first in (([0, 0], [1, 1]), ([0, 1], [0, 0])):
        assert queue.next_batch(0, False) == 2
        offered = queue.take(None)
        assert (offered.attempts.tolist(), offered.first.tolist()) == (attempts, first)


def test_the_arrays_that_they_were_made_of_are_kept() -> None:
    task, attempts, first = np.arange(3), np.zeros(3, np.int32), np.ones(3, np.int8)
    tasks = QueuedTasks(task, attempts, first)
    assert tasks.take(slice(0, 1)).task.tolist() == [0]  # native code has looked at them
    assert tasks.task is task and tasks.attempts is attempts and tasks.first is first
    match tasks:
        case QueuedTasks(ids, _, _, rounds):
            assert ids is task and rounds == 0


def test_an_array_outlives_the_tasks() -> None:
    task = tasks_of(1, 2, 3).take(slice(1, None)).task
    tasks_of(*range(1000))
    assert task.tolist() == [2, 3]


def test_columns_of_any_layout_are_taken() -> None:
    twice = np.repeat(np.array([3, 1, 2]), 2)
    tasks = QueuedTasks.new(twice[::2], 0)
    assert tasks.take(np.array([2, 0])).task.tolist() == [2, 3]
    assert tasks.task.tolist() == [3, 1, 2]


def test_equal_tasks_are_equal() -> None:
    assert tasks_of(1, 2) == tasks_of(1, 2) != tasks_of(2, 1)
    assert tasks_of(1) != QueuedTasks.new(np.array([1]), 0)
    assert tasks_of(1).__eq__(1) is NotImplemented
    with pytest.raises(TypeError, match="unhashable"):
        hash(NO_TASKS)


def test_joined_tasks_keep_their_rounds_only_alone() -> None:
    counted = QueuedTasks(np.array([1]), np.zeros(1, np.int32), np.ones(1, np.int8), 2, True)
    assert QueuedTasks.join([NO_TASKS, counted, NO_TASKS]) is counted
    both = QueuedTasks.join([counted, tasks_of(2)])
    assert both.task.tolist() == [1, 2] and (both.rounds, both.some_placed) == (0, False)
    assert QueuedTasks.join([]) == NO_TASKS


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.arange(2.0), r"task: expected an array int64\[2\]"),
        (np.arange(2, dtype=np.int32), r"task: expected an array int64\[2\]"),
        (np.zeros((2, 1), np.int64), r"task: expected an array int64\[2\]"),
    ],
)
def test_other_columns_are_refused(column: np.ndarray, message: str) -> None:
    tasks = QueuedTasks(column, np.zeros(2, np.int32), np.ones(2, np.int8))
    with pytest.raises(ValueError, match=message):
        tasks.take(slice(0, 1))
    with pytest.raises(ValueError, match=message):
        AgentQueue(LoserPolicy.BLOCK, 1, 1).add(tasks)


def test_bad_rows_are_refused() -> None:
    with pytest.raises(IndexError, match="row 2: expected one of 2"):
        tasks_of(1, 2).take(np.array([2]))
    with pytest.raises(ValueError, match=r"rows: expected an array bool\[2\]"):
        tasks_of(1, 2).take(np.ones(3, np.bool_))
    with pytest.raises(ValueError, match="attempts: expected an array"):
        QueuedTasks(np.arange(2), np.zeros(3, np.int32), np.ones(2, np.int8)).take(slice(1))


def test_a_batch_is_split_where_a_gang_ends() -> None:
    gang = np.array([-1, 7, 7, -1])
    head, rest = split_batch(tasks_of(0, 1, 2, 3), 2, gang)
    assert (head.task.tolist(), rest.task.tolist()) == ([0], [1, 2, 3])
    assert split_batch(head, None, gang)[0] is head
    with pytest.raises(IndexError, match="task 4: expected an id below 4"):
        split_batch(tasks_of(3, 4), 1, gang)


def test_delegated_tasks_come_back_with_their_attempts() -> None:
    delegated = DelegatedTasks()
    delegated.add(QueuedTasks(np.array([5, 2]), np.array([1, 3], np.int32), np.zeros(2, np.int8)))
    found, known = delegated.take(np.array([2, 4, 5]))
    assert known.tolist() == [True, False, True]
    assert (found.attempts.tolist(), found.first.tolist()) == ([3, 0, 1], [0, 1, 0])
    assert not len(delegated)
