"""`agora report` makes what can be made of a run directory without a summary."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.analysis.run_directory import read_summary
from experiments.commands.report import app as report_app
from experiments.config.run_config import load_config
from experiments.studies.run.killed_runs import run_in_progress
from parsync.metrics.kinds.regret import RegretMeans
from parsync.metrics.summary import ScopeFigures
from tests.fixtures.commands import exit_status

Report = Callable[[Path], tuple[int, str]]


@pytest.fixture
def killed(whole: Path, tmp_path: Path) -> Path:
    """The same as it is just before its summary is written."""
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    for path in (run / "summary.json", run / "report.html"):
        path.unlink()
    return run


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], no_figures: None) -> Report:
    """(exit status, what was said on standard error)."""

    def make(run: Path) -> tuple[int, str]:
        status = exit_status(report_app, run)
        said = capsys.readouterr()
        assert said.out == (f"{run / 'report.html'}\n" if status == 0 else "")
        assert (run / "report.html").exists() == (status == 0)
        return status, said.err

    return make


def forget_end(run: Path, arm: str) -> Path:
    """As if the run had been killed before the arm's figures were worked out."""
    folder = run / "arms" / arm
    (folder / "figures.json").unlink()
    (folder / "series.npz").unlink()
    return folder


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def without_regret(overall: ScopeFigures) -> ScopeFigures:
    return overall.model_copy(update=dict.fromkeys(RegretMeans.model_fields))


def test_everything_was_done_but_the_summary(whole: Path, killed: Path, report: Report) -> None:
    assert report(killed) == (0, "")
    assert read_summary(killed) == read_summary(whole)


def test_killed_during_the_paired_seeds(whole: Path, killed: Path, report: Report) -> None:
    path = max((killed / "seeds").glob("*.json"))
    seed = json.loads(path.read_text())
    del seed["arms"]["flow"]
    path.write_text(json.dumps(seed))
    reason = "3 of 4 runs of the paired seeds are complete"
    assert report(killed) == (0, f"{killed}: partial: {reason}\n")
    summary, before = read_summary(killed), read_summary(whole)
    assert summary.partial and summary.partial_reason == reason
    assert [len(arm.seeds) for arm in summary.arms] == [2, 1]
    assert summary.paired.seeds == before.paired.seeds[:1]
    assert not any(arm.partial for arm in summary.arms)


def test_runs_with_other_decision_times_are_told_to_be_missing(
    killed: Path, report: Report
) -> None:
    config = killed / "config.toml"
    text = config.read_text()
    config.write_text(text.replace("sensitivity_seeds = 0", "sensitivity_seeds = 1"))
    reason = "the runs with other decision times are missing"
    assert report(killed) == (0, f"{killed}: partial: {reason}\n")
    assert read_summary(killed).sensitivity == []


def test_a_damaged_seed_costs_that_seed(killed: Path, report: Report) -> None:
    path = max((killed / "seeds").glob("*.json"))
    whole = path.read_text()
    nan = whole.replace('"delay_mean_us": ', '"delay_mean_us": NaN, "was": ', 1)
    for content, wrong in (
        ('{"seed": 2, "arms"', "not readable as JSON: Expecting"),
        (
            '{"format": 12, "seed": 2, "arms": {"flow": []}}',
            "field arms.flow: expected an object, got a list",
        ),
        ("[]", f"{path}: expected an object"),
        (nan, "delay_mean_us: expected a number, got nan"),
        (f'{{"seed": {"9" * 5000}}}', "not readable as JSON: a number has too many digits"),
    ):
        path.write_text(content)
        status, said = report(killed)
        assert status == 0 and said.startswith(f"{killed}: partial: {path}: ")
        assert wrong in said and "; 2 of 4 runs of the paired seeds" in said
        assert read_summary(killed).paired.seeds == [1]
        (killed / "summary.json").unlink()


