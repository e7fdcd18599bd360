"""`agora compare`: several runs in one table, and one clear line when they do not
belong in one."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.run_directory import write_run
from experiments.analysis.summary import build_summary
from experiments.commands.compare import app
from experiments.studies.compare import combine
from shared_state.errors import AgoraError
from tests.fixtures.commands import exit_status
from tests.unit.run_factory import with_overall, workload
from tests.unit.test_summary import FACTS, bare_arm

Compare = Callable[..., tuple[int, str]]


def write(
    directory: Path,
    delays: dict[str, dict[int, float]],
    machines: int = 2000,
    config: dict[str, Any] | None = None,
) -> Path:
    directory.mkdir(parents=True)
    arms = [bare_arm(name, seeds=seeds) for name, seeds in delays.items()]
    summary = build_summary(replace(FACTS, config=config or FACTS.config), workload(machines), arms)
    summary = with_overall(summary, delay_mean_us={arm.name: 1000.0 for arm in summary.arms})
    write_run(directory, summary, arms)
    return directory


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    one = write(
        tmp_path / "one",
        {"A": {1: 10.0, 2: 20.0, 3: 30.0}, "ParSync adaptive": {1: 11.0, 2: 22.0, 3: 33.0}},
    )
    two = write(tmp_path / "two", {"A": {2: 40.0, 3: 60.0, 4: 80.0}})
    return [str(one), str(two)]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Compare:
    """The command: (exit status, everything it says)."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str) -> tuple[int, str]:
        status = exit_status(app, *arguments)
        said = capsys.readouterr()
        return status, said.out + said.err

    return run


def test_arms_of_two_runs_are_paired_by_the_seeds_they_share(runs: list[str]) -> None:
    summary = combine([Path(run) for run in runs])
    assert [arm.name for arm in summary.arms] == ["one: A", "one: ParSync adaptive", "two: A"]
    paired = summary.paired
    assert paired.seeds == [2, 3]
    assert paired.baseline == "one/parsync-adaptive"
    # between 40 - 22 and 60 - 33
    assert paired.differences["two/a"]["delay_mean_us"].estimate == 22.5


def test_the_table_shows_every_arm_and_says_what_it_rests_on(
    runs: list[str], invoke: Compare
) -> None:
    code, text = invoke(*runs, "--metric", "delay_mean_us")
    assert code == 0
    for name in ("one: A", "one: ParSync adaptive", "two: A"):
        assert name in text
    assert "2 seeds that all arms ran" in text
    assert "one: A is lowest" in text


def test_runs_without_common_seeds_are_shown_without_certainty(
    tmp_path: Path, invoke: Compare
) -> None:
    one = write(tmp_path / "one", {"A": {1: 10.0}})
    two = write(tmp_path / "two", {"A": {2: 10.0}})
    code, text = invoke(str(one), str(two), "--metric", "delay_mean_us")
    assert code == 0
    assert "share no seeds" in text


