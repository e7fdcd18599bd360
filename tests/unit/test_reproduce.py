"""`agora reproduce`: how claims are judged, and that every figure finds what its claims need."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.analysis.model_files import read_model
from experiments.analysis.summary_model import SeedFigures
from experiments.config.workload_config import WorkloadConfig
from experiments.interruption import Interruption
from experiments.papers import execution
from experiments.papers.chapter import FigureRun, Paper, PaperFigure, Results, Series
from experiments.papers.claims import Claim, Limits, Verdict, judge
from experiments.papers.page import CLAIMS, PAGE, Reproduction, beyond_slots, beyond_the_paper, show
from experiments.papers.parsync import controls
from experiments.papers.parsync.arms import arms, arms_of_scale
from experiments.papers.parsync.section6 import JCT_S, JSD_S, STET_S
from experiments.papers.plots import binned, preferred_share, throughput, waiting
from experiments.papers.registry import PAPERS, PARSYNC, paper_of
from experiments.papers.runs import PlatformRuns
from experiments.studies.model_runs import (
    ModelRun,
    RoundsRun,
    SearchRun,
    SimulationRun,
    WorkloadRun,
    whole_run,
)
from experiments.studies.model_settings import ReproduceScale, default_settings
from experiments.workloads.synthetic import SyntheticOptions
from parsync.metrics.conflicts import ConflictCauses
from parsync.model.slot_settings import Phase, SchedulerGroup
from parsync.model.slot_simulator import ConflictsAndScores
from parsync.spec.decision_times import ModelledTime
from shared_state.errors import AgoraError
from tests.unit.slot_cells import small_settings

MODELS = [
    figure
    for figure in PARSYNC.figures
    if isinstance(figure.runs(ReproduceScale.SMOKE)[0], ModelRun)
]
EVERY = [figure for figure in PARSYNC.figures if figure not in MODELS]
TINY = {"machines": 60, "phase_s": 6.0, "preference_groups": 4, "preferred_fraction": 0.2}


def shrunk(run: FigureRun) -> FigureRun:
    """The same run on a cell of 60 machines."""
    options = run.config.workload.options.model_copy(update=TINY)
    workload = WorkloadConfig.of("synthetic", options)
    return replace(run, config=run.config.model_copy(update={"workload": workload}))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[SeedFigures, Series]:
    """The figures and the series of one small run with five phases."""
    run = shrunk(arms(ReproduceScale.SMOKE).latency_first())
    runs = PlatformRuns(tmp_path_factory.mktemp("runs"))
    runs.run(runs.missing((run,), (1,)), Interruption(), lambda: None)
    results = runs.results((run,), (1,))
    return results.seeds[0][run.label], results.series[run.label]


def everything(figure: PaperFigure, measured: tuple[SeedFigures, Series]) -> Results:
    """The results of a figure, every run of it the same small one."""
    runs = figure.runs(ReproduceScale.SMOKE)
    figures, series = measured
    drawn = {run.label: series for run in runs if run.draws_series}
    return Results(runs, ({run.label: figures for run in runs},) * 2, drawn)


@pytest.mark.parametrize("figure", EVERY, ids=lambda figure: figure.id)
def test_a_figure_has_all_that_its_claims_and_its_drawing_need(
    figure: PaperFigure, measured: tuple[SeedFigures, Series], tmp_path: Path
) -> None:
    results = everything(figure, measured)
    assert len({run.label for run in results.runs}) == len(results.runs)
    claims = [judge(claim, results.seeds, True) for claim in figure.claims]
    assert all(claim.id.startswith(f"{figure.id}.") for claim in claims)
    shown = show(figure, results, claims, tmp_path)
    assert (shown.svg is None) == (figure.draw is None)
    if shown.table is not None:
        assert all(len(row) == len(shown.table.header) for row in shown.table.rows)


def test_below_a_figure_stand_causes_of_conflicts_and_regret(
    measured: tuple[SeedFigures, Series],
) -> None:
    figures, series = measured
    known = {
        "conflict_rate": 0.0246,
        **ConflictCauses.of(1, 2, 5).model_dump(),
        "system_regret": 1.0,
        "system_regret_moving": None,
    }
    overall = figures.overall.model_copy(update=known)
    [figure] = [one for one in EVERY if one.id == "fig6"]
    of_run = everything(figure, (figures.model_copy(update={"overall": overall}), series))
    table = beyond_the_paper(of_run)
    assert len(table.header) == 7
    [row] = table.rows
    means = [text.split(" \u00b1 ")[0] for text in row]
    assert means == ["Latency-first", "2.46 %", "12.5 %", "25 %", "62.5 %", "1", "\u2013"]


def arrays_of(run: ModelRun) -> dict[str, NDArray[Any]]:
    """Results in the form of a run's, with numbers that mean nothing."""
    if isinstance(run, SearchRun):
        found = ConflictsAndScores(0.5, 0.25, 0.5, 0.25, 0.125, 10.5, None)
        size = {"slots": np.array(run.settings.slots), "least": np.array(1_000.0)}
        size["too_few"] = np.array(800.0)
        return {**size, **whole_run(found)}
    if isinstance(run, WorkloadRun):
        options = run.workload.options.model_copy(update=TINY)
        return WorkloadRun("tiny", WorkloadConfig.of("synthetic", options)).measure(1, None)
    if isinstance(run, SimulationRun):
        tiny = small_settings(
            groups=(SchedulerGroup(schedulers=4, batch_tasks=5),) * 2,
            phases=(Phase(duration_s=90.0, rate_per_s=(20.0, 20.0)),),
        )
        return SimulationRun("tiny", tiny).measure(1, None)
    return RoundsRun("tiny", 3, 4, 20, 5).measure(1, None)