@pytest.mark.parametrize(
    ("field", "value", "wrong"),
    [
        ("arm", {}, "field arm.overall is missing"),
        ("arm", 5, "field arm: expected an object, got 5"),
        ("arm.phases", [], "field arm.phases: expected as many entries as workload.phases"),
        ("arm.overall.delay_mean_us", float("nan"), "delay_mean_us: expected a number, got nan"),
        ("arm.overall.delay_mean_us", "fast", "delay_mean_us: expected a number, got 'fast'"),
        ("workload", {}, "field workload.name is missing"),
        ("stopped", None, "field stopped: expected a text, got null"),
        ("format", 13, "field format: expected 12, as this version of Agora writes it, got 13"),
    ],
)
def test_damaged_figures_cost_their_arm(
    killed: Path, report: Report, field: str, value: object, wrong: str
) -> None:
    path = killed / "arms" / "flow" / "figures.json"
    content = inner = json.loads(path.read_text())
    *outer, name = field.split(".")
    for part in outer:
        inner = inner[part]
    inner[name] = value
    path.write_text(json.dumps(content))
    status, said = report(killed)
    assert status == 0 and f"'Flow' is missing: {path}: " in said and wrong in said
    assert [arm.name for arm in read_summary(killed).arms] == ["ParSync"]


@pytest.mark.parametrize("beside", ["virtual", "live"])
def test_an_arm_is_measured_from_its_parquet_files(
    beside: str, whole: Path, killed: Path, report: Report
) -> None:
    """Whether the other arm ran on Ray or not."""
    if beside == "live":
        config = killed / "config.toml"
        text = config.read_text().replace('runtime = "virtual"', 'runtime = "ray"')
        config.write_text(text.replace("[live]\n", '[live]\narms = ["ParSync"]\n'))
        assert not load_config(config).is_live(load_config(config).arms[1])
        assert load_config(config).is_live(load_config(config).arms[0])
    shutil.rmtree(killed / "seeds")
    forget_end(killed, "flow")
    status, said = report(killed)
    missing = "1 of 1 live runs did not begin; " if beside == "live" else ""
    assert status == 0 and f"'Flow': its regret was not computed; {missing}0 of 4 runs" in said
    (_, flow), (_, before) = (read_summary(run).arms for run in (killed, whole))
    assert without_regret(flow.overall) == without_regret(before.overall)
    for part in ("phases", "groups", "agents", "totals", "digest"):
        assert getattr(flow, part) == getattr(before, part)


def test_an_arm_that_was_killed_while_it_ran_is_told_of(
    whole: Path, killed: Path, report: Report
) -> None:
    tasks = forget_end(killed, "flow") / "tasks.parquet"
    cut(tasks.rename(tasks.with_name("tasks.0.parquet.partial")))
    shutil.rmtree(killed / "seeds")
    status, said = report(killed)
    assert status == 0 and len(said.splitlines()) == 1
    assert "'Flow' is missing: " in said and "not closed, or damaged" in said
    (arm,) = read_summary(killed).arms
    (before, _) = read_summary(whole).arms
    assert arm == before.model_copy(update={"seeds": []})


def test_an_arm_that_did_not_begin(killed: Path, report: Report) -> None:
    shutil.rmtree(killed / "seeds")
    shutil.rmtree(killed / "arms" / "flow")
    assert report(killed) == (
        0,
        f"{killed}: partial: 1 of 2 arms did not run; 0 of 4 runs of the paired seeds are "
        "complete\n",
    )


def test_a_run_without_anything(killed: Path, report: Report) -> None:
    shutil.rmtree(killed / "seeds")
    repeats = f"`agora run --config {killed}/config.toml` runs it again"
    for why, gone in (
        ("'ParSync' is missing: killed before it wrote any measurements", "parsync"),
        ("killed before its first arm began", ""),
    ):
        shutil.rmtree(killed / "arms")
        (killed / "arms" / gone).mkdir(parents=True)
        assert report(killed) == (
            2,
            f"error: {killed}: nothing to report: {why}; {repeats}\n",
        )
        assert not (killed / "summary.json").exists()


def test_the_workload_is_the_run_s_own(killed: Path, report: Report) -> None:
    """What config.toml would make now need not be what the run was given."""
    forget_end(killed, "flow")
    cut(killed / "workload" / "tasks.parquet")
    status, said = report(killed)
    assert status == 0 and "'Flow' is missing: " in said and "tasks.parquet: " in said
    assert [arm.name for arm in read_summary(killed).arms] == ["ParSync"]


def test_a_run_that_is_still_going_on(killed: Path, report: Report) -> None:
    with run_in_progress(killed):
        assert report(killed) == (
            2,
            f"error: {killed}: its run is still in progress; wait for its end\n",
        )
    assert report(killed) == (0, "")


def test_what_is_no_run_directory(tmp_path: Path, report: Report) -> None:
    said = f"error: {tmp_path}: not a run directory: it has no config.toml\n"
    assert report(tmp_path) == (2, said)
    assert report(tmp_path / "none") == (2, f"error: {tmp_path / 'none'}: no such directory\n")
