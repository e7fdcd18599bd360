"""`agora reproduce omega`: its cells and runs, its statistics on made-up figures, its claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.analysis.summary_model import SeedFigures
from experiments.campaign.points import Point
from experiments.campaign.task import Arrays
from experiments.papers import statistics as statistic
from experiments.papers.chapter import PaperFigure, Results
from experiments.papers.claims import RunsOfSeed, judge
from experiments.papers.omega import figures, mapreduce
from experiments.papers.omega.figures import (
    ALL,
    BATCH,
    BATCH_WAIT,
    COARSE_GANG,
    COARSE_INCREMENTAL,
    FINE_GANG,
    FINE_INCREMENTAL,
    SERVICE,
    SINGLE,
    Arms,
    at_load,
    at_t_job,
)
from experiments.papers.omega.mapreduce import (
    BUSY,
    CELLS,
    GLOBAL_CAP,
    LIGHT,
    MAX_PARALLELISM,
    POLICIES,
    RELATIVE,
    REQUESTED,
    at_policy,
)
from experiments.papers.page import Reproduction, show, write_page
from experiments.papers.registry import OMEGA
from experiments.papers.runs import PlatformRuns
from experiments.results.mapreduce import NOT_FINISHED
from experiments.studies.model_settings import ReproduceScale
from experiments.workloads.service_batch import ServiceBatchOptions
from parsync.spec.decision_times import ModelledTime
from tests.unit.test_papers import PAPER, SMOKE, complete, shrunk

TINY = {"machines": 60, "duration_s": 200.0, "initial_fill_percent": 0}


@pytest.fixture(scope="module")
def arms() -> dict[str, SeedFigures]:
    """What two small runs measured: one with a scheduler for all, and one with two groups."""
    of = Arms(figures.architectures_cell(SMOKE))
    found = {}
    for name, run in {ALL: of.single_path(0.1), BATCH: of.shared(0.1)}.items():
        small = shrunk(run, **TINY)
        found[name] = Point(small.config, small.arm, 1).measure(None).figures
    return found


def with_figures(run: SeedFigures, group: str = "", **changed: Any) -> SeedFigures:
    """The figures of a run, some of them replaced: those of all schedulers, or of a group."""

    def of(scope: Any) -> Any:
        own = {key: value for key, value in changed.items() if key in type(scope).model_fields}
        others = {**scope.others, **{key: changed[key] for key in changed if key not in own}}
        return scope.model_copy(update={**own, "others": others, "at_least": {}})

    if not group:
        return run.model_copy(update={"overall": of(run.overall)})
    groups = [
        one.model_copy(update={"overall": of(one.overall)}) if one.name == group else one
        for one in run.groups
    ]
    return run.model_copy(update={"groups": groups})


def everything(figure: PaperFigure, arms: dict[str, SeedFigures]) -> Results:
    """The results of a figure: of each run those of a small one with the same groups."""
    runs = figure.runs(SMOKE)
    found = {run.label: arms[run.arm.groups[0].name] for run in runs}
    return Results(runs, (found, found), {})


def verdicts(id: str, found: RunsOfSeed, at_paper_scale: bool = True) -> dict[str, str]:
    """The verdicts on a figure's claims, by their names."""
    (figure,) = OMEGA.chosen([id])
    return {
        claim.id.partition(".")[2]: judge(claim, [found], at_paper_scale).verdict
        for claim in figure.claims
    }


@pytest.mark.parametrize("figure", figures.FIGURES, ids=lambda figure: figure.id)
def test_a_figure_has_all_that_its_claims_and_its_drawing_need(
    figure: PaperFigure, arms: dict[str, SeedFigures], tmp_path: Path
) -> None:
    complete(figure, everything(figure, arms), tmp_path)
    for scale in ReproduceScale:
        runs = figure.runs(scale)
        work = PlatformRuns(tmp_path).missing(runs, (1,))
        assert len(work) == len(runs), "each run is another one"
        assert not any(one.keeps for one in work)


