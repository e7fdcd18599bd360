"""Live figures of `agora reproduce`: claims are judged from valid runs only, and runs are kept and
continued. What runs here runs in virtual time in place of Ray."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.model_files import read_model
from experiments.analysis.summary_model import Restart, SeedFigures
from experiments.campaign import loop
from experiments.campaign.progress import ProgressReport
from experiments.campaign.running import ArmRun, ArmRunner, run_arm_virtual, seed_figures
from experiments.config.run_config import RunConfig
from experiments.papers import execution
from experiments.papers import runs as kept_runs
from experiments.papers.chapter import FigureRun, PaperFigure, Results
from experiments.papers.claims import Claim, Limits, judge_live
from experiments.papers.page import CLAIMS, PAGE, Reproduction, beside_virtual_time
from experiments.papers.parsync.arms import LATENCY, QUALITY, arms
from experiments.papers.parsync.section6 import LIVE as FIGURES
from experiments.papers.parsync.section6 import SETTING
from experiments.papers.registry import PAPERS, PARSYNC
from experiments.papers.runs import LiveEvidence
from experiments.studies.model_settings import ReproduceScale
from parsync.metrics.kinds.validity import Cause, Disturbance, Validity
from tests.unit.test_papers import shrunk as smaller

TINY = {"machines": 60, "slots_per_machine": 1, "phase_s": 3.0}
QUIET = Validity(seconds=30, disturbed=[], disturbances=[], actors=[])
VALID = LiveEvidence(validity=QUIET, restarts=0)
RESTARTED = LiveEvidence(validity=QUIET, restarts=1)
LATE = Disturbance(actor="cell", cause=Cause.LATENESS, seconds=[3, 4], worst=9_000, limit=2_000)
DISTURBED, NOT_MEASURED = (
    LiveEvidence(validity=Validity.model_validate({**QUIET.model_dump(), **changed}), restarts=0)
    for changed in ({"disturbed": [3, 4], "disturbances": [LATE]}, {"seconds": 0})
)


def shrunk(run: FigureRun) -> FigureRun:
    """The same run on a cell of 60 slots."""
    return smaller(run, **TINY)


@pytest.fixture(scope="module")
def figures() -> SeedFigures:
    run = shrunk(arms(ReproduceScale.SMOKE).latency_first())
    return seed_figures(run.config.model_copy(update={"settle_s": 1.0}), run.arm, 1)


def claim_about(label: str) -> Claim:
    committed = lambda runs: float(runs[label].totals.committed)  # noqa: E731
    return Claim("fig7_live.one", "Fig. 7", "It is small.", "", "", Limits(low=1.0), committed)


@pytest.mark.parametrize(
    ("evidence", "verdict", "reason"),
    [
        (VALID, "holds", "The value is within the limits"),
        (DISTURBED, "not_comparable", "'Quality-first': 2 of 30 seconds were disturbed."),
        (NOT_MEASURED, "not_comparable", "'Quality-first': nothing is known of disturbances."),
        (RESTARTED, "not_comparable", "'Quality-first': 1 restart of an actor."),
    ],
)
def test_a_claim_is_judged_from_valid_runs_only(
    figures: SeedFigures, evidence: LiveEvidence, verdict: str, reason: str
) -> None:
    seeds = [{LATENCY: figures, QUALITY: figures}]
    result = judge_live(claim_about(QUALITY), seeds, [{LATENCY: VALID, QUALITY: evidence}])
    assert (result.verdict, result.scale) == (verdict, "demo")
    assert result.reason.startswith(reason)
    assert result.values == [figures.totals.committed]


def test_a_disturbed_run_spoils_only_the_claims_that_use_it(figures: SeedFigures) -> None:
    seeds = [{LATENCY: figures, QUALITY: figures}] * 2
    later = [{LATENCY: VALID, QUALITY: VALID}, {LATENCY: VALID, QUALITY: DISTURBED}]
    assert judge_live(claim_about(LATENCY), seeds, later).verdict == "holds"
    spoilt = judge_live(claim_about(QUALITY), seeds, later)
    assert spoilt.verdict == "not_comparable"
    assert "'Quality-first' with seed 2: 2 of 30 seconds were disturbed." in spoilt.reason


def test_a_mean_over_values_that_are_lower_bounds_is_marked(figures: SeedFigures) -> None:
    bound = figures.overall.model_copy(update={"at_least": {"conflict_rate": 0.2}})
    unfinished = figures.model_copy(update={"overall": bound})
    live, virtual = FIGURES[2].runs(ReproduceScale.SMOKE)[::2]
    assert live.live and not virtual.live
    of_seed = {live.label: figures, virtual.label: figures}
    results = Results((live, virtual), (of_seed, {**of_seed, live.label: unfinished}), {})
    table = beside_virtual_time(results, [{live.label: VALID}, {live.label: DISTURBED}])
    (row,) = table.rows
    on_ray, in_virtual_time = row[4].split(" / ")
    assert on_ray.startswith("≥ ") and not in_virtual_time.startswith("≥")
    assert f"'{live.label}' with seed 2 was disturbed in 2 of 30 seconds" in table.note


def test_live_figures_are_made_only_by_name() -> None:
    ids = [figure.id for figure in FIGURES]
    assert ids == ["fig5_live", "fig6_live", "fig7_live", "fig8_live"]
    assert not set(ids) & {figure.id for figure in PARSYNC.chosen([])}
    assert PARSYNC.chosen(["fig6_live"]) == (FIGURES[1],)
    assert SETTING.taus_s == (0.4, 0.8, 1.2)  # the paper's, in mean run times


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_every_live_arm_has_the_same_in_virtual_time(figure: PaperFigure) -> None:
    runs = figure.runs(ReproduceScale.PAPER)
    assert runs == figure.runs(ReproduceScale.SMOKE)
    live = [(run.config, run.arm) for run in runs if run.live]
    assert live == [(run.config, run.arm) for run in runs if not run.live]
    assert not any(claim.only_at_paper_scale for claim in figure.claims)


class FakeRay:
    """Runs arms in virtual time. evidence: of arms by name, if they are not valid. stops_at: the
    run, counted from 1, during which Ctrl-C is pressed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.evidence: dict[str, LiveEvidence] = {}
        self.stops_at = 0
        self.ran: list[str] = []
        self.starts = 0
        self.ends = 0
        monkeypatch.setattr(kept_runs, "arm_runner", self.runner)
        monkeypatch.setattr(kept_runs, "live_validity", self.validity)

    @contextmanager
    def runner(self, config: RunConfig, hold: bool, report: ProgressReport) -> Iterator[ArmRunner]:
        assert config.runtime == "ray" and not hold
        self.starts += 1
        try:
            yield self.run
        finally:
            self.ends += 1

    def run(self, config: RunConfig, arm: Any, *rest: Any, **others: Any) -> ArmRun:
        self.ran.append(arm.name)
        if len(self.ran) == self.stops_at:
            signal.raise_signal(signal.SIGINT)
        run = run_arm_virtual(config, arm, *rest, **others)
        restart = Restart(actor="cell", at_us=1, away_us=2)
        return replace(run, restarts=[restart] * self._of(arm.name).restarts)

    def validity(self, config: RunConfig, run: ArmRun) -> Validity:
        return self._of(run.arm.name).validity

    def _of(self, arm: str) -> LiveEvidence:
        return self.evidence.get(arm, VALID)


