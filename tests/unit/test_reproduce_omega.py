"""`agora reproduce omega`: its runs, its statistics on made-up figures, and its claims."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.summary_model import SeedFigures
from experiments.campaign.points import Point
from experiments.config.workload_config import WorkloadConfig
from experiments.papers import statistics as statistic
from experiments.papers.chapter import FigureRun, PaperFigure, Results
from experiments.papers.claims import RunsOfSeed, judge
from experiments.papers.omega.figures import (
    ALL,
    BATCH,
    BATCH_WAIT,
    COARSE_GANG,
    COARSE_INCREMENTAL,
    FIGURES,
    FINE_GANG,
    FINE_INCREMENTAL,
    LOADS,
    SERVICE,
    T_JOBS_S,
    Arms,
    architectures_cell,
    at_load,
    at_t_job,
    conflicts_cell,
    scaling_cell,
    service_share,
    wasted_part,
    without_conflicts,
)
from experiments.papers.page import Reproduction, show, write_page
from experiments.papers.registry import OMEGA, paper_of
from experiments.papers.runs import PlatformRuns
from experiments.studies.model_settings import ReproduceScale
from experiments.workloads.service_batch import ServiceBatchOptions
from parsync.spec.decision_times import ModelledTime
from shared_state.errors import AgoraError

TINY = {"machines": 60, "duration_s": 200.0, "initial_fill_percent": 0}
END_S = TINY["duration_s"]


def shrunk(run: FigureRun) -> FigureRun:
    """The same run on 60 machines for 200 s."""
    options = run.config.workload.options.model_copy(update=TINY)
    workload = WorkloadConfig.of("service_batch", options)
    return replace(run, config=run.config.model_copy(update={"workload": workload}))


@pytest.fixture(scope="module")
def arms() -> dict[str, SeedFigures]:
    """What two small runs measured: one with a scheduler for all, and one with two groups."""
    of = Arms(architectures_cell(ReproduceScale.SMOKE))
    found = {}
    for name, run in {ALL: of.single_path(0.1), BATCH: of.shared(0.1)}.items():
        small = shrunk(run)
        found[name] = Point(small.config, small.arm, 1).measure(None).figures
    return found


def with_figures(figures: SeedFigures, changed: dict[str, Any], group: str = "") -> SeedFigures:
    """The figures of a run, some of them replaced: those of all schedulers, or of a group."""

    def of(scope: Any) -> Any:
        own = {key: value for key, value in changed.items() if key in type(scope).model_fields}
        others = {**scope.others, **{key: changed[key] for key in changed if key not in own}}
        return scope.model_copy(update={**own, "others": others, "at_least": {}})

    if not group:
        return figures.model_copy(update={"overall": of(figures.overall)})
    groups = [
        one.model_copy(update={"overall": of(one.overall)}) if one.name == group else one
        for one in figures.groups
    ]
    return figures.model_copy(update={"groups": groups})


def everything(figure: PaperFigure, arms: dict[str, SeedFigures]) -> Results:
    """The results of a figure: of each run those of a small one with the same groups."""
    runs = figure.runs(ReproduceScale.SMOKE)
    found = {run.label: arms[run.arm.groups[0].name] for run in runs}
    return Results(runs, (found, found), {})


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_a_figure_has_all_that_its_claims_and_its_drawing_need(
    figure: PaperFigure, arms: dict[str, SeedFigures], tmp_path: Path
) -> None:
    results = everything(figure, arms)
    claims = [judge(claim, results.seeds, True) for claim in figure.claims]
    assert all(claim.id.startswith(f"{figure.id}.") for claim in claims)
    assert "<svg" in (show(figure, results, claims, tmp_path).svg or "")


@pytest.mark.parametrize("scale", ReproduceScale)
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_the_runs_of_a_figure_differ_and_keep_no_series(
    figure: PaperFigure, scale: ReproduceScale, tmp_path: Path
) -> None:
    runs = figure.runs(scale)
    assert len({run.label for run in runs}) == len(runs)
    work = PlatformRuns(tmp_path).missing(runs, (1,))
    assert len(work) == len(runs), "each run is another one"
    assert not any(one.keeps for one in work)


def test_the_cell_is_the_simulators_example_with_60_percent_taken() -> None:
    paper = ReproduceScale.PAPER
    example = ServiceBatchOptions()
    cell = architectures_cell(paper)
    assert (cell.machines, cell.batch, cell.service) == (10_000, example.batch, example.service)
    assert (cell.initial_fill_percent, cell.duration_s) == (60, 7 * 86_400)
    assert scaling_cell(paper, 4).interarrival_s(BATCH) == example.batch.interarrival_s / 4
    for cell in (conflicts_cell(paper), *(scaling_cell(paper, rate) for rate in (1, 10))):
        assert cell.load_percent < 100


def test_decisions_take_the_papers_times() -> None:
    of = Arms(architectures_cell(ReproduceScale.PAPER))
    (single,) = of.single_path(3.0).arm.groups
    (multi,) = of.multi_path(3.0).arm.groups
    batch, service = of.shared(3.0).arm.groups
    times = [one.decision for one in (single, multi, batch, service)]
    assert all(isinstance(one, ModelledTime) and one.task_us == 5_000 for one in times)
    assert [one.job_us for one in times if isinstance(one, ModelledTime)] == [
        *(3_000_000, 100_000, 100_000, 3_000_000)
    ]
    assert isinstance(multi.decision, ModelledTime)
    assert multi.decision.service is not None
    assert multi.decision.service.job_us == 3_000_000
    assert (single.task_class, batch.task_class, service.task_class) == (None, BATCH, SERVICE)


def test_each_way_to_commit_is_that_of_both_schedulers() -> None:
    of = Arms(conflicts_cell(ReproduceScale.SMOKE))
    found = {
        commits: {
            (options.conflict_check.name.lower(), options.commit_mode.name.lower())
            for group in of.committing(commits, 1.0).arm.groups
            for options in [group.protocol.options]
        }
        for commits in (FINE_INCREMENTAL, FINE_GANG, COARSE_INCREMENTAL, COARSE_GANG)
    }
    assert found == {
        FINE_INCREMENTAL: {("resource_fit", "incremental")},
        FINE_GANG: {("resource_fit", "all_or_nothing")},
        COARSE_INCREMENTAL: {("sequence_number", "incremental")},
        COARSE_GANG: {("sequence_number", "all_or_nothing")},
    }


def lines(arms: dict[str, SeedFigures], **values: float) -> RunsOfSeed:
    """Runs whose wait of batch jobs has these values."""
    return {
        name: with_figures(arms[BATCH], {"job_wait_batch_mean_us": value})
        for name, value in values.items()
    }


def test_ratios_of_waits(arms: dict[str, SeedFigures]) -> None:
    found = lines(arms, a=2.0, b=6.0, c=1.0, zero=0.0)
    wait = BATCH_WAIT
    assert statistic.ratio(wait, "b", "a")(found) == 3
    assert statistic.ratio(wait, "b", "zero")(found) is None
    assert statistic.less(wait, "b", "zero")(found) == 6
    assert statistic.of_s(wait, "b")(found) == 6e-6
    ratios = [statistic.ratio(wait, one, "a") for one in ("a", "b", "c")]
    assert statistic.least(ratios)(found) == 0.5
    assert statistic.most(ratios)(found) == 3
    assert statistic.furthest_from_one(ratios)(found) == 3, "a third is as far as 3, a half is not"
    to_b = [statistic.ratio(wait, one, "b") for one in ("a", "c")]
    assert statistic.furthest_from_one(to_b)(found) == pytest.approx(1 / 6)
    assert [one(found) for one in statistic.growths(wait, ("c", "a", "b"))] == [2, 3]
    unknown = [*ratios, statistic.ratio(wait, "a", "zero")]
    assert statistic.least(unknown)(found) is None
    assert statistic.furthest_from_one(unknown)(found) is None


def test_a_line_with_an_offset_grows_tenfold_above_it(arms: dict[str, SeedFigures]) -> None:
    found = lines(arms, base=50.0, low=50.0 + 3, high=50.0 + 30)
    assert statistic.growth_above(BATCH_WAIT, "high", "low", "base")(found) == 10


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


def test_busyness_without_conflicts_counts_each_job_once(arms: dict[str, SeedFigures]) -> None:
    figures = with_figures(arms[BATCH], {"jobs": 4, "submitted": 100}, SERVICE)
    expected = (4 * 10 + 100 * 0.005) / END_S
    assert without_conflicts(10.0)(figures) == pytest.approx(expected)


def test_decision_time_of_service_jobs_has_two_parts(arms: dict[str, SeedFigures]) -> None:
    shares = {"service_useful_share": 0.3, "service_wasted_share": 0.1}
    figures = with_figures(arms[BATCH], shares)
    assert service_share(figures) == pytest.approx(0.4)
    assert wasted_part(figures) == pytest.approx(0.25)
    assert wasted_part(with_figures(figures, dict.fromkeys(shares, None))) is None


def test_a_lower_bound_stands_for_a_wait_that_is_not_known(arms: dict[str, SeedFigures]) -> None:
    key = "job_wait_batch_mean_us"
    figures = with_figures(arms[BATCH], {key: 2.0})
    overall = figures.overall.model_copy(update={"at_least": {key: 9.0}})
    bound = figures.model_copy(update={"overall": overall})
    assert BATCH_WAIT(bound) == 9


def verdicts(figure_id: str, found: RunsOfSeed, at_paper_scale: bool = True) -> dict[str, str]:
    """The verdicts on a figure's claims, by their names."""
    (figure,) = OMEGA.chosen([figure_id])
    assert isinstance(figure, PaperFigure)
    return {
        claim.id.partition(".")[2]: judge(claim, [found], at_paper_scale).verdict
        for claim in figure.claims
    }