def test_the_cell_is_the_simulators_example_with_60_percent_taken() -> None:
    example = ServiceBatchOptions()
    cell = figures.architectures_cell(PAPER)
    assert (cell.machines, cell.batch, cell.service) == (10_000, example.batch, example.service)
    assert (cell.initial_fill_percent, cell.duration_s) == (60, 7 * 86_400)
    four = figures.scaling_cell(PAPER, 4)
    assert four.interarrival_s(BATCH) == example.batch.interarrival_s / 4
    ends = [figures.scaling_cell(PAPER, rate) for rate in (1, 10)]
    assert all(cell.load_percent < 100 for cell in (figures.conflicts_cell(PAPER), *ends))


def test_decisions_take_the_papers_times() -> None:
    of = Arms(figures.architectures_cell(PAPER))
    (single,) = of.single_path(3.0).arm.groups
    (multi,) = of.multi_path(3.0).arm.groups
    batch, service = of.shared(3.0).arm.groups
    times = [one.decision for one in (single, multi, batch, service)]
    assert all(isinstance(one, ModelledTime) and one.task_us == 5_000 for one in times)
    assert [one.job_us for one in times if isinstance(one, ModelledTime)] == [
        *(3_000_000, 100_000, 100_000, 3_000_000)
    ]
    assert isinstance(multi.decision, ModelledTime) and multi.decision.service is not None
    assert multi.decision.service.job_us == 3_000_000
    assert (single.task_class, batch.task_class, service.task_class) == (None, BATCH, SERVICE)


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        (FINE_INCREMENTAL, ("resource_fit", "incremental")),
        (FINE_GANG, ("resource_fit", "all_or_nothing")),
        (COARSE_INCREMENTAL, ("sequence_number", "incremental")),
        (COARSE_GANG, ("sequence_number", "all_or_nothing")),
    ],
)
def test_each_way_to_commit_is_that_of_both_schedulers(
    commits: str, expected: tuple[str, str]
) -> None:
    groups = Arms(figures.conflicts_cell(SMOKE)).committing(commits, 1.0).arm.groups
    options = [group.protocol.options for group in groups]
    assert len(options) == 2
    found = {(one.conflict_check.name.lower(), one.commit_mode.name.lower()) for one in options}
    assert found == {expected}


def lines(arms: dict[str, SeedFigures], **values: float) -> RunsOfSeed:
    """Runs whose wait of batch jobs has these values."""
    return {
        name: with_figures(arms[BATCH], job_wait_batch_mean_us=value)
        for name, value in values.items()
    }


def test_statistics_of_waits(arms: dict[str, SeedFigures]) -> None:
    found = lines(arms, a=2.0, b=6.0, c=1.0, zero=0.0)
    wait = BATCH_WAIT
    ratios = [statistic.ratio(wait, one, "a") for one in ("a", "b", "c")]
    to_b = [statistic.ratio(wait, one, "b") for one in ("a", "c")]
    unknown = [*ratios, statistic.ratio(wait, "a", "zero")]
    for value, expected in (
        (statistic.ratio(wait, "b", "a"), 3),
        (statistic.ratio(wait, "b", "zero"), None),
        (statistic.less(wait, "b", "zero"), 6),
        (statistic.of_s(wait, "b"), 6e-6),
        (statistic.least(ratios), 0.5),
        (statistic.most(ratios), 3),
        (statistic.furthest_from_one(ratios), 3),  # a third is as far as 3, a half is not
        (statistic.furthest_from_one(to_b), pytest.approx(1 / 6)),
        (statistic.least(unknown), None),
        (statistic.furthest_from_one(unknown), None),
    ):
        assert value(found) == expected
    assert [one(found) for one in statistic.growths(wait, ("c", "a", "b"))] == [2, 3]
    offset = lines(arms, base=50.0, low=50.0 + 3, high=50.0 + 30)
    assert statistic.growth_above(wait, "high", "low", "base")(offset) == 10
    # a lower bound stands for a wait that is not known
    bound = found["a"].overall.model_copy(update={"at_least": {"job_wait_batch_mean_us": 9.0}})
    assert wait(found["a"].model_copy(update={"overall": bound})) == 9


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0.1, 0.5, 1.0, 1.0), 3.6),  # between 2 and 4
        ((0.1, 0.9, 1.0, 1.0), 2.0),
        ((0.9, 0.9, 1.0, 1.0), 1.0),
        ((0.1, 0.2, 0.3, 0.4), None),
        ((0.95, 1.0, 1.0, 1.0), None),
    ],
)
def test_where_a_level_is_reached(
    arms: dict[str, SeedFigures], values: tuple[float, ...], expected: float | None
) -> None:
    found = lines(arms, **dict(zip("abcd", values, strict=True)))
    points = list(zip((1.0, 2.0, 4.0, 8.0), "abcd", strict=True))
    reached = statistic.crossing(BATCH_WAIT, points, 0.9)(found)
    assert reached == (None if expected is None else pytest.approx(expected))