def here(function: Any, items: Any, check: Any, processes: Any) -> Iterator[tuple[int, Any]]:
    """local_map without processes, which take seconds to start."""
    yield from enumerate(map(function, items))


@pytest.fixture
def fake_ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    """In place of Ray. Fig. 7 live, on a tiny cell, is all that the paper has."""
    small = replace(FIGURES[2], runs=lambda scale: tuple(map(shrunk, FIGURES[2].runs(scale))))
    monkeypatch.setitem(PAPERS, "parsync", replace(PARSYNC, figures=(small,)))
    monkeypatch.setattr(loop, "local_map", here)
    return FakeRay(monkeypatch)


def reproduce(out: Path) -> int:
    options = execution.ReproduceOptions("parsync", ["fig7_live"], ReproduceScale.PAPER, 1, out)
    return execution.start(options)


def test_the_page_says_that_the_runs_are_live_and_at_which_scale(
    fake_ray: FakeRay, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce(tmp_path) == 0
    assert sorted(fake_ray.ran) == [LATENCY, QUALITY]
    assert fake_ray.starts == fake_ray.ends == 1
    page = (tmp_path / PAGE).read_text("utf-8")
    assert "Live, on Ray in real time, at the demo’s scale: not the paper’s" in page
    assert "0 of 30: valid" in page
    found = read_model(tmp_path / CLAIMS, Reproduction)
    assert {claim.scale for claim in found.claims} == {"demo"}
    assert "2 runs in virtual time and 2 live runs at the demo's scale" in capsys.readouterr().err
    assert not [one for one in (tmp_path / "live_runs").iterdir() if one.is_dir()]  # logs are gone
    assert reproduce(tmp_path) == 0
    assert len(fake_ray.ran) == 2 and fake_ray.starts == 1
    assert "all runs are done already" in capsys.readouterr().err


@pytest.mark.parametrize("evidence", [DISTURBED, RESTARTED])
def test_a_run_that_is_not_valid_is_kept_and_done_again_by_the_next_command(
    fake_ray: FakeRay, tmp_path: Path, evidence: LiveEvidence
) -> None:
    fake_ray.evidence = {QUALITY: evidence}
    assert reproduce(tmp_path) == 0
    found = read_model(tmp_path / CLAIMS, Reproduction)
    assert {claim.verdict for claim in found.claims} == {"not_comparable"}
    page = (tmp_path / PAGE).read_text("utf-8")
    assert ": not valid" in page
    late = "was disturbed in 2 of 30 seconds: cell was up to 9 ms late"
    assert (late in page) == (evidence is DISTURBED)
    fake_ray.evidence = {}
    assert reproduce(tmp_path) == 0
    assert fake_ray.ran[2:] == [QUALITY]
    again = read_model(tmp_path / CLAIMS, Reproduction).claims
    assert not any("'Quality-first'" in claim.reason for claim in again)


def test_ctrl_c_keeps_the_live_runs_that_are_done(fake_ray: FakeRay, tmp_path: Path) -> None:
    fake_ray.stops_at = 2
    assert reproduce(tmp_path) == 130
    assert fake_ray.starts == fake_ray.ends == 1
    assert not (tmp_path / PAGE).exists()
    assert reproduce(tmp_path) == 0
    assert len(fake_ray.ran) == 3 and fake_ray.ran[1] == fake_ray.ran[2]
