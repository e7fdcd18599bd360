"""Conflicts and decision time of batch and of service jobs; the medians of the daily conflict
fractions and of the daily busyness, and their deviations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parsync.metrics.metric import TableFold
from parsync.metrics.run_frame import DAY_US, PARTS, JobIndex, RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import ScopeFigures, summarise
from tests.fixtures.service_batch_runs import OMEGA, group, made, modelled, recorded
from tests.unit.record_factory import Phase, columns_of

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
    counts = {name: [value] for name, value in outcomes.items()}
    metrics.add("commits", columns_of("commits", commit_us=[at_us], claims=[claims], **counts))


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


def test_attempts_left_out_count_for_no_day() -> None:
    metrics = metrics_of(END_US, settle_us=END_US // 2 + TENTH_US * 6 // 10)
    for tenth in range(PARTS):
        # of the sixth tenth too little counts
        attempts(metrics, 0, 0, tenth * TENTH_US + TENTH_US * 9 // 10, 10, 1 + 8 * (tenth < 6))
    attempts(metrics, 0, 0, END_US + 5, 10, 10)  # while the run drains
    assert of(overall(metrics), "batch_") == (0.1, 0)


def busyness(
    end_us: int, every_us: int, shares: list[list[float]], settle_us: int = 0
) -> list[tuple[float | None, float | None]]:
    """Median and deviation of all schedulers and of each, given the share of the time that each
    spends on decisions between two samples (the last one goes on)."""
    agents = len(shares)
    metrics = RunMetrics(
        RunFrame([Phase(0, end_us, 90)], agents, partitions=1, settle_us=settle_us)
    )
    at_us = np.arange(0, end_us, every_us)
    for agent, of_agent in enumerate(shares):
        share = np.array([of_agent[min(k, len(of_agent) - 1)] for k in range(len(at_us))])
        busy_us = np.concatenate([[0], np.cumsum(share * every_us)])[:-1].astype(np.int64)
        zero = np.zeros(len(at_us), np.int64)
        columns = columns_of("agents", at_us=at_us, agent=zero + agent, busy_us=busy_us)
        metrics.add("agents", columns)
    summary = summarise(metrics)
    return [
        (figures.others["busyness_median"], figures.others["busyness_mad"])
        for figures in (summary.overall, *summary.agents)
    ]


def test_long_runs_are_divided_into_days() -> None:
    """Samples four times a day; the five days are busy 0.1, 0.2, 0.5, 0.3, 0.3 of the time."""
    days = np.repeat([0.1, 0.2, 0.5, 0.3, 0.3], 4).tolist()
    [overall, only] = busyness(5 * DAY_US, DAY_US // 4, [days])
    assert overall == only
    assert overall[0] == pytest.approx(0.3)
    assert overall[1] == pytest.approx(0.1)  # of 0.2, 0.1, 0.2, 0, 0


def test_short_runs_are_divided_into_tenths() -> None:
    tenths = [0.1] * 4 + [0.4] * 6
    [overall] = busyness(1_000_000, 100_000, [tenths])[:1]
    assert overall[0] == pytest.approx(0.4)
    assert overall[1] == pytest.approx(0.0)


def test_schedulers_count_beside_each_other() -> None:
    overall, idle, busy = busyness(1_000_000, 50_000, [[0.0], [0.8]])
    assert overall == (pytest.approx(0.4), pytest.approx(0.4))
    assert idle == (0, 0)
    assert busy == (pytest.approx(0.8), pytest.approx(0))


def test_samples_left_out_count_for_no_day() -> None:
    [overall] = busyness(1_000_000, 50_000, [[0.9] * 10 + [0.2]], settle_us=500_000)[:1]
    assert overall == (pytest.approx(0.2), pytest.approx(0))


def test_nothing_recorded() -> None:
    metrics = RunMetrics(RunFrame([Phase(0, 1_000_000, 90)], 1, partitions=1))
    others = summarise(metrics).overall.others
    assert others["busyness_median"] is None and others["conflict_fraction_median"] is None