def test_decision_time_of_service_jobs(arms: dict[str, SeedFigures]) -> None:
    counted = with_figures(arms[BATCH], SERVICE, jobs=4, submitted=100)  # each job once
    expected = (4 * 10 + 100 * 0.005) / TINY["duration_s"]
    assert figures.without_conflicts(10.0)(counted) == pytest.approx(expected)
    parts = with_figures(arms[BATCH], service_useful_share=0.3, service_wasted_share=0.1)
    assert figures.service_share(parts) == pytest.approx(0.4)
    assert figures.wasted_part(parts) == pytest.approx(0.25)
    nothing = with_figures(parts, service_useful_share=None, service_wasted_share=None)
    assert figures.wasted_part(nothing) is None


@pytest.mark.parametrize(
    ("ways", "verdict"),
    [
        (((0.2, 0.2), (0.4, 0.22), (0.5, 0.5), (0.9, 0.6)), "holds"),  # the paper's factors
        (((0.2, 0.2), (0.2, 0.3), (0.2, 0.2), (0.2, 0.2)), "does_not_hold"),
    ],
)
def test_the_claims_of_fig_14_follow_the_papers_factors(
    arms: dict[str, SeedFigures], ways: tuple[tuple[float, float], ...], verdict: str
) -> None:
    """Conflict fraction and busyness of each way to commit."""
    names = (FINE_INCREMENTAL, FINE_GANG, COARSE_INCREMENTAL, COARSE_GANG)
    found = {
        at_t_job(way, 10.0): with_figures(
            arms[BATCH],
            service_conflict_fraction=fraction,
            service_useful_share=share,
            service_wasted_share=0.0,
        )
        for way, (fraction, share) in zip(names, ways, strict=True)
    }
    assert set(verdicts("fig14", found).values()) == {verdict}


@pytest.mark.parametrize(
    ("power", "most", "verdict"), [(1, 1.0, "holds"), (2, 0.9, "does_not_hold")]
)
def test_busyness_that_is_linear_in_t_job_holds(
    arms: dict[str, SeedFigures], power: int, most: float, verdict: str
) -> None:
    busy = {
        at_t_job(SINGLE, t_job_s): with_figures(
            arms[ALL], ALL, busyness_median=min(most, 0.05 + 0.5 * t_job_s**power)
        )
        for t_job_s in figures.T_JOBS_S
    }
    results = everything(OMEGA.chosen(["fig6"])[0], arms).seeds[0]
    found = verdicts("fig6", {**results, **busy})
    assert found["single_path_linear"] == found["single_path_saturates"] == verdict