def test_tables_are_written_as_html_csv_and_markdown(
    runs: list[str], tmp_path: Path, invoke: Compare
) -> None:
    for suffix in ("html", "csv", "md"):
        code, text = invoke(
            *runs, "--metric", "delay_mean_us", "--out", str(tmp_path / f"table.{suffix}")
        )
        assert code == 0, text
    with (tmp_path / "table.csv").open() as file:
        rows = {row["arm"]: row for row in csv.DictReader(file)}
    assert float(rows["two: A"]["estimate"]) == 50.0
    assert float(rows["two: A"]["difference_estimate"]) == 22.5
    assert rows["one: ParSync adaptive"]["difference_estimate"] == ""
    markdown = (tmp_path / "table.md").read_text()
    assert "| one: A | **25 µs**" in markdown
    page = (tmp_path / "table.html").read_text()
    assert "two: A" in page and "http" not in page


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["gone"], "no such directory"),
        (["."], "not a run directory"),
        (["one", "other"], "machines: expected 2000, got 100"),
        (["one", "one/../one"], "given twice"),
        (["one", "--metric", "delya"], "delya: unknown"),
        (["one", "--metric", "solve_p50_us"], "solve_p50_us: no run measured it"),
        (["one", "--out", "table.pdf"], "expected a name ending in"),
        (["one", "--out", "exists.md"], "already exists"),
        (["one", "--metric", "delay_mean_us", "--out", "gone/table.md"], "cannot write it"),
        ([], "Missing argument"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_status_2(
    runs: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    invoke: Compare,
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "other", {"A": {1: 10.0}}, machines=100)
    (tmp_path / "exists.md").touch()
    code, text = invoke(*arguments)
    assert code == 2
    assert says in text
    # a table that cannot be written is still shown
    assert len(text.splitlines()) == 1 or "--out" in text


def test_runs_of_one_name_are_told_apart_by_their_folders(runs: list[str], tmp_path: Path) -> None:
    shutil.copytree(runs[0], tmp_path / "later" / "one")
    names = [arm.name for arm in combine([Path(runs[0]), tmp_path / "later" / "one"]).arms]
    assert len(set(names)) == 4
    assert names[2] == "later/one: A"


def test_combining_tells_which_run_is_partial(runs: list[str], tmp_path: Path) -> None:
    text = (
        (Path(runs[1]) / "summary.json")
        .read_text()
        .replace('"partial": false', '"partial": true', 1)
    )
    (Path(runs[1]) / "summary.json").write_text(text)
    assert combine([Path(run) for run in runs]).partial_reason == "two"
    with pytest.raises(AgoraError):
        combine([Path(runs[0]), tmp_path])


@pytest.mark.parametrize(
    ("one", "two", "says"),
    [
        ({"settle_s": 1.0}, {"settle_s": 2.0}, "settle_s: expected 1.0, got 2.0"),
        ({"drain_s": 1.0}, {"drain_s": 2.0}, "drain_s: expected 1.0, got 2.0"),
        (
            {"workload": {"kind": "synthetic", "duration_sigma": 1.18}},
            {"workload": {"kind": "synthetic", "duration_sigma": 0}},
            "workload.duration_sigma: expected 1.18, got 0",
        ),
        (
            {"workload": {"kind": "synthetic", "preference_groups": 4}},
            {"workload": {"kind": "google2011", "speedup": 4}},
            "workload.kind: expected synthetic, got google2011",
        ),
    ],
)
def test_runs_of_other_work_are_refused_by_the_setting_that_differs(
    tmp_path: Path, one: dict[str, Any], two: dict[str, Any], says: str
) -> None:
    first = write(tmp_path / "one", {"A": {1: 10.0}}, config=one)
    second = write(tmp_path / "two", {"A": {1: 10.0}}, config=two)
    with pytest.raises(AgoraError, match=says):
        combine([first, second])


def test_equal_settings_with_other_tasks_under_one_seed_are_refused(runs: list[str]) -> None:
    """As of another version of a generator, or a trace that was changed."""
    path = Path(runs[1]) / "summary.json"
    summary = json.loads(path.read_text())
    for row in summary["arms"][0]["seeds"]:
        row["workload"] = f"of seed {row['seed']}" if row["seed"] == 4 else row["workload"]
    path.write_text(json.dumps(summary))
    combine([Path(run) for run in runs])  # the first run has no seed 4
    summary["arms"][0]["seeds"][0]["workload"] = "another"
    path.write_text(json.dumps(summary))
    with pytest.raises(AgoraError, match="seed 2: its tasks, machines or arrivals differ"):
        combine([Path(run) for run in runs])


def test_settings_that_may_differ_are_told(tmp_path: Path, invoke: Compare) -> None:
    first = write(
        tmp_path / "one",
        {"A": {1: 10.0}},
        config={"virtual": {"message_us": 0}, "workload": {"kind": "google2011", "directory": "a"}},
    )
    second = write(
        tmp_path / "two",
        {"A": {1: 10.0}},
        config={
            "virtual": {"message_us": 2000},
            "workload": {"kind": "google2011", "directory": "b"},
        },
    )
    code, text = invoke(str(first), str(second), "--metric", "delay_mean_us")
    assert code == 0
    assert "The runs differ in virtual.message_us: 0 in one, 2000 in two." in " ".join(text.split())
