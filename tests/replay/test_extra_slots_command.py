"""`agora extra-slots`: what it finds, keeps, draws and refuses."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.analysis.statistics import Interval
from experiments.campaign.task import Store
from experiments.commands.extra_slots import app
from experiments.studies import extra_slots as extra_slots_points
from experiments.studies import extra_slots as figure_of
from experiments.studies.extra_slots import AXES, FACTOR, points_of
from experiments.studies.model_settings import ReproduceScale
from parsync.model.extra_slots import ExtraSlotsSearch, find_extra_slots
from parsync.model.slot_settings import SlotSettings, SyncMode
from parsync.runtime.command_line import run
from tests.unit.slot_cells import TASKS_PER_S, small_settings

SEARCH = ExtraSlotsSearch(largest=2_000, first_step=50, resolution=40, confirmations=1)
PAPER_RATE = 10 * TASKS_PER_S  # at smoke scale a tenth arrives
SMALL = ["--rate", f"{PAPER_RATE:g}", "--factor", "2"]


@pytest.fixture(autouse=True)
def tiny_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundredth of the paper's cell at every scale."""

    def settings(scale: ReproduceScale, factor: int) -> SlotSettings:
        return small_settings(factor)

    monkeypatch.setattr(extra_slots_points, "default_settings", settings)
    monkeypatch.setattr(extra_slots_points, "search_at", lambda scale: SEARCH)


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def texts(**changes: str) -> dict[str, str | None]:
    """The values of the options, by default one of each but P."""
    plain = {"factor": "2", "rate": "4000", "gap": "0.5", "variance": "2"}
    given: dict[str, str | None] = {axis.option: "0" for axis in AXES}
    return {**given, **plain, "partitions": None, **changes}


