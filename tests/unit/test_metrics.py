"""Metrics against a slow recomputation from their definitions, row by row in plain Python;
histograms against the values themselves."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.metrics import histogram
from parsync.metrics.kinds.conflicts import ConflictMetric
from parsync.metrics.kinds.offers import TABLES
from parsync.metrics.live_line import DELAY_BOUNDS_US, LiveLine
from parsync.metrics.metric import TableFold
from parsync.metrics.run_frame import Group, RunFrame, TaskPreferences
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import ScopeFigures, series, summarise
from parsync.metrics.tables import SCHEMAS
from schedulers.interface import ChangeKind
from shared_state.transaction import Reason
from tests.fixtures.examples import examples
from tests.unit.metrics_oracle import (
    AGENTS,
    PARTITIONS,
    SETTLE,
    WINDOWS,
    close,
    near,
    oracle,
    window,
)
from tests.unit.record_factory import Phase, Recorded, columns_of, random_records

CONFLICT = {Reason.STALE, Reason.FULL, Reason.EVICTED, Reason.HELD}


def accumulate(recorded: Recorded, part: slice = slice(None), **options: object) -> RunMetrics:
    arguments = {
        "partitions": PARTITIONS,
        "settle_us": SETTLE,
        "job_of": recorded.job_of,
        "services": recorded.services,
        "run_us": recorded.run_us,
        **options,
    }
    metrics = RunMetrics(RunFrame(WINDOWS, AGENTS, **arguments))  # type: ignore[arg-type]
    for table, columns in recorded.batches[part]:
        metrics.add(table, columns)
    return metrics


def check(figures: ScopeFigures, expected: dict[str, float | None]) -> None:
    for name, value in expected.items():
        alike = near if "_p" in name and name.endswith("_us") else close
        bound, _, of = name.partition("/")
        if of:  # the tasks of a bucket of time are charged their mean, in whole microseconds
            assert abs((getattr(figures, bound).get(of) or 0) - (value or 0)) <= 1, (
                name,
                getattr(figures, bound).get(of),
                value,
            )  # type: ignore[union-attr]
        else:
            assert alike(getattr(figures, name), value), (name, getattr(figures, name), value)


@examples(25)
@given(st.integers(0, 1 << 30), st.integers(3, 120))
def test_every_scope_agrees_with_a_recomputation_row_by_row(seed: int, tasks: int) -> None:
    recorded = random_records(seed, AGENTS, PARTITIONS, tasks, 3_000_000)
    summary = summarise(accumulate(recorded, groups=[Group("two", (0, 2)), Group("one", (1,))]))
    everyone, windows = {0, 1, 2}, {0, 1, 2}
    check(summary.overall, oracle(recorded, everyone, windows))
    for number, phase in enumerate(summary.phases):
        check(phase, oracle(recorded, everyone, {number}))
    check(summary.groups[0].overall, oracle(recorded, {0, 2}, windows))
    check(summary.groups[1].phases[1], oracle(recorded, {1}, {1}))
    check(summary.agents[2], oracle(recorded, {2}, windows))


@examples(15)
@given(st.integers(0, 1 << 30), st.integers(1, 5))
def test_merged_parts_equal_one_accumulation(seed: int, parts: int) -> None:
    recorded = random_records(seed, AGENTS, PARTITIONS, 60, 3_000_000)
    whole = accumulate(recorded)
    merged, *others = (accumulate(recorded, slice(start, None, parts)) for start in range(parts))
    for other in others:
        merged.merge(other)
    assert summarise(merged) == summarise(whole)
    for name, array in series(whole).items():
        assert np.array_equal(array, series(merged)[name]), name


def test_rivals_ages_and_staleness_are_counted_within_the_windows() -> None:
    recorded = random_records(11, AGENTS, PARTITIONS, 150, 3_000_000)
    metrics = accumulate(recorded, groups=[Group("two", (0, 2)), Group("one", (1,))])
    summary = summarise(metrics)
    rivals = [[0] * (AGENTS + 1) for _ in range(AGENTS)]
    conflicts = [0, 0]
    for row in recorded.rows("rejections"):
        if window(row["at_us"]) is not None and row["reason"] in CONFLICT:
            # or: nobody but itself
            nobody = AGENTS if row["reason"] == Reason.EVICTED else row["agent"]
            rivals[row["agent"]][row["rival"] if row["rival"] >= 0 else nobody] += 1
            conflicts[int(row["agent"] == 1)] += 1
    assert summary.rivals == rivals
    assert metrics.get(ConflictMetric).ages[:, 1].sum(axis=1).tolist() == conflicts
    for partition in range(PARTITIONS):
        ages = [
            row["age_us"]
            for row in recorded.rows("syncs")
            if row["partition"] == partition and window(row["at_us"]) is not None
        ]
        assert summary.staleness.syncs[partition] == len(ages)
        assert close(summary.staleness.at_sync_us[partition], sum(ages) / len(ages))
        # Sawtooth: an age that grows to a contributes a*a/2 of area over a time of a.
        assert close(summary.staleness.mean_us[partition], sum(a * a for a in ages) / 2 / sum(ages))


def test_series_add_up_to_the_totals() -> None:
    recorded = random_records(5, AGENTS, PARTITIONS, 150, 3_000_000)
    metrics = accumulate(recorded)
    arrays, totals = series(metrics), summarise(metrics).totals
    assert (
        arrays["submitted"].sum()
        == totals.submitted
        == sum(r["tasks"] for r in recorded.rows("submissions"))
    )
    assert (
        arrays["claims"].sum()
        == totals.claims
        == sum(r["claims"] for r in recorded.rows("commits"))
    )
    assert arrays["first_commits"].sum() == totals.committed
    bucket = int(arrays["bucket_us"][0])
    for row in recorded.rows("submissions"):
        assert arrays["submitted"][row["agent"], row["submit_us"] // bucket] >= row["tasks"]


def one_task(
    metrics: RunMetrics, task: int, submit_us: int, commit_us: int | None, **columns: int
) -> None:
    prefers = columns.get("prefers", 0)
    row = {"agent": [0], "job": [task], "submit_us": [submit_us]}
    metrics.add("submissions", {**row, "tasks": [1], "prefers": [prefers]})
    if commit_us is not None:
        rest = {name: [value] for name, value in columns.items()}
        row |= {"task": [task], "commit_us": [commit_us], "first": [1]}
        metrics.add("tasks", columns_of("tasks", **row, **rest))


def one_end(task: int, end_us: int, due: int = 0) -> dict[str, list[int]]:
    finished = int(ChangeKind.FINISHED)
    return columns_of("ends", task=[task], end_us=[end_us], change=[finished], due=[due])


def test_dominant_shares_over_time_are_those_of_the_schedulers_that_take_offers() -> None:
    frame = RunFrame([Phase(0, 4_000_000, 90)], 3, partitions=1, brought=frozenset(TABLES))
    metrics = RunMetrics(frame, tables={**SCHEMAS, **TABLES})
    zeros = dict.fromkeys(TABLES["offers"].columns, [0] * 4)
    at_us = [1_000_000, 1_000_000, 3_000_000, 3_000_000]
    share = [100_000, 300_000, 250_000, 500_000]
    metrics.add("offers", {**zeros, "at_us": at_us, "agent": [0, 2, 0, 2], "share": share})
    over_time = series(metrics)
    bucket = np.array([1_000_000, 3_000_000]) // frame.bucket_us
    part = over_time["dominant_share_ppm"][:, bucket]
    whole = over_time["dominant_share_samples_ppm"][:, bucket]
    assert (part[[0, 2]] / whole[[0, 2]]).tolist() == [[0.1, 0.25], [0.3, 0.5]]
    assert not whole[1].any(), "one of another protocol has no share"


def test_a_censored_task_is_larger_than_every_quantile_below_it() -> None:
    metrics = RunMetrics(RunFrame([Phase(0, 10_000_000, 90)], 1, partitions=1))
    for task in range(90):
        one_task(metrics, task, 1_000_000 + task, 1_000_200 + task)
    for task in range(90, 100):
        one_task(metrics, task, 2_000_000, None)
    figures = summarise(metrics).overall
    assert (figures.submitted, figures.committed, figures.censored) == (100, 90, 10)
    assert figures.delay_p90_us == 200  # the 90th of 100
    assert figures.delay_p99_us is None
    assert figures.delay_max_us is None
    assert figures.delay_mean_us == 200


def test_quantiles_are_whole_microseconds_within_their_accuracy() -> None:
    metrics = RunMetrics(RunFrame([Phase(0, 10_000_000, 90)], 1, partitions=1))
    delays_us = [22_501 + 7 * task for task in range(51)]
    for task, delay_us in enumerate(delays_us):
        one_task(metrics, task, 1_000_000, 1_000_000 + delay_us)
    overall = summarise(metrics).overall
    for found, true in (
        (overall.delay_p50_us, delays_us[25]),
        (overall.delay_p99_us, max(delays_us)),
    ):
        assert found is not None and found == round(found)
        assert abs(found - true) <= 0.008 * true


def test_what_never_got_there_is_charged_until_the_run_was_last_seen() -> None:
    metrics = RunMetrics(
        RunFrame([Phase(0, 10_000_000, 90)], 1, partitions=1, job_of=np.arange(100))
    )
    for task in range(90):
        one_task(metrics, task, 1_000_000 + task, 1_000_200 + task)
    for task in range(90, 100):
        one_task(metrics, task, 2_000_000, None)
    metrics.add(
        "cell", {"at_us": [12_000_000], "running": [1], "machines_up": [1], "used_permille": [500]}
    )
    metrics.add("ends", one_end(0, 90_000_000, due=1))
    figures = summarise(metrics).overall
    assert figures.incomplete
    assert figures.at_least["delay_mean_us"] == (90 * 200 + 10 * 10_000_000) / 100
    assert figures.at_least["delay_p50_us"] == 200
    assert near(figures.at_least["delay_p99_us"], 10_000_000)
    assert figures.at_least["jsd_mean_us"] == (90 * 200 + 10 * 10_000_000) / 100


def test_a_task_in_a_thousand_may_be_missing_and_two_may_not() -> None:
    for missing, incomplete in ((1, False), (2, True)):
        metrics = RunMetrics(RunFrame([Phase(0, 10_000_000, 90)], 1, partitions=1))
        for task in range(1000):
            one_task(metrics, task, 1_000_000, None if task < missing else 1_000_200)
        figures = summarise(metrics).overall
        assert figures.incomplete == incomplete
        assert bool(figures.at_least) == incomplete


def test_services_do_not_keep_an_arm_from_finishing_its_jobs() -> None:
    metrics = RunMetrics(
        RunFrame(
            [Phase(0, 10_000_000, 90)],
            1,
            partitions=1,
            job_of=np.arange(2),
            run_us=np.array([2_000_000, -1]),
        )
    )
    one_task(metrics, 0, 1_000_000, 1_000_200)
    one_task(metrics, 1, 1_000_000, 1_000_200)
    metrics.add("ends", one_end(0, 3_000_000))
    figures = summarise(metrics).overall
    assert (figures.jobs, figures.jobs_ending, figures.jobs_finished) == (2, 1, 1)
    assert figures.at_least == {}


def test_slowdown_is_relative_to_the_machines_where_tasks_run_fastest() -> None:
    """Tasks take 1 s, and 0.7 s on machines that they prefer."""
    metrics = RunMetrics(
        RunFrame(
            [Phase(0, 10_000_000, 90)],
            1,
            partitions=1,
            job_of=np.arange(2),
            run_us=np.full(2, 1_000_000),
            preferences=TaskPreferences(np.array([1, 0], np.int32), np.zeros(2, np.int64)),
            preferred_permille=700,
        )
    )
    for task, end_us in ((0, 2_400_000), (1, 2_000_000)):
        one_task(metrics, task, 1_000_000, 1_000_000)
        metrics.add("ends", one_end(task, end_us))
    assert summarise(metrics).overall.slowdown_mean == (2.0 + 1.0) / 2


def test_what_is_due_to_end_has_not_ended_and_lengthens_no_run() -> None:
    """Two tasks end, one of them after the run; one service runs for ever. All run for what the run
    lasted, at most."""
    metrics = RunMetrics(RunFrame([Phase(0, 10_000_000, 90)], 1, partitions=1, job_of=np.arange(3)))
    for task, preferred in ((0, 1), (1, 0), (2, 0)):
        one_task(metrics, task, 1_000_000, 2_000_000, prefers=1, preferred=preferred)
    metrics.add("ends", one_end(0, 3_000_000))
    metrics.add("ends", one_end(1, 90_000_000, due=1))
    metrics.add(
        "cell", {"at_us": [12_000_000], "running": [1], "machines_up": [1], "used_permille": [500]}
    )
    summary = summarise(metrics)
    assert (summary.totals.ended_finished, summary.totals.still_running) == (1, 1)
    assert summary.totals.last_us == 12_000_000
    assert summary.overall.preferred_time_share == 1 / (1 + 10 + 10)
    assert summary.overall.jct_mean_us == (2_000_000 + 89_000_000) / 2, "but its job time is known"


def test_what_is_submitted_at_the_start_has_figures_of_its_own_if_no_window_holds_it() -> None:
    for settle_us, apart in ((100, True), (0, False)):
        metrics = RunMetrics(RunFrame([Phase(0, 10_000, 90)], 1, partitions=1, settle_us=settle_us))
        one_task(metrics, 0, 0, 5_000)
        one_task(metrics, 1, 0, None)
        one_task(metrics, 2, 50, 60)
        one_task(metrics, 3, 500, 520)
        summary = summarise(metrics)
        assert summary.totals.submitted == 4
        if apart:
            assert summary.overall.submitted == 1 and summary.overall.delay_mean_us == 20
            assert summary.start.submitted == 2 and summary.start.censored == 1
            assert summary.start.delay_mean_us == 5_000
            # the start's commits are not among them
            assert summary.overall.throughput_per_s == 1e6 / 9_900
        else:
            assert summary.overall.submitted == 4 and summary.start is None


def test_without_submissions_nothing_is_called_censored() -> None:
    metrics = RunMetrics(RunFrame([Phase(0, 10, 90)], 1, partitions=1))
    metrics.add("cell", {"at_us": [1], "running": [1], "machines_up": [1], "used_permille": [500]})
    figures = summarise(metrics).overall
    assert figures.censored is None
    assert figures.utilisation_mean == 0.5


def test_a_delay_belongs_to_the_phase_of_its_submission_and_throughput_to_that_of_the_answer() -> (
    None
):
    metrics = RunMetrics(
        RunFrame([Phase(0, 1000, 50), Phase(1000, 2000, 95)], 1, partitions=1, settle_us=100)
    )
    one_task(metrics, 0, 900, 1500)
    one_task(metrics, 1, 1050, 1060)  # within what is left out of the second phase
    phases = summarise(metrics).phases
    assert [phase.committed for phase in phases] == [1, 0]
    assert [phase.throughput_per_s for phase in phases] == [0, 1e6 / 900]
    assert summarise(metrics).totals.committed == 2


def test_an_empty_run_has_figures_but_no_nan() -> None:
    figures = summarise(RunMetrics(RunFrame([Phase(0, 10, 0)], 2, partitions=3)))
    text = json.dumps(figures.model_dump(mode="json"), allow_nan=False)
    assert json.loads(text)["overall"]["conflict_rate"] is None


def test_an_agent_that_was_restarted_counts_its_busy_time_anew() -> None:
    metrics = RunMetrics(RunFrame([Phase(0, 1000, 90)], 1, partitions=1))
    busy_us = [0, 80, 160, 30, 90]  # restarted after the third sample: begins at 0
    at_us, wasted_us = [0, 100, 200, 400, 500], [0, 40, 60, 0, 10]
    columns = columns_of("agents", at_us=at_us, busy_us=busy_us, wasted_us=wasted_us)
    metrics.add("agents", columns)
    overall = summarise(metrics).overall
    assert overall.busy_useful_share == (160 + 90 - 60 - 10) / 500
    assert overall.busy_wasted_share == (60 + 10) / 500


def test_the_snapshot_covers_the_time_since_the_last_one() -> None:
    metrics = RunMetrics(RunFrame([Phase(0, 10_000_000, 90)], 2, partitions=1))
    one_task(metrics, 0, 100_000, 150_000)
    metrics.add("agents", columns_of("agents", agent=[0, 1], queued=[7, 8]))
    first = metrics.snapshot(500_000)
    assert [line.queue for line in first.schedulers] == [7, 8]
    assert first.schedulers[0].commits_per_s == 2.0
    assert near(first.schedulers[0].delay_p99_us, 50_000)
    assert first.schedulers[1].delay_p50_us is None
    one_task(metrics, 1, 600_000, 600_100)
    one_task(metrics, 2, 600_000, 600_300)
    second = metrics.snapshot(1_500_000)
    assert second.window_us == 1_000_000
    assert second.schedulers[0].commits_per_s == 2.0
    assert near(second.schedulers[0].delay_p50_us, 100)
    joined = first.join([metrics.snapshot(2_000_000, [1]), metrics.snapshot(2_000_000, [0])])
    assert [line.agent for line in joined.schedulers] == [0, 1]
    # showing the line takes nothing from the summary
    assert summarise(metrics).overall.committed == 3


@given(st.lists(st.integers(0, 1 << 30), min_size=1, max_size=100))
def test_the_live_line_counts_delays_below_its_bounds_exactly(delays: list[int]) -> None:
    line = LiveLine(agents=2)
    n = len(delays)
    rows = {
        "agent": np.ones(n, np.int64),
        "prefers": np.zeros(n, np.int8),
        "preferred": np.zeros(n, np.int8),
    }
    rows |= {"first": rows["agent"], "submit_us": 0 * rows["agent"], "commit_us": np.array(delays)}
    fold = TableFold("tasks", dict.fromkeys(rows, ""), RunFrame([Phase(0, 1, 0)], 2, partitions=1))
    line.add_up(fold.rows)
    fold.fold(rows)
    quiet, busy = line.take(1_000_000, (0, 1)).schedulers
    assert busy.delays_below == (
        *(sum(delay < bound for delay in delays) for bound in DELAY_BOUNDS_US),
        n,
    )
    assert busy.delay_sum_us == pytest.approx(sum(delays), rel=0.004, abs=1)
    assert set(quiet.delays_below) == {0} and quiet.delay_sum_us == 0


@pytest.mark.parametrize(
    ("phases", "options", "says"),
    [
        ([Phase(0, 100, 50)], {"settle_us": 100}, "left out"),
        ([Phase(0, 100, 50), Phase(50, 200, 80)], {}, "before the previous one ends"),
        ([Phase(0, 100, 50)], {"groups": [Group("a", (0,))]}, "every agent exactly once"),
        (
            [Phase(0, 100, 50)],
            {"groups": [Group("a", (0, 1)), Group("b", (1,))]},
            "every agent exactly once",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    phases: list[Phase], options: dict[str, object], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        RunMetrics(RunFrame(phases, 2, partitions=1, **options))  # type: ignore[arg-type]


def test_parts_of_different_runs_do_not_merge() -> None:
    one, other = (
        RunMetrics(RunFrame([Phase(0, 10, 0)], 2, partitions=3)),
        RunMetrics(RunFrame([Phase(0, 20, 0)], 2, partitions=3)),
    )
    with pytest.raises(ValueError, match="same run"):
        one.merge(other)


@given(
    st.lists(st.integers(0, 1 << 39), min_size=1, max_size=200),
    st.floats(0.0, 1.0),
    st.integers(0, 50),
)
def test_histogram_quantiles_are_within_the_stated_resolution(
    values: list[int], fraction: float, beyond: int
) -> None:
    counts = np.bincount(histogram.bucket_of(np.array(values)), minlength=histogram.BUCKETS)
    ordered = sorted(values) + [math.inf] * beyond
    rank = max(math.ceil(fraction * len(ordered) - 1e-9), 1)
    exact = ordered[rank - 1]
    assert near(histogram.quantile(counts, fraction, beyond), None if exact == math.inf else exact)


def test_a_quantile_moves_with_the_data_within_a_bucket() -> None:
    """Two runs whose true medians differ by a tenth of a bucket must not look equal, nor a whole
    bucket apart."""
    values = np.arange(1_000_000, 1_004_000)  # buckets of 4,096 values here
    medians = []
    for shift in (0, 400):
        counts = np.bincount(histogram.bucket_of(values + shift), minlength=histogram.BUCKETS)
        medians.append(histogram.quantile(counts, 0.5))
    assert medians[0] is not None and medians[1] is not None
    assert medians[0] < medians[1] < medians[0] + 4096


def test_the_distribution_ends_at_the_committed_share() -> None:
    counts = np.bincount(histogram.bucket_of(np.arange(1, 3001)), minlength=histogram.BUCKETS)
    value, share = histogram.distribution(counts, beyond=1000, points=50)
    assert len(value) <= 52
    assert share[-1] == 0.75
    assert all(abs(s - v / 4000) < 0.02 for v, s in zip(value, share, strict=True))