@pytest.mark.parametrize("figure", MODELS, ids=lambda figure: figure.id)
@pytest.mark.parametrize("scale", ReproduceScale)
def test_a_figure_of_a_model_has_all_that_its_claims_and_its_drawing_need(
    figure: PaperFigure, scale: ReproduceScale, tmp_path: Path
) -> None:
    runs = figure.runs(scale)
    assert len({run.label for run in runs}) == len(runs)
    results = Results(runs, ({run.label: arrays_of(run) for run in runs},) * 2, {})
    claims = [judge(claim, results.seeds, True) for claim in figure.claims]
    assert all(claim.id.startswith(f"{figure.id}.") for claim in claims)
    beyond = beyond_slots(results)
    assert (beyond is not None) == (figure.id not in ("eq2", "fig1a", "fig1b"))
    if beyond is not None:
        assert [row[0] for row in beyond.rows] == [run.label for run in runs]
    shown = show(figure, results, claims, tmp_path, beyond)
    assert (shown.svg is None) == (figure.draw is None)
    if shown.table is not None:
        assert all(len(row) == len(shown.table.header) for row in shown.table.rows)


def test_beyond_a_search_are_the_figures_of_its_answer() -> None:
    [figure] = [one for one in MODELS if one.id == "fig2a"]
    runs = figure.runs(ReproduceScale.SMOKE)[:2]
    without = {**arrays_of(runs[1]), **whole_run(None)}
    seed = {runs[0].label: arrays_of(runs[0]), runs[1].label: without}
    table = beyond_slots(Results(runs, (seed,), {}))
    assert table is not None
    known, unknown = table.rows
    assert known[1:] == ("50 %", "25 %", "50 %", "25 %", "12.5 %", "10.50", "\u2013")
    assert unknown[1:] == ("\u2013",) * 7


def test_at_smoke_scale_schedulers_claim_the_same_shares_of_slots() -> None:
    for factor in (1, 2, 4, 8):
        paper = default_settings(ReproduceScale.PAPER, factor)
        smoke = default_settings(ReproduceScale.SMOKE, factor)
        assert smoke.schedulers == paper.schedulers == 10 * factor
        for settings in (paper, smoke):
            (group,), (phase,) = settings.groups, settings.phases
            assert phase.rate_per_s[0] * settings.task_s / settings.slots == 1.0
            decided = settings.gap_s / group.decision_s / settings.slots
            assert decided == pytest.approx(0.01)