@pytest.mark.parametrize(("factor", "verdict"), [(3.0, "holds"), (1.2, "does_not_hold")])
def test_scalability_is_where_schedulers_saturate(
    arms: dict[str, SeedFigures], factor: float, verdict: str
) -> None:
    waits = {"job_wait_batch_mean_us": 1e6, "job_wait_service_mean_us": 1e6}
    found = {
        at_load(schedulers, load): with_figures(
            with_figures(arms[BATCH], BATCH, busyness_median=min(1.0, load / by)), **waits
        )
        for schedulers, by in ((1, 1.0), (3, factor))
        for load in figures.LOADS
    }
    assert verdicts("fig13", found) == {
        "three_times": verdict,
        "within_slo": "holds",
        "conflicts_low": "not_comparable",
    }
    assert verdicts("fig13", found, at_paper_scale=False)["within_slo"] == "not_comparable"


def test_the_page_names_the_paper_and_what_smoke_scale_is(
    arms: dict[str, SeedFigures], tmp_path: Path
) -> None:
    (figure,) = OMEGA.chosen(["fig8"])
    results = everything(figure, arms)
    claims = [judge(claim, results.seeds, False) for claim in figure.claims]
    shown = show(figure, results, claims, tmp_path)
    for scale in ("smoke", "paper"):
        reproduction = Reproduction(
            version="1", paper="omega", scale=scale, seeds=[1, 2], figures=["fig8"], claims=claims
        )
        text = write_page(tmp_path, OMEGA, reproduction, [shown]).read_text("utf-8")
        assert "<h1>Omega: figures and claims</h1>" in text
        assert (OMEGA.smoke_note in text) == (scale == "smoke")
        assert all(claim.statement in text for claim in claims)


# Figs. 15 and 16, on made-up jobs

BEFORE_US = np.full(10, 60_000_000)
STEADY = (690, 710) * 10
VARIED = (500, 900) * 10


def kept(run_us: object, used: tuple[int, ...] = STEADY) -> Arrays:
    """What a run keeps, with a sample of the use of the cell each second."""
    return {
        "run_us": np.asarray(run_us, np.int64),
        "used_at_us": np.arange(len(used)) * 1_000_000,
        "used_permille": np.array(used, np.int64),
    }


def runs(times: dict[tuple[str, str], float], extra: tuple[int, ...] = VARIED) -> dict[str, Arrays]:
    """Runs in which all jobs are so many times as fast with a policy on a cell, or as fast."""
    return {
        at_policy(cell, policy): kept(
            BEFORE_US / times.get((cell, policy), 1.0),
            extra if policy == MAX_PARALLELISM else STEADY,
        )
        for cell in CELLS
        for policy in POLICIES
    }


def of_jobs(found: dict[str, Arrays]) -> dict[str, str]:
    """The verdicts on all claims on MapReduce jobs, by their names."""
    return verdicts("fig15", found) | verdicts("fig16", found)


AS_IN_THE_PAPER = {
    (BUSY, MAX_PARALLELISM): 3.5,
    (BUSY, RELATIVE): 3.0,
    (LIGHT, MAX_PARALLELISM): 3.5,
    (LIGHT, RELATIVE): 3.0,
    (LIGHT, GLOBAL_CAP): 3.4,
}


def test_the_claims_hold_of_what_the_paper_describes() -> None:
    found = of_jobs(runs(AS_IN_THE_PAPER))
    assert {found.pop(name) for name in ("jobs_gain", "speedup")} == {"not_comparable"}
    assert len(found) == 7 and set(found.values()) == {"holds"}


@pytest.mark.parametrize(
    ("cell", "policy", "times", "claim"),
    [
        (BUSY, RELATIVE, 3.6, "max_parallelism_most"),
        (LIGHT, RELATIVE, 1.6, "relative_size_well"),
        (LIGHT, GLOBAL_CAP, 2.7, "cap_on_light_cell"),
        (BUSY, GLOBAL_CAP, 1.3, "cap_on_busy_cell"),
    ],
)
def test_a_claim_does_not_hold_of_other_speed_ups(
    cell: str, policy: str, times: float, claim: str
) -> None:
    found = of_jobs(runs({**AS_IN_THE_PAPER, (cell, policy): times}))
    assert [name for name in found if found[name] == "does_not_hold"] == [claim]


