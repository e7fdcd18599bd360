"""The Google trace on tiny files: every pitfall of the data set, one by one."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from experiments.config.flags import trace_workload
from experiments.workloads import google2011
from experiments.workloads.google2011 import Google2011Options, load
from experiments.workloads.google2011_tables import Trace, read_trace
from experiments.workloads.inspection import digest
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
    REMOVE,
    SCHEDULE,
    SECOND,
    SUBMIT,
    TASK_EVENTS,
    UPDATE_PENDING,
    WINDOW,
    job_row,
    machine_row,
    task_row,
    write_gzip,
    write_trace,
)
from tests.fixtures.google2011_workloads import CLOCK, MACHINES, replay, row_of, trace


def test_initial_state_arrivals_and_ends(tmp_path: Path) -> None:
    workload = replay(
        trace(
            tmp_path,
            [
                task_row(WINDOW + 10 * SECOND, 2, 0, SUBMIT, priority=9),
                task_row(WINDOW + 12 * SECOND, 2, 0, SCHEDULE, 7),
                task_row(WINDOW + 42 * SECOND, 2, 0, FINISH, 7),
            ],
        )
    )
    assert workload.initial.task.tolist() == [0] and workload.initial.machine.tolist() == [0]
    assert workload.duration_us.tolist() == [1000 * SECOND, 30 * SECOND]
    assert workload.arrival_us.tolist() == [10 * SECOND]
    assert workload.tasks.priority.tolist() == [0, 9]
    assert workload.cell.capacity.tolist() == [[13], [13], [13]]
    assert workload.end_us == 1000 * SECOND + 1


def test_speedup_divides_times_and_run_times(tmp_path: Path) -> None:
    rows = [
        task_row(WINDOW + 10 * SECOND, 2, 0, SUBMIT),
        task_row(WINDOW + 12 * SECOND, 2, 0, SCHEDULE, 7),
    ]
    workload = replay(
        trace(tmp_path, [*rows, task_row(WINDOW + 7012 * SECOND, 2, 0, FINISH, 7)]), speedup=50
    )
    assert workload.duration_us.tolist() == [20 * SECOND, 140 * SECOND]
    assert workload.arrival_us.tolist() == [200_000]
    # The input belongs to the trace's run time, not to the shortened one: 7000 s read two blocks,
    # 1000 s one.
    assert workload.facts["input_blocks_gb"] == 3


def test_first_submit_only_and_all_attempts(tmp_path: Path) -> None:
    """Evicted, failed and killed attempts add up; resubmissions are no arrivals; an UPDATE changes
    nothing."""
    workload = replay(
        trace(
            tmp_path,
            [
                task_row(WINDOW + 1 * SECOND, 2, 0, SUBMIT),
                task_row(WINDOW + 2 * SECOND, 2, 0, UPDATE_PENDING, cpu=0.4),
                task_row(WINDOW + 10 * SECOND, 2, 0, SCHEDULE, 7),
                task_row(WINDOW + 15 * SECOND, 2, 0, EVICT, 7),
                task_row(WINDOW + 15 * SECOND + 1, 2, 0, SUBMIT),
                task_row(WINDOW + 20 * SECOND, 2, 0, SCHEDULE, 9),
                task_row(WINDOW + 27 * SECOND, 2, 0, FAIL, 9),
                task_row(WINDOW + 27 * SECOND + 1, 2, 0, SUBMIT),
                task_row(WINDOW + 30 * SECOND, 2, 0, SCHEDULE, 9),
                task_row(WINDOW + 41 * SECOND, 2, 0, KILL, 9),
            ],
        ),
        resources="requests",
    )
    assert len(workload.tasks) == 2 and workload.duration_us[1] == (5 + 7 + 11) * SECOND
    assert (
        workload.facts["resubmissions_ignored"] == 2 and workload.facts["task_updates_ignored"] == 1
    )
    assert workload.tasks.request[1].tolist() == [100_000, 50_000]


def test_a_task_killed_while_it_waits_never_ran(tmp_path: Path) -> None:
    workload = replay(
        trace(tmp_path, [task_row(WINDOW + 1, 2, 0, SUBMIT), task_row(WINDOW + 9, 2, 0, KILL)])
    )
    assert workload.duration_us[1] == -1 and workload.tasks.task_class[1] == TaskClass.SERVICE
    assert workload.tasks.preference[1] == 0 and workload.facts["tasks_never_run"] == 1


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
    assert (
        workload.facts["runs_open_at_end"] == 3
        and workload.facts["runs_open_ended_with_their_job"] == 1
    )


def test_repeated_rows_count_once(tmp_path: Path) -> None:
    rows = [
        task_row(WINDOW + 1 * SECOND, 2, 0, SUBMIT),
        task_row(WINDOW + 2 * SECOND, 2, 0, SCHEDULE, 7),
        task_row(WINDOW + 5 * SECOND, 2, 0, FINISH, 7),
    ]
    workload = replay(trace(tmp_path, [row for row in rows for _ in range(2)]))
    assert len(workload.tasks) == 2 and workload.duration_us[1] == 3 * SECOND


def test_waiting_is_priced_by_the_second_of_the_trace_however_fast_it_runs(tmp_path: Path) -> None:
    for speedup in (1, 50):
        catalog = replay(trace(tmp_path / str(speedup), []), speedup=speedup).catalog
        per_run_second = catalog.wait_cost * 1_000_000 // catalog.wait_quantum_us
        assert per_run_second == 500 * speedup


def test_times_after_the_trace_are_dropped(tmp_path: Path) -> None:
    sentinels = [str((1 << 63) - 1), str(1 << 63), str((1 << 64) - 1)]
    workload = replay(
        trace(
            tmp_path,
            [
                task_row(0, 2, 0, SUBMIT, 7),
                task_row(0, 2, 0, SCHEDULE, 7),
                *(task_row(time, 2, 0, FINISH, 7) for time in sentinels),
            ],
            machines=[*MACHINES, machine_row(sentinels[0], 7, REMOVE)],
            later=[job_row(sentinels[1], 2, FINISH)],
        )
    )
    assert workload.duration_us[row_of(workload, 2)] == -1
    assert workload.facts["trace_rows_after_the_end_dropped"] == 5
    assert workload.end_us == 1000 * SECOND + 1 and len(workload.machine_events.at_us) == 0


def test_schedule_stands_in_for_a_missing_submit(tmp_path: Path) -> None:
    workload = replay(
        trace(
            tmp_path,
            [
                task_row(WINDOW + 3 * SECOND, 2, 0, SCHEDULE, 7, missing=1),
                task_row(WINDOW + 5 * SECOND, 2, 0, FINISH, 7),
                task_row(WINDOW + 5 * SECOND, 3, 0, FINISH, 7, missing=1),
            ],
        )
    )
    assert sorted(workload.tasks.job.tolist()) == [1, 2] and workload.arrival_us.tolist() == [
        3 * SECOND
    ]
    assert (
        workload.facts["tasks_without_submit"] == 1
        and workload.facts["tasks_never_submitted_dropped"] == 1
    )


def test_tasks_over_before_the_window_are_dropped(tmp_path: Path) -> None:
    rows = [
        task_row(0, 2, 0, SUBMIT, 7),
        task_row(0, 2, 0, SCHEDULE, 7),
        task_row(SECOND, 2, 0, FINISH, 7),
    ]
    workload = replay(trace(tmp_path, rows))
    assert (
        workload.tasks.job.tolist() == [1]
        and workload.facts["tasks_over_before_the_window_dropped"] == 1
    )


def test_rows_out_of_order_are_sorted(tmp_path: Path) -> None:
    rows = [
        task_row(WINDOW + 9 * SECOND, 2, 0, FINISH, 7),
        task_row(WINDOW + 2 * SECOND, 2, 0, SCHEDULE, 7),
        task_row(WINDOW + 1 * SECOND, 2, 0, SUBMIT),
    ]
    workload = replay(write_trace(tmp_path, MACHINES, [*CLOCK, *rows]))
    assert workload.duration_us.tolist() == [1000 * SECOND, 7 * SECOND]


def test_batches_are_of_one_job_and_bounded(tmp_path: Path) -> None:
    """A job's tasks are submitted microseconds apart in the trace; they arrive together, no task
    before its time."""
    rows = [task_row(WINDOW + 5 * SECOND + index, 2, index, SUBMIT) for index in range(7)]
    rows += [
        task_row(WINDOW + 5 * SECOND + 3, 3, 0, SUBMIT),
        task_row(WINDOW + 50 * SECOND, 2, 7, SUBMIT),
    ]
    workload = replay(trace(tmp_path, rows), batch_tasks=3)
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
    rows = [task_row(WINDOW + at * SECOND, 2, at, SUBMIT) for at in (5, 10, 20)]
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
    workload = replay(
        trace(tmp_path, running, later=[job_row(WINDOW + 7000 * SECOND, 2, FINISH)]),
        machines_per_rack=1,
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
    done = [task_row(WINDOW + 9 * SECOND, 2, at, FINISH) for at in range(2000)]
    started = [task_row(WINDOW + 2 * SECOND, 2, at, SCHEDULE) for at in range(2000)]
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
    folder = trace(tmp_path, [task_row(WINDOW + 10 * SECOND, 2, 0, SUBMIT)])
    options = Google2011Options(directory=folder)
    first = load(options, seed=1)
    again = load(options, seed=2)
    assert len(reads) == 1 and len(first.tasks) == len(again.tasks) == 2
    first.tasks.job[:] = -1  # of no other seed
    assert load(options, seed=1).tasks.job.tolist() == again.tasks.job.tolist()
    trace(tmp_path, [task_row(WINDOW + 10 * SECOND, job, 0, SUBMIT) for job in (2, 3)])
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
    task_row(WINDOW + 10 * SECOND, 2, 0, FINISH, 7),
    task_row(WINDOW + 20 * SECOND, 3, 0, SUBMIT),
    task_row(WINDOW + 30 * SECOND, 2, 1, EVICT, 7),
    task_row(WINDOW + 30 * SECOND, 2, 1, SUBMIT),
    task_row(WINDOW + 40 * SECOND, 4, 0, SUBMIT),
    task_row(WINDOW + 50 * SECOND, 3, 0, SCHEDULE, 9),
    task_row(WINDOW + 60 * SECOND, 2, 1, SCHEDULE, 5),
    task_row(WINDOW + 70 * SECOND, 4, 0, SCHEDULE, 9),
    task_row(WINDOW + 80 * SECOND, 3, 0, FINISH, 9),
    task_row(WINDOW + 90 * SECOND, 2, 1, FINISH, 5),
    task_row(WINDOW + 95 * SECOND, 5, 0, SUBMIT),
    task_row(WINDOW + 99 * SECOND, 4, 0, FINISH, 9),
]


@pytest.mark.parametrize("options", [{}, {"window_start_s": 645.0}, {"duration_s": 35.0}], ids=str)
def test_every_part_is_read_and_named(tmp_path: Path, options: dict[str, float]) -> None:
    one = replay(trace(tmp_path / "one", HISTORY), **options)
    several = replay(cut(trace(tmp_path / "several", HISTORY), 3, 10, 13, 17, 19), **options)
    assert one.facts["task_events_parts"] == "0 of 500"
    assert several.facts["task_events_parts"] == "0-5 of 500"
    assert several.facts["job_events_parts"] == "0 of 500 and job_events_later.csv.gz"
    assert digest(one) == digest(several)


def test_the_window_may_start_later(tmp_path: Path) -> None:
    workload = replay(trace(tmp_path, HISTORY), window_start_s=645.0)
    job = workload.tasks.job
    # At 645 s, 45 s after the first event, jobs 1 and 2 (its third task) run; job 2's second task
    # was evicted and waits again, as do jobs 3 and 4.
    assert job[workload.initial.task].tolist() == [1, 2]
    waiting = workload.arrival_rows[workload.tasks.submit_us[workload.arrival_rows] == 0]
    assert job[waiting].tolist() == [2, 3, 4]
    run_s = dict(zip(job[waiting].tolist(), workload.duration_us[waiting] // SECOND, strict=True))
    assert run_s == {2: 30, 3: 30, 4: 29}
    assert workload.duration_us[row_of(workload, 1)] == (1000 - 45) * SECOND
    assert workload.facts["tasks_over_before_the_window_dropped"] == 2
    assert workload.facts["window_start_s"] == 645
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
    assert workload.facts["job_events_parts"] == "none"
    assert workload.facts["runs_open_ended_with_their_job"] == 0
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
    assert workload.facts["task_events_parts"] == "41 of 500"
    assert workload.facts["tasks_running_before_the_first_part"] == "unknown"
    assert len(workload.initial.task) == 0
