"""`agora model`: what it prints and draws, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from experiments.commands.model import app
from experiments.studies import conflict_model
from experiments.studies.conflict_model import RoundSetting, curves, table_variations
from parsync.model.equations import expected_conflicts
from parsync.runtime.command_line import run

PAPER = RoundSetting(schedulers=10, tasks=2000, slots=200_000, load_percent=90, score_variance=2.0)
EDGES = [
    PAPER,
    RoundSetting(1, 1, 1, 0.0, 2.0),
    RoundSetting(3, 20_000, 200_000, 90.0, 0.0),  # a scheduler takes all idle slots
    RoundSetting(7, 3, 1001, 33.3, 8.0),
    RoundSetting(10**6, 10**6, 10**9, 99.0, 1000.0),
]


def rows(text: str) -> dict[str, list[str]]:
    """The cells of each row of the table, by its first cell."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return {line[0]: line[1:] for line in lines if len(line) > 1}


def test_it_prints_the_equations_in_the_paper_s_setting(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(app, []) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    table = rows(text)
    assert table["A = 1"][:4] == ["10", "2,000", "20,000", "6,974"]
    assert table["A = 8"][:3] == ["80", "250", "20,000"]
    assert "7,358  36.8 %" in text  # the limit
    assert "225 ms to 275 ms" in " ".join(text.split())
    assert "by score" in text


def test_equal_slots_have_one_column_of_conflicts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(app, ["--variance", "0", "--factor", "1,1.5"]) == 0
    text = capsys.readouterr().out
    assert "by score" not in text and "exp(score)" not in text
    assert text.count("A = 1.5 ") == 1 and "A = 2" not in text


@pytest.mark.parametrize("name", ["conflicts.png", "conflicts.svg"])
def test_it_draws_a_file_of_the_suffix_s_format(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    assert run(app, ["--out", str(out)]) == 0
    first = out.read_bytes()
    assert first.startswith(b"\x89PNG" if out.suffix == ".png" else b"<?xml")
    assert run(app, ["--out", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
    out.unlink()
    assert run(app, ["--out", str(out)]) == 0
    assert out.read_bytes() == first  # equal settings give equal files
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--schedulers", "0"], "error: Invalid value for '--schedulers'"),
        (["--tasks", "20001"], "error: --tasks 20001: expected at most the 20,000 idle slots"),
        (["--load", "100"], "error: --tasks 2000: expected at most the 0 idle slots"),
        (["--load", "nan"], "error: Invalid value for '--load'"),
        (["--factor", "0.5"], "error: --factor 0.5: expected at least 1"),
        (["--factor", "nan"], "error: --factor nan: expected at least 1"),
        (["--factor", "1,x"], "error: --factor 1,x: expected numbers joined by commas"),
        (["--factor", "1.25"], "error: --factor 1.25: expected a whole number of schedulers"),
        (["--variance", "-1"], "error: Invalid value for '--variance'"),
        (["--gap", "inf"], "error: Invalid value for '--gap'"),
        (["--out", "x.pdf"], "error: --out x.pdf: expected a name ending in .png, .svg"),
    ],
)
def test_bad_values_are_one_line_that_names_the_option(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(app, arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith(says)


def test_a_folder_that_does_not_exist_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "gone" / "x.svg"
    assert run(app, ["--out", str(out)]) == 2
    assert f"error: --out {out}: cannot write it: " in capsys.readouterr().err


@pytest.mark.parametrize("setting", EDGES)
def test_every_value_of_the_table_and_the_curves_can_be_computed(setting: RoundSetting) -> None:
    factors = (1.0, 2.0)
    for variation in [*table_variations(setting, factors), *curves(setting, factors)]:
        conflicts, weighted = variation.conflicts(), variation.weighted_conflicts()
        assert len(conflicts) == len(weighted) == len(variation.values)
        assert all(one.tasks <= one.idle_slots for one in variation.settings)
        claims = variation.claims()
        assert ((conflicts >= 0) & (conflicts <= claims)).all()
        if setting.score_variance == 0:
            assert weighted == pytest.approx(conflicts, rel=1e-9)
        if variation.limit is not None:
            assert conflicts.max() <= variation.limit.conflicts * (1 + 1e-9)
            assert weighted.max() <= variation.limit.weighted_conflicts * (1 + 1e-9)


def test_the_setting_itself_is_a_row_of_each_part_of_the_table() -> None:
    own = float(expected_conflicts(10, 2000, 20_000))
    for variation in table_variations(PAPER, (1.0, 4.0)):
        assert variation.settings.count(PAPER) == 1
        index = variation.settings.index(PAPER)
        assert variation.values[index] == variation.own_value
        assert float(variation.conflicts()[index]) == own


def test_lines_of_the_plot_pass_through_the_setting() -> None:
    variations = curves(PAPER, (1.0,))
    figure = conflict_model.draw(PAPER, variations)
    assert len(figure.axes) == 4
    for axes, variation in zip(figure.axes, variations, strict=True):
        labels = [str(line.get_label()) for line in axes.get_lines()]
        assert "slots all alike (Eq. 2)" in labels and "drawn by score, V = 2" in labels
        dots = [line for line in axes.get_lines() if line.get_marker() == "o"]
        drawn = [variation.conflicts(), variation.weighted_conflicts()]
        for dot, conflicts in zip(dots, drawn, strict=True):
            x, y = float(dot.get_xdata()[0]), float(dot.get_ydata()[0])  # type: ignore[index]
            assert y == pytest.approx(np.interp(x, variation.values, conflicts), rel=0.01)
