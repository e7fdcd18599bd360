"""The chapters of Sparrow: every figure finds what its claims and its drawing need, claims on
made-up runs, the jobs of the trace, and what happens where there is no trace."""

from __future__ import annotations

import gzip
import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.analysis.model_files import read_model
from experiments.config.flags import TRACES
from experiments.papers import execution
from experiments.papers.chapter import PaperFigure, Results
from experiments.papers.claims import judge
from experiments.papers.page import CLAIMS, PAGE, Reproduction
from experiments.papers.registry import PAPERS, SPARROW
from experiments.papers.sparrow import figures, google
from experiments.papers.sparrow.figures import at_load, at_ratio, equal, independent
from experiments.papers.sparrow.google import drawn, sample_jobs, sample_run
from experiments.papers.sparrow.runs import JobsRun
from experiments.papers.sparrow.settings import (
    BATCH,
    CENTRAL,
    LATE,
    PER_TASK,
    PROTOCOLS,
    RANDOM,
    SimulationRun,
    SingleTaskRun,
    lost_share,
    simulation_run,
    single_task_run,
    sweep_run,
)
from experiments.studies.model_settings import ReproduceScale
from shared_state.errors import AgoraError
from tests.fixtures.papers.claims import means, values
from tests.unit.test_papers import complete

SMOKE, PAPER = ReproduceScale.SMOKE, ReproduceScale.PAPER
FOLDER = Path(os.environ.get(TRACES) or Path(__file__).resolve().parents[3] / "shared" / "traces")
PART_0 = FOLDER / "google2011" / "task_events" / "part-00000-of-00500.csv.gz"


def numbers(run: JobsRun) -> dict[str, Any]:
    """Numbers of a run that mean nothing, by their names."""
    if isinstance(run, google.SampleRun):
        names = [f"{kind}_p{one}" for kind in ("short", "long") for one in google.PERCENTILES]
        names += ["asked", "empty", "short_ratio"]
    elif isinstance(run, SingleTaskRun):
        names = ["mean", "half_width"]
    elif isinstance(run, SimulationRun):
        names = ["response_ms", "longest_ms", "asked", "empty"]
    else:
        names = ["response_ms", "messages", "lost"]
    return {name: 1.0 + np.arange(2.0) for name in names}


@pytest.mark.parametrize("figure", SPARROW.figures, ids=lambda figure: figure.id)
@pytest.mark.parametrize("scale", ReproduceScale)
def test_a_figure_has_all_that_its_claims_and_its_drawing_need(
    figure: PaperFigure, scale: ReproduceScale, tmp_path: Path
) -> None:
    runs = figure.runs(scale)
    found = {run.label: numbers(run) for run in runs if isinstance(run, JobsRun)}
    complete(figure, Results(runs, (found,) * 2, {}), tmp_path)


@pytest.mark.parametrize(
    "run",
    [
        single_task_run("a", 0.5, 2, "late", machines=20, length=(2, 10, 2)),
        simulation_run("a", CENTRAL, 0.8, part=100, draws=2),
        simulation_run("a", LATE, 0.8, part=100, draws=2, equally_long=True),
        sweep_run("a", 1.5, 0.8, 100, 200),
    ],
    ids=lambda run: type(run).__name__,
)
def test_a_run_measures_what_its_claims_read_and_no_seed_repeats_a_draw(run: JobsRun) -> None:
    first, second = (run.measure(seed, None) for seed in (1, 2))
    assert first.keys() == numbers(run).keys()
    name = next(iter(first))
    both = np.concatenate([first[name], second[name]])
    assert len(set(both.tolist())) == 2 * run.draws
    alone = replace(run, draws=1).measure(run.draws + 1, None)
    assert alone[name] == second[name][:1], "the draws go on where those of the seed before ended"
    assert run.key(1) != replace(run, draws=3).key(1) != replace(run, hop_s=0.1).key(1)


def test_sparrows_simulations_are_ordered_as_their_information_is() -> None:
    """The central queue knows the cell, late binding waits for the facts, the others guess."""
    found = [
        simulation_run(name, name, 0.8, part=40, draws=3, equally_long=True).measure(1, None)
        for name in (RANDOM, PER_TASK, BATCH, LATE, CENTRAL)
    ]
    means = [float(one["response_ms"].mean()) for one in found]
    assert means == sorted(means, reverse=True)
    assert all((one["response_ms"] >= one["longest_ms"]).all() for one in found)
    assert len({float(one["longest_ms"][0]) for one in found}) == 1, "the same jobs"


