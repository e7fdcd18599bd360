"""`agora reproduce firmament` and `quincy`: rounds of a flow scheduler, and the figures on tiny
cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.papers import flow_rounds
from experiments.papers.chapter import PaperFigure, Results, Run
from experiments.papers.claims import judge
from experiments.papers.firmament import algorithms, optimisations
from experiments.papers.firmament.algorithms import SIZES, at_size
from experiments.papers.firmament.cells import (
    BOTH,
    COST_SCALING,
    FROM_SCRATCH,
    RELAXATION,
    equal_at,
)
from experiments.papers.flow_rounds import (
    CellRun,
    JobRun,
    Setting,
    SteadyRun,
    StoppedRun,
    SwitchingRun,
    TimedSolver,
    World,
    google_like_tasks,
)
from experiments.papers.quincy import figures as quincy
from experiments.papers.registry import FIRMAMENT, QUINCY
from experiments.studies.model_settings import ReproduceScale
from tests.unit.test_papers import PAPER, SMOKE, complete

EVERY = (*FIRMAMENT.figures, *QUINCY.figures)


def setting(name: str = COST_SCALING, machines: int = 9, used: int = 900, **more: Any) -> Setting:
    return Setting(machines, 4, used, "firmament", {**FROM_SCRATCH[name], **more})


def tiny(run: Run) -> CellRun:
    """The same run on a few machines, for two rounds."""
    assert isinstance(run, CellRun)
    small = replace(run.setting, machines=8, slots=min(run.setting.slots, 6), job_tasks=None)
    changed: dict[str, Any] = {"setting": small, "rounds": min(run.rounds, 2)}
    if isinstance(run, JobRun | StoppedRun):
        changed["job_tasks"] = 3
    if isinstance(run, quincy.JobsRun):
        changed["tasks"] = 200
    return replace(run, **changed)


@pytest.mark.parametrize("figure", EVERY, ids=lambda figure: figure.id)
def test_a_figure_has_all_that_its_claims_and_its_drawing_need(
    figure: PaperFigure, tmp_path: Path
) -> None:
    runs = figure.runs(SMOKE)
    found = tuple({run.label: tiny(run).measure(seed, None) for run in runs} for seed in (1, 2))
    results = Results(runs, found, {})
    shown = complete(figure, results, tmp_path)
    assert all(claim.ours.estimate is not None for claim in shown.claims)
    assert (figure.headline is None) == (not shown.headline)


@pytest.mark.parametrize("figure", EVERY, ids=lambda figure: figure.id)
@pytest.mark.parametrize("scale", ReproduceScale)
def test_each_run_of_a_figure_is_another_one_and_says_how_long_it_takes(
    figure: PaperFigure, scale: ReproduceScale
) -> None:
    runs = figure.runs(scale)
    assert len({run.key(1) for run in runs}) == len(runs)
    assert all(run.expected_s > 0 for run in runs)


def test_times_of_the_original_code_are_shown_and_not_judged() -> None:
    seconds = ("s", "above 100 s", "above 400 s")
    for figure in FIRMAMENT.figures:
        for claim in figure.claims:
            if claim.incomparable:
                assert claim.incomparable.startswith("It is a time of the original code")
                assert claim.paper_value.endswith(seconds)
                result = judge(replace(claim, value=lambda runs: 60.0), [{}], True)
                assert result.verdict == "not_comparable"


def test_the_settings_are_those_of_the_paper() -> None:
    machines = [run.setting.machines for run in algorithms.fig3_runs(PAPER)[: len(SIZES)]]
    assert machines == [50, 450, 850, 1_250, 2_500, 5_000, 7_500, 10_000, 12_500]
    assert all(run.setting.kind == "quincy" for run in algorithms.fig3_runs(PAPER))
    slots = {id: FIRMAMENT.chosen([id])[0].runs(PAPER)[0] for id in ("fig7", "fig8", "fig9")}
    assert [one.setting.slots for one in slots.values()] == [24, 13, 24]  # type: ignore[union-attr]
    job = algorithms.fig8_runs(PAPER)[0]
    assert job.setting.tasks / (12_500 * 13) == pytest.approx(144_339 / 161_256, abs=1e-3)
    assert job.job_tasks == pytest.approx(2_500 * 162_500 / 161_256, rel=0.05)
    assert {run.job_tasks for run in optimisations.fig12a_runs(PAPER)} == {4_000}
    assert all(run.setting.machines == 10_000 for run in algorithms.fig9_runs(PAPER))
    overheads = quincy.overhead_runs(PAPER)
    assert [run.setting.machines for run in overheads] == [250, 2_500, 2_500]
    assert [run.setting.tasks // quincy.JOB_TASKS for run in overheads] == [10, 100, 100]


def test_tasks_are_like_those_of_the_trace() -> None:
    tasks, run_us = google_like_tasks(Setting(12_500, 24, 500, "flow", {}), 150_000, seed=3)
    quantiles = np.quantile(run_us / 1e6, (0.5, 0.9, 0.99))
    assert quantiles == pytest.approx([420, 3_600, 18_400], rel=0.15)
    sizes = np.bincount(tasks.job)
    assert 1_000 < len(sizes) < 3_000, "about 1,800 jobs"
    assert 0.006 < (sizes > 1_000).mean() < 0.018, "1.2 % of the jobs"
    assert (np.diff(tasks.job) >= 0).all()
    small, _ = google_like_tasks(Setting(5, 4, 500, "flow", {}), 200, seed=3)
    assert np.bincount(small.job).max() <= 5, "a quarter of the slots"


def test_a_cell_is_taken_over_as_it_was_filled() -> None:
    world = World(setting(), 10, seed=1)
    places = world.places()
    assert np.count_nonzero(places >= 0) == world.setting.tasks == 32
    first = world.round()
    assert (first.tasks, first.waiting, first.placed) == (32, 0, 0)
    world.arrive(5)
    second = world.round()
    assert (second.tasks, second.waiting) == (37, 5)
    assert second.placed == 4 + second.preempted, "36 slots"
    assert second.used_permille == 1000
    assert second.solve_ns > 0 and second.round_ns > second.solve_ns


def test_tasks_that_found_no_room_are_offered_to_the_next_scheduler() -> None:
    world = World(setting(used=1_200), 0, seed=1)
    assert np.count_nonzero(world.places() >= 0) == 36
    assert world.round().waiting == 43 - 36


def test_all_algorithms_find_an_optimum_of_the_same_round() -> None:
    costs = set()
    for name in FROM_SCRATCH:
        world = World(setting(name, used=950), 6, seed=2)
        world.now_us += 30_000_000
        world.arrive(6)
        world.round()
        costs.add(world.solver.cost)
    assert len(costs) == 1


def test_counts_of_a_run_repeat() -> None:
    run = SteadyRun("a", setting(used=950), 4, 1.0)
    first, again, other = (run.measure(seed, None) for seed in (1, 1, 2))
    counted = [name for name in first if not name.endswith("_ns")]
    assert all((first[name] == again[name]).all() for name in counted)
    assert any((first[name] != other[name]).any() for name in counted)
    assert (first["waiting"] >= 1).all()


def test_a_steady_cell_stays_as_full() -> None:
    found = SteadyRun("a", setting(machines=60, used=800), 5, 1.0).measure(1, None)
    assert (found["used_permille"] == 800).all()
    assert (found["placed"] == 60 * 4 * 8 // 10 // flow_rounds.CHANGED_PART).all()


def test_a_job_ends_before_the_next_comes() -> None:
    found = JobRun("a", setting(machines=60, used=500), 3, 1.0, 30).measure(1, None)
    assert (found["placed"] == 30).all()
    assert (found["tasks"] == 120 + 30).all()


def stopped(name: str, *parts: float) -> dict[str, Any]:
    run = StoppedRun("a", setting(name, machines=40, used=895), 1, 1.0, 10, parts)
    return run.measure(1, None)


@pytest.mark.parametrize("name", BOTH)
def test_the_less_a_solver_has_done_the_more_tasks_are_misplaced(name: str) -> None:
    found = stopped(name, 1 / 1000, 1 / 2, 1.0)
    assert found["misplaced"][0] > found["tasks"] // 2, "hardly any flow is routed"
    assert found["misplaced"][2] == found["moved"][2] == 0
    assert found["misplaced"][0] >= found["misplaced"][1]
    assert 0 < found["moved"][0] <= found["misplaced"][0], "running tasks keep their state"


def test_the_measured_rounds_are_those_of_the_second_algorithm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solved: list[str | None] = []

    class Watched(TimedSolver):
        def resolve(self, **budget: Any) -> Any:
            status = super().resolve(**budget)
            solved.append(self.winner)
            return status

    monkeypatch.setattr(flow_rounds, "TimedSolver", Watched)
    second = {"name": "cost_scaling", "price_refine": False}
    run = SwitchingRun("a", setting(RELAXATION), 2, 1.0, second=second)
    assert len(run.measure(1, None)["solve_ns"]) == 2
    filling, *others = solved
    assert filling == "incremental_ssp"
    assert others == ["relaxation", "cost_scaling", "relaxation", "cost_scaling"]


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ((0.5, 0.75, 1.25), 2.5),
        ((0.5, 1.0, 0.5), 2.0),
        ((1.5, 0.5, 2.0), 1.0),
        ((0.2, 0.3, 0.4), 3.0),  # nowhere: the last point
        ((0.2, None, 1.4), None),
    ],
)
def test_lines_are_equal_where_their_ratio_is_one(
    ratios: tuple[float | None, ...], expected: float | None
) -> None:
    values = [lambda runs, one=one: one for one in ratios]
    assert equal_at((1.0, 2.0, 3.0), values)({}) == expected


def times(**ms: list[float]) -> dict[str, dict[str, Any]]:
    """Runs whose rounds take the solver so long."""
    return {
        label.replace("_", " "): {"solve_ns": np.array(values) * 1e6}
        for label, values in ms.items()
    }


def test_values_of_claims_on_made_up_times() -> None:
    claims = {claim.id: claim for figure in FIRMAMENT.figures for claim in figure.claims}
    of_sizes = {
        at_size(name, size): {"solve_ns": np.array([scale * size * 1e6])}
        for name, scale in zip(FROM_SCRATCH, (2.0, 100.0, 1.0, 300.0, 900.0), strict=True)
        for size in SIZES
    }
    for name, expected in (
        ("relaxation_best", 0.5),
        ("two_orders", 50),
        ("relaxation_before_cost_scaling", 50),
        ("shortest_paths_slow", 0.01),
        ("textbook_slow", 3),
        ("cancelling_slowest", 3),
        ("sub_second", 2),
    ):
        assert claims[f"fig7.{name}"].value(of_sizes) == pytest.approx(expected), name
    refined = times(With_price_refine=[1, 1, 2, 4], Without_it=[5, 4, 2, 2])
    assert claims["fig13.four_times"].value(refined) == 0.5
    assert claims["fig13.gains"].value(refined) == 2.5
    prioritised = times(With_arc_prioritisation=[6, 6, 9], Without_it=[10, 9, 12])
    assert claims["fig12a.by_45_percent"].value(prioritised) == pytest.approx(0.4)
    parts = optimisations.PARTS
    stopped_at = {
        RELAXATION: {"misplaced": np.arange(len(parts)) + 10, "tasks": np.array(100)},
        COST_SCALING: {"misplaced": 90 - 5 * np.arange(len(parts)), "tasks": np.array(100)},
    }
    assert claims["fig10.cost_scaling_most"].value(stopped_at) == pytest.approx(0.7)
    assert claims["fig10.cost_scaling_drops"].value(stopped_at) == pytest.approx(0.55)
    assert claims["fig10.relaxation_fewer"].value(stopped_at) == 9
    assert claims["fig10.thousands"].value(stopped_at) == 16
    assert claims["fig10.until_the_end"].value(stopped_at) == pytest.approx(0.21)


# Quincy's variants


@pytest.mark.parametrize("name", quincy.VARIANTS)
def test_all_jobs_of_a_variant_end_and_none_sooner_than_it_could(name: str) -> None:
    cell = Setting(8, 4, 0, "quincy", quincy.VARIANTS[name])
    found = quincy.JobsRun(name, cell, 0, 1.0, 150).measure(4, None)
    assert (found["took_us"] >= found["alone_us"]).all()
    assert found["input_gb"] > 0
    if quincy.VARIANTS[name]["preemption"]:
        assert (found["wasted_us"] > 0) == (found["preempted"] > 0)
    else:
        assert found["preempted"] == found["wasted_us"] == 0
        assert found["read_gb"] <= found["input_gb"]


def test_unfairness_is_how_much_slow_downs_vary() -> None:
    alone = np.array([10, 20, 30])
    assert quincy.unfairness({"took_us": 3 * alone, "alone_us": alone}) == 0
    uneven = {"took_us": np.array([10, 60]), "alone_us": np.array([10, 20])}
    assert quincy.unfairness(uneven) == 0.5
    assert quincy.job_time_s({"took_us": np.array([1_000_000, 3_000_000])}) == 2
