"""Machines of the Google trace, on tiny files: what they hold, and when they come and go."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.fixtures.google2011_files import (
    ADD,
    REMOVE,
    SCHEDULE,
    SECOND,
    SUBMIT,
    UPDATE,
    WINDOW,
    machine_row,
    task_row,
    write_trace,
)
from tests.fixtures.google2011_workloads import CLOCK, MACHINES, replay, trace


def test_schedule_at_zero_without_usable_machine_starts_pending(tmp_path: Path) -> None:
    workload = replay(
        trace(
            tmp_path,
            [
                *(task_row(0, 2, 0, event, "") for event in (SUBMIT, SCHEDULE)),
                *(task_row(0, 3, 0, event, 123456) for event in (SUBMIT, SCHEDULE)),
                *(task_row(0, 4, 0, event, 11) for event in (SUBMIT, SCHEDULE)),
                task_row(0, 5, 0, SUBMIT),
            ],
            machines=[*MACHINES, machine_row(WINDOW + SECOND, 11, ADD)],
        )
    )
    assert workload.tasks.job[workload.initial.task].tolist() == [1]
    assert sorted(workload.tasks.job[workload.arrival_rows].tolist()) == [2, 3, 4, 5]
    assert workload.arrival_us.tolist() == [0, 0, 0, 0]
    facts = workload.facts
    assert (
        facts["tasks_pending_without_machine_at_start"] == 1
        and facts["tasks_pending_machine_not_in_cell_at_start"] == 2
    )
    assert facts["tasks_pending_at_start"] == 4


def test_tasks_beyond_the_slots_start_pending_lowest_priority_first(tmp_path: Path) -> None:
    tasks = [
        task_row(0, 2, index, event, 7, priority=priority)
        for index, priority in enumerate([1, 4, 0, 4])
        for event in (SUBMIT, SCHEDULE)
    ]
    workload = replay(trace(tmp_path, tasks), resources="slots=2")
    on_seven = workload.initial.task[workload.initial.machine == 1]
    assert workload.tasks.priority[on_seven].tolist() == [4, 4]
    assert sorted(workload.tasks.priority[workload.arrival_rows].tolist()) == [0, 1]
    assert workload.facts["tasks_pending_beyond_slots_at_start"] == 2


def test_missing_and_zero_requests_and_what_runs_holds(tmp_path: Path) -> None:
    """A record made up by the trace's authors (missing info 2) has no request; the SCHEDULE row
    states what a running task holds."""
    workload = replay(
        trace(
            tmp_path,
            [
                task_row(0, 2, 0, SUBMIT, 7, cpu="", mem="", missing=2, different=""),
                task_row(0, 2, 0, SCHEDULE, 7, cpu=0.0625, mem=0.09473),
                task_row(0, 3, 0, SUBMIT, cpu="", mem="", missing=2, different=""),
                task_row(WINDOW + 1, 4, 0, SUBMIT, cpu=0, mem="1.526e-05"),
            ],
        ),
        resources="requests",
    )
    request = {
        int(job): workload.tasks.request[row].tolist() for row, job in enumerate(workload.tasks.job)
    }
    assert request == {1: [100_000, 50_000], 2: [62_500, 94_730], 3: [1, 1], 4: [0, 15]}
    assert (
        workload.facts["tasks_without_request"] == 1
        and workload.facts["tasks_with_a_zero_request"] == 1
    )


def test_over_commit_and_machines_above_it(tmp_path: Path) -> None:
    tasks = [
        task_row(0, 2, index, event, 7, cpu=0.3, mem=0.1)
        for index in range(2)
        for event in (SUBMIT, SCHEDULE)
    ]
    folder = trace(tmp_path, tasks)
    exact = replay(folder, resources="requests", overcommit=1.0)
    assert exact.cell.limit[1].tolist() == [500_000, 250_000]
    assert (
        exact.facts["machines_above_cpu_ppm_limit_at_start"] == 1
        and exact.facts["machines_above_mem_ppm_limit_at_start"] == 0
    )
    doubled = replay(folder, resources="requests")
    assert doubled.cell.limit[1].tolist() == [1_000_000, 500_000]
    assert doubled.facts["machines_above_cpu_ppm_limit_at_start"] == 0
    assert len(doubled.initial.task) == 3


def test_a_task_larger_than_every_machine_is_counted(tmp_path: Path) -> None:
    workload = replay(
        trace(tmp_path, [task_row(WINDOW + 1, 2, 0, SUBMIT, cpu=0.7)]),
        resources="requests",
        overcommit=1.0,
    )
    assert workload.facts["tasks_larger_than_every_machine"] == 1


def test_machines_come_and_go(tmp_path: Path) -> None:
    at = [WINDOW + k * SECOND for k in range(10)]
    machines = [
        machine_row(0, 9, ADD),
        machine_row(0, 5, ADD),
        machine_row(0, 7, ADD, cpu="", mem=""),
        machine_row(0, 5, ADD),  # already up
        machine_row(at[1], 7, UPDATE, cpu=0.25, mem=0.125),
        machine_row(at[2], 7, REMOVE),
        machine_row(at[3], 7, REMOVE),  # already down
        machine_row(at[4], 7, ADD, cpu=1, mem=1),
        machine_row(at[5], 6, ADD, cpu="", mem=""),  # later, capacity never stated
        machine_row(at[6], 8, UPDATE),  # never added
        machine_row(at[6], 5, UPDATE, cpu=1, mem=1),
    ]
    workload = replay(trace(tmp_path, [], machines=machines), resources="requests")
    # Rows are 5, 6, 7, 9; capacities as first stated.
    assert workload.cell.capacity.tolist() == [
        [500_000, 250_000],
        [0, 0],
        [250_000, 125_000],
        [500_000, 250_000],
    ]
    events = workload.machine_events
    assert list(
        zip(events.at_us.tolist(), events.machine.tolist(), events.up.tolist(), strict=True)
    ) == [(0, 1, False), (2 * SECOND, 2, False), (4 * SECOND, 2, True), (5 * SECOND, 1, True)]
    facts = workload.facts
    assert (
        facts["machines_up_at_start"] == 3
        and facts["machines_added_later"] == 1
        and facts["machine_removals"] == 1
    )
    assert facts["machine_events_without_effect"] == 2 and facts["machine_updates_ignored"] == 3
    assert facts["machines_without_capacity"] == 1


def test_changes_of_a_machine_that_fall_together_stay_in_order(tmp_path: Path) -> None:
    changes = [
        machine_row(WINDOW + 100 * SECOND + k, 7, event)
        for k, event in enumerate([REMOVE, ADD, REMOVE, ADD])
    ]
    early = [machine_row(WINDOW, 11, ADD), machine_row(WINDOW + 2, 11, REMOVE)]
    workload = replay(trace(tmp_path, [], machines=[*MACHINES, *early, *changes]), speedup=50)
    events = workload.machine_events
    of = {
        row: list(
            zip(
                events.at_us[events.machine == row].tolist(),
                events.up[events.machine == row].tolist(),
                strict=True,
            )
        )
        for row in (1, 3)
    }
    assert of[1] == [
        (2 * SECOND, False),
        (2 * SECOND + 1, True),
        (2 * SECOND + 2, False),
        (2 * SECOND + 3, True),
    ]
    assert of[3] == [(0, False), (1, True), (2, False)]


def test_racks_are_thirty_machines_by_id(tmp_path: Path) -> None:
    machines = [machine_row(0, 1000 - k, ADD) for k in range(65)]
    workload = replay(write_trace(tmp_path, machines, CLOCK))
    assert np.bincount(workload.cell.rack).tolist() == [30, 30, 5]
    assert workload.facts["tasks_pending_machine_not_in_cell_at_start"] == 1
