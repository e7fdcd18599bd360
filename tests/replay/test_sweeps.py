"""`agora sweep` as a user calls it: the example, a sweep that is stopped and gone on with, seeds
until a difference is known, and what is refused."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from experiments.analysis.model_files import read_model
from experiments.campaign.running import seed_figures
from experiments.commands.sweep import app
from experiments.studies.sweeps import page as plots
from experiments.studies.sweeps.looks import LOOKS
from experiments.studies.sweeps.page import write_page
from experiments.studies.sweeps.result import SweepSummary, SweptParameter
from experiments.studies.sweeps.sweep_file import read_sweep
from experiments.studies.sweeps.wording import MOST_COLUMNS, metric_tables
from tests.fixtures.commands import exit_status, in_one_process
from tests.fixtures.run_toml import arm_toml, workload_toml
from tests.fixtures.stopping import ROOT, stop_when
from tests.unit.figure_checks import repeated_labels

EXAMPLE = ROOT / "examples" / "sweep.toml"

SMALL = """
settle_s = 0.1

[sweep]
name = "Small & <quick>"
seeds = {seeds}

[sweep.grid]
arms."*".groups.greedy.protocol.gap_s = [0.1, 0.4]
"""


def small(folder: Path, seeds: int = 2, phase_s: float = 0.5, more: str = "") -> Path:
    path = folder / "small.toml"
    counted = 'decision = { clock = "counted" }'
    arms = arm_toml("one", more=counted) + arm_toml("two", sync="state_aligned", more=counted)
    workload = workload_toml(40, phase_s, "start = 'cold'\nload_percent = [80]\n" + more)
    path.write_text(SMALL.format(seeds=seeds) + workload + arms)
    return path


def summary_of(folder: Path) -> SweepSummary:
    return read_model(folder / "sweep.json", SweepSummary)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sweep") / "example"
    with in_one_process():
        assert exit_status(app, EXAMPLE, "--out", out) == 0
    return out


def test_the_example_s_table_has_a_row_for_each_run(example: Path) -> None:
    table = pq.read_table(example / "points.parquet")
    rows = table.to_pylist()
    places = [(row["combination"], row["arm"], row["seed"]) for row in rows]
    assert len(set(places)) == len(rows) == 6 * 3 * 3
    gap = 'arms."*".groups.greedy.protocol.gap_s'
    assert {(row["workload.load_percent"], row[gap]) for row in rows} == {
        (load, gap_s) for load in (50, 85) for gap_s in (0.1, 0.2, 0.4)
    }
    sweep = read_sweep(EXAMPLE, {})
    for row in rows[::13]:
        config = sweep.combinations[row["combination"]].config
        options = config.workload.options.model_dump()
        assert options["load_percent"] == (row["workload.load_percent"],)
        (arm,) = (arm for arm in config.arms if arm.name == row["arm"])
        assert arm.gap_s == row[gap]
        figures = seed_figures(config, arm, row["seed"])
        assert (row["digest"], row["workload_digest"]) == (figures.digest, figures.workload)
        assert row["delay_mean_us"] == figures.overall.value("delay_mean_us")
        assert row["conflict_rate"] == figures.overall.value("conflict_rate")


def test_every_column_says_what_it_means(example: Path) -> None:
    schema = pq.read_schema(example / "points.parquet")
    for field in schema:
        assert field.metadata[b"unit"] and field.metadata[b"meaning"], field.name
    described = json.loads(schema.metadata[b"columns"])
    assert list(described) == schema.names
    assert described["delay_mean_us"]["unit"] == "µs"
    assert described["conflict_rate"]["unit"] == "0 to 1"


def test_the_example_s_summary_compares_arms_of_one_clock_class(example: Path) -> None:
    summary = summary_of(example)
    assert summary.sets() == [["ParSync", "StateSync"], ["One scheduler at its own speed"]]
    assert summary.runs == 54 and not summary.partial
    rows = pq.read_table(example / "points.parquet").to_pylist()
    for number, one in enumerate(summary.combinations):
        assert one.seeds == [1, 2, 3]
        by_name = {arm.name: arm for arm in one.arms}
        (compared,) = by_name["ParSync"].comparisons
        assert compared.baseline == "StateSync"
        assert by_name["StateSync"].comparisons == []
        assert by_name["One scheduler at its own speed"].comparisons == []
        rates = {
            name: [
                row["conflict_rate"]
                for row in rows
                if row["combination"] == number and row["arm"] == name
            ]
            for name in by_name
        }
        for name, arm in by_name.items():
            assert arm.figures["conflict_rate"].estimate == sorted(rates[name])[1]
        pairs = zip(rates["ParSync"], rates["StateSync"], strict=True)
        median = sorted(a - b for a, b in pairs)[1]
        assert compared.differences["conflict_rate"].estimate == pytest.approx(median)


def test_panels_of_a_plot_have_equal_axes(example: Path) -> None:
    summary = summary_of(example)
    shown = plots.panels(summary)
    assert len(shown) > 1
    for arms in summary.sets():
        for key in ("delay_mean_us", "delay_p99_us", "conflict_rate", "decisions_per_s"):
            figure = plots.draw(summary, summary.quantity(key), arms, shown, by_browser=False)
            assert figure is not None and len(figure.axes) == len(shown)
            assert len({axes.get_ylim() for axes in figure.axes}) == 1, key
            assert len({axes.get_xlim() for axes in figure.axes}) == 1, key
            assert not repeated_labels(figure), key


def test_the_terminal_numbers_combinations_of_many_parameters(example: Path) -> None:
    summary = summary_of(example)
    narrow = Console(width=80, file=StringIO())
    narrow.print(metric_tables(summary))
    few = narrow.file.getvalue()
    assert "1: " not in few and all(one.label in few for one in summary.parameters)
    longest = SweptParameter(path="workload.x", label="x" * 60, values=[7], axis=9)
    parameters = [*summary.parameters, longest]
    assert len(parameters) > MOST_COLUMNS
    combinations = [
        one.model_copy(update={"values": [*one.values, 7]}) for one in summary.combinations
    ]
    wide = summary.model_copy(update={"parameters": parameters, "combinations": combinations})
    narrow = Console(width=80, file=StringIO())
    narrow.print(metric_tables(wide))
    many = narrow.file.getvalue()
    assert f"{longest.label} = 7" in many.replace("\n", " ") and "…" not in many
    assert [f"\n{number}: " in f"\n{many}" for number in range(1, 8)] == [True] * 6 + [False]


def test_the_page_loads_nothing_and_is_made_again_as_it_was(example: Path) -> None:
    path = example / "sweep.html"
    text = path.read_text("utf-8")
    assert not re.search(r"""(src|href)=["'](?!#)""", text) and "@import" not in text
    for words in ("Staleness and load", "Equal capacity, A = ", "Own speed, 1 core", "gap_s"):
        assert words in text
    assert text.count("<svg") == len(list((example / "figures").glob("*.svg"))) > 8
    assert write_page(example) == path and path.read_text("utf-8") == text