def commits(arms: dict[str, SeedFigures], *values: tuple[float, float]) -> RunsOfSeed:
    """The runs of Fig. 14 at t_job = 10 s, by conflict fraction and busyness."""
    ways = (FINE_INCREMENTAL, FINE_GANG, COARSE_INCREMENTAL, COARSE_GANG)
    return {
        at_t_job(way, 10.0): with_figures(
            arms[BATCH],
            {
                "service_conflict_fraction": fraction,
                "service_useful_share": share,
                "service_wasted_share": 0.0,
            },
        )
        for way, (fraction, share) in zip(ways, values, strict=True)
    }


def test_the_claims_of_fig_14_follow_the_papers_factors(arms: dict[str, SeedFigures]) -> None:
    paper = commits(arms, (0.2, 0.2), (0.4, 0.22), (0.5, 0.5), (0.9, 0.6))
    assert set(verdicts("fig14", paper).values()) == {"holds"}
    none = commits(arms, (0.2, 0.2), (0.2, 0.3), (0.2, 0.2), (0.2, 0.2))
    assert set(verdicts("fig14", none).values()) == {"does_not_hold"}


def test_busyness_that_is_linear_in_t_job_holds(arms: dict[str, SeedFigures]) -> None:
    def single(of_t_job: dict[float, float]) -> dict[str, SeedFigures]:
        (figure,) = OMEGA.chosen(["fig6"])
        assert isinstance(figure, PaperFigure)
        results = everything(figure, arms).seeds[0]
        made = {
            at_t_job("Monolithic, single path", t_job_s): with_figures(
                arms[ALL], {"busyness_median": busy}, ALL
            )
            for t_job_s, busy in of_t_job.items()
        }
        return {**results, **made}

    linear = single({t_job_s: min(1.0, 0.05 + 0.5 * t_job_s) for t_job_s in T_JOBS_S})
    assert verdicts("fig6", linear)["single_path_linear"] == "holds"
    assert verdicts("fig6", linear)["single_path_saturates"] == "holds"
    steep = single({t_job_s: min(0.9, 0.05 + 0.5 * t_job_s**2) for t_job_s in T_JOBS_S})
    assert verdicts("fig6", steep)["single_path_linear"] == "does_not_hold"
    assert verdicts("fig6", steep)["single_path_saturates"] == "does_not_hold"