@pytest.mark.parametrize("paper", PAPERS.values(), ids=lambda paper: paper.id)
def test_claims_have_ids_of_their_own_that_programs_can_use(paper: Paper) -> None:
    ids = [claim.id for figure in paper.figures for claim in figure.claims]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", one) for one in ids)


def test_delays_of_controls_that_left_tasks_waiting_are_marked_as_lower_bounds(
    measured: tuple[SeedFigures, Series],
) -> None:
    results = everything(next(one for one in EVERY if one.id == "controls"), measured)
    label = results.runs[-1].label
    figures, peak = results.first(label), 2
    phases = list(figures.phases)
    bound = {"delay_mean_us": None, "at_least": {"delay_mean_us": 7e6}}
    phases[peak] = phases[peak].model_copy(update=bound)
    changed = {label: figures.model_copy(update={"phases": phases})}
    results = replace(results, seeds=tuple({**seed, **changed} for seed in results.seeds))
    rows = {row[0]: row for row in controls.table(results).rows}
    assert rows.pop(label)[3] == "≥ 7 s"
    assert not any("≥" in cell for row in rows.values() for cell in row)


def a_claim(limits: Limits, *, only_at_paper_scale: bool = False) -> Claim:
    """A claim about the mean delay of the arm A."""
    return Claim(
        id="fig1.small",
        source="Fig. 1",
        statement="It is small.",
        paper_value="",
        statistic="mean delay, us",
        limits=limits,
        value=lambda arms: arms["A"].overall.value("delay_mean_us"),
        only_at_paper_scale=only_at_paper_scale,
    )


def seeds_with(
    measured: tuple[SeedFigures, Series], *delays_us: float
) -> list[dict[str, SeedFigures]]:
    """Seeds in which A has these mean delays."""
    figures = measured[0]
    return [
        {
            "A": figures.model_copy(
                update={
                    "overall": figures.overall.model_copy(
                        update={"delay_mean_us": delay_us, "at_least": {}}
                    )
                }
            )
        }
        for delay_us in delays_us
    ]


@pytest.mark.parametrize(
    ("delays_us", "verdict"),
    [
        ((1.0, 1.1, 0.9, 1.0, 1.2), Verdict.HOLDS),
        ((9.0, 9.1, 8.9, 9.0, 9.2), Verdict.DOES_NOT_HOLD),
        ((1.0, 1.1, 0.9, 1.0, 2.1), Verdict.NOT_COMPARABLE),
        ((1.0, 1.1, 0.9), Verdict.HOLDS),  # too few for an interval: every seed counts
        ((1.0, 1.1, 2.1), Verdict.NOT_COMPARABLE),
        ((1.0, 9.0), Verdict.NOT_COMPARABLE),
        ((1.9,), Verdict.HOLDS),
        ((2.1,), Verdict.DOES_NOT_HOLD),
    ],
)
def test_a_claim_holds_if_its_interval_is_within_the_limits(
    measured: tuple[SeedFigures, Series], delays_us: tuple[float, ...], verdict: Verdict
) -> None:
    result = judge(a_claim(Limits(high=2.0)), seeds_with(measured, *delays_us), True)
    assert result.verdict == verdict
    assert result.values == list(delays_us)


@pytest.mark.parametrize(
    ("limits", "delays_us", "verdict"),
    [
        (Limits(low=2.0, strict=True), (2.0, 2.0), Verdict.DOES_NOT_HOLD),
        (Limits(low=2.0, strict=True), (2.0,), Verdict.DOES_NOT_HOLD),
        (Limits(high=2.0, strict=True), (2.0, 2.0), Verdict.DOES_NOT_HOLD),
        (Limits(low=2.0, strict=True), (2.1, 2.1), Verdict.HOLDS),
        (Limits(low=2.0, strict=True), (1.0, 9.0), Verdict.NOT_COMPARABLE),
        (Limits(low=2.0), (2.0, 2.0), Verdict.HOLDS),
    ],
)
def test_runs_that_are_the_same_show_no_difference(
    measured: tuple[SeedFigures, Series],
    limits: Limits,
    delays_us: tuple[float, ...],
    verdict: Verdict,
) -> None:
    assert judge(a_claim(limits), seeds_with(measured, *delays_us), True).verdict == verdict


