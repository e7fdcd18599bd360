"""Shares on preferred machines by preference set, against a recomputation task by task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.analysis.summary import build_summary
from experiments.report.page import verdict_page
from experiments.report.verdict import Row, verdict
from parsync.metrics.kinds import quality
from parsync.metrics.kinds.quality import LEAST_TASKS, PreferenceSetFigures, PreferenceSetMetric
from parsync.metrics.run_frame import Group, RunFrame, TaskPreferences
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import ScopeFigures, summarise
from shared_state.tasks import Int64
from tests.fixtures.examples import examples
from tests.unit.known_quantities import QUANTITIES
from tests.unit.record_factory import Phase, columns_of
from tests.unit.run_factory import with_overall, workload
from tests.unit.test_summary import FACTS, bare_arm

AGENTS, SETTLE = 2, 100_000
WINDOWS = (Phase(0, 1_000_000, 50), Phase(1_000_000, 2_000_000, 95))
WHOLE = (0, 1)


@dataclass(frozen=True)
class Made:
    """Tasks by id, and what was recorded of them: batch by batch, in any order."""

    job_of: Int64
    preferences: TaskPreferences
    agent: Int64
    submitted: np.ndarray
    preferred: np.ndarray
    batches: list[tuple[str, dict[str, Any]]]


def window(at_us: int) -> int | None:
    inside = (
        number for number, one in enumerate(WINDOWS) if one.start_us + SETTLE <= at_us < one.end_us
    )
    return next(inside, None)


def made(seed: int, tasks: int, sets: int) -> Made:
    """A run that was stopped: the last batches of some jobs were not submitted, some tasks not
    committed, and some committed twice. Jobs submit tasks several times; ids of jobs have gaps."""
    rng = np.random.default_rng(seed)
    jobs = max(1, tasks // 6)
    job = rng.integers(0, jobs, tasks) * 3
    job[rng.random(tasks) < 0.05] = -1  # ran before the run began
    agent = job // 3 % AGENTS
    submit_us = rng.integers(0, 4, tasks) * 500_000 + np.maximum(job, 0)
    preference = rng.integers(0, sets + 1, tasks).astype(np.int32)
    stop_us = rng.integers(0, 2_000_000, jobs * 3)
    submitted = (job >= 0) & (submit_us <= stop_us[job])
    preferred = np.zeros(tasks, np.bool_)
    batches: list[tuple[str, dict[str, Any]]] = []
    for its_job, at_us in sorted(set(zip(job[submitted], submit_us[submitted], strict=True))):
        rows = np.flatnonzero(submitted & (job == its_job) & (submit_us == at_us))
        columns = {"agent": agent[rows[:1]], "job": [its_job], "submit_us": [at_us]}
        counts = {"tasks": [len(rows)], "prefers": [int((preference[rows] > 0).sum())]}
        batches.append(("submissions", {**columns, **counts}))
    for task in np.flatnonzero(submitted & (rng.random(tasks) < 0.8)):
        hits = [bool(preference[task] > 0 and rng.random() < 0.6) for _ in range(2)]
        preferred[task] = hits[0]
        for place, hit in enumerate(hits[: rng.integers(1, 3)]):
            row = {"job": job, "agent": agent, "submit_us": submit_us, "prefers": preference > 0}
            columns = {name: column[task : task + 1] for name, column in row.items()}
            columns["commit_us"] = columns["submit_us"] + 5 + place
            hits_first = {"first": [int(place == 0)], "preferred": [int(hit)]}
            batches.append(("tasks", columns_of("tasks", task=[task], **columns, **hits_first)))
    batches = [batches[place] for place in rng.permutation(len(batches))]
    preferences = TaskPreferences(preference, submit_us)
    return Made(job, preferences, agent, submitted, preferred, batches)


def recorded(run: Made, part: slice = slice(None), **options: Any) -> RunMetrics:
    arguments = {"job_of": run.job_of, "preferences": run.preferences, **options}
    metrics = RunMetrics(RunFrame(WINDOWS, AGENTS, partitions=1, settle_us=SETTLE, **arguments))
    for table, columns in run.batches[part]:
        metrics.add(table, columns)
    return metrics


def check(figures: ScopeFigures, run: Made, agents: Sequence[int], windows: Sequence[int]) -> None:
    hits: dict[int, list[bool]] = defaultdict(list)
    for task in np.flatnonzero(run.submitted):
        of_set = int(run.preferences.preference[task])
        its_window = window(int(run.preferences.submit_us[task]))
        if of_set and run.agent[task] in agents and its_window in windows:
            hits[of_set].append(bool(run.preferred[task]))
    shares = {
        of_set: sum(its) / len(its)
        for of_set, its in hits.items()
        if len(its) >= quality.LEAST_TASKS
    }
    assert figures.preference_sets == len(hits)
    assert figures.preference_sets_counted == len(shares)
    if not shares:
        assert figures.set_preferred_share_mean is None
        assert figures.set_preferred_share_worst is None and figures.worst_preference_set is None
        return
    assert figures.set_preferred_share_mean == pytest.approx(sum(shares.values()) / len(shares))
    assert figures.set_preferred_share_worst == min(shares.values())
    assert figures.worst_preference_set is not None
    assert shares[figures.worst_preference_set] == min(shares.values())


@examples(25)
@given(st.integers(0, 1 << 30), st.integers(1, 150), st.integers(1, 5), st.integers(1, 12))
def test_every_scope_agrees_with_a_recomputation_task_by_task(
    seed: int, tasks: int, sets: int, least: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quality, "LEAST_TASKS", least)
        run = made(seed, tasks, sets)
        figures = summarise(recorded(run, groups=[Group("one", (1,)), Group("other", (0,))]))
        check(figures.overall, run, (0, 1), WHOLE)
        for number, phase in enumerate(figures.phases):
            check(phase, run, (0, 1), (number,))
        check(figures.groups[0].overall, run, (1,), WHOLE)
        check(figures.groups[1].phases[1], run, (0,), (1,))
        check(figures.agents[0], run, (0,), WHOLE)


@examples(10)
@given(st.integers(0, 1 << 30), st.integers(2, 4))
def test_parts_of_several_actors_add_up(seed: int, parts: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quality, "LEAST_TASKS", 3)
        run = made(seed, 80, 3)
        merged, *others = (recorded(run, slice(start, None, parts)) for start in range(parts))
        for other in others:
            merged.merge(other)
        assert summarise(merged) == summarise(recorded(run))


def shares(sizes: dict[int, tuple[int, int]]) -> PreferenceSetFigures:
    """The figures of a run with so many (preferred, all) tasks of each set, all committed."""
    preference = np.concatenate([np.full(whole, of) for of, (_, whole) in sizes.items()])
    hit = np.concatenate([np.arange(whole) < part for part, whole in sizes.values()])
    n = len(preference)
    metrics = RunMetrics(
        RunFrame(
            [Phase(0, 1000, 50)],
            1,
            partitions=1,
            job_of=np.zeros(n, np.int64),
            preferences=TaskPreferences(preference.astype(np.int32), np.zeros(n, np.int64)),
        )
    )
    metrics.add("submissions", columns_of("submissions", tasks=[n], prefers=[n]))
    task, one = np.arange(n), np.ones(n, np.int8)
    columns = columns_of("tasks", task=task, first=one, prefers=one, preferred=hit.astype(np.int8))
    metrics.add("tasks", columns)
    metrics.flush()
    return metrics.get(PreferenceSetMetric).figures(metrics.scope())


def test_a_set_counts_once_whatever_its_size_and_the_worst_is_not_hidden() -> None:
    figures = shares({4: (9_000, 10_000), 7: (20, 100), 9: (100, 100)})
    assert figures.set_preferred_share_mean == pytest.approx((0.9 + 0.2 + 1) / 3)
    assert figures.set_preferred_share_worst == 0.2 and figures.worst_preference_set == 7
    assert (figures.preference_sets, figures.preference_sets_counted) == (3, 3)


def test_sets_with_few_tasks_are_left_out() -> None:
    few = LEAST_TASKS - 1
    figures = shares({1: (50, LEAST_TASKS), 2: (0, few)})
    assert figures.set_preferred_share_worst == figures.set_preferred_share_mean == 0.5
    assert (figures.preference_sets, figures.preference_sets_counted) == (2, 1)
    none = shares(dict.fromkeys(range(1, 300), (1, 1)))  # a set of its own for each task
    assert none.set_preferred_share_mean is None and none.set_preferred_share_worst is None
    assert (none.preference_sets, none.preference_sets_counted) == (299, 0)


def test_nothing_is_known_of_a_run_whose_jobs_or_preferences_are_not() -> None:
    run = made(1, 50, 2)
    unknown: list[dict[str, Any]] = [{"job_of": None}, {"preferences": None}]
    for options in unknown:
        figures = summarise(recorded(run, **options)).overall
        for name in PreferenceSetFigures.model_fields:
            assert getattr(figures, name) is None


def test_the_report_shows_the_worst_set_beside_the_share_of_all_tasks() -> None:
    arms = [replace(bare_arm(name), quantities=list(QUANTITIES.values())) for name in "AB"]
    summary = with_overall(
        build_summary(FACTS, workload(), arms),
        preferred_share={"A": 0.7, "B": 0.8},
        set_preferred_share_worst={"A": 0.5, "B": 0.125},
        set_preferred_share_mean={"B": 0.75},
    )
    row = next(one for one in verdict(summary, summary.headline) if _is_share(one))
    small_print = {cell.arm: cell.beside for cell in row.cells}
    assert small_print == {"A": ("worst set 50 %",), "B": ("worst set 12.5 %", "set mean 75 %")}
    page = verdict_page(summary, [row], "title", "caption")
    assert "<small>worst set 12.5 %</small><small>set mean 75 %</small>" in page
    assert "Worst set: of the preference sets with at least 100 submitted tasks, that" in page
    # the sets have no column of their own in the first table, and stand with the other figures
    keys = {"set_preferred_share_worst", "set_preferred_share_mean"}
    assert keys.isdisjoint(one.key for one in summary.headline)
    assert keys <= {one.key for one in summary.details}


def test_without_figures_by_set_there_is_no_small_print() -> None:
    arms = [replace(bare_arm(name), quantities=list(QUANTITIES.values())) for name in "AB"]
    summary = with_overall(
        build_summary(FACTS, workload(), arms), preferred_share={"A": 0.7, "B": 0.8}
    )
    row = next(one for one in verdict(summary, summary.headline) if _is_share(one))
    assert row.beside == () and all(cell.beside == () for cell in row.cells)


def _is_share(row: Row) -> bool:
    return row.quantity.key == "preferred_share"