def kept(folder: Path) -> dict[str, tuple[int, int]]:
    """The kept points of a sweep, with what tells whether one was written again."""
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in (folder / "points").glob("*.json")
    }


def some_kept(out: Path) -> Callable[[], bool]:
    return lambda: len(list((out / "points").glob("*.json"))) >= 3


@pytest.mark.usefixtures("one_plot")
@pytest.mark.parametrize(
    ("number", "status", "last"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGKILL, -9, None)],
)
def test_a_stopped_sweep_goes_on_and_ends_as_if_it_had_not_been(
    tmp_path: Path, number: int, status: int, last: str | None
) -> None:
    file, out, whole = small(tmp_path, seeds=6, phase_s=1.0), tmp_path / "out", tmp_path / "whole"
    stopped = stop_when(some_kept(out), "experiments.sweep", [file, "--out", out], number)
    assert stopped.status == status and stopped.left == []
    before = kept(out)
    assert 3 <= len(before) < 24
    if last is not None:
        assert stopped.err.splitlines()[-1] == last and "Traceback" not in stopped.err
        summary = summary_of(out)
        assert summary.partial == "interrupted" and summary.runs == len(before)
        assert "Partial: interrupted" in (out / "sweep.html").read_text("utf-8")
    with in_one_process():  # the points that are kept come from others
        assert exit_status(app, file, "--out", out) == 0
        after = kept(out)
        assert len(after) == 24 and before.items() <= after.items()
        assert exit_status(app, file, "--out", whole) == 0
    for name in ("points.parquet", "sweep.json", "sweep.html", "sweep.toml"):
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    assert not list(out.rglob("*.partial"))


@pytest.mark.usefixtures("one_plot", "one_process")
def test_a_sweep_that_grows_runs_only_what_is_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert exit_status(app, small(tmp_path), "--out", out) == 0
    assert "2 combinations, 2 arms, 2 seeds: 8 runs, which may take" in capsys.readouterr().err
    before = kept(out)
    assert exit_status(app, "--resume", out, "--seeds", 3) == 0
    said = capsys.readouterr()
    assert "2 combinations, 2 arms, 3 seeds: 12 runs; 8 are done, 4 are left" in said.err
    assert before.items() <= kept(out).items() and summary_of(out).runs == 12
    assert exit_status(app, "--resume", out, "--metric", "preferred_share") == 0
    assert "12 runs; 12 are done, 0 are left." in capsys.readouterr().err
    assert summary_of(out).metrics == ["preferred_share"]