def test_the_time_lost_to_questions_is_that_of_the_formula() -> None:
    for d, task_ms in ((1.0, 20), (3.0, 10)):
        found = sweep_run("a", d, 0.5, task_ms, 400, cancellation=False).measure(1, None)
        assert found["lost"] == pytest.approx(lost_share(d, task_ms), rel=0.01)
        assert found["messages"] == pytest.approx(3 * d, rel=0.01)
    assert lost_share(2, 8) == 0.2


def test_values_of_claims_on_made_up_simulations() -> None:
    runs = {
        equal(name): means(response_ms=ms)
        for name, ms in ((RANDOM, 480), (PER_TASK, 160), (BATCH, 120), (LATE, 108), (CENTRAL, 80))
    }
    runs[equal(LATE)] = {"response_ms": np.array([105.0, 108.0])}
    for load, ms in ((0.5, 520.0), (0.8, 500.0), (0.9, 520.0)):
        runs[independent(LATE, load)] = means(response_ms=ms, longest_ms=500.0)
    found = values(SPARROW, "simulation", runs)
    assert found["published_random"] == 3 and found["published_per_task"] == 2
    assert found["published_batch"] == 0.75
    assert found["order"] == pytest.approx(120 / 106.5)
    assert found["equal_late"] == 0, "107.4 is within 105 to 108"
    assert found["equal_central"] == pytest.approx(22 / 102)
    assert found["equal_per_task"] == pytest.approx(35 / 195)
    assert found["independent_late"] == pytest.approx(500 / 521.1)
    assert found["longest"] == pytest.approx(500 / 518.738, rel=1e-5)


def test_values_of_claims_beside_closed_forms() -> None:
    runs: dict[str, dict[str, Any]] = {
        at_load("late", 2, load): means(mean=ratio * form, half_width=0.01)
        for load, ratio, form in ((0.5, 1.01, 1.1507), (0.8, 0.98, 1.5964), (0.9, 1.0, 2.0503))
    }
    assert values(SPARROW, "closed_forms", runs)["late_d2"] == pytest.approx(0.98, abs=1e-4)
    several = {"mean": np.array([9.0, 11.0]), "half_width": np.array([0.3, 0.4])}
    assert figures.half_width(several) == pytest.approx(0.025), "of the mean of both"


def test_values_of_claims_over_the_probe_ratio() -> None:
    runs = {
        at_ratio(d, load): means(response_ms=ms)
        for load in (0.8, 0.9)
        for d, ms in ((1.0, 200.0), (1.05, 150.0), (2.0, 105.0 + 10 * (load > 0.8)), (3.0, 104.0))
    }
    found = values(SPARROW, "probe_ratio", runs)
    assert found["saturates"] == pytest.approx(85 / 96)
    assert found["recommended"] == pytest.approx(115 / 150)
    assert found["messages_cost"] == pytest.approx(104 / 115)


def test_values_of_claims_about_the_sample() -> None:
    label, without = drawn(0.9, 2, "with replacement"), drawn(0.9, 2, "without")
    names = [f"short_p{percent}" for percent in (50, 90, 99)]
    with_it, without_it = (700.0, 1536.0, 2180.0), (662.5, 1396.0, 2000.0)
    runs = {
        label: means(asked=1.999, **dict(zip(names, with_it, strict=True))),
        without: means(**dict(zip(names, without_it, strict=True))),
    }
    found = values(SPARROW, "google", runs)
    assert found["short_p50_load_90"] == pytest.approx(700 / 711.5)
    assert found["short_p90_load_90"] == 1
    assert found["without_replacement"] == pytest.approx(2000 / 2077.5)
    assert found["replacement_costs"] == pytest.approx(1 - 662.5 / 700)


def test_what_is_only_recalled_or_of_unknown_setting_is_never_judged() -> None:
    reasons = {
        claim.id: claim.incomparable for figure in SPARROW.figures for claim in figure.claims
    }
    for claim in ("simulation.published_random", "probe_ratio.saturates", "ideal.within_5_percent"):
        assert reasons[claim]
    [figure] = SPARROW.chosen(["ideal"])
    runs = {run.label: means(response_ms=100.0, longest_ms=100.0) for run in figure.runs(PAPER)}
    for claim in figure.claims:
        assert judge(claim, [runs], True).verdict == "not_comparable"


# The sample of the trace

ROWS = (
    # time in us, job, task, event: 0 submit, 1 schedule, 2 evict, 4 finish
    (0, 1, 0, 0),  # before the trace begins
    (600_000_000, 1, 0, 1),
    (601_000_000, 7, 1, 0),
    (601_000_000, 7, 0, 0),
    (601_500_000, 3, 0, 0),
    (602_000_000, 7, 0, 1),
    (602_000_000, 7, 1, 1),
    (602_000_000, 3, 0, 1),
    (603_000_000, 1, 0, 4),
    (604_000_001, 7, 0, 2),  # evicted after 2.000001 s: its first attempt counts
    (604_000_001, 7, 0, 0),
    (605_000_000, 7, 0, 1),
    (607_000_000, 7, 1, 4),
    (608_000_000, 5, 0, 0),
    (608_000_000, 5, 0, 1),  # has not ended when the part ends
    (609_000_000, 7, 0, 4),
    (609_000_000, 3, 0, 4),
)