def test_it_finds_what_the_search_itself_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(app, [*SMALL, "--gap", "1,0.5", "--seeds", "2", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    shown = " ".join(printed.out.split())
    assert "G (s)" in shown and "no interval: it takes 5 seeds" in shown
    found = rows(tmp_path / "extra_slots_gap.csv")
    assert [(row["gap_s"], row["seed"]) for row in found] == [
        ("0.5", "1"),
        ("0.5", "2"),
        ("1", "1"),
        ("1", "2"),
    ]
    # the search in the middle begins with nothing
    alone = find_extra_slots(small_settings(gap_s=1.0, seed=1), SEARCH)
    assert found[2]["extra_slots"] == str(alone.least)
    assert found[2]["slots"] == "2000" and found[2]["reason"] == ""
    assert (tmp_path / "extra_slots_gap.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "extra_slots_gap.svg").read_bytes().startswith(b"<?xml")


def test_the_same_command_continues_after_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*SMALL, "--gap", "0.5,1", "--out"]
    assert run(app, [*command, str(tmp_path / "at_once")]) == 0
    keep = Store.put

    def keep_and_stop(self: Store[None], *result: Any) -> None:
        keep(self, *result)
        raise KeyboardInterrupt

    with monkeypatch.context() as stops:
        stops.setattr(Store, "put", keep_and_stop)
        run(app, [*command, str(tmp_path / "stopped")])
    assert "searches that are done are kept" in capsys.readouterr().err
    assert len([*(tmp_path / "stopped" / "searches").iterdir()]) == 1
    assert run(app, [*command, str(tmp_path / "stopped")]) == 0
    assert "1 run," in capsys.readouterr().err
    results = [tmp_path / name / "extra_slots_gap.csv" for name in ("at_once", "stopped")]
    assert results[0].read_text() == results[1].read_text()


def test_points_without_an_answer_have_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    command = ["--sync", "diff_block", "--factor", "1", "--partitions", "2,4"]
    assert run(app, [*command, "--rate", "9000", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "P: 2: partitions: expected at least 4, one for each scheduler" in printed
    assert "P: 4: group 0: 4 schedulers decide at most 8800 tasks within the limit" in printed
    refused, hopeless = rows(tmp_path / "extra_slots_partitions.csv")
    assert (refused["seed"], refused["extra_slots"]) == ("", "")
    assert (hopeless["seed"], hopeless["extra_slots"]) == ("1", "")
    assert refused["reason"].startswith("partitions: ") and hopeless["reason"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--sync", "every_attempt"], "error: --sync every_attempt: expected one or more of "),
        (["--gap", "0"], "error: --gap 0: expected 1e-06 to 10000"),
        (["--gap", "0.5,x"], "error: --gap 0.5,x: expected numbers joined by commas"),
        (["--rate", "nan"], "error: --rate nan: expected 1 to "),
        (["--variance", "-1"], "error: --variance -1: expected 0 to 1000"),
        (["--factor", "0"], "error: --factor 0: expected 1 to 100"),
        (["--partitions", "2.5"], "error: --partitions 2.5: expected a whole number"),
        (["--latency", "-1"], "error: --latency -1: expected 0 to "),
        (["--service", "inf"], "error: --service inf: expected 0 to "),
        (["--gap", "1,2", "--rate", "1,2"], "error: --rate, --gap: expected only one of them "),
        (["--gap", "1e-6"], "error: --gap: no point can be simulated: gap_s: expected at least"),
        (
            ["--sync", "same_block", "--partitions", "2"],
            "error: --partitions: no point can be simulated: partitions: expected at least ",
        ),
        (["--scale", "big"], "error: Invalid value for '--scale'"),
        (["--seeds", "0"], "error: Invalid value for '--seeds'"),
        (["--out", "/dev/null/x"], "error: --out /dev/null/x: "),
    ],
)
def test_bad_values_are_one_line_that_names_the_option(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(app, arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith(says)
    assert not [*tmp_path.iterdir()]


def test_the_option_with_several_values_is_the_axis() -> None:
    for axis in AXES:
        values = "3,1,2"
        points = points_of("state_aligned", texts(**{axis.option: values}), ReproduceScale.SMOKE)
        assert points.axis == axis
        assert [point.value for point in points.points] == [1, 2, 3]
        assert len({run.key(1) for run in points.runs}) == len({run.label for run in points.runs})
        assert [getattr(one, axis.field) for one in points.settings] == [1, 2, 3]
    assert points_of("state_aligned", texts(), ReproduceScale.SMOKE).axis == FACTOR


def test_every_parameter_reaches_the_simulator() -> None:
    given = texts(
        rate="5000", gap="0.25", variance="3", partitions="40", latency="1.5", service="2"
    )
    (run_,) = points_of("same_block", given, ReproduceScale.PAPER).runs
    (phase,) = run_.settings.phases
    assert phase.rate_per_s == (5000,)
    assert run_.settings == replace(
        small_settings(2),
        phases=(phase,),
        sync=SyncMode.SAME_BLOCK,
        gap_s=0.25,
        score_variance=3.0,
        partitions=40,
        latency_s=1.5e-3,
        service_s=2e-6,
    )
    (smoke,) = points_of("same_block", given, ReproduceScale.SMOKE).runs
    assert smoke.settings.phases[0].rate_per_s == (500,)
    assert smoke.settings.service_s == pytest.approx(2e-5)
    assert smoke.settings.latency_s == 1.5e-3


def test_blocks_have_a_partition_for_each_scheduler_by_default() -> None:
    points = points_of("state_aligned,diff_block", texts(), ReproduceScale.SMOKE)
    assert [run.settings.partitions for run in points.runs] == [1, 8]


def test_a_plot_marks_values_without_an_answer_and_leaves_small_numbers_as_they_are() -> None:
    known = Interval(estimate=5.0, low=4.0, high=6.0, level=0.9375, n=5, varied=True)
    none = Interval(n=0, missing=2)
    figure = figure_of.draw("G (s)", {"A = 1": {0.3: known, 0.5: none}, "A = 2": {0.3: none}})
    (axes,) = figure.axes
    labels = axes.get_legend_handles_labels()[1]
    assert labels.count("no answer") == 1
    crosses = [np.asarray(one.get_xdata()) for one in axes.get_lines() if one.get_marker() == "x"]
    assert [values.tolist() for values in crosses] == [[0.5], [0.3]]
    assert axes.xaxis.get_major_formatter()(0.3) == "0.3"
