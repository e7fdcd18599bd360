"""A live figure of `agora reproduce` on Ray, on a tiny cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.analysis.model_files import read_model
from experiments.campaign import running_live
from experiments.campaign.task import Kept
from experiments.config.workload_config import WorkloadConfig
from experiments.papers import execution
from experiments.papers.chapter import FigureRun, PaperFigure
from experiments.papers.page import CLAIMS, Reproduction
from experiments.papers.registry import PAPERS, PARSYNC
from experiments.papers.runs import LiveFigures
from experiments.studies.model_settings import ReproduceScale

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]
TINY = {"machines": 20, "phase_s": 1.0, "mean_duration_s": 0.5, "batch_tasks": 10}


def shrunk(run: FigureRun) -> FigureRun:
    """The same run on 20 machines of 10 slots, in five phases of a second."""
    options = run.config.workload.options.model_copy(update=TINY)
    changes = {"workload": WorkloadConfig.of("synthetic", options), "settle_s": 0.2}
    return replace(run, config=run.config.model_copy(update=changes))


def test_a_live_figure_is_kept_with_its_validity_beside_virtual_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (figure,) = PARSYNC.chosen(["fig6_live"])
    assert isinstance(figure, PaperFigure)
    small = replace(figure, runs=lambda scale: tuple(map(shrunk, figure.runs(scale))))
    monkeypatch.setitem(PAPERS, "parsync", replace(PARSYNC, figures=(small,)))
    monkeypatch.setattr(running_live, "leave", lambda: None)  # other tests use this Ray
    options = execution.ReproduceOptions(
        "parsync", ["fig6_live"], ReproduceScale.SMOKE, 1, tmp_path
    )
    assert execution.start(options) == 0
    (path,) = (tmp_path / "live_runs").glob("*.json")
    kept = read_model(path, Kept[LiveFigures]).figures
    assert kept.evidence.validity.seconds >= 5
    (twin,) = (tmp_path / "runs").glob("*.json")
    assert twin.name == path.name
    totals = kept.figures.totals
    assert totals.committed == totals.submitted > 0
    found = read_model(tmp_path / CLAIMS, Reproduction)
    assert [claim.id for claim in found.claims] == [claim.id for claim in figure.claims]
    assert {claim.scale for claim in found.claims} == {"demo"}
    assert all(
        claim.verdict == "not_comparable" or not kept.evidence.why_not_valid()
        for claim in found.claims
    )
    assert (tmp_path / "figures" / "fig6_live.png").is_file()