def test_an_absolute_number_is_not_judged_on_a_smaller_cell(
    measured: tuple[SeedFigures, Series],
) -> None:
    claim = a_claim(Limits(high=2.0), only_at_paper_scale=True)
    seeds = seeds_with(measured, 1.0)
    assert judge(claim, seeds, False).verdict == Verdict.NOT_COMPARABLE.value
    assert judge(claim, seeds, True).verdict == Verdict.HOLDS.value


def test_a_claim_that_no_run_can_show_is_not_judged(
    measured: tuple[SeedFigures, Series],
) -> None:
    claim = replace(a_claim(Limits(high=2.0)), incomparable="Its trace is not public.")
    result = judge(claim, seeds_with(measured, 1.0), True)
    assert (result.verdict, result.reason) == ("not_comparable", "Its trace is not public.")
    assert result.values == [1.0]


def test_limits_need_a_side_and_an_order() -> None:
    with pytest.raises(ValueError, match="expected at least one"):
        Limits()
    with pytest.raises(ValueError, match="low <= high"):
        Limits(2.0, 1.0)
    with pytest.raises(ValueError, match="only one that is strict"):
        Limits(1.0, 2.0, strict=True)


def test_the_papers_setting_is_that_of_section_6() -> None:
    run = arms(ReproduceScale.PAPER).quality_first()
    group = run.arm.groups[0]
    assert (group.count, run.arm.partitions, group.protocol.options.gap_s) == (20, 20, 0.5)
    options = run.config.workload.options
    assert isinstance(options, SyntheticOptions)
    assert (options.machines, options.tasks_per_s) == (200_000, 40_000)
    assert options.load_percent == (50, 80, 95, 80, 50)
    assert isinstance(group.decision, ModelledTime)
    assert (group.decision.task_us, group.decision.scan_cost) == (250.0, 0.75)


def test_at_four_times_the_scale_everything_grows_but_a_schedulers_work() -> None:
    one, four = (arms_of_scale(ReproduceScale.PAPER, times).latency_first() for times in (1, 4))
    assert four.arm.groups[0].count == 4 * one.arm.groups[0].count
    assert four.arm.groups[0].decision == one.arm.groups[0].decision


def test_the_papers_tables_say_what_its_text_says() -> None:
    # section 6.4: quality-first has the smaller JCT from alpha = 0.6 on
    assert [row[2] < row[0] for row in JCT_S] == [False, False, False, True, True, True]
    assert all(row[0] >= row[1] >= row[2] for row in STET_S)
    assert all(row[2] > 2 * row[0] for row in JSD_S)


def test_bins_of_a_second_keep_every_count() -> None:
    series: Series = {
        "bucket_us": np.array([250_000]),
        "submitted": np.arange(20).reshape(2, 10),
        "first_commits": np.zeros((2, 10), np.int64),
    }
    time, counts = binned(series, "submitted", 3.0)
    assert time.tolist() == [0.5, 1.5, 2.5]
    assert counts.tolist() == [[6, 22, 17], [46, 62, 37]]
    assert waiting(series, 3.0)[1][:, -1].tolist() == [45, 145]


def test_throughput_and_waiting_tasks_are_counted_by_the_time_of_the_commit() -> None:
    """Of three tasks submitted in the first second, two are committed in the second, one in the
    third."""
    series: Series = {
        "bucket_us": np.array([1_000_000]),
        "submitted": np.array([[3, 0, 0]]),
        "committed": np.array([[3, 0, 0]]),  # by time of submission
        "first_commits": np.array([[0, 2, 1]]),
    }
    assert throughput(series, 3.0)[1].tolist() == [[0, 2, 1]]
    assert waiting(series, 3.0)[1].tolist() == [[3, 1, 0]]


def test_a_share_of_preferred_machines_is_a_share(measured: tuple[SeedFigures, Series]) -> None:
    figures, series = measured
    shares = preferred_share(series, figures.phases[-1].end_us / 1e6)[1]
    assert 0 < np.nanmax(shares) <= 1


