"""Papers as chapters: how claims are judged, what a file of claims may say, that a further paper
needs no more than its chapters and a place among the papers, and ParSync's figures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from experiments.analysis.model_files import read_model
from experiments.analysis.summary_model import SeedFigures
from experiments.config.workload_config import WorkloadConfig
from experiments.interruption import Interruption
from experiments.papers import execution
from experiments.papers.chapter import Chapter, FigureRun, Paper, PaperFigure, Results, Series
from experiments.papers.claims import (
    Claim,
    ClaimResult,
    Limits,
    RunsOfSeed,
    Value,
    judge,
    value_range,
)
from experiments.papers.firmament import cells as firmament
from experiments.papers.mesos import figures as mesos
from experiments.papers.omega import figures as omega_figures
from experiments.papers.omega import mapreduce
from experiments.papers.page import (
    CLAIMS,
    PAGE,
    Reproduction,
    Shown,
    beyond_slots,
    beyond_the_paper,
    show,
)
from experiments.papers.parsync import controls, models, section6
from experiments.papers.parsync.arms import arms, arms_of_scale
from experiments.papers.parsync.models import SETTINGS, conflict_rate, delay_share, growth
from experiments.papers.plots import binned, preferred_share, throughput, waiting
from experiments.papers.quincy import figures as quincy
from experiments.papers.registry import (
    FIRMAMENT,
    MESOS,
    OMEGA,
    PAPERS,
    PARSYNC,
    QUINCY,
    SPARROW,
    paper_of,
)
from experiments.papers.runs import PlatformRuns
from experiments.papers.sparrow import figures as sparrow
from experiments.papers.sparrow import google
from experiments.papers.statistics import difference, over, quotient
from experiments.studies.model_runs import (
    ModelRun,
    RoundsRun,
    SearchRun,
    SimulationRun,
    WorkloadRun,
    counts,
    whole_run,
)
from experiments.studies.model_settings import ReproduceScale, default_settings
from experiments.workloads.synthetic import SyntheticOptions
from parsync.metrics.kinds.conflicts import ConflictCauses
from parsync.metrics.summary import PhaseFigures, ScopeFigures
from parsync.model.slot_settings import Phase, SchedulerGroup
from parsync.model.slot_simulator import ConflictsAndScores
from parsync.spec.decision_times import ModelledTime
from shared_state.errors import AgoraError
from tests.documents import ROOT
from tests.fixtures.papers import tiny
from tests.unit.slot_cells import small_settings

PAPER, SMOKE = ReproduceScale.PAPER, ReproduceScale.SMOKE

# How claims are judged, on made-up figures

KEY = "delay_mean_us"


def arm(*delays_us: float, bounds: tuple[int, ...] = ()) -> SeedFigures:
    """An arm with these delays in its phases, those named lower bounds."""
    phases = [
        PhaseFigures.model_construct(
            **fields(
                others={KEY: None if place in bounds else delay_us},
                at_least={KEY: delay_us} if place in bounds else {},
            )
        )
        for place, delay_us in enumerate(delays_us)
    ]
    overall = ScopeFigures.model_construct(**fields(others={}, at_least={}))
    return SeedFigures.model_construct(**fields(overall=overall, phases=phases, groups=[]))


def fields(**values: Any) -> dict[str, Any]:
    """Some of the fields of a model, as no claim here looks at others."""
    return values


def of(label: str, phase: int = 0) -> Value:
    return lambda arms: arms[label].phases[phase].value(KEY)


def ratio(arms: RunsOfSeed) -> float | None:
    """A over B."""
    return quotient(of("A")(arms), of("B")(arms))


def growth_of_a(arms: RunsOfSeed) -> float | None:
    return quotient(of("A", 1)(arms), of("A", 0)(arms))


def a_claim(limits: Limits, value: Value = of("A"), **others: Any) -> Claim:  # noqa: B008
    return Claim("fig1.one", "Fig. 1", "It is small.", "", "us", limits, value, **others)


@pytest.mark.parametrize(
    ("limits", "delays_us", "verdict"),
    [
        (Limits(high=2.0), (1.0, 1.1, 0.9, 1.0, 1.2), "holds"),
        (Limits(high=2.0), (9.0, 9.1, 8.9, 9.0, 9.2), "does_not_hold"),
        (Limits(high=2.0), (1.0, 1.1, 0.9, 1.0, 2.1), "not_comparable"),
        (Limits(high=2.0), (1.0, 1.1, 0.9), "holds"),  # too few for an interval: every seed counts
        (Limits(high=2.0), (1.0, 1.1, 2.1), "not_comparable"),
        (Limits(high=2.0), (1.0, 9.0), "not_comparable"),
        (Limits(high=2.0), (1.9,), "holds"),
        (Limits(high=2.0), (2.1,), "does_not_hold"),
        (Limits(low=2.0), (2.0, 2.0), "holds"),
        # runs that are the same show no difference
        (Limits(low=2.0, strict=True), (2.0, 2.0), "does_not_hold"),
        (Limits(low=2.0, strict=True), (2.0,), "does_not_hold"),
        (Limits(high=2.0, strict=True), (2.0, 2.0), "does_not_hold"),
        (Limits(low=2.0, strict=True), (2.1, 2.1), "holds"),
        (Limits(low=2.0, strict=True), (1.0, 9.0), "not_comparable"),
    ],
)
def test_a_claim_holds_if_its_interval_is_within_the_limits(
    limits: Limits, delays_us: tuple[float, ...], verdict: str
) -> None:
    result = judge(a_claim(limits), [{"A": arm(one)} for one in delays_us], True)
    assert (result.verdict, result.values) == (verdict, list(delays_us))


def test_what_this_scale_or_no_run_can_show_is_not_judged() -> None:
    seeds = [{"A": arm(1.0)}]
    absolute = a_claim(Limits(high=2.0), only_at_paper_scale=True)
    assert [judge(absolute, seeds, at).verdict for at in (False, True)] == [
        *("not_comparable", "holds"),
    ]
    hidden = a_claim(Limits(high=2.0), incomparable="Its trace is not public.")
    result = judge(hidden, seeds, True)
    assert (result.verdict, result.reason) == ("not_comparable", "Its trace is not public.")
    assert result.values == [1.0]


def test_limits_need_a_side_and_an_order() -> None:
    for given_, error in (
        ({}, "expected at least one"),
        ({"low": 2.0, "high": 1.0}, "low <= high"),
        ({"low": 1.0, "high": 2.0, "strict": True}, "only one that is strict"),
    ):
        with pytest.raises(ValueError, match=error):
            Limits(**given_)  # type: ignore[arg-type]


BOUND = arm(5.0, bounds=(0,))
LATER = arm(2.0, 4.0, bounds=(1,))
TO_BOUND = {"A": arm(2.0), "B": arm(4.0, bounds=(0,))}


@pytest.mark.parametrize(
    ("value", "limits", "arms", "verdict"),
    [
        (of("A"), Limits(low=4.0), {"A": BOUND}, "holds"),
        (of("A"), Limits(high=4.0), {"A": BOUND}, "does_not_hold"),
        (of("A"), Limits(low=6.0), {"A": BOUND}, "not_comparable"),
        (of("A"), Limits(high=6.0), {"A": BOUND}, "at least what is given (limits: at most 6)"),
        # a ratio to a lower bound is an upper bound, one of two bounds may be anything
        (ratio, Limits(high=0.6), TO_BOUND, "holds"),
        (ratio, Limits(low=0.6), TO_BOUND, "does_not_hold"),
        (ratio, Limits(low=0.4), TO_BOUND, "at most what is given"),
        (ratio, Limits(low=0.4), {**TO_BOUND, "A": BOUND}, "may be larger or smaller"),
        (growth_of_a, Limits(high=3.0), {"A": arm(2.0, 4.0)}, "holds"),
        (growth_of_a, Limits(high=3.0), {"A": LATER}, "not_comparable"),
        (growth_of_a, Limits(low=1.5), {"A": LATER}, "holds"),
        # bounds that the statistic does not use change nothing
        (of("A"), Limits(high=6.0), {"A": arm(5.0), "B": BOUND}, "holds"),
        (of("A"), Limits(high=6.0), {"A": arm(5.0, 9.0, bounds=(1,))}, "holds"),
    ],
)
def test_what_rests_on_lower_bounds_is_judged_by_all_that_it_may_be(
    value: Value, limits: Limits, arms: Mapping[str, SeedFigures], verdict: str
) -> None:
    result: ClaimResult = judge(a_claim(limits, value), [arms], at_paper_scale=True)
    if " " in verdict:
        assert result.verdict == "not_comparable" and verdict in result.reason
        assert result.ours.at_least == ("at least" in verdict)
    else:
        assert result.verdict == verdict


STATISTICS: dict[str, Callable[[RunsOfSeed], float | None]] = {
    "least": lambda arms: over(min, [of(label)(arms) for label in "ABC"]),
    "most": lambda arms: over(max, [of(label)(arms) for label in "ABC"]),
    "ratio": lambda arms: quotient(over(max, [of("A")(arms), of("B")(arms)]), of("C")(arms)),
    "difference": lambda arms: difference(of("A")(arms), of("B")(arms)),
}


@given(
    delays_us=st.lists(st.integers(1, 50), min_size=3, max_size=3),
    more_us=st.lists(st.integers(0, 1000), min_size=3, max_size=3),
    bounds=st.sets(st.integers(0, 2)),
    name=st.sampled_from(sorted(STATISTICS)),
)
def test_the_range_contains_the_statistic_of_every_larger_figure(
    delays_us: list[int], more_us: list[int], bounds: set[int], name: str
) -> None:
    shown, true = {}, {}
    for place, label in enumerate("ABC"):
        shown[label] = arm(float(delays_us[place]), bounds=(0,) if place in bounds else ())
        more = more_us[place] if place in bounds else 0
        true[label] = arm(float(delays_us[place] + more))
    found, value = value_range(STATISTICS[name], shown), STATISTICS[name](true)
    assert found.low is not None and found.high is not None and value is not None
    assert found.low <= value <= found.high
    if not bounds:
        assert found.low == pytest.approx(value) == found.high


def test_statistics_over_the_phases_of_runs() -> None:
    runs = {"A": arm(1.0, 2.0, 4.0, 2.0, 1.0), "B": arm(2.0, 6.0, 4.0, 8.0, 1.5)}
    for value, expected in (
        (section6.highest("B", KEY), 8),
        (section6.least_ratio("A", ("B",), KEY), 1),
        (section6.least_ratio("A", ("B",), KEY, (0, 1)), 2),
        (section6.least_ratio("A", ("B", "A"), KEY, (0, 1)), 1),
        (section6.least_difference("B", "A", KEY), 0),
        (section6.least_difference("A", "B", KEY), -6),
        (section6.largest_gap("A", "B", KEY), 6),
        (section6.phase_ratio("A", KEY, 2, 1), 2),
        (section6.least_growth("A", KEY, (0, 1, 2)), 2),
        (section6.least_growth("B", KEY, (0, 1, 2)), pytest.approx(2 / 3)),
    ):
        assert value(runs) == expected


# Chapters and papers


@pytest.mark.usefixtures("one_process")
def test_a_further_paper_is_its_chapters_and_a_place_among_the_papers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(PAPERS, "tiny", tiny.PAPER)
    options = execution.ReproduceOptions("tiny", [], SMOKE, 2, tmp_path)
    assert execution.start(options) == 0
    found = read_model(tmp_path / CLAIMS, Reproduction)
    assert {claim.id: claim.verdict for claim in found.claims} == {
        "fig1.flow_places_all": "holds",
        "fig1.locks_places_all": "holds",
        "fig1.longer_at_load": "not_comparable",
        "fig2.linear": "holds",
        "fig2.seconds": "not_comparable",
    }
    page = (tmp_path / PAGE).read_text("utf-8")
    assert page.count("<svg") == 1
    for text in ("These runs have a tiny cell.", "The cell has 10 machines.", "10.01"):
        assert text in page
    assert (tmp_path / "figures" / "fig1.png").is_file()


def test_a_claim_is_what_its_file_and_its_module_say() -> None:
    flow, locks, longer = tiny.PAPER.figures[0].claims
    assert (flow.source, longer.source) == ("Fig. 1, section 3", "section 3.1")
    assert (flow.statement, locks.statement) == (
        *("Flow places every task.", "Locks places every task."),
    )
    assert (flow.paper_value, longer.paper_value) == ("all", "")
    assert (flow.limits, longer.limits) == (Limits(low=1.0), Limits(low=0.0, strict=True))
    assert (flow.only_at_paper_scale, longer.only_at_paper_scale) == (False, True)
    linear, seconds = tiny.PAPER.figures[1].claims
    assert linear.limits == Limits(3.9, 4.1)
    assert seconds.limits == Limits(high=1.0, strict=True)
    assert seconds.incomparable.endswith("10 machines stand in for it.")
    first, second = (figure.notes for figure in tiny.PAPER.figures)
    assert first == ("The cell has 10 machines.", "Tasks have no preferences.")
    assert second == (seconds.incomparable,)


WHOLE = 'source = "B"\nclaims.one = {{statement = "C", {}}}'


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("", "source"),
        ('source = "B"\nclaims = {}\nnote = ["C"]', "note"),
        (WHOLE.format("at_most = 1"), "statistic"),
        (WHOLE.format('statistic = "D", most = 1'), "most"),
        (WHOLE.format('statistic = "D"'), "one of above and below"),
        (WHOLE.format('statistic = "D", above = 1, at_most = 2'), "one of above and below"),
        (WHOLE.format('statistic = "D", above = 1, below = 2'), "one of above and below"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, wrong: str, error: str) -> None:
    path = tmp_path / "chapter.toml"
    path.write_text(f'[fig1]\ntitle = "A"\n{wrong}\n')
    with pytest.raises(ValueError, match=error):
        Chapter(path)


def test_claims_and_words_that_nobody_states_are_refused() -> None:
    for claim, error in (("fastest", "fastest"), ("seconds", "machines")):
        with pytest.raises(KeyError, match=error):
            tiny.CHAPTER.figure("fig2", tiny.fig1_runs, {claim: lambda runs: 1.0})


@pytest.mark.parametrize(
    ("paper", "chapters"),
    [
        (PARSYNC, (models, section6, controls)),
        (OMEGA, (omega_figures, mapreduce)),
        (FIRMAMENT, (firmament,)),
        (QUINCY, (quincy,)),
        (SPARROW, (sparrow, google)),
        (MESOS, (mesos,)),
        (tiny.PAPER, (tiny,)),
    ],
    ids=lambda value: value.id if isinstance(value, Paper) else "",
)
def test_every_claim_of_a_file_is_judged_under_an_id_of_its_own(
    paper: Paper, chapters: tuple[ModuleType, ...]
) -> None:
    claims = [claim for figure in paper.figures for claim in figure.claims]
    assert len({claim.id for claim in claims}) == len(claims)
    assert all(re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", claim.id) for claim in claims)
    judged = [f"{claim.statement} {claim.statistic}" for claim in claims]
    for chapter in chapters:
        for figure in chapter.CHAPTER.figures.values():
            for text in figure.claims.values():
                words = re.escape(" ".join(f"{text.statement} {text.statistic}".split()))
                pattern = re.sub(r"\\{.*?\\}", ".*", words)
                assert any(re.fullmatch(pattern, one) for one in judged), text.statement


def test_the_chapter_of_the_guide_is_one(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    block = guide.partition("## Add a figure")[2].partition("```text\n")[2].partition("```")[0]
    (tmp_path / "chapter.toml").write_text(block, encoding="utf-8")
    figure = Chapter(tmp_path / "chapter.toml").figure(
        "fig7", tiny.fig1_runs, {"batch_waits_longer": lambda runs: 2.0}
    )
    (claim,) = figure.claims
    assert (claim.id, claim.limits) == ("fig7.batch_waits_longer", Limits(low=2.0))


@pytest.mark.parametrize(
    ("paper", "figures", "message"),
    [
        ("borg", [], "PAPER 'borg': expected one of parsync"),
        ("parsync", ["fig99"], "FIGURE 'fig99': expected some of fig1a"),
        ("omega", ["fig4"], "FIGURE 'fig4': expected some of fig5, fig6, fig7"),
    ],
)
def test_an_unknown_paper_or_figure_is_refused(
    paper: str, figures: list[str], message: str
) -> None:
    with pytest.raises(AgoraError, match=message):
        paper_of(paper).chosen(figures)


# ParSync: every figure finds what its claims need

MODELS = [one for one in PARSYNC.figures if isinstance(one.runs(SMOKE)[0], ModelRun)]
EVERY = [one for one in PARSYNC.figures if one not in MODELS]
TINY = {"machines": 60, "phase_s": 6.0, "preference_groups": 4, "preferred_fraction": 0.2}


def shrunk(run: FigureRun, **options: Any) -> FigureRun:
    """The same run on a small cell."""
    workload = run.config.workload
    changed = workload.options.model_copy(update=options or TINY)
    small = WorkloadConfig.of(workload.kind, changed)
    return replace(run, config=run.config.model_copy(update={"workload": small}))


def complete(figure: PaperFigure, results: Results, folder: Path, **beyond: Any) -> Shown:
    """A figure as shown, with all that its claims, its drawing and its table need."""
    assert len({run.label for run in results.runs}) == len(results.runs)
    claims = [judge(claim, results.seeds, True) for claim in figure.claims]
    assert all(claim.id.startswith(f"{figure.id}.") for claim in claims)
    shown = show(figure, results, claims, folder, **beyond)
    assert ("<svg" in (shown.svg or "")) == (figure.draw is not None)
    assert (shown.table is None) == (figure.table is None)
    if shown.table is not None:
        assert all(len(row) == len(shown.table.header) for row in shown.table.rows)
    return shown


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[SeedFigures, Series]:
    """The figures and the series of one small run with five phases."""
    run = shrunk(arms(SMOKE).latency_first())
    runs = PlatformRuns(tmp_path_factory.mktemp("runs"))
    runs.run(runs.missing((run,), (1,)), Interruption(), lambda: None)
    results = runs.results((run,), (1,))
    return results.seeds[0][run.label], results.series[run.label]


def everything(figure: PaperFigure, measured: tuple[SeedFigures, Series]) -> Results:
    """The results of a figure, every run of it the same small one."""
    runs = figure.runs(SMOKE)
    figures, series = measured
    drawn = {run.label: series for run in runs if run.draws_series}
    return Results(runs, ({run.label: figures for run in runs},) * 2, drawn)


@pytest.mark.parametrize("figure", EVERY, ids=lambda figure: figure.id)
def test_a_figure_has_all_that_its_claims_and_its_drawing_need(
    figure: PaperFigure, measured: tuple[SeedFigures, Series], tmp_path: Path
) -> None:
    complete(figure, everything(figure, measured), tmp_path)


def arrays_of(run: ModelRun) -> dict[str, NDArray[Any]]:
    """Results in the form of a run's, with numbers that mean nothing."""
    if isinstance(run, SearchRun):
        found = ConflictsAndScores(0.5, 0.25, 0.5, 0.25, 0.125, 10.5, None)
        size = {"slots": np.array(run.settings.slots), "least": np.array(1_000.0)}
        return {**size, "too_few": np.array(800.0), **whole_run(found)}
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
    results = Results(runs, ({run.label: arrays_of(run) for run in runs},) * 2, {})
    beyond = beyond_slots(results)
    assert (beyond is not None) == (figure.id not in ("eq2", "fig1a", "fig1b"))
    if beyond is not None:
        assert [row[0] for row in beyond.rows] == [run.label for run in runs]
    complete(figure, results, tmp_path, beyond=beyond)


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
    [figure] = PARSYNC.chosen(["fig6"])
    of_run = everything(figure, (figures.model_copy(update={"overall": overall}), series))
    table = beyond_the_paper(of_run)
    assert len(table.header) == 7
    [row] = table.rows
    means = [text.split(" \u00b1 ")[0] for text in row]
    assert means == ["Latency-first", "2.46 %", "12.5 %", "25 %", "62.5 %", "1", "\u2013"]


