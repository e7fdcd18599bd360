"""How long jobs wait for their first scheduling attempt and for the one that completes them: the
figures, and a queue whose wait is known. What agents record of it is in the golden runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from parsync.metrics.run_frame import RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import ScopeFigures, summarise
from parsync.metrics.tables import NOT_KNOWN
from tests.fixtures.service_batch_runs import group, made, modelled, recorded
from tests.unit.record_factory import SECOND, Phase


def figures_of(
    jobs: Sequence[tuple[int, int, Sequence[tuple[int, int]]]], services: Sequence[bool]
) -> ScopeFigures:
    """The figures of jobs (submit_us, tasks, [(start_us, placed) of each attempt])."""
    metrics = RunMetrics(
        RunFrame(
            [Phase(0, 100 * SECOND, 90)],
            1,
            partitions=1,
            job_of=np.arange(len(jobs)),
            services=np.array(services),
        )
    )
    for job, (submit_us, tasks, tried) in enumerate(jobs):
        submission = {"agent": [0], "job": [job], "submit_us": [submit_us], "tasks": [tasks]}
        metrics.add("submissions", submission | {"prefers": [0]})
        for start_us, placed in tried:
            attempt = {"agent": [0], "job": [job], "start_us": [start_us], "decision_us": [9]}
            counts = {"tasks": tasks, "claims": tasks, "placed": placed, "conflicts": 0}
            metrics.add("job_attempts", attempt | {name: [n] for name, n in counts.items()})
    cell = {"at_us": [200], "running": [1], "machines_up": [1], "used_permille": [0]}
    metrics.add("cell", cell)
    return summarise(metrics).overall


def test_waits_end_with_the_first_attempt_and_with_the_one_that_completes_the_job() -> None:
    attempts = [(10, 0), (20, 1), (50, 2), (90, 0)]
    figures = figures_of([(0, 3, attempts), (5, 1, [(5, 1)])], [False, True])
    assert figures.others["job_wait_mean_us"] == (10 + 0) / 2
    assert figures.others["job_wait_full_mean_us"] == (50 + 0) / 2
    assert figures.others["job_wait_batch_mean_us"] == 10
    assert figures.others["job_wait_full_service_p90_us"] == 0
    assert not [key for key in figures.at_least if key.startswith("job_wait")]
    none = figures_of([(0, 1, [])], [False])
    assert none.others["job_wait_mean_us"] is None and "job_wait_mean_us" not in none.at_least


def test_jobs_that_were_not_reached_are_charged_until_the_end() -> None:
    reached: list[Any] = [(0, 2, [(k, 2)]) for k in range(9)]
    figures = figures_of([*reached, (100, 1, []), (150, 2, [(160, 1)])], [False] * 11)
    assert figures.others["job_wait_mean_us"] == (36 + 10) / 10
    assert figures.others["job_wait_p90_us"] == 10, "the tenth of eleven"
    assert figures.others["job_wait_full_p90_us"] is None, "never: two of eleven are beyond"
    assert figures.at_least["job_wait_mean_us"] == (36 + 10 + 100) / 11
    assert figures.at_least["job_wait_full_p90_us"] == 50
    assert figures.others["job_wait_batch_mean_us"] is None, "the run has one class"


def test_jobs_of_which_an_attempt_was_lost_are_left_out() -> None:
    """Its time is not known: its scheduler was killed before it learned the outcome."""
    figures = figures_of([(0, 2, [(10, 1), (NOT_KNOWN, 1)]), (5, 1, [(25, 1)])], [False, False])
    assert figures.others["job_wait_mean_us"] == figures.others["job_wait_full_mean_us"] == 20
    assert not [key for key in figures.at_least if key.startswith("job_wait")]


def test_jobs_that_queues_at_machines_place_have_no_full_waits() -> None:
    """The scheduler's attempt draws machines to probe; it says nothing of when tasks are placed."""
    figures = figures_of([(0, 2, [(10, NOT_KNOWN)]), (5, 1, [(25, 1)])], [False, False])
    assert figures.others["job_wait_mean_us"] == (10 + 20) / 2
    assert figures.others["job_wait_full_mean_us"] == 20
    assert not [key for key in figures.at_least if key.startswith("job_wait")]
    alone = figures_of([(0, 2, [(10, NOT_KNOWN)])], [False])
    assert alone.others["job_wait_full_mean_us"] is None
    assert "job_wait_full_mean_us" not in alone.at_least


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_the_wait_at_one_scheduler_is_that_of_a_queue(load: float) -> None:
    """Poisson arrivals and decision times t_job + t_task n, with n geometric, are an M/G/1 queue:
    the mean wait is rate E[S^2] / (2 (1 - load)) (Pollaczek and Khinchine)."""
    interarrival_s, mean = 10.0, 20.0
    task_s = 0.01
    job_s = load * interarrival_s - task_s * mean
    jobs = {"interarrival_s": interarrival_s, "tasks_per_job": mean, "run_s": 1.0}
    options = {
        "machines": 2_000,
        "duration_s": 20_000.0,
        "batch": jobs,
        "service": {"interarrival_s": 1e6},
    }
    scheduler = group("all", decision=modelled(round(job_s * 1e6), task_s * 1e6))
    waits: list[np.ndarray] = []
    for seed in range(4):
        workload = made(options, seed)
        attempted = recorded(workload, [scheduler], heartbeat_us=1_000_000)["job_attempts"]
        order = np.argsort(attempted["job"])
        assert np.array_equal(attempted["job"][order], np.arange(len(order))), "placed at once"
        waits.append((attempted["start_us"][order] - workload.arrival_us) / 1e6)
    second_moment = job_s**2 + 2 * job_s * task_s * mean + task_s**2 * (2 * mean**2 - mean)
    expected = second_moment / interarrival_s / (2 * (1 - load))
    means = [float(each.mean()) for each in waits]
    # the means of four independent runs: Student's t with three degrees of freedom at 99.9 %
    error = 12.9 * np.std(means, ddof=1) / 2
    assert abs(np.mean(means) - expected) < error
    assert error < expected
