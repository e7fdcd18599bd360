"""Names as people give them: other scripts, quotes, markup of several kinds, and very long ones."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import warnings
from pathlib import Path

import pytest

from experiments.analysis.run_directory import read_summary
from experiments.analysis.summary import LONGEST_SLUG, slugs
from experiments.commands.compare import app as compare
from experiments.commands.run import app
from experiments.figures.style import LONGEST_LABEL, is_drawable, label
from tests.fixtures.commands import AGORA, exit_status
from tests.fixtures.run_toml import arm_toml
from tests.fixtures.small_run import SMALL_RUN

ROOT = Path(__file__).parents[2]

NAMES = (
    "調度 ParSync جدولة 🚀🧑‍🚀",
    r"costs $5, not $\frac{",
    "_hidden",
    "<script>alert(1)</script> & <b>",
    """say "hi" or 'bye' | [/red] :smile: [bold] %s {0} \\n""",
    "x" * 200,
)


def toml(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def configuration() -> str:
    group = arm_toml("NAME", group="NAME", count=2, gap_s=0.05, partitions=4)
    arms = "".join(group.replace('"NAME"', toml(name)) for name in NAMES)
    return f"""
name = {toml(NAMES[0])}
seeds = 1
settle_s = 0.02
runtime = "virtual"
[workload]
kind = "synthetic"
machines = 20
mean_duration_s = 0.1
batch_tasks = 10
phase_s = 0.1
load_percent = [60]
{arms}"""


def test_a_run_with_odd_names_from_its_file_to_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    (tmp_path / "odd.toml").write_text(configuration(), "utf-8")
    run = tmp_path / "[/run] :smile:"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status = exit_status(app, "--config", tmp_path / "odd.toml", "--out", run)
    said = capsys.readouterr()
    assert status == 0, said.err
    assert f"report: {run / 'report.html'}" in said.err
    summary = read_summary(run)
    assert [arm.name for arm in summary.arms] == list(NAMES)
    for name in NAMES:
        assert name in said.err
    page = (run / "report.html").read_text("utf-8")
    assert "<script" not in page and "<b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &lt;b&gt;" in page
    figure = page[page.index('<figure id="trade_off">') : page.index("</figure>")]
    # the first is drawn by the browser
    for name in (*NAMES[:3], "xxx…xxx"):
        assert name in figure
    assert (run / "figures" / "trade_off.png").stat().st_size > 1000
    assert (run / "config.toml").read_text("utf-8").count(toml(NAMES[4])) == 2

    for suffix in ("html", "md", "csv"):
        assert exit_status(compare, run, "--out", tmp_path / f"table.{suffix}") == 0
        out = capsys.readouterr().out
        assert all(name[:100] in out for name in NAMES)
    assert "<script" not in (tmp_path / "table.html").read_text("utf-8")
    table = (tmp_path / "table.md").read_text("utf-8").splitlines()
    columns = {len(re.findall(r"(?<!\\)\|", line)) for line in table if line.startswith("|")}
    assert len(columns) == 1
    assert not any(re.search(r"(?<!\\)<(?!br>)", line) for line in table)
    with (tmp_path / "table.csv").open(encoding="utf-8") as file:
        assert {row["arm"] for row in csv.DictReader(file)} == set(NAMES)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "at least 1 character"),
        (" \\t", "expected a name, got only spaces"),
        ("two\\nlines", r"without control characters, got U\+000A"),
        ("\\u001b[31mred", r"U\+001B"),
        ("x" * 201, "at most 200 characters"),
    ],
)
@pytest.mark.parametrize("where", ["arm", "group"])
def test_names_that_would_break_a_line_or_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, says: str, where: str
) -> None:
    old = f"[[{'arms' if where == 'arm' else 'arms.groups'}]]\nname = "
    text = configuration().replace(old + toml(NAMES[1]), f'{old}"{name}"')
    assert text != configuration()
    (tmp_path / "odd.toml").write_text(text, "utf-8")
    status = exit_status(app, "--config", tmp_path / "odd.toml", "--out", tmp_path / "run")
    (line,) = capsys.readouterr().err.splitlines()
    assert status == 2 and not (tmp_path / "run").exists()
    assert re.search(rf"odd\.toml: arms\.1\.(groups\.0\.)?name: .*{says}", line), line


def test_labels_are_short_and_keep_both_ends() -> None:
    assert label("a name") == "a name"
    name = "begins so " + "-" * 100 + " ends so"
    assert len(label(name)) == LONGEST_LABEL
    assert label(name).startswith("begins so ") and label(name).endswith(" ends so")
    assert label("_x") == " _x"


def test_what_matplotlib_can_draw() -> None:
    assert is_drawable("ParSync α ≥ 95 % naïve Привет")
    assert not any(is_drawable(name) for name in ("調", "🚀", "جدولة", "שלום", "हिन्दी"))


def test_folders_of_long_names_are_short_and_distinct() -> None:
    names = ["x" * 200 + end for end in "ab"]
    assert slugs(names) == ["x" * LONGEST_SLUG, "x" * LONGEST_SLUG + "-2"]


def test_names_that_are_no_text_are_one_line_or_work(tmp_path: Path) -> None:
    """Bytes that are not UTF-8: tables cannot be written there, but configurations are read."""
    odd = tmp_path / os.fsdecode(b"odd\xff")
    odd.mkdir()
    (odd / "run.toml").write_text(SMALL_RUN)

    def agora(*arguments: object) -> tuple[int, list[str]]:
        done = subprocess.run(
            [*AGORA, *map(os.fspath, map(str, arguments))],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        return done.returncode, done.stderr.splitlines()

    status, lines = agora("run", "--config", odd / "run.toml", "--out", odd / "run")
    assert status == 2 and len(lines) == 1 and lines[0].endswith("its full path is not UTF-8 text")
    assert not (odd / "run").exists()
    run = tmp_path / "run"
    status, _ = agora("run", "--config", odd / "run.toml", "--seeds", 1, "--out", run)
    assert status == 0
    run.rename(odd / "run")
    for command in ("replay", "report", "explain"):
        status, lines = agora(command, odd / "run")
        assert status in (0, 2) and not any("Traceback" in line for line in lines), lines
