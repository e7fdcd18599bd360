"""The performance model of MapReduce jobs, and the policies for extra workers (Omega section 6)."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from schedulers.mapreduce.jobs import (
    NOT_MAPREDUCE,
    MapReduceAudit,
    MapReduceJobs,
    predicted_us,
    useful_workers,
    whole_activities_us,
)
from schedulers.mapreduce.scheduler import MapReduceOptions, WorkerPolicy
from shared_state.invariants import InvariantViolation
from shared_state.tasks import Int64


def ints(*values: int) -> Int64:
    return np.array(values, np.int64)


def job_times(workers: Int64) -> Int64:
    """Predictions for 40 maps of 3 s and 6 reduces of 5 s."""
    n = len(workers)
    second = 1_000_000
    return predicted_us(
        np.full(n, 40), np.full(n, 6), np.full(n, 3 * second), np.full(n, 5 * second), workers
    )


def test_one_worker_runs_one_activity_after_the_other() -> None:
    assert job_times(ints(1)).tolist() == [(40 * 3 + 6 * 5) * 1_000_000]


def test_the_time_falls_linearly_until_the_activities_run_out() -> None:
    # up to 6 workers both phases shrink, up to 40 the maps alone, and then nothing does
    assert job_times(ints(2, 4, 6)).tolist() == [75_000_000, 37_500_000, 25_000_000]
    assert job_times(ints(10, 20, 40, 41, 1000)).tolist() == [
        17_000_000,
        11_000_000,
        8_000_000,
        8_000_000,
        8_000_000,
    ]


def test_useful_workers_are_the_fewest_with_the_earliest_finish() -> None:
    tried = np.arange(1, 60, dtype=np.int64)
    for maps, reduces in ((40, 6), (3, 50), (1, 0), (7, 7), (0, 5)):
        times = predicted_us(
            np.full(59, maps), np.full(59, reduces), np.full(59, 1000), np.full(59, 1000), tried
        )
        assert useful_workers(ints(maps), ints(reduces)).tolist() == [tried[times.argmin()]]


def test_whole_activities_take_at_least_the_predicted_time() -> None:
    workers = np.arange(1, 60, dtype=np.int64)
    one = np.ones(59, np.int64)
    arguments = (one * 40, one * 6, one * 3000, one * 5000, workers)
    whole, divided = whole_activities_us(*arguments), predicted_us(*arguments)
    assert (whole >= divided).all()
    even = (40 % workers == 0) & (6 % workers == 0)
    assert np.array_equal(whole[even], divided[even])
    assert whole_activities_us(*(ints(n) for n in (4, 2, 10, 7, 3))).tolist() == [2 * 10 + 7]


@pytest.mark.parametrize(
    ("options", "workers"),
    [
        ({"policy": "requested"}, [5, 5, 2]),
        ({"policy": "max_parallelism"}, [5, 100, 2]),
        ({"policy": "global_cap"}, [5, 100, 2]),
        ({"policy": "relative_job_size"}, [5, 20, 2]),
        ({"policy": "relative_job_size", "times_requested": 2}, [5, 10, 2]),
    ],
)
def test_policies_bound_the_workers_of_a_job(
    options: dict[str, object], workers: list[int]
) -> None:
    """Three jobs that asked for five workers, of which 5, 100 and 2 are useful."""
    policy = MapReduceOptions.model_validate(options).worker_policy()
    assert policy.workers(ints(5, 5, 5), ints(5, 100, 2)).tolist() == workers


def test_a_global_cap_lets_extra_workers_start_up_to_the_target() -> None:
    policy = WorkerPolicy(None, target_permille=600)
    request = np.tile(ints(2, 10), (50, 1))
    capacity = ints(100, 1000)
    # 60 CPUs are the target: 30 are left of them, and 400 of memory
    assert policy.extra_started(request, ints(30, 200), capacity) == 15
    # memory is the most used resource: 50 are left
    assert policy.extra_started(request, ints(30, 550), capacity) == 5
    assert policy.extra_started(request, ints(61, 0), capacity) == 0
    assert WorkerPolicy(None).extra_started(request, ints(99, 999), capacity) == 50


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "global_cap", "times_requested": 2},
        {"policy": "max_parallelism", "target_utilization": 0.5},
        {"policy": "greedy"},
        {"policy": "global_cap", "target_utilization": 1.5},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MapReduceOptions.model_validate(options)


JOBS = MapReduceJobs(ints(2, 10), ints(1, 1), ints(3, 1), ints(2, 0), ints(5, 5), ints(5, 5))


def test_tasks_know_their_jobs_and_phases() -> None:
    task = np.arange(12, dtype=np.int64)
    none = NOT_MAPREDUCE
    assert JOBS.of(task).tolist() == [none, none, 0, 0, 0, 0, 0, none, none, none, 1, none]
    assert JOBS.phase_of(task[2:7], JOBS.of(task[2:7])).tolist() == [0, 0, 0, 1, 1]


def test_the_audit_finds_a_reduce_that_starts_before_all_maps_ended() -> None:
    audit = MapReduceAudit(JOBS)
    audit.accepted(ints(0, 2, 3, 4, 10), 1)
    audit.finished(ints(2, 4, 10))
    with pytest.raises(InvariantViolation, match=r"9 us: task 6 is a reduce, and 1 maps"):
        audit.accepted(ints(0, 6), 9)
    audit.finished(ints(3))
    audit.accepted(ints(6, 5), 10)
    assert audit.reduces == 2