def test_claims_on_the_use_of_the_cell_do_not_hold_where_it_stays_the_same() -> None:
    found = of_jobs(runs(AS_IN_THE_PAPER, STEADY))
    assert found["use_higher"] == found["use_more_variable"] == "does_not_hold"
    idle = runs(AS_IN_THE_PAPER)
    idle[at_policy(BUSY, REQUESTED)] = kept(BEFORE_US, (590,) * 10 + (610,) * 10)
    assert of_jobs(idle)["use_above_cap"] == "does_not_hold"


def test_speed_ups_are_of_the_jobs_that_ended_both_times() -> None:
    found = {
        at_policy(BUSY, REQUESTED): kept([100, 100, 100, NOT_FINISHED, 100]),
        at_policy(BUSY, MAX_PARALLELISM): kept([25, 96, 50, 10, NOT_FINISHED]),
    }
    of = BUSY, MAX_PARALLELISM
    assert mapreduce.policy_speedups(found, *of).tolist() == [4, 100 / 96, 2]
    assert mapreduce.gaining_share(*of)(found) == pytest.approx(2 / 3)
    assert mapreduce.speedup_at(*of, 0.5)(found) == 2


def test_the_use_of_a_cell() -> None:
    filling = kept([1], (0, 100, *(600, 800) * 10))
    assert mapreduce.use(filling).tolist() == [0.8, *(0.6, 0.8) * 9], "from 2.1 s on"
    assert mapreduce.use_above("run", 0.6)({"run": filling}) == pytest.approx(10 / 19)
    # without a job nothing is known
    nothing = {at_policy(BUSY, policy): kept([NOT_FINISHED], ()) for policy in POLICIES}
    label = at_policy(BUSY, REQUESTED)
    for value in (
        mapreduce.gaining_share(BUSY, MAX_PARALLELISM),
        mapreduce.speedup_at(BUSY, MAX_PARALLELISM, 0.5),
        mapreduce.use_above(label, 0.5),
        mapreduce.use_at(label, 0.5),
        mapreduce.use_mean(label),
        mapreduce.use_deviation(label),
    ):
        assert value(nothing) is None


@pytest.mark.parametrize(
    ("id", "expected"),
    [
        ("fig15", ("10", "50.0 %", "2.25 x", "2.25 x")),  # half-way between both seeds
        ("fig16", ("70.0 %", "20.0 %", "90.0 %")),
    ],
)
def test_a_figure_is_drawn_with_its_numbers(
    id: str, expected: tuple[str, ...], tmp_path: Path
) -> None:
    (figure,) = OMEGA.chosen([id])
    results = Results(figure.runs(SMOKE), (runs(AS_IN_THE_PAPER), runs({})), {})
    shown = complete(figure, results, tmp_path)
    assert shown.table is not None
    rows = {row[0]: row[1:] for row in shown.table.rows}
    assert rows[at_policy(BUSY, MAX_PARALLELISM)][: len(expected)] == expected


@pytest.mark.parametrize("scale", ReproduceScale)
def test_a_busy_cell_and_a_lightly_used_one_of_a_quarter_its_size(
    scale: ReproduceScale, tmp_path: Path
) -> None:
    busy, light = mapreduce.cells(scale).values()
    assert busy.machines == 4 * light.machines
    assert (busy.load_percent, light.load_percent) == pytest.approx((74, 38), abs=1)
    for cell in (busy, light):
        assert cell.mapreduce is not None
        assert 0.1 < cell.outline().mapreduce_share < 0.25, "about 20 % of Google's, section 6"
    # the figures share their runs and keep jobs under every seed
    needed = [run for figure in mapreduce.FIGURES for run in figure.runs(scale)]
    work = PlatformRuns(tmp_path).missing(needed, (1, 2))
    assert len(work) == 2 * len(CELLS) * len(POLICIES)
    assert all(set(one.keeps) == {"mapreduce"} for one in work)
    policies = {run.arm.groups[-1].options["policy"] for run in needed}
    assert policies == {"requested", "max_parallelism", "global_cap", "relative_job_size"}