def test_beyond_a_search_are_the_figures_of_its_answer() -> None:
    [figure] = PARSYNC.chosen(["fig2a"])
    first, second = runs = figure.runs(SMOKE)[:2]
    seed = {first.label: arrays_of(first), second.label: {**arrays_of(second), **whole_run(None)}}
    table = beyond_slots(Results(runs, (seed,), {}))
    assert table is not None
    known, unknown = table.rows
    assert known[1:] == ("50 %", "25 %", "50 %", "25 %", "12.5 %", "10.50", "\u2013")
    assert unknown[1:] == ("\u2013",) * 7


def test_delays_of_controls_that_left_tasks_waiting_are_marked_as_lower_bounds(
    measured: tuple[SeedFigures, Series],
) -> None:
    results = everything(PARSYNC.chosen(["controls"])[0], measured)
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


def test_the_settings_are_those_of_the_paper() -> None:
    run = arms(PAPER).quality_first()
    group = run.arm.groups[0]
    assert (group.count, run.arm.partitions, group.protocol.options.gap_s) == (20, 20, 0.5)
    options = run.config.workload.options
    assert isinstance(options, SyntheticOptions)
    assert (options.machines, options.tasks_per_s) == (200_000, 40_000)
    assert options.load_percent == (50, 80, 95, 80, 50)
    assert isinstance(group.decision, ModelledTime)
    assert (group.decision.task_us, group.decision.scan_cost) == (250.0, 0.75)
    # at four times the scale everything grows but a scheduler's work
    one, four = (arms_of_scale(PAPER, times).latency_first().arm.groups[0] for times in (1, 4))
    assert (four.count, four.decision) == (4 * one.count, one.decision)
    # section 6.4: quality-first has the smaller JCT from alpha = 0.6 on
    smaller = [row[2] < row[0] for row in section6.JCT_S]
    assert smaller == [False, False, False, True, True, True]
    assert all(row[0] >= row[1] >= row[2] for row in section6.STET_S)
    assert all(row[2] > 2 * row[0] for row in section6.JSD_S)