@pytest.mark.parametrize("number", [13, 14, 15, 16])
def test_figures_of_many_partitions_synchronise_them_in_both_ways(number: int) -> None:
    [figure] = [one for one in EVERY if one.id == f"fig{number}"]
    found = [
        (run.arm.partitions, run.arm.sync, "blocks" in run.label)
        for run in figure.runs(ReproduceScale.PAPER)
    ]
    many = 40 if number % 2 else 80
    assert found == [
        (many, "diff_single", False),
        (many, "diff_block", True),
        (20, "diff_block", False),
    ]


@pytest.fixture
def small_paper(monkeypatch: pytest.MonkeyPatch) -> Iterator[PaperFigure]:
    """Fig. 6 on a cell of 60 machines, in place of all figures."""
    (figure,) = PARSYNC.chosen(["fig6"])
    assert isinstance(figure, PaperFigure)
    small = replace(figure, runs=lambda scale: tuple(map(shrunk, figure.runs(scale))))
    monkeypatch.setitem(PAPERS, "parsync", replace(PARSYNC, figures=(small,)))
    yield small


@pytest.mark.usefixtures("one_process")
def test_the_command_leaves_a_page_and_claims_and_does_nothing_twice(
    small_paper: PaperFigure, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = execution.ReproduceOptions("parsync", [], ReproduceScale.SMOKE, 2, tmp_path / "out")
    assert execution.start(options) == 0
    found = read_model(tmp_path / "out" / CLAIMS, Reproduction)
    assert [claim.id for claim in found.claims] == [claim.id for claim in small_paper.claims]
    assert (found.scale, found.seeds, found.figures) == ("smoke", [1, 2], ["fig6"])
    page = (tmp_path / "out" / PAGE).read_text("utf-8")
    assert "<svg" in page
    assert PARSYNC.smoke_note in page
    assert all(claim.statement in page for claim in small_paper.claims)
    assert (tmp_path / "out" / "figures" / "fig6.png").is_file()
    before = (tmp_path / "out" / CLAIMS).read_bytes()
    capsys.readouterr()
    assert execution.start(options) == 0
    assert "all runs are done already" in capsys.readouterr().err
    assert json.loads(before) == json.loads((tmp_path / "out" / CLAIMS).read_bytes())


@pytest.mark.usefixtures("one_process")
def test_a_series_that_is_missing_or_torn_is_made_again(
    small_paper: PaperFigure, tmp_path: Path
) -> None:
    runs = PlatformRuns(tmp_path)
    needed = small_paper.runs(ReproduceScale.SMOKE)
    runs.run(runs.missing(needed, (1,)), Interruption(), lambda: None)
    assert not PlatformRuns(tmp_path).missing(needed, (1,))
    (series,) = tmp_path.glob("*.npz")
    series.write_bytes(series.read_bytes()[:-100])
    assert len(PlatformRuns(tmp_path).missing(needed, (1,))) == 1
    series.unlink()
    assert len(PlatformRuns(tmp_path).missing(needed, (1,))) == 1
    assert not PlatformRuns(tmp_path).missing(
        tuple(replace(run, draws_series=False) for run in needed), (1,)
    )


def test_arms_that_two_figures_share_run_once(tmp_path: Path) -> None:
    runs = [run for figure in EVERY for run in figure.runs(ReproduceScale.SMOKE)]
    work = PlatformRuns(tmp_path).missing(runs, (1,))
    keys = [one.key() for one in work]
    assert len(set(keys)) == len(keys) < len(runs)


@pytest.mark.parametrize(
    ("paper", "figures", "message"),
    [
        ("borg", [], "PAPER 'borg': expected one of parsync"),
        ("parsync", ["fig99"], "FIGURE 'fig99': expected some of fig1a"),
    ],
)
def test_an_unknown_paper_or_figure_is_refused(
    paper: str, figures: list[str], message: str
) -> None:
    with pytest.raises(AgoraError, match=message):
        paper_of(paper).chosen(figures)
