"""Runs that keep their MapReduce jobs: what they keep, that it survives a stop, and the command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.analysis.model_files import read_model
from experiments.config.workload_config import WorkloadConfig
from experiments.interruption import Interruption
from experiments.papers import execution
from experiments.papers.chapter import FigureRun, PaperFigure
from experiments.papers.omega.mapreduce import (
    BUSY,
    FIGURES,
    MAX_PARALLELISM,
    at_policy,
    mapreduce_runs,
)
from experiments.papers.page import CLAIMS, PAGE, Reproduction
from experiments.papers.registry import OMEGA, PAPERS
from experiments.papers.runs import PlatformRuns
from experiments.studies.model_settings import ReproduceScale
from experiments.workloads.service_batch import MapReduceJobClass

TINY = {
    "machines": 40,
    "duration_s": 120.0,
    "mapreduce": MapReduceJobClass(interarrival_s=10.0, workers=(3, 8), map_s=3.0, reduce_s=3.0),
}


def shrunk(run: FigureRun) -> FigureRun:
    """The same run on 40 machines for 120 s."""
    options = run.config.workload.options.model_copy(update=TINY)
    workload = WorkloadConfig.of("service_batch", options)
    config = run.config.model_copy(update={"workload": workload, "drain_s": 600.0})
    return replace(run, config=config)


RUNS = {run.label: shrunk(run) for run in mapreduce_runs(ReproduceScale.SMOKE)}
EXTRA = (RUNS[at_policy(BUSY, MAX_PARALLELISM)],)
SEEDS = (1, 2)


def run_missing(folder: Path) -> int:
    """Run what a folder lacks. How many runs that were."""
    runs = PlatformRuns(folder)
    work = runs.missing(EXTRA, SEEDS)
    runs.run(work, Interruption(), lambda: None)
    return len(work)


@pytest.mark.usefixtures("one_process")
def test_kept_jobs_survive_a_stop_and_are_made_again_if_torn(tmp_path: Path) -> None:
    assert run_missing(tmp_path) == 2
    kept = sorted(tmp_path.glob("*-mapreduce.npz"))
    assert len(kept) == len(SEEDS)
    runs = PlatformRuns(tmp_path)
    assert not runs.missing(EXTRA, SEEDS)
    before = runs.mapreduce_results(EXTRA, SEEDS)
    kept[0].write_bytes(kept[0].read_bytes()[:-100])
    kept[1].unlink()
    assert run_missing(tmp_path) == 2
    runs = PlatformRuns(tmp_path)
    assert not runs.missing(EXTRA, SEEDS)
    after = runs.mapreduce_results(EXTRA, SEEDS)
    for one, other in zip(before.seeds, after.seeds, strict=True):
        (arrays,), (again,) = one.values(), other.values()
        assert all(np.array_equal(arrays[name], again[name]) for name in arrays)


@pytest.fixture
def small_paper(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[PaperFigure, ...]]:
    """Figs. 15 and 16 on small cells, in place of all figures."""
    figures = tuple(
        replace(figure, runs=lambda scale: tuple(map(shrunk, mapreduce_runs(scale))))
        for figure in FIGURES
    )
    monkeypatch.setitem(PAPERS, "omega", replace(OMEGA, figures=figures))
    yield figures


@pytest.mark.usefixtures("one_process")
def test_the_command_judges_the_claims_of_both_figures(
    small_paper: tuple[PaperFigure, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = execution.ReproduceOptions("omega", [], ReproduceScale.SMOKE, 1, tmp_path / "out")
    assert execution.start(options) == 0
    assert "2 figures at smoke scale: 8 runs" in capsys.readouterr().err
    found = read_model(tmp_path / "out" / CLAIMS, Reproduction)
    expected = [claim.id for figure in small_paper for claim in figure.claims]
    assert [claim.id for claim in found.claims] == expected
    assert all(claim.ours.estimate is not None for claim in found.claims)
    page = (tmp_path / "out" / PAGE).read_text("utf-8")
    assert page.count("<svg") == 2
    assert page.count("Causes of conflicts") == 2
    assert execution.start(options) == 0
    assert "all runs are done already" in capsys.readouterr().err