def trace_in(folder: Path) -> None:
    path = folder / "google2011" / "task_events" / "part-00000-of-00500.csv.gz"
    path.parent.mkdir(parents=True)
    lines = [
        f"{time},,{job},{task},,{event},u,0,0,0.1,0.1,0.1,0" for time, job, task, event in ROWS
    ]
    path.write_bytes(gzip.compress("\n".join((*lines, "")).encode()))


def test_jobs_have_the_tasks_whose_first_attempt_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace_in(tmp_path)
    monkeypatch.setenv(TRACES, str(tmp_path))
    jobs = sample_jobs(0.9)
    found = {tuple(one.tolist()) for one in np.split(jobs.duration_s, np.cumsum(jobs.sizes)[:-1])}
    assert found == {(3, 5), (7,)}, "jobs 7 and 3; task 0 of job 7 was evicted after 2.000001 s"
    assert (np.diff(jobs.submit_us) > 0).all() and len(jobs.sizes) == google.JOBS
    span_s = jobs.submit_us[-1] / 1e6
    assert jobs.duration_s.sum() / (google.MACHINES * span_s) == pytest.approx(0.9, rel=0.1)


@pytest.mark.trace
@pytest.mark.skipif(not PART_0.is_file(), reason=f"no {PART_0}: set {TRACES}")
@pytest.mark.parametrize(("load", "digest"), [(0.5, "58b39525571ecc60"), (0.9, "4ec6abb4102249bf")])
def test_the_jobs_are_those_that_the_public_simulator_read(
    load: float, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte: submission in s, tasks, mean run time, run times."""
    monkeypatch.setenv(TRACES, str(FOLDER))
    jobs = sample_jobs(load)
    tasks = np.split(jobs.duration_s, np.cumsum(jobs.sizes)[:-1])
    found = hashlib.sha256()
    for at_us, mean_s, of in zip(jobs.submit_us, jobs.mean_s(), tasks, strict=True):
        numbers = " ".join(map(str, of.tolist()))
        found.update(f"{at_us / 1e6:.6f} {len(of)} {mean_s} {numbers}\n".encode())
    assert found.hexdigest().startswith(digest)


@pytest.mark.parametrize("folder", [None, "empty"])
def test_without_a_trace_its_figure_is_left_out_or_refused(
    folder: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if folder is None:
        monkeypatch.delenv(TRACES, raising=False)
    else:
        monkeypatch.setenv(TRACES, str(tmp_path))
    possible, left_out = SPARROW.possible([])
    assert [figure.id for figure in possible] == [*figures.CHAPTER.figures]
    assert list(left_out) == ["google"]
    assert (TRACES if folder is None else str(tmp_path)) in left_out["google"]
    with pytest.raises(
        AgoraError, match=r"FIGURE 'google': It needs the Google trace of 2011"
    ) as e:
        SPARROW.possible(["google"])
    assert "\n" not in str(e.value)
    with pytest.raises(AgoraError, match="It needs the Google trace"):
        sample_jobs(0.5)


@pytest.mark.usefixtures("one_process")
def test_the_command_says_what_is_left_out_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(TRACES, raising=False)
    [ideal, sample] = SPARROW.chosen(["ideal", "google"])
    small = tuple(
        replace(run, machines=100, jobs=40) if isinstance(run, SimulationRun) else run
        for run in ideal.runs(SMOKE)
    )
    tiny = replace(SPARROW, figures=(replace(ideal, runs=lambda scale: small), sample))
    monkeypatch.setitem(PAPERS, "sparrow", tiny)
    options = execution.ReproduceOptions("sparrow", [], SMOKE, 1, tmp_path)
    assert execution.start(options) == 0
    reason = google.why_no_trace()
    assert f"google is left out. {reason}" in capsys.readouterr().err
    found = read_model(tmp_path / CLAIMS, Reproduction)
    assert (found.figures, found.left_out) == (["ideal"], {"google": reason})
    assert reason in (tmp_path / PAGE).read_text("utf-8")


def test_the_sample_is_probed_as_the_simulator_does() -> None:
    run = sample_run("a", 0.9, 2, True, 1)
    options = run.group.protocol.model_dump()
    assert (options["with_replacement"], options["cancellation"]) == (True, False)
    assert run.hop_s == 0.0005
    assert PROTOCOLS[LATE].protocol.model_dump()["cancellation"] is False
