"""The columnar reduction of task and machine events against state machines that walk the rows one
by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from experiments.workloads.google2011 import UNKNOWN, trace_machines, trace_tasks
from experiments.workloads.google2011_tables import (
    TRACE_START_US,
    MachineEvent,
    MachineRows,
    TaskEvent,
    TaskRows,
    Trace,
    window_rows,
)

WINDOW_START_US = TRACE_START_US + 5

ENDS = {TaskEvent.EVICT, TaskEvent.FAIL, TaskEvent.FINISH, TaskEvent.KILL, TaskEvent.LOST}

times = st.one_of(st.just(0), st.integers(WINDOW_START_US - 2, WINDOW_START_US + 30))
task_events = st.lists(
    st.tuples(
        times, st.integers(1, 3), st.integers(0, 1), st.sampled_from(TaskEvent), st.integers(-1, 4)
    ),
    min_size=1,
    max_size=40,
).map(lambda rows: sorted(rows, key=lambda row: row[0]))
job_ends = st.dictionaries(st.integers(1, 3), st.integers(0, WINDOW_START_US + 60))


def walk(
    rows: list[tuple[int, int, int, TaskEvent, int]], job_end: dict[int, int]
) -> dict[str, object] | None:
    """One task, row by row: its first submission, whether and where it runs as the window opens,
    and its run time. What it did up to its last end before the window is left out."""
    early = [row for row in rows if row[0] < WINDOW_START_US]
    while early and early[-1][3] not in ENDS:
        early.pop()
    rows = rows[len(early) :]
    submitted = next(
        (time for time, *_, event, _ in rows if event in (TaskEvent.SUBMIT, TaskEvent.SCHEDULE)),
        None,
    )
    if submitted is None:
        return None
    since: int | None = None
    total, ran = 0, False
    at_open: int | None = None
    for time, _, _, event, machine in rows:
        if event == TaskEvent.SCHEDULE and since is None:
            since, ran = max(time, WINDOW_START_US), True
            if time < WINDOW_START_US:
                at_open = machine
        elif event in ENDS and since is not None:
            total += max(time, WINDOW_START_US) - since
            since = None
            if time < WINDOW_START_US:
                at_open = None
    if since is not None:
        end = job_end.get(rows[0][1], -1)
        total = total + end - since if end > since else UNKNOWN
    return {"submit": submitted, "machine": at_open, "run": total if ran else UNKNOWN}


@given(task_events, job_ends, st.lists(st.integers(0, 40)))
def test_tasks_against_a_walk(
    events: list[tuple[int, int, int, TaskEvent, int]], job_end: dict[int, int], cuts: list[int]
) -> None:
    """However the rows are cut into parts."""
    time, job, index, event, machine = (
        np.array(column, np.int64) for column in zip(*events, strict=True)
    )
    nothing = np.zeros(len(events))
    none = np.zeros(0, np.int64)
    ended = np.array(sorted(job_end), np.int64)
    columns = (time, job, index, machine, event, 0 * job, nothing, nothing, 0 * job)
    parts = zip(*(np.split(column, sorted(cuts)) for column in columns), strict=True)
    rows, over_before = window_rows(
        (TaskRows(*part) for part in parts), WINDOW_START_US, WINDOW_START_US + 25
    )
    over_in_whole = window_rows([TaskRows(*columns)], WINDOW_START_US, None)[1]
    assert over_before == over_in_whole
    trace = Trace(
        MachineRows(none, none, none, np.zeros(0), np.zeros(0)),
        rows,
        ended,
        np.array([job_end[key] for key in sorted(job_end)], np.int64),
        int(time[-1]),
        over_before,
        0,
        {},
    )
    tasks = trace_tasks(trace, WINDOW_START_US)
    found = {
        (int(tasks.job[row]), int(tasks.index[row])): {
            "submit": int(tasks.submit_us[row]),
            "machine": int(tasks.machine[row]) if tasks.running[row] else None,
            "run": int(tasks.run_us[row]),
        }
        for row in range(len(tasks.job))
    }
    expected = {}
    for key in sorted({(row[1], row[2]) for row in events}):
        walked = walk([row for row in events if (row[1], row[2]) == key], job_end)
        if walked is not None:
            expected[key] = walked
    # Tasks that are first seen behind the window may be left out.
    arriving = {key for key, task in expected.items() if task["submit"] < WINDOW_START_US + 25}
    assert arriving <= set(found) <= set(expected) and list(found) == sorted(found)
    assert found == {key: expected[key] for key in found}


machine_events = st.lists(
    st.tuples(times, st.integers(10, 14), st.sampled_from(MachineEvent)), min_size=1, max_size=40
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


@given(machine_events, st.integers(WINDOW_START_US + 1, WINDOW_START_US + 40))
def test_machines_against_a_walk(events: list[tuple[int, int, MachineEvent]], end_us: int) -> None:
    time, machine, event = (np.array(column, np.int64) for column in zip(*events, strict=True))
    found = trace_machines(
        MachineRows(time, machine, event, np.ones(len(events)), np.ones(len(events))),
        WINDOW_START_US,
        end_us,
    )
    up: set[int] = set()
    at_open: set[int] = set()
    changes = []
    for at, who, what in events:
        if at >= end_us or what == MachineEvent.UPDATE or (what == MachineEvent.ADD) == (who in up):
            continue
        up ^= {who}
        if at < WINDOW_START_US:
            at_open = set(up)
        else:
            changes.append((at, who, who in up))
    assert found.id.tolist() == sorted(at_open | {who for _, who, _ in changes})
    assert set(found.id[found.up].tolist()) == at_open
    ids = found.id[found.changed_row].tolist()
    assert (
        list(zip(found.changed_us.tolist(), ids, found.changed_up.tolist(), strict=True)) == changes
    )