@pytest.mark.parametrize("scale", ReproduceScale)
def test_at_both_scales_schedulers_claim_the_same_shares_of_slots(scale: ReproduceScale) -> None:
    for factor in (1, 2, 4, 8):
        settings = default_settings(scale, factor)
        assert settings.schedulers == 10 * factor
        (group,), (phase,) = settings.groups, settings.phases
        assert phase.rate_per_s[0] * settings.task_s / settings.slots == 1.0
        assert settings.gap_s / group.decision_s / settings.slots == pytest.approx(0.01)
    found = {setting.label: setting.sync for setting in SETTINGS}
    assert {sync.value for sync in found.values()} == {"state_aligned", "state_staggered"}
    for run in models.section51_runs(scale):
        assert run.settings.extra_slots / run.settings.slots == 0.075
        assert (run.settings.sync, run.settings.schedulers) == (found[run.label], 20)


@pytest.mark.parametrize("number", [13, 14, 15, 16])
def test_figures_of_many_partitions_synchronise_them_in_both_ways(number: int) -> None:
    [figure] = PARSYNC.chosen([f"fig{number}"])
    runs = figure.runs(PAPER)
    found = [(run.arm.partitions, run.arm.sync, "blocks" in run.label) for run in runs]
    many = 40 if number % 2 else 80
    assert found == [
        (many, "diff_single", False),
        (many, "diff_block", True),
        (20, "diff_block", False),
    ]