@pytest.mark.parametrize(("factor", "verdict"), [(3.0, "holds"), (1.2, "does_not_hold")])
def test_scalability_is_where_schedulers_saturate(
    arms: dict[str, SeedFigures], factor: float, verdict: str
) -> None:
    found = {
        at_load(schedulers, load): with_figures(
            with_figures(arms[BATCH], {"busyness_median": min(1.0, load / by)}, BATCH),
            {"job_wait_batch_mean_us": 1e6, "job_wait_service_mean_us": 1e6},
        )
        for schedulers, by in ((1, 1.0), (3, factor))
        for load in LOADS
    }
    assert verdicts("fig13", found)["three_times"] == verdict
    assert verdicts("fig13", found)["within_slo"] == "holds"
    assert verdicts("fig13", found, at_paper_scale=False)["within_slo"] == "not_comparable"
    assert verdicts("fig13", found)["conflicts_low"] == "not_comparable"


def test_the_page_names_the_paper_and_what_smoke_scale_is(
    arms: dict[str, SeedFigures], tmp_path: Path
) -> None:
    (figure,) = OMEGA.chosen(["fig8"])
    assert isinstance(figure, PaperFigure)
    results = everything(figure, arms)
    claims = [judge(claim, results.seeds, False) for claim in figure.claims]
    for scale in ("smoke", "paper"):
        reproduction = Reproduction(
            version="1", paper="omega", scale=scale, seeds=[1, 2], figures=["fig8"], claims=claims
        )
        page = write_page(tmp_path, OMEGA, reproduction, [show(figure, results, claims, tmp_path)])
        text = page.read_text("utf-8")
        assert "<h1>Omega: figures and claims</h1>" in text
        assert (OMEGA.smoke_note in text) == (scale == "smoke")
        assert all(claim.statement in text for claim in claims)


def test_a_figure_that_is_not_reproduced_is_refused() -> None:
    with pytest.raises(AgoraError, match="FIGURE 'fig7': expected some of fig5, fig6, fig8"):
        paper_of("omega").chosen(["fig7"])
