"""Conflicts and decision time of batch and of service jobs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parsync.metrics.metric import TableFold
from parsync.metrics.run_frame import JobIndex, RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import summarise
from tests.fixtures.service_batch_runs import OMEGA, group, made, modelled, recorded
from tests.unit.record_factory import Phase

END_US = 1_000_000


def figures_of(
    rows: list[tuple[int, int, int, int]], services: list[bool], job_of: list[int] | None = None
) -> dict[str, Any]:
    """The figures of attempts (job, decision_us, claims, conflicts)."""
    jobs = np.arange(len(services)) if job_of is None else np.array(job_of)
    metrics = RunMetrics(
        RunFrame([Phase(0, END_US, 90)], 1, partitions=1, job_of=jobs, services=np.array(services))
    )
    for job, decision_us, claims, conflicts in rows:
        columns = {"agent": 0, "job": job, "start_us": 5, "decision_us": decision_us, "tasks": 3}
        columns |= {"claims": claims, "placed": claims - conflicts, "conflicts": conflicts}
        metrics.add("job_attempts", {name: [value] for name, value in columns.items()})
    return dict(summarise(metrics).overall.others)


def test_a_failed_attempt_is_one_with_a_conflict() -> None:
    found = figures_of(
        [(0, 10, 3, 0), (0, 20, 3, 1), (0, 30, 3, 3), (1, 40, 1, 0), (1, 50, 0, 0), (1, 60, 2, 2)],
        [False, True],
    )
    assert found["batch_conflict_fraction"] == 2 / 1, "it can exceed 1"
    assert found["service_conflict_fraction"] == 1 / 1, "without a claim nothing has failed"
    assert found["batch_useful_share"] == 10 / END_US
    assert found["batch_wasted_share"] == 50 / END_US
    assert found["service_useful_share"] == 90 / END_US
    assert found["service_wasted_share"] == 60 / END_US


@pytest.mark.parametrize("jobs", [[0, -1, 1], [7, -1, 4]])
def test_jobs_that_ran_before_the_run_count_for_nothing(jobs: list[int]) -> None:
    """Their tasks are decided on again when they are evicted."""
    rows = [(jobs[0], 10, 3, 0), (9, 20, 3, 1), (jobs[2], 40, 1, 0)]
    found = figures_of(rows, [False, False, True], jobs)
    assert found["batch_useful_share"] == 10 / END_US
    assert found["batch_wasted_share"] == 0
    assert found["service_useful_share"] == 40 / END_US
    assert found["job_wait_mean_us"] is None, "nobody recorded submissions"


def test_a_run_of_one_class_has_no_figures_by_class() -> None:
    found = figures_of([(0, 10, 3, 0)], [False])
    assert found["batch_useful_share"] is None
    assert found["service_conflict_fraction"] is None


def test_jobs_that_a_run_does_not_have_have_no_place() -> None:
    for jobs, asked, places in (
        ([0, 1, 2], [2, 3, 0, -1], [2, -1, 0, -1]),
        ([3, 8, -1], [8, 4, 9, 3], [1, -1, -1, 0]),
        ([-1], [0], [-1]),
    ):
        found: list[int] = []
        fold = TableFold("t", {"job": "int64"}, RunFrame([Phase(0, 1, 0)], 1, partitions=1))
        place = fold.rows["job"].place_among(JobIndex(np.array(jobs)).ids)
        fold.rows.call(lambda column, into=found: into.extend(column.tolist()), place)
        fold.fold({"job": asked})
        assert found == places


def test_decision_times_of_jobs_are_those_of_the_schedulers() -> None:
    """Of rounds about several jobs each has its part."""
    for kind, protocol in (
        ("randomized_first_fit", OMEGA),
        ("preferred_first", {**OMEGA, "sync": "state_aligned", "losers": "block"}),
    ):
        decision = modelled(100_000, 7_000.0)
        tables = recorded(
            made({"machines": 200, "duration_s": 300.0}),
            [group("all", protocol, kind=kind, decision=decision)],
        )
        attempts, agents = tables["job_attempts"], tables["agents"]
        total_us = int(agents["busy_us"].max())
        rounded = len(attempts["job"])  # each part is rounded down
        assert 0 <= total_us - int(attempts["decision_us"].sum()) <= rounded