def test_bins_of_a_second_keep_every_count() -> None:
    series: Series = {
        "bucket_us": np.array([250_000]),
        "submitted": np.arange(20).reshape(2, 10),
        "first_commits": np.zeros((2, 10), np.int64),
    }
    time, found = binned(series, "submitted", 3.0)
    assert time.tolist() == [0.5, 1.5, 2.5]
    assert found.tolist() == [[6, 22, 17], [46, 62, 37]]
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


def test_counts_are_those_of_the_arrivals_one_by_one() -> None:
    options = SyntheticOptions(machines=40, phase_s=3.0, batch_tasks=7, start="steady")
    workload = WorkloadConfig.of("synthetic", options).make(3)
    found = counts(workload)
    tasks, jobs = [0] * 15, [0] * 15
    seen, short = set(), 0
    for batch, at_us in enumerate(workload.arrival_us.tolist()):
        first, last = workload.arrival_offsets[batch : batch + 2]
        for row in workload.arrival_rows[first:last].tolist():
            tasks[at_us // 1_000_000] += 1
            short += workload.duration_us[row] < 10_000_000
            job = int(workload.tasks.job[row])
            jobs[at_us // 1_000_000] += job not in seen
            seen.add(job)
    assert (found["tasks"].tolist(), found["jobs"].tolist()) == (tasks, jobs)
    assert models.short_share(found) == short / sum(tasks)
    assert found["phase_end_s"].tolist() == [3.0, 6.0, 9.0, 12.0, 15.0]


def test_the_halves_of_the_gap_are_compared_after_the_warm_up() -> None:
    def column(*by_half: tuple[float, float]) -> np.ndarray:
        return np.array([[half] for half in by_half])

    arrays = {
        "end_s": np.array([10.0, 11.0, 12.0]),
        "slice_claims": column((9, 9), (10, 10), (10, 30)),
        "slice_conflicts": column((9, 9), (4, 6), (6, 18)),
        "slice_commits": column((0, 0), (6, 4), (4, 12)),
        "slice_conflict_delay_s": column((7, 7), (1.0, 2.0), (1.0, 6.0)),
    }
    assert [conflict_rate(arrays, half) for half in (0, 1)] == [0.5, 0.6]
    assert growth(arrays) == pytest.approx(1.2)
    # 0.2 s a task in the first half, 0.5 s in the second
    assert [delay_share(arrays, half) for half in (0, 1)] == pytest.approx([2 / 7, 5 / 7])
    empty = {**dict.fromkeys(arrays, np.zeros((1, 1, 2))), "end_s": np.array([20.0])}
    assert conflict_rate(empty, 0) is growth(empty) is delay_share(empty, 1) is None


# The command


@pytest.fixture
def small_paper(monkeypatch: pytest.MonkeyPatch) -> Iterator[PaperFigure]:
    """Fig. 6 on a cell of 60 machines, in place of all figures."""
    (figure,) = PARSYNC.chosen(["fig6"])
    small = replace(figure, runs=lambda scale: tuple(map(shrunk, figure.runs(scale))))
    monkeypatch.setitem(PAPERS, "parsync", replace(PARSYNC, figures=(small,)))
    yield small


@pytest.mark.usefixtures("one_process")
def test_the_command_leaves_a_page_and_claims_and_does_nothing_twice(
    small_paper: PaperFigure, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    options = execution.ReproduceOptions("parsync", [], SMOKE, 2, out)
    assert execution.start(options) == 0
    found = read_model(out / CLAIMS, Reproduction)
    assert [claim.id for claim in found.claims] == [claim.id for claim in small_paper.claims]
    assert (found.scale, found.seeds, found.figures) == ("smoke", [1, 2], ["fig6"])
    page = (out / PAGE).read_text("utf-8")
    for text in ("<svg", PARSYNC.smoke_note, *(claim.statement for claim in small_paper.claims)):
        assert text in page
    assert (out / "figures" / "fig6.png").is_file()
    before = (out / CLAIMS).read_bytes()
    capsys.readouterr()
    assert execution.start(options) == 0
    assert "all runs are done already" in capsys.readouterr().err
    assert json.loads(before) == json.loads((out / CLAIMS).read_bytes())
    # a series that is missing or torn is made again
    needed, kept = small_paper.runs(SMOKE), out / execution.RUNS
    (series,) = kept.glob("*.npz")
    series.write_bytes(series.read_bytes()[:-100])
    assert len(PlatformRuns(kept).missing(needed, (1, 2))) == 1
    series.unlink()
    assert len(PlatformRuns(kept).missing(needed, (1, 2))) == 1
    undrawn = tuple(replace(run, draws_series=False) for run in needed)
    assert not PlatformRuns(kept).missing(undrawn, (1, 2))


def test_arms_that_two_figures_share_run_once(tmp_path: Path) -> None:
    runs = [run for figure in EVERY for run in figure.runs(SMOKE)]
    keys = [one.key() for one in PlatformRuns(tmp_path).missing(runs, (1,))]
    assert len(set(keys)) == len(keys) < len(runs)
