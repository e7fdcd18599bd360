"""The chapter of Mesos: every figure finds what its claims and its drawing need, the settings are
what they say, and claims on made-up runs."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.papers.chapter import PaperFigure, Results
from experiments.papers.claims import judge
from experiments.papers.mesos import figures
from experiments.papers.mesos.figures import (
    A_FIRST,
    BATCH,
    BOUND,
    CELL,
    FRAMEWORKS,
    GRANTS,
    HOARD,
    MACHINE,
    MACHINES,
    PART,
    SERVICE,
    SHARED,
    SINGLE,
    TIMEOUT,
    TIMER,
    at_t_job,
    at_wait,
    turnover,
)
from experiments.papers.mesos.runs import US_PER_S, HeldRoom, offers_arm, offers_group, run
from experiments.papers.mesos.settings import (
    HORIZON_S,
    GangRun,
    LocalityRun,
    ServiceRun,
    ShareRun,
    dominant_share,
    recorded_jobs,
    replicas,
    service_workload,
)
from experiments.papers.registry import MESOS
from experiments.studies.model_runs import DrawnRun
from experiments.studies.model_settings import ReproduceScale
from parsync.spec.decision_times import ModelledTime
from shared_state.tasks import TaskClass
from tests.fixtures.papers.claims import means, values
from tests.fixtures.unit_workloads import Unit, unit_workload
from tests.unit.test_papers import complete

SMOKE, PAPER = ReproduceScale.SMOKE, ReproduceScale.PAPER
NAMES = {
    ShareRun: ("tasks_a", "tasks_b", "share_a", "share_b"),
    LocalityRun: ("local", "wait_s", "response_s", "declined", "placed"),
    ServiceRun: (
        *(f"{kind}_{what}" for kind in (BATCH, SERVICE) for what in ("wait_s", "tried", "done")),
        "retried",
        "held",
    ),
    GangRun: ("waits", "placed", "idle", "held", "wait_s"),
}


def runs_of(figure: str, scale: ReproduceScale = SMOKE) -> dict[str, Any]:
    """The runs of a figure by label."""
    [chosen] = MESOS.chosen([figure])
    return {run.label: run for run in chosen.runs(scale)}


@pytest.mark.parametrize("figure", MESOS.figures, ids=lambda figure: figure.id)
@pytest.mark.parametrize("scale", ReproduceScale)
def test_a_figure_has_all_that_its_claims_and_its_drawing_need(
    figure: PaperFigure, scale: ReproduceScale, tmp_path: Path
) -> None:
    runs = figure.runs(scale)
    found = {
        run.label: {name: 1.0 + np.arange(2.0) for name in NAMES[type(run)]}  # type: ignore[index]
        for run in runs
    }
    complete(figure, Results(runs, (found,) * 2, {}), tmp_path)


def small(run: Any) -> Any:
    """The same run, short."""
    if isinstance(run, LocalityRun):
        return replace(run, machines=min(run.machines, MACHINES), jobs=8, draws=2)
    if isinstance(run, GangRun):
        return replace(run, gangs=6, draws=2, patience_s=20.0)
    if isinstance(run, ServiceRun):
        return replace(run, horizon_s=60)
    return replace(run, horizon_s=100.0)


@pytest.mark.parametrize(
    "run",
    [
        run
        for figure in MESOS.figures
        for run in figure.runs(SMOKE)
        if "t_job 10 s" not in run.label and "wait 1 s" not in run.label
    ],
    ids=lambda run: run.label,
)
def test_a_run_measures_what_its_claims_read(run: DrawnRun) -> None:
    run = small(run)
    found = run.measure(1, None)
    assert set(found) == set(NAMES[type(run)])  # type: ignore[index]
    assert {len(values) for values in found.values()} == {run.draws}
    later = replace(run, draws=1).measure(run.draws + 1, None)
    again = run.measure(2, None)
    for name in found:
        np.testing.assert_array_equal(again[name][:1], later[name], "draws go on")


# Dominant resource fairness


def test_the_worked_example_and_what_one_machine_makes_of_it() -> None:
    runs = runs_of("drf")
    found = {label: runs[label].measure(1, None) for label in (GRANTS, A_FIRST, figures.B_FIRST)}
    tasks = {
        label: [round(float(one[name][0]), 6) for name in ("tasks_a", "tasks_b")]
        for label, one in found.items()
    }
    assert tasks == {GRANTS: [3, 2], A_FIRST: [4, 1], figures.B_FIRST: [0, 3]}
    assert found[GRANTS]["share_a"] == pytest.approx(2 / 3)
    assert found[GRANTS]["share_b"] == pytest.approx(2 / 3)
    assert (dominant_share("A", 4), dominant_share("B", 1)) == (pytest.approx(8 / 9), 1 / 3)


def test_shares_become_equal_only_as_tasks_end() -> None:
    runs = runs_of("drf")
    found = replace(runs[turnover(1)], horizon_s=900.0).measure(1, None)
    assert abs(found["share_a"] - found["share_b"]) < 0.15
    assert 0.6 < found["share_a"] <= 1


# Data locality


def test_copies_are_on_three_different_machines_all_equally_likely() -> None:
    found = replicas(1, 20_000, 5)
    assert {tuple(row) for row in found.tolist()} == {*combinations(range(5), 3)}
    counts = np.unique(found, axis=0, return_counts=True)[1]
    assert counts.min() > 1_800 and counts.max() < 2_200


def test_static_partitions_hold_the_input_of_as_many_tasks_as_counted() -> None:
    parts = replicas(2, 40_000, MACHINES) // PART
    first = (parts == 0).any(axis=1)
    assert first.mean() == pytest.approx(BOUND, rel=0.03)
    assert pytest.approx(0.1777, abs=1e-4) == BOUND and FRAMEWORKS * PART == MACHINES


def test_a_local_task_is_one_on_a_machine_of_its_copies_and_runs_as_short_as_said() -> None:
    """One machine with room for everything on it: each task is local and starts at once."""
    run = replace(
        runs_of("locality")[at_wait(5)], machines=3, slots=100, jobs=4, load=0.05, run_s=10.0
    )
    whole, half = (replace(run, local_permille=one).measure(1, None) for one in (1000, 500))
    assert whole["local"] == half["local"] == whole["placed"] == 1
    assert half["response_s"] - half["wait_s"] == pytest.approx(
        (whole["response_s"] - whole["wait_s"]) / 2, rel=0.2
    )


# A slow service framework


def test_the_jobs_are_those_that_the_public_simulator_read() -> None:
    """Byte for byte, by the digest of its file."""
    text = "".join(
        f"{number} {at_s:.6f} {tasks} {run_s:.6f} {kind} 1 2\n"
        for number, (at_s, tasks, run_s, kind) in enumerate(recorded_jobs(), start=1)
    )
    assert hashlib.sha256(text.encode()).hexdigest().startswith("d7dab63e93c378ca")
    workload = service_workload(HORIZON_S)
    services = workload.tasks.task_class == TaskClass.SERVICE
    assert (int((~services).sum()), int(services.sum())) == (143_761, 6_929)
    assert workload.end_us == HORIZON_S * US_PER_S


def fifo_waits_s(decision_s: Any) -> list[float]:
    """How long each of the first jobs waits if all are decided one after the other."""
    free_s, waits = 0.0, []
    for at_s, tasks, _, kind in recorded_jobs():
        if at_s >= 600:
            return waits
        begin_s = max(at_s, free_s)
        waits.append(begin_s - at_s)
        free_s = begin_s + decision_s(kind) + 0.005 * tasks
    return waits


@pytest.mark.parametrize("t_job_s", [0.1, 1.0])
def test_the_single_path_is_one_queue(t_job_s: float) -> None:
    run = replace(runs_of("starvation")[at_t_job(SINGLE, t_job_s)], horizon_s=600)
    found, kinds = run.measure(1, None), [row[3] for row in recorded_jobs()]
    waits = fifo_waits_s(lambda kind: t_job_s)
    for kind, letter in ((BATCH, "B"), (SERVICE, "S")):
        expected = [
            wait for wait, one in zip(waits[:-3], kinds, strict=False) if one == letter
        ]  # the last decisions may not have ended
        assert found[f"{kind}_wait_s"] == pytest.approx(np.mean(expected), rel=0.03)


def test_decisions_of_one_framework_do_not_overlap() -> None:
    """At t_job = 100 s at most one service in 100 s is placed, under offers and shared state."""
    runs = runs_of("starvation")
    services = sum(row[3] == "S" and row[0] < 600 for row in recorded_jobs())
    for name in (CELL, MACHINE, TIMER, SHARED):
        found = replace(runs[at_t_job(name, 100.0)], horizon_s=600).measure(1, None)
        assert found["service_done"] * services <= 6, name
        assert (found["held"] > 0.3) == (name != SHARED)


def test_held_room_counts_until_the_end() -> None:
    """A scheduler decides for 100 s, with all of the cell, when the run ends."""
    slow = offers_group(1, decision=ModelledTime(job_us=100 * US_PER_S, task_us=1.0))
    workload = unit_workload([[1]] * 5, [Unit(((1,),) * 4, 10 * US_PER_S, is_gang=False)])
    held = HeldRoom()
    ran = run(offers_arm(slow), workload, drain_us=9 * US_PER_S, observer=held)
    assert held.now() == 1 and ran.outcome.ended_us > 10 * US_PER_S
    waited_us = ran.outcome.ended_us - 10 * US_PER_S
    assert held.share(ran.outcome.ended_us) == pytest.approx(waited_us / ran.outcome.ended_us)


# Claims on made-up runs


def test_values_of_claims_about_waits() -> None:
    runs = {
        at_t_job(TIMER, 0.1): means(batch_wait_s=0.356, service_wait_s=0.872, held=0.066),
        at_t_job(CELL, 0.1): means(batch_wait_s=2.0),
        at_t_job(CELL, 10): means(batch_wait_s=9.0),
        at_t_job(SHARED, 0.1): means(batch_wait_s=0.0057, service_wait_s=0.0003),
        at_t_job(SHARED, 1): means(batch_wait_s=0.0060, service_wait_s=0.0218),
        at_t_job(SHARED, 100): means(batch_wait_s=0.0057, service_done=0.2),
        **{
            at_t_job(name, 100): means(service_done=done, batch_wait_s=1.0)
            for name, done in ((CELL, 0.1), (MACHINE, 0.3), (TIMER, 0.0))
        },
    }
    found = values(MESOS, "starvation", runs)
    assert found["mesos_batch_1"] == pytest.approx(0.5) and found["mesos_service_1"] == 1
    assert found["locked_1"] == pytest.approx(2)
    assert found["starves_cell"] == 4.5
    assert found["shared_batch"] == pytest.approx(60 / 57)
    assert (found["shared_service_1"], found["shared_service_10"]) == (pytest.approx(0.75), 1)
    assert found["saturates"] == 0.3 and found["shared_does_not"] == 1


def test_values_of_claims_about_locality_and_gangs() -> None:
    runs = {
        at_wait(wait_s): means(local=local) for wait_s, local in ((0, 0.5), (2, 0.75), (5, 0.875))
    }
    assert values(MESOS, "locality", runs)["waiting_helps"] == 0.375
    assert values(MESOS, "locality", runs)["short_wait"] == 0.75
    hoard = {"waits": np.array([0.0, 1.0, 1.0]), "idle": np.array([0.1, 0.9, 0.8])}
    found = values(MESOS, "gangs", {HOARD: hoard, TIMEOUT: means(waits=0.0)})
    assert found["deadlock"] == pytest.approx(2 / 3)
    assert (found["idle"], found["timeout"]) == (0.8, 0)
    assert values(MESOS, "gangs", {HOARD: means(waits=0.0, idle=0.0)})["idle"] is None


def test_what_is_recalled_emulated_or_overlaps_is_never_judged() -> None:
    reasons = {claim.id: claim.incomparable for figure in MESOS.figures for claim in figure.claims}
    for claim in ("five_seconds", "faster", "large"):
        assert reasons[f"locality.{claim}"]
    [figure] = MESOS.chosen(["starvation"])
    [overlaps] = [claim for claim in figure.claims if claim.id == "starvation.mesos_slow"]
    runs = {at_t_job(TIMER, 100): means(batch_wait_s=76.1)}
    assert judge(overlaps, [runs], True).verdict == "not_comparable"


# Gangs


def test_hoarders_deadlock_and_gangs_under_shared_state_do_not() -> None:
    runs = runs_of("gangs")
    found = {
        label: replace(runs[label], gangs=20, draws=2).measure(1, None)
        for label in (HOARD, TIMEOUT, figures.SHARED_GANGS)
    }
    stuck = found[HOARD]["waits"] > 0
    assert stuck.any() and (found[HOARD]["idle"][stuck] == 1).all()
    assert (found[HOARD]["placed"][stuck] < 1).all()
    for label in (TIMEOUT, figures.SHARED_GANGS):
        assert not found[label]["waits"].any() and (found[label]["placed"] == 1).all()
    assert not found[figures.SHARED_GANGS]["held"].any()
