"""The Google trace on tiny files: every pitfall of the data set, one by one; what is wrong with a
folder is told by file and line; and counts of the real trace, if it is there.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.config.flags import trace_workload
from experiments.workloads import google2011
from experiments.workloads.google2011 import Google2011Options, load
from experiments.workloads.google2011_tables import Trace, read_trace
from experiments.workloads.inspection import describe, digest
from parsync.workload.checks import validate
from shared_state.errors import AgoraError
from shared_state.tasks import TaskClass
from tests.fixtures.google2011_files import (
    ADD,
    EVICT,
    FAIL,
    FINISH,
    JOB_EVENTS,
    JOB_EVENTS_LATER,
    KILL,
    MACHINE_EVENTS,
    REMOVE,
    SCHEDULE,
    SECOND,
    SUBMIT,
    TASK_EVENTS,
    UPDATE,
    UPDATE_PENDING,
    WINDOW,
    job_row,
    machine_row,
    row_at,
    rows_of,
    task_row,
    write_gzip,
    write_trace,
)
from tests.fixtures.google2011_workloads import CLOCK, MACHINES, replay, replayed, row_of, trace


def assert_facts(facts: Mapping[str, object], **expected: object) -> None:
    assert {name: facts[name] for name in expected} == expected


def test_initial_state_arrivals_and_ends(tmp_path: Path) -> None:
    workload = replayed(
        tmp_path,
        row_at(10, 2, 0, SUBMIT, priority=9),
        *rows_of(2, 0, (12, SCHEDULE, 7), (42, FINISH, 7)),
    )
    assert workload.initial.task.tolist() == [0] and workload.initial.machine.tolist() == [0]
    assert workload.duration_us.tolist() == [1000 * SECOND, 30 * SECOND]
    assert workload.arrival_us.tolist() == [10 * SECOND]
    assert workload.tasks.priority.tolist() == [0, 9]
    assert workload.cell.capacity.tolist() == [[13], [13], [13]]
    assert workload.end_us == 1000 * SECOND + 1


SENTINELS = [str((1 << 63) - 1), str(1 << 63), str((1 << 64) - 1)]  # after the end of the trace
AGAIN = [task_row(WINDOW + at * SECOND + 1, 2, 0, SUBMIT) for at in (15, 27)]
ATTEMPTS = [
    *rows_of(2, 0, (1, SUBMIT), (10, SCHEDULE, 7), (15, EVICT, 7), (20, SCHEDULE, 9)),
    *rows_of(2, 0, (27, FAIL, 9), (30, SCHEDULE, 9), (41, KILL, 9)),
    row_at(2, 2, 0, UPDATE_PENDING, cpu=0.4),
]
# what is in the files, the run times of jobs 2 and up in s, and what the report counts
PITFALLS: dict[str, tuple[dict[str, Any], dict[int, int], dict[str, object]]] = {
    "attempts add up, resubmissions are no arrivals": (
        {"tasks": [*ATTEMPTS, *AGAIN]},
        {2: 5 + 7 + 11},
        {"resubmissions_ignored": 2, "task_updates_ignored": 1},
    ),
    "a task killed while it waits never ran": (
        {"tasks": rows_of(2, 0, (1, SUBMIT), (9, KILL))},
        {2: -1},
        {"tasks_never_run": 1},
    ),
    "repeated rows count once": (
        {"tasks": rows_of(2, 0, (1, SUBMIT), (2, SCHEDULE, 7), (5, FINISH, 7)) * 2},
        {2: 3},
        {},
    ),
    "a SCHEDULE stands in for a missing SUBMIT": (
        {"tasks": rows_of(2, 0, (3, SCHEDULE, 7), (5, FINISH, 7)) + rows_of(3, 0, (5, FINISH, 7))},
        {2: 2},
        {"tasks_without_submit": 1, "tasks_never_submitted_dropped": 1},
    ),
    "tasks that are over before the window are dropped": (
        {"tasks": [task_row(at, 2, 0, event, 7) for at, event in ((0, 0), (0, 1), (SECOND, 4))]},
        {},
        {"tasks_over_before_the_window_dropped": 1},
    ),
    "times after the trace are dropped": (
        {
            "tasks": [task_row(0, 2, 0, event, 7) for event in (SUBMIT, SCHEDULE)]
            + [task_row(time, 2, 0, FINISH, 7) for time in SENTINELS],
            "machines": [*MACHINES, machine_row(SENTINELS[0], 7, REMOVE)],
            "later": [job_row(SENTINELS[1], 2, FINISH)],
        },
        {2: -1},
        {"trace_rows_after_the_end_dropped": 5},
    ),
}


@pytest.mark.parametrize("pitfall", PITFALLS)
def test_a_pitfall(tmp_path: Path, pitfall: str) -> None:
    tables, run_s, facts = PITFALLS[pitfall]
    workload = replay(trace(tmp_path, **tables), resources="requests")
    tasks = workload.tasks
    others = np.flatnonzero(tasks.job > 1)
    found = np.where(workload.duration_us < 0, -1, workload.duration_us // SECOND)[others]
    assert dict(zip(tasks.job[others].tolist(), found.tolist(), strict=True)) == run_s
    assert_facts(workload.facts, **facts)
    services = workload.duration_us < 0
    assert ((tasks.task_class == TaskClass.SERVICE) == services).all()
    assert ((tasks.preference == 0) == services).all()
    assert (tasks.request == [100_000, 50_000]).all(), "what the first SUBMIT states"
    assert workload.end_us == 1000 * SECOND + 1 and not len(workload.machine_events.at_us)


def test_open_runs_end_with_their_job_or_never(tmp_path: Path) -> None:
    tasks = [task_row(0, job, 0, event, 7) for job in (2, 3, 4) for event in (SUBMIT, SCHEDULE)]
    workload = replay(
        trace(
            tmp_path,
            tasks,
            # Job 4 ended before the task was (re)scheduled: no bound.
            jobs=[job_row(WINDOW - 1, 4, FINISH)],
            later=[
                job_row(WINDOW + 5000 * SECOND, 2, KILL),
                job_row(WINDOW + 7000 * SECOND, 2, FINISH),
            ],
        )
    )
    durations = {job: int(workload.duration_us[row_of(workload, job)]) for job in (2, 3, 4)}
    assert durations == {2: 7000 * SECOND, 3: -1, 4: -1}
    assert_facts(workload.facts, runs_open_at_end=3, runs_open_ended_with_their_job=1)


def test_speedup_divides_times_and_run_times(tmp_path: Path) -> None:
    rows = rows_of(2, 0, (10, SUBMIT), (12, SCHEDULE, 7), (7012, FINISH, 7))
    workload = replayed(tmp_path, *rows, speedup=50)
    assert workload.duration_us.tolist() == [20 * SECOND, 140 * SECOND]
    assert workload.arrival_us.tolist() == [200_000]
    # The input belongs to the trace's run time: 7000 s read two blocks, 1000 s one.
    assert workload.facts["input_blocks_gb"] == 3


def test_waiting_is_priced_by_the_second_of_the_trace_however_fast_it_runs(tmp_path: Path) -> None:
    for speedup in (1, 50):
        catalog = replayed(tmp_path / str(speedup), speedup=speedup).catalog
        per_run_second = catalog.wait_cost * 1_000_000 // catalog.wait_quantum_us
        assert per_run_second == 500 * speedup


def test_rows_out_of_order_are_sorted(tmp_path: Path) -> None:
    rows = rows_of(2, 0, (9, FINISH, 7), (2, SCHEDULE, 7), (1, SUBMIT))
    workload = replay(write_trace(tmp_path, MACHINES, [*CLOCK, *rows]))
    assert workload.duration_us.tolist() == [1000 * SECOND, 7 * SECOND]


def test_batches_are_of_one_job_and_bounded(tmp_path: Path) -> None:
    """A job's tasks are submitted microseconds apart in the trace; they arrive together, no task
    before its time."""
    rows = [task_row(WINDOW + 5 * SECOND + index, 2, index, SUBMIT) for index in range(7)]
    rows += [task_row(WINDOW + 5 * SECOND + 3, 3, 0, SUBMIT), row_at(50, 2, 7, SUBMIT)]
    workload = replayed(tmp_path, *rows, batch_tasks=3)
    size = np.diff(workload.arrival_offsets).tolist()
    job = workload.tasks.job[workload.arrival_rows[workload.arrival_offsets[:-1]]].tolist()
    at = workload.arrival_us.tolist()
    late = 5 * SECOND + 6
    assert list(zip(at, job, size, strict=True)) == [
        (5 * SECOND + 3, 3, 1),
        (late, 2, 3),
        (late, 2, 3),
        (late, 2, 1),
        (50 * SECOND, 2, 1),
    ]


def test_duration_cuts_arrivals_and_machine_events(tmp_path: Path) -> None:
    rows = [row_at(at, 2, at, SUBMIT) for at in (5, 10, 20)]
    folder = trace(
        tmp_path, rows, machines=[*MACHINES, machine_row(WINDOW + 15 * SECOND, 7, REMOVE)]
    )
    workload = replay(folder, duration_s=10)
    assert workload.end_us == 10 * SECOND and workload.arrival_us.tolist() == [5 * SECOND]
    assert (
        workload.facts["tasks_after_the_end_dropped"] == 2
        and len(workload.machine_events.at_us) == 0
    )
    assert replay(folder, duration_s=1e5).end_us == 1000 * SECOND + 1


def test_batch_tasks_have_input_data_and_services_none(tmp_path: Path) -> None:
    running = [task_row(0, job, 0, event, 7) for job in (2, 3) for event in (SUBMIT, SCHEDULE)]
    workload = replayed(
        tmp_path, *running, later=[job_row(WINDOW + 7000 * SECOND, 2, FINISH)], machines_per_rack=1
    )
    catalog = workload.catalog
    assert workload.tasks.preference.tolist() == [1, 2, 0] and catalog.sets == 3
    # 7000 s read two blocks on three machines each: every machine of the cell holds them all.
    assert catalog.machine.tolist() == [0, 1, 2] * 2 and not catalog.machine_cost.any()
    assert catalog.elsewhere_cost.tolist() == [
        0,
        2000,
        4000,
    ] and catalog.unscheduled_cost.tolist() == [4500, 2500, 4500]


def test_tasks_share_the_files_of_a_pool(tmp_path: Path) -> None:
    machines = [machine_row(0, k, ADD) for k in range(100)]
    rows = [task_row(WINDOW + SECOND, 2, at, SUBMIT) for at in range(2000)]
    done = [row_at(9, 2, at, FINISH) for at in range(2000)]
    started = [row_at(2, 2, at, SCHEDULE) for at in range(2000)]
    folder = write_trace(tmp_path, machines, [*rows, *started, *done])
    pool = {"count": 20, "zipf": 1.0, "gb": [2, 4]}
    options = Google2011Options.model_validate({"directory": folder, "input_files": pool})
    workload = load(options, 1)
    catalog, read = workload.catalog, workload.tasks.preference
    assert catalog.sets == 21 and read.min() >= 1
    assert set(catalog.elsewhere_cost[1:].tolist()) == {4000, 8000}
    counts = np.bincount(read, minlength=21)[1:]
    assert counts.sum() == 2000
    # Zipf's law: 1 / H(20) of the tasks read the first of 20 files, a tenth as many the tenth.
    assert counts[0] / 2000 == pytest.approx(0.278, abs=0.04)
    assert counts[9] / 2000 == pytest.approx(0.028, abs=0.015)


def test_how_much_input_makes_a_machine_preferred(tmp_path: Path) -> None:
    """Six blocks of three replicas each, most of them on machines of their own: these hold a sixth
    of the input."""
    machines = [machine_row(0, k, ADD) for k in range(100)]
    folder = write_trace(tmp_path, machines, CLOCK)
    listed = {}
    for percent in (None, 10, 14, 20, 100):
        changes = {} if percent is None else {"preferred_input_percent": percent}
        options = {"directory": folder, "input_files": {"count": 4, "gb": [6]}, **changes}
        catalog = load(Google2011Options.model_validate(options), 1).catalog
        assert set(catalog.elsewhere_cost[1:].tolist()) == {12_000}
        listed[percent] = len(catalog.machine)
    assert listed[None] == listed[10] == listed[14] > 4 * 10 > listed[20] > listed[100] == 0


def test_the_seed_moves_the_data_only(tmp_path: Path) -> None:
    machines = [machine_row(0, k, ADD) for k in range(100)]
    folder = write_trace(tmp_path, machines, CLOCK)
    options = Google2011Options(directory=folder)
    one, two = load(options, 1), load(options, 2)
    assert not np.array_equal(one.catalog.machine, two.catalog.machine)
    assert np.array_equal(one.duration_us, two.duration_us) and np.array_equal(
        one.initial.machine, two.initial.machine
    )
    assert np.array_equal(one.catalog.machine, load(options, 1).catalog.machine)


@pytest.mark.parametrize(
    "fault",
    [
        {"resources": "slots=0"},
        {"resources": "cpu"},
        {"overcommit": 2.0},
        {"speedup": 0},
        {"duration_s": 0},
        {"slots": 3},
        {"input_files": {"count": 0}},
        {"input_files": {"count": 5, "gb": [21]}},
        {"input_files": {"count": 5, "zipf": -1}},
        {"preferred_input_percent": 0},
        {"preferred_input_percent": 101},
    ],
)
def test_bad_options_are_refused(fault: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(fault))):
        Google2011Options.model_validate({"directory": "x", **fault})


def test_the_trace_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"kind": "google2011", "directory": "some/folder"}
    assert trace_workload("google2011:some/folder") == named
    monkeypatch.setenv("AGORA_TRACES", "/traces")
    assert trace_workload("google2011")["directory"] == "/traces/google2011"
    monkeypatch.delenv("AGORA_TRACES")
    for bad in ("google2011", "google2011:", "google2019:x", "x"):
        with pytest.raises(AgoraError, match=bad):
            trace_workload(bad)


def test_seeds_share_what_was_read_until_a_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []

    def read(directory: Path, start_us: int, end_us: int | None) -> Trace:
        reads.append(directory)
        return read_trace(directory, start_us, end_us)

    monkeypatch.setattr(google2011, "read_trace", read)
    folder = trace(tmp_path, [row_at(10, 2, 0, SUBMIT)])
    options = Google2011Options(directory=folder)
    first = load(options, seed=1)
    again = load(options, seed=2)
    assert len(reads) == 1 and len(first.tasks) == len(again.tasks) == 2
    first.tasks.job[:] = -1  # of no other seed
    assert load(options, seed=1).tasks.job.tolist() == again.tasks.job.tolist()
    trace(tmp_path, [row_at(10, job, 0, SUBMIT) for job in (2, 3)])
    assert len(load(options, seed=1).tasks) == 3 and len(reads) == 2


def cut(folder: Path, *cuts: int) -> Path:
    """The same trace with its task events in several parts: gzip and plain, some with a header."""
    whole = gzip.decompress((folder / TASK_EVENTS).read_bytes()).decode().splitlines(keepends=True)
    for number, (low, high) in enumerate(pairwise([0, *cuts, len(whole)])):
        path = (folder / TASK_EVENTS).with_name(f"part-{number:05}-of-00500.csv.gz")
        text = "".join(whole[low:high])
        if number % 2:
            header = HEADER if number % 4 == 1 else ""
            path.with_suffix("").write_text(header + text)
        else:
            write_gzip(path, text)
    return folder


HEADER = (
    "time,missing_info,job_id,task_index,machine_id,event_type,user,scheduling_class,priority,"
    "cpu_request,memory_request,disk_space_request,different_machines_restriction\n"
)
HISTORY = [
    *(task_row(0, 2, index, event, 7) for index in range(3) for event in (SUBMIT, SCHEDULE)),
    row_at(10, 2, 0, FINISH, 7),
    row_at(20, 3, 0, SUBMIT),
    *rows_of(2, 1, (30, EVICT, 7), (30, SUBMIT)),
    row_at(40, 4, 0, SUBMIT),
    row_at(50, 3, 0, SCHEDULE, 9),
    row_at(60, 2, 1, SCHEDULE, 5),
    row_at(70, 4, 0, SCHEDULE, 9),
    row_at(80, 3, 0, FINISH, 9),
    row_at(90, 2, 1, FINISH, 5),
    row_at(95, 5, 0, SUBMIT),
    row_at(99, 4, 0, FINISH, 9),
]


@pytest.mark.parametrize("options", [{}, {"window_start_s": 645.0}, {"duration_s": 35.0}], ids=str)
def test_every_part_is_read_and_named(tmp_path: Path, options: dict[str, float]) -> None:
    one = replayed(tmp_path / "one", *HISTORY, **options)
    several = replay(cut(trace(tmp_path / "several", HISTORY), 3, 10, 13, 17, 19), **options)
    assert one.facts["task_events_parts"] == "0 of 500"
    assert_facts(
        several.facts,
        task_events_parts="0-5 of 500",
        job_events_parts="0 of 500 and job_events_later.csv.gz",
    )
    assert digest(one) == digest(several)


def test_the_window_may_start_later(tmp_path: Path) -> None:
    workload = replayed(tmp_path, *HISTORY, window_start_s=645.0)
    job = workload.tasks.job
    # At 645 s, 45 s after the first event, jobs 1 and 2 (its third task) run; job 2's second task
    # was evicted and waits again, as do jobs 3 and 4.
    assert job[workload.initial.task].tolist() == [1, 2]
    waiting = workload.arrival_rows[workload.tasks.submit_us[workload.arrival_rows] == 0]
    assert job[waiting].tolist() == [2, 3, 4]
    run_s = dict(zip(job[waiting].tolist(), workload.duration_us[waiting] // SECOND, strict=True))
    assert run_s == {2: 30, 3: 30, 4: 29}
    assert workload.duration_us[row_of(workload, 1)] == (1000 - 45) * SECOND
    assert_facts(workload.facts, tasks_over_before_the_window_dropped=2, window_start_s=645)
    assert workload.tasks.submit_us[row_of(workload, 5)] == 50 * SECOND


def test_rows_that_cannot_matter_are_not_kept(tmp_path: Path) -> None:
    """Memory is that of the window and of one part."""
    past = [task_row(WINDOW + at, 10 + at, 0, event, 7) for at in range(300) for event in (0, 1, 4)]
    later = [task_row(WINDOW + 500 * SECOND + at, 2000 + at, 0, SUBMIT) for at in range(300)]
    folder = cut(trace(tmp_path, [*past, *later]), 302, 602, 902, 1002, 1102)
    start_us = WINDOW + 100 * SECOND
    read = read_trace(folder, start_us, start_us + 50 * SECOND)
    assert read.facts["task_events_parts"] == "0-5 of 500"
    assert np.unique(read.tasks.job).tolist() == [1] and read.over_before == 300
    assert replay(folder, window_start_s=700.0, duration_s=50.0).end_us == 50 * SECOND


def test_job_events_may_be_left_out(tmp_path: Path) -> None:
    folder = trace(tmp_path, HISTORY, later=[job_row(WINDOW + 5000 * SECOND, 2, KILL)])
    bounded = replay(folder)
    assert bounded.facts["runs_open_ended_with_their_job"] == 1
    (folder / JOB_EVENTS_LATER).unlink()
    (folder / JOB_EVENTS).unlink()
    workload = replay(folder)
    assert_facts(workload.facts, job_events_parts="none", runs_open_ended_with_their_job=0)
    assert (
        np.count_nonzero(workload.duration_us < 0) == np.count_nonzero(bounded.duration_us < 0) + 1
    )


def test_parts_that_begin_later_need_a_later_window(tmp_path: Path) -> None:
    folder = trace(tmp_path, HISTORY)
    first = folder / TASK_EVENTS
    rows = gzip.decompress(first.read_bytes()).decode().splitlines(keepends=True)
    first.unlink()
    part = first.with_name("part-00041-of-00500.csv.gz")
    write_gzip(part, "".join(rows[9:]))
    with pytest.raises(
        AgoraError, match=r"begins at 620 s of the trace, after the window, at 600 s"
    ):
        replay(folder)
    workload = replay(folder, window_start_s=620.0)
    assert_facts(
        workload.facts, task_events_parts="41 of 500", tasks_running_before_the_first_part="unknown"
    )
    assert len(workload.initial.task) == 0


def test_schedule_at_zero_without_usable_machine_starts_pending(tmp_path: Path) -> None:
    workload = replayed(
        tmp_path,
        *(task_row(0, 2, 0, event, "") for event in (SUBMIT, SCHEDULE)),
        *(task_row(0, 3, 0, event, 123456) for event in (SUBMIT, SCHEDULE)),
        *(task_row(0, 4, 0, event, 11) for event in (SUBMIT, SCHEDULE)),
        task_row(0, 5, 0, SUBMIT),
        machines=[*MACHINES, machine_row(WINDOW + SECOND, 11, ADD)],
    )
    assert workload.tasks.job[workload.initial.task].tolist() == [1]
    assert sorted(workload.tasks.job[workload.arrival_rows].tolist()) == [2, 3, 4, 5]
    assert workload.arrival_us.tolist() == [0, 0, 0, 0]
    facts = workload.facts
    assert_facts(
        facts,
        tasks_pending_without_machine_at_start=1,
        tasks_pending_machine_not_in_cell_at_start=2,
        tasks_pending_at_start=4,
    )


def test_tasks_beyond_the_slots_start_pending_lowest_priority_first(tmp_path: Path) -> None:
    tasks = [
        task_row(0, 2, index, event, 7, priority=priority)
        for index, priority in enumerate([1, 4, 0, 4])
        for event in (SUBMIT, SCHEDULE)
    ]
    workload = replayed(tmp_path, *tasks, resources="slots=2")
    on_seven = workload.initial.task[workload.initial.machine == 1]
    assert workload.tasks.priority[on_seven].tolist() == [4, 4]
    assert sorted(workload.tasks.priority[workload.arrival_rows].tolist()) == [0, 1]
    assert workload.facts["tasks_pending_beyond_slots_at_start"] == 2


def test_missing_and_zero_requests_and_what_runs_holds(tmp_path: Path) -> None:
    """A record made up by the trace's authors (missing info 2) has no request; the SCHEDULE row
    states what a running task holds."""
    workload = replayed(
        tmp_path,
        task_row(0, 2, 0, SUBMIT, 7, cpu="", mem="", missing=2, different=""),
        task_row(0, 2, 0, SCHEDULE, 7, cpu=0.0625, mem=0.09473),
        task_row(0, 3, 0, SUBMIT, cpu="", mem="", missing=2, different=""),
        task_row(WINDOW + 1, 4, 0, SUBMIT, cpu=0, mem="1.526e-05"),
        resources="requests",
    )
    request = {
        int(job): workload.tasks.request[row].tolist() for row, job in enumerate(workload.tasks.job)
    }
    assert request == {1: [100_000, 50_000], 2: [62_500, 94_730], 3: [1, 1], 4: [0, 15]}
    assert_facts(workload.facts, tasks_without_request=1, tasks_with_a_zero_request=1)


def test_over_commit_and_machines_above_it(tmp_path: Path) -> None:
    tasks = [
        task_row(0, 2, index, event, 7, cpu=0.3, mem=0.1)
        for index in range(2)
        for event in (SUBMIT, SCHEDULE)
    ]
    folder = trace(tmp_path, tasks)
    exact = replay(folder, resources="requests", overcommit=1.0)
    assert exact.cell.limit[1].tolist() == [500_000, 250_000]
    assert_facts(
        exact.facts,
        machines_above_cpu_ppm_limit_at_start=1,
        machines_above_mem_ppm_limit_at_start=0,
    )
    doubled = replay(folder, resources="requests")
    assert doubled.cell.limit[1].tolist() == [1_000_000, 500_000]
    assert doubled.facts["machines_above_cpu_ppm_limit_at_start"] == 0
    assert len(doubled.initial.task) == 3


def test_a_task_larger_than_every_machine_is_counted(tmp_path: Path) -> None:
    workload = replayed(
        tmp_path, task_row(WINDOW + 1, 2, 0, SUBMIT, cpu=0.7), resources="requests", overcommit=1.0
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
    workload = replayed(tmp_path, machines=machines, resources="requests")
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
    assert_facts(
        facts,
        machines_up_at_start=3,
        machines_added_later=1,
        machine_removals=1,
        machine_events_without_effect=2,
        machine_updates_ignored=3,
        machines_without_capacity=1,
    )


def test_changes_of_a_machine_that_fall_together_stay_in_order(tmp_path: Path) -> None:
    changes = [
        machine_row(WINDOW + 100 * SECOND + k, 7, event)
        for k, event in enumerate([REMOVE, ADD, REMOVE, ADD])
    ]
    early = [machine_row(WINDOW, 11, ADD), machine_row(WINDOW + 2, 11, REMOVE)]
    workload = replayed(tmp_path, machines=[*MACHINES, *early, *changes], speedup=50)
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


TASKS = [task_row(0, 1, index, event, 5) for index in range(200) for event in (SUBMIT, SCHEDULE)]
TASKS.append(task_row(WINDOW + 5, 1, 0, 4, 5))


def refusal(folder: Path) -> str:
    with pytest.raises(AgoraError) as caught:
        read_trace(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message


def with_tasks(folder: Path, rows: list[str]) -> str:
    write_trace(folder, MACHINES, rows)
    return refusal(folder)


@pytest.mark.parametrize("path", [MACHINE_EVENTS, TASK_EVENTS], ids=str)
def test_a_missing_file(tmp_path: Path, path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    (tmp_path / path).unlink()
    assert refusal(tmp_path).endswith(f"lacks {path.parent}/part-*.csv.gz")
    (tmp_path / path).mkdir()
    assert refusal(tmp_path).endswith(f"lacks {path.parent}/part-*.csv.gz")


def test_a_part_missing_in_the_middle_or_there_twice(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    folder = (tmp_path / TASK_EVENTS).parent
    for number in (2, 5):
        write_gzip(folder / f"part-{number:05}-of-00500.csv.gz", TASKS[-1] + "\n")
    assert "task_events: part 1 is missing; add what is missing, or take out" in refusal(tmp_path)
    write_gzip(folder / "part-00001-of-00500.csv.gz", TASKS[-1] + "\n")
    assert "task_events: parts 3 to 4 are missing; add what is missing" in refusal(tmp_path)
    (folder / "part-00001-of-00500.csv").write_text(TASKS[-1] + "\n")
    assert "part-00001-of-00500.csv and part-00001-of-00500.csv.gz are the same part" in refusal(
        tmp_path
    )


def test_a_part_that_goes_back_in_time(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    path = tmp_path / TASK_EVENTS.with_name("part-00001-of-00500.csv.gz")
    write_gzip(path, TASKS[0] + "\n")
    assert refusal(tmp_path) == (
        f"{path}: begins at 0 us, before the last row of {TASK_EVENTS.name} at {WINDOW + 5} us"
    )


def test_a_missing_folder(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none").endswith("no such trace directory")


@pytest.mark.parametrize(
    ("position", "field", "text", "expected"),
    [
        (0, "time", "12.5", "a time in microseconds"),
        (0, "time", "-3", "a time in microseconds"),
        (0, "time", "", "a time in microseconds"),
        (2, "job ID", "seven", "an integer"),
        (2, "job ID", "", "an integer"),
        (2, "job ID", "99999999999999999999", "an integer"),
        (3, "task index", "1e3", "an integer in"),
        (4, "machine ID", "-1", "an integer"),
        (5, "event type", "9", "an integer in [0, 8]"),
        (8, "priority", "high", "an integer in"),
        (9, "CPU request", "nan", "a number in [0, 1]"),
        (9, "CPU request", "-0.5", "a number in [0, 1]"),
        (10, "memory request", "inf", "a number in [0, 1]"),
        (10, "memory request", "1.5", "a number in [0, 1]"),
        (10, "memory request", "0.1.2", "a number in [0, 1]"),
        (12, "different machines restriction", "2", "an integer in [0, 1]"),
    ],
)
def test_a_malformed_field(
    tmp_path: Path, position: int, field: str, text: str, expected: str
) -> None:
    rows = list(TASKS)
    fields = rows[300].split(",")
    fields[position] = text
    rows[300] = ",".join(fields)
    message = with_tasks(tmp_path, rows)
    assert (
        f"{TASK_EVENTS}, line 301, {field}: {repr(text) if text else 'nothing'}, expected "
        f"{expected}" in message
    )


@pytest.mark.parametrize(
    ("row", "fields"), [("0,,1", 3), ("", 1), (TASKS[0] + ",x", 14), ('"0,0",' + TASKS[0], 14)]
)
def test_a_row_of_another_width(tmp_path: Path, row: str, fields: int) -> None:
    rows = list(TASKS)
    rows[17] = row
    assert f"{TASK_EVENTS}, line 18: expected 13 fields, got {fields}" in with_tasks(tmp_path, rows)


def test_a_last_row_cut_short(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    write_gzip(tmp_path / TASK_EVENTS, "\n".join(TASKS)[:-30])
    assert f"line {len(TASKS)}: " in refusal(tmp_path)


def test_truncated_gzip(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    path = tmp_path / TASK_EVENTS
    # Incompressible names, so that a cut in the middle of the file is a cut in the middle of the
    # rows.
    rows = [row.replace("user=", f"{hash_like(number)}") for number, row in enumerate(TASKS)]
    write_gzip(path, "\n".join(rows) + "\n")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    message = refusal(tmp_path)
    line = int(message.split("line ")[1].split(":")[0])
    assert "truncated or damaged gzip data" in message and 50 < line < 350


def hash_like(number: int) -> str:
    return format((number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128), "032x")


def test_damaged_gzip(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    path = tmp_path / TASK_EVENTS
    whole = bytearray(path.read_bytes())
    whole[-6] ^= 0xFF  # in the checksum
    path.write_bytes(whole)
    assert f"line {len(TASKS) + 1}: truncated or damaged gzip data" in refusal(tmp_path)


def test_a_file_that_is_not_gzip(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    (tmp_path / MACHINE_EVENTS).write_text("0,5,0,p,0.5,0.5\n")
    assert f"{MACHINE_EVENTS}, line 1: truncated or damaged gzip data" in refusal(tmp_path)


def test_an_empty_file(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    with gzip.open(tmp_path / JOB_EVENTS, "wb"):
        pass
    assert refusal(tmp_path).endswith(f"{JOB_EVENTS}: holds no rows")


ROOT = Path(
    os.environ.get("AGORA_TRACES") or Path(__file__).resolve().parents[3] / "shared" / "traces"
)
FOLDER = ROOT / "google2011"


def real_trace(test: Callable[[], None]) -> Callable[[], None]:
    reason = f"no trace at {FOLDER}: set AGORA_TRACES to the folder that holds google2011/"
    return pytest.mark.trace(pytest.mark.skipif(not FOLDER.is_dir(), reason=reason)(test))


@real_trace
def test_slots() -> None:
    workload = load(Google2011Options(directory=FOLDER), seed=1)
    validate(workload)
    facts = workload.facts
    assert facts["machines_up_at_start"] == 12_477 and workload.cell.machines == 12_480
    assert facts["tasks_running_in_trace_at_start"] == 132_982
    assert len(workload.tasks) == 190_926
    assert_facts(
        facts,
        tasks_pending_beyond_slots_at_start=6562,
        tasks_pending_machine_not_in_cell_at_start=13,
    )
    assert len(workload.initial.task) == 132_982 - 6_562 - 13
    assert np.bincount(workload.initial.machine).max() == 13
    # 144,339 tasks are submitted before the window, 57,152 - 10,565 first SUBMITs follow.
    assert facts["tasks_pending_at_start"] == 144_339 - len(workload.initial.task)
    assert facts["tasks_arriving_later"] == 57_152 - 10_565 == 46_587
    assert (
        facts["runs_ended"],
        facts["runs_open_at_end"],
        facts["runs_open_ended_with_their_job"],
    ) == (58_585, 131_409, 68_370)
    assert (
        facts["machine_additions"],
        facts["machine_removals"],
        facts["machine_updates_ignored"],
    ) == (6, 7, 13)
    assert workload.end_us == 5_011_086_346 // 50 + 1
    services = workload.tasks.task_class == TaskClass.SERVICE
    assert np.array_equal(services, workload.duration_us == -1) and np.array_equal(
        services, workload.tasks.preference == 0
    )
    assert services.sum() == 131_409 - 68_370 + facts["tasks_never_run"]
    assert describe(workload)["jobs"] == 4_895


@real_trace
def test_requests_exceed_capacity_where_the_trace_says() -> None:
    exact = load(Google2011Options(directory=FOLDER, resources="requests", overcommit=1.0), seed=1)
    validate(exact)
    assert_facts(
        exact.facts,
        machines_above_cpu_ppm_limit_at_start=10303,
        machines_above_mem_ppm_limit_at_start=5692,
    )
    assert len(exact.initial.task) == 132_982 - 13
    at_start = exact.cell.capacity.sum(axis=0) - exact.cell.capacity[
        exact.machine_events.machine[exact.machine_events.at_us == 0]
    ].sum(axis=0)
    assert at_start.tolist() == [6_603_250_000, pytest.approx(5_862.75e6, abs=1e4)]


@real_trace
def test_a_short_run() -> None:
    whole = load(Google2011Options(directory=FOLDER, speedup=100), seed=1)
    short = load(Google2011Options(directory=FOLDER, speedup=100, duration_s=5.0), seed=1)
    validate(short)
    early = whole.arrival_us < 5_000_000
    # A batch cut by the end arrives with the tasks that made it; all earlier ones are the same.
    assert np.array_equal(
        short.arrival_us[:-1], whole.arrival_us[early][: len(short.arrival_us) - 1]
    )