@pytest.mark.usefixtures("one_plot", "one_process")
def test_what_must_not_change_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert exit_status(app, small(tmp_path), "--out", out) == 0
    before = (out / "sweep.json").read_bytes()
    capsys.readouterr()
    changes: list[tuple[dict[str, Any], str]] = [
        ({"phase_s": 0.6}, "workload.phase_s: expected 0.5, got 0.6"),
        ({"more": "slots_per_machine = 9\n"}, "slots_per_machine: expected nothing, got 9"),
    ]
    for change, said in changes:
        assert exit_status(app, small(tmp_path, **change), "--out", out) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: {out}: holds another sweep: ") and said in line
    assert (out / "sweep.json").read_bytes() == before


@pytest.mark.usefixtures("one_plot", "one_process")
def test_until_runs_as_many_seeds_as_are_needed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--until", "4%", "--metric", "delay_mean_us", "--baseline", "two"]
    file = small(tmp_path)
    assert exit_status(app, file, "--out", out, *options) == 0
    summary = summary_of(out)
    assert summary.until == "4%"
    for one in summary.combinations:
        assert len(one.seeds) in LOOKS
        (known,) = (its.known for arm in one.arms for its in arm.comparisons)
        assert known is not None
        assert known.seeds == len(one.seeds) and known.half_width is not None
        assert known.reached == (known.half_width <= 0.04)
        assert known.reached or len(one.seeds) == LOOKS[-1]
        assert known.difference.level is not None and known.difference.level >= 1 - 0.05 / 3
    text = (out / "sweep.html").read_text("utf-8")
    assert "known to within 4% of the baseline" in text
    assert "Small &amp; &lt;quick&gt;" in text


@pytest.mark.usefixtures("one_plot", "one_process")
def test_the_algorithm_of_the_solver_is_a_parameter(tmp_path: Path) -> None:
    """By name, with settings, and as a race: each has decision times of its own."""
    file, out = tmp_path / "algorithms.toml", tmp_path / "out"
    arm = arm_toml("one", "flow", "flow", 1, more="options = { deterministic = true }")
    values = """[
    "relaxation",
    { name = "cost_scaling", from_scratch = true, alpha = 9 },
    ["relaxation", "cost_scaling"],
]"""
    section = f"""
settle_s = 0.1
[sweep]
seeds = 1
metric = "cost_mean"
[sweep.grid]
arms.one.groups.flow.options.algorithm = {values}
"""
    file.write_text(section + workload_toml(40, 0.5, "load_percent = [60]") + arm)
    assert exit_status(app, file, "--out", out) == 0
    summary = summary_of(out)
    (parameter,) = summary.parameters
    assert parameter.label == "algorithm" and len(parameter.values) == 3
    rows = pq.read_table(out / "points.parquet").to_pylist()
    assert len({row["delay_mean_us"] for row in rows}) == 3
    text = (out / "sweep.html").read_text("utf-8")
    assert "cost_scaling" in text and "alpha" in text
    given = read_sweep(file, {})
    assert read_sweep(out / "sweep.toml", {}).parameters == given.parameters


