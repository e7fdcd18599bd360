"""The median of the daily conflict fractions, and its deviation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parsync.metrics.run_frame import DAY_US, PARTS, RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import ScopeFigures, summarise
from parsync.metrics.tables import TABLES
from tests.unit.record_factory import Phase

END_US = 1_000_000
TENTH_US = END_US // PARTS


def metrics_of(end_us: int, agents: int = 1, settle_us: int = 0) -> RunMetrics:
    """An empty run in which job 0 is a batch job, and job 1 a service job."""
    return RunMetrics(
        RunFrame(
            [Phase(0, end_us, 90)],
            agents,
            partitions=1,
            settle_us=settle_us,
            job_of=np.array([0, 1]),
            services=np.array([False, True]),
        )
    )


def attempts(metrics: RunMetrics, agent: int, job: int, at_us: int, good: int, bad: int) -> None:
    """Attempts of a job at one time, without and with a conflict."""
    for count, conflicts in ((good, 0), (bad, 1)):
        columns: dict[str, Any] = {"agent": agent, "job": job, "start_us": at_us, "tasks": 3}
        columns |= {"decision_us": 1, "claims": 3, "placed": 3 - conflicts, "conflicts": conflicts}
        if count:
            metrics.add(
                "job_attempts", {name: np.full(count, value) for name, value in columns.items()}
            )


def transaction(metrics: RunMetrics, at_us: int, claims: int, **outcomes: int) -> None:
    columns = dict.fromkeys(TABLES["commits"], 0) | outcomes
    columns |= {"commit_us": at_us, "claims": claims}
    metrics.add("commits", {name: np.array([value]) for name, value in columns.items()})


def overall(metrics: RunMetrics) -> ScopeFigures:
    return summarise(metrics).overall


def of(figures: ScopeFigures, name: str) -> tuple[Any, Any]:
    """Median and deviation of one kind of attempt."""
    key = f"{name}conflict_fraction"
    return figures.others[f"{key}_median"], figures.others[f"{key}_mad"]


def test_the_median_is_over_days_and_not_over_jobs() -> None:
    """Five days with 0.1, 0.2, 0.5, 0.3 and 0.3 failed per successful attempt; the third has most
    of the attempts."""
    metrics = metrics_of(5 * DAY_US)
    for day, (good, bad) in enumerate(((10, 1), (10, 2), (1000, 500), (10, 3), (10, 3))):
        attempts(metrics, 0, 1, day * DAY_US + 5, good, bad)
    figures = overall(metrics)
    assert of(figures, "service_") == (pytest.approx(0.3), pytest.approx(0.1))
    assert figures.others["service_conflict_fraction"] == 509 / 1040
    assert of(figures, "batch_") == (None, None), "none was tried"


def test_schedulers_are_counted_together_and_classes_apart() -> None:
    metrics = metrics_of(END_US, agents=2)
    attempts(metrics, 0, 0, 5, 2, 1)
    attempts(metrics, 1, 0, 5, 2, 3)
    attempts(metrics, 1, 1, 5, 5, 1)
    summary = summarise(metrics)
    assert of(summary.overall, "batch_") == (4 / 4, 0)
    assert of(summary.overall, "service_") == (1 / 5, 0)
    assert of(summary.agents[1], "batch_") == (3 / 2, 0)


def test_days_without_transactions_do_not_count() -> None:
    metrics = metrics_of(END_US)
    for tenth, (good, bad) in {0: (10, 0), 4: (10, 2), 9: (10, 6)}.items():
        attempts(metrics, 0, 0, tenth * TENTH_US, good, bad)
    assert of(overall(metrics), "batch_") == (0.2, 0.2)


def test_days_on_which_all_fail_are_the_highest() -> None:
    metrics = metrics_of(END_US)
    for tenth, (good, bad) in {0: (10, 1), 4: (10, 2), 9: (0, 6)}.items():
        attempts(metrics, 0, 0, tenth * TENTH_US, good, bad)
    assert of(overall(metrics), "batch_") == (pytest.approx(0.2), pytest.approx(0.1))
    attempts(metrics, 0, 0, 2 * TENTH_US, 0, 1)
    assert of(overall(metrics), "batch_") == (None, None), "half of the days know no success"


def test_transactions_count_by_their_answer() -> None:
    metrics = metrics_of(END_US)
    transaction(metrics, 5, 3, accepted=3)
    transaction(metrics, 5, 3, accepted=2, full=1)
    transaction(metrics, 5, 3, stale=1, gang=2)
    transaction(metrics, 5, 3, accepted=2, gang=1)
    transaction(metrics, 5, 0)
    assert of(overall(metrics), "") == (2 / 2, 0)


def test_what_is_left_out_counts_for_no_day() -> None:
    metrics = metrics_of(END_US, settle_us=END_US // 2 + TENTH_US * 6 // 10)
    for tenth in range(PARTS):
        # of the sixth tenth too little counts
        attempts(metrics, 0, 0, tenth * TENTH_US + TENTH_US * 9 // 10, 10, 1 + 8 * (tenth < 6))
    attempts(metrics, 0, 0, END_US + 5, 10, 10)  # while the run drains
    assert of(overall(metrics), "batch_") == (0.1, 0)


def test_nothing_recorded() -> None:
    assert of(overall(metrics_of(END_US)), "") == (None, None)