@pytest.mark.usefixtures("one_plot", "one_process")
def test_several_metrics_and_baselines_from_the_same_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each metric has a table; each arm is compared with each baseline, seed by seed."""
    file, out = small(tmp_path), tmp_path / "out"
    section = """metric = ["preferred_share", "delay_mean_us"]\nbaseline = ["two", "one"]\n"""
    more = """decision = { clock = "counted" }\noptions = {prices = "implied"}\n"""
    third = arm_toml("three", kind="best_fit", more=more)
    file.write_text(file.read_text().replace("seeds =", f"{section}seeds =") + third)
    assert exit_status(app, file, "--out", out) == 0
    printed = capsys.readouterr().out
    titles = re.findall(
        r"Small & <quick>: (Share on preferred|Mean delay)", " ".join(printed.split())
    )
    assert titles == ["Share on preferred", "Mean delay"]
    assert printed.count(" to two ") == printed.count(" to one ") == 2  # columns of each table
    rows = re.findall(
        r"^ (one|two|three) +[\d.]+ (?:%|µs|ms)((?: +[+−±][\d.]+ )?.*)$", printed, re.M
    )
    differences = [(name, len(re.findall(r"[+−±][\d.]+ ", rest))) for name, rest in rows]
    assert differences == [("one", 1), ("two", 0), ("three", 2)] * 4  # metrics and combinations
    summary = summary_of(out)
    rows = pq.read_table(out / "points.parquet").to_pylist()
    for number, one in enumerate(summary.combinations):
        by_arm = {
            arm.name: [
                row["preferred_share"]
                for row in rows
                if (row["combination"], row["arm"]) == (number, arm.name)
            ]
            for arm in one.arms
        }
        compared = {
            (arm.name, its.baseline): its.differences["preferred_share"]
            for arm in one.arms
            for its in arm.comparisons
        }
        assert list(compared) == [("one", "two"), ("three", "two"), ("three", "one")]
        for (name, baseline), difference in compared.items():
            pairs = zip(by_arm[name], by_arm[baseline], strict=True)
            assert difference.absolute.n == 2
            assert difference.estimate == pytest.approx(sum(a - b for a, b in pairs) / 2)
    text = (out / "sweep.html").read_text("utf-8")
    assert "Differences are to two and to one." in text
    assert "<small>to two: " in text and "<small>to one: " in text
    assert {arm.prices for arm in summary.combinations[0].arms} == {"", "implied prices: tie, all"}
    assert text.count("<small>implied prices: tie, all</small>") == 2
    assert "Regret looks one batch ahead" in text
    for metric in summary.metrics:
        assert (out / "figures" / f"{metric}-1.svg").is_file()
    # the sweep as resolved says the same
    assert exit_status(app, "--resume", out) == 0
    assert summary_of(out) == summary
    assert exit_status(app, "--resume", out, "--metric", "cost_mean", "--baseline", "one") == 0
    changed = summary_of(out)
    assert changed.metrics == ["cost_mean"]
    assert [its.baseline for arm in changed.combinations[0].arms for its in arm.comparisons] == [
        "one",
        "one",
    ]


@pytest.mark.usefixtures("one_plot", "one_process")
def test_until_asks_for_the_differences_to_every_baseline(tmp_path: Path) -> None:
    out = tmp_path / "out"
    file = small(tmp_path)
    third = arm_toml("three", kind="best_fit", more='decision = { clock = "counted" }')
    file.write_text(file.read_text() + third)
    options = ["--until", "90%", "--metric", "preferred_share", "--metric", "delay_mean_us"]
    options += ["--baseline", "one", "--baseline", "two"]
    assert exit_status(app, file, "--out", out, *options) == 0
    for one in summary_of(out).combinations:
        known = [its.known for arm in one.arms for its in arm.comparisons]
        assert len(known) == 3
        for difference in known:
            assert difference is not None and difference.reached
            level = difference.difference.level
            assert level is not None and level >= 1 - 0.05 / (3 * 3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "FILE: missing; expected a sweep's TOML file, or --resume DIR"),
        (["no.toml"], "no.toml: No such file or directory"),
        (["{file}", "--out", "{folder}"], "--out {folder}: already exists; choose a new directory"),
        (["--resume", "{folder}"], "--resume {folder}: not a sweep: it has no sweep.toml"),
        (["{file}", "--until", "2"], "{file}: sweep.until: expected a percentage such as 2%"),
        (["{file}", "--seeds", "2", "--until", "2%"], "{file}: sweep.seeds: has no effect with"),
        (["{file}", "--metric", "x"], "{file}: sweep.metric: unknown 'x'; expected one of "),
        (
            ["{file}", "--metric", "cost_mean", "--metric", "x"],
            "{file}: sweep.metric: unknown 'x'; expected one of ",
        ),
        (
            ["{file}", "--metric", "cost_mean", "--metric", "cost_mean"],
            "{file}: sweep.metric: cost_mean is given twice",
        ),
        (
            ["{file}", "--baseline", "one", "--baseline", "x"],
            "{file}: sweep.baseline: there is no arm 'x'; arms: one, two",
        ),
        (["{file}", "--baseline", "x"], "{file}: sweep.baseline: there is no arm 'x'; arms: one"),
        (["{file}", "--address", "x"], "--address x: expected HOST:PORT of the head node, or auto"),
        (["--resume", "{folder}", "--out", "x"], "--out: has no effect with --resume"),
    ],
)
def test_bad_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    file = small(tmp_path)
    given = [option.format(file=file, folder=tmp_path) for option in options]
    if "--out" not in given and "--resume" not in given:
        given += ["--out", str(tmp_path / "out")]
    assert exit_status(app, *given) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("error: " + said.format(file=file, folder=tmp_path))
    assert not (tmp_path / "out").exists()


def test_a_run_that_cannot_be_made_is_refused_before_any_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '\n[[sweep.zip]]\narms.one.groups.greedy.kind = ["random", "best_fat"]\n'
    file = small(tmp_path)
    file.write_text(file.read_text().replace("\n[workload]", f"{text}[workload]"))
    assert exit_status(app, file, "--out", tmp_path / "out") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert 'kind = "best_fat": arms.0.groups.0: ' in line and "best_fat" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("one_plot", "one_process")
def test_two_commands_in_one_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert exit_status(app, small(tmp_path), "--out", out) == 0
    descriptor = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert exit_status(app, "--resume", out) == 2
    finally:
        os.close(descriptor)
    assert "its sweep is still in progress" in capsys.readouterr().err
    shutil.rmtree(out)
